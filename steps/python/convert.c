/* Conversions for Python: the functions of _core that move arrays. */
#include "steps/python/framework.h"

#include <stdlib.h>
#include <string.h>

#include "bridge/os.h"

/* What was converted, the oldest forgotten first. Under the GIL. */
enum { LOG_ROWS = 1024, LONG_STACK = 64 << 10 };
static struct log_row {
  const struct pf_runtime *from, *to;
  enum pf_mechanism mechanism;
  const char *why;
  uint64_t n_bytes;
  double seconds;
} rows[LOG_ROWS];
static uint64_t n_logged;

static void note(const struct pf_runtime *from, const struct pf_runtime *to,
                 const struct pf_moved *moved, size_t n_bytes, double start) {
  rows[n_logged++ % LOG_ROWS] =
      (struct log_row){from,       to,      moved->mechanism,
                       moved->why, n_bytes, pf_os_seconds() - start};
}

/* The worse of two halves of a way. */
static void add_moved(struct pf_moved *all, const struct pf_moved *half) {
  if (half->mechanism > all->mechanism)
    all->mechanism = half->mechanism;
  if (half->why)
    all->why = half->why;
}

static PyObject *refuse_object(PyObject *object) {
  return PyErr_Format(PyExc_TypeError,
                      "an object of type %s is no array of a framework that "
                      "plateflow knows",
                      Py_TYPE(object)->tp_name);
}

static struct pf_runtime *source_of(PyObject *object) {
  struct pf_runtime *from = pf_runtime_of(object);
  return from ? from : (struct pf_runtime *)refuse_object(object);
}

/* As pf_give(), for an array that is going to `to`: memory that a framework
 * thinks constant is not copied only because the other could write there. */
static int give_to(struct pf_array **out, struct pf_runtime *from,
                   const struct pf_runtime *to, PyObject *object,
                   struct pf_moved *moved) {
  bool mark = !to->entry || !to->entry->writes_through;
  return pf_give(out, from, object, mark, moved);
}

static PyObject *convert(PyObject *object, struct pf_runtime *from,
                         struct pf_runtime *to) {
  double start = pf_os_seconds();
  struct pf_moved moved, into;
  struct pf_array *array;
  PyObject *made;
  size_t n_bytes;
  if (give_to(&array, from, to, object, &moved) < 0)
    return NULL;
  n_bytes = pf_array_n_bytes(array);
  made = pf_take(to, array, moved.is_read_only, &into);
  pf_array_unref(&array);
  if (!made)
    return NULL;
  add_moved(&moved, &into);
  note(from, to, &moved, n_bytes, start);
  return made;
}

/* The host is the only device here; an index says which where there are many.
 */
static int check_device(PyObject *device) {
  if (!device || device == Py_None)
    return 0;
  if (PyUnicode_Check(device) &&
      (PyUnicode_CompareWithASCIIString(device, "cpu") == 0 ||
       PyUnicode_CompareWithASCIIString(device, "host") == 0))
    return 0;
  PyErr_Format(PyExc_ValueError, "no device %R: arrays stay on \"cpu\"",
               device);
  return -1;
}

static PyObject *core_convert(PyObject *self, PyObject *const *args,
                              Py_ssize_t n) {
  struct pf_runtime *from, *to;
  (void)self;
  (void)pf_deferred_drain();
  if (n < 2 || n > 4) {
    PyErr_SetString(PyExc_TypeError,
                    "convert(obj, target, device=None, source=None)");
    return NULL;
  }
  to = pf_runtime_find(args[1]);
  from = to ? source_of(args[0]) : NULL;
  if (!from || check_device(n > 2 ? args[2] : NULL) < 0)
    return NULL;
  if (n > 3 && args[3] != Py_None && args[3] != from->name) {
    const struct pf_runtime *said = pf_runtime_find(args[3]);
    if (!said)
      return NULL;
    if (said != from)
      return PyErr_Format(PyExc_TypeError,
                          "the array is of %U, not of %U as was said",
                          from->name, said->name);
  }
  return from == to ? Py_NewRef(args[0]) : convert(args[0], from, to);
}

static PyObject *core_detect(PyObject *self, PyObject *object) {
  struct pf_runtime *from = source_of(object);
  (void)self;
  return from ? Py_NewRef(from->name) : NULL;
}

/* ------------------------------------------------------------- stacks */

/* The slices as arrays; `from` is the last's framework. -1 with an exception.
 */
static int give_slices(struct pf_array **slices, PyObject *list, size_t n,
                       struct pf_runtime **from) {
  struct pf_moved moved;
  for (size_t i = 0; i < n; i++) {
    PyObject *object = PySequence_Fast_GET_ITEM(list, (Py_ssize_t)i);
    *from = source_of(object);
    if (!*from || pf_give(&slices[i], *from, object, true, &moved) < 0)
      return -1;
  }
  return 0;
}

