/* Exceptions and struct pf_error, both ways: see glue.h. */
#include "steps/python/glue.h"

#include <stdlib.h>
#include <string.h>

/* Words that Python's half uses for codes; "" leaves the caller's. */
struct code_row {
  const char *word;
  enum pf_code code;
};
static const struct code_row codes[] = {
    {"EINVAL", PF_EINVAL},
    {"EMISSING", PF_EMISSING},
    {"ESTEP", PF_ESTEP},
    {"ENOMEM", PF_ENOMEM},
};

static enum pf_code find_code(const char *word, enum pf_code otherwise) {
  for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
    if (strcmp(codes[i].word, word) == 0)
      return codes[i].code;
  return otherwise;
}

PyObject *pf_take_exception(void) {
#if PY_VERSION_HEX >= 0x030c0000
  PyObject *exception = PyErr_GetRaisedException();
#else
  PyObject *type = NULL, *exception = NULL, *traceback = NULL;
  PyErr_Fetch(&type, &exception, &traceback);
  PyErr_NormalizeException(&type, &exception, &traceback);
  if (exception && traceback)
    (void)PyException_SetTraceback(exception, traceback);
  Py_XDECREF(type);
  Py_XDECREF(traceback);
#endif
  return exception ? exception : Py_NewRef(Py_None);
}

/* "TypeError: text", where the package's own words cannot be had. */
static void plain_text(PyObject *exception, enum pf_code code,
                       struct pf_error *err) {
  PyObject *text = PyObject_Str(exception);
  const char *utf8 = text ? PyUnicode_AsUTF8(text) : NULL;
  PyErr_Clear();
  (void)pf_error_set(err, code, "%s: %s", Py_TYPE(exception)->tp_name,
                     utf8 ? utf8 : "?");
  Py_XDECREF(text);
}

/* What Python's half makes of the exception; false where that fails, as it
 * does when memory ran out for good. */
static bool explain(PyObject *exception, enum pf_code code,
                    struct pf_error *err) {
  PyObject *helper = pf_helper(PF_HELPER_EXPLAIN);
  PyObject *answer = helper ? PyObject_CallOneArg(helper, exception) : NULL;
  const char *word, *message, *detail;
  bool done = false;
  if (answer && PyArg_ParseTuple(answer, "sss", &word, &message, &detail)) {
    (void)pf_error_set(err, find_code(word, code), "%s", message);
    pf_error_detail(err, detail);
    done = true;
  }
  Py_XDECREF(answer);
  PyErr_Clear();
  return done;
}

int pf_glue_error(struct pf_error *err, enum pf_code code) {
  PyObject *exception = pf_take_exception();
  struct pf_error told = PF_ERROR_INIT;
  if (PyErr_GivenExceptionMatches(exception, PyExc_MemoryError))
    code = PF_ENOMEM;
  if (!explain(exception, code, &told))
    plain_text(exception, code, &told);
  Py_DECREF(exception);
  code = told.code;
  if (err)
    pf_error_move(err, &told);
  pf_error_clear(&told);
  return (int)code;
}

PyObject *pf_glue_raise(struct pf_error *err) {
  PyObject *module = PyImport_ImportModule(PF_PACKAGE "._errors");
  PyObject *type =
      module ? PyObject_GetAttrString(module, "PlateflowError") : NULL;
  char *text = pf_error_format(err);
  PyObject *exception =
      type ? PyObject_CallFunction(type, "si", text ? text : "",
                                   pf_code_exit_status(err->code))
           : NULL;
  if (exception)
    PyErr_SetObject(type, exception);
  free(text);
  Py_XDECREF(exception);
  Py_XDECREF(type);
  Py_XDECREF(module);
  pf_error_clear(err);
  return NULL;
}
