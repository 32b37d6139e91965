/* Paths and texts of JSON values: see bridge/json.h. */
#include "bridge/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "bridge/json_map.h"

static bool is_plain_key(const char *key) {
  if (!*key || (*key >= '0' && *key <= '9'))
    return false;
  return strspn(key, "abcdefghijklmnopqrstuvwxyz"
                     "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == strlen(key);
}

/* The last part of a path: ".sigma", "[2]" or "[\"odd key\"]". */
static void add_part(const struct pf_json_spot *spot, struct pf_buf *out) {
  const char *key = spot->node->string;
  if (!key) {
    pf_buf_printf(out, "[%u]", (unsigned)spot->index);
  } else if (is_plain_key(key)) {
    pf_buf_printf(out, "%s%s", out->len ? "." : "", key);
  } else {
    pf_buf_char(out, '[');
    pf_buf_json(out, key);
    pf_buf_char(out, ']');
  }
}

void pf_json_path(const struct pf_json_doc *doc, const pf_json *value,
                  struct pf_buf *out) {
  /* The way up ends at the root or where a value was set. */
  uint32_t up[PF_JSON_MAX_DEPTH + 1];
  struct pf_buf path = {0};
  uint32_t at = pf_json_map_find(&doc->map, value);
  int n = 0;
  for (; at != PF_JSON_NO_SPOT; at = doc->map.spots[at].parent) {
    if (doc->map.spots[at].origin) {
      pf_buf_str(&path, doc->map.spots[at].origin);
      break;
    }
    up[n++] = at;
  }
  while (n-- > 0)
    if (doc->map.spots[up[n]].parent != PF_JSON_NO_SPOT)
      add_part(&doc->map.spots[up[n]], &path);
  pf_buf_str(out, pf_buf_text(&path));
  out->failed = out->failed || path.failed;
  pf_buf_free(&path);
}

/* The shortest decimal text that reads back as the same double, with a point
 * or an exponent, so that it stays a floating-point number. */
static void write_real(double value, struct pf_buf *out) {
  char text[32] = "";
  for (int digits = 15; digits <= 17; digits++) {
    (void)snprintf(text, sizeof(text), "%.*g", digits, value);
    if (strtod(text, NULL) == value)
      break;
  }
  /* The decimal point of the process's locale, if somebody set one. */
  for (char *c = text; *c; c++)
    if (*c == ',')
      *c = '.';
  pf_buf_str(out, text);
  if (!strpbrk(text, ".e"))
    pf_buf_str(out, ".0");
}

static void write_children(const struct pf_json_doc *doc,
                           const pf_json *parent, const char *brackets,
                           struct pf_buf *out) {
  pf_buf_char(out, brackets[0]);
  for (const pf_json *v = parent->child; v; v = v->next) {
    if (v->string) {
      pf_buf_json(out, v->string);
      pf_buf_char(out, ':');
    }
    pf_json_write(doc, v, out);
    if (v->next)
      pf_buf_char(out, ',');
  }
  pf_buf_char(out, brackets[1]);
}

void pf_json_write(const struct pf_json_doc *doc, const pf_json *value,
                   struct pf_buf *out) {
  switch (pf_json_type(doc, value)) {
  case PF_JSON_NULL:
    pf_buf_str(out, "null");
    break;
  case PF_JSON_BOOL:
    pf_buf_str(out, pf_json_bool(value) ? "true" : "false");
    break;
  case PF_JSON_INT:
    pf_buf_printf(out, "%lld", (long long)pf_json_int(doc, value));
    break;
  case PF_JSON_REAL:
    write_real(value->valuedouble, out);
    break;
  case PF_JSON_STRING:
    pf_buf_json(out, value->valuestring);
    break;
  case PF_JSON_ARRAY:
    write_children(doc, value, "[]", out);
    break;
  case PF_JSON_OBJECT:
    write_children(doc, value, "{}", out);
    break;
  }
}
