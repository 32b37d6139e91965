/*
 * Kinds of slices, and their pixels' size and type from the headers: one file
 * of each plate, channel and kind stands for its siblings, which are checked
 * when they are read.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "bridge/buf.h"
#include "engine/plate/index.h"
#include "engine/plate/tiff.h"

enum {
  /* Pages are counted up to here; more are no microscope's file. */
  MAX_PAGES = 65535,
  /* Files of one group that are opened before the group is given up. */
  MAX_TRIES = 64,
  NO_FORMAT = UINT16_MAX
};

/* Slices order[first .. first + n) that share plate, channel and kind. */
struct group {
  size_t first, n;
};

struct sampler {
  struct pf_build *build;
  struct pf_paging *pagings; /* distinct ones */
  size_t n_pagings, cap_pagings;
  char *reasons[MAX_TRIES]; /* of the first tried files of a group */
  size_t n_tried;
};

static struct pf_slice *slice_at(const struct pf_build *build, size_t i) {
  return &build->plate->slices[build->order[i]];
}

static bool same(const struct pf_build *b, size_t i, size_t j, int c) {
  return pf_build_rank(b, slice_at(b, i), c) ==
         pf_build_rank(b, slice_at(b, j), c);
}

/* The next run of slices with one plate, channel and (if asked) kind. */
static bool next_group(const struct pf_build *b, struct group *g,
                       bool by_kind) {
  size_t n = b->plate->n_slices;
  g->first += g->n;
  for (g->n = 0; g->first + g->n < n; g->n++) {
    size_t i = g->first + g->n;
    if (!same(b, g->first, i, PF_PLATE) || !same(b, g->first, i, PF_CHANNEL))
      break;
    if (by_kind && slice_at(b, g->first)->kind != slice_at(b, i)->kind)
      break;
  }
  return g->n > 0;
}

/* "projections" and "slices" take a channel that has only the other kind, so
 * that none is lost; a plane without z in a channel with z is a projection. */
static void choose_in_group(struct pf_build *b, const struct group *g,
                            const char *planes) {
  size_t n_by_kind[PF_KIND_COPY + 1] = {0};
  bool has_z = false;
  uint8_t unwanted;
  for (size_t i = 0; i < g->n; i++)
    has_z = has_z || slice_at(b, g->first + i)->value[PF_Z] != PF_NO_VALUE;
  for (size_t i = 0; i < g->n; i++) {
    struct pf_slice *slice = slice_at(b, g->first + i);
    if (has_z && slice->value[PF_Z] == PF_NO_VALUE)
      slice->kind = PF_KIND_PROJECTION;
    n_by_kind[slice->kind]++;
  }
  if (strcmp(planes, "both") == 0 || !n_by_kind[PF_KIND_SLICE] ||
      !n_by_kind[PF_KIND_PROJECTION])
    return;
  unwanted =
      strcmp(planes, "slices") == 0 ? PF_KIND_PROJECTION : PF_KIND_SLICE;
  for (size_t i = 0; i < g->n; i++)
    if (slice_at(b, g->first + i)->kind == unwanted)
      slice_at(b, g->first + i)->kind |= PF_KIND_UNCHOSEN;
}

int pf_build_choose_kinds(struct pf_build *build) {
  static const int by[] = {PF_PLATE, PF_CHANNEL, PF_ORDER_END};
  const char *planes =
      build->options->planes ? build->options->planes : "slices";
  struct group g = {0, 0};
  int result = pf_build_order(build, by);
  while (result == PF_OK && next_group(build, &g, false))
    choose_in_group(build, &g, planes);
  return result;
}

/* The number of a format, added if new; NO_FORMAT where there are too many. */
static uint16_t add_format(struct pf_plate *plate,
                           const struct pf_tiff_header *header) {
  struct pf_format format = {header->width, header->height, header->dtype};
  struct pf_format *formats;
  for (size_t i = 0; i < plate->n_formats; i++)
    if (plate->formats[i].width == format.width &&
        plate->formats[i].height == format.height &&
        plate->formats[i].dtype == format.dtype)
      return (uint16_t)i;
  if (plate->n_formats == NO_FORMAT)
    return NO_FORMAT;
  formats = realloc(plate->formats, (plate->n_formats + 1) * sizeof(*formats));
  if (!formats)
    return NO_FORMAT;
  plate->formats = formats;
  formats[plate->n_formats] = format;
  return (uint16_t)plate->n_formats++;
}

