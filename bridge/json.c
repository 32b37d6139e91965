/*
 * JSON documents: the strict scanner, cJSON, and the map between them. See
 * bridge/json.h.
 */
#include "bridge/json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "bridge/json_map.h"
#include "bridge/os.h"
#include "bridge/strmap.h"

/* Nobody writes more by hand; a larger file is the wrong file. */
enum { MAX_FILE = 16 << 20 };

/* --------------------------------------------------------------- parsing */

static int no_memory(struct pf_error *err) {
  return pf_error_set(err, PF_ENOMEM, "out of memory");
}

static int refuse_duplicate(const struct pf_json_doc *doc,
                            const struct pf_json_spot *first,
                            const struct pf_json_spot *second,
                            struct pf_error *err) {
  struct pf_buf key = {0};
  pf_buf_json(&key, second->node->string);
  pf_error_set(err, PF_EINVAL,
               "the key %s is here a second time; it is on line %d, column %d "
               "already",
               pf_buf_text(&key), first->key_line, first->key_column);
  pf_error_at_file(err, doc->file, second->key_line, second->key_column);
  pf_buf_free(&key);
  return PF_EINVAL;
}

/* The members of `object`, which is paired with all below it. */
static int check_duplicates(const struct pf_json_doc *doc,
                            const struct cJSON *object, struct pf_error *err) {
  struct pf_strmap keys = {0};
  uint32_t *spots = NULL, n = 0;
  int rc = PF_OK;
  spots = calloc(pf_json_n(object) + 1, sizeof(*spots));
  if (!spots)
    return no_memory(err);
  for (const struct cJSON *m = object->child; m && rc == PF_OK; m = m->next) {
    uint32_t spot = pf_json_map_find(&doc->map, m);
    int64_t at = pf_strmap_add(&keys, m->string, strlen(m->string));
    if (at < 0)
      rc = no_memory(err);
    else if (at < n)
      rc = refuse_duplicate(doc, &doc->map.spots[spots[at]],
                            &doc->map.spots[spot], err);
    else
      spots[n++] = spot;
  }
  pf_strmap_free(&keys);
  free(spots);
  return rc;
}

/* Walk the tree in the order in which the scanner saw the text. Recursion
 * ends with the scanner's limit on depth. */
static bool pair(struct pf_json_map *map, struct cJSON *node, uint32_t *next) {
  if (*next >= map->n)
    return false;
  map->spots[(*next)++].node = node;
  for (struct cJSON *child = node->child; child; child = child->next)
    if (!pair(map, child, next))
      return false;
  return true;
}

static int check_values(const struct pf_json_doc *doc, struct pf_error *err) {
  for (uint32_t i = 0; i < doc->map.n; i++) {
    const struct pf_json_spot *spot = &doc->map.spots[i];
    int rc = PF_OK;
    if (cJSON_IsNumber(spot->node) && !isfinite(spot->node->valuedouble)) {
      rc = pf_error_set(err, PF_EINVAL,
                        "the number is beyond what 64-bit floating point "
                        "can hold");
      pf_error_at_file(err, doc->file, spot->line, spot->column);
    } else if (cJSON_IsObject(spot->node)) {
      rc = check_duplicates(doc, spot->node, err);
    }
    if (rc != PF_OK)
      return rc;
  }
  return PF_OK;
}

static int parse_text(struct pf_json_doc *doc, const char *text, size_t n,
                      struct pf_error *err) {
  uint32_t next = 0;
  int rc = pf_json_scan(&doc->map, text, n, doc->file, err);
  if (rc != PF_OK)
    return rc;
  doc->root = cJSON_ParseWithLength(text, n);
  if (!doc->root || pf_json_map_reserve(&doc->map, 0) != PF_OK)
    return no_memory(err);
  if (!pair(&doc->map, doc->root, &next) || next != doc->map.n)
    return pf_error_set(err, PF_EBUG, "cJSON read a text differently");
  pf_json_map_index(&doc->map);
  return check_values(doc, err);
}

