/*
 * Frameworks as data: one entry per framework of bridge/frameworks.json, and
 * of a file of the user's own (--frameworks, PLATEFLOW_FRAMEWORKS), which adds
 * entries or replaces whole ones. No code knows a framework by name.
 *
 * The C side reads and checks the entries; the Python glue acts on them.
 * Ownership: pf_frameworks_get() gives a table of the process that lives to
 * its end. Threads: constant once loaded.
 *
 * A call is {"function": NAME, "args": [...], "kwargs": {...}}. NAME is a
 * dotted name; its leading parts are modules, imported where they are not yet
 * loaded; a part with () behind it is called without arguments:
 * "cupy.get_default_memory_pool().free_all_blocks". Its first part may be
 * {array}, the array in hand: "{array}.block_until_ready". In an argument
 *   "{array}", "{capsule}", "{device}", "{stream}", "{threads}" alone stand
 *   for the object or the number, within a longer string for the number;
 *   {"function": ...} stands for what that call returns, {"value": NAME} for
 *   the object itself; lists and everything else stand for themselves.
 */
#ifndef PF_FRAMEWORKS_H
#define PF_FRAMEWORKS_H

#include "bridge/json.h"
#include "plateflow/array.h"

/* "torch.set_num_threads" with arguments; {threads}, {device}, {stream} are
 * filled in by whoever calls. */
struct pf_framework_call {
  const char *function;  /* dotted name below an imported module */
  const pf_json *args;   /* array, or NULL */
  const pf_json *kwargs; /* object, or NULL */
};

/* What makes an exception an out-of-memory error. */
struct pf_framework_oom {
  const char *exception; /* dotted name; it or a subclass of it */
  size_t n_patterns;     /* one must be in its text; none: always */
  const char *const *patterns;
};

/* What is known not to go together; doctor says it. */
struct pf_framework_conflict {
  const char *with; /* another framework's name */
  const char *text; /* what happens, and what to do */
};

/* How a framework takes an array. */
enum pf_take {
  PF_TAKE_OBJECT,  /* an object with __dlpack__ */
  PF_TAKE_CAPSULE, /* a versioned capsule */
  PF_TAKE_LEGACY   /* an unversioned capsule */
};
enum pf_strides { PF_STRIDES_COMPACT, PF_STRIDES_POSITIVE, PF_STRIDES_ANY };

struct pf_framework {
  const char *name;         /* the memory type's word */
  enum pf_memory_type type; /* its number */
  const char *import;       /* top module */
  int order;                /* imported in this order, lower first */
  size_t n_modules;         /* modules whose types are its arrays */
  const char *const *modules;
  size_t
      n_types; /* names of its array types there; none: any with __dlpack__ */
  const char *const *types;
  size_t n_devices; /* kinds it works on: enum pf_device_kind */
  const int *devices;
  size_t n_env; /* set before import, never over the user's */
  const char *const *env_names, *const *env_values; /* side by side */
  /* Before the import, before the first array; only where the process is the
   * program's own: an adopted interpreter is its user's to set up. */
  size_t n_before, n_first;
  struct pf_framework_call *before_import, *before_first_use;
  /* Taking: host and device. */
  struct pf_framework_call take; /* "{array}" is the argument */
  enum pf_take take_kind;
  enum pf_strides take_strides;
  uint32_t take_alignment;  /* bytes; else the bridge copies */
  bool takes_read_only;     /* else a read-only array is copied */
  bool writes_through;      /* ignores read-only: shared only if alone */
  bool take_waits;          /* safe on its current stream by itself */
  int take_max_ndim;        /* 0: any */
  bool dtypes[PF_N_DTYPES]; /* that it can take without changing them */
  const char *more_when; /* dotted name: where it is true (or NULL: never) */
  bool more_dtypes[PF_N_DTYPES]; /* these too */
  /* Giving. */
  const char *give_prepare; /* method called first ("detach"), or NULL */
  bool give_versioned;      /* takes max_version= */
  bool give_stream;         /* takes stream= */
  bool give_blocks;         /* waits for its device by itself */
  bool give_aliased;        /* its arrays must not be written to */
  /* An attribute that is None unless the array is a view, or NULL. */
  const char *give_view_of;
  size_t n_give_refuses;           /* element types whose export ends badly: */
  const char *const *give_refuses; /* words in str(array.dtype) */
  struct pf_framework_call wait;   /* function NULL: none needed on the host */
  size_t n_clear;
  struct pf_framework_call *clear_caches;
  struct pf_framework_call cached_bytes; /* function NULL: unknown */
  struct pf_framework_call list_devices; /* a list, or how many; for doctor */
  size_t n_oom, n_not_oom;
  struct pf_framework_oom *oom;
  const char *const *not_oom;              /* texts that must not match */
  struct pf_framework_call host_context;   /* makes the host current */
  struct pf_framework_call device_context; /* makes a device current */
  struct pf_framework_call stream_context; /* makes a stream current */
  const char *adapter; /* Python module for what data cannot say, or NULL */
  const char *cpu_fallback; /* a word for the docs and `check`, or NULL */
  size_t n_cpu_modules;     /* imports to replace for that fallback */
  const char *const *cpu_module_names, *const *cpu_module_values;
  const char *install; /* pip line for doctor */
  size_t n_conflicts;
  struct pf_framework_conflict *conflicts;
  const pf_json *json; /* the whole entry, for the glue */
};

struct pf_frameworks {
  size_t n;
  const struct pf_framework *const *entries; /* by `order`, then as read */
  /* What no one framework raises: host memory. And what is never taken for
   * running out of memory, whoever raised it. */
  size_t n_oom, n_not_oom;
  const struct pf_framework_oom *oom;
  const char *const *not_oom;
};

/* Load once: the built-in entries and `path` (NULL: PLATEFLOW_FRAMEWORKS, or
 * none); registers the memory types of the user's. A bad entry is PF_EINVAL
 * with file, line and column; so is a file that cannot be read. A second
 * call does nothing. Any thread, but before others look. */
PF_API int pf_frameworks_load(const char *path,
                              struct pf_error *err) PF_MUST_CHECK;
/* Never NULL; empty before pf_frameworks_load() succeeded. */
PF_API const struct pf_frameworks *pf_frameworks_get(void);
/* By name or by memory type; NULL where there is none (C's memory types). */
PF_API const struct pf_framework *pf_framework_find(const char *name);
PF_API const struct pf_framework *
pf_framework_of_type(enum pf_memory_type type);
/* For reading `json`, `args` and `kwargs` with bridge/json.h. */
PF_API const struct pf_json_doc *
pf_framework_doc(const struct pf_framework *framework);
/* Set the environment that the named frameworks want, before any interpreter
 * or thread starts; what the user has set stays. *set lists "NAME=VALUE" of
 * what was set (malloc'd text, one a line) for run.json; may be NULL. */
PF_API int pf_frameworks_set_env(const char *const *names, size_t n,
                                 char **set,
                                 struct pf_error *err) PF_MUST_CHECK;

/*
 * Whether an exception says that memory ran out. `names` are the dotted names
 * of its class and its bases (MODULE.QUALNAME; "builtins." may be left out),
 * `text` is str() of it (NULL: ""). `framework` NULL asks all of them: a step
 * of one may fail in another. Any thread.
 */
PF_API bool pf_framework_is_oom(const struct pf_framework *framework,
                                const char *const *names, size_t n,
                                const char *text);

#endif
