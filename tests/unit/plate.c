/* engine/plate: trees of files to plates, in a folder of its own. */
#include "bridge/buf.h"
#include "bridge/json.h"
#include "bridge/os.h"
#include "engine/plate/inspect.h"
#include "tests/unit/check.h"

#include <ftw.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char base[] = "/tmp/pf-plate-XXXXXX";

static void put(unsigned char *at, uint32_t value, int n_bytes) {
  for (int i = 0; i < n_bytes; i++)
    at[i] = (unsigned char)(value >> 8 * i);
}

/* One TIFF directory entry. */
static void put_entry(unsigned char *at, uint32_t tag, uint32_t type,
                      uint32_t count, uint32_t value) {
  put(at, tag, 2);
  put(at + 2, type, 2);
  put(at + 4, count, 4);
  put(at + 8, value, 4);
}

/*
 * A TIFF of `n_pages` pages of `width` x 1 uint8 pixels, each with the value
 * of its page; `samples` 3 makes it RGB. The first page has `description`.
 */
static void write_tiff(const char *path, uint32_t n_pages, uint32_t width,
                       uint32_t samples, const char *description) {
  enum { ENTRIES = 9, SIZE = 2 + ENTRIES * 12 + 4 };
  struct pf_buf out = {0};
  struct pf_error err = PF_ERROR_INIT;
  uint32_t n_text = (uint32_t)strlen(description) + 1;
  uint32_t first = 8 + (n_text + 1) / 2 * 2;
  uint32_t stride = SIZE + (width * samples + 1) / 2 * 2;
  unsigned char header[8] = {'I', 'I', 42, 0, 0, 0, 0, 0};
  put(header + 4, first, 4);
  pf_buf_add(&out, header, 8);
  pf_buf_add(&out, description, n_text);
  while (out.len < first)
    pf_buf_char(&out, '\0');
  for (uint32_t page = 0; page < n_pages; page++) {
    uint32_t at = first + page * stride;
    unsigned char ifd[SIZE] = {ENTRIES};
    unsigned char *e = ifd + 2;
    put_entry(e, 256, 4, 1, width);
    put_entry(e + 12, 257, 4, 1, 1);
    put_entry(e + 24, 258, 3, 1, 8);
    put_entry(e + 36, 259, 3, 1, 1);
    put_entry(e + 48, 262, 3, 1, samples == 3 ? 2 : 1);
    /* Texts of up to four bytes stand in the entry itself. */
    put_entry(e + 60, 270, 2, n_text, n_text > 4 ? 8 : 0);
    put_entry(e + 72, 273, 4, 1, at + SIZE);
    put_entry(e + 84, 277, 3, 1, samples);
    put_entry(e + 96, 279, 4, 1, width * samples);
    put(ifd + SIZE - 4, page + 1 < n_pages ? at + stride : 0, 4);
    pf_buf_add(&out, ifd, SIZE);
    for (uint32_t i = 0; i < stride - SIZE; i++)
      pf_buf_char(&out, (char)page);
  }
  CHECK_INT(pf_os_write_file(path, out.data, out.len, &err), PF_OK);
  pf_error_clear(&err);
  pf_buf_free(&out);
}

static bool is_kind(const char *entry, const char *kind) {
  size_t n = strlen(kind);
  return strncmp(entry, kind, n) == 0 && entry[n] == ':';
}

/* An entry of a tree: "KIND:PATH". Kinds: i an image, I one of other size,
 * rgb, 3 three pages, ij six pages of 3 channels x 2 z by ImageJ, lie pages
 * that contradict the description, e empty, g garbage, d a folder, p a pipe,
 * l a link "PATH>TARGET". */
