/*
 * NumPy arrays, both ways, without NumPy's headers: see glue.h.
 *
 * Who else can see an array's memory is answered by reference counts. A value
 * that a function just returned is referenced by nobody but us if the function
 * kept nothing:
 *
 *   result --base--> ndarray --base--> ... --base--> owner of the memory
 *     1 (ours)          1 (its view's)                 1
 *
 * One count more anywhere means that somebody kept it, and may write there
 * later, when the array is long on its way to the next step.
 */
#include "steps/python/glue.h"

#include <stdlib.h>
#include <string.h>

static const char kept[] = "the function keeps a reference to it";
static const char foreign[] = "its memory belongs to another object";
static const char of_input[] = "it shares memory with the step's input";
static const char not_in_order[] = "it is not in C order";
static const char not_native[] =
    "its bytes are swapped or not aligned to its elements";

/* ---------------------------------------------------------------- out */

/* numpy.dtype objects, made at their first use. */
static PyObject *numpy_dtype(enum pf_dtype dtype) {
  static PyObject *made[PF_N_DTYPES];
  PyObject *type;
  if (made[dtype])
    return made[dtype];
  if (dtype == PF_BF16)
    return PyErr_Format(PyExc_TypeError,
                        "NumPy has no bfloat16: give the step "
                        "\"input_dtype\": \"float32\"");
  type = pf_helper(PF_HELPER_DTYPE);
  if (type)
    made[dtype] = PyObject_CallFunction(type, "s", pf_dtype_name(dtype));
  return made[dtype];
}

static PyObject *shape_tuple(const struct pf_array *array) {
  const int64_t *shape = pf_array_shape(array);
  int n = pf_array_ndim(array);
  PyObject *tuple = PyTuple_New(n);
  for (int i = 0; tuple && i < n; i++) {
    PyObject *size = PyLong_FromLongLong(shape[i]);
    if (size)
      PyTuple_SET_ITEM(tuple, i, size);
    else
      Py_CLEAR(tuple);
  }
  return tuple;
}

/* numpy.ndarray(shape, dtype, buffer) over a compact array. */
static PyObject *wrap_compact(struct pf_array *array, bool read_only) {
  PyObject *type = pf_helper(PF_HELPER_NDARRAY);
  PyObject *dtype = type ? numpy_dtype(pf_array_dtype(array)) : NULL;
  PyObject *shape = dtype ? shape_tuple(array) : NULL;
  PyObject *memory = shape ? pf_array_object_create(array, read_only) : NULL;
  PyObject *ndarray = NULL;
  if (memory) {
    PyObject *args[] = {shape, dtype, memory};
    ndarray = PyObject_Vectorcall(type, args, 3, NULL);
  }
  Py_XDECREF(memory);
  Py_XDECREF(shape);
  return ndarray;
}

PyObject *pf_ndarray_view(struct pf_array *array, bool read_only) {
  PyObject *asarray, *memory, *ndarray;
  if (pf_array_is_compact(array))
    return wrap_compact(array, read_only);
  asarray = pf_helper(PF_HELPER_ASARRAY);
  memory = asarray ? pf_array_object_create(array, read_only) : NULL;
  ndarray = memory ? PyObject_CallOneArg(asarray, memory) : NULL;
  Py_XDECREF(memory);
  return ndarray;
}

PyObject *pf_ndarray_from_array(struct pf_array *array, bool read_only) {
  struct pf_error err = PF_ERROR_INIT;
  struct pf_array *copy = NULL;
  PyObject *ndarray;
  if (pf_array_is_compact(array))
    return wrap_compact(array, read_only);
  if (pf_array_copy(&copy, array, &err))
    return pf_glue_raise(&err);
  ndarray = wrap_compact(copy, read_only);
  pf_array_unref(&copy);
  return ndarray;
}

/* ----------------------------------------------------------------- in */

/* A buffer that an array of ours holds. */
struct held {
  struct pf_deferred node; /* first: a node is its struct held */
  Py_buffer view;
};

