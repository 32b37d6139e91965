/* bridge/json*.c: what is refused and where, places, paths, settings. */
#include "bridge/json.h"
#include "tests/unit/check.h"

#include <math.h>
#include <stdlib.h>

/* Refused texts; `n` is 0 where the text ends at its NUL. */
static const struct {
  const char *text;
  size_t n;
  int line, column;
  const char *message;
} bad[] = {
    {"", 0, 1, 1, "the text is empty"},
    {" \n\t\r\n ", 0, 3, 2, "the text is empty"},
    {"\xef\xbb\xbf{}", 0, 1, 1, "byte-order mark"},
    {"{", 0, 1, 2, "the text ends where a key in double quotes"},
    {"{\"a\":\n [1,\n  2", 0, 3, 4, "the [ of line 2, column 2"},
    {"{\"a\" 1}", 0, 1, 6, "expected a colon after the key, found 1"},
    {"{\"a\":1 \"b\":2}", 0, 1, 8, "expected a comma or }, found \""},
    {"{\n  \"a\": 1\n  \"b\": 2\n}", 0, 3, 3, "expected a comma or }"},
    {"[1 2]", 0, 1, 4, "expected a comma or ], found 2"},
    {"[1}", 0, 1, 3, "expected a comma or ], found }"},
    {"[1,]", 0, 1, 4, "remove the comma before ]"},
    {"{\"a\":1,\n}", 0, 2, 1, "remove the comma before }"},
    {"[,1]", 0, 1, 2, "expected a value, found ,"},
    {"[1,,2]", 0, 1, 4, "expected a value, found ,"},
    {"{a:1}", 0, 1, 2, "expected a key in double quotes, found a"},
    {"{'a':1}", 0, 1, 2, "double quotes only"},
    {"['a']", 0, 1, 2, "double quotes only"},
    {"{1:1}", 0, 1, 2, "expected a key in double quotes, found 1"},
    {"{\"a\":}", 0, 1, 6, "expected a value, found }"},
    {"// no\n{}", 0, 1, 1, "no comments"},
    {"{} /* no */", 0, 1, 4, "no comments"},
    {"[1, # no\n2]", 0, 1, 5, "no comments"},
    {"{} {}", 0, 1, 4, "expected the end of the text, found {"},
    {"[]]", 0, 1, 3, "expected the end of the text, found ]"},
    {"1 2", 0, 1, 3, "expected the end of the text, found 2"},
    {"{\"a\":1,\n \"b\":2,\n \"a\":3}", 0, 3, 2,
     "the key \"a\" is here a second time; it is on line 1, column 2"},
    {"{\"a\":1,\"\\u0061\":3}", 0, 1, 8, "the key \"a\" is here a second"},
    {"[{\"x\":{\"k\":1,\"k\":1}}]", 0, 1, 14, "a second time"},
    {"[01]", 0, 1, 2, "does not start with 0"},
    {"[-012]", 0, 1, 2, "does not start with 0"},
    {"[+1]", 0, 1, 2, "expected a value, found +"},
    {"[.5]", 0, 1, 2, "expected a value, found ."},
    {"[1.]", 0, 1, 4, "expected a digit after the decimal point"},
    {"[1e]", 0, 1, 4, "expected a digit in the exponent"},
    {"[1e+]", 0, 1, 5, "expected a digit in the exponent"},
    {"[-]", 0, 1, 3, "expected a digit, found ]"},
    {"[0x10]", 0, 1, 3, "expected the end of the number, found x"},
    {"[1.2.3]", 0, 1, 5, "expected the end of the number"},
    {"[12px]", 0, 1, 4, "expected the end of the number, found p"},
    {"[9223372036854775808]", 0, 1, 2, "does not fit in 64 bits"},
    {"[-9223372036854775809]", 0, 1, 2, "does not fit in 64 bits"},
    {"[99999999999999999999999]", 0, 1, 2, "does not fit in 64 bits"},
    {"[1e309]", 0, 1, 2, "beyond what 64-bit floating point can hold"},
    {"[-1e999]", 0, 1, 2, "beyond what 64-bit floating point"},
    {"[0.0000000000000000000000000000000000000000000000000000000000000001]", 0,
     1, 2, "longer than 63 characters"},
    {"[NaN]", 0, 1, 2, "NaN is no JSON value"},
    {"[-Infinity]", 0, 1, 3, "expected a digit, found I"},
    {"[True]", 0, 1, 2, "True is no JSON value"},
    {"[nul]", 0, 1, 2, "nul is no JSON value"},
    {"[trueish]", 0, 1, 2, "trueish is no JSON value"},
    {"[abc", 0, 1, 2, "abc is no JSON value"},
    {"[\"ab", 0, 1, 2, "the string is not closed on its line"},
    {"[\"ab\n\"]", 0, 1, 2, "the string is not closed on its line"},
    {"[\"a\tb\"]", 0, 1, 4, "it is written \\u0009"},
    {"[\"a\0b\"]", 7, 1, 4, "it is written \\u0000"},
    {"[1]\0", 4, 1, 4, "found the byte 0x00"},
    {"[\"a\\x\"]", 0, 1, 4, "unknown escape"},
    {"[\"a\\", 0, 1, 4, "the text ends inside a string"},
    {"[\"\\u12g4\"]", 0, 1, 3, "four hexadecimal digits"},
    {"[\"\\u12", 0, 1, 3, "four hexadecimal digits"},
    {"[\"ab\\u0000\"]", 0, 1, 5, "\\u0000 is not allowed"},
    {"[\"\\ud800\"]", 0, 1, 3, "\\ud800 is half of a surrogate pair"},
    {"[\"\\ud800\\u0041\"]", 0, 1, 3, "half of a surrogate pair"},
    {"[\"\\udc00\\ud800\"]", 0, 1, 3, "half of a surrogate pair"},
    {"[\"a\xff\"]", 0, 1, 4, "the byte 0xff is not valid UTF-8"},
    {"[\"\xc0\xaf\"]", 0, 1, 3, "not valid UTF-8"},
    {"[\"\xed\xa0\x80\"]", 0, 1, 3, "not valid UTF-8"},
    {"[\"\xf4\x90\x80\x80\"]", 0, 1, 3, "not valid UTF-8"},
    {"[\"\xe2\x82\"]", 0, 1, 3, "not valid UTF-8"},
    {"[\xff]", 0, 1, 2, "not UTF-8"},
    {"[\xc3\xa9]", 0, 1, 2, "expected a value, found \xc3\xa9"},
    {"[\x01]", 0, 1, 2, "found the byte 0x01"},
};

