/* bridge/buf.c, bridge/strmap.c, bridge/error.c */
#include "bridge/buf.h"
#include "bridge/strmap.h"
#include "tests/unit/check.h"

#include <stdlib.h>

static const struct {
  const char *in, *json, *name;
} texts[] = {
    {"plain", "\"plain\"", "plain"},
    {"a\nb", "\"a\\nb\"", "a\\x0ab"},
    {"%s", "\"%s\"", "%s"},
    {"q\"\\", "\"q\\\"\\\\\"", "q\"\\\\"},
    {"\xc3\xa9", "\"\xc3\xa9\"", "\xc3\xa9"},
    {"\xff", "\"\xef\xbf\xbd\"", "\\xff"},
    {"\xc0\xaf", "\"\xef\xbf\xbd\xef\xbf\xbd\"", "\\xc0\\xaf"},
    {"\xed\xa0\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"",
     "\\xed\\xa0\\x80"},
    {"\x7f", "\"\\u007f\"", "\\x7f"},
};

static void test_texts(void) {
  for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
    struct pf_buf buf = {0};
    pf_buf_json(&buf, texts[i].in);
    CHECK_STR(pf_buf_text(&buf), texts[i].json);
    pf_buf_reset(&buf);
    pf_buf_name(&buf, texts[i].in);
    CHECK_STR(pf_buf_text(&buf), texts[i].name);
    pf_buf_free(&buf);
  }
}

static void test_strmap(void) {
  struct pf_strmap map = {0};
  char text[32];
  for (int round = 0; round < 2; round++)
    for (int i = 0; i < 5000; i++) {
      int n = snprintf(text, sizeof(text), "key %d", i);
      CHECK_INT(pf_strmap_add(&map, text, (size_t)n), i);
    }
  CHECK_STR(pf_strmap_get(&map, 4999), "key 4999");
  CHECK_INT(pf_strmap_find(&map, "key 7", 5), 7);
  CHECK_INT(pf_strmap_find(&map, "key", 3), PF_STRMAP_NONE);
  pf_strmap_free(&map);
  CHECK_INT(pf_strmap_find(&map, "key 7", 5), PF_STRMAP_NONE);
}

static void test_error(void) {
  struct pf_error err = PF_ERROR_INIT, other = PF_ERROR_INIT;
  char *text;
  CHECK_INT(pf_error_set(&err, PF_EREAD, "strip %d", 12), PF_EREAD);
  CHECK_INT(pf_error_set(&err, PF_EWRITE, "later"), PF_EWRITE);
  pf_error_prefix(&err, "cannot read %s", "a.tif");
  pf_error_at_file(&err, "p.json", 6, 5);
  pf_error_at_step(&err, "denoise");
  pf_error_at_group(&err, "well A01");
  text = pf_error_format(&err);
  CHECK_STR(text, "p.json:6:5: step \"denoise\" (well A01): "
                  "cannot read a.tif: strip 12");
  free(text);
  pf_error_move(&other, &err);
  CHECK_INT(err.code, PF_OK);
  CHECK_INT(other.code, PF_EREAD);
  CHECK_INT(pf_code_exit_status(PF_EMISSING), 3);
  CHECK_STR(pf_code_name(PF_EINVAL), "PF_EINVAL");
  pf_error_clear(&other);
}

int main(void) {
  test_texts();
  test_strmap();
  test_error();
  return check_done();
}
