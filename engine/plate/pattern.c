/*
 * The user's own pattern: a template such as "{well}_s{site}.tif" or a regular
 * expression with named groups; see pf_pattern_expression().
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "bridge/buf.h"
#include "bridge/json.h"
#include "engine/plate/layout.h"

/* What each field of a template matches. */
static const struct {
  const char *name, *regex;
} fields[] = {
    {"plate", "[^/]+"},
    {"well", "[A-Za-z]{1,2}[ -]{0,3}[0-9]{1,3}"},
    {"row", "(?:[A-Za-z]{1,2}|[0-9]+)"},
    {"col", "[0-9]+"},
    {"site", "[0-9]+"},
    {"timepoint", "[0-9]+"},
    {"channel", "[^/]+?"},
    {"z", "[0-9]+"},
    {"any", "[^/]*?"},
};
enum { N_FIELDS = sizeof(fields) / sizeof(fields[0]), FIELD_ANY = 8 };

static int wrong_at(struct pf_error *err, const char *pattern, const char *at,
                    const char *what) {
  char *name = pf_name_for_people(pattern);
  (void)pf_error_set(err, PF_EINVAL,
                     "the pattern \"%s\" is wrong at offset %zu: %s",
                     name ? name : "", (size_t)(at - pattern), what);
  free(name);
  return PF_EINVAL;
}

static int unknown_field(struct pf_error *err, const char *pattern,
                         const char *at, const char *name) {
  const char *known[N_FIELDS], *near;
  struct pf_buf what = {0};
  for (size_t i = 0; i < N_FIELDS; i++)
    known[i] = fields[i].name;
  near = pf_nearest_word(name, known, N_FIELDS);
  pf_buf_str(&what, "there is no {");
  pf_buf_name(&what, name);
  pf_buf_char(&what, '}');
  if (near)
    pf_buf_printf(&what, "; did you mean {%s}?", near);
  (void)wrong_at(err, pattern, at, pf_buf_text(&what));
  pf_buf_free(&what);
  return PF_EINVAL;
}

/* `*at` is behind a "{"; appends the field's group and moves behind "}". */
static int add_field(struct pf_buf *out, const char *pattern, const char **at,
                     unsigned *seen, struct pf_error *err) {
  const char *end = strchr(*at, '}');
  char name[32];
  size_t n, i = 0;
  if (!end)
    return wrong_at(err, pattern, *at - 1, "the { has no }");
  n = (size_t)(end - *at);
  if (n < sizeof(name)) {
    memcpy(name, *at, n);
    name[n] = '\0';
    while (i < N_FIELDS && strcmp(name, fields[i].name) != 0)
      i++;
  } else {
    return wrong_at(err, pattern, *at, "no field has so long a name");
  }
  if (i == N_FIELDS)
    return unknown_field(err, pattern, *at, name);
  if (i == FIELD_ANY)
    pf_buf_str(out, fields[i].regex);
  else if (*seen & 1u << i) /* a second {well} must say the same */
    pf_buf_printf(out, "\\k<%s>", fields[i].name);
  else
    pf_buf_printf(out, "(?<%s>%s)", fields[i].name, fields[i].regex);
  *seen |= 1u << i;
  *at = end + 1;
  return PF_OK;
}

static void add_literal(struct pf_buf *out, char c) {
  bool plain = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
               (c >= 'a' && c <= 'z') || c == '/' || (unsigned char)c >= 0x80;
  if (!plain)
    pf_buf_char(out, '\\');
  pf_buf_char(out, c);
}

/* Bytes of `pattern` before its ".tif" or ".tiff". */
static size_t stem_length(const char *pattern) {
  size_t n = strlen(pattern);
  if (n >= 4 && strcasecmp(pattern + n - 4, ".tif") == 0)
    return n - 4;
  if (n >= 5 && strcasecmp(pattern + n - 5, ".tiff") == 0)
    return n - 5;
  return n;
}

static int from_template(struct pf_buf *out, const char *pattern, bool of_path,
                         struct pf_error *err) {
  const char *at = pattern, *end = pattern + stem_length(pattern);
  unsigned seen = 0;
  int result = PF_OK;
  pf_buf_str(out, of_path ? "(?:^|/)" : "^");
  while (at < end && result == PF_OK) {
    if (*at == '}')
      return wrong_at(err, pattern, at, "the } has no {");
    if (*at == '{') {
      at++;
      result = add_field(out, pattern, &at, &seen, err);
    } else {
      add_literal(out, *at++);
    }
  }
  pf_buf_str(out, "\\.(?i:tiff?)$");
  if (result == PF_OK && !(seen & ~(1u << FIELD_ANY)))
    return wrong_at(err, pattern, pattern,
                    "it names no component, such as {well} or {site}");
  return result;
}

int pf_pattern_expression(char **out, bool *of_path, const char *pattern,
                          struct pf_error *err) {
  struct pf_buf buf = {0};
  int result = PF_OK;
  *out = NULL;
  *of_path = strchr(pattern, '/') != NULL;
  if (!*pattern)
    return pf_error_set(err, PF_EINVAL, "the pattern is empty");
  if (strstr(pattern, "(?<") || strstr(pattern, "(?P<"))
    pf_buf_str(&buf, pattern);
  else
    result = from_template(&buf, pattern, *of_path, err);
  if (result != PF_OK) {
    pf_buf_free(&buf);
    return result;
  }
  *out = pf_buf_take(&buf);
  return *out ? PF_OK : pf_error_set(err, PF_ENOMEM, "out of memory");
}