static void test_bad(void) {
  for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
    struct pf_json_doc *doc = NULL;
    struct pf_error err = PF_ERROR_INIT;
    size_t n = bad[i].n ? bad[i].n : strlen(bad[i].text);
    CHECK_INT(pf_json_parse(&doc, bad[i].text, n, "p.json", &err), PF_EINVAL);
    CHECK(!doc);
    CHECK_INT(err.line, bad[i].line);
    CHECK_INT(err.column, bad[i].column);
    CHECK_STR(err.file, "p.json");
    if (!err.message || !strstr(err.message, bad[i].message))
      CHECK_STR(err.message, bad[i].message);
    pf_error_clear(&err);
    pf_json_free(&doc);
  }
}

/* Accepted texts, and what pf_json_write() makes of them. */
static const struct {
  const char *text, *written;
} good[] = {
    {"null", "null"},
    {" true\n", "true"},
    {"[false , {} , [ ]]", "[false,{},[]]"},
    {"[3,3.0,3e0,-0,-0.0,0]", "[3,3.0,3.0,0,-0.0,0]"},
    {"[9007199254740993]", "[9007199254740993]"},
    {"[9223372036854775807,-9223372036854775808]",
     "[9223372036854775807,-9223372036854775808]"},
    {"[0.1,1e300,1E-7,123456789.123456789]",
     "[0.1,1e+300,1e-07,123456789.12345679]"},
    {"[9223372036854775808.0]", "[9.223372036854776e+18]"},
    {"{\"b\":1,\"a\":{\"b\":2},\"B\":3}", "{\"b\":1,\"a\":{\"b\":2},\"B\":3}"},
    {"[\"\\u00e9\\ud83d\\ude00\\/\\n\"]",
     "[\"\xc3\xa9\xf0\x9f\x98\x80/\\n\"]"},
    {"\"\xef\xbf\xbf\x7f\"", "\"\xef\xbf\xbf\\u007f\""},
    {"{\"\":0}", "{\"\":0}"},
};