int pf_json_parse(struct pf_json_doc **out, const char *text, size_t n,
                  const char *file, struct pf_error *err) {
  struct pf_json_doc *doc = NULL;
  char *copy = NULL;
  int rc = PF_ENOMEM;
  *out = NULL;
  doc = calloc(1, sizeof(*doc));
  /* The scanner looks one byte ahead and wants a NUL there. */
  copy = malloc(n + 1);
  if (doc)
    doc->file = strdup(file);
  if (!doc || !doc->file || !copy) {
    no_memory(err);
    goto out;
  }
  if (n)
    memcpy(copy, text, n);
  copy[n] = '\0';
  rc = parse_text(doc, copy, n, err);
  if (rc == PF_OK) {
    *out = doc;
    doc = NULL;
  }
out:
  free(copy);
  pf_json_free(&doc);
  return rc;
}

int pf_json_read(struct pf_json_doc **out, const char *path,
                 struct pf_error *err) {
  char *text = NULL;
  size_t n = 0;
  int rc;
  *out = NULL;
  rc = pf_os_read_file(&text, &n, path, MAX_FILE, err);
  if (rc == PF_OK)
    rc = pf_json_parse(out, text, n, path, err);
  free(text);
  return rc;
}

void pf_json_free(struct pf_json_doc **doc) {
  if (!doc || !*doc)
    return;
  cJSON_Delete((*doc)->root);
  free((*doc)->file);
  pf_json_map_free(&(*doc)->map);
  for (size_t i = 0; i < (*doc)->n_origins; i++)
    free((*doc)->origins[i]);
  free((*doc)->origins);
  free(*doc);
  *doc = NULL;
}

/* --------------------------------------------------------------- reading */

const pf_json *pf_json_root(const struct pf_json_doc *doc) {
  return doc->root;
}

const char *pf_json_file(const struct pf_json_doc *doc) {
  return doc->file;
}

static const struct pf_json_spot *find(const struct pf_json_doc *doc,
                                       const pf_json *value) {
  uint32_t at = pf_json_map_find(&doc->map, value);
  return at == PF_JSON_NO_SPOT ? NULL : &doc->map.spots[at];
}

enum pf_json_type pf_json_type(const struct pf_json_doc *doc,
                               const pf_json *value) {
  if (cJSON_IsNumber(value)) {
    const struct pf_json_spot *spot = find(doc, value);
    return spot && spot->is_int ? PF_JSON_INT : PF_JSON_REAL;
  }
  if (cJSON_IsObject(value))
    return PF_JSON_OBJECT;
  if (cJSON_IsArray(value))
    return PF_JSON_ARRAY;
  if (cJSON_IsString(value))
    return PF_JSON_STRING;
  return cJSON_IsBool(value) ? PF_JSON_BOOL : PF_JSON_NULL;
}

const char *pf_json_type_name(enum pf_json_type type) {
  static const char *const names[] = {
      [PF_JSON_NULL] = "null",       [PF_JSON_BOOL] = "true or false",
      [PF_JSON_INT] = "an integer",  [PF_JSON_REAL] = "a number",
      [PF_JSON_STRING] = "a string", [PF_JSON_ARRAY] = "a list",
      [PF_JSON_OBJECT] = "an object"};
  return names[type];
}

bool pf_json_bool(const pf_json *value) {
  return cJSON_IsTrue(value);
}

int64_t pf_json_int(const struct pf_json_doc *doc, const pf_json *value) {
  const struct pf_json_spot *spot = find(doc, value);
  return spot ? spot->integer : 0;
}

double pf_json_real(const pf_json *value) {
  return cJSON_IsNumber(value) ? value->valuedouble : 0;
}

const char *pf_json_string(const pf_json *value) {
  return cJSON_IsString(value) ? value->valuestring : NULL;
}

size_t pf_json_n(const pf_json *value) {
  size_t n = 0;
  for (const pf_json *v = pf_json_first(value); v; v = v->next)
    n++;
  return n;
}

const pf_json *pf_json_first(const pf_json *value) {
  return value ? value->child : NULL;
}

const pf_json *pf_json_next(const pf_json *value) {
  return value->next;
}

const char *pf_json_key(const pf_json *value) {
  return value->string;
}

const pf_json *pf_json_get(const pf_json *object, const char *key) {
  return cJSON_IsObject(object) ? cJSON_GetObjectItemCaseSensitive(object, key)
                                : NULL;
}

void pf_json_place(const struct pf_json_doc *doc, const pf_json *value,
                   bool of_key, int *line, int *column) {
  const struct pf_json_spot *spot = find(doc, value);
  bool key = spot && of_key && spot->key_line > 0;
  *line = !spot ? 0 : key ? spot->key_line : spot->line;
  *column = !spot ? 0 : key ? spot->key_column : spot->column;
}
