/* engine/plate/layouts, regex.c, parse.c, pattern.c, values.c: names to
 * components, one table. */
#include "bridge/buf.h"
#include "engine/plate/values.h"
#include "tests/unit/check.h"

#include <stdlib.h>

/* A 36-character GUID as MetaXpress glues it on. */
#define GUID "D5F8F51A-3E85-4358-AE51-A465AF87386F"
#define DIGIT_GUID "11D01380-3E85-4358-AE51-A465AF87386F"

/* `outcome`: plate|well|site|timepoint|channel|z, "-" where absent, " P" for a
 * projection; NULL: the name is not of the layout. */
static const struct {
  const char *layout, *folder, *name, *outcome;
} names[] = {
    /* imagexpress */
    {"imagexpress", "9987_Plate_3434/TimePoint_1/ZStep_2",
     "9987_B02_s1_w3.TIF", "9987|B02|1|1|3|2"},
    {"imagexpress", "TimePoint_10/ZStep_10", "9987_B02_s1_w3.TIF",
     "9987|B02|1|10|3|10"},
    {"imagexpress", "TimePoint_1/ZStep_0", "9987_B02_s12_w3.TIF",
     "9987|B02|12|1|3|- P"},
    {"imagexpress", "", "1well-3C-2S-Zmix-T_C07_s1_w1" GUID ".tif",
     "1well-3C-2S-Zmix-T|C07|1|-|1|-"},
    {"imagexpress", "", "x_C07_s1_w1" DIGIT_GUID ".tif", "x|C07|1|-|1|-"},
    {"imagexpress", "", "x_C07_s1_w12" DIGIT_GUID ".tif", "x|C07|1|-|12|-"},
    {"imagexpress", "", "x_C07_s1" DIGIT_GUID ".tif", "x|C07|1|-|-|-"},
    {"imagexpress", "", "x_C07_s1_w1[" GUID "].tif", "x|C07|1|-|1|-"},
    {"imagexpress", "", "1649_1109_0003_Amp5-1_B_20070424_C01_w1_" GUID ".tif",
     "1649_1109_0003_Amp5-1_B_20070424|C01|-|-|1|-"},
    {"imagexpress", "", "--a [b] c-_d_C01_w1.tif", "--a [b] c-_d|C01|-|-|1|-"},
    {"imagexpress", "", "IXMtest_A02_s9.tif", "IXMtest|A02|9|-|-|-"},
    {"imagexpress", "", "IXMtest_A02_s9_C0.ome.tif", "IXMtest|A02|9|-|0|-"},
    {"imagexpress", "", "IXMtest_A02_s9_C1.ome.tif", "IXMtest|A02|9|-|1|-"},
    {"imagexpress", "", "A01_s1_w1.tif", "-|A01|1|-|1|-"},
    {"imagexpress", "", "a1_s1_w1.tif", "-|A01|1|-|1|-"},
    {"imagexpress", "", "AA01_s1_w1.tif", "-|AA01|1|-|1|-"},
    {"imagexpress", "", "p_AF48_s1_w1.tif", "p|AF48|1|-|1|-"},
    {"imagexpress", "", "A01_s1_w1_z3.tif", "-|A01|1|-|1|3"},
    {"imagexpress", "", "A01_s01_w01_z003_t10.tif", "-|A01|1|10|1|3"},
    {"imagexpress", "", "p_A01_B02_s1_w1.tif", "p_A01|B02|1|-|1|-"},
    {"imagexpress", "ZStep_x", "A01_s1_w1.tif", "-|A01|1|-|1|-"},
    {"imagexpress", "", "p_s1_w1.tif", NULL},
    {"imagexpress", "", "stack_t01.tif", NULL},
    {"imagexpress", "", "stack_z01.tif", NULL},
    {"imagexpress", "", "img_ch01.tif", NULL},
    {"imagexpress", "", "img12.tif", NULL},
    {"imagexpress", "", "A01_s1_w1_mask.tif", NULL},
    {"imagexpress", "", "A00_s1_w1.tif", NULL},
    {"imagexpress", "", "AG01_s1_w1.tif", NULL},
    {"imagexpress", "", "A01_s1_w1.tif\n", NULL},
    {"imagexpress", "", "%s%n_A01_s1_w1.tif", "%s%n|A01|1|-|1|-"},
    {"imagexpress", "", "a\nb_A01_s1_w1.tif", "a\nb|A01|1|-|1|-"},
    /* opera_phenix */
    {"opera_phenix", "m/Images", "r03c03f01p01-ch1sk1fk1fl1.tiff",
     "-|C03|1|1|1|1"},
    {"opera_phenix", "", "r32c48f123p10-ch12sk100fk1fl1.tiff",
     "-|AF48|123|100|12|10"},
    {"opera_phenix", "", "r01c01f01p01-ch1.tiff", "-|A01|1|-|1|1"},
    {"opera_phenix", "", "r03c03f01-ch1sk1fk1fl1.tif", "-|C03|1|1|1|-"},
    {"opera_phenix", "", "r00c03f01p01-ch1sk1fk1fl1.tiff", NULL},
    {"opera_phenix", "", "r9999c03f01p01-ch1sk1fk1fl1.tiff", NULL},
    {"opera_phenix", "", "r03c99999f01p01-ch1sk1fk1fl1.tiff", NULL},
    {"opera_phenix", "", "r3c3f1p1-ch1sk1fk1fl1.tiff", NULL},
    /* cv8000 */
    {"cv8000", "", "CV8000-2C-4S_D08_T0001F002L01A02Z04C02.tif",
     "CV8000-2C-4S|D08|2|1|2|4"},
    {"cv8000", "", "p_D08_T0001F002L01A02C02.tif", "p|D08|2|1|2|-"},
    {"cv8000", "", "DC_sCMOS #1_CAM1.tif", NULL},
    {"cv8000", "", "p_D08_T1F2L1A2Z4C2.tif", NULL},
    /* cellomics */
    {"cellomics", "", "AS_09125_050116030001_D03f00d0.tif",
     "AS_09125_050116030001|D03|0|-|0|-"},
    {"cellomics", "", "AS_09047_050428030001_O01f02d2.TIF",
     "AS_09047_050428030001|O01|2|-|2|-"},
    {"cellomics", "", "p_D03f00.tif", "p|D03|0|-|-|-"},
    {"cellomics", "", "p_D03f00o1.tif", NULL},
    {"cellomics", "", "p_D03.tif", NULL},
    /* scanr */
    {"scanr", "data", "A1--W00001--P00002--Z00003--T00004--DAPI.tif",
     "-|A01|2|4|DAPI|3"},
    {"scanr", "", "[B12]--W00024--P00001--Z00000--T00000--nucleus-dapi.tif",
     "-|B12|1|0|nucleus-dapi|0"},
    {"scanr", "", "--W00024--P00001--Z00000--T00000--cherry.tif",
     "-|24|1|0|cherry|0"},
    {"scanr", "", "A1--P00002.tif", NULL},
    /* sbs */
    {"sbs", "", "Channel1-13-B-01.tif", "-|B01|-|-|1|-"},
    {"sbs", "", "Channel2-96-H-12.tif", "-|H12|-|-|2|-"},
    {"sbs", "", "Channel2-H-12.tif", NULL},
    /* incell */
    {"incell", "", "A - 1(fld 1 wv Cy5 - Cy5).tif", "-|A01|1|-|Cy5 - Cy5|-"},
    {"incell", "", "A - 01(fld 2 wv Green - dsRed z 3).tif",
     "-|A01|2|-|Green - dsRed|3"},
    {"incell", "", "P1_P - 24(fld 2 wv UV - DAPI- time 3 - 4000 ms).tif",
     "P1|P24|2|3|UV - DAPI|-"},
    {"incell", "", "B - 03(fld 1 wv TL-Brightfield - Cy3 wix 2).tif",
     "-|B03|1|-|TL-Brightfield - Cy3|-"},
    {"incell", "", "A - 1.tif", NULL},
    /* micromanager */
    {"micromanager", "Default",
     "img_channel001_position002_time000000003_z004.tif", "-|-|2|3|1|4"},
    {"micromanager", "Pos5", "img_000000003_DAPI_004.tif", "-|-|5|3|DAPI|4"},
    {"micromanager", "", "img.tif", NULL},
    {"micromanager", "", "img_.tif", NULL},
    /* plain */
    {"plain", "", "001.tif", "-|-|001|-|-|-"},
    {"plain", "", "ovule_lzw_tiled.ome.tiff", "-|-|ovule_lzw_tiled|-|-|-"},
};

