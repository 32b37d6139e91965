/*
 * Frameworks as the glue acts on them: one runtime per entry of
 * bridge/frameworks.json. Everything here is called with the GIL, and fails
 * with an exception: a refusal is a ConversionError, what a framework raises
 * is left as it is.
 */
#ifndef PF_GLUE_FRAMEWORK_H
#define PF_GLUE_FRAMEWORK_H

#include "steps/python/glue.h"

#include "bridge/convert_plan.h"

struct DLPackExchangeAPI;

/* Lives to the end of the process. */
struct pf_runtime {
  const struct pf_framework *entry; /* NULL: plateflow's own memory */
  PyObject *name;                   /* interned */
  size_t index;                     /* 0..63, for masks */
  enum pf_memory_type type; /* PF_MEM_NONE: a framework of the user's */
  bool is_buffer; /* its arrays are NumPy's: taken and given as buffers */
  /* Set by pf_runtime_ready(). */
  bool is_ready;
  struct pf_framework own; /* the entry, with the types that a flag adds */
  PyObject *data;          /* the whole entry, as a dict */
  PyObject *take, *wait;   /* callables of the array; wait may be NULL */
  PyObject *prepare;       /* a method's name, or NULL */
  PyObject *view_of;       /* an attribute, None unless it is a view */
  PyObject *adapter_take, *adapter_give;    /* or NULL */
  const struct DLPackExchangeAPI *exchange; /* of its arrays' type, or NULL */
};

/* --------------------------------------------- entries (framework.c) */

/* Read the entries once. -1 with an exception. */
int pf_runtimes_load(void);
/* By the word; NULL with an exception that names the known ones. */
struct pf_runtime *pf_runtime_find(PyObject *name);
struct pf_runtime *pf_runtime_of_type(enum pf_memory_type type);
/* Import it and look its calls up. -1 with an exception. */
int pf_runtime_ready(struct pf_runtime *runtime);
/* Whose array it is, by its type; NULL without an exception: nobody's. */
struct pf_runtime *pf_runtime_of(PyObject *object);
/* The calls before the first array, on each thread that runs steps. -1 with
 * an exception. */
int pf_runtime_first_use(struct pf_runtime *runtime);
/* Whether the exception says that memory ran out, as the framework says it
 * (NULL: any of them); never raises. */
bool pf_exception_is_oom(const struct pf_runtime *runtime,
                         PyObject *exception);
/* Take another look at the flag that adds element types. */
void pf_runtime_look_again(struct pf_runtime *runtime);
/* Empty what imported frameworks, and the host's pool, keep. */
void pf_runtimes_clear(void);

/* Raise `err` as a ConversionError (MemoryError for PF_ENOMEM) and clear it;
 * returns NULL. */
PyObject *pf_raise_conversion(struct pf_error *err);

/* --------------------------------------------------- taking (take.c) */

/* The C functions in a capsule, or NULL where it holds none of our version. */
const struct DLPackExchangeAPI *pf_exchange_of(PyObject *capsule);

/* How an array came into a framework, or out of one. */
struct pf_moved {
  enum pf_mechanism mechanism;
  const char *why;   /* static: of a copy; NULL where nothing was copied */
  bool is_read_only; /* given by an object that may not be written to */
};

/*
 * The array as an object of the framework, without a copy where the entry's
 * limits allow. `read_only`: nobody may write to the memory. A new reference.
 */
PyObject *pf_take(struct pf_runtime *to, struct pf_array *array,
                  bool read_only, struct pf_moved *moved);

/* --------------------------------------------------- giving (give.c) */

/*
 * The framework's object as an array on its memory; `mark`: memory that the
 * framework thinks constant becomes read-only. `object` is borrowed. -1 with
 * an exception.
 */
int pf_give(struct pf_array **out, struct pf_runtime *from, PyObject *object,
            bool mark, struct pf_moved *moved);

/* ----------------------------------- a step's result (result_stack.c) */

/*
 * The stack that a function returned as an array that nobody else writes to:
 * compact, waited for, without a copy where nobody kept it. Steals `value`.
 * `copied_why` is set to a static text where it was copied.
 */
int pf_result_stack(struct pf_array **out, PyObject *value,
                    const struct pf_call *call, const struct pf_given *given,
                    const char **copied_why,
                    struct pf_error *err) PF_MUST_CHECK;
/* The current exception, of a step, as an error: PF_ENOMEM where a framework
 * says that memory ran out. */
int pf_step_error(struct pf_error *err);

/* -------------------------------------- _core's functions (convert.c) */

extern PyMethodDef pf_convert_methods[];

#endif
