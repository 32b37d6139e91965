/* The folders that a walk has entered, by device and inode. A zeroed struct is
 * empty. One thread at a time. */
#ifndef PF_VISITED_H
#define PF_VISITED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

struct pf_visited {
  struct pf_folder_id *slot; /* open addressing, at most half full */
  size_t n, n_slots;
};

enum pf_visit {
  PF_VISIT_FIRST,
  PF_VISIT_AGAIN,
  PF_VISIT_HOLDS_PLATE, /* entered as one of the ancestors */
  PF_VISIT_NO_MEMORY
};
/* Enter a folder, and say whether it was there before, and as what. */
enum pf_visit pf_visited_add(struct pf_visited *set, const struct stat *st,
                             bool holds_plate);
/* The folders above `root`: a link to one of them would lead back to it. */
bool pf_visited_add_ancestors(struct pf_visited *set, const char *root);
void pf_visited_finish(struct pf_visited *set);

#endif
