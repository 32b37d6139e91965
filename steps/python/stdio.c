/*
 * What a step prints, line by line to its group's log: see glue.h. Python's
 * half (_stdio.py) hands the text here; C code that prints goes past it, to
 * the file descriptors that the program has redirected.
 */
#include "steps/python/glue.h"

#include <string.h>

#include "bridge/buf.h"

/* A line that never ends is cut, so that it cannot grow without bound. */
enum { MAX_LINE = 64 << 10 };

/* Of the call that runs on this thread. */
static _Thread_local struct {
  const struct pf_group_info *group; /* NULL: none */
  struct pf_buf line;                /* printed, and not yet ended */
} printing;

void pf_stdio_begin(const struct pf_group_info *group) {
  printing.group = group && group->log ? group : NULL;
}

static void flush_line(void) {
  printing.group->log(printing.group->context, pf_buf_text(&printing.line));
  pf_buf_reset(&printing.line);
}

void pf_stdio_end(void) {
  if (printing.group && printing.line.len)
    flush_line();
  printing.group = NULL;
  pf_buf_free(&printing.line);
}

static void print_bytes(const char *text, size_t n) {
  while (n) {
    const char *end = memchr(text, '\n', n);
    size_t length = end ? (size_t)(end - text) : n;
    pf_buf_add(&printing.line, text, length);
    if (end || printing.line.len > MAX_LINE)
      flush_line();
    length += end ? 1 : 0;
    text += length;
    n -= length;
  }
}

PyObject *pf_stdio_print(PyObject *self, PyObject *text) {
  PyObject *bytes;
  (void)self;
  if (!printing.group)
    Py_RETURN_FALSE;
  if (!PyUnicode_Check(text)) {
    PyErr_SetString(PyExc_TypeError, "only text can be printed");
    return NULL;
  }
  bytes = PyUnicode_AsEncodedString(text, "utf-8", "backslashreplace");
  if (!bytes)
    return NULL;
  print_bytes(PyBytes_AS_STRING(bytes), (size_t)PyBytes_GET_SIZE(bytes));
  Py_DECREF(bytes);
  Py_RETURN_TRUE;
}
