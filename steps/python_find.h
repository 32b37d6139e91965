/*
 * Which Python: choosing an interpreter and asking it what it is. GIL not
 * held. Only steps/python*.c include this.
 */
#ifndef PF_PYTHON_FIND_H
#define PF_PYTHON_FIND_H

#include "plateflow/error.h"

/* An interpreter that answered. The strings are owned. */
struct pf_python_found {
  char *executable; /* as it calls itself (sys.executable) */
  char *version;    /* "3.11", with the letters of unusual builds: "3.13t" */
  char *library;    /* libpython, absolute; NULL where it is built in */
};
void pf_python_found_clear(struct pf_python_found *found);

/*
 * The interpreter for `python` (an interpreter, a folder with one, or NULL: as
 * pf_python_start() says), of the version that the glue was built for.
 * Errors: PF_EMISSING with what was looked for and what to do, PF_ENOMEM.
 */
int pf_python_find(struct pf_python_found *found, const char *python,
                   struct pf_error *err) PF_MUST_CHECK;

/*
 * The folder that holds the package `plateflow` with the glue module of this
 * copy of the library, and the module itself; both malloc'd. PF_EMISSING where
 * there is none.
 */
int pf_python_package(char **package_dir, char **glue,
                      struct pf_error *err) PF_MUST_CHECK;

#endif
