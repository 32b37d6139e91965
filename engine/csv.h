/*
 * A CSV file that appears complete or not at all. Rows go through a stdio
 * buffer into a temporary beside the file; nothing grows with their number.
 * A failed write is remembered and becomes the error of pf_csv_close().
 * One thread at a time.
 */
#ifndef PF_CSV_H
#define PF_CSV_H

#include <stdbool.h>
#include <stdio.h>

#include "plateflow/error.h"

struct pf_csv {
  FILE *file;
  char *temporary, *path;
  const char *name; /* below OUT; borrowed */
  bool at_start;    /* of a line */
  int saved_errno;  /* of the first failed write; 0: none */
};

/* Make OUT/NAME and its folders. pf_csv_close() follows in any case. */
int pf_csv_open(struct pf_csv *csv, const char *out_dir, const char *name,
                struct pf_error *err) PF_MUST_CHECK;
/* One cell; NULL is an empty one. Quoted where it must be (RFC 4180). */
void pf_csv_text(struct pf_csv *csv, const char *text);
/* The shortest decimal that reads back as the same double; NaN is empty. The
 * thread's locale must write a point. */
void pf_csv_real(struct pf_csv *csv, double x);
void pf_csv_int(struct pf_csv *csv, long long x);
void pf_csv_line(struct pf_csv *csv);
/* Rename into place if `result` and all writes are PF_OK, else remove.
 * Returns `result`, or the error of writing. */
int pf_csv_close(struct pf_csv *csv, int result,
                 struct pf_error *err) PF_MUST_CHECK;

#endif
