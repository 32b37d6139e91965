/*
 * The glue between plateflow and CPython: one extension module, _core, that
 * links libplateflow but no libpython. It is loaded by the program (start.c),
 * or by `import plateflow` in an interpreter that is then adopted.
 *
 * Each function says whether it is called with the GIL. Python objects in
 * structs are owned by them unless a comment says "borrowed".
 */
#ifndef PF_GLUE_H
#define PF_GLUE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "plateflow/step.h"
#include "steps/provider.h"

#define PF_PACKAGE "plateflow"

/* ------------------------------------------------- threads (thread.c) */

/*
 * The GIL for a function that is called without it. A worker's own state is
 * used, which keeps its thread-locals and with them the frameworks' current
 * streams; a thread without one gets a state for as long as it holds the GIL.
 */
struct pf_gil {
  PyThreadState *temporary; /* or NULL */
};
int pf_gil_enter(struct pf_gil *gil, struct pf_error *err) PF_MUST_CHECK;
void pf_gil_leave(struct pf_gil *gil);
int pf_glue_thread_start(struct pf_error *err) PF_MUST_CHECK;
void pf_glue_thread_stop(void);
/* Let go of the GIL for a call into plateflow and take it again; the state is
 * what the calling thread uses in between. GIL held before and after. */
PyThreadState *pf_gil_lend(void);
void pf_gil_take_back(PyThreadState *previous);

/* --------------------------------------------------- errors (error.c) */

/* The current exception with its traceback, cleared; never NULL, and a new
 * reference. GIL held. */
PyObject *pf_take_exception(void);
/*
 * Turn the current exception into `err` (its traceback becomes the detail) and
 * clear it; `code` unless the exception knows better. GIL held. Returns the
 * code, never 0.
 */
int pf_glue_error(struct pf_error *err, enum pf_code code);
/* Raise `err` as plateflow.PlateflowError and clear it; returns NULL. GIL
 * held. */
PyObject *pf_glue_raise(struct pf_error *err);

/* ----------------------------------------- Python's half (helpers.c) */

/*
 * Functions of the Python package that the glue calls, looked up once per
 * process at their first use. A new reference; NULL with an exception.
 */
enum pf_helper {
  PF_HELPER_LOAD,     /* _steps.load(function, base_dir) -> object */
  PF_HELPER_DESCRIBE, /* _steps.describe(object) -> dict */
  PF_HELPER_CHECK,    /* _steps.check(object, names, with) -> [(name, text)] */
  PF_HELPER_VERSIONS, /* _steps.versions() -> JSON */
  PF_HELPER_EXPLAIN,  /* _errors.explain(exc) -> (code, message, detail) */
  PF_HELPER_COLUMNS,  /* _tables.columns(value) -> [(name, values)] */
  PF_HELPER_PLAIN,    /* _tables.plain(value) -> None, bool, int, float, str */
  PF_HELPER_CONVERSION_ERROR, /* _errors.ConversionError(code, message) */
  PF_HELPER_IS_SET,           /* _frameworks.is_set(path) -> bool */
  PF_HELPER_OF_ARRAY,         /* _frameworks.of_array(call) -> callable */
  PF_HELPER_FIRST_USE,        /* .first_use(calls, threads, device, again) */
  PF_HELPER_CLEAR,            /* _frameworks.clear(calls) */
  PF_HELPER_EXCHANGE,   /* .exchange_of(modules, types) -> capsule or None */
  PF_HELPER_ADAPTER,    /* .load_adapter(name) -> (take, give) */
  PF_HELPER_HAS_MODULE, /* .has_module(name) -> bool */
  PF_HELPER_ASARRAY,    /* numpy.asarray */
  PF_HELPER_NDARRAY,    /* numpy.ndarray */
  PF_HELPER_DTYPE,      /* numpy.dtype */
  PF_N_HELPERS
};
/* Borrowed, and alive for good. GIL held. */
PyObject *pf_helper(enum pf_helper which);

/* ---------------------------------------------------- arrays (array.c) */

