/*
 * A set of strings that gives each a number, in order of arrival from 0.
 * A zeroed struct is an empty set. One thread at a time.
 */
#ifndef PF_STRMAP_H
#define PF_STRMAP_H

#include <stddef.h>
#include <stdint.h>

#include "plateflow/error.h"

struct pf_strmap {
  char *arena; /* the strings, each NUL-terminated */
  size_t arena_len, arena_cap;
  size_t *offset; /* of string i in the arena */
  uint32_t n, offset_cap;
  uint32_t *slot; /* hash table of index + 1; 0 is free */
  uint32_t n_slots;
};

enum { PF_STRMAP_NONE = -1 };

/* The number of `text` (n bytes), added if new; -1 if memory ran out. */
PF_API int64_t pf_strmap_add(struct pf_strmap *map, const char *text,
                             size_t n);
/* The number of `text`, or -1. */
PF_API int64_t pf_strmap_find(const struct pf_strmap *map, const char *text,
                              size_t n);
/* String number i; valid until the next add. */
PF_API const char *pf_strmap_get(const struct pf_strmap *map, uint32_t i);
PF_API void pf_strmap_free(struct pf_strmap *map);

#endif
