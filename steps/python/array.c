/* plateflow._core.Array: see glue.h. */
#include "steps/python/glue.h"

/* What a dtype is called in the buffer protocol and in __array_interface__;
 * NULL: Python has no such type. */
struct format_row {
  const char *format, *interface;
};
static const struct format_row formats[PF_N_DTYPES] = {
    [PF_BOOL] = {"?", "|b1"}, [PF_U8] = {"B", "|u1"},  [PF_I8] = {"b", "|i1"},
    [PF_U16] = {"H", "<u2"},  [PF_I16] = {"h", "<i2"}, [PF_U32] = {"I", "<u4"},
    [PF_I32] = {"i", "<i4"},  [PF_U64] = {"L", "<u8"}, [PF_I64] = {"l", "<i8"},
    [PF_F16] = {"e", "<f2"},  [PF_F32] = {"f", "<f4"}, [PF_F64] = {"d", "<f8"},
};
_Static_assert(sizeof(long) == 8 && sizeof(Py_ssize_t) == sizeof(int64_t),
               "the formats above and the shapes are those of LP64");

static struct pf_array_object *as_array(PyObject *self) {
  return (struct pf_array_object *)self;
}

PyObject *pf_array_object_create(struct pf_array *array, bool read_only) {
  struct pf_array_object *self =
      PyObject_New(struct pf_array_object, &pf_array_type);
  const int64_t *strides = pf_array_strides(array);
  int64_t size = (int64_t)pf_dtype_size(pf_array_dtype(array));
  if (!self)
    return NULL;
  self->array = pf_array_ref(array);
  self->read_only = read_only || pf_array_is_read_only(array);
  self->shared = false;
  self->lends = false;
  for (int i = 0; i < pf_array_ndim(array); i++)
    self->strides[i] = strides[i] * size;
  return (PyObject *)self;
}

static void array_dealloc(PyObject *self) {
  pf_array_unref(&as_array(self)->array);
  PyObject_Free(self);
}

/* Sizes out of a sequence of integers; their number, -1 with an exception. */
static int parse_shape(int64_t *shape, PyObject *sequence) {
  PyObject *fast = PySequence_Fast(sequence, "shape is no sequence");
  Py_ssize_t n = fast ? PySequence_Fast_GET_SIZE(fast) : -1;
  if (n > PF_MAX_NDIM)
    PyErr_Format(PyExc_ValueError, "%zd dimensions are too many", n);
  for (Py_ssize_t i = 0; i < n && !PyErr_Occurred(); i++)
    shape[i] = PyLong_AsLongLong(PySequence_Fast_GET_ITEM(fast, i));
  Py_XDECREF(fast);
  return PyErr_Occurred() ? -1 : (int)n;
}

static PyObject *array_new(PyTypeObject *type, PyObject *args,
                           PyObject *kwargs) {
  static char *names[] = {"shape", "dtype", "read_only", NULL};
  struct pf_error err = PF_ERROR_INIT;
  struct pf_array *array = NULL;
  int64_t shape[PF_MAX_NDIM] = {0};
  PyObject *sequence, *self;
  const char *word = "uint16";
  int read_only = 0, n;
  enum pf_dtype dtype;
  (void)type;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|sp", names, &sequence,
                                   &word, &read_only))
    return NULL;
  if ((n = parse_shape(shape, sequence)) < 0)
    return NULL;
  dtype = pf_dtype_find(word);
  if (dtype == PF_DTYPE_NONE)
    return PyErr_Format(PyExc_ValueError, "no element type \"%s\"", word);
  if (pf_array_create(&array, dtype, n, shape, &err))
    return pf_glue_raise(&err);
  self = pf_array_object_create(array, read_only != 0);
  pf_array_unref(&array);
  return self;
}

/* Why the buffer cannot be given out as asked; NULL: it can. */
static const char *buffer_refusal(const struct pf_array_object *self,
                                  int flags) {
  /* Each of the three words holds PyBUF_STRIDES, too. */
  const int contiguous = /* NOLINTNEXTLINE(misc-redundant-expression) */
      PyBUF_C_CONTIGUOUS | PyBUF_F_CONTIGUOUS | PyBUF_ANY_CONTIGUOUS;
  bool in_order = (flags & contiguous & ~PyBUF_STRIDES) != 0 ||
                  (flags & PyBUF_STRIDES) != PyBUF_STRIDES;
  bool fortran = (flags & PyBUF_F_CONTIGUOUS) == PyBUF_F_CONTIGUOUS;
  if ((flags & PyBUF_WRITABLE) && self->read_only)
    return "the array is read-only";
  if (!formats[pf_array_dtype(self->array)].format)
    return "Python has no such element type: convert it to float32";
  if (in_order && !pf_array_is_compact(self->array))
    return "the array has gaps";
  if (fortran && pf_array_ndim(self->array) > 1)
    return "the array is in C order";
  return NULL;
}

