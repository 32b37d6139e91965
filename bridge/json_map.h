/*
 * Inside bridge/json*.c only: the source map, one spot per value in the order
 * of the text, found by the address of its cJSON node.
 */
#ifndef PF_JSON_MAP_H
#define PF_JSON_MAP_H

#include "bridge/json.h"

struct cJSON;

enum { PF_JSON_MAX_DEPTH = 64 };
#define PF_JSON_NO_SPOT UINT32_MAX

struct pf_json_spot {
  struct cJSON *node;       /* NULL: not paired yet, or replaced */
  int line, column;         /* of the value; 0: it stands in no file */
  int key_line, key_column; /* of its key; 0: it has none */
  uint32_t parent;          /* a spot, or PF_JSON_NO_SPOT */
  uint32_t index;           /* among its parent's children */
  bool is_int;              /* a number that was written as an integer */
  int64_t integer;          /* its exact value */
  const char *origin;       /* its path if set by pf_json_set(), or NULL */
};

struct pf_json_map {
  struct pf_json_spot *spots;
  uint32_t n, cap;
  uint32_t *slots; /* hash table of spot + 1; 0 is free */
  uint32_t n_slots;
};

/* Room for `n` more spots, and an empty hash table for all of them. After
 * success pf_json_map_index() must follow before the next find. */
int pf_json_map_reserve(struct pf_json_map *map, uint32_t n) PF_MUST_CHECK;
/* Append a zeroed spot; NULL if memory ran out. Valid until the next. */
struct pf_json_spot *pf_json_map_add(struct pf_json_map *map);
/* Fill the hash table with all spots that have a node. */
void pf_json_map_index(struct pf_json_map *map);
/* The spot of a node, or PF_JSON_NO_SPOT. */
uint32_t pf_json_map_find(const struct pf_json_map *map,
                          const struct cJSON *node);
void pf_json_map_free(struct pf_json_map *map);

/* What bridge/json.h only declares. */
struct pf_json_doc {
  struct cJSON *root;
  char *file;
  struct pf_json_map map;
  char **origins; /* what spots' `origin` point to */
  size_t n_origins;
};

/*
 * The strict tokenizer: refuses what is not JSON with its place in `err`, and
 * appends a spot per value, parents before children. `text` has `n` bytes and
 * a NUL behind them.
 */
int pf_json_scan(struct pf_json_map *map, const char *text, size_t n,
                 const char *file, struct pf_error *err) PF_MUST_CHECK;

#endif
