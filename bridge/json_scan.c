/*
 * A strict JSON tokenizer (RFC 8259) that only looks: it refuses what is not
 * JSON in a person's words and notes where each value stands. It runs before
 * cJSON, which so never sees a text that it would read differently.
 */
#include "bridge/json_map.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

/* cJSON copies a number into a buffer of 64 bytes. */
enum { MAX_NUMBER = 63, MAX_WORD = 40 };

struct scan {
  const unsigned char *text; /* NUL-terminated; may hold NULs before */
  size_t n;
  size_t at; /* next byte */
  int line;  /* of `at`, 1-based */
  size_t line_start;
  int depth;
  struct pf_json_map *map;
  const char *file;
  struct pf_error *err;
};

/* The key that comes before a member's value. */
struct place {
  int line, column;
};

static int scan_value(struct scan *s, uint32_t parent, uint32_t index,
                      struct place key);

static int column_of(const struct scan *s, size_t at) {
  return (int)(at - s->line_start) + 1;
}

/* `at` is on the current line. */
static int fail(struct scan *s, size_t at, const char *fmt, ...)
    PF_PRINTF(3, 4);
static int fail(struct scan *s, size_t at, const char *fmt, ...) {
  struct pf_buf buf = {0};
  va_list args;
  va_start(args, fmt);
  pf_buf_vprintf(&buf, fmt, args);
  va_end(args);
  pf_error_set(s->err, PF_EINVAL, "%s", pf_buf_text(&buf));
  pf_error_at_file(s->err, s->file, s->line, column_of(s, at));
  pf_buf_free(&buf);
  return PF_EINVAL;
}

static bool at_end(const struct scan *s) {
  return s->at >= s->n;
}

/* The byte at `at`; 0 at the end, because a NUL stands there. */
static unsigned char peek(const struct scan *s) {
  return s->text[s->at];
}

static bool is_digit(unsigned char c) {
  return c >= '0' && c <= '9';
}

static bool is_word(unsigned char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         c == '_';
}

static void skip_space(struct scan *s) {
  for (;; s->at++) {
    unsigned char c = peek(s);
    if (c == '\n') {
      s->line++;
      s->line_start = s->at + 1;
    } else if (c != ' ' && c != '\t' && c != '\r') {
      return;
    }
  }
}

/* What is wrong at this place, where `expected` was. */
static int unexpected(struct scan *s, const char *expected) {
  unsigned char c = peek(s);
  size_t n;
  if (at_end(s))
    return fail(s, s->at, "the text ends where %s is expected", expected);
  if (c == '/' || c == '#')
    return fail(s, s->at, "expected %s; JSON has no comments", expected);
  if (c == '\'')
    return fail(s, s->at, "expected %s; JSON has double quotes only",
                expected);
  n = pf_utf8_length(s->text + s->at);
  if (n == 0)
    return fail(s, s->at, "expected %s, found the byte 0x%02x: not UTF-8",
                expected, c);
  if (c < 0x20 || c == 0x7f)
    return fail(s, s->at, "expected %s, found the byte 0x%02x", expected, c);
  return fail(s, s->at, "expected %s, found %.*s", expected, (int)n,
              (const char *)s->text + s->at);
}

/* --------------------------------------------------------------- strings */

/* Four hexadecimal digits at `at`, or -1. */
static long hex4(const unsigned char *at) {
  long value = 0;
  for (int i = 0; i < 4; i++) {
    unsigned char c = at[i];
    if (is_digit(c))
      value = value * 16 + (c - '0');
    else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f')
      value = value * 16 + ((c | 0x20) - 'a' + 10);
    else
      return -1;
  }
  return value;
}

/* `\uXXXX` at `at`, with the second half where it is a surrogate. */
static int scan_unicode(struct scan *s) {
  const unsigned char *text = s->text + s->at;
  long first = hex4(text + 2), second;
  if (first < 0)
    return fail(s, s->at, "\\u is followed by four hexadecimal digits");
  if (first == 0)
    return fail(s, s->at, "\\u0000 is not allowed: texts end there");
  s->at += 6;
  if (first < 0xd800 || first > 0xdfff)
    return PF_OK;
  second = text[6] == '\\' && text[7] == 'u' ? hex4(text + 8) : -1;
  if (first > 0xdbff || second < 0xdc00 || second > 0xdfff) {
    s->at -= 6;
    return fail(s, s->at, "\\u%04lx is half of a surrogate pair", first);
  }
  s->at += 6;
  return PF_OK;
}

