/*
 * Finding and starting the interpreter (without linking it). GIL not held.
 */
#ifndef PF_PYTHON_H
#define PF_PYTHON_H

#include <stdbool.h>
#include <stddef.h>

#include "plateflow/error.h"

struct pf_python_options {
  const char *python; /* --python: an interpreter or an environment's folder */
  int threads; /* inner threads of numerical libraries (env); 0: not said */
  /* Frameworks whose arrays steps take: imported, where they are installed,
   * before any user code and in their entries' order. */
  size_t n_frameworks;
  const char *const *frameworks;
};

/*
 * Where the chosen Python has no libpython.so, replace this process by that
 * Python, which loads the same library and runs the same command; returns
 * PF_OK where there is no need. For the program (never where an interpreter
 * was adopted), on the main thread, before any thread starts and anything is
 * written. `argv` is main()'s. Errors: as pf_python_start().
 */
PF_API int pf_python_reexec(const struct pf_python_options *options,
                            char *const *argv,
                            struct pf_error *err) PF_MUST_CHECK;
/*
 * Start the interpreter once per process (a second call does nothing; an
 * adopted interpreter counts as started). Chooses --python, then
 * PLATEFLOW_PYTHON, then the environment that the program is installed in,
 * then the one it was built with. Must be called on the main thread before
 * workers start; leaves the GIL released.
 * Errors: PF_EMISSING with what was looked for and what to do.
 */
PF_API int pf_python_start(const struct pf_python_options *options,
                           struct pf_error *err) PF_MUST_CHECK;
/* Whether `import name` would find something in the interpreter that runs;
 * nothing is imported. True where none runs. */
PF_API bool pf_python_has_module(const char *name);
/* Flush what steps printed, run atexit, drop queued objects; the interpreter
 * is not finalised. No-op where none runs. */
PF_API void pf_python_finish(void);

/*
 * Look at user code in a child process: nothing of it runs in this one. The
 * request is one JSON object, *answer the malloc'd JSON that came back; both
 * are described in steps/python/plateflow/_describe.py. Main thread only.
 * Errors: as pf_python_start(); PF_ESTEP if the child died of what it read.
 */
PF_API int pf_python_describe(char **answer,
                              const struct pf_python_options *options,
                              const char *request,
                              struct pf_error *err) PF_MUST_CHECK;

#endif
