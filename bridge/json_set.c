/* Values that come from the command line: see pf_json_set(). */
#include "bridge/json.h"

#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "bridge/json_map.h"

static int no_memory(struct pf_error *err) {
  return pf_error_set(err, PF_ENOMEM, "out of memory");
}

/* `text` as a document of its own; a string where it is not valid JSON. */
static int parse_setting(struct pf_json_doc **out, const char *text,
                         const char *origin, struct pf_error *err) {
  struct pf_buf quoted = {0};
  int rc = pf_json_parse(out, text, strlen(text), origin, NULL);
  if (rc != PF_EINVAL)
    return rc == PF_OK ? rc : no_memory(err);
  pf_buf_json(&quoted, text);
  if (!pf_buf_ok(&quoted))
    rc = no_memory(err);
  else
    rc = pf_json_parse(out, pf_buf_text(&quoted), quoted.len, origin, err);
  pf_buf_free(&quoted);
  /* Quoting replaces what is not UTF-8. */
  if (rc == PF_OK && strcmp((*out)->root->valuestring, text) != 0) {
    pf_json_free(out);
    rc = pf_error_set(err, PF_EINVAL, "%s: the value is not valid UTF-8",
                      origin);
  }
  return rc;
}

/* Forget the nodes of a tree that is about to be freed. */
static void forget(struct pf_json_map *map, const struct cJSON *node) {
  uint32_t at = pf_json_map_find(map, node);
  for (const struct cJSON *child = node->child; child; child = child->next)
    forget(map, child);
  if (at != PF_JSON_NO_SPOT)
    map->spots[at].node = NULL;
}

static int keep_origin(struct pf_json_doc *doc, const char *origin,
                       const char **out) {
  char *copy = strdup(origin);
  char **origins =
      realloc(doc->origins, (doc->n_origins + 1) * sizeof(*origins));
  if (origins)
    doc->origins = origins;
  if (!copy || !origins) {
    free(copy);
    return PF_ENOMEM;
  }
  doc->origins[doc->n_origins++] = copy;
  *out = copy;
  return PF_OK;
}

/* Hang the whole of `part` in as object[key]. */
static bool attach(struct pf_json_doc *doc, struct cJSON *object,
                   const char *key, struct pf_json_doc *part) {
  struct cJSON *old = cJSON_GetObjectItemCaseSensitive(object, key);
  if (!old) {
    if (!cJSON_AddItemToObject(object, key, part->root))
      return false;
  } else {
    /* Replacing in place keeps the order; it needs a name of its own. */
    struct cJSON *item = part->root;
    item->string = cJSON_malloc(strlen(key) + 1);
    if (!item->string)
      return false;
    memcpy(item->string, key, strlen(key) + 1);
    forget(&doc->map, old);
    if (!cJSON_ReplaceItemViaPointer(object, old, item))
      return false;
  }
  part->root = NULL;
  return true;
}

/* The spots of `part`, for which there is room, behind those of `doc`. */
static void take_spots(struct pf_json_doc *doc, const struct pf_json_map *part,
                       uint32_t parent, uint32_t index, const char *origin) {
  uint32_t base = doc->map.n;
  for (uint32_t i = 0; i < part->n; i++) {
    struct pf_json_spot spot = part->spots[i];
    spot.line = spot.column = spot.key_line = spot.key_column = 0;
    if (i == 0) {
      spot.parent = parent;
      spot.index = index;
      spot.origin = origin;
    } else {
      spot.parent += base;
    }
    doc->map.spots[doc->map.n++] = spot;
  }
}

int pf_json_set(struct pf_json_doc *doc, const pf_json *object,
                const char *key, const char *text, const char *origin,
                struct pf_error *err) {
  struct pf_json_doc *part = NULL;
  const char *kept = NULL;
  uint32_t parent = pf_json_map_find(&doc->map, object), index;
  int rc;
  if (parent == PF_JSON_NO_SPOT || !cJSON_IsObject(object))
    return pf_error_set(err, PF_EINVAL, "%s: there is no object to set it in",
                        origin);
  rc = parse_setting(&part, text, origin, err);
  if (rc != PF_OK)
    return rc;
  index = (uint32_t)pf_json_n(object);
  if (keep_origin(doc, origin, &kept) != PF_OK ||
      pf_json_map_reserve(&doc->map, part->map.n) != PF_OK) {
    rc = no_memory(err);
    goto out;
  }
  /* The table is empty now, and forget() looks nodes up. */
  pf_json_map_index(&doc->map);
  if (attach(doc, doc->map.spots[parent].node, key, part))
    take_spots(doc, &part->map, parent, index, kept);
  else
    rc = no_memory(err);
  pf_json_map_index(&doc->map);
out:
  pf_json_free(&part);
  return rc;
}
