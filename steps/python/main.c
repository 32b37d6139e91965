/* The command line, called from Python: see glue.h. */
#include "steps/python/glue.h"

#include <stdlib.h>
#include <string.h>

#include "plateflow/main.h"

/* Of this thread's running command: what a signal handler raised, kept until
 * the command has ended. */
static _Thread_local PyObject *raised;

static void free_argv(char **argv, Py_ssize_t n) {
  for (Py_ssize_t i = 0; argv && i < n; i++)
    free(argv[i]);
  free(argv);
}

/* The list's items as file-system bytes; NULL with an exception. */
static char **copy_argv(PyObject *list, Py_ssize_t n) {
  char **argv = calloc((size_t)n + 1, sizeof(*argv));
  if (!argv)
    (void)PyErr_NoMemory();
  for (Py_ssize_t i = 0; argv && i < n; i++) {
    PyObject *bytes = NULL;
    if (PyUnicode_FSConverter(PyList_GET_ITEM(list, i), &bytes))
      argv[i] = strdup(PyBytes_AS_STRING(bytes));
    if (bytes && !argv[i])
      (void)PyErr_NoMemory();
    Py_XDECREF(bytes);
    if (!argv[i]) {
      free_argv(argv, n);
      return NULL;
    }
  }
  return argv;
}

PyObject *pf_glue_main(PyObject *self, PyObject *args) {
  PyThreadState *previous;
  PyObject *list, *kept, *text, *answer = NULL;
  char *message = NULL, **argv;
  int adopted = 1, status;
  (void)self;
  if (!PyArg_ParseTuple(args, "O!|p", &PyList_Type, &list, &adopted))
    return NULL;
  argv = copy_argv(list, PyList_GET_SIZE(list));
  if (!argv)
    return NULL;
  kept = raised; /* a step of an outer run may have called us */
  raised = NULL;
  previous = pf_gil_lend();
  status = pf_main((int)PyList_GET_SIZE(list), argv, adopted != 0, &message);
  pf_gil_take_back(previous);
  (void)pf_deferred_drain();
  free_argv(argv, PyList_GET_SIZE(list));
  text = message ? PyUnicode_DecodeFSDefault(message) : Py_NewRef(Py_None);
  free(message);
  if (raised)
    PyErr_SetObject((PyObject *)Py_TYPE(raised), raised);
  else if (text)
    answer = Py_BuildValue("(iO)", status, text);
  Py_XDECREF(text);
  Py_XSETREF(raised, kept);
  return answer;
}

bool pf_glue_interrupted(void) {
  struct pf_error ignored = PF_ERROR_INIT;
  struct pf_gil gil;
  if (raised || pf_glue_program_core)
    return raised != NULL;
  if (pf_gil_enter(&gil, &ignored)) {
    pf_error_clear(&ignored);
    return false;
  }
  if (PyErr_CheckSignals() < 0)
    raised = pf_take_exception();
  pf_gil_leave(&gil);
  return raised != NULL;
}
