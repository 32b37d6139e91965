/* Choosing a layout: by name, or by what the names in the tree speak for. */
#ifndef PF_CHOOSE_H
#define PF_CHOOSE_H

#include "engine/plate/index.h"

/* Sets layout, regex and of_path; the tree has been scanned. The evidence is
 * set here only where no layout fits. */
int pf_choose_layout(struct pf_plate *plate,
                     const struct pf_plate_options *options,
                     struct pf_error *err) PF_MUST_CHECK;

#endif