static void make_entry(const char *root, const char *entry) {
  const char *colon = strchr(entry, ':'), *arrow;
  char *path = pf_os_join(root, colon + 1), *dir;
  struct pf_error err = PF_ERROR_INIT;
  CHECK(path != NULL);
  if (!path)
    return;
  arrow = strchr(path, '>');
  if (arrow)
    path[arrow - path] = '\0';
  dir = pf_os_dirname(path);
  CHECK_INT(pf_os_make_dirs(dir, &err), PF_OK);
  if (is_kind(entry, "rgb"))
    write_tiff(path, 1, 4, 3, "");
  else if (is_kind(entry, "ij"))
    write_tiff(path, 6, 4, 1, "ImageJ=1.53\nimages=6\nchannels=3\nslices=2\n");
  else if (is_kind(entry, "lie"))
    write_tiff(path, 3, 4, 1, "ImageJ=1.53\nimages=6\nchannels=6\n");
  else if (is_kind(entry, "i") || is_kind(entry, "I"))
    write_tiff(path, 1, *entry == 'i' ? 4 : 5, 1, "");
  else if (is_kind(entry, "3"))
    write_tiff(path, 3, 4, 1, "");
  else if (is_kind(entry, "e") || is_kind(entry, "g"))
    CHECK_INT(pf_os_write_file(path, "garbage", *entry == 'g' ? 7 : 0, &err),
              PF_OK);
  else if (is_kind(entry, "d"))
    CHECK_INT(mkdir(path, 0777), 0);
  else if (is_kind(entry, "p"))
    CHECK_INT(mkfifo(path, 0666), 0);
  else if (arrow)
    CHECK_INT(symlink(arrow + 1, path), 0);
  pf_error_clear(&err);
  free(path);
  free(dir);
}

static int remove_entry(const char *path, const struct stat *st, int type,
                        struct FTW *ftw) {
  (void)st;
  (void)type;
  (void)ftw;
  return remove(path);
}

enum { MAX_ENTRIES = 14, MAX_PARTS = 9 };

