/*
 * The directories of a TIFF file and where their lists of strips are, read
 * without libtiff: it would walk from the first page for each page asked for,
 * and it mends lists that do not fit the image, which here are an error.
 */
#include "engine/plate/tiff_private.h"

#include <stdlib.h>

enum {
  TAG_PHOTOMETRIC = 262,
  TAG_STRIP_OFFSETS = 273,
  TAG_STRIP_COUNTS = 279,
  TAG_TILE_OFFSETS = 324,
  TAG_TILE_COUNTS = 325,
  PHOTOMETRIC_IS_PALETTE = 3
};

/* Bytes of the parts of a directory: [count][entry]...[next]. */
struct form {
  unsigned n_count, n_entry, n_next;
};
static const struct form classic_form = {2, 12, 4}, big_form = {8, 20, 8};

static const struct form *form_of(const struct pf_tiff *tiff) {
  return tiff->is_big ? &big_form : &classic_form;
}

/* Entries of the directory at `at`, checked to lie inside the file. */
static int count_entries(struct pf_tiff *tiff, uint32_t page, uint64_t at,
                         uint64_t *n, struct pf_error *err) {
  const struct form *form = form_of(tiff);
  uint64_t size = tiff->identity.size;
  if (!pf_tiff_number(tiff, at, form->n_count, n) ||
      (*n <= PF_TIFF_MAX_ENTRIES &&
       form->n_count + *n * form->n_entry + form->n_next > size - at))
    return pf_tiff_fail(tiff, page, err,
                        "its directory at byte %llu is truncated (file has "
                        "%llu bytes)",
                        (unsigned long long)at, (unsigned long long)size);
  if (*n == 0 || *n > PF_TIFF_MAX_ENTRIES)
    return pf_tiff_fail(tiff, page, err,
                        "its directory at byte %llu is damaged (%llu "
                        "entries)",
                        (unsigned long long)at, (unsigned long long)*n);
  return PF_OK;
}

/* Where the next directory is said to be; 0: this is the last one. */
static int find_next(struct pf_tiff *tiff, uint64_t *next,
                     struct pf_error *err) {
  const struct pf_tiff_chain *chain = &tiff->chain;
  const struct form *form = form_of(tiff);
  uint64_t at, n = 0;
  int result;
  *next = 0;
  if (chain->n == 0) {
    /* The header ends with the place of the first directory. */
    at = tiff->is_big ? 8 : 4;
  } else {
    at = chain->offsets[chain->n - 1];
    result = count_entries(tiff, chain->n, at, &n, err);
    if (result != PF_OK)
      return result;
    at += form->n_count + n * form->n_entry;
  }
  if (!pf_tiff_number(tiff, at, form->n_next, next))
    return pf_tiff_fail(tiff, chain->n, err,
                        "the end of its directory cannot be read");
  return PF_OK;
}

/* The directory at `offset`, met twice, is which page? */
static int fail_loop(const struct pf_tiff *tiff, uint64_t offset,
                     struct pf_error *err) {
  uint32_t page = 0;
  while (page + 1 < tiff->chain.n && tiff->chain.offsets[page] != offset)
    page++;
  return pf_tiff_fail(tiff, 0, err,
                      "its list of pages is a loop through page %u (at byte "
                      "%llu)",
                      page + 1, (unsigned long long)offset);
}

/*
 * Brent's search: a chain that loops meets the landmark again, which is set
 * anew after 1, 2, 4, 8 ... steps. So a loop ends after at most three rounds.
 */
static bool meets_landmark(struct pf_tiff_chain *chain, uint64_t next) {
  if (chain->n > 0 && next == chain->landmark)
    return true;
  if (chain->n_steps++ == chain->n_allowed) {
    chain->landmark = next;
    chain->n_steps = 0;
    chain->n_allowed = chain->n_allowed ? 2 * chain->n_allowed : 1;
  }
  return false;
}

static bool append(struct pf_tiff_chain *chain, uint64_t offset) {
  uint32_t capacity = chain->capacity ? 2 * chain->capacity : 4;
  uint64_t *grown;
  if (chain->n == chain->capacity) {
    if (capacity < chain->capacity)
      return false;
    grown = realloc(chain->offsets, capacity * sizeof(*grown));
    if (!grown)
      return false;
    chain->offsets = grown;
    chain->capacity = capacity;
  }
  chain->offsets[chain->n++] = offset;
  return true;
}

