/*
 * A set of 64-bit keys. A zeroed struct is empty; key 0 is not allowed.
 * One thread at a time.
 */
#ifndef PF_KEY_SET_H
#define PF_KEY_SET_H

#include <stddef.h>
#include <stdint.h>

struct pf_key_set {
  uint64_t *slot; /* open addressing; 0 is free */
  size_t n, n_slots;
};

/* 1: added, 0: known already, -1: out of memory. */
int pf_key_set_add(struct pf_key_set *set, uint64_t key);
void pf_key_set_free(struct pf_key_set *set);

/* Spread the bits of a number; 64-bit hash of bytes, never 0. */
uint64_t pf_mix64(uint64_t x);
uint64_t pf_hash64(const void *bytes, size_t n);

#endif