static const struct tree {
  const char *name;
  const char *entries[MAX_ENTRIES];
  struct pf_plate_options options;
  const char *summary;          /* what summarise() says; NULL: an error */
  const char *parts[MAX_PARTS]; /* of the error, or "PATH: REASON" left out */
} trees[] = {
    {"numbers are numbers",
     {"i:ZStep_9/p_A1_s1_w1.tif", "i:ZStep_10/p_a01_s1_w1.tif",
      "i:ZStep_9/p_AA01_s1_w1.tif", "i:ZStep_10/p_AA1_s1_w1.tif",
      "i:ZStep_9/p_Z01_s1_w1.tif", "i:ZStep_10/p_Z01_s01_w1.tif"},
     {0},
     "imagexpress 6/6 plate p; well A01 Z01 AA01; site 1; channel 1; z 9 10",
     {0}},
    {"projections have no z",
     {"i:ZStep_0/A01_s1_w1.tif", "i:ZStep_1/A01_s1_w1.tif",
      "i:ZStep_2/A01_s1_w1.tif", "i:ZStep_0/A01_s1_w2.tif"},
     {0},
     "imagexpress 3/3 plate ROOT; well A01; site 1; channel 1 2; z 1 2",
     {"ZStep_0/A01_s1_w1.tif: a projection"}},
    {"only projections",
     {"i:ZStep_0/A01_s1_w1.tif", "i:ZStep_1/A01_s1_w1.tif",
      "i:ZStep_0/A01_s1_w2.tif", "i:ZStep_1/A01_s1_w3.tif"},
     {.planes = "projections"},
     "imagexpress 3/3 plate ROOT; well A01; site 1; channel 1 2 3; z 1",
     {"ZStep_1/A01_s1_w1.tif: a slice"}},
    {"both",
     {"i:ZStep_0/A01_s1_w1.tif", "i:ZStep_1/A01_s1_w1.tif"},
     {.planes = "both"},
     "imagexpress 2/2 plate ROOT; well A01; site 1; channel 1; z 1",
     {0}},
    {"a plane beside z folders is a projection",
     {"i:TimePoint_1/A01_s1_w1.tif", "i:TimePoint_1/ZStep_1/A01_s1_w1.tif"},
     {0},
     "imagexpress 1/1 plate ROOT; well A01; site 1; timepoint 1; channel 1; "
     "z 1",
     {"TimePoint_1/A01_s1_w1.tif: a projection"}},
    {"plates side by side, names without a plate",
     {"i:P2/A01_s1_w1.tif", "i:P10/A01_s1_w1.tif", "i:A01_s1_w1.tif"},
     {0},
     "imagexpress 3/3 plate P2 P10 ROOT; well A01; site 1; channel 1",
     {0}},
    {"one name in folders that do not clash is one plate",
     {"i:a/X_A01_s1_w1.tif", "i:b/X_A02_s1_w1.tif"},
     {0},
     "imagexpress 2/2 plate X; well A01 A02; site 1; channel 1",
     {0}},
    {"one name in folders that clash is two plates",
     {"i:a/X_A01_s1_w1.tif", "i:b/X_A01_s1_w1.tif"},
     {0},
     "imagexpress 2/2 plate a b; well A01; site 1; channel 1",
     {0}},
    {"folders of one name are told apart by their paths",
     {"i:1/P/A01_s1_w1.tif", "i:2/P/A01_s1_w1.tif"},
     {0},
     "imagexpress 2/2 plate 1/P 2/P; well A01; site 1; channel 1",
     {0}},
    {"the acquisition is the plate",
     {"i:2024-04-22/1697/TimePoint_1/X_C07_s1_w1.tif",
      "i:2024-04-22/1698/TimePoint_1/X_C08_s1_w1.tif"},
     {0},
     "imagexpress 2/2 plate 1697 1698; well C07 C08; site 1; timepoint 1; "
     "channel 1",
     {0}},
    {"two files for one slice",
     {"i:A1_s1_w1.tif", "i:A01_s1_w1.tif"},
     {0},
     NULL,
     {"two files are one slice (plate ", "well A01",
      ": A01_s1_w1.tif and A1_s1_w1.tif;"}},
    {"a copy below the plate's folder",
     {"i:X_A01_s1_w1.tif", "i:old/X_A01_s1_w1.tif"},
     {0},
     NULL,
     {": X_A01_s1_w1.tif and old/X_A01_s1_w1.tif;"}},
    {"thumbnails drop before duplicates",
     {"i:X_A01_s1_w1.tif", "i:X_A01_s1_w1_thumb.tif",
      "i:X_A01_s1_w1_thumb11D01380-3E85-4358-AE51-A465AF87386F.tif",
      "g:Thumbs.db", "g:.DS_Store", "g:.X_A01_s1_w2.tif.pf-tmp", "g:X.HTD",
      "g:X_A01_s1_w1.C01", "i:.hidden/X_A01_s1_w1.tif"},
     {0},
     "imagexpress 1/1 plate X; well A01; site 1; channel 1",
     {"X_A01_s1_w1_thumb.tif: a thumbnail", "A465AF87386F.tif: a thumbnail",
      "Thumbs.db: not an image", ".DS_Store: a hidden file",
      ".X_A01_s1_w2.tif.pf-tmp: a hidden file", "X.HTD: not an image",
      "X_A01_s1_w1.C01: a Cellomics container", ".hidden: a hidden folder"}},
    {"what is no file",
     {"i:X_A01_s1_w1.tif", "d:X_A02_s1_w1.tif", "p:X_A03_s1_w1.tif",
      "l:X_A04_s1_w1.tif>X_A04_s1_w1.tif", "l:X_A05_s1_w1.tif>nowhere",
      "l:sub/loop>../sub", "l:up>..", "l:X_A06_s1_w1.tif>X_A01_s1_w1.tif"},
     {0},
     "imagexpress 2/2 plate X; well A01 A06; site 1; channel 1",
     {"X_A02_s1_w1.tif: a folder that is named like an image",
      "X_A03_s1_w1.tif: not a regular file",
      "X_A04_s1_w1.tif: a link that leads to itself",
      "X_A05_s1_w1.tif: a link that leads nowhere", "sub/loop: a loop",
      "up: a loop: it leads to a folder that holds the plate"}},
    {"a name with newline and %s",
     {"i:%s%n\n_A01_s1_w1.tif", "i:%s%n\n_A02_s1_w1.tif"},
     {0},
     "imagexpress 2/2 plate %s%n\n; well A01 A02; site 1; channel 1",
     {0}},
    {"a broken file costs itself when it is read",
     {"e:A01_s1_w1.tif", "g:A02_s1_w1.tif", "i:A03_s1_w1.tif"},
     {0},
     "imagexpress 3/3 plate ROOT; well A01 A02 A03; site 1; channel 1",
     {0}},
    {"a channel without a readable file is left out",
     {"e:A01_s1_w1.tif", "rgb:A02_s1_w1.tif", "i:A01_s1_w2.tif"},
     {0},
     "imagexpress 1/1 plate ROOT; well A01; site 1; channel 2",
     {"A01_s1_w1.tif: ", "A02_s1_w1.tif: "}},
    {"deep leaves out what cannot be read",
     {"g:A01_s1_w1.tif", "i:A02_s1_w1.tif", "I:A03_s1_w1.tif"},
     {.deep = true},
     "imagexpress 2/2 plate ROOT; well A02 A03; site 1; channel 1",
     {"A01_s1_w1.tif: "}},
    {"nothing can be read",
     {"e:A01_s1_w1.tif", "g:A02_s1_w1.tif"},
     {0},
     NULL,
     {"there is no image to read in ", "2 entries were left out",
      "\n  A01_s1_w1.tif: cannot read", "\n  A02_s1_w1.tif: cannot read"}},
    {"nothing is there",
     {"d:empty"},
     {0},
     NULL,
     {"there is no image to read"}},
    {"names that nobody knows",
     {"i:one.tif", "i:two.tif", "i:sub/one.tif", "3:three.tif"},
     {0},
     "plain 6/4 plate sub ROOT; site one three two; z 1 2 3",
     {0}},
    {"one well of many names is no evidence",
     {"i:one.tif", "i:two.tif", "i:three.tif", "i:B12.tif"},
     {0},
     "plain 4/4 plate ROOT; site B12 one three two",
     {0}},
    {"a few other files beside a plate",
     {"i:A01_s1_w1.tif", "i:A02_s1_w1.tif", "i:illum_w1.tif"},
     {0},
     "imagexpress 2/2 plate ROOT; well A01 A02; site 1; channel 1",
     {"illum_w1.tif: its name does not fit the layout"}},
    {"pages by ImageJ",
     {"ij:X_A01_s1.tif"},
     {0},
     "imagexpress 6/1 plate X; well A01; site 1; channel 1 2 3; z 1 2",
     {0}},
    {"the options win over ImageJ",
     {"ij:X_A01_s1.tif"},
     {.pages = "timepoint"},
     "imagexpress 6/1 plate X; well A01; site 1; timepoint 1 2 3 4 5 6; "
     "channel 1",
     {0}},
    {"a description that contradicts the file",
     {"lie:X_A01_s1.tif"},
     {0},
     "imagexpress 3/1 plate X; well A01; site 1; channel 1; z 1 2 3",
     {0}},
    {"pages and name say the same",
     {"3:A01_s1_w1_z1.tif"},
     {0},
     NULL,
     {"A01_s1_w1_z1.tif holds 3 pages, taken as z,", "\"pages\""}},
    {"pages beside a name's z",
     {"3:A01_s1_z1.tif"},
     {.pages = "channel"},
     "imagexpress 3/1 plate ROOT; well A01; site 1; channel 1 2 3; z 1",
     {0}},
    {"a pattern",
     {"i:P/A1-3.tif", "i:P/A1-20.tif", "i:P/no.tif"},
     {.pattern = "{well}-{z}.tif"},
     "pattern 2/2 plate P; well A01; z 3 20",
     {"P/no.tif: its name does not fit the layout"}},
    {"a pattern with folders",
     {"i:P/A1/3.tif", "i:P/B1/3.tif"},
     {.layout = "pattern", .pattern = "{well}/{channel}.tif"},
     "pattern 2/2 plate P; well A01 B01; channel 3",
     {0}},
    {"no pattern", {"i:a.tif"}, {.layout = "pattern"}, NULL, {"needs a "}},
    {"a pattern too many",
     {"i:a.tif"},
     {.layout = "sbs", .pattern = "{well}.tif"},
     NULL,
     {"needs the layout \"pattern\", not \"sbs\""}},
    {"no such layout",
     {"i:a.tif"},
     {.layout = "imagexpres"},
     NULL,
     {"did you mean \"imagexpress\"?"}},
    {"no such planes",
     {"i:a.tif"},
     {.planes = "projection"},
     NULL,
     {"did you mean \"projections\"?"}},
    {"no such pages", {"i:a.tif"}, {.pages = "time"}, NULL, {"\"pages\""}},
    {"a layout that fits nothing",
     {"i:a.tif"},
     {.layout = "sbs"},
     NULL,
     {"a.tif: its name does not fit the layout"}},
};