int pf_tiff_chain_extend(struct pf_tiff *tiff, uint32_t n,
                         struct pf_error *err) {
  struct pf_tiff_chain *chain = &tiff->chain;
  while (chain->n < n && !chain->complete) {
    uint64_t next = 0;
    int result = find_next(tiff, &next, err);
    if (result != PF_OK)
      return result;
    if (next == 0) {
      chain->complete = true;
    } else if (next >= tiff->identity.size) {
      return pf_tiff_fail(tiff, chain->n + 1, err,
                          "its directory is at byte %llu, behind the end of "
                          "the file (%llu bytes)",
                          (unsigned long long)next,
                          (unsigned long long)tiff->identity.size);
    } else if (meets_landmark(chain, next)) {
      return fail_loop(tiff, next, err);
    } else if (!append(chain, next)) {
      return pf_error_set(err, PF_ENOMEM, "out of memory");
    }
  }
  return PF_OK;
}

void pf_tiff_chain_finish(struct pf_tiff_chain *chain) {
  free(chain->offsets);
  *chain = (struct pf_tiff_chain){0};
}

static unsigned bytes_of_type(uint64_t type) {
  switch (type) {
  case 3: /* SHORT */
    return 2;
  case 4:  /* LONG */
  case 13: /* IFD */
    return 4;
  case 16: /* LONG8 */
  case 18: /* IFD8 */
    return 8;
  default:
    return 0;
  }
}

/* Take the list that the entry at `at` stands for, if it can be one. */
static bool take_list(struct pf_tiff *tiff, uint64_t at,
                      struct pf_tiff_list *list) {
  unsigned n_word = tiff->is_big ? 8 : 4; /* of the count and of the value */
  uint64_t type = 0, count = 0, place = at + 4 + n_word;
  unsigned n_bytes;
  if (list->count != 0)
    return true; /* the first one counts, as in libtiff */
  if (!pf_tiff_number(tiff, at + 2, 2, &type) ||
      !pf_tiff_number(tiff, at + 4, n_word, &count))
    return false;
  n_bytes = bytes_of_type(type);
  if (n_bytes == 0 || count > UINT32_MAX)
    return false;
  if (count * n_bytes > n_word && !pf_tiff_number(tiff, place, n_word, &place))
    return false;
  list->count = count;
  list->at = place;
  list->n_value_bytes = n_bytes;
  return true;
}

/* The entry at `at`, if it is one of those that are not left to libtiff. */
static bool take_entry(struct pf_tiff *tiff, uint64_t at, uint64_t tag) {
  struct pf_tiff_page_info *page = &tiff->page;
  uint64_t value = 0;
  switch (tag) {
  case TAG_STRIP_OFFSETS:
    return take_list(tiff, at, &page->offsets[0]);
  case TAG_STRIP_COUNTS:
    return take_list(tiff, at, &page->counts[0]);
  case TAG_TILE_OFFSETS:
    return take_list(tiff, at, &page->offsets[1]);
  case TAG_TILE_COUNTS:
    return take_list(tiff, at, &page->counts[1]);
  case TAG_PHOTOMETRIC:
    if (!pf_tiff_number(tiff, at + (tiff->is_big ? 12 : 8), 2, &value))
      return false;
    page->is_palette = value == PHOTOMETRIC_IS_PALETTE;
    return true;
  default:
    return true;
  }
}

int pf_tiff_chain_entries(struct pf_tiff *tiff, uint64_t at,
                          struct pf_error *err) {
  const struct form *form = form_of(tiff);
  uint64_t n = 0;
  int result = count_entries(tiff, tiff->page.number, at, &n, err);
  if (result != PF_OK)
    return result;
  at += form->n_count;
  for (uint64_t i = 0; i < n; i++, at += form->n_entry) {
    uint64_t tag = 0;
    if (!pf_tiff_number(tiff, at, 2, &tag) || !take_entry(tiff, at, tag))
      return pf_tiff_fail(tiff, tiff->page.number, err,
                          "entry %llu (tag %llu) of its directory is damaged",
                          (unsigned long long)i + 1, (unsigned long long)tag);
  }
  return PF_OK;
}
