/* What an opened plate says: see include/plateflow/plate.h. */
#include "plateflow/plate.h"

#include <stdlib.h>
#include <string.h>

#include "bridge/os.h"
#include "engine/plate/index.h"

static const char *const component_names[] = {
#define XX(name, word) word,
    PF_COMPONENT_MAP(XX)
#undef XX
};

const char *pf_component_name(enum pf_component component) {
  return (unsigned)component < PF_N_COMPONENTS ? component_names[component]
                                               : "";
}

enum pf_component pf_component_find(const char *word) {
  for (int c = 0; c < PF_N_COMPONENTS; c++)
    if (strcmp(component_names[c], word) == 0)
      return (enum pf_component)c;
  return PF_N_COMPONENTS;
}

void pf_plate_unref(struct pf_plate **plate) {
  struct pf_plate *p = *plate;
  *plate = NULL;
  if (!p || atomic_fetch_sub(&p->n_refs, 1) != 1)
    return;
  for (uint32_t r = 0; p->channel_names && r < p->values[PF_CHANNEL].n; r++)
    free(p->channel_names[r]);
  free(p->channel_names);
  for (int c = 0; c < PF_N_COMPONENTS; c++)
    pf_values_finish(&p->values[c]);
  pf_tree_finish(&p->tree);
  pf_leftovers_finish(&p->left);
  pf_regex_free(p->regex);
  free(p->evidence);
  free(p->slices);
  free(p->formats);
  free(p->page_components);
  free(p->n_in_file);
  free(p);
}

const char *pf_plate_root(const struct pf_plate *plate) {
  return plate->tree.root;
}

const char *pf_plate_layout(const struct pf_plate *plate) {
  return plate->layout->name;
}

const char *pf_plate_evidence(const struct pf_plate *plate) {
  return plate->evidence;
}

size_t pf_plate_n_slices(const struct pf_plate *plate) {
  return plate->n_slices;
}

const struct pf_slice *pf_plate_slices(const struct pf_plate *plate) {
  return plate->slices;
}

size_t pf_plate_n_formats(const struct pf_plate *plate) {
  return plate->n_formats;
}

const struct pf_format *pf_plate_format(const struct pf_plate *plate,
                                        uint16_t format) {
  return &plate->formats[format];
}

bool pf_plate_has(const struct pf_plate *plate, enum pf_component component) {
  return plate->values[component].n > 0;
}

uint32_t pf_plate_n_values(const struct pf_plate *plate,
                           enum pf_component component) {
  return plate->values[component].n;
}

const char *pf_plate_value(const struct pf_plate *plate,
                           enum pf_component component, uint32_t rank) {
  if (rank >= plate->values[component].n)
    return "";
  if (component == PF_CHANNEL && plate->channel_names &&
      plate->channel_names[rank])
    return plate->channel_names[rank];
  return plate->values[component].text[rank];
}

static uint32_t find_text(const struct pf_values *values,
                          struct pf_text text) {
  int64_t id = pf_strmap_find(&values->ids, text.at, text.n);
  return id < 0 ? PF_NO_VALUE : values->rank[id];
}

uint32_t pf_plate_find(const struct pf_plate *plate,
                       enum pf_component component, const char *text) {
  const struct pf_values *values = &plate->values[component];
  struct pf_text exact = {text, (uint32_t)strlen(text)};
  uint32_t rank;
  char well[16];
  for (uint32_t r = 0;
       component == PF_CHANNEL && plate->channel_names && r < values->n; r++)
    if (plate->channel_names[r] && strcmp(plate->channel_names[r], text) == 0)
      return r;
  rank = find_text(values, exact);
  return rank != PF_NO_VALUE
             ? rank
             : find_text(values, pf_value_canonical(component, exact, well));
}

char *pf_plate_relative_path(const struct pf_plate *plate,
                             const struct pf_slice *slice) {
  return pf_os_join(pf_tree_folder(&plate->tree, slice->file),
                    pf_tree_name(&plate->tree, slice->file));
}

char *pf_plate_path(const struct pf_plate *plate,
                    const struct pf_slice *slice) {
  const char *root = plate->tree.root;
  const char *folder = pf_tree_folder(&plate->tree, slice->file);
  const char *name = pf_tree_name(&plate->tree, slice->file);
  size_t n_root = strlen(root), n_folder = strlen(folder);
  size_t n_name = strlen(name);
  char *path = malloc(n_root + n_folder + n_name + 3), *p = path;
  if (!path)
    return NULL;
  p = (char *)memcpy(p, root, n_root) + n_root;
  if (n_root && p[-1] != '/')
    *p++ = '/';
  p = (char *)memcpy(p, folder, n_folder) + n_folder;
  if (n_folder)
    *p++ = '/';
  memcpy(p, name, n_name + 1);
  return path;
}

uint32_t pf_plate_n_slices_in_file(const struct pf_plate *plate,
                                   uint32_t file) {
  return plate->n_in_file[file];
}

size_t pf_plate_n_left_out(const struct pf_plate *plate) {
  return plate->left.n;
}

const struct pf_left_out *pf_plate_left_out(const struct pf_plate *plate,
                                            size_t i) {
  return &plate->left.list[i];
}
