/* Arrays out of frameworks: see framework.h. */
#include "steps/python/framework.h"

#include <string.h>

#include <dlpack/dlpack.h>

#include "bridge/opencl.h"

/* Names of capsules, before and after somebody took what is in them. */
static const char versioned_name[] = "dltensor_versioned";
static const char versioned_used[] = "used_dltensor_versioned";
static const char legacy_name[] = "dltensor";
static const char legacy_used[] = "used_dltensor";

static int raise(struct pf_error *err) {
  (void)pf_raise_conversion(err);
  return -1;
}

/* Owns the tensor from here on. */
static int keep_tensor(struct pf_array **out, DLManagedTensorVersioned *tensor,
                       enum pf_memory_type type) {
  struct pf_error err = PF_ERROR_INIT;
  if (!pf_array_from_dlpack(out, tensor, type, &err))
    return 0;
  if (tensor->deleter)
    tensor->deleter(tensor);
  return raise(&err);
}

static int from_capsule(struct pf_array **out, PyObject *capsule,
                        enum pf_memory_type type) {
  struct pf_error err = PF_ERROR_INIT;
  int code;
  if (PyCapsule_IsValid(capsule, versioned_name)) {
    code = pf_array_from_dlpack(
        out, PyCapsule_GetPointer(capsule, versioned_name), type, &err);
    return code ? raise(&err) : PyCapsule_SetName(capsule, versioned_used);
  }
  if (PyCapsule_IsValid(capsule, legacy_name)) {
    code = pf_array_from_dlpack_legacy(
        out, PyCapsule_GetPointer(capsule, legacy_name), type, &err);
    return code ? raise(&err) : PyCapsule_SetName(capsule, legacy_used);
  }
  PyErr_SetString(PyExc_BufferError,
                  "__dlpack__() gave no capsule of a DLPack tensor");
  return -1;
}

/* object.__dlpack__(), with max_version where the framework knows it. */
static PyObject *ask_capsule(PyObject *object, bool versioned) {
  static PyObject *method, *names, *version;
  PyObject *args[2];
  if (!method) {
    PyObject *text = PyUnicode_InternFromString("__dlpack__");
    names = Py_BuildValue("(s)", "max_version");
    version =
        Py_BuildValue("(ii)", DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION);
    if (!text || !names || !version)
      return NULL;
    method = text;
  }
  args[0] = object;
  args[1] = version;
  return PyObject_VectorcallMethod(method, args,
                                   1 | PY_VECTORCALL_ARGUMENTS_OFFSET,
                                   versioned ? names : NULL);
}

static int by_capsule(struct pf_array **out, const struct pf_runtime *from,
                      PyObject *object) {
  PyObject *capsule = ask_capsule(object, from->entry->give_versioned);
  int code = capsule ? from_capsule(out, capsule, from->type) : -1;
  Py_XDECREF(capsule);
  return code;
}

static int by_exchange(struct pf_array **out, const struct pf_runtime *from,
                       PyObject *object) {
  DLManagedTensorVersioned *tensor = NULL;
  if (from->exchange->managed_tensor_from_py_object_no_sync(object, &tensor) ==
      0)
    return keep_tensor(out, tensor, from->type);
  if (!PyErr_Occurred())
    PyErr_SetString(PyExc_BufferError, "the framework gave no tensor");
  return -1;
}

static int hand_out(struct pf_array **out, const struct pf_runtime *from,
                    PyObject *object) {
  return from->exchange ? by_exchange(out, from, object)
                        : by_capsule(out, from, object);
}

/* What keeps an object from being given (a gradient) is taken off only where
 * it is there: the call costs as much as all the rest. */
static int prepare_and_give(struct pf_array **out,
                            const struct pf_runtime *from, PyObject *object) {
  PyObject *exception = pf_take_exception();
  PyObject *prepared = PyObject_CallMethodNoArgs(object, from->prepare);
  int code = prepared ? hand_out(out, from, prepared) : -1;
  Py_XDECREF(prepared);
  Py_DECREF(exception);
  return code;
}

static int by_adapter(struct pf_array **out, const struct pf_runtime *from,
                      PyObject *object, struct pf_moved *moved) {
  struct pf_error err = PF_ERROR_INIT;
  PyObject *given = PyObject_CallOneArg(from->adapter_give, object);
  const char *copied;
  int code;
  moved->mechanism = PF_MECHANISM_ADAPTER;
  if (!given)
    return -1;
  code = pf_ndarray_share(out, given, &copied, &err);
  Py_DECREF(given);
  if (code)
    return raise(&err);
  pf_array_set_memory_type(*out, from->type);
  return 0;
}

