/*
 * What a function returned: its stack, then its tables. See glue.h.
 *
 *   result        tables   the function returns
 *   image, labels   0      stack
 *   image, labels   n      (stack, table, ...)
 *   none            0      None
 *   none            1      table
 *   none            n      (table, ...)
 */
#include "steps/python/framework.h"

#include <stdlib.h>

#include "steps/table.h"

/* The parts of a value, taken out of their tuple so that nothing but us needs
 * to hold them: references are counted next. */
struct parts {
  PyObject *item[32];
  size_t n;
};

static void clear_parts(struct parts *parts) {
  for (size_t i = 0; i < parts->n; i++)
    Py_CLEAR(parts->item[i]);
}

static int refuse_count(const struct pf_call *call, size_t n,
                        struct pf_error *err) {
  bool has_stack = call->result != PF_RESULT_NONE;
  return pf_error_set(
      err, PF_ESTEP,
      "the function returned a tuple of %zu where %s%zu table%s %s due: name "
      "each table that it returns in \"tables\"%s",
      n, has_stack ? "a stack and " : "", call->n_tables,
      call->n_tables == 1 ? "" : "s",
      has_stack || call->n_tables != 1 ? "are" : "is",
      has_stack ? ", or set \"result\": \"none\"" : "");
}

/* Steals `value`. */
static int split(struct parts *parts, PyObject *value,
                 const struct pf_call *call, struct pf_error *err) {
  size_t has_stack = call->result != PF_RESULT_NONE;
  size_t n = PyTuple_Check(value) ? (size_t)PyTuple_GET_SIZE(value) : 1;
  size_t due = has_stack + call->n_tables, skip = 0;
  parts->n = 0;
  if (!PyTuple_Check(value) && due == 1) {
    parts->item[parts->n++] = value;
    return PF_OK;
  }
  if (value == Py_None && due == 0) {
    Py_DECREF(value);
    return PF_OK;
  }
  /* (None, table) is what a function with and without a stack may return. */
  if (!has_stack && n == due + 1 && PyTuple_Check(value) &&
      PyTuple_GET_ITEM(value, 0) == Py_None)
    skip = 1;
  if (!PyTuple_Check(value) || n - skip != due ||
      due > sizeof(parts->item) / sizeof(parts->item[0])) {
    int code =
        PyTuple_Check(value)
            ? refuse_count(call, n, err)
            : pf_error_set(err, PF_ESTEP,
                           "the function returned one object of type %s "
                           "where %s%zu table%s due",
                           Py_TYPE(value)->tp_name,
                           has_stack ? "a tuple of a stack and " : "",
                           call->n_tables,
                           call->n_tables == 1 ? " is" : "s are");
    Py_DECREF(value);
    return code;
  }
  for (size_t i = skip; i < n; i++)
    parts->item[parts->n++] =
        Py_NewRef(PyTuple_GET_ITEM(value, (Py_ssize_t)i));
  Py_DECREF(value);
  return PF_OK;
}

static int take_tables(struct pf_result *result, PyObject *const *values,
                       size_t n, struct pf_error *err) {
  int code = PF_OK;
  if (n == 0)
    return PF_OK;
  result->tables = calloc(n, sizeof(struct pf_table *));
  if (!result->tables)
    return pf_error_set(err, PF_ENOMEM, "out of memory");
  for (size_t i = 0; i < n && !code; i++) {
    code = pf_table_from_python(&result->tables[i], values[i], err);
    result->n_tables += !code;
  }
  return code;
}

int pf_glue_result(struct pf_result *result, PyObject *value,
                   const struct pf_call *call, const struct pf_given *given,
                   struct pf_error *err) {
  struct parts parts = {{NULL}, 0};
  size_t first = call->result != PF_RESULT_NONE;
  int code = split(&parts, value, call, err);
  if (!code && first) {
    PyObject *stack = parts.item[0];
    parts.item[0] = NULL;
    code = pf_result_stack(&result->stack, stack, call, given,
                           &result->copied_why, err);
    if (!result->copied_why)
      result->copied_why = given->copied_why;
    result->copied = result->copied_why != NULL;
  }
  if (!code)
    code = take_tables(result, parts.item + first, call->n_tables, err);
  clear_parts(&parts);
  return code;
}