/* Patterns of users, on one path each; `error` is part of the message. */
static const struct {
  const char *pattern, *folder, *name, *outcome, *error;
} patterns[] = {
    {"{well}_s{site}_w{channel}_z{z}.tif", "", "a1_s02_w3_z10.TIFF",
     "-|A01|2|-|3|10", NULL},
    {"{well}_s{site}.tif", "some/where", "B2_s1.tif", "-|B02|1|-|-|-", NULL},
    {"{plate}/{well}/{site}_{channel}.tif", "x/P1/A01", "003_DAPI.tif",
     "P1|A01|3|-|DAPI|-", NULL},
    {"{channel}/{well}.tif", "P1/DAPI", "A01.tif", "-|A01|-|-|DAPI|-", NULL},
    {"r{row}c{col}_{any}.tif", "", "r2c10_whatever.tif", "-|B10|-|-|-|-",
     NULL},
    {"{row}-{col}", "", "AB-3.tif", "-|AB03|-|-|-|-", NULL},
    {"{well}_{well}_{z}.tif", "", "A1_A1_3.tif", "-|A01|-|-|-|3", NULL},
    {"{well}_{well}_{z}.tif", "", "A1_A2_3.tif", NULL, NULL},
    {"a.b({well}).tif", "", "a.b(A1).tif", "-|A01|-|-|-|-", NULL},
    {"a.b({well}).tif", "", "aXb(A1).tif", NULL, NULL},
    {"^(?<well>[A-P]\\d+)-(?P<z>\\d+)\\.tif$", "", "C7-0012.tif",
     "-|C07|-|-|-|12", NULL},
    {"(?<timepoint>\\d+)/(?<well>\\w+)\\.tif$", "x/007", "ctrl.tif",
     "-|ctrl|-|7|-|-", NULL},
    {"(?<z>\\d{40})\\.tif", "", "0000000000000000000000000000000000000007.tif",
     "-|-|-|-|-|7", NULL},
    {"(?<any>x)(?<site>(a+)+)$", "",
     "xaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!", NULL, NULL},
    {"", "", "", NULL, "the pattern is empty"},
    {"plain.tif", "", "", NULL, "names no component"},
    {"{wel}_{site}.tif", "", "", NULL, "did you mean {well}?"},
    {"{well}_{site.tif", "", "", NULL, "at offset 7: the { has no }"},
    {"{well}_site}.tif", "", "", NULL, "at offset 11: the } has no {"},
    {"{wwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwell}", "", "",
     NULL, "so long a name"},
    {"(?<well>[A-Z", "", "", NULL, "is wrong at offset 12"},
    {"(?<wel>[A-Z]\\d+)", "", "", NULL, "did you mean \"well\"?"},
    {"(?<nonsense>x)", "", "", NULL, "a group \"nonsense\"; known are"},
};

