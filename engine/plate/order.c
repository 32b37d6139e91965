/*
 * Ranks and order of the slices: one stable counting sort per component, the
 * last one first, so that a million slices take a few passes whatever their
 * values are.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/plate/index.h"

uint32_t pf_build_rank(const struct pf_build *build,
                       const struct pf_slice *slice, int c) {
  uint32_t id = slice->value[c];
  if (id == PF_NO_VALUE)
    return PF_NO_VALUE;
  if (c == PF_PLATE)
    id = build->candidates.items[id].plate;
  return build->plate->values[c].rank[id];
}

static void mark_used(const struct pf_build *build, int c, uint8_t *used) {
  const struct pf_plate *plate = build->plate;
  for (size_t i = 0; i < plate->n_slices; i++) {
    uint32_t id = plate->slices[i].value[c];
    if (id != PF_NO_VALUE)
      used[c == PF_PLATE ? build->candidates.items[id].plate : id] = 1;
  }
}

int pf_build_rank_values(struct pf_build *build, bool only_used) {
  int result = PF_OK;
  for (int c = 0; c < PF_N_COMPONENTS && result == PF_OK; c++) {
    struct pf_values *values = &build->plate->values[c];
    uint8_t *used = calloc((size_t)values->ids.n + 1, 1);
    if (!used)
      return pf_build_no_memory(build);
    if (only_used)
      mark_used(build, c, used);
    result =
        pf_values_rank(values, (enum pf_component)c, only_used ? used : NULL);
    free(used);
  }
  return result == PF_OK ? PF_OK : pf_build_no_memory(build);
}

/* 0 for absent, else rank + 1; the kind as it is. */
static size_t bucket_of(const struct pf_build *build,
                        const struct pf_slice *slice, int by) {
  uint32_t rank;
  if (by == PF_ORDER_KIND)
    return slice->kind & PF_KIND_MASK;
  rank = pf_build_rank(build, slice, by);
  return rank == PF_NO_VALUE ? 0 : (size_t)rank + 1;
}

static size_t n_buckets(const struct pf_build *build, int by) {
  return by == PF_ORDER_KIND ? PF_KIND_MASK + 1
                             : (size_t)build->plate->values[by].n + 1;
}

/* One stable pass over `in` into `out`. */
static bool counting_pass(const struct pf_build *build, int by,
                          const uint32_t *in, uint32_t *out) {
  const struct pf_slice *slices = build->plate->slices;
  size_t n = build->plate->n_slices, sum = 0;
  size_t n_counts = n_buckets(build, by);
  uint32_t *count = calloc(n_counts, sizeof(*count));
  if (!count)
    return false;
  for (size_t i = 0; i < n; i++)
    count[bucket_of(build, &slices[i], by)]++;
  for (size_t b = 0; b < n_counts; b++) {
    uint32_t here = count[b];
    count[b] = (uint32_t)sum;
    sum += here;
  }
  for (size_t i = 0; i < n; i++)
    out[count[bucket_of(build, &slices[in[i]], by)]++] = in[i];
  free(count);
  return true;
}

int pf_build_order(struct pf_build *build, const int *by) {
  size_t n = build->plate->n_slices, n_by = 0;
  uint32_t *from = malloc((n + 1) * sizeof(*from));
  uint32_t *to = malloc((n + 1) * sizeof(*to));
  bool ok = from && to;
  for (size_t i = 0; ok && i < n; i++)
    from[i] = (uint32_t)i;
  while (by[n_by] != PF_ORDER_END)
    n_by++;
  while (ok && n_by-- > 0) {
    uint32_t *swap = from;
    if (n_buckets(build, by[n_by]) < 2)
      continue; /* nothing to tell apart */
    ok = counting_pass(build, by[n_by], from, to);
    from = to;
    to = swap;
  }
  free(to);
  if (!ok) {
    free(from);
    return pf_build_no_memory(build);
  }
  free(build->order);
  build->order = from;
  return PF_OK;
}

/* In place, cycle by cycle: a second array of slices would be the peak of the
 * memory that a plate needs. */
int pf_build_apply_order(struct pf_build *build) {
  struct pf_slice *slices = build->plate->slices;
  uint32_t *order = build->order;
  for (uint32_t start = 0; start < build->plate->n_slices; start++) {
    struct pf_slice moved = slices[start];
    uint32_t at = start;
    while (order[at] != start) {
      uint32_t next = order[at];
      slices[at] = slices[next];
      order[at] = at;
      at = next;
    }
    slices[at] = moved;
    order[at] = at;
  }
  return PF_OK;
}
