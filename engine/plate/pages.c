/* Pages of multi-page files become slices: see engine/plate/index.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bridge/buf.h"
#include "engine/plate/index.h"
#include "engine/plate/tiff.h"

/* What an index may hold: some 4 GB of memory. Pages times files that claim
 * more are no plate. */
enum { MAX_SLICES = 100000000 };

struct pf_paging pf_paging_of(const struct pf_tiff_header *header,
                              enum pf_component pages) {
  uint32_t n = header->n_pages ? header->n_pages : 1;
  uint64_t channels = header->ij_channels ? header->ij_channels : 1;
  uint64_t z = header->ij_slices ? header->ij_slices : 1;
  uint64_t frames = header->ij_frames ? header->ij_frames : 1;
  struct pf_paging paging = {1, 1, 1};
  if (pages == PF_CHANNEL)
    paging.n_channels = n;
  else if (pages == PF_TIMEPOINT)
    paging.n_timepoints = n;
  else if (pages == PF_N_COMPONENTS && channels <= n && z <= n &&
           frames <= n && channels * z <= n && channels * z * frames == n)
    return (struct pf_paging){(uint32_t)channels, (uint32_t)z,
                              (uint32_t)frames};
  else /* also where the description contradicts the file */
    paging.n_z = n;
  return paging;
}

static unsigned components_of(const struct pf_paging *paging) {
  return (paging->n_channels > 1 ? 1u << PF_CHANNEL : 0) |
         (paging->n_z > 1 ? 1u << PF_Z : 0) |
         (paging->n_timepoints > 1 ? 1u << PF_TIMEPOINT : 0);
}

static size_t n_pages_of(const struct pf_paging *paging) {
  return (size_t)paging->n_channels * paging->n_z * paging->n_timepoints;
}

/* The name gives a component that the pages would give, too. */
static int both_say(struct pf_build *build, const struct pf_slice *slice,
                    unsigned both, size_t n_pages) {
  const struct pf_tree *tree = &build->plate->tree;
  struct pf_buf name = {0};
  int c = 0;
  while (!(both & 1u << c))
    c++;
  pf_buf_name(&name, pf_tree_name(tree, slice->file));
  (void)pf_error_set(build->err, PF_EINVAL,
                     "%s holds %zu pages, taken as %s, but its name gives the "
                     "%s too; say what its pages are with \"pages\": \"z\", "
                     "\"channel\" or \"timepoint\"",
                     pf_buf_text(&name), n_pages,
                     pf_component_name((enum pf_component)c),
                     pf_component_name((enum pf_component)c));
  pf_buf_free(&name);
  return PF_EINVAL;
}

static uint32_t number_id(struct pf_build *build, int c, uint32_t number) {
  char text[16];
  int n = snprintf(text, sizeof(text), "%u", number);
  return pf_values_add(&build->plate->values[c],
                       (struct pf_text){text, (uint32_t)n});
}

/* The slice of one page; channels vary fastest, then z, then time, as ImageJ
 * lays hyperstacks out. */
static bool page_slice(struct pf_build *build, struct pf_slice *slice,
                       const struct pf_paging *paging, uint32_t page) {
  const struct {
    int component;
    uint32_t n;
  } axes[] = {{PF_CHANNEL, paging->n_channels},
              {PF_Z, paging->n_z},
              {PF_TIMEPOINT, paging->n_timepoints}};
  uint32_t rest = page;
  slice->page = page;
  for (size_t a = 0; a < 3; a++) {
    int c = axes[a].component;
    if (axes[a].n > 1) {
      slice->value[c] = number_id(build, c, rest % axes[a].n + 1);
      if (slice->value[c] == PF_NO_VALUE)
        return false;
    }
    rest /= axes[a].n;
  }
  if (paging->n_z > 1)
    slice->kind = (uint8_t)((slice->kind & ~PF_KIND_MASK) | PF_KIND_SLICE);
  return true;
}

/* Count the pages of all slices and check that names do not say them. */
static int check_pages(struct pf_build *build, const struct pf_paging *pagings,
                       size_t *total) {
  struct pf_plate *plate = build->plate;
  *total = 0;
  for (size_t i = 0; i < plate->n_slices; i++) {
    const struct pf_slice *slice = &plate->slices[i];
    const struct pf_paging *paging = &pagings[slice->page];
    unsigned by_pages = components_of(paging), both = 0;
    *total += n_pages_of(paging);
    for (int c = 0; c < PF_N_COMPONENTS; c++)
      if (by_pages & 1u << c && slice->value[c] != PF_NO_VALUE)
        both |= 1u << c;
    if (both && !(slice->kind & ~PF_KIND_MASK))
      return both_say(build, slice, both, n_pages_of(paging));
    if (*total > MAX_SLICES)
      return pf_error_set(build->err, PF_EINVAL,
                          "the plate has more than %d images", MAX_SLICES);
  }
  return PF_OK;
}

int pf_build_expand(struct pf_build *build, const struct pf_paging *pagings) {
  struct pf_plate *plate = build->plate;
  struct pf_slice *expanded = NULL;
  size_t total = 0, n = 0;
  int result = check_pages(build, pagings, &total);
  if (result != PF_OK)
    return result;
  if (total == plate->n_slices) {
    for (size_t i = 0; i < total; i++)
      plate->slices[i].page = 0;
    return PF_OK;
  }
  expanded = malloc(total * sizeof(*expanded));
  if (!expanded)
    return pf_build_no_memory(build);
  for (size_t i = 0; i < plate->n_slices; i++) {
    const struct pf_slice *slice = &plate->slices[i];
    const struct pf_paging *paging = &pagings[slice->page];
    uint32_t n_pages = (uint32_t)n_pages_of(paging);
    plate->page_components[slice->file] = (uint8_t)components_of(paging);
    for (uint32_t page = 0; page < n_pages; page++) {
      expanded[n] = *slice;
      if (!page_slice(build, &expanded[n++], paging, page)) {
        free(expanded);
        return pf_build_no_memory(build);
      }
    }
  }
  free(plate->slices);
  plate->slices = expanded;
  plate->n_slices = total;
  return PF_OK;
}