/* "LAYOUT SLICES/FILES plate a b; well ..."; the root's own name as ROOT. */
static void summarise(const struct pf_plate *plate, const char *root,
                      struct pf_buf *out) {
  size_t n = pf_plate_n_slices(plate), n_files = 0;
  uint32_t last = UINT32_MAX;
  for (size_t i = 0; i < n; i++) {
    const struct pf_slice *slice = &pf_plate_slices(plate)[i];
    n_files += slice->page == 0 || (i == 0 && last == UINT32_MAX);
  }
  pf_buf_printf(out, "%s %zu/%zu", pf_plate_layout(plate), n, n_files);
  for (int c = 0; c < PF_N_COMPONENTS; c++) {
    enum pf_component component = (enum pf_component)c;
    if (!pf_plate_has(plate, component))
      continue;
    pf_buf_printf(out, "%s %s", c ? ";" : "", pf_component_name(component));
    for (uint32_t r = 0; r < pf_plate_n_values(plate, component); r++) {
      const char *value = pf_plate_value(plate, component, r);
      pf_buf_printf(out, " %s", strcmp(value, root) ? value : "ROOT");
    }
  }
}

static bool is_left_out(const struct pf_plate *plate, const char *part) {
  struct pf_buf line = {0};
  bool found = false;
  for (size_t i = 0; i < pf_plate_n_left_out(plate) && !found; i++) {
    const struct pf_left_out *it = pf_plate_left_out(plate, i);
    pf_buf_reset(&line);
    pf_buf_printf(&line, "%s: %s", it->path, it->reason);
    found = strstr(line.data, part) != NULL;
  }
  pf_buf_free(&line);
  return found;
}

