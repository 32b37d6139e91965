/* The table of layouts, the most telling names first: see layout.h. */
#include "engine/plate/layouts/table.h"

#include <string.h>

#include "bridge/json.h"

static const struct pf_layout *const table[] = {
    &pf_layout_imagexpress, &pf_layout_opera_phenix, &pf_layout_cv8000,
    &pf_layout_cellomics,   &pf_layout_scanr,        &pf_layout_sbs,
    &pf_layout_incell,      &pf_layout_micromanager, &pf_layout_plain,
    &pf_layout_pattern,
};
enum { N_LAYOUTS = sizeof(table) / sizeof(table[0]) };

const struct pf_layout *pf_layout_at(size_t i) {
  return i < N_LAYOUTS ? table[i] : NULL;
}

const struct pf_layout *pf_layout_find(const char *name,
                                       const char **nearest) {
  const char *names[N_LAYOUTS + 1] = {"auto"};
  *nearest = NULL;
  for (size_t i = 0; i < N_LAYOUTS; i++) {
    if (strcmp(table[i]->name, name) == 0)
      return table[i];
    names[i + 1] = table[i]->name;
  }
  *nearest = pf_nearest_word(name, names, N_LAYOUTS + 1);
  return NULL;
}
