/* DLPack's side of plateflow._core.Array: see glue.h. */
#include "steps/python/glue.h"

#include <dlpack/dlpack.h>

/* Names of capsules: static, because a capsule keeps the pointer. */
static const char versioned_name[] = "dltensor_versioned";
static const char legacy_name[] = "dltensor";

/* A capsule whose name is still ours was taken by nobody. */
static void drop_versioned(PyObject *capsule) {
  DLManagedTensorVersioned *tensor;
  if (!PyCapsule_IsValid(capsule, versioned_name))
    return;
  tensor = PyCapsule_GetPointer(capsule, versioned_name);
  tensor->deleter(tensor);
}

static void drop_legacy(PyObject *capsule) {
  DLManagedTensor *tensor;
  if (!PyCapsule_IsValid(capsule, legacy_name))
    return;
  tensor = PyCapsule_GetPointer(capsule, legacy_name);
  tensor->deleter(tensor);
}

static PyObject *versioned_capsule(struct pf_array_object *self, bool copied) {
  DLManagedTensorVersioned *tensor = pf_array_to_dlpack(self->array);
  PyObject *capsule;
  if (!tensor)
    return PyErr_NoMemory();
  if (self->read_only)
    tensor->flags |= DLPACK_FLAG_BITMASK_READ_ONLY;
  if (copied)
    tensor->flags |= DLPACK_FLAG_BITMASK_IS_COPIED;
  capsule = PyCapsule_New(tensor, versioned_name, drop_versioned);
  if (!capsule)
    tensor->deleter(tensor);
  return capsule;
}

static PyObject *legacy_capsule(struct pf_array_object *self) {
  DLManagedTensor *tensor;
  PyObject *capsule;
  if (self->read_only && !self->lends) {
    PyErr_SetString(PyExc_BufferError,
                    "a read-only array needs max_version=(1, 0) or later");
    return NULL;
  }
  tensor = pf_array_to_dlpack_legacy(self->array);
  if (!tensor)
    return PyErr_NoMemory();
  capsule = PyCapsule_New(tensor, legacy_name, drop_legacy);
  if (!capsule)
    tensor->deleter(tensor);
  return capsule;
}

PyObject *pf_array_capsule(PyObject *self, bool versioned) {
  struct pf_array_object *source = (struct pf_array_object *)self;
  source->shared = true;
  return versioned ? versioned_capsule(source, false) : legacy_capsule(source);
}

/* What the consumer asked for. */
struct request {
  PyObject *stream, *max_version, *device, *copy;
};

/* True: the versioned capsule; -1 with an exception. */
static int wants_versioned(PyObject *max_version) {
  int major, minor;
  if (max_version == Py_None)
    return 0;
  if (!PyTuple_Check(max_version)) {
    PyErr_SetString(PyExc_TypeError, "max_version is no tuple");
    return -1;
  }
  if (!PyArg_ParseTuple(max_version, "ii", &major, &minor))
    return -1;
  return major >= DLPACK_MAJOR_VERSION;
}

static int check_request(const struct request *request) {
  int type, id;
  if (request->stream != Py_None) {
    PyErr_SetString(PyExc_BufferError,
                    "memory of the host has no stream: pass None");
    return -1;
  }
  if (request->device == Py_None)
    return 0;
  if (!PyArg_ParseTuple(request->device, "ii", &type, &id))
    return -1;
  if (type == kDLCPU && id == 0)
    return 0;
  PyErr_Format(PyExc_BufferError,
               "the array is on the host, not on device (%d, %d)", type, id);
  return -1;
}

/* An Array over a copy; a new reference. */
static struct pf_array_object *copied(struct pf_array_object *self) {
  struct pf_error err = PF_ERROR_INIT;
  struct pf_array *copy = NULL;
  PyObject *object;
  if (pf_array_copy(&copy, self->array, &err)) {
    (void)pf_glue_raise(&err);
    return NULL;
  }
  object = pf_array_object_create(copy, false);
  pf_array_unref(&copy);
  return (struct pf_array_object *)object;
}

PyObject *pf_array_dlpack(PyObject *self, PyObject *args, PyObject *kwargs) {
  static char *names[] = {"stream", "max_version", "dl_device", "copy", NULL};
  struct request request = {Py_None, Py_None, Py_None, Py_None};
  struct pf_array_object *source;
  PyObject *capsule = NULL;
  int versioned, copy;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$OOOO", names,
                                   &request.stream, &request.max_version,
                                   &request.device, &request.copy))
    return NULL;
  versioned = wants_versioned(request.max_version);
  copy = PyObject_IsTrue(request.copy);
  if (versioned < 0 || copy < 0 || check_request(&request) < 0)
    return NULL;
  source = copy ? copied((struct pf_array_object *)self)
                : (struct pf_array_object *)Py_NewRef(self);
  if (!source)
    return NULL;
  capsule = versioned ? versioned_capsule(source, copy != 0)
                      : legacy_capsule(source);
  if (capsule)
    source->shared = true;
  Py_DECREF(source);
  return capsule;
}

PyObject *pf_array_dlpack_device(PyObject *self, PyObject *unused) {
  struct pf_device device =
      pf_array_device(((struct pf_array_object *)self)->array);
  (void)unused;
  return Py_BuildValue("(ii)", (int)device.type, (int)device.index);
}

PyMethodDef pf_array_dlpack_methods[] = {
    {"__dlpack__", (PyCFunction)(void (*)(void))pf_array_dlpack,
     METH_VARARGS | METH_KEYWORDS,
     PyDoc_STR("A DLPack capsule: versioned from max_version=(1, 0) on.")},
    {"__dlpack_device__", pf_array_dlpack_device, METH_NOARGS,
     PyDoc_STR("The device as DLPack numbers it.")},
    {NULL, NULL, 0, NULL}};
