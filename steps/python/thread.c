/* Thread states and the GIL: see glue.h. */
#include "steps/python/glue.h"

/* The state that this thread takes the GIL with, while it does not hold it. */
static _Thread_local PyThreadState *own_state;

int pf_gil_enter(struct pf_gil *gil, struct pf_error *err) {
  gil->temporary = NULL;
  if (own_state) {
    PyEval_RestoreThread(own_state);
    return PF_OK;
  }
  gil->temporary = PyThreadState_New(PyInterpreterState_Main());
  if (!gil->temporary)
    return pf_error_set(err, PF_ENOMEM, "no memory for a thread of Python");
  PyEval_RestoreThread(gil->temporary);
  return PF_OK;
}

void pf_gil_leave(struct pf_gil *gil) {
  if (!gil->temporary) {
    (void)PyEval_SaveThread();
    return;
  }
  PyThreadState_Clear(gil->temporary);
  PyThreadState_DeleteCurrent();
}

int pf_glue_thread_start(struct pf_error *err) {
  if (own_state)
    return PF_OK;
  /* Made in the thread that uses it, so that code which asks for the thread's
   * state (PyGILState_Ensure in a framework) finds this one. */
  own_state = PyThreadState_New(PyInterpreterState_Main());
  if (!own_state)
    return pf_error_set(err, PF_ENOMEM, "no memory for a thread of Python");
  return PF_OK;
}

void pf_glue_thread_stop(void) {
  PyThreadState *state = own_state;
  if (!state)
    return;
  own_state = NULL;
  PyEval_RestoreThread(state);
  (void)pf_deferred_drain();
  PyThreadState_Clear(state);
  PyThreadState_DeleteCurrent();
}

PyThreadState *pf_gil_lend(void) {
  PyThreadState *previous = own_state;
  own_state = PyEval_SaveThread();
  return previous;
}

void pf_gil_take_back(PyThreadState *previous) {
  PyThreadState *state = own_state;
  own_state = previous;
  PyEval_RestoreThread(state);
}
