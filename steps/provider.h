/*
 * What the Python side gives to pf_step_open() and friends: one table of
 * functions, set by the glue library when it is loaded, so that libplateflow
 * links no libpython. All are called without the GIL.
 */
#ifndef PF_PROVIDER_H
#define PF_PROVIDER_H

#include "plateflow/step.h"

struct pf_python_ops {
  /* `function` is "package.module:name" or "./file.py:name". *handle owns. */
  int (*open)(void **handle, struct pf_step_traits *traits,
              const char *function, const char *base_dir,
              struct pf_error *err);
  void (*close)(void *handle);
  int (*check_params)(void *handle, const struct pf_json_doc *doc,
                      const struct cJSON *params, const char *const *with,
                      size_t n_with, pf_param_report *report, void *context,
                      struct pf_error *err);
  int (*make)(void **instance, void *handle, const struct pf_json_doc *doc,
              const struct cJSON *params, struct pf_error *err);
  int (*call)(void *instance, const struct pf_call *call,
              struct pf_result *result, struct pf_error *err);
  void (*drop)(void *instance);
  int (*thread_start)(struct pf_error *err);
  void (*thread_stop)(void);
  /* One line of JSON: {"python": "3.11.7", "executable": ..., "packages":
   * {"numpy": "2.4.6"}} of what is imported now; malloc'd. */
  int (*versions)(char **out, struct pf_error *err);
  /* Flush sys.stdout and stderr, run atexit (not in an interpreter that was
   * adopted), drop queued objects. */
  void (*finish)(void);
  /* In an adopted interpreter: whether Ctrl-C was pressed since the call from
   * Python began. For the thread that runs the command, now and then. */
  bool (*interrupted)(void);
  /* Import the named frameworks that are installed, in their entries' order,
   * so that user code finds them imported. */
  int (*prepare)(const char *const *names, size_t n, struct pf_error *err);
  /* Whether `import name` would find something. */
  bool (*has_module)(const char *name);
};

/* Set once, by the glue, before any step is opened. */
PF_API void pf_python_register(const struct pf_python_ops *ops);
/* NULL while no interpreter runs. */
PF_API const struct pf_python_ops *pf_python_ops(void);

/* The address of one constant of this library: two callers that see the same
 * one share the library, its pool and its registry. */
PF_API const void *pf_core_address(void);

/*
 * How the program starts the interpreter inside the glue module, which it
 * loads with dlopen() after libpython: by the symbol PF_GLUE_START.
 */
struct pf_glue_options {
  const char *executable;  /* of the environment; its prefix follows from it */
  const char *package_dir; /* holds the folder plateflow/ of this module */
  const void *core;        /* the starter's pf_core_address() */
};
#define PF_GLUE_START "pf_glue_start"
typedef int pf_glue_start_function(const struct pf_glue_options *options,
                                   struct pf_error *err);

#endif
