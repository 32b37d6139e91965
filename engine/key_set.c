/* Sets of 64-bit keys: see engine/key_set.h. */
#include "engine/key_set.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

uint64_t pf_mix64(uint64_t x) { /* the finaliser of splitmix64 (Vigna) */
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

uint64_t pf_hash64(const void *bytes, size_t n) {
  const unsigned char *p = bytes;
  uint64_t h = n * 0x9e3779b97f4a7c15u;
  while (n >= 8) {
    uint64_t word;
    memcpy(&word, p, 8);
    h = pf_mix64(h ^ word);
    p += 8;
    n -= 8;
  }
  for (; n; n--, p++)
    h = pf_mix64(h ^ (*p + 0x100u));
  return h ? h : 1;
}

static size_t find_slot(const struct pf_key_set *set, uint64_t key) {
  size_t at = (size_t)pf_mix64(key) & (set->n_slots - 1);
  while (set->slot[at] && set->slot[at] != key)
    at = (at + 1) & (set->n_slots - 1);
  return at;
}

static bool grow(struct pf_key_set *set) {
  struct pf_key_set next = {0};
  next.n_slots = set->n_slots ? set->n_slots * 2 : 256;
  next.slot = calloc(next.n_slots, sizeof(*next.slot));
  if (!next.slot)
    return false;
  for (size_t i = 0; i < set->n_slots; i++)
    if (set->slot[i])
      next.slot[find_slot(&next, set->slot[i])] = set->slot[i];
  next.n = set->n;
  free(set->slot);
  *set = next;
  return true;
}

int pf_key_set_add(struct pf_key_set *set, uint64_t key) {
  size_t at;
  /* Half full at the most, so that probing stays short. */
  if (set->n * 2 >= set->n_slots && !grow(set))
    return -1;
  at = find_slot(set, key);
  if (set->slot[at])
    return 0;
  set->slot[at] = key;
  set->n++;
  return 1;
}

void pf_key_set_free(struct pf_key_set *set) {
  free(set->slot);
  *set = (struct pf_key_set){0};
}
