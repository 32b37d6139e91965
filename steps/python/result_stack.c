/* The stack that a function of any framework returned: see framework.h. */
#include "steps/python/framework.h"

#include <string.h>

static const char kept[] = "the function keeps a reference to it";
static const char view[] = "it is a view of another array";
static const char not_in_order[] = "it is not in C order";
static const char of_input[] = "it shares memory with the step's input";

/* A framework's words for running out of memory are known whichever framework
 * the step is of. */
int pf_step_error(struct pf_error *err) {
  PyObject *exception = pf_take_exception();
  enum pf_code code =
      pf_exception_is_oom(NULL, exception) ? PF_ENOMEM : PF_ESTEP;
  PyErr_SetObject((PyObject *)Py_TYPE(exception), exception);
  Py_DECREF(exception);
  return pf_glue_error(err, code);
}

static int refuse_type(PyObject *value, const struct pf_runtime *due,
                       struct pf_error *err) {
  struct pf_runtime *is = pf_runtime_of(value);
  if (value == Py_None)
    return pf_error_set(err, PF_ESTEP,
                        "the function returned None where an array of %s is "
                        "due",
                        due->entry->name);
  return pf_error_set(err, PF_ESTEP,
                      "the function returned an object of type %s where an "
                      "array of %s is due%s",
                      Py_TYPE(value)->tp_name, due->entry->name,
                      is ? ": its \"output_memory_type\" says what it returns"
                         : "");
}

/* Whether the array says itself that its memory is another's, by the
 * attribute that the entry names. */
static bool is_view(const struct pf_runtime *from, PyObject *value) {
  PyObject *base;
  bool found;
  if (!from->view_of)
    return false;
  base = PyObject_GetAttr(value, from->view_of);
  found = base && base != Py_None;
  Py_XDECREF(base);
  PyErr_Clear();
  return found;
}

/* Why somebody else may write to the memory of `value`, or NULL. The caller
 * has one reference to it, and has not given it yet: a tensor that is given
 * may hold references to its own object. */
static const char *kept_because(const struct pf_runtime *from, PyObject *value,
                                const struct pf_given *given) {
  Py_ssize_t expected = value == given->ndarray ? 2 : 1;
  if (from->entry->give_aliased)
    return NULL;
  if (Py_REFCNT(value) > expected)
    return kept;
  return value != given->ndarray && is_view(from, value) ? view : NULL;
}

/* Whether the result lies in memory that is not the step's. */
static const char *input_because(const struct pf_runtime *from,
                                 const struct pf_array *array,
                                 const struct pf_call *call) {
  if (from->entry->give_aliased)
    return NULL;
  if (!call->may_write && pf_array_overlaps(array, call->stack))
    return of_input;
  for (size_t i = 0; i < call->n_with; i++)
    if (pf_array_overlaps(array, call->with[i].array))
      return of_input;
  return NULL;
}

static bool is_input(const struct pf_array *array,
                     const struct pf_array *input) {
  size_t n = (size_t)pf_array_ndim(input) * sizeof(int64_t);
  return pf_array_data(array) == pf_array_data(input) &&
         pf_array_dtype(array) == pf_array_dtype(input) &&
         pf_array_ndim(array) == pf_array_ndim(input) &&
         memcmp(pf_array_shape(array), pf_array_shape(input), n) == 0 &&
         memcmp(pf_array_strides(array), pf_array_strides(input), n) == 0;
}

static int copy_result(struct pf_array **out, struct pf_error *err) {
  enum pf_memory_type type = pf_array_memory_type(*out);
  struct pf_array *copy = NULL;
  int code = pf_array_copy(&copy, *out, err);
  pf_array_unref(out);
  if (!code)
    pf_array_set_memory_type(copy, type);
  *out = copy;
  return code;
}

/* Borrows `value`, to which the caller has the one reference. */
static int from_framework(struct pf_array **out, struct pf_runtime *from,
                          PyObject *value, const struct pf_call *call,
                          const struct pf_given *given,
                          const char **copied_why, struct pf_error *err) {
  struct pf_moved moved;
  const char *why = kept_because(from, value, given);
  if (pf_give(out, from, value, true, &moved) < 0)
    return pf_step_error(err);
  if (!why)
    why = input_because(from, *out, call);
  if (!why && !pf_array_is_compact(*out))
    why = not_in_order;
  *copied_why = why ? why : moved.why;
  if (why)
    return copy_result(out, err);
  /* What was written in place is the stack itself, and stays the only owner
   * of its memory once the function's object is gone. */
  if (call->may_write && value == given->ndarray &&
      is_input(*out, given->array)) {
    pf_array_unref(out);
    *out = pf_array_ref(given->array);
  }
  return PF_OK;
}

int pf_result_stack(struct pf_array **out, PyObject *value,
                    const struct pf_call *call, const struct pf_given *given,
                    const char **copied_why, struct pf_error *err) {
  struct pf_runtime *from;
  int code;
  if (call->output_type == PF_MEM_NUMPY)
    return pf_ndarray_to_array(out, value, given, copied_why, err);
  *out = NULL;
  *copied_why = NULL;
  from = pf_runtime_of_type(call->output_type);
  if (!from || pf_runtime_ready(from) < 0)
    code = pf_glue_error(err, PF_EMISSING);
  else if (pf_runtime_of(value) != from)
    code = refuse_type(value, from, err);
  else
    code = from_framework(out, from, value, call, given, copied_why, err);
  Py_DECREF(value);
  return code;
}
