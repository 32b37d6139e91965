/* Which plates there are, their slices in order, and none twice. */
#include <string.h>

#include "bridge/buf.h"
#include "engine/plate/index.h"

static int sort_slices(struct pf_build *build) {
  static const int by[] = {PF_PLATE,   PF_WELL, PF_SITE,       PF_TIMEPOINT,
                           PF_CHANNEL, PF_Z,    PF_ORDER_KIND, PF_ORDER_END};
  int result = pf_build_rank_values(build, false);
  if (result == PF_OK)
    result = pf_build_order(build, by);
  return result == PF_OK ? pf_build_apply_order(build) : result;
}

static bool are_one_slice(const struct pf_build *build,
                          const struct pf_slice *a, const struct pf_slice *b) {
  if ((a->kind & PF_KIND_MASK) != (b->kind & PF_KIND_MASK))
    return false;
  for (int c = PF_N_COMPONENTS; c-- > 0;)
    if (pf_build_rank(build, a, c) != pf_build_rank(build, b, c))
      return false;
  return true;
}

static void add_file_name(const struct pf_plate *plate, uint32_t file,
                          struct pf_buf *out) {
  const char *folder = pf_tree_folder(&plate->tree, file);
  pf_buf_name(out, folder);
  if (*folder)
    pf_buf_char(out, '/');
  pf_buf_name(out, pf_tree_name(&plate->tree, file));
}

static int duplicate_error(struct pf_build *build, const struct pf_slice *a,
                           const struct pf_slice *b) {
  struct pf_plate *plate = build->plate;
  struct pf_buf names[2] = {{0}, {0}}, what = {0};
  int first;
  add_file_name(plate, a->file, &names[0]);
  add_file_name(plate, b->file, &names[1]);
  first = strcmp(pf_buf_text(&names[0]), pf_buf_text(&names[1])) > 0;
  for (int c = 0; c < PF_N_COMPONENTS; c++) {
    uint32_t rank = pf_build_rank(build, a, c);
    if (rank == PF_NO_VALUE)
      continue;
    pf_buf_printf(&what, "%s%s ", what.len ? ", " : "",
                  pf_component_name((enum pf_component)c));
    pf_buf_name(&what, plate->values[c].text[rank]);
  }
  (void)pf_error_set(build->err, PF_EINVAL,
                     "two files are one slice (%s): %s and %s; take one of "
                     "them out of the folder, or say by a \"pattern\" what "
                     "tells them apart",
                     pf_buf_text(&what), pf_buf_text(&names[first]),
                     pf_buf_text(&names[!first]));
  pf_buf_free(&names[0]);
  pf_buf_free(&names[1]);
  pf_buf_free(&what);
  return PF_EINVAL;
}

/* Sorted slices: no two files for one slice. Where plates of one name lie in
 * folders side by side, they are made several and *again says to sort anew. */
static int check_duplicates(struct pf_build *build, bool *again) {
  const struct pf_slice *slices = build->plate->slices;
  *again = false;
  for (size_t i = 1; i < build->plate->n_slices; i++) {
    const struct pf_slice *a = &slices[i - 1], *b = &slices[i];
    if (!are_one_slice(build, a, b))
      continue;
    if (!pf_candidates_split(build, a->value[PF_PLATE], b->value[PF_PLATE]))
      return duplicate_error(build, a, b);
    *again = true;
  }
  return PF_OK;
}

int pf_build_settle(struct pf_build *build) {
  bool again = true;
  int result = PF_OK;
  while (again && result == PF_OK) {
    result = pf_candidates_resolve(build);
    if (result == PF_OK)
      result = sort_slices(build);
    if (result == PF_OK)
      result = check_duplicates(build, &again);
  }
  return result;
}
