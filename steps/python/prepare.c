/* Frameworks before the first step: see glue.h. GIL not held. */
#include "steps/python/framework.h"

#include <stdlib.h>
#include <string.h>

int pf_glue_inner_threads = 1;

/* True also where that could not be found out: the import will tell. GIL
 * held. */
static bool is_installed(const char *name) {
  PyObject *helper = pf_helper(PF_HELPER_HAS_MODULE);
  PyObject *answer = helper ? PyObject_CallFunction(helper, "s", name) : NULL;
  bool found = answer != Py_False;
  Py_XDECREF(answer);
  PyErr_Clear();
  return found;
}

bool pf_glue_has_module(const char *name) {
  struct pf_error ignored = PF_ERROR_INIT;
  struct pf_gil gil;
  bool found;
  if (pf_gil_enter(&gil, &ignored)) {
    pf_error_clear(&ignored);
    return true;
  }
  found = is_installed(name);
  pf_gil_leave(&gil);
  return found;
}

static bool is_named(const struct pf_framework *entry,
                     const char *const *names, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (strcmp(names[i], entry->name) == 0)
      return true;
  return false;
}

static int prepare_held(const char *const *names, size_t n,
                        struct pf_error *err) {
  const struct pf_frameworks *all;
  if (pf_runtimes_load() < 0)
    return pf_glue_error(err, PF_EINVAL);
  all = pf_frameworks_get();
  for (size_t i = 0; i < all->n; i++) {
    const struct pf_framework *entry = all->entries[i];
    struct pf_runtime *runtime;
    if (!is_named(entry, names, n) || !is_installed(entry->import))
      continue;
    runtime = pf_runtime_of_type(entry->type);
    if (!runtime || pf_runtime_ready(runtime) < 0) {
      int code = pf_glue_error(err, PF_EMISSING);
      pf_error_prefix(err, "cannot import %s", entry->import);
      return code;
    }
  }
  return PF_OK;
}

int pf_glue_prepare(const char *const *names, size_t n, struct pf_error *err) {
  const char *text = getenv("OMP_NUM_THREADS");
  long threads = text ? strtol(text, NULL, 10) : 1;
  struct pf_gil gil;
  int code = pf_gil_enter(&gil, err);
  if (code)
    return code;
  pf_glue_inner_threads = threads > 0 && threads < 4096 ? (int)threads : 1;
  code = prepare_held(names, n, err);
  pf_gil_leave(&gil);
  return code;
}