static void describe(const char *reason, const struct pf_parsed *parsed,
                     struct pf_buf *out) {
  pf_buf_reset(out);
  for (int c = 0; !reason && c < PF_N_COMPONENTS; c++) {
    if (c)
      pf_buf_char(out, '|');
    if (parsed->value[c].at)
      pf_buf_add(out, parsed->value[c].at, parsed->value[c].n);
    else
      pf_buf_char(out, '-');
  }
  if (!reason && parsed->kind == PF_KIND_PROJECTION)
    pf_buf_str(out, " P");
}

static void check_name(const struct pf_layout *layout,
                       const struct pf_regex *regex, bool of_path,
                       const char *folder, const char *name,
                       const char *outcome) {
  struct pf_parser *parser = calloc(1, sizeof(*parser));
  struct pf_parsed parsed;
  struct pf_buf said = {0};
  const char *reason;
  if (!parser)
    return;
  parser->layout = layout;
  parser->regex = regex;
  parser->of_path = of_path;
  parser->scratch = pf_regex_scratch_create(regex);
  reason = pf_parser_parse(parser, folder, name, &parsed);
  CHECK((reason == NULL) == (outcome != NULL));
  if ((reason == NULL) != (outcome != NULL))
    (void)printf("  %s %s/%s\n", layout->name, folder, name);
  describe(reason, &parsed, &said);
  if (outcome)
    CHECK_STR(pf_buf_text(&said), outcome);
  pf_buf_free(&said);
  pf_regex_scratch_free(parser->scratch);
  free(parser);
}

static void test_names(void) {
  for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
    const char *nearest;
    const struct pf_layout *layout = pf_layout_find(names[i].layout, &nearest);
    struct pf_regex *regex = NULL;
    struct pf_error err = PF_ERROR_INIT;
    CHECK(layout != NULL);
    if (!layout)
      continue;
    CHECK_INT(pf_regex_compile(&regex, layout->regex, true, &err), PF_OK);
    if (regex)
      check_name(layout, regex, false, names[i].folder, names[i].name,
                 names[i].outcome);
    pf_regex_free(regex);
    pf_error_clear(&err);
  }
}