static int stack_slices(struct pf_array **out, struct pf_array **slices,
                        size_t n) {
  struct pf_error err = PF_ERROR_INIT;
  size_t n_bytes = n ? n * pf_array_n_bytes(slices[0]) : 0;
  int code;
  if (n_bytes < LONG_STACK) {
    code = pf_stack_slices(out, slices, n, PF_DTYPE_NONE, &err);
  } else {
    PyThreadState *state = PyEval_SaveThread();
    code = pf_stack_slices(out, slices, n, PF_DTYPE_NONE, &err);
    PyEval_RestoreThread(state);
  }
  if (code)
    (void)pf_raise_conversion(&err);
  return code ? -1 : 0;
}

/* The slices are copied into the stack in any case: that is its one copy. */
static PyObject *stack(PyObject *list, struct pf_runtime *to) {
  struct pf_moved moved = {PF_MECHANISM_SHARED, NULL, false};
  size_t n = (size_t)PySequence_Fast_GET_SIZE(list);
  struct pf_array **slices = calloc(n + 1, sizeof(*slices));
  struct pf_runtime *from = NULL;
  struct pf_array *whole = NULL;
  PyObject *made = NULL;
  double start = pf_os_seconds();
  if (!slices)
    return PyErr_NoMemory();
  if (give_slices(slices, list, n, &from) == 0 &&
      stack_slices(&whole, slices, n) == 0)
    made = pf_take(to, whole, false, &moved);
  if (made) {
    moved.mechanism = moved.mechanism > PF_MECHANISM_COPIED
                          ? moved.mechanism
                          : PF_MECHANISM_COPIED;
    moved.why = "the slices become one stack";
    note(from, to, &moved, pf_array_n_bytes(whole), start);
  }
  pf_array_unref(&whole);
  for (size_t i = 0; i < n; i++)
    pf_array_unref(&slices[i]);
  free(slices);
  return made;
}

static PyObject *core_stack(PyObject *self, PyObject *const *args,
                            Py_ssize_t n) {
  struct pf_runtime *to;
  PyObject *list, *made;
  (void)self;
  (void)pf_deferred_drain();
  if (n < 2 || n > 3) {
    PyErr_SetString(PyExc_TypeError, "stack(slices, target, device=None)");
    return NULL;
  }
  to = pf_runtime_find(args[1]);
  if (!to || check_device(n > 2 ? args[2] : NULL) < 0)
    return NULL;
  list = PySequence_Fast(args[0], "the slices are no sequence");
  made = list ? stack(list, to) : NULL;
  Py_XDECREF(list);
  return made;
}

/* Frameworks whose arrays can be written to index by views. */
static PyObject *planes_by_index(PyObject *object) {
  Py_ssize_t n = PyObject_Length(object);
  PyObject *list = n < 0 ? NULL : PyList_New(n);
  for (Py_ssize_t i = 0; list && i < n; i++) {
    PyObject *index = PyLong_FromSsize_t(i);
    PyObject *plane = index ? PyObject_GetItem(object, index) : NULL;
    Py_XDECREF(index);
    if (plane)
      PyList_SET_ITEM(list, i, plane);
    else
      Py_CLEAR(list);
  }
  return list;
}

static PyObject *take_plane(struct pf_runtime *to, struct pf_array *array,
                            int64_t z) {
  struct pf_error err = PF_ERROR_INIT;
  struct pf_array *plane = NULL;
  struct pf_moved moved;
  PyObject *made;
  if (pf_array_plane(&plane, array, z, &err))
    return pf_raise_conversion(&err);
  made = pf_take(to, plane, false, &moved);
  pf_array_unref(&plane);
  return made;
}

static PyObject *planes_by_view(struct pf_runtime *from, PyObject *object) {
  struct pf_array *array = NULL;
  PyObject *list = NULL;
  struct pf_moved moved;
  int64_t n;
  if (pf_give(&array, from, object, true, &moved) < 0)
    return NULL;
  n = pf_array_ndim(array) ? pf_array_shape(array)[0] : 0;
  list = PyList_New((Py_ssize_t)n);
  for (int64_t z = 0; list && z < n; z++) {
    PyObject *plane = take_plane(from, array, z);
    if (plane)
      PyList_SET_ITEM(list, (Py_ssize_t)z, plane);
    else
      Py_CLEAR(list);
  }
  pf_array_unref(&array);
  return list;
}

static PyObject *core_unstack(PyObject *self, PyObject *object) {
  struct pf_runtime *from = source_of(object);
  (void)self;
  (void)pf_deferred_drain();
  if (!from)
    return NULL;
  if (from->entry && !from->entry->give_aliased)
    return planes_by_index(object);
  return planes_by_view(from, object);
}

/* ----------------------------------------------------------- questions */

static PyObject *text_or_none(const char *text) {
  return text ? PyUnicode_FromString(text) : Py_NewRef(Py_None);
}

