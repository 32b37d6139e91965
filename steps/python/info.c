/*
 * plateflow._core.Info: the group, for a parameter called `info`.
 *
 * It looks into a struct that lives as long as the call. Attributes are made
 * when they are asked for; an object that somebody keeps gets them all at the
 * call's end, and then knows of no struct any more.
 */
#include "steps/python/glue.h"

#include <math.h>
#include <pthread.h>

struct info_object {
  PyObject_HEAD const struct pf_group_info *group; /* NULL: it is over */
  pthread_t thread;                                /* of the call */
  PyObject *components, *slices;                   /* NULL: not yet made */
  PyObject *step, *text, *device, *seed;
};

static PyTypeObject *slice_type; /* a named tuple */

static struct info_object *as_info(PyObject *self) {
  return (struct info_object *)self;
}

/* None for what is unknown. */
static PyObject *number(double value) {
  if (isnan(value))
    Py_RETURN_NONE;
  return PyFloat_FromDouble(value);
}

static PyObject *numbers(const double *values, Py_ssize_t n) {
  PyObject *tuple;
  for (Py_ssize_t i = 0; i < n; i++)
    if (isnan(values[i]))
      Py_RETURN_NONE;
  tuple = PyTuple_New(n);
  for (Py_ssize_t i = 0; tuple && i < n; i++) {
    PyObject *item = PyFloat_FromDouble(values[i]);
    if (item)
      PyTuple_SET_ITEM(tuple, i, item);
    else
      Py_CLEAR(tuple);
  }
  return tuple;
}

static PyObject *text_or_none(const char *text) {
  if (!text)
    Py_RETURN_NONE;
  return PyUnicode_DecodeFSDefault(text);
}

/* {"well": "A01", ...}: the components that have a value. */
static PyObject *components(const char *const *values) {
  PyObject *dict = PyDict_New();
  for (int i = 0; dict && i < PF_N_COMPONENTS; i++) {
    PyObject *value;
    if (!values[i])
      continue;
    value = PyUnicode_DecodeFSDefault(values[i]);
    if (!value ||
        PyDict_SetItemString(dict, pf_component_name((enum pf_component)i),
                             value) < 0)
      Py_CLEAR(dict);
    Py_XDECREF(value);
  }
  return dict;
}

static PyStructSequence_Field slice_fields[] = {
    {"channel", "its name, or None"},
    {"pixel_size_um", "(y, x), or None"},
    {"z_step_um", "or None"},
    {"position_um", "(z, y, x) in image axes, y down, or None"},
    {"time_s", "since the plate's start, or None"},
    {"path", "of the file that it was read from"},
    {"page", "in the file, from 0"},
    {"components", "dict of name and value"},
    {NULL, NULL}};

static PyStructSequence_Desc slice_desc = {
    PF_PACKAGE ".SliceInfo", "One slice of the stack.", slice_fields, 8};

static PyObject *slice(const struct pf_slice_info *info) {
  PyObject *made = PyStructSequence_New(slice_type);
  PyObject *items[] = {text_or_none(info->value[PF_CHANNEL]),
                       numbers(info->pixel_size_um, 2),
                       number(info->z_step_um),
                       numbers(info->position_um, 3),
                       number(info->time_s),
                       text_or_none(info->path),
                       PyLong_FromUnsignedLong(info->page),
                       components(info->value)};
  bool failed = !made;
  for (Py_ssize_t i = 0; i < slice_desc.n_in_sequence; i++) {
    failed = failed || !items[i];
    if (made)
      PyStructSequence_SetItem(made, i, items[i]); /* steals */
    else
      Py_XDECREF(items[i]);
  }
  if (failed)
    Py_CLEAR(made);
  return made;
}

static PyObject *slices(const struct pf_group_info *group) {
  Py_ssize_t n = (Py_ssize_t)group->n_slices;
  PyObject *tuple = PyTuple_New(n);
  for (Py_ssize_t i = 0; tuple && i < n; i++) {
    PyObject *item = slice(&group->slices[i]);
    if (item)
      PyTuple_SET_ITEM(tuple, i, item);
    else
      Py_CLEAR(tuple);
  }
  return tuple;
}

static PyObject *device(struct pf_device id) {
  if (id.type == 1)
    return PyUnicode_FromString("cpu");
  return PyUnicode_FromFormat("gpu:%d", (int)id.index);
}

/* What each lazy attribute is made of. */
static PyObject *make_components(const struct pf_group_info *group) {
  return components(group->value);
}
static PyObject *make_step(const struct pf_group_info *group) {
  return text_or_none(group->step);
}
static PyObject *make_text(const struct pf_group_info *group) {
  return text_or_none(group->text);
}
static PyObject *make_device(const struct pf_group_info *group) {
  return device(group->device);
}
static PyObject *make_seed(const struct pf_group_info *group) {
  return PyLong_FromUnsignedLongLong(group->seed);
}

struct lazy_row {
  size_t offset; /* in struct info_object */
  PyObject *(*make)(const struct pf_group_info *group);
};
static struct lazy_row lazy[] = {
    {offsetof(struct info_object, components), make_components},
    {offsetof(struct info_object, slices), slices},
    {offsetof(struct info_object, step), make_step},
    {offsetof(struct info_object, text), make_text},
    {offsetof(struct info_object, device), make_device},
    {offsetof(struct info_object, seed), make_seed},
};
enum { N_LAZY = sizeof(lazy) / sizeof(lazy[0]) };

static PyObject **place(PyObject *self, const struct lazy_row *row) {
  return (PyObject **)(void *)((char *)self + row->offset);
}