static void test_good(void) {
  for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
    struct pf_json_doc *doc = NULL;
    struct pf_error err = PF_ERROR_INIT;
    struct pf_buf buf = {0};
    const char *text = good[i].text;
    CHECK_INT(pf_json_parse(&doc, text, strlen(text), "p.json", &err), PF_OK);
    if (doc)
      pf_json_write(doc, pf_json_root(doc), &buf);
    CHECK_STR(pf_buf_text(&buf), good[i].written);
    pf_buf_free(&buf);
    pf_error_clear(&err);
    pf_json_free(&doc);
  }
}

static void test_depth(void) {
  for (size_t depth = 63; depth <= 66; depth++) {
    char text[140];
    struct pf_json_doc *doc = NULL;
    struct pf_error err = PF_ERROR_INIT;
    memset(text, '[', depth);
    memset(text + depth, ']', depth);
    CHECK_INT(pf_json_parse(&doc, text, 2 * depth, "p.json", &err),
              depth <= 64 ? PF_OK : PF_EINVAL);
    CHECK_INT(err.column, depth <= 64 ? 0 : 65);
    pf_error_clear(&err);
    pf_json_free(&doc);
  }
}

static struct pf_json_doc *parse(const char *text) {
  struct pf_json_doc *doc = NULL;
  CHECK_INT(pf_json_parse(&doc, text, strlen(text), "p.json", NULL), PF_OK);
  return doc;
}

static void check_place(const struct pf_json_doc *doc, const pf_json *value,
                        bool of_key, int line, int column) {
  int l = -1, c = -1;
  pf_json_place(doc, value, of_key, &l, &c);
  CHECK_INT(l, line);
  CHECK_INT(c, column);
}

static void check_path(const struct pf_json_doc *doc, const pf_json *value,
                       const char *path) {
  struct pf_buf buf = {0};
  pf_json_path(doc, value, &buf);
  CHECK_STR(pf_buf_text(&buf), path);
  pf_buf_free(&buf);
}

static void test_places(void) {
  struct pf_json_doc *doc = parse("{\n"
                                  "  \"steps\": [ {},\n"
                                  "\t{ \"parameters\" :\n"
                                  "     { \"sigma\": 2, \"odd key\": [7.5] "
                                  "} } ] }");
  const pf_json *root = pf_json_root(doc);
  const pf_json *steps = pf_json_get(root, "steps");
  const pf_json *step = pf_json_next(pf_json_first(steps));
  const pf_json *params = pf_json_get(step, "parameters");
  const pf_json *sigma = pf_json_get(params, "sigma");
  const pf_json *odd = pf_json_first(pf_json_get(params, "odd key"));
  check_place(doc, root, false, 1, 1);
  check_place(doc, root, true, 1, 1);
  check_place(doc, steps, true, 2, 3);
  check_place(doc, steps, false, 2, 12);
  check_place(doc, step, false, 3, 2);
  check_place(doc, params, true, 3, 4);
  check_place(doc, sigma, true, 4, 8);
  check_place(doc, sigma, false, 4, 17);
  check_place(doc, odd, false, 4, 32);
  check_place(doc, NULL, false, 0, 0);
  check_path(doc, root, "");
  check_path(doc, sigma, "steps[1].parameters.sigma");
  check_path(doc, odd, "steps[1].parameters[\"odd key\"][0]");
  CHECK_INT(pf_json_type(doc, sigma), PF_JSON_INT);
  CHECK_INT(pf_json_int(doc, sigma), 2);
  CHECK(pf_json_real(sigma) == 2.0);
  CHECK_INT(pf_json_type(doc, odd), PF_JSON_REAL);
  CHECK(!pf_json_get(root, "Steps"));
  CHECK(!pf_json_get(steps, "x"));
  CHECK(!pf_json_get(NULL, "x"));
  CHECK_INT(pf_json_n(steps), 2);
  pf_json_free(&doc);
  CHECK(!doc);
  pf_json_free(&doc);
}

static void check_set(struct pf_json_doc *doc, const char *key,
                      const char *text, const char *written) {
  struct pf_buf buf = {0};
  CHECK_INT(pf_json_set(doc, pf_json_root(doc), key, text, "--set s.p", NULL),
            PF_OK);
  pf_json_write(doc, pf_json_get(pf_json_root(doc), key), &buf);
  CHECK_STR(pf_buf_text(&buf), written);
  pf_buf_free(&buf);
}

