/*
 * Image descriptions: what programs write about a whole series into its first
 * page, and what of it stays true for one plane.
 */
#include "engine/plate/tiff_private.h"

#include <stdlib.h>
#include <string.h>

#include "bridge/buf.h"

/* More planes than this in one direction are no count. */
enum { MAX_COUNT = 1 << 20 };

static bool starts_with(const char *text, const char *start) {
  return strncmp(text, start, strlen(start)) == 0;
}

/* Lines "key=value" as ImageJ writes them, and SCIFIO after it. */
static bool is_imagej(const char *text) {
  return starts_with(text, "ImageJ=") || starts_with(text, "SCIFIO=");
}

/* Whether the line at `line` is "KEY=..."; its value begins behind that. */
static bool has_key(const char *line, const char *key) {
  return starts_with(line, key) && line[strlen(key)] == '=';
}

static const char *next_line(const char *line) {
  line += strcspn(line, "\n");
  return *line ? line + 1 : line;
}

/* Digits, nothing else up to the end of the line, at most MAX_COUNT. */
static uint32_t parse_count(const char *text) {
  uint32_t n = 0;
  do {
    if (*text < '0' || *text > '9')
      return 0;
    n = 10 * n + (uint32_t)(*text++ - '0');
  } while (n <= MAX_COUNT && *text && *text != '\n' && *text != '\r');
  return n <= MAX_COUNT ? n : 0;
}

uint32_t pf_tiff_imagej_number(const char *description, const char *key) {
  if (!is_imagej(description))
    return 0;
  for (const char *line = description; *line; line = next_line(line))
    if (has_key(line, key))
      return parse_count(line + strlen(key) + 1);
  return 0;
}

/* Keys that speak of more planes than one. */
static const char *const series_keys[] = {
    "images", "channels", "slices",  "frames", "hyperstack", "mode",
    "loop",   "axes",     "lengths", "scales", "units"};

static bool is_series_line(const char *line) {
  for (size_t i = 0; i < sizeof(series_keys) / sizeof(series_keys[0]); i++)
    if (has_key(line, series_keys[i]))
      return true;
  return false;
}

static bool speaks_of_series(const char *description) {
  static const char *const counts[] = {"images", "channels", "slices",
                                       "frames"};
  for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
    for (const char *line = description; *line; line = next_line(line))
      if (has_key(line, counts[i]) &&
          parse_count(line + strlen(counts[i]) + 1) != 1)
        return true;
  return false;
}

/* Behind a declaration, a comment or white space, or where it stood. */
static const char *skip_prolog(const char *xml) {
  static const char *const pairs[][2] = {
      {"\xef\xbb\xbf", ""}, {"<?", "?>"}, {"<!--", "-->"}};
  xml += strspn(xml, " \t\r\n");
  for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
    const char *end;
    if (!starts_with(xml, pairs[i][0]))
      continue;
    end = strstr(xml + strlen(pairs[i][0]), pairs[i][1]);
    return end ? end + strlen(pairs[i][1]) : xml + strlen(xml);
  }
  return xml;
}

/* OME-XML, by the local name of the root element. */
static bool is_ome_xml(const char *text) {
  const char *at = text, *before;
  size_t n;
  do {
    before = at;
    at = skip_prolog(at);
  } while (at != before);
  if (*at++ != '<')
    return false;
  n = strcspn(at, " \t\r\n/>");
  for (size_t i = 0; i < n; i++)
    if (at[i] == ':') {
      at += i + 1;
      n -= i + 1;
      i = 0;
    }
  return n == 3 && starts_with(at, "OME");
}

/* The shape of the whole series, as tifffile writes it. */
static bool is_shape(const char *text) {
  return starts_with(text, "shape=") ||
         (*text == '{' && strstr(text, "\"shape\":"));
}

int pf_tiff_describe_plane(char **out, const char *description) {
  struct pf_buf text = {0};
  *out = NULL;
  if (!description || !*description || is_shape(description) ||
      is_ome_xml(description))
    return 0;
  if (!is_imagej(description) || !speaks_of_series(description)) {
    *out = strdup(description);
    return *out ? 0 : -1;
  }
  for (const char *line = description; *line; line = next_line(line))
    if (!is_series_line(line))
      pf_buf_add(&text, line, (size_t)(next_line(line) - line));
  if (!pf_buf_ok(&text)) {
    pf_buf_free(&text);
    return -1;
  }
  *out = pf_buf_take(&text);
  return 0;
}
