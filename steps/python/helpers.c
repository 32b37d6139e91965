/* The half of the glue that is written in Python: see glue.h. */
#include "steps/python/glue.h"

struct helper_row {
  const char *module, *name;
};

static const struct helper_row rows[PF_N_HELPERS] = {
    [PF_HELPER_LOAD] = {PF_PACKAGE "._steps", "load"},
    [PF_HELPER_DESCRIBE] = {PF_PACKAGE "._steps", "describe"},
    [PF_HELPER_CHECK] = {PF_PACKAGE "._steps", "check"},
    [PF_HELPER_VERSIONS] = {PF_PACKAGE "._steps", "versions"},
    [PF_HELPER_EXPLAIN] = {PF_PACKAGE "._errors", "explain"},
    [PF_HELPER_COLUMNS] = {PF_PACKAGE "._tables", "columns"},
    [PF_HELPER_PLAIN] = {PF_PACKAGE "._tables", "plain"},
    [PF_HELPER_CONVERSION_ERROR] = {PF_PACKAGE "._errors", "ConversionError"},
    [PF_HELPER_IS_SET] = {PF_PACKAGE "._frameworks", "is_set"},
    [PF_HELPER_OF_ARRAY] = {PF_PACKAGE "._frameworks", "of_array"},
    [PF_HELPER_FIRST_USE] = {PF_PACKAGE "._frameworks", "first_use"},
    [PF_HELPER_CLEAR] = {PF_PACKAGE "._frameworks", "clear"},
    [PF_HELPER_EXCHANGE] = {PF_PACKAGE "._frameworks", "exchange_of"},
    [PF_HELPER_ADAPTER] = {PF_PACKAGE "._frameworks", "load_adapter"},
    [PF_HELPER_HAS_MODULE] = {PF_PACKAGE "._frameworks", "has_module"},
    [PF_HELPER_ASARRAY] = {"numpy", "asarray"},
    [PF_HELPER_NDARRAY] = {"numpy", "ndarray"},
    [PF_HELPER_DTYPE] = {"numpy", "dtype"},
};

/* Filled under the GIL; the objects stay for good. */
static PyObject *found[PF_N_HELPERS];

PyObject *pf_helper(enum pf_helper which) {
  PyObject *module, *object;
  if (found[which])
    return found[which];
  module = PyImport_ImportModule(rows[which].module);
  if (!module)
    return NULL;
  object = PyObject_GetAttrString(module, rows[which].name);
  Py_DECREF(module);
  /* An import lets go of the GIL: another thread may have been faster. */
  if (!found[which])
    found[which] = object;
  else
    Py_XDECREF(object);
  return found[which];
}