static void release_held(struct pf_deferred *node) {
  struct held *held = (struct held *)node;
  PyBuffer_Release(&held->view);
  free(held);
}

/* The last reference went, on a thread that need not hold the GIL. */
static void queue_held(void *owner) {
  struct held *held = owner;
  pf_deferred_push(&held->node);
}

/* Whether `base`, which owns what `ndarray` looks into, is the memory that the
 * step was given, and its own. `base` has two references: ndarray's and the
 * caller's. */
static const char *judge_owner(PyObject *ndarray, PyObject *base,
                               const struct pf_given *given) {
  struct pf_array_object *memory = (struct pf_array_object *)base;
  if (!Py_IS_TYPE(base, &pf_array_type))
    return foreign;
  if (ndarray != given->ndarray || !given->may_write)
    return of_input;
  return Py_REFCNT(base) > 2 || memory->shared ? kept : NULL;
}

/* Whether an ndarray without a base has memory of its own: C code can make
 * one over a buffer that it keeps. */
static const char *judge_root(PyObject *ndarray) {
  PyObject *flags = PyObject_GetAttrString(ndarray, "flags");
  PyObject *owns = flags ? PyObject_GetAttrString(flags, "owndata") : NULL;
  bool own = owns == Py_True;
  Py_XDECREF(owns);
  Py_XDECREF(flags);
  PyErr_Clear();
  return own ? NULL : foreign;
}

/*
 * Why the memory of `value` is not ours alone, or NULL. The caller has one
 * reference to `value`, and one to given->ndarray.
 */
static const char *shared_because(PyObject *value,
                                  const struct pf_given *given) {
  PyTypeObject *ndarray_type = (PyTypeObject *)pf_helper(PF_HELPER_NDARRAY);
  PyObject *at = Py_NewRef(value);
  const char *why = NULL;
  while (!why) {
    /* One of the view below (or our caller's), one of this loop. */
    Py_ssize_t expected = at == given->ndarray ? 3 : 2;
    PyObject *base = PyObject_GetAttrString(at, "base");
    bool is_view = base && PyObject_TypeCheck(base, ndarray_type);
    if (!base)
      PyErr_Clear();
    else if (base == Py_None)
      why = judge_root(at);
    else if (!is_view)
      why = judge_owner(at, base, given);
    if (!base || (!why && Py_REFCNT(at) > expected))
      why = kept;
    if (!is_view) {
      Py_XDECREF(base);
      break;
    }
    Py_SETREF(at, base);
  }
  Py_DECREF(at);
  return why;
}

/* The element type that a buffer's format names; `size` is its item's. */
static enum pf_dtype format_dtype(const char *format, Py_ssize_t size,
                                  bool *swapped) {
  static const struct {
    const char *letters;
    enum pf_dtype types[4]; /* of 1, 2, 4 and 8 bytes */
  } rows[] = {
      {"bhilq", {PF_I8, PF_I16, PF_I32, PF_I64}},
      {"BHILQ", {PF_U8, PF_U16, PF_U32, PF_U64}},
      {"?", {PF_BOOL, PF_DTYPE_NONE, PF_DTYPE_NONE, PF_DTYPE_NONE}},
      {"efd", {PF_DTYPE_NONE, PF_F16, PF_F32, PF_F64}},
  };
  size_t power = size == 1   ? 0
                 : size == 2 ? 1
                 : size == 4 ? 2
                 : size == 8 ? 3
                             : 4;
  if (!format)
    format = "B";
  *swapped = *format == '>' || *format == '!';
  format += strspn(format, "<>=@^!");
  if (power > 3 || !*format || format[1])
    return PF_DTYPE_NONE;
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
    if (strchr(rows[i].letters, *format))
      return rows[i].types[power];
  return PF_DTYPE_NONE;
}