/* plateflow._core.Array: host memory of plateflow as Python sees it. */
struct pf_array_object {
  PyObject_HEAD struct pf_array *array; /* one reference */
  bool read_only; /* what is given out cannot be written to */
  bool shared;    /* a DLPack capsule was given out: its holder is unknown */
  bool lends;     /* a legacy capsule is given out though it is read-only */
  Py_ssize_t strides[PF_MAX_NDIM]; /* in bytes, for the buffer protocol */
};
extern PyTypeObject pf_array_type;
/* A new object with a reference of its own to `array`. GIL held. */
PyObject *pf_array_object_create(struct pf_array *array, bool read_only);
/* __dlpack__ and __dlpack_device__ (dlpack.c). */
extern PyMethodDef pf_array_dlpack_methods[];
PyObject *pf_array_dlpack(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *pf_array_dlpack_device(PyObject *self, PyObject *unused);

/* A capsule of the Array's memory, for who takes no object with __dlpack__.
 * A new reference. GIL held. */
PyObject *pf_array_capsule(PyObject *self, bool versioned);

/* ------------------------------------------------- ndarrays (ndarray.c) */

/* An ndarray over the array's memory, no copy; its base is the only reference
 * to the Array object in between. What has gaps is copied. GIL held. */
PyObject *pf_ndarray_from_array(struct pf_array *array, bool read_only);
/* As above, but never a copy: strides are kept. */
PyObject *pf_ndarray_view(struct pf_array *array, bool read_only);
/* What has NumPy's buffer as an array on its memory, whoever else sees it;
 * `copied_why` is set to a static text where C could not read it in place.
 * `value` is borrowed. GIL held. */
int pf_ndarray_share(struct pf_array **out, PyObject *value,
                     const char **copied_why,
                     struct pf_error *err) PF_MUST_CHECK;

/* What the glue handed to a function and what became of it. */
struct pf_given {
  struct pf_array *array; /* borrowed */
  PyObject *ndarray;      /* or another framework's array, on the same memory
                           * unless `copied_why`; borrowed; the caller has one
                           * reference */
  bool may_write;         /* the step owned the stack alone */
  const char *copied_why; /* static: it is a copy of the stack; else NULL */
};
/*
 * The function's ndarray `value` as an array, without a copy where nobody else
 * can see its memory. Steals `value`. Compact, in native byte order.
 * `copied_why` is set to a static text where it was copied. GIL held.
 */
int pf_ndarray_to_array(struct pf_array **out, PyObject *value,
                        const struct pf_given *given, const char **copied_why,
                        struct pf_error *err) PF_MUST_CHECK;

/* ---------------------------------------------------- values (json.c) */

/* A JSON value as Python objects; a new reference. GIL held. */
PyObject *pf_json_to_python(const struct pf_json_doc *doc,
                            const struct cJSON *value);
/* A copy of such an object, so that a function that changes its parameter
 * changes its own; a new reference. GIL held. */
PyObject *pf_json_copy(PyObject *value);

/* ---------------------------------------------------- tables (table.c) */

/* A table from what a function returned. GIL held. PF_ESTEP with the column's
 * name where a value has no type that a table can hold. */
int pf_table_from_python(struct pf_table **out, PyObject *value,
                         struct pf_error *err) PF_MUST_CHECK;

/* ------------------------------------------------------- info (info.c) */

extern PyTypeObject pf_info_type;
/* The group of a call, for a parameter called `info`. GIL held. */
PyObject *pf_info_create(const struct pf_group_info *group);
/* The call is over: what the object needs of the group is copied if somebody
 * kept it. Drops the reference. GIL held. */
void pf_info_finish(PyObject *info);
int pf_info_ready(void); /* make the types; -1 with an exception */

/* -------------------------------------------- printed text (stdio.c) */

/* The thread's call: what it prints until pf_stdio_end() goes to the group's
 * log. GIL held. */
void pf_stdio_begin(const struct pf_group_info *group);
void pf_stdio_end(void);
/* _core.print_text(text) -> bool: False where no call is running. */
PyObject *pf_stdio_print(PyObject *self, PyObject *text);

/* ------------------------------------------------ operations of steps */

/* An opened function or class (open.c). */
struct pf_python_step {
  PyObject *object; /* the function or the class */
  bool is_class, is_reduction;
  bool takes_info;
  char *help, *source_file; /* for the traits */
};
int pf_glue_open(void **handle, struct pf_step_traits *traits,
                 const char *function, const char *base_dir,
                 struct pf_error *err);
void pf_glue_close(void *handle);
int pf_glue_check_params(void *handle, const struct pf_json_doc *doc,
                         const struct cJSON *params, const char *const *with,
                         size_t n_with, pf_param_report *report, void *context,
                         struct pf_error *err);
int pf_glue_make(void **made, void *handle, const struct pf_json_doc *doc,
                 const struct cJSON *params, struct pf_error *err);
void pf_glue_drop(void *made);
int pf_glue_call(void *made, const struct pf_call *call,
                 struct pf_result *result, struct pf_error *err);
/* Split what a function returned into its stack and its tables (result.c).
 * Steals `value`. GIL held. */
int pf_glue_result(struct pf_result *result, PyObject *value,
                   const struct pf_call *call, const struct pf_given *given,
                   struct pf_error *err) PF_MUST_CHECK;
bool pf_glue_interrupted(void); /* main.c */
/* Import the named frameworks that are installed, in their entries' order;
 * what a framework is told of threads is what OpenMP is told. GIL not held. */
int pf_glue_prepare(const char *const *names, size_t n, struct pf_error *err);
/* Whether `import name` would find something. GIL not held. */
bool pf_glue_has_module(const char *name);
extern int pf_glue_inner_threads; /* >= 1; set before workers start */

/* ------------------------------------------------------------- module */

PyMODINIT_FUNC PyInit__core(void);
/* Set by start.c: the core of the program that started the interpreter; NULL
 * in one that was adopted. */
extern const void *pf_glue_program_core;
PyObject *pf_glue_main(PyObject *self, PyObject *args); /* main.c */
/* device_count(kind) -> int, for "cpu", "gpu", "opencl" (devices.c). */
PyObject *pf_glue_device_count(PyObject *self, PyObject *word);

#endif
