/* Devices as Python counts them: see glue.h. */
#include "steps/python/glue.h"

#include <string.h>

#include "plateflow/device.h"

/* The word in "gpu:0", and what it counts. */
static const struct kind {
  const char *word;
  enum pf_device_kind kind;
} kinds[] = {
    {"cpu", PF_DEVICE_HOST},
    {"gpu", PF_DEVICE_CUDA},
    {"opencl", PF_DEVICE_OPENCL},
};

/* A driver that is not there is 0 devices; looking for it can take a while,
 * so the GIL is let go. */
static int count(enum pf_device_kind kind) {
  const struct pf_device_ops *ops = pf_device_ops(kind);
  struct pf_error ignored = PF_ERROR_INIT;
  PyThreadState *state;
  int n;
  if (!ops)
    return 0;
  state = PyEval_SaveThread();
  n = ops->count(&ignored);
  PyEval_RestoreThread(state);
  pf_error_clear(&ignored);
  return n < 0 ? 0 : n;
}

PyObject *pf_glue_device_count(PyObject *self, PyObject *word) {
  const char *text = PyUnicode_Check(word) ? PyUnicode_AsUTF8(word) : NULL;
  (void)self;
  for (size_t i = 0; text && i < sizeof(kinds) / sizeof(*kinds); i++)
    if (strcmp(kinds[i].word, text) == 0)
      return PyLong_FromLong(count(kinds[i].kind));
  if (!PyErr_Occurred())
    PyErr_Format(PyExc_ValueError, "%R is no kind of device", word);
  return NULL;
}
