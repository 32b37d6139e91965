/*
 * What a step is. A step function comes from a provider: the table of C steps
 * (`native:NAME`) or the embedded interpreter (`package.module:name`,
 * `./file.py:name`). Both are driven through the same four callbacks, as a
 * Python class is: make, call, finish, drop.
 *
 * Ownership: a step borrows the stack that it is called with and returns one
 * that it owns (a reference of its own, also when it returns its input); after
 * failure it returns nothing. The caller frees a result's tables.
 * Threads: make, finish and drop are called by one thread at a time per
 * instance; call by as many threads at once as the step's concurrency says,
 * without the GIL.
 */
#ifndef PLATEFLOW_STEP_H
#define PLATEFLOW_STEP_H

#include "plateflow/array.h"
#include "plateflow/bridge.h"
#include "plateflow/plate.h"

#ifdef __cplusplus
extern "C" {
#endif

struct pf_table;
struct pf_json_doc;
struct cJSON;

enum pf_result_kind { PF_RESULT_IMAGE, PF_RESULT_LABELS, PF_RESULT_NONE };
/* Words "image", "labels", "none"; NULL/-1 where there is no such. */
PF_API const char *pf_result_kind_name(enum pf_result_kind kind);
PF_API int pf_result_kind_find(const char *word);

/* How deep a result is. */
enum pf_yields_kind { PF_YIELDS_SAME, PF_YIELDS_ONE, PF_YIELDS_ALONG };
struct pf_yields {
  enum pf_yields_kind kind;
  enum pf_component along; /* of PF_YIELDS_ALONG */
};

/* One slice of the stack, for `info`. Unknown numbers are NAN. */
struct pf_slice_info {
  const char *path; /* of the file that the slice was read from */
  uint32_t page;
  const char *value[PF_N_COMPONENTS]; /* for people; NULL: absent or lost */
  double pixel_size_um[2];            /* y, x */
  double z_step_um;
  double position_um[3]; /* z, y, x in image axes, y down */
  double time_s;
};

/* The group that a call is about. Lives as long as the call. */
struct pf_group_info {
  const char *step;                   /* the step's name */
  const char *text;                   /* "plate P well A01 site 2" */
  const char *value[PF_N_COMPONENTS]; /* NULL: stacked, absent or lost */
  size_t n_slices;
  const struct pf_slice_info *slices; /* one per plane of the stack */
  uint64_t seed;                      /* from step and group */
  struct pf_device device;
  /* info.write(): an extra output, atomic. NULL where there is no OUT. */
  int (*write)(void *context, const char *name, const void *bytes, size_t n,
               struct pf_error *err);
  /* info.log(): one line for OUT/log.txt. May be NULL. */
  void (*log)(void *context, const char *line);
  void *context;
};

struct pf_with_array {
  const char *name;            /* the parameter's name */
  struct pf_array *array;      /* 3D, or 2D with slice_by_slice; borrowed */
  const char *const *channels; /* channel of each plane, or NULL */
};

struct pf_call {
  struct pf_array *stack; /* borrowed; 3D, or 2D with slice_by_slice */
  size_t n_with;
  const struct pf_with_array *with;
  const struct pf_group_info *info;
  bool may_write;             /* the step owns the stack alone */
  enum pf_result_kind result; /* what a Python function is to return, ... */
  size_t n_tables;            /* ... and how many tables; C steps ignore it */
  /* Whose arrays a Python function is given and returns; 0 is NumPy. */
  enum pf_memory_type input_type, output_type;
};

struct pf_result {
  struct pf_array *stack; /* owned; NULL where the step returns none */
  size_t n_tables;
  struct pf_table **tables; /* malloc'd vector of owned tables */
  bool copied;              /* the provider copied what was not the step's */
  const char *copied_why;   /* static text; NULL unless copied */
};
PF_API void pf_result_clear(struct pf_result *result);

/* -- parameters of C steps --------------------------------------------- */

enum pf_param_type {
  PF_PARAM_INT,    /* int64_t */
  PF_PARAM_REAL,   /* double */
  PF_PARAM_BOOL,   /* bool */
  PF_PARAM_CHOICE, /* int: index into `choices` */
  PF_PARAM_STRING, /* char *, owned by the parameter struct */
  PF_PARAM_FILE    /* char *, absolute; the file is part of the result's key */
};

/* One row per parameter; a row with name NULL ends the table. */
struct pf_param {
  const char *name;
  const char *help;
  enum pf_param_type type;
  size_t offset;       /* in the step's parameter struct */
  double standard;     /* default: number, 0/1, or index of the choice;
                        * NAN: a real that nobody gave */
  double min, max;     /* of numbers, inclusive; both 0: no bounds */
  const char *choices; /* "max|min|mean"; "4|8" may be given as integers */
  bool required;       /* strings and files without a default */
};

/* -- a kind of C step -------------------------------------------------- */

/*
 * A C step for stacks of another memory type, with the step's own parameters
 * and instance. The stack and the result are on call->info->device; the result
 * is ready when the call returns.
 */
struct pf_step_twin {
  enum pf_memory_type memory_type;
  /* How far results may be from those on the host: integers in counts (99.9 %
   * are equal on a device that has double), floats relative to the largest
   * value. */
  double counts, relative;
  int (*call)(void *instance, const void *params, const struct pf_call *call,
              struct pf_result *result, struct pf_error *err);
};

/* One constant struct per C step, one line in steps/native/table.c. */
struct pf_step_type {
  const char *name; /* in `native:NAME` */
  const char *help; /* first line: what it does; more lines: how */
  const struct pf_param *params;
  size_t params_size; /* of the parameter struct */
  enum pf_result_kind result;
  struct pf_yields yields;
  bool resizes;
  bool any_depth;          /* works on 3D as a whole; else plane by plane */
  bool needs_intensity;    /* takes a `with` array named "intensity" */
  bool may_intensity;      /* as above, but can do without */
  enum pf_cast_mode dtype; /* mode where the pipeline says nothing */
  unsigned n_tables;       /* how many tables a call returns */
  unsigned memory_types; /* bits 1u << enum pf_memory_type it has twins for */
  double cost_ns;        /* per pixel, for the plan; 0: not measured */
  /* `params` is a filled parameter struct, borrowed for the instance's life.
   * All but `call` may be NULL. */
  /* The mode that these parameters ask for, where one row is not enough. */
  enum pf_cast_mode (*dtype_of)(const void *params);
  /* What the rows cannot say, such as low < high. Opens no file. */
  int (*check)(const void *params, struct pf_error *err);
  int (*make)(void **instance, const void *params, struct pf_error *err);
  int (*call)(void *instance, const void *params, const struct pf_call *call,
              struct pf_result *result, struct pf_error *err);
  int (*finish)(void *instance, struct pf_result *result,
                struct pf_error *err);
  void (*drop)(void *instance);
  /* One per bit of memory_types but native's. */
  size_t n_twins;
  const struct pf_step_twin *twins;
};

/* The table; *n is its length. */
PF_API const struct pf_step_type *const *pf_native_steps(size_t *n);
PF_API const struct pf_step_type *pf_native_find(const char *name);

/* -- an opened step ---------------------------------------------------- */

/* What is known of a function before it is called. */
struct pf_step_traits {
  enum pf_memory_type input_memory_type; /* PF_MEM_NONE: it has no tag */
  enum pf_memory_type output_memory_type;
  enum pf_result_kind result;
  struct pf_yields yields;
  bool resizes;
  enum pf_cast_mode dtype;
  bool is_native;    /* a C step */
  bool is_class;     /* made once per distinct parameters */
  bool is_reduction; /* has add() and finish() */
  bool is_decorated; /* by plateflow's decorators, or native: knows stacks */
  unsigned n_tables; /* native: how many tables it returns */
  unsigned memory_types;   /* native: bits that it has twins for */
  const char *help;        /* first line of its docstring, or "" */
  const char *source_file; /* of a Python function, or NULL */
};

struct pf_step;

/*
 * Find a function. `base_dir` is the pipeline file's folder, for ./file.py and
 * relative paths. Takes and releases the GIL itself where it needs it.
 * Errors: PF_EINVAL (no such function: the nearest name is in the message),
 * PF_EMISSING (no interpreter, no such package); detail has the traceback.
 */
PF_API int pf_step_open(struct pf_step **out, const char *function,
                        const char *base_dir,
                        struct pf_error *err) PF_MUST_CHECK;
PF_API void pf_step_unref(struct pf_step **step);
PF_API const struct pf_step_traits *pf_step_traits(const struct pf_step *);

/* Called once for each thing that is wrong. `value` is the place, or NULL. */
typedef void pf_param_report(void *context, const struct cJSON *value,
                             bool of_key, const char *message);
/*
 * Check `params` (an object, or NULL) and the names of the `with` arrays
 * against the signature. Strings with a placeholder ("{well}") are not checked
 * for their value. Returns the number of reports, -1 with err on failure.
 */
PF_API int pf_step_check_params(struct pf_step *step,
                                const struct pf_json_doc *doc,
                                const struct cJSON *params,
                                const char *const *with, size_t n_with,
                                pf_param_report *report, void *context,
                                struct pf_error *err);

struct pf_step_instance;
/*
 * Bind parameters (no placeholders left): parse them for a C step, make the
 * class once, or keep the keyword arguments of a function. The document must
 * not live on; everything is copied.
 */
PF_API int pf_step_make(struct pf_step_instance **out, struct pf_step *step,
                        const struct pf_json_doc *doc,
                        const struct cJSON *params,
                        struct pf_error *err) PF_MUST_CHECK;
PF_API int pf_step_call(struct pf_step_instance *instance,
                        const struct pf_call *call, struct pf_result *result,
                        struct pf_error *err) PF_MUST_CHECK;
/* The cast mode where the pipeline says nothing; of a C step it may depend on
 * the parameters (a sum widens, a maximum does not). */
PF_API enum pf_cast_mode
pf_step_instance_dtype(const struct pf_step_instance *instance);
/* Drop an instance; NULL is allowed. */
PF_API void pf_step_drop(struct pf_step_instance **instance);

/*
 * How C steps read an image that a parameter names (PF_PARAM_FILE): steps know
 * no file formats, so whoever does sets the reader, once, before any instance
 * is made. It gives a 2D or 3D host array and may be called from any thread.
 * Without one such steps fail with PF_EMISSING.
 */
typedef int pf_image_reader(struct pf_array **out, const char *path,
                            struct pf_error *err);
PF_API void pf_step_set_image_reader(pf_image_reader *read);

/* Called by each worker once, before its first and after its last call: makes
 * and destroys the thread's interpreter state. No-op without an interpreter.
 */
PF_API int pf_step_thread_start(struct pf_error *err);
PF_API void pf_step_thread_stop(void);

#ifdef __cplusplus
}
#endif
#endif
