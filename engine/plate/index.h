/*
 * Inside a plate, for the files of engine/plate/ alone.
 *
 * While it is built, a slice's values are ids of its component's texts (for
 * the plate: of a candidate, see plates.c) and its kind may carry the KIND_
 * marks; at the end they are ranks and plain kinds.
 */
#ifndef PF_INDEX_H
#define PF_INDEX_H

#include <stdatomic.h>

#include "engine/plate/scan.h"
#include "engine/plate/values.h"

struct pf_plate {
  atomic_uint n_refs;
  struct pf_tree tree;
  const struct pf_layout *layout;
  struct pf_regex *regex;
  bool of_path; /* the expression is about the whole relative path */
  char *evidence;
  struct pf_values values[PF_N_COMPONENTS];
  char **channel_names; /* by rank; an entry may be NULL: no alias */
  struct pf_slice *slices;
  size_t n_slices;
  size_t n_by_kind[PF_KIND_COPY + 1]; /* before `planes` was applied */
  struct pf_format *formats;
  size_t n_formats;
  uint8_t *page_components; /* by file: bits that its pages tell apart */
  uint32_t *n_in_file;      /* by file: chosen slices */
  struct pf_leftovers left;
};

/* Marks beside the kind of a slice that will not be in the index. */
enum {
  PF_KIND_UNCHOSEN = 0x40, /* `planes` does not ask for it */
  PF_KIND_DROPPED = 0x80,  /* already among the left out */
  PF_KIND_MASK = 0x3f
};

/* One plate as names and folders suggest it: see plates.c. */
struct pf_candidate {
  size_t folder;  /* offset in `texts`: of its folder, "" for the root */
  size_t token;   /* likewise: its name in the file names, "" for none */
  uint32_t plate; /* id in values[PF_PLATE] */
};
struct pf_candidates {
  struct pf_strmap keys; /* folder, "//", token */
  struct pf_candidate *items;
  uint32_t cap;
  struct pf_buf texts;
  struct pf_strmap split; /* tokens that stand for a plate per folder */
};

struct pf_build {
  struct pf_plate *plate;
  const struct pf_plate_options *options;
  struct pf_candidates candidates;
  uint32_t *order; /* of slices; see pf_build_order() */
  struct pf_error *err;
  enum pf_component pages; /* from the options; PF_N_COMPONENTS: not said */
};

/* plates.c */
/* The candidate for a file's folder and token; PF_NO_VALUE without memory. */
uint32_t pf_candidate_add(struct pf_candidates *all, struct pf_text folder,
                          struct pf_text token);
/* Decide which candidates are one plate, and its name. */
int pf_candidates_resolve(struct pf_build *build);
/* Two files of these candidates are one slice if the candidates are one
 * plate: make them two if they lie in folders beside each other. */
bool pf_candidates_split(struct pf_build *build, uint32_t a, uint32_t b);
void pf_candidates_finish(struct pf_candidates *all);

/* order.c */
enum { PF_ORDER_KIND = PF_N_COMPONENTS, PF_ORDER_END };
uint32_t pf_build_rank(const struct pf_build *build,
                       const struct pf_slice *slice, int c);
/* Rank the values; all ids, or those of the slices. */
int pf_build_rank_values(struct pf_build *build, bool only_used);
/* Fill build->order: the slices' indices sorted by `by`, the first slowest,
 * ended by PF_ORDER_END. */
int pf_build_order(struct pf_build *build, const int *by);
/* Put the slices themselves into that order. */
int pf_build_apply_order(struct pf_build *build);

/* settle.c */
/* Decide which plates there are, sort the slices, refuse two files for one. */
int pf_build_settle(struct pf_build *build);

/* sample.c: kinds, headers, pages */
int pf_build_choose_kinds(struct pf_build *build);
int pf_build_sample(struct pf_build *build);
/* pages.c */
/* How a file's pages are laid out: counts of PF_TIMEPOINT, PF_CHANNEL, PF_Z
 * in n[]; the product is the number of pages. */
struct pf_paging {
  uint32_t n_channels, n_z, n_timepoints;
};
struct pf_tiff_header;
struct pf_paging pf_paging_of(const struct pf_tiff_header *header,
                              enum pf_component pages);
/* One slice per page; a slice's `page` is an index of `pagings`. */
int pf_build_expand(struct pf_build *build, const struct pf_paging *pagings);

/* Leave a slice's file out. */
void pf_build_drop(struct pf_build *build, struct pf_slice *slice,
                   const char *reason);
int pf_build_no_memory(struct pf_build *build);

/* output_name.c, inspect.c: what a name says, again. `parser` is filled. */
bool pf_plate_parse_again(const struct pf_plate *plate, uint32_t file,
                          struct pf_parser *parser, struct pf_parsed *parsed);

#endif