static int scan_escape(struct scan *s) {
  unsigned char c = s->text[s->at + 1];
  if (c == 'u')
    return scan_unicode(s);
  if (c && strchr("\"\\/bfnrt", c)) {
    s->at += 2;
    return PF_OK;
  }
  if (s->at + 1 >= s->n)
    return fail(s, s->at, "the text ends inside a string");
  return fail(s, s->at,
              "unknown escape in a string; a backslash is written \\\\");
}

static int scan_string(struct scan *s) {
  size_t start = s->at++;
  for (;;) {
    unsigned char c = peek(s);
    size_t n;
    if (at_end(s) || c == '\n' || c == '\r')
      return fail(s, start, "the string is not closed on its line");
    if (c < 0x20)
      return fail(s, s->at,
                  "control character in a string; it is written \\u%04x", c);
    if (c == '"') {
      s->at++;
      return PF_OK;
    }
    if (c == '\\') {
      if (scan_escape(s) != PF_OK)
        return PF_EINVAL;
      continue;
    }
    n = pf_utf8_length(s->text + s->at);
    if (n == 0)
      return fail(s, s->at, "the byte 0x%02x is not valid UTF-8", c);
    s->at += n;
  }
}

/* --------------------------------------------------------------- numbers */

static void skip_digits(struct scan *s) {
  while (is_digit(peek(s)))
    s->at++;
}

/* The integer part, after the sign. */
static int scan_whole(struct scan *s, size_t start) {
  if (!is_digit(peek(s)))
    return unexpected(s, "a digit");
  if (peek(s) == '0' && is_digit(s->text[s->at + 1]))
    return fail(s, start, "a number does not start with 0");
  skip_digits(s);
  return PF_OK;
}

/* Fraction and exponent; *is_int is false where there is one. */
static int scan_rest(struct scan *s, bool *is_int) {
  if (peek(s) == '.') {
    *is_int = false;
    s->at++;
    if (!is_digit(peek(s)))
      return unexpected(s, "a digit after the decimal point");
    skip_digits(s);
  }
  if ((peek(s) | 0x20) == 'e') {
    *is_int = false;
    s->at++;
    if (peek(s) == '+' || peek(s) == '-')
      s->at++;
    if (!is_digit(peek(s)))
      return unexpected(s, "a digit in the exponent");
    skip_digits(s);
  }
  return PF_OK;
}

/* The digits from `start` to `at` as a 64-bit integer; false: too large. */
static bool exact_integer(const struct scan *s, size_t start, int64_t *out) {
  bool minus = s->text[start] == '-';
  uint64_t limit = (uint64_t)INT64_MAX + (minus ? 1 : 0), value = 0;
  for (size_t i = start + (minus ? 1 : 0); i < s->at; i++) {
    unsigned digit = s->text[i] - (unsigned)'0';
    if (value > (limit - digit) / 10)
      return false;
    value = value * 10 + digit;
  }
  /* Negated in unsigned arithmetic, where INT64_MIN is no overflow. */
  *out = (int64_t)(minus ? 0 - value : value);
  return true;
}

static int scan_number(struct scan *s, struct pf_json_spot *spot) {
  size_t start = s->at;
  spot->is_int = true;
  if (peek(s) == '-')
    s->at++;
  if (scan_whole(s, start) != PF_OK || scan_rest(s, &spot->is_int) != PF_OK)
    return PF_EINVAL;
  if (is_word(peek(s)) || peek(s) == '.')
    return unexpected(s, "the end of the number");
  if (s->at - start > MAX_NUMBER)
    return fail(s, start, "the number is longer than %d characters",
                MAX_NUMBER);
  if (spot->is_int && !exact_integer(s, start, &spot->integer))
    return fail(s, start,
                "the integer does not fit in 64 bits; with .0 behind it, it "
                "is a floating-point number");
  return PF_OK;
}

/* ----------------------------------------------------------------- words */

static int scan_word(struct scan *s) {
  static const char *const words[] = {"true", "false", "null"};
  const char *text = (const char *)s->text + s->at;
  size_t start = s->at, n = 0;
  while (is_word((unsigned char)text[n]))
    n++;
  for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
    if (n == strlen(words[i]) && memcmp(text, words[i], n) == 0) {
      s->at += n;
      return PF_OK;
    }
  return fail(s, start,
              "%.*s is no JSON value; texts stand in double quotes, and the "
              "words are true, false and null",
              (int)(n < MAX_WORD ? n : MAX_WORD), text);
}