static bool is_said(const struct pf_error *err, const char *part) {
  return (err->message && strstr(err->message, part)) ||
         (err->detail && strstr(err->detail, part));
}

static void check_sorted(const struct pf_plate *plate) {
  const struct pf_slice *s = pf_plate_slices(plate);
  for (size_t i = 1; i < pf_plate_n_slices(plate); i++)
    for (int c = 0; c < PF_N_COMPONENTS; c++) {
      /* Absent sorts first. */
      uint32_t a = s[i - 1].value[c] + 1, b = s[i].value[c] + 1;
      CHECK(a <= b);
      if (a != b)
        break;
    }
}

/* The reports have to be well-formed whatever the names are. */
static void check_reports(const struct pf_plate *plate) {
  struct pf_buf out = {0};
  struct pf_error err = PF_ERROR_INIT;
  struct pf_json_doc *doc = NULL;
  CHECK_INT(pf_inspect_json(plate, &out), PF_OK);
  CHECK_INT(pf_json_parse(&doc, out.data, out.len, "inspect", &err), PF_OK);
  if (doc) {
    const pf_json *root = pf_json_root(doc);
    CHECK_INT(pf_json_n(pf_json_get(root, "slices")),
              pf_plate_n_slices(plate));
    CHECK_INT(pf_json_n(pf_json_get(root, "left_out")),
              pf_plate_n_left_out(plate));
  }
  pf_json_free(&doc);
  pf_error_clear(&err);
  pf_buf_reset(&out);
  CHECK_INT(pf_inspect_text(plate, true, &out), PF_OK);
  CHECK(out.len > 0 && strstr(out.data, "layout") != NULL);
  pf_buf_free(&out);
}

static char *make_tree(const char *const *entries) {
  static int n_trees;
  char name[16], *root;
  struct pf_error err = PF_ERROR_INIT;
  (void)snprintf(name, sizeof(name), "tree%d", n_trees++);
  root = pf_os_join(base, name);
  CHECK_INT(pf_os_make_dirs(root, &err), PF_OK);
  for (size_t i = 0; i < MAX_ENTRIES && entries[i]; i++)
    make_entry(root, entries[i]);
  pf_error_clear(&err);
  return root;
}

