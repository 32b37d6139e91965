/* Counting what a plate holds and lacks: see engine/plate/inspect.h. */
#include "engine/plate/inspect.h"

#include <stdlib.h>
#include <string.h>

#include "engine/plate/index.h"

/* The slices [first, first + n) of one field, or of one plate. */
struct run {
  size_t first, n;
};

static bool next_run(const struct pf_plate *plate, struct run *run, size_t end,
                     enum pf_component last) {
  const struct pf_slice *s = plate->slices;
  run->first += run->n;
  for (run->n = 0; run->first + run->n < end; run->n++)
    for (int c = 0; c <= (int)last; c++)
      if (s[run->first].value[c] != s[run->first + run->n].value[c])
        return true;
  return run->n > 0;
}

static uint64_t pair_of(const struct pf_slice *slice) {
  return (uint64_t)slice->value[PF_CHANNEL] << 32 | slice->value[PF_Z];
}

static int compare_pairs(const void *a, const void *b) {
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return x < y ? -1 : x > y;
}

static size_t sort_unique(uint64_t *pairs, size_t n) {
  size_t kept = 0;
  if (n)
    qsort(pairs, n, sizeof(*pairs), compare_pairs);
  for (size_t i = 0; i < n; i++)
    if (i == 0 || pairs[i] != pairs[i - 1])
      pairs[kept++] = pairs[i];
  return kept;
}

static bool add_missing(struct pf_inspect *out, uint64_t pair) {
  if (out->n_missing == out->cap_missing) {
    size_t cap = out->cap_missing ? out->cap_missing * 2 : 64;
    struct pf_missing *missing = realloc(out->missing, cap * sizeof(*missing));
    if (!missing)
      return false;
    out->missing = missing;
    out->cap_missing = cap;
  }
  out->missing[out->n_missing++] =
      (struct pf_missing){(uint32_t)(pair >> 32), (uint32_t)pair};
  return true;
}

/* List what the field lacks of the plate's pairs of channel and z. `own` is
 * room for the field's. */
static bool list_field(const struct pf_plate *plate, const struct run *field,
                       const uint64_t *all, size_t n_all, uint64_t *own,
                       struct pf_inspect *out) {
  struct pf_incomplete_field *it = &out->fields[out->n_listed];
  size_t n_own, at = 0;
  *it = (struct pf_incomplete_field){.first = plate->slices[field->first],
                                     .missing = out->n_missing};
  for (size_t i = 0; i < field->n; i++)
    own[i] = pair_of(&plate->slices[field->first + i]);
  n_own = sort_unique(own, field->n);
  for (size_t i = 0; i < n_all; i++) {
    while (at < n_own && own[at] < all[i])
      at++;
    if (at < n_own && own[at] == all[i])
      continue;
    if (out->n_missing < PF_MAX_LISTED_MISSING && !add_missing(out, all[i]))
      return false;
    it->n_missing++;
  }
  out->n_listed++;
  return true;
}

/* Fields of one plate against all pairs that the plate has. */
static bool inspect_plate(const struct pf_plate *plate,
                          const struct run *whole, uint64_t *all,
                          uint64_t *own, struct pf_inspect *out) {
  struct run field = {whole->first, 0};
  size_t end = whole->first + whole->n, n_all;
  bool ok = true;
  for (size_t i = 0; i < whole->n; i++)
    all[i] = pair_of(&plate->slices[whole->first + i]);
  n_all = sort_unique(all, whole->n);
  while (ok && next_run(plate, &field, end, PF_TIMEPOINT)) {
    size_t n_own = 1;
    for (size_t i = 1; i < field.n; i++)
      n_own += pair_of(&plate->slices[field.first + i]) !=
               pair_of(&plate->slices[field.first + i - 1]);
    out->n_fields++;
    if (n_own >= n_all)
      continue;
    out->n_incomplete++;
    if (out->n_listed < PF_MAX_LISTED_FIELDS)
      ok = list_field(plate, &field, all, n_all, own, out);
  }
  return ok;
}

static void count_slices(const struct pf_plate *plate,
                         struct pf_inspect *out) {
  for (size_t i = 0; i < plate->n_slices; i++)
    out->n_by_format[plate->slices[i].format]++;
  for (uint32_t file = 0; file < plate->tree.n_files; file++)
    out->n_files += plate->n_in_file[file] > 0;
  memcpy(out->n_kinds, plate->n_by_kind, sizeof(out->n_kinds));
}

int pf_plate_inspect(const struct pf_plate *plate, struct pf_inspect *out) {
  size_t n = plate->n_slices;
  uint64_t *all = malloc((n + 1) * sizeof(*all));
  uint64_t *own = malloc((n + 1) * sizeof(*own));
  struct run whole = {0, 0};
  bool ok;
  *out = (struct pf_inspect){0};
  out->n_by_format = calloc(plate->n_formats + 1, sizeof(*out->n_by_format));
  out->fields = malloc(PF_MAX_LISTED_FIELDS * sizeof(*out->fields));
  ok = all && own && out->n_by_format && out->fields;
  if (ok)
    count_slices(plate, out);
  while (ok && next_run(plate, &whole, n, PF_PLATE))
    ok = inspect_plate(plate, &whole, all, own, out);
  free(all);
  free(own);
  if (!ok)
    pf_inspect_finish(out);
  return ok ? PF_OK : PF_ENOMEM;
}

void pf_inspect_finish(struct pf_inspect *report) {
  free(report->n_by_format);
  free(report->fields);
  free(report->missing);
  *report = (struct pf_inspect){0};
}