static int wait_for(const struct pf_runtime *from, PyObject *object) {
  PyObject *done;
  if (!from->wait || from->entry->give_blocks)
    return 0;
  done = PyObject_CallOneArg(from->wait, object);
  Py_XDECREF(done);
  return done ? 0 : -1;
}

static int give_buffer(struct pf_array **out, PyObject *object,
                       struct pf_moved *moved) {
  struct pf_error err = PF_ERROR_INIT;
  if (pf_ndarray_share(out, object, &moved->why, &err))
    return raise(&err);
  if (moved->why)
    moved->mechanism = PF_MECHANISM_COPIED;
  return 0;
}

/* Element types whose export would end the process, by the words in the
 * entry. What has passed is kept: there are few types. */
static int check_type(const struct pf_runtime *from, PyObject *object) {
  static PyObject *passed[32];
  const struct pf_framework *entry = from->entry;
  PyObject *dtype, *text;
  const char *word;
  size_t k = 0;
  if (!entry->n_give_refuses)
    return 0;
  dtype = PyObject_GetAttrString(object, "dtype");
  while (dtype && k < 32 && passed[k] && passed[k] != dtype)
    k++;
  if (dtype && k < 32 && passed[k]) {
    Py_DECREF(dtype);
    return 0;
  }
  text = dtype ? PyObject_Str(dtype) : NULL;
  word = text ? PyUnicode_AsUTF8(text) : NULL;
  for (size_t i = 0; word && i < entry->n_give_refuses; i++)
    if (strstr(word, entry->give_refuses[i])) {
      PyErr_Format(PyExc_TypeError, "%s cannot give an array of %s",
                   entry->name, word);
      word = NULL;
    }
  if (word && k < 32)
    passed[k] = Py_NewRef(dtype);
  Py_XDECREF(text);
  Py_XDECREF(dtype);
  return PyErr_Occurred() ? -1 : 0;
}

/* Frameworks are handed host memory: a device's as a view where it is the
 * host's too, else as a copy. The framework has finished (wait_for()). */
static int to_host(struct pf_array **array, struct pf_moved *moved) {
  struct pf_device host = {PF_DEVICE_HOST, 0};
  struct pf_array *device = *array, *seen = NULL;
  struct pf_error err = PF_ERROR_INIT;
  enum pf_memory_type type = pf_array_memory_type(device);
  int code = PF_EINVAL, index;
  PyThreadState *state;
  if (pf_array_device(device).type == PF_DEVICE_HOST ||
      pf_array_device(device).type == PF_DEVICE_CUDA_HOST)
    return 0;
  state = PyEval_SaveThread();
  if (pf_array_device(device).type == PF_DEVICE_OPENCL &&
      !pf_opencl_adopt(pf_array_data(device), &index, &err))
    code = pf_opencl_to_host_view(&seen, device, &err);
  if (code) {
    pf_error_clear(&err);
    moved->mechanism = PF_MECHANISM_COPIED;
    moved->why = "it lies on a device";
    code = pf_array_to_device(&seen, device, host, NULL, &err);
    if (!code)
      code = pf_array_wait(seen, &err);
  }
  PyEval_RestoreThread(state);
  pf_array_unref(array);
  if (code) {
    pf_array_unref(&seen);
    return raise(&err);
  }
  pf_array_set_memory_type(seen, type);
  *array = seen;
  return 0;
}

int pf_give(struct pf_array **out, struct pf_runtime *from, PyObject *object,
            bool mark, struct pf_moved *moved) {
  int code;
  *out = NULL;
  *moved = (struct pf_moved){PF_MECHANISM_SHARED, NULL, false};
  if (!from->entry) {
    struct pf_array_object *memory = (struct pf_array_object *)object;
    *out = pf_array_ref(memory->array);
    moved->is_read_only = memory->read_only;
    return 0;
  }
  if (!pf_framework_is_on_host(from->entry)) {
    PyErr_Format(PyExc_BufferError,
                 "arrays of %s cannot be taken here: their memory is a "
                 "device's, not the host's",
                 from->entry->name);
    return -1;
  }
  if (from->is_buffer)
    return give_buffer(out, object, moved);
  if (pf_runtime_ready(from) < 0 || check_type(from, object) < 0 ||
      wait_for(from, object) < 0)
    return -1;
  if (from->adapter_give)
    return by_adapter(out, from, object, moved);
  code = hand_out(out, from, object);
  if (code && from->prepare)
    code = prepare_and_give(out, from, object);
  if (!code)
    code = to_host(out, moved);
  if (!code && mark && from->entry->give_aliased)
    pf_array_set_read_only(*out);
  return code;
}