/* Make the attribute if need be; borrowed, NULL with an exception. */
static PyObject *fill(PyObject *self, const struct lazy_row *row) {
  PyObject **at = place(self, row);
  if (!*at && as_info(self)->group)
    *at = row->make(as_info(self)->group);
  if (!*at && !PyErr_Occurred())
    PyErr_SetString(PyExc_RuntimeError, "the group of this info is over");
  return *at;
}

static PyObject *get_lazy(PyObject *self, void *closure) {
  PyObject *value = fill(self, closure);
  return Py_XNewRef(value);
}

static PyObject *get_stream(PyObject *self, void *closure) {
  (void)self;
  (void)closure;
  Py_RETURN_NONE;
}

static PyGetSetDef info_getset[] = {
    {"components", get_lazy, NULL, "dict of the group's components", &lazy[0]},
    {"slices", get_lazy, NULL, "one SliceInfo per plane of the stack",
     &lazy[1]},
    {"step", get_lazy, NULL, "the step's name", &lazy[2]},
    {"group", get_lazy, NULL, "the group in words", &lazy[3]},
    {"device", get_lazy, NULL, "'cpu' or 'gpu:N'", &lazy[4]},
    {"seed", get_lazy, NULL, "from step and group, 64 bits", &lazy[5]},
    {"stream", get_stream, NULL, "None on the CPU", NULL},
    {NULL, NULL, NULL, NULL, NULL}};

/* The group of a call that still runs, or NULL with an exception. */
static const struct pf_group_info *running(PyObject *self) {
  if (!as_info(self)->group)
    PyErr_SetString(PyExc_RuntimeError, "the group of this info is over");
  return as_info(self)->group;
}

static PyObject *info_log(PyObject *self, PyObject *argument) {
  const struct pf_group_info *group = running(self);
  PyObject *text = group ? PyObject_Str(argument) : NULL;
  const char *line = text ? PyUnicode_AsUTF8(text) : NULL;
  if (line && group->log)
    group->log(group->context, line);
  Py_XDECREF(text);
  if (!line)
    return NULL;
  Py_RETURN_NONE;
}

static PyObject *info_write(PyObject *self, PyObject *args) {
  const struct pf_group_info *group = running(self);
  struct pf_error err = PF_ERROR_INIT;
  const char *name;
  Py_buffer bytes;
  bool own_thread;
  int code;
  if (!group || !PyArg_ParseTuple(args, "sy*", &name, &bytes))
    return NULL;
  /* In the call's own thread the group outlives the callback, so the GIL can
   * go; another thread of the function keeps it, and with it the call. */
  own_thread = pthread_equal(as_info(self)->thread, pthread_self()) != 0;
  if (!group->write) {
    PyBuffer_Release(&bytes);
    PyErr_SetString(PyExc_RuntimeError, "there is no output folder");
    return NULL;
  }
  if (own_thread) {
    PyThreadState *previous = pf_gil_lend();
    code =
        group->write(group->context, name, bytes.buf, (size_t)bytes.len, &err);
    pf_gil_take_back(previous);
  } else {
    code =
        group->write(group->context, name, bytes.buf, (size_t)bytes.len, &err);
  }
  PyBuffer_Release(&bytes);
  if (code)
    return pf_glue_raise(&err);
  Py_RETURN_NONE;
}

static PyMethodDef info_methods[] = {
    {"log", info_log, METH_O,
     PyDoc_STR("log(text)\n--\n\nOne line for OUT/log.txt.")},
    {"write", info_write, METH_VARARGS,
     PyDoc_STR("write(name, data)\n--\n\nA further output of the group: bytes "
               "that appear complete or not at all.")},
    {NULL, NULL, 0, NULL}};

static void info_dealloc(PyObject *self) {
  for (int i = 0; i < N_LAZY; i++)
    Py_XDECREF(*place(self, &lazy[i]));
  PyObject_Free(self);
}

static PyObject *info_repr(PyObject *self) {
  PyObject *step = fill(self, &lazy[2]);
  PyObject *text = step ? fill(self, &lazy[3]) : NULL;
  return text ? PyUnicode_FromFormat("<plateflow info: step %R, %U>", step,
                                     text)
              : NULL;
}

PyTypeObject pf_info_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = PF_PACKAGE "._core.Info",
    .tp_basicsize = sizeof(struct info_object),
    .tp_dealloc = info_dealloc,
    .tp_repr = info_repr,
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = PyDoc_STR("The group that a call of a step is about."),
    .tp_getset = info_getset,
    .tp_methods = info_methods,
};

int pf_info_ready(void) {
  if (!slice_type)
    slice_type = PyStructSequence_NewType(&slice_desc);
  return slice_type ? PyType_Ready(&pf_info_type) : -1;
}

PyObject *pf_info_create(const struct pf_group_info *group) {
  struct info_object *self = PyObject_New(struct info_object, &pf_info_type);
  if (!self)
    return NULL;
  self->group = group;
  self->thread = pthread_self();
  for (int i = 0; i < N_LAZY; i++)
    *place((PyObject *)self, &lazy[i]) = NULL;
  return (PyObject *)self;
}

void pf_info_finish(PyObject *info) {
  if (Py_REFCNT(info) > 1)
    for (int i = 0; i < N_LAZY; i++)
      if (!fill(info, &lazy[i]))
        PyErr_Clear(); /* memory ran out: it will say that it is over */
  as_info(info)->group = NULL;
  Py_DECREF(info);
}