static PyObject *core_plan(PyObject *self, PyObject *args, PyObject *kwargs) {
  static char *names[] = {"source",    "target", "dtype",    "ndim", "aligned",
                          "read_only", "gaps",   "negative", NULL};
  PyObject *source, *target;
  const char *word = NULL;
  int ndim = 0, aligned = 64, read_only = 0, gaps = 0, negative = 0;
  struct pf_array_facts facts = {.dtype = PF_DTYPE_NONE};
  struct pf_error err = PF_ERROR_INIT;
  struct pf_convert_plan plan;
  struct pf_runtime *from, *to;
  PyObject *answer;
  (void)self;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO|ziippp", names, &source,
                                   &target, &word, &ndim, &aligned, &read_only,
                                   &gaps, &negative))
    return NULL;
  from = pf_runtime_find(source);
  to = from ? pf_runtime_find(target) : NULL;
  if (!to)
    return NULL;
  if (word && (facts.dtype = pf_dtype_find(word)) == PF_DTYPE_NONE)
    return PyErr_Format(PyExc_ValueError, "no element type \"%s\"", word);
  facts = (struct pf_array_facts){
      facts.dtype,   ndim,           gaps != 0,
      negative != 0, read_only != 0, (uint32_t)(aligned < 0 ? 0 : aligned)};
  pf_convert_plan(&plan, from->entry, to->entry, &facts);
  if (plan.mechanism == PF_MECHANISM_REFUSED)
    (void)pf_convert_refuse(&plan, to->entry, &facts, &err);
  answer = Py_BuildValue("{s:s,s:N}", "mechanism",
                         pf_mechanism_name(plan.mechanism), "reason",
                         text_or_none(err.message ? err.message : plan.why));
  pf_error_clear(&err);
  return answer;
}

static PyObject *log_entry(const struct log_row *row) {
  return Py_BuildValue(
      "{s:O,s:O,s:s,s:N,s:K,s:d}", "source", row->from->name, "target",
      row->to->name, "mechanism", pf_mechanism_name(row->mechanism), "reason",
      text_or_none(row->why), "bytes", (unsigned long long)row->n_bytes,
      "seconds", row->seconds);
}

static PyObject *core_log(PyObject *self, PyObject *unused) {
  uint64_t n = n_logged < LOG_ROWS ? n_logged : LOG_ROWS;
  PyObject *list = PyList_New(0);
  (void)self;
  (void)unused;
  for (uint64_t i = n_logged - n; list && i < n_logged; i++) {
    PyObject *entry = log_entry(&rows[i % LOG_ROWS]);
    if (!entry || PyList_Append(list, entry) < 0)
      Py_CLEAR(list);
    Py_XDECREF(entry);
  }
  return list;
}

static PyObject *core_log_clear(PyObject *self, PyObject *unused) {
  (void)self;
  (void)unused;
  n_logged = 0;
  Py_RETURN_NONE;
}

static PyObject *core_is_oom(PyObject *self, PyObject *args) {
  struct pf_runtime *runtime = NULL;
  PyObject *exception, *name = Py_None;
  (void)self;
  if (!PyArg_ParseTuple(args, "O|O", &exception, &name))
    return NULL;
  if (pf_runtimes_load() < 0)
    return NULL;
  if (name != Py_None && !(runtime = pf_runtime_find(name)))
    return NULL;
  return PyBool_FromLong(pf_exception_is_oom(runtime, exception));
}

static PyObject *core_clear_caches(PyObject *self, PyObject *unused) {
  (void)self;
  (void)unused;
  pf_runtimes_clear();
  Py_RETURN_NONE;
}

#define FAST(function) (PyCFunction)(void (*)(void))(function)
PyMethodDef pf_convert_methods[] = {
    {"convert", FAST(core_convert), METH_FASTCALL,
     PyDoc_STR("convert(obj, target, device=None, source=None) -> obj\n\n"
               "The array as the target framework's, on the same memory\n"
               "wherever that is possible.")},
    {"detect", core_detect, METH_O,
     PyDoc_STR("detect(obj) -> the name of the framework whose array it is")},
    {"stack", FAST(core_stack), METH_FASTCALL,
     PyDoc_STR("stack(slices, target, device=None) -> obj\n\n"
               "One [Z,Y,X] of 2D slices of any frameworks: one allocation,\n"
               "one copy of each slice.")},
    {"unstack", core_unstack, METH_O,
     PyDoc_STR("unstack(obj) -> list of its planes, views where the\n"
               "framework has views")},
    {"plan_conversion", FAST(core_plan), METH_VARARGS | METH_KEYWORDS,
     PyDoc_STR("plan_conversion(source, target, dtype=None, ndim=0,\n"
               "aligned=64, read_only=False, gaps=False, negative=False)\n"
               "-> {\"mechanism\": str, \"reason\": str or None}")},
    {"conversion_log", core_log, METH_NOARGS,
     PyDoc_STR("The last conversions, the oldest first, as dicts.")},
    {"clear_conversion_log", core_log_clear, METH_NOARGS,
     PyDoc_STR("Forget them.")},
    {"is_oom", core_is_oom, METH_VARARGS,
     PyDoc_STR("is_oom(exc, name=None) -> whether it says that memory ran\n"
               "out, to that framework or to any.")},
    {"clear_caches", core_clear_caches, METH_NOARGS,
     PyDoc_STR("Give back what imported frameworks and the host's pool "
               "keep.")},
    {NULL, NULL, 0, NULL}};
