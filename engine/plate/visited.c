/* Folders entered: see engine/plate/visited.h. */
#include "engine/plate/visited.h"

#include <stdlib.h>
#include <string.h>

struct pf_folder_id {
  uint64_t device, inode;
  bool used, holds_plate;
};

static struct pf_folder_id *find_slot(const struct pf_visited *set,
                                      uint64_t device, uint64_t inode) {
  /* Fibonacci hashing: inodes of one disk are small and close together. */
  size_t at = (size_t)((inode ^ device * 31) * 0x9e3779b97f4a7c15u >> 20);
  for (;; at++) {
    struct pf_folder_id *slot = &set->slot[at & (set->n_slots - 1)];
    if (!slot->used || (slot->device == device && slot->inode == inode))
      return slot;
  }
}

static bool grow(struct pf_visited *set) {
  struct pf_visited grown = {.n = set->n,
                             .n_slots = set->n_slots ? set->n_slots * 2 : 64};
  grown.slot = calloc(grown.n_slots, sizeof(*grown.slot));
  if (!grown.slot)
    return false;
  for (size_t i = 0; i < set->n_slots; i++)
    if (set->slot[i].used)
      *find_slot(&grown, set->slot[i].device, set->slot[i].inode) =
          set->slot[i];
  free(set->slot);
  *set = grown;
  return true;
}

enum pf_visit pf_visited_add(struct pf_visited *set, const struct stat *st,
                             bool holds_plate) {
  struct pf_folder_id id = {(uint64_t)st->st_dev, (uint64_t)st->st_ino, true,
                            holds_plate};
  struct pf_folder_id *slot;
  if (set->n * 2 >= set->n_slots && !grow(set))
    return PF_VISIT_NO_MEMORY;
  slot = find_slot(set, id.device, id.inode);
  if (slot->used)
    return slot->holds_plate ? PF_VISIT_HOLDS_PLATE : PF_VISIT_AGAIN;
  *slot = id;
  set->n++;
  return PF_VISIT_FIRST;
}

bool pf_visited_add_ancestors(struct pf_visited *set, const char *root) {
  char *path = strdup(root), *slash;
  bool ok = path != NULL;
  struct stat st;
  while (ok && strcmp(path, "/") != 0 && (slash = strrchr(path, '/'))) {
    *slash = '\0';
    if (stat(*path ? path : "/", &st) == 0)
      ok = pf_visited_add(set, &st, true) != PF_VISIT_NO_MEMORY;
  }
  free(path);
  return ok;
}

void pf_visited_finish(struct pf_visited *set) {
  free(set->slot);
  *set = (struct pf_visited){0};
}
