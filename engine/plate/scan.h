/*
 * Walk a plate's folder once: every TIFF name, compactly, and what was passed
 * over. Nothing is opened but folders; files are asked for their kind only
 * where the folder does not say it. One thread at a time.
 */
#ifndef PF_SCAN_H
#define PF_SCAN_H

#include "engine/plate/left_out.h"

struct pf_file {
  uint32_t folder; /* index */
  uint32_t name;   /* offset in `names` */
};

struct pf_tree {
  char *root;            /* absolute, links resolved */
  struct pf_buf names;   /* of the files, each with its NUL */
  struct pf_file *files; /* those of one folder stand together */
  uint32_t n_files, cap_files;
  struct pf_buf folder_paths; /* relative to the root, "" for itself */
  size_t *folders;            /* offsets in `folder_paths` */
  uint32_t n_folders, cap_folders;
};

int pf_tree_scan(struct pf_tree *tree, const char *path,
                 struct pf_leftovers *left,
                 struct pf_error *err) PF_MUST_CHECK;
void pf_tree_finish(struct pf_tree *tree);

const char *pf_tree_name(const struct pf_tree *tree, uint32_t file);
/* Relative folder of a file. */
const char *pf_tree_folder(const struct pf_tree *tree, uint32_t file);

#endif