static int refuse_dtype(PyObject *value, struct pf_error *err) {
  PyObject *dtype, *text;
  PyErr_Clear();
  dtype = PyObject_GetAttrString(value, "dtype");
  text = dtype ? PyObject_Str(dtype) : NULL;
  (void)pf_error_set(err, PF_ESTEP,
                     "the function returned an array of %s: give back an "
                     "integer, float or bool array, as result.astype(...) "
                     "makes",
                     text ? PyUnicode_AsUTF8(text) : "an unknown type");
  Py_XDECREF(text);
  Py_XDECREF(dtype);
  PyErr_Clear();
  return PF_ESTEP;
}

/* An array over the buffer, that owns it if `held` is set. */
static int wrap_view(struct pf_array **out, const Py_buffer *view,
                     enum pf_dtype dtype, struct held *held,
                     struct pf_error *err) {
  int64_t strides[PF_MAX_NDIM] = {0};
  struct pf_array_desc desc = {view->buf,    dtype,         view->ndim,
                               view->shape,  strides,       {1, 0},
                               PF_MEM_NUMPY, view->readonly};
  if (view->ndim > PF_MAX_NDIM)
    return pf_error_set(err, PF_ESTEP,
                        "the function returned an array of %d dimensions",
                        view->ndim);
  for (int i = 0; i < view->ndim; i++)
    strides[i] = view->strides[i] / view->itemsize;
  return pf_array_wrap(out, &desc, held ? queue_held : NULL, held, err);
}

/* Take over `view` as an array; it is released in any case. */
static int keep_view(struct pf_array **out, Py_buffer *view,
                     enum pf_dtype dtype, struct pf_error *err) {
  struct held *held = malloc(sizeof(*held));
  int code;
  if (!held) {
    PyBuffer_Release(view);
    return pf_error_set(err, PF_ENOMEM, "out of memory");
  }
  held->node.release = release_held;
  held->view = *view;
  code = wrap_view(out, &held->view, dtype, held, err);
  if (code)
    release_held(&held->node);
  return code; /* NOLINT(clang-analyzer-unix.Malloc): the array has it */
}

static int copy_view(struct pf_array **out, Py_buffer *view,
                     enum pf_dtype dtype, struct pf_error *err) {
  struct pf_array *array = NULL;
  int code = wrap_view(&array, view, dtype, NULL, err);
  if (!code)
    code = pf_array_copy(out, array, err);
  if (!code)
    pf_array_set_memory_type(*out, PF_MEM_NUMPY);
  pf_array_unref(&array);
  PyBuffer_Release(view);
  return code;
}

static bool is_input(const Py_buffer *view, enum pf_dtype dtype,
                     const struct pf_given *given) {
  struct pf_array *array = given->array;
  return view->buf == pf_array_data(array) && dtype == pf_array_dtype(array) &&
         view->ndim == pf_array_ndim(array) &&
         memcmp(view->shape, pf_array_shape(array),
                (size_t)view->ndim * sizeof(*view->shape)) == 0;
}

/* Elements that C cannot read where they lie. */
static bool is_odd(const Py_buffer *view, bool swapped) {
  bool odd = swapped || (uintptr_t)view->buf % (size_t)view->itemsize != 0;
  for (int i = 0; i < view->ndim; i++)
    odd = odd || (view->shape[i] > 1 && view->strides[i] % view->itemsize);
  return odd;
}

static int import_view(struct pf_array **out, PyObject *value,
                       const struct pf_given *given, const char **copied_why,
                       struct pf_error *err);

/* By way of a copy that NumPy makes, in native order. */
static int import_odd(struct pf_array **out, PyObject *value,
                      enum pf_dtype dtype, const struct pf_given *given,
                      const char **copied_why, struct pf_error *err) {
  PyObject *type = numpy_dtype(dtype), *straight;
  const char *ignored;
  int code;
  straight =
      type ? PyObject_CallMethod(value, "astype", "Os", type, "C") : NULL;
  if (!straight)
    return pf_glue_error(err, PF_ESTEP);
  code = import_view(out, straight, given, &ignored, err);
  Py_DECREF(straight);
  *copied_why = not_native;
  return code;
}