static void check_tree(const struct tree *tree) {
  struct pf_plate *plate = NULL;
  struct pf_error err = PF_ERROR_INIT;
  struct pf_buf summary = {0};
  char *root = make_tree(tree->entries);
  int before = check_failures;
  int result = pf_plate_open(&plate, root, &tree->options, &err);
  CHECK_INT(result, tree->summary ? PF_OK : PF_EINVAL);
  CHECK((plate != NULL) == (result == PF_OK));
  if (plate) {
    summarise(plate, strrchr(root, '/') + 1, &summary);
    if (tree->summary)
      CHECK_STR(pf_buf_text(&summary), tree->summary);
    check_sorted(plate);
    check_reports(plate);
  }
  for (size_t i = 0; i < MAX_PARTS && tree->parts[i]; i++)
    CHECK(plate ? is_left_out(plate, tree->parts[i])
                : is_said(&err, tree->parts[i]));
  if (check_failures > before)
    (void)printf("  in \"%s\": %s\n", tree->name,
                 err.message ? err.message : "");
  pf_buf_free(&summary);
  pf_plate_unref(&plate);
  pf_error_clear(&err);
  free(root);
}

#define BIT(c) (1u << PF_##c)
#define GUID "D5F8F51A-3E85-4358-AE51-A465AF87386F"

/* The output's name for the first slice of a plate with one file. */
static const struct {
  const char *entry, *pattern;
  unsigned lost;
  const char *output;
} outputs[] = {
    {"i:A01_s1_w1_z3.tif", NULL, 0, "A01_s1_w1_z3.tif"},
    {"i:A01_s1_w1_z3.tif", NULL, BIT(Z), "A01_s1_w1.tif"},
    {"i:A01_s1_w1_z3.tif", NULL, BIT(Z) | BIT(SITE), "A01_w1.tif"},
    {"i:A01_s1_w1_z3.tif", NULL, BIT(WELL), "s1_w1_z3.tif"},
    {"i:A01_s1_w1.tif", NULL, BIT(Z), "A01_s1_w1.tif"},
    {"i:p/TimePoint_1/ZStep_2/X_B02_s1_w1.TIF", NULL, BIT(Z),
     "p/TimePoint_1/X_B02_s1_w1.tif"},
    {"i:p/TimePoint_1/ZStep_2/X_B02_s1_w1.TIF", NULL, BIT(TIMEPOINT),
     "p/ZStep_2/X_B02_s1_w1.tif"},
    {"i:p/TimePoint_1/ZStep_0/X_B02_s1_w1.TIF", NULL, BIT(Z),
     "p/TimePoint_1/ZStep_0/X_B02_s1_w1.tif"},
    {"i:p/ZStep_2/X_B02_s1_w1.TIF", NULL, BIT(PLATE), "ZStep_2/B02_s1_w1.tif"},
    {"i:X_B02_s1_w1" GUID ".tif", NULL, 0, "X_B02_s1_w1" GUID ".tif"},
    {"i:X_B02_s1_w1" GUID ".tif", NULL, BIT(CHANNEL), "X_B02_s1.tif"},
    {"i:X_B02_w1_" GUID ".tif", NULL, BIT(CHANNEL), "X_B02.tif"},
    {"i:X_B02_w1_" GUID ".tif", NULL, BIT(SITE), "X_B02_w1.tif"},
    {"i:IXMtest_A02_s9_C0.ome.tif", NULL, 0, "IXMtest_A02_s9_C0.tif"},
    {"i:IXMtest_A02_s9_C0.ome.tif", NULL, BIT(CHANNEL), "IXMtest_A02_s9.tif"},
    {"ij:IXMtest_A02_s9.tif", NULL, 0, "IXMtest_A02_s9_w1_z1.tif"},
    {"ij:IXMtest_A02_s9.tif", NULL, BIT(Z), "IXMtest_A02_s9_w1.tif"},
    {"ij:IXMtest_A02_s9.tif", NULL, BIT(Z) | BIT(CHANNEL),
     "IXMtest_A02_s9.tif"},
    {"i:m/Images/r03c03f01p01-ch1sk1fk1fl1.tiff", NULL, BIT(Z),
     "m/Images/r03c03f01-ch1sk1fk1fl1.tif"},
    {"i:m/Images/r03c03f01p01-ch1sk1fk1fl1.tiff", NULL, BIT(CHANNEL),
     "m/Images/r03c03f01p01sk1fk1fl1.tif"},
    {"i:r03c03f01p01-ch1sk1fk1fl1.tiff", NULL, BIT(WELL),
     "f01p01-ch1sk1fk1fl1.tif"},
    {"i:p_D08_T0001F001L01A01Z01C01.tif", NULL, BIT(Z),
     "p_D08_T0001F001L01A01C01.tif"},
    {"i:p_D08_T0001F001L01A01Z01C01.tif", NULL, BIT(CHANNEL) | BIT(Z),
     "p_D08_T0001F001L01A01.tif"},
    {"i:p_D08_T0001F001L01A01Z01C01.tif", NULL, BIT(TIMEPOINT),
     "p_D08F001L01A01Z01C01.tif"},
    {"i:AS_1_D03f00d0.tif", NULL, BIT(SITE), "AS_1_D03d0.tif"},
    {"i:A1--W00001--P00002--Z00003--T00004--DAPI.tif", NULL, BIT(Z),
     "A1--W00001--P00002--T00004--DAPI.tif"},
    {"i:A1--W00001--P00002--Z00003--T00004--DAPI.tif", NULL, BIT(WELL),
     "P00002--Z00003--T00004--DAPI.tif"},
    {"i:Channel1-13-B-01.tif", NULL, BIT(CHANNEL), "13-B-01.tif"},
    {"i:Channel1-13-B-01.tif", NULL, BIT(WELL), "Channel1.tif"},
    {"i:A - 01(fld 2 wv Green - dsRed z 3).tif", NULL, BIT(Z),
     "A - 01(fld 2 wv Green - dsRed).tif"},
    {"i:img_channel001_position002_time000000003_z004.tif", NULL, BIT(Z),
     "img_channel001_position002_time000000003.tif"},
    {"i:Pos5/img_000000003_DAPI_004.tif", NULL, BIT(SITE),
     "img_000000003_DAPI_004.tif"},
    {"3:sub/stack.tif", NULL, BIT(Z), "sub/stack.tif"},
    {"3:sub/stack.tif", NULL, 0, "sub/stack_z1.tif"},
    {"i:one.tif", NULL, BIT(SITE), "ROOT.tif"},
    {"i:P/ch1/A01/t3.tif", "{plate}/ch{channel}/{well}/t{timepoint}.tif",
     BIT(CHANNEL), "P/A01/t3.tif"},
    {"i:P/ch1/A01/t3.tif", "{plate}/ch{channel}/{well}/t{timepoint}.tif",
     BIT(TIMEPOINT) | BIT(PLATE), "ch1/A01/P.tif"},
    {"i:DAPIA01.tif", "(?<channel>[A-Z]+)(?<well>A\\d+)\\.tif", BIT(WELL),
     "DAPI.tif"},
};