/* Likewise for how pages are laid out; UINT32_MAX without memory. */
static uint32_t add_paging(struct sampler *s, struct pf_paging paging) {
  for (size_t i = 0; i < s->n_pagings; i++)
    if (memcmp(&s->pagings[i], &paging, sizeof(paging)) == 0)
      return (uint32_t)i;
  if (s->n_pagings == s->cap_pagings) {
    size_t cap = s->cap_pagings ? s->cap_pagings * 2 : 8;
    struct pf_paging *pagings = realloc(s->pagings, cap * sizeof(*pagings));
    if (!pagings)
      return UINT32_MAX;
    s->pagings = pagings;
    s->cap_pagings = cap;
  }
  s->pagings[s->n_pagings] = paging;
  return (uint32_t)s->n_pagings++;
}

/* What one header says about a slice. */
struct sampled {
  uint16_t format;
  uint32_t paging;
};

static int read_sample(struct sampler *s, const struct pf_slice *slice,
                       struct sampled *out, struct pf_error *err) {
  struct pf_tiff_header header = {0};
  char *path = pf_plate_path(s->build->plate, slice);
  int result;
  if (!path)
    return pf_error_set(err, PF_ENOMEM, "out of memory");
  result = pf_tiff_read_header(&header, path, MAX_PAGES, err);
  free(path);
  if (result != PF_OK)
    return result;
  out->format = add_format(s->build->plate, &header);
  out->paging = add_paging(s, pf_paging_of(&header, s->build->pages));
  pf_tiff_header_free(&header);
  if (out->format == NO_FORMAT)
    return pf_error_set(err, PF_EREAD, "the plate has too many image sizes");
  return out->paging == UINT32_MAX
             ? pf_error_set(err, PF_ENOMEM, "out of memory")
             : PF_OK;
}

static bool is_empty_file(const struct pf_build *b,
                          const struct pf_slice *slice) {
  char *path = pf_plate_path(b->plate, slice);
  struct stat st;
  bool empty =
      path && stat(path, &st) == 0 && S_ISREG(st.st_mode) && st.st_size == 0;
  free(path);
  return empty;
}

static void forget_reasons(struct sampler *s) {
  for (size_t i = 0; i < MAX_TRIES; i++) {
    free(s->reasons[i]);
    s->reasons[i] = NULL;
  }
  s->n_tried = 0;
}

static void remember_reason(struct sampler *s, size_t i, const char *text) {
  if (i >= MAX_TRIES)
    return;
  free(s->reasons[i]);
  s->reasons[i] = text ? strdup(text) : NULL;
}

/* The first file of the group whose header can be read. Empty files do not
 * count as tries: an acquisition that is still being copied has many. */
static int find_sample(struct sampler *s, const struct group *g,
                       struct sampled *found) {
  forget_reasons(s);
  for (size_t i = 0; i < g->n && s->n_tried < MAX_TRIES; i++) {
    const struct pf_slice *slice = slice_at(s->build, g->first + i);
    struct pf_error err = PF_ERROR_INIT;
    int result;
    if (i >= MAX_TRIES / 8 && is_empty_file(s->build, slice))
      continue;
    result = read_sample(s, slice, found, &err);
    if (result == PF_OK)
      return PF_OK;
    remember_reason(s, i, err.message);
    s->n_tried++;
    pf_error_clear(&err);
    if (result == PF_ENOMEM)
      return result;
  }
  return PF_EREAD;
}

/* No file of the group can be read: leave all of it out, each file that was
 * looked at with its own reason. */
