/* One constant per file of this folder. A new layout is a file with a struct,
 * a line here, and its row in table.c. */
#ifndef PF_LAYOUTS_TABLE_H
#define PF_LAYOUTS_TABLE_H

#include "engine/plate/layout.h"

extern const struct pf_layout pf_layout_imagexpress;
extern const struct pf_layout pf_layout_opera_phenix;
extern const struct pf_layout pf_layout_cv8000;
extern const struct pf_layout pf_layout_cellomics;
extern const struct pf_layout pf_layout_scanr;
extern const struct pf_layout pf_layout_sbs;
extern const struct pf_layout pf_layout_incell;
extern const struct pf_layout pf_layout_micromanager;
extern const struct pf_layout pf_layout_plain;
extern const struct pf_layout pf_layout_pattern;

/* Parts that several expressions share. Wells go to AF48, so that "ch01" and
 * "img12" are none. */
#define PF_RX_WELL "(?<well>(?:A[A-F]|[A-Z])(?:0?[1-9]|[1-4][0-9]))"
#define PF_RX_WELL_2 "(?<well>(?:A[A-F]|[A-Z])(?:0[1-9]|[1-4][0-9]))"
#define PF_RX_PLATE "(?:(?<plate>.+?)_)?"
#define PF_RX_GUID                                                            \
  "(?<guid>_?\\[?[0-9A-F]{8}(?:-[0-9A-F]{4}){3}-[0-9A-F]{12}\\]?)"
#define PF_RX_TIF "(?:\\.ome)?\\.tiff?$"

#endif