static void test_output_names(void) {
  for (size_t i = 0; i < sizeof(outputs) / sizeof(outputs[0]); i++) {
    const char *entries[MAX_ENTRIES] = {outputs[i].entry};
    struct pf_plate_options options = {.pattern = outputs[i].pattern};
    struct pf_plate *plate = NULL;
    struct pf_error err = PF_ERROR_INIT;
    char *root = make_tree(entries), *name = NULL;
    const char *expected = outputs[i].output;
    struct pf_buf with_root = {0};
    CHECK_INT(pf_plate_open(&plate, root, &options, &err), PF_OK);
    if (strcmp(expected, "ROOT.tif") == 0) {
      pf_buf_printf(&with_root, "%s.tif", strrchr(root, '/') + 1);
      expected = with_root.data;
    }
    if (plate)
      name = pf_plate_output_name(plate, pf_plate_slices(plate),
                                  outputs[i].lost, ".tif");
    CHECK_STR(name, expected);
    free(name);
    pf_buf_free(&with_root);
    pf_plate_unref(&plate);
    pf_error_clear(&err);
    free(root);
  }
}

static void test_find(void) {
  static const char *const entries[MAX_ENTRIES] = {
      "i:p_A01_s1_w1.tif", "i:p_A01_s1_w2.tif", "i:p_B02_s10_w1.tif"};
  static const char *const values[] = {"01", "2", "9"};
  static const char *const people[] = {"DNA", "ER", "none"};
  static const char *const twice[] = {"DNA", "DNA", "none"};
  struct pf_plate_options options = {
      .n_channels = 3, .channel_values = values, .channel_names = people};
  struct pf_plate *plate = NULL;
  struct pf_error err = PF_ERROR_INIT;
  char *root = make_tree(entries), *path;
  CHECK_INT(pf_plate_open(&plate, root, &options, &err), PF_OK);
  if (!plate)
    return;
  CHECK_STR(pf_plate_value(plate, PF_CHANNEL, 0), "DNA");
  CHECK_INT(pf_plate_find(plate, PF_CHANNEL, "ER"), 1);
  CHECK_INT(pf_plate_find(plate, PF_CHANNEL, "002"), 1);
  CHECK_INT(pf_plate_find(plate, PF_CHANNEL, "er"), PF_NO_VALUE);
  CHECK_INT(pf_plate_find(plate, PF_WELL, "b2"), 1);
  CHECK_INT(pf_plate_find(plate, PF_WELL, "b3"), PF_NO_VALUE);
  CHECK_INT(pf_plate_find(plate, PF_SITE, "010"), 1);
  CHECK_INT(pf_plate_find(plate, PF_Z, "1"), PF_NO_VALUE);
  CHECK_INT(pf_plate_find(plate, PF_PLATE, "p"), 0);
  CHECK_STR(pf_plate_evidence(plate), "3 of 3 TIFF names fit");
  path = pf_plate_relative_path(plate, &pf_plate_slices(plate)[2]);
  CHECK_STR(path, "p_B02_s10_w1.tif");
  free(path);
  path = pf_plate_path(plate, &pf_plate_slices(plate)[2]);
  CHECK(path && pf_os_is_file(path));
  free(path);
  CHECK_INT(pf_plate_n_slices_in_file(plate, 0), 1);
  CHECK_INT(pf_plate_format(plate, pf_plate_slices(plate)->format)->width, 4);
  pf_plate_unref(&plate);
  options.channel_names = twice;
  CHECK_INT(pf_plate_open(&plate, root, &options, &err), PF_EINVAL);
  CHECK(err.message && strstr(err.message, "are called \"DNA\""));
  pf_plate_unref(&plate);
  pf_error_clear(&err);
  free(root);
}