/* ------------------------------------------------------------ containers */

static int enter(struct scan *s) {
  if (++s->depth > PF_JSON_MAX_DEPTH)
    return fail(s, s->at, "nested deeper than %d levels", PF_JSON_MAX_DEPTH);
  s->at++;
  skip_space(s);
  return PF_OK;
}

static bool leave(struct scan *s, char close) {
  if (peek(s) != (unsigned char)close)
    return false;
  s->at++;
  s->depth--;
  return true;
}

/* After a member or an element: the comma (*more), or the end. */
static int scan_comma(struct scan *s, const struct place *open, char close,
                      bool *more) {
  char expected[] = "a comma or }";
  expected[sizeof(expected) - 2] = close;
  skip_space(s);
  *more = false;
  if (leave(s, close))
    return PF_OK;
  if (at_end(s))
    return fail(s, s->at,
                "the text ends where %s is expected: the %s of line %d, "
                "column %d is not closed",
                expected, close == '}' ? "{" : "[", open->line, open->column);
  if (peek(s) != ',')
    return unexpected(s, expected);
  s->at++;
  skip_space(s);
  *more = true;
  if (peek(s) == (unsigned char)close)
    return fail(s, s->at, "remove the comma before %c", close);
  return PF_OK;
}

static int scan_member(struct scan *s, uint32_t parent, uint32_t index) {
  struct place key = {s->line, column_of(s, s->at)};
  if (peek(s) != '"')
    return unexpected(s, "a key in double quotes");
  if (scan_string(s) != PF_OK)
    return PF_EINVAL;
  skip_space(s);
  if (peek(s) != ':')
    return unexpected(s, "a colon after the key");
  s->at++;
  skip_space(s);
  return scan_value(s, parent, index, key);
}

static int scan_container(struct scan *s, uint32_t self, bool is_object) {
  struct place open = {s->line, column_of(s, s->at)};
  char close = is_object ? '}' : ']';
  bool more = true;
  if (enter(s) != PF_OK)
    return PF_EINVAL;
  if (leave(s, close))
    return PF_OK;
  for (uint32_t i = 0; more; i++) {
    int rc = is_object ? scan_member(s, self, i)
                       : scan_value(s, self, i, (struct place){0, 0});
    if (rc == PF_OK)
      rc = scan_comma(s, &open, close, &more);
    if (rc != PF_OK)
      return rc;
  }
  return PF_OK;
}

/* No space before `at`. Recursion ends at PF_JSON_MAX_DEPTH. */
static int scan_value(struct scan *s, uint32_t parent, uint32_t index,
                      struct place key) {
  unsigned char c = peek(s);
  uint32_t self = s->map->n;
  struct pf_json_spot *spot = pf_json_map_add(s->map);
  if (!spot)
    return pf_error_set(s->err, PF_ENOMEM, "out of memory");
  spot->line = s->line;
  spot->column = column_of(s, s->at);
  spot->key_line = key.line;
  spot->key_column = key.column;
  spot->parent = parent;
  spot->index = index;
  if (c == '{' || c == '[')
    return scan_container(s, self, c == '{');
  if (c == '"')
    return scan_string(s);
  if (c == '-' || is_digit(c))
    return scan_number(s, spot);
  return is_word(c) ? scan_word(s) : unexpected(s, "a value");
}

int pf_json_scan(struct pf_json_map *map, const char *text, size_t n,
                 const char *file, struct pf_error *err) {
  struct scan s = {.text = (const unsigned char *)text,
                   .n = n,
                   .line = 1,
                   .map = map,
                   .file = file,
                   .err = err};
  int rc;
  if (n > INT_MAX - 1)
    return fail(&s, 0, "the text is longer than %d bytes", INT_MAX - 1);
  if (strncmp(text, "\xef\xbb\xbf", 3) == 0)
    return fail(&s, 0,
                "the text starts with a byte-order mark; save it as UTF-8 "
                "without one");
  skip_space(&s);
  if (at_end(&s))
    return fail(&s, s.at, "the text is empty");
  rc = scan_value(&s, PF_JSON_NO_SPOT, 0, (struct place){0, 0});
  if (rc != PF_OK)
    return rc;
  skip_space(&s);
  if (!at_end(&s))
    return unexpected(&s, "the end of the text");
  return PF_OK;
}