static void drop_group(struct sampler *s, const struct group *g) {
  struct pf_buf other = {0};
  pf_buf_str(&other, "no image of its channel could be read");
  if (s->reasons[0])
    pf_buf_printf(&other, " (%s)", s->reasons[0]);
  for (size_t i = 0; i < g->n; i++) {
    const char *own = i < MAX_TRIES ? s->reasons[i] : NULL;
    pf_build_drop(s->build, slice_at(s->build, g->first + i),
                  own ? own : pf_buf_text(&other));
  }
  pf_buf_free(&other);
}

static int sample_group(struct sampler *s, const struct group *g) {
  struct sampled found = {0, 0};
  int result = find_sample(s, g, &found);
  if (result == PF_EREAD) {
    drop_group(s, g);
    return PF_OK;
  }
  for (size_t i = 0; i < g->n && result == PF_OK; i++) {
    slice_at(s->build, g->first + i)->format = found.format;
    slice_at(s->build, g->first + i)->page = found.paging;
  }
  return result;
}

/* One file of a group whose files are all opened. A broken one stays, to fail
 * when it is read; a refused one, and with `deep` every one, is left out. */
static int sample_one(struct sampler *s, struct pf_slice *slice,
                      struct sampled *last_good, bool *has_good) {
  struct sampled found = {NO_FORMAT, 0};
  struct pf_error err = PF_ERROR_INIT;
  int result = read_sample(s, slice, &found, &err);
  if (result == PF_OK) {
    *last_good = found;
    *has_good = true;
  } else if (result != PF_ENOMEM &&
             (s->build->options->deep || result == PF_EINVAL)) {
    pf_build_drop(s->build, slice, err.message);
  }
  slice->format = found.format;
  slice->page = found.paging;
  if (result != PF_OK && !(slice->kind & PF_KIND_DROPPED))
    remember_reason(s, s->n_tried++, err.message);
  pf_error_clear(&err);
  return result == PF_ENOMEM ? result : PF_OK;
}

static int sample_each(struct sampler *s, const struct group *g) {
  struct sampled good = {0, 0};
  struct pf_paging one_page = {1, 1, 1};
  uint32_t single = add_paging(s, one_page);
  bool has_good = false;
  size_t n_failed = 0;
  int result = single == UINT32_MAX ? PF_ENOMEM : PF_OK;
  forget_reasons(s);
  for (size_t i = 0; i < g->n && result == PF_OK; i++)
    result = sample_one(s, slice_at(s->build, g->first + i), &good, &has_good);
  for (size_t i = 0; i < g->n && result == PF_OK; i++) {
    struct pf_slice *slice = slice_at(s->build, g->first + i);
    if (slice->format != NO_FORMAT || slice->kind & PF_KIND_DROPPED)
      continue;
    slice->format = good.format;
    slice->page = single;
    if (!has_good)
      pf_build_drop(s->build, slice,
                    n_failed < MAX_TRIES && s->reasons[n_failed]
                        ? s->reasons[n_failed]
                        : "its header cannot be read");
    n_failed++;
  }
  return result;
}

int pf_build_sample(struct pf_build *build) {
  static const int by[] = {PF_PLATE, PF_CHANNEL,  PF_ORDER_KIND,
                           PF_WELL,  PF_SITE,     PF_TIMEPOINT,
                           PF_Z,     PF_ORDER_END};
  struct sampler s = {.build = build};
  struct group g = {0, 0};
  struct pf_paging one_page = {1, 1, 1};
  bool each = build->plate->layout->open_each || build->options->deep;
  int result = pf_build_order(build, by);
  /* Number 0 is "one page": what unchosen slices have. */
  if (result == PF_OK && add_paging(&s, one_page) != 0)
    result = PF_ENOMEM;
  while (result == PF_OK && next_group(build, &g, true))
    if (!(slice_at(build, g.first)->kind & PF_KIND_UNCHOSEN))
      result = each ? sample_each(&s, &g) : sample_group(&s, &g);
  forget_reasons(&s);
  if (result == PF_OK)
    result = pf_build_expand(build, s.pagings);
  free(s.pagings);
  return result == PF_ENOMEM ? pf_build_no_memory(build) : result;
}
