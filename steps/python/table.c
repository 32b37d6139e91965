/* Tables out of Python values: see glue.h. */
#include "steps/python/glue.h"

#include <math.h>
#include <string.h>

#include "steps/table.h"

/* What the cells of a column are, as bits. */
enum {
  SEEN_BOOL = 1,
  SEEN_INT = 2,
  SEEN_REAL = 4,
  SEEN_TEXT = 8,
  SEEN_NAN = 16
};

/* A column's type from what was seen in it. */
struct type_row {
  int may_see; /* these bits and no other */
  enum pf_column_type type;
};
/* The first that fits; NaN is an empty cell, and makes no integer a real. */
static const struct type_row types[] = {
    {0, PF_COLUMN_REAL}, /* no cell is set */
    {SEEN_BOOL, PF_COLUMN_BOOL},
    {SEEN_BOOL | SEEN_INT, PF_COLUMN_INT},
    {SEEN_BOOL | SEEN_INT | SEEN_REAL, PF_COLUMN_REAL},
    {SEEN_TEXT, PF_COLUMN_TEXT},
};

/* One of the SEEN_ bits, 0 for an empty cell, -1 for another type. */
static int kind_of(PyObject *value) {
  if (value == Py_None)
    return 0;
  if (PyBool_Check(value))
    return SEEN_BOOL;
  if (PyLong_Check(value))
    return SEEN_INT;
  if (PyFloat_Check(value))
    return isnan(PyFloat_AS_DOUBLE(value)) ? SEEN_NAN : SEEN_REAL;
  if (PyUnicode_Check(value))
    return SEEN_TEXT;
  return -1;
}

/* Replace what is none of Python's own types (NumPy's scalars) in the list.
 * -1 with an exception. */
static int make_plain(PyObject *values) {
  PyObject *plain = NULL;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(values); i++) {
    PyObject *value = PyList_GET_ITEM(values, i);
    PyObject *made;
    if (kind_of(value) >= 0)
      continue;
    plain = pf_helper(PF_HELPER_PLAIN);
    made = plain ? PyObject_CallOneArg(plain, value) : NULL;
    if (!made || PyList_SetItem(values, i, made) < 0)
      return -1;
  }
  return 0;
}

/* -1 with err: kinds that no column can hold together. */
static int find_type(enum pf_column_type *type, const char *name,
                     PyObject *values, struct pf_error *err) {
  int seen = 0;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(values); i++)
    seen |= kind_of(PyList_GET_ITEM(values, i));
  seen &= ~SEEN_NAN;
  for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
    if ((seen & ~types[i].may_see) == 0) {
      *type = types[i].type;
      return PF_OK;
    }
  return pf_error_set(err, PF_ESTEP,
                      "column \"%s\" holds text and numbers: use one of them",
                      name);
}

static int refuse_cell(const char *name, size_t row, const char *why,
                       struct pf_error *err) {
  PyErr_Clear();
  return pf_error_set(err, PF_ESTEP, "column \"%s\", row %zu: %s", name, row,
                      why);
}

static int set_int(struct pf_cell *cell, PyObject *value) {
  int overflow = 0;
  cell->as.i = PyLong_AsLongLongAndOverflow(value, &overflow);
  cell->state = PF_CELL_SET;
  return overflow;
}

static int set_cell(struct pf_table *table, size_t row, size_t column,
                    PyObject *value, struct pf_error *err) {
  struct pf_cell *cell = pf_table_cell(table, row, column);
  const char *name = table->columns[column].name;
  Py_ssize_t length = 0;
  const char *text;
  if ((kind_of(value) & ~SEEN_NAN) == 0)
    return PF_OK;
  switch (table->columns[column].type) {
  case PF_COLUMN_INT:
  case PF_COLUMN_BOOL:
    if (set_int(cell, value))
      return refuse_cell(name, row, "the integer is beyond 64 bits", err);
    return PF_OK;
  case PF_COLUMN_REAL:
    cell->as.r = PyFloat_AsDouble(value);
    if (PyErr_Occurred())
      return refuse_cell(name, row, "the integer is beyond a float", err);
    cell->state = PF_CELL_SET;
    return PF_OK;
  case PF_COLUMN_TEXT:
    text = PyUnicode_AsUTF8AndSize(value, &length);
    if (!text || strlen(text) != (size_t)length)
      return refuse_cell(name, row, "the text is not Unicode or holds a NUL",
                         err);
    return pf_table_set_text(table, row, column, text, err);
  }
  return PF_OK;
}

/* One (name, values) of the helper's answer. */
struct source {
  const char *name;
  PyObject *values; /* a list; borrowed */
};

static int parse_source(struct source *source, PyObject *columns,
                        Py_ssize_t i) {
  return PyArg_ParseTuple(PyList_GET_ITEM(columns, i), "sO!", &source->name,
                          &PyList_Type, &source->values)
             ? 0
             : -1;
}

static int add_columns(struct pf_table *table, PyObject *columns,
                       struct pf_error *err) {
  enum pf_column_type type = PF_COLUMN_REAL;
  struct source source;
  int code = PF_OK;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(columns) && !code; i++) {
    if (parse_source(&source, columns, i) < 0 || make_plain(source.values) < 0)
      return pf_glue_error(err, PF_ESTEP);
    code = find_type(&type, source.name, source.values, err);
    if (!code)
      code = pf_table_add_column(table, source.name, type, err);
  }
  return code;
}

static int fill_columns(struct pf_table *table, PyObject *columns,
                        struct pf_error *err) {
  struct source source;
  int code = PF_OK;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(columns) && !code; i++) {
    if (parse_source(&source, columns, i) < 0)
      return pf_glue_error(err, PF_ESTEP);
    for (size_t row = 0; row < table->n_rows && !code; row++)
      code = set_cell(table, row, (size_t)i,
                      PyList_GET_ITEM(source.values, (Py_ssize_t)row), err);
  }
  return code;
}

/* The number of rows; the helper made all columns equally long. */
static int add_rows(struct pf_table *table, PyObject *columns,
                    struct pf_error *err) {
  struct source source;
  if (PyList_GET_SIZE(columns) == 0)
    return PF_OK;
  if (parse_source(&source, columns, 0) < 0)
    return pf_glue_error(err, PF_ESTEP);
  return pf_table_add_rows(table, (size_t)PyList_GET_SIZE(source.values), err);
}

int pf_table_from_python(struct pf_table **out, PyObject *value,
                         struct pf_error *err) {
  PyObject *helper = pf_helper(PF_HELPER_COLUMNS);
  PyObject *columns = helper ? PyObject_CallOneArg(helper, value) : NULL;
  struct pf_table *table = NULL;
  int code;
  *out = NULL;
  if (!columns || !PyList_Check(columns)) {
    Py_XDECREF(columns);
    return pf_glue_error(err, PF_ESTEP);
  }
  if ((code = pf_table_create(&table, err)) ||
      (code = add_columns(table, columns, err)) ||
      (code = add_rows(table, columns, err)) ||
      (code = fill_columns(table, columns, err)))
    pf_table_destroy(&table);
  *out = table;
  Py_DECREF(columns);
  return code;
}