static void test_patterns(void) {
  const char *nearest;
  const struct pf_layout *layout = pf_layout_find("pattern", &nearest);
  for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++) {
    struct pf_error err = PF_ERROR_INIT;
    struct pf_regex *regex = NULL;
    bool of_path = false;
    char *text = NULL;
    int result =
        pf_pattern_expression(&text, &of_path, patterns[i].pattern, &err);
    if (result == PF_OK)
      result = pf_regex_compile(&regex, text, false, &err);
    CHECK_INT(result, patterns[i].error ? PF_EINVAL : PF_OK);
    if (patterns[i].error && err.message) {
      CHECK(strstr(err.message, patterns[i].error) != NULL);
      if (!strstr(err.message, patterns[i].error))
        (void)printf("  %s\n", err.message);
    }
    if (regex)
      check_name(layout, regex, of_path, patterns[i].folder, patterns[i].name,
                 patterns[i].outcome);
    pf_regex_free(regex);
    free(text);
    pf_error_clear(&err);
  }
}

static const struct {
  const char *text;
  unsigned row, col; /* 0: no well */
  const char *canonical;
} wells[] = {
    {"A1", 1, 1, "A01"},       {"a01", 1, 1, "A01"},
    {"A - 01", 1, 1, "A01"},   {"Z24", 26, 24, "Z24"},
    {"AA01", 27, 1, "AA01"},   {"AF48", 32, 48, "AF48"},
    {"P100", 16, 100, "P100"}, {"", 0, 0, NULL},
    {"A", 0, 0, NULL},         {"1", 0, 0, NULL},
    {"A0", 0, 0, NULL},        {"A1234", 0, 0, NULL},
    {"AAA1", 0, 0, NULL},      {"A1x", 0, 0, NULL},
};

static void test_wells(void) {
  for (size_t i = 0; i < sizeof(wells) / sizeof(wells[0]); i++) {
    unsigned row = 0, col = 0;
    char text[16];
    bool ok = pf_well_parse(wells[i].text, strlen(wells[i].text), &row, &col);
    CHECK_INT(ok, wells[i].row > 0);
    if (!ok || !wells[i].row)
      continue;
    CHECK_INT(row, wells[i].row);
    CHECK_INT(col, wells[i].col);
    CHECK(pf_well_format(text, row, col));
    CHECK_STR(text, wells[i].canonical);
  }
}

/* Values as they come, and as they are to be sorted. */
static void test_order(void) {
  static const char *const in[] = {"b10",
                                   "10",
                                   "9",
                                   "b9",
                                   "123456789012345678901",
                                   "1",
                                   "99999999999999999999"};
  static const char *const sorted[] = {
      "1",  "9",  "10", "99999999999999999999", "123456789012345678901",
      "b9", "b10"};
  static const char *const in_wells[] = {"AA01", "B10", "ctrl",
                                         "B09",  "7",   "Z24"};
  static const char *const sorted_wells[] = {"B09",  "B10", "Z24",
                                             "AA01", "7",   "ctrl"};
  struct pf_values values = {0};
  for (size_t i = 0; i < 7; i++)
    (void)pf_values_add(&values,
                        (struct pf_text){in[i], (uint32_t)strlen(in[i])});
  CHECK_INT(pf_values_rank(&values, PF_SITE, NULL), PF_OK);
  for (uint32_t i = 0; i < 7 && i < values.n; i++)
    CHECK_STR(values.text[i], sorted[i]);
  pf_values_finish(&values);
  for (size_t i = 0; i < 6; i++)
    (void)pf_values_add(
        &values, (struct pf_text){in_wells[i], (uint32_t)strlen(in_wells[i])});
  CHECK_INT(pf_values_rank(&values, PF_WELL, NULL), PF_OK);
  for (uint32_t i = 0; i < 6 && i < values.n; i++)
    CHECK_STR(values.text[i], sorted_wells[i]);
  pf_values_finish(&values);
}

static void test_table(void) {
  const char *nearest = NULL;
  CHECK(pf_layout_find("imagexpres", &nearest) == NULL);
  CHECK_STR(nearest, "imagexpress");
  CHECK(pf_layout_find("qqqqqqqqqq", &nearest) == NULL);
  CHECK(nearest == NULL);
  CHECK(pf_layout_at(1000) == NULL);
}

int main(void) {
  test_names();
  test_patterns();
  test_wells();
  test_order();
  test_table();
  return check_done();
}