static void test_incomplete(void) {
  static const char *const entries[MAX_ENTRIES] = {
      "i:A01_s1_w1_z1.tif", "i:A01_s1_w1_z2.tif", "i:A01_s1_w1_z3.tif",
      "i:A01_s1_w2.tif",    "i:A02_s1_w1_z1.tif", "i:A02_s1_w1_z2.tif",
      "i:A03_s1_w1_z3.tif", "i:A03_s1_w2.tif"};
  struct pf_plate *plate = NULL;
  struct pf_error err = PF_ERROR_INIT;
  struct pf_inspect report;
  struct pf_buf text = {0};
  char *root = make_tree(entries);
  CHECK_INT(pf_plate_open(&plate, root, NULL, &err), PF_OK);
  if (!plate)
    return;
  CHECK_INT(pf_plate_inspect(plate, &report), PF_OK);
  CHECK_INT(report.n_fields, 3);
  CHECK_INT(report.n_incomplete, 2);
  CHECK_INT(report.n_missing, 4);
  CHECK_INT(report.n_files, 8);
  pf_inspect_finish(&report);
  CHECK_INT(pf_inspect_text(plate, false, &text), PF_OK);
  CHECK(strstr(text.data, "well A02 site 1: channel 1 z 3; channel 2\n"));
  CHECK(strstr(text.data, "well A03 site 1: channel 1 z 1, 2\n"));
  pf_buf_free(&text);
  pf_plate_unref(&plate);
  pf_error_clear(&err);
  free(root);
}

static void test_roots(void) {
  static const char *const bad[] = {"/nonexistent/plate", "/dev/null", ""};
  for (size_t i = 0; i < 3; i++) {
    struct pf_plate *plate = NULL;
    struct pf_error err = PF_ERROR_INIT;
    CHECK_INT(pf_plate_open(&plate, bad[i], NULL, &err), PF_EINVAL);
    CHECK(plate == NULL && err.message && strstr(err.message, "the plate "));
    pf_error_clear(&err);
  }
}

int main(void) {
  if (!mkdtemp(base))
    return 1;
  for (size_t i = 0; i < sizeof(trees) / sizeof(trees[0]); i++)
    check_tree(&trees[i]);
  test_output_names();
  test_find();
  test_incomplete();
  test_roots();
  (void)nftw(base, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
  return check_done();
}
