/*
 * What `plateflow inspect` tells of a plate: counts by component, sizes and
 * pixel types, what is missing, what was left out.
 *
 * Threads: the plate is only read. Errors: 0 or PF_ENOMEM (out->failed too).
 */
#ifndef PF_INSPECT_H
#define PF_INSPECT_H

#include "bridge/buf.h"
#include "plateflow/plate.h"

/* For people; `verbose` lists all values, gaps and left out files. */
int pf_inspect_text(const struct pf_plate *plate, bool verbose,
                    struct pf_buf *out);
/* One JSON object and a line feed. Absent components are null. */
int pf_inspect_json(const struct pf_plate *plate, struct pf_buf *out);

/* A channel and z (PF_NO_VALUE: none) that a field lacks and others of its
 * plate have. */
struct pf_missing {
  uint32_t channel, z;
};

/* A field (plate, well, site, timepoint) that is not complete. */
struct pf_incomplete_field {
  struct pf_slice first; /* a slice of it, for its components */
  size_t n_missing;
  size_t missing; /* where they start in `missing` of the report */
};

/* Gaps are counted all, but listed only up to these many. */
enum { PF_MAX_LISTED_FIELDS = 1000, PF_MAX_LISTED_MISSING = 100000 };

struct pf_inspect {
  size_t *n_by_format;                /* slices, by format */
  size_t n_kinds[PF_KIND_COPY + 1];   /* found; chosen or not */
  size_t n_files;                     /* that hold chosen slices */
  size_t n_fields, n_incomplete;      /* of all plates */
  struct pf_incomplete_field *fields; /* the first incomplete ones */
  size_t n_listed;
  struct pf_missing *missing;
  size_t n_missing, cap_missing;
};
int pf_plate_inspect(const struct pf_plate *plate, struct pf_inspect *out);
void pf_inspect_finish(struct pf_inspect *report);

#endif
