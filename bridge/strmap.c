/* Strings to numbers: see bridge/strmap.h. */
#include "bridge/strmap.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* FNV-1a, 64 bits (Fowler, Noll, Vo). */
static uint64_t hash(const char *text, size_t n) {
  uint64_t h = 14695981039346656037u;
  for (size_t i = 0; i < n; i++)
    h = (h ^ (unsigned char)text[i]) * 1099511628211u;
  return h;
}

/* The slot where `text` is or would go. The table is never full. */
static uint32_t find_slot(const struct pf_strmap *map, const char *text,
                          size_t n) {
  uint32_t mask = map->n_slots - 1;
  uint32_t at = (uint32_t)hash(text, n) & mask;
  while (map->slot[at]) {
    const char *known = map->arena + map->offset[map->slot[at] - 1];
    if (strncmp(known, text, n) == 0 && known[n] == '\0')
      return at;
    at = (at + 1) & mask;
  }
  return at;
}

static bool grow_slots(struct pf_strmap *map) {
  uint32_t n_slots = map->n_slots ? map->n_slots * 2 : 64;
  uint32_t *slot = calloc(n_slots, sizeof(*slot));
  if (!slot)
    return false;
  free(map->slot);
  map->slot = slot;
  map->n_slots = n_slots;
  for (uint32_t i = 0; i < map->n; i++) {
    const char *text = map->arena + map->offset[i];
    map->slot[find_slot(map, text, strlen(text))] = i + 1;
  }
  return true;
}

static bool grow_strings(struct pf_strmap *map, size_t n) {
  if (map->n == map->offset_cap) {
    uint32_t cap = map->offset_cap ? map->offset_cap * 2 : 32;
    size_t *offset = realloc(map->offset, cap * sizeof(*offset));
    if (!offset)
      return false;
    map->offset = offset;
    map->offset_cap = cap;
  }
  if (map->arena_len + n + 1 > map->arena_cap) {
    size_t cap = map->arena_cap ? map->arena_cap : 256;
    char *arena;
    while (cap < map->arena_len + n + 1)
      cap *= 2;
    arena = realloc(map->arena, cap);
    if (!arena)
      return false;
    map->arena = arena;
    map->arena_cap = cap;
  }
  return true;
}

int64_t pf_strmap_add(struct pf_strmap *map, const char *text, size_t n) {
  uint32_t at;
  /* Half full at the most, so that probing stays short. */
  if (map->n >= UINT32_MAX / 4)
    return PF_STRMAP_NONE;
  if (map->n * 2 >= map->n_slots && !grow_slots(map))
    return PF_STRMAP_NONE;
  at = find_slot(map, text, n);
  if (map->slot[at])
    return map->slot[at] - 1;
  if (!grow_strings(map, n))
    return PF_STRMAP_NONE;
  map->offset[map->n] = map->arena_len;
  memcpy(map->arena + map->arena_len, text, n);
  map->arena[map->arena_len + n] = '\0';
  map->arena_len += n + 1;
  map->slot[at] = ++map->n;
  return map->n - 1;
}

int64_t pf_strmap_find(const struct pf_strmap *map, const char *text,
                       size_t n) {
  uint32_t at;
  if (!map->n_slots)
    return PF_STRMAP_NONE;
  at = find_slot(map, text, n);
  return map->slot[at] ? (int64_t)map->slot[at] - 1 : PF_STRMAP_NONE;
}

const char *pf_strmap_get(const struct pf_strmap *map, uint32_t i) {
  return map->arena + map->offset[i];
}

void pf_strmap_free(struct pf_strmap *map) {
  free(map->arena);
  free(map->offset);
  free(map->slot);
  *map = (struct pf_strmap){0};
}
