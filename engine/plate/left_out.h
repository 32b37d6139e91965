/*
 * What a plate left out and why: paths in one block, each reason kept once. A
 * zeroed struct is empty; running out of memory is remembered until
 * pf_leftovers_close() says so. One thread at a time until closed.
 */
#ifndef PF_LEFT_OUT_H
#define PF_LEFT_OUT_H

#include "bridge/buf.h"
#include "bridge/strmap.h"
#include "plateflow/plate.h"

struct pf_leftover {
  size_t path;     /* offset in `paths` */
  uint32_t reason; /* in `reasons` */
};

struct pf_leftovers {
  struct pf_buf paths;
  struct pf_strmap reasons;
  struct pf_leftover *items;
  size_t n, cap;
  bool failed;
  struct pf_left_out *list; /* after closing, sorted by path */
};

void pf_leftovers_add(struct pf_leftovers *left, const char *folder,
                      const char *name, const char *reason);
/* Make `list`; nothing can be added after it. */
int pf_leftovers_close(struct pf_leftovers *left);
void pf_leftovers_finish(struct pf_leftovers *left);

#endif
