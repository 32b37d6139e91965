/* JSON values as Python objects: see glue.h. */
#include "steps/python/glue.h"

#include "bridge/json.h"

static PyObject *list_to_python(const struct pf_json_doc *doc,
                                const pf_json *value) {
  PyObject *list = PyList_New(0);
  for (value = pf_json_first(value); list && value;
       value = pf_json_next(value)) {
    PyObject *item = pf_json_to_python(doc, value);
    if (!item || PyList_Append(list, item) < 0)
      Py_CLEAR(list);
    Py_XDECREF(item);
  }
  return list;
}

static PyObject *object_to_python(const struct pf_json_doc *doc,
                                  const pf_json *value) {
  PyObject *dict = PyDict_New();
  for (value = pf_json_first(value); dict && value;
       value = pf_json_next(value)) {
    PyObject *item = pf_json_to_python(doc, value);
    if (!item || PyDict_SetItemString(dict, pf_json_key(value), item) < 0)
      Py_CLEAR(dict);
    Py_XDECREF(item);
  }
  return dict;
}

PyObject *pf_json_to_python(const struct pf_json_doc *doc,
                            const pf_json *value) {
  switch (pf_json_type(doc, value)) {
  case PF_JSON_BOOL:
    return PyBool_FromLong(pf_json_bool(value));
  case PF_JSON_INT:
    return PyLong_FromLongLong(pf_json_int(doc, value));
  case PF_JSON_REAL:
    return PyFloat_FromDouble(pf_json_real(value));
  case PF_JSON_STRING:
    return PyUnicode_FromString(pf_json_string(value));
  case PF_JSON_ARRAY:
    return list_to_python(doc, value);
  case PF_JSON_OBJECT:
    return object_to_python(doc, value);
  case PF_JSON_NULL:
    break;
  }
  Py_RETURN_NONE;
}

static PyObject *copy_list(PyObject *list) {
  Py_ssize_t n = PyList_GET_SIZE(list);
  PyObject *copy = PyList_New(n);
  for (Py_ssize_t i = 0; copy && i < n; i++) {
    PyObject *item = pf_json_copy(PyList_GET_ITEM(list, i));
    if (item)
      PyList_SET_ITEM(copy, i, item);
    else
      Py_CLEAR(copy);
  }
  return copy;
}

static PyObject *copy_dict(PyObject *dict) {
  PyObject *copy = PyDict_New(), *key, *value;
  Py_ssize_t at = 0;
  while (copy && PyDict_Next(dict, &at, &key, &value)) {
    PyObject *item = pf_json_copy(value);
    if (!item || PyDict_SetItem(copy, key, item) < 0)
      Py_CLEAR(copy);
    Py_XDECREF(item);
  }
  return copy;
}

PyObject *pf_json_copy(PyObject *value) {
  if (PyList_CheckExact(value))
    return copy_list(value);
  if (PyDict_CheckExact(value))
    return copy_dict(value);
  return Py_NewRef(value);
}