static void test_set(void) {
  struct pf_json_doc *doc = parse("{\"a\": {\"b\": [1, 2]}, \"c\": 3}");
  const pf_json *root = pf_json_root(doc), *value;
  struct pf_buf buf = {0};
  check_set(doc, "a", "4", "4");
  CHECK_INT(pf_json_type(doc, pf_json_get(root, "a")), PF_JSON_INT);
  check_place(doc, pf_json_get(root, "a"), true, 0, 0);
  check_set(doc, "a", "{\"x\": [5, 6.0]}", "{\"x\":[5,6.0]}");
  value =
      pf_json_next(pf_json_first(pf_json_get(pf_json_get(root, "a"), "x")));
  check_place(doc, value, false, 0, 0);
  check_path(doc, value, "--set s.p.x[1]");
  check_set(doc, "new", "otsu", "\"otsu\"");
  check_set(doc, "new", "1e999", "\"1e999\"");
  check_set(doc, "new", "", "\"\"");
  check_set(doc, "new", "say \"hi\"\n", "\"say \\\"hi\\\"\\n\"");
  check_place(doc, pf_json_get(root, "c"), false, 1, 27);
  pf_json_write(doc, root, &buf);
  CHECK_STR(pf_buf_text(&buf), "{\"a\":{\"x\":[5,6.0]},\"c\":3,"
                               "\"new\":\"say \\\"hi\\\"\\n\"}");
  CHECK_INT(pf_json_set(doc, root, "a", "\xff", "--set s.p", NULL), PF_EINVAL);
  CHECK_INT(pf_json_set(doc, pf_json_get(root, "c"), "a", "1", "o", NULL),
            PF_EINVAL);
  CHECK_INT(pf_json_set(doc, NULL, "a", "1", "o", NULL), PF_EINVAL);
  pf_buf_free(&buf);
  pf_json_free(&doc);
}

static void test_nearest(void) {
  static const char *const known[] = {"stack", "where", "z", "gaussian", NULL};
  static const struct {
    const char *word, *nearest;
  } rows[] = {
      {"stak", "stack"},
      {"satck", "stack"},
      {"STACK", "stack"},
      {"gausian", "gaussian"},
      {"guassien", "gaussian"},
      {"Z", "z"},
      {"q", NULL},
      {"", NULL},
      {"wher", "where"},
      {"here", "where"},
      {"ere", NULL},
      {"somethingelse", NULL},
  };
  char longest[200];
  size_t n = sizeof(known) / sizeof(known[0]);
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    const char *got = pf_nearest_word(rows[i].word, known, n);
    CHECK_STR(got ? got : "-", rows[i].nearest ? rows[i].nearest : "-");
  }
  memset(longest, 'a', sizeof(longest) - 1);
  longest[sizeof(longest) - 1] = '\0';
  CHECK(!pf_nearest_word(longest, known, n));
}

/* Addresses are found among many, and a wide object's keys are checked. */
static void test_many(void) {
  struct pf_buf text = {0};
  struct pf_json_doc *doc;
  int i = 0;
  pf_buf_char(&text, '{');
  for (; i < 20000; i++)
    pf_buf_printf(&text, "%s\n\"k%d\":%d", i ? "," : "", i, i);
  pf_buf_str(&text, "}");
  doc = parse(pf_buf_text(&text));
  i = 0;
  for (const pf_json *v = pf_json_first(pf_json_root(doc)); v;
       v = pf_json_next(v), i++) {
    int line = 0, column = 0;
    pf_json_place(doc, v, true, &line, &column);
    if (line != i + 2 || column != 1 || pf_json_int(doc, v) != i)
      CHECK_INT(line, i + 2);
  }
  CHECK_INT(i, 20000);
  pf_buf_free(&text);
  pf_json_free(&doc);
}

static void test_read(void) {
  struct pf_json_doc *doc = NULL;
  struct pf_error err = PF_ERROR_INIT;
  CHECK(pf_json_read(&doc, "/nonexistent/p.json", &err) != PF_OK);
  CHECK(err.message && strstr(err.message, "/nonexistent/p.json"));
  CHECK(!doc);
  pf_error_clear(&err);
}

int main(void) {
  test_bad();
  test_good();
  test_depth();
  test_places();
  test_set();
  test_nearest();
  test_many();
  test_read();
  return check_done();
}
