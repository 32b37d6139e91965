/* The source map of a JSON document: see bridge/json_map.h. */
#include "bridge/json_map.h"

#include <stdlib.h>
#include <string.h>

static int grow_spots(struct pf_json_map *map, uint32_t n) {
  uint32_t cap = map->cap ? map->cap : 64;
  struct pf_json_spot *spots;
  if (n > UINT32_MAX / 4 - map->n)
    return PF_ENOMEM;
  if (map->n + n <= map->cap)
    return PF_OK;
  while (cap < map->n + n)
    cap *= 2;
  spots = realloc(map->spots, cap * sizeof(*spots));
  if (!spots)
    return PF_ENOMEM;
  map->spots = spots;
  map->cap = cap;
  return PF_OK;
}

int pf_json_map_reserve(struct pf_json_map *map, uint32_t n) {
  uint32_t n_slots = 64, *slots;
  if (grow_spots(map, n) != PF_OK)
    return PF_ENOMEM;
  /* Half full at the most, so that probing stays short. */
  while (n_slots < 2 * (map->n + n))
    n_slots *= 2;
  slots = calloc(n_slots, sizeof(*slots));
  if (!slots)
    return PF_ENOMEM;
  free(map->slots);
  map->slots = slots;
  map->n_slots = n_slots;
  return PF_OK;
}

struct pf_json_spot *pf_json_map_add(struct pf_json_map *map) {
  struct pf_json_spot *spot;
  if (grow_spots(map, 1) != PF_OK)
    return NULL;
  spot = &map->spots[map->n++];
  *spot = (struct pf_json_spot){.parent = PF_JSON_NO_SPOT};
  return spot;
}

/* The slot where `node` is or would go. The table is never full. */
static uint32_t find_slot(const struct pf_json_map *map,
                          const struct cJSON *node) {
  uint32_t mask = map->n_slots - 1;
  /* Fibonacci hashing; the low bits of an address say little. */
  uint64_t hash = (uint64_t)(uintptr_t)node * 0x9e3779b97f4a7c15u;
  uint32_t at = (uint32_t)(hash >> 32) & mask;
  while (map->slots[at] && map->spots[map->slots[at] - 1].node != node)
    at = (at + 1) & mask;
  return at;
}

void pf_json_map_index(struct pf_json_map *map) {
  memset(map->slots, 0, map->n_slots * sizeof(*map->slots));
  for (uint32_t i = 0; i < map->n; i++)
    if (map->spots[i].node)
      map->slots[find_slot(map, map->spots[i].node)] = i + 1;
}

uint32_t pf_json_map_find(const struct pf_json_map *map,
                          const struct cJSON *node) {
  uint32_t slot;
  if (!node || !map->n_slots)
    return PF_JSON_NO_SPOT;
  slot = map->slots[find_slot(map, node)];
  return slot ? slot - 1 : PF_JSON_NO_SPOT;
}

void pf_json_map_free(struct pf_json_map *map) {
  free(map->spots);
  free(map->slots);
  *map = (struct pf_json_map){0};
}