static int array_getbuffer(PyObject *object, Py_buffer *view, int flags) {
  static char nothing; /* an address for arrays without elements */
  struct pf_array_object *self = as_array(object);
  struct pf_array *array = self->array;
  const char *refusal = buffer_refusal(self, flags);
  void *data = pf_array_data(array);
  view->obj = NULL;
  if (refusal) {
    PyErr_SetString(PyExc_BufferError, refusal);
    return -1;
  }
  view->buf = data ? data : &nothing;
  view->len = (Py_ssize_t)pf_array_n_bytes(array);
  view->itemsize = (Py_ssize_t)pf_dtype_size(pf_array_dtype(array));
  view->readonly = self->read_only;
  view->ndim = pf_array_ndim(array);
  view->format = flags & PyBUF_FORMAT
                     ? (char *)formats[pf_array_dtype(array)].format
                     : NULL;
  view->shape = flags & PyBUF_ND ? (Py_ssize_t *)pf_array_shape(array) : NULL;
  view->strides =
      (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? self->strides : NULL;
  view->suboffsets = NULL;
  view->internal = NULL;
  view->obj = Py_NewRef(object);
  return 0;
}

static PyObject *tuple_of(const int64_t *values, int n) {
  PyObject *tuple = PyTuple_New(n);
  for (int i = 0; tuple && i < n; i++) {
    PyObject *item = PyLong_FromLongLong(values[i]);
    if (item)
      PyTuple_SET_ITEM(tuple, i, item);
    else
      Py_CLEAR(tuple);
  }
  return tuple;
}

static PyObject *get_shape(PyObject *self, void *closure) {
  struct pf_array *array = as_array(self)->array;
  (void)closure;
  return tuple_of(pf_array_shape(array), pf_array_ndim(array));
}

static PyObject *get_strides(PyObject *self, void *closure) {
  (void)closure;
  return tuple_of((const int64_t *)as_array(self)->strides,
                  pf_array_ndim(as_array(self)->array));
}

static PyObject *get_ndim(PyObject *self, void *closure) {
  (void)closure;
  return PyLong_FromLong(pf_array_ndim(as_array(self)->array));
}

static PyObject *get_nbytes(PyObject *self, void *closure) {
  (void)closure;
  return PyLong_FromSize_t(pf_array_n_bytes(as_array(self)->array));
}

static PyObject *get_dtype(PyObject *self, void *closure) {
  (void)closure;
  return PyUnicode_FromString(
      pf_dtype_name(pf_array_dtype(as_array(self)->array)));
}

static PyObject *get_address(PyObject *self, void *closure) {
  (void)closure;
  return PyLong_FromVoidPtr(pf_array_data(as_array(self)->array));
}

static PyObject *get_read_only(PyObject *self, void *closure) {
  (void)closure;
  return PyBool_FromLong(as_array(self)->read_only);
}

static PyObject *get_interface(PyObject *self, void *closure) {
  struct pf_array *array = as_array(self)->array;
  const char *typestr = formats[pf_array_dtype(array)].interface;
  if (!typestr)
    return PyErr_Format(PyExc_AttributeError,
                        "NumPy has no element type %s: convert it to float32",
                        pf_dtype_name(pf_array_dtype(array)));
  return Py_BuildValue(
      "{s:i,s:s,s:(NN),s:N,s:N}", "version", 3, "typestr", typestr, "data",
      get_address(self, closure), get_read_only(self, closure), "shape",
      get_shape(self, closure), "strides", get_strides(self, closure));
}

static PyGetSetDef array_getset[] = {
    {"shape", get_shape, NULL, "sizes, the slowest axis first", NULL},
    {"strides", get_strides, NULL, "in bytes", NULL},
    {"ndim", get_ndim, NULL, "number of axes", NULL},
    {"nbytes", get_nbytes, NULL, "bytes of all elements", NULL},
    {"dtype", get_dtype, NULL, "NumPy's name of the element type", NULL},
    {"address", get_address, NULL, "of the first element", NULL},
    {"read_only", get_read_only, NULL, "whether it can be written to", NULL},
    {"__array_interface__", get_interface, NULL, "NumPy's description", NULL},
    {NULL, NULL, NULL, NULL, NULL}};

static PyBufferProcs array_buffer = {array_getbuffer, NULL};

PyDoc_STRVAR(
    array_doc,
    "Array(shape, dtype='uint16', read_only=False)\n--\n\n"
    "Host memory of plateflow, its elements not set: C order, aligned\n"
    "to 64 bytes, shared without a copy with whatever takes buffers,\n"
    "__array_interface__ or DLPack.");

PyTypeObject pf_array_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = PF_PACKAGE "._core.Array",
    .tp_basicsize = sizeof(struct pf_array_object),
    .tp_dealloc = array_dealloc,
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = array_doc,
    .tp_new = array_new,
    .tp_getset = array_getset,
    .tp_methods = pf_array_dlpack_methods,
    .tp_as_buffer = &array_buffer,
};