/* Borrows `value`, to which the caller has the one reference. */
static int import_view(struct pf_array **out, PyObject *value,
                       const struct pf_given *given, const char **copied_why,
                       struct pf_error *err) {
  const char *why = shared_because(value, given);
  enum pf_dtype dtype;
  bool swapped = false;
  Py_buffer view;
  if (PyObject_GetBuffer(value, &view, PyBUF_RECORDS_RO) < 0)
    return refuse_dtype(value, err);
  dtype = format_dtype(view.format, view.itemsize, &swapped);
  if (dtype == PF_DTYPE_NONE) {
    PyBuffer_Release(&view);
    return refuse_dtype(value, err);
  }
  if (is_odd(&view, swapped)) {
    PyBuffer_Release(&view);
    return import_odd(out, value, dtype, given, copied_why, err);
  }
  if (!why && !PyBuffer_IsContiguous(&view, 'C'))
    why = not_in_order;
  *copied_why = why;
  if (why)
    return copy_view(out, &view, dtype, err);
  if (!is_input(&view, dtype, given))
    return keep_view(out, &view, dtype, err);
  *out = pf_array_ref(given->array);
  PyBuffer_Release(&view);
  return PF_OK;
}

/* Values that look like arrays and hold something else. */
static int check_type(PyObject *value, struct pf_error *err) {
  PyTypeObject *ndarray = (PyTypeObject *)pf_helper(PF_HELPER_NDARRAY);
  PyTypeObject *type = Py_TYPE(value);
  if (!ndarray)
    return pf_glue_error(err, PF_EMISSING);
  if (!PyObject_TypeCheck(value, ndarray))
    return pf_error_set(err, PF_ESTEP,
                        "the function returned %s%s where a numpy.ndarray "
                        "is due",
                        value == Py_None ? "" : "an object of type ",
                        value == Py_None ? "None" : type->tp_name);
  if (type != ndarray && PyObject_HasAttrString(value, "mask"))
    return pf_error_set(err, PF_ESTEP,
                        "the function returned a masked array, whose mask "
                        "would be lost: give back result.filled(...)");
  return PF_OK;
}

/* As import_view(), for a value whose memory others may go on using. */
static int share_view(struct pf_array **out, PyObject *value, bool may_copy,
                      const char **copied_why, struct pf_error *err) {
  bool swapped = false;
  PyObject *straight, *type;
  enum pf_dtype dtype;
  Py_buffer view;
  int code;
  if (PyObject_GetBuffer(value, &view, PyBUF_RECORDS_RO) < 0)
    return refuse_dtype(value, err);
  dtype = format_dtype(view.format, view.itemsize, &swapped);
  if (dtype != PF_DTYPE_NONE && !is_odd(&view, swapped))
    return keep_view(out, &view, dtype, err);
  PyBuffer_Release(&view);
  if (dtype == PF_DTYPE_NONE || !may_copy)
    return refuse_dtype(value, err);
  type = numpy_dtype(dtype);
  straight =
      type ? PyObject_CallMethod(value, "astype", "Os", type, "C") : NULL;
  if (!straight)
    return pf_glue_error(err, PF_ESTEP);
  code = share_view(out, straight, false, copied_why, err);
  Py_DECREF(straight);
  *copied_why = not_native;
  return code;
}

int pf_ndarray_share(struct pf_array **out, PyObject *value,
                     const char **copied_why, struct pf_error *err) {
  PyTypeObject *ndarray = (PyTypeObject *)pf_helper(PF_HELPER_NDARRAY);
  int code = PF_OK;
  *out = NULL;
  *copied_why = NULL;
  /* What is exactly an ndarray needs no second look. */
  if (!Py_IS_TYPE(value, ndarray))
    code = check_type(value, err);
  return code ? code : share_view(out, value, true, copied_why, err);
}

int pf_ndarray_to_array(struct pf_array **out, PyObject *value,
                        const struct pf_given *given, const char **copied_why,
                        struct pf_error *err) {
  int code = check_type(value, err);
  *out = NULL;
  *copied_why = NULL;
  if (!code)
    code = import_view(out, value, given, copied_why, err);
  Py_DECREF(value);
  return code;
}
