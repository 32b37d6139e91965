/* Arrays into frameworks: see framework.h. */
#include "steps/python/framework.h"

#include <dlpack/dlpack.h>

/* A copy of this many bytes is worth letting other threads run meanwhile. */
enum { LONG_COPY = 64 << 10 };

const struct DLPackExchangeAPI *pf_exchange_of(PyObject *capsule) {
  const DLPackExchangeAPI *api;
  if (!PyCapsule_IsValid(capsule, "dlpack_exchange_api"))
    return NULL;
  api = PyCapsule_GetPointer(capsule, "dlpack_exchange_api");
  return api->header.version.major == DLPACK_MAJOR_VERSION ? api : NULL;
}

/* A compact host copy; NULL with an exception. */
static struct pf_array *copy_of(struct pf_array *array) {
  struct pf_error err = PF_ERROR_INIT;
  struct pf_array *copy = NULL;
  int code;
  if (pf_array_n_bytes(array) < LONG_COPY) {
    code = pf_array_copy(&copy, array, &err);
  } else {
    PyThreadState *state = PyEval_SaveThread();
    code = pf_array_copy(&copy, array, &err);
    PyEval_RestoreThread(state);
  }
  return code ? (struct pf_array *)pf_raise_conversion(&err) : copy;
}

/* Through DLPack's C functions: no call into Python at all. */
static PyObject *by_exchange(const DLPackExchangeAPI *api,
                             struct pf_array *array, bool read_only) {
  DLManagedTensorVersioned *tensor = pf_array_to_dlpack(array);
  void *object = NULL;
  if (!tensor)
    return PyErr_NoMemory();
  if (read_only)
    tensor->flags |= DLPACK_FLAG_BITMASK_READ_ONLY;
  if (api->managed_tensor_to_py_object_no_sync(tensor, &object) == 0)
    return object;
  if (!PyErr_Occurred())
    PyErr_SetString(PyExc_BufferError, "the framework took no array");
  return NULL;
}

static PyObject *by_call(const struct pf_runtime *to, PyObject *memory) {
  bool versioned = to->entry->take_kind == PF_TAKE_CAPSULE;
  PyObject *capsule, *object;
  if (to->adapter_take)
    return PyObject_CallOneArg(to->adapter_take, memory);
  if (to->entry->take_kind == PF_TAKE_OBJECT)
    return PyObject_CallOneArg(to->take, memory);
  capsule = pf_array_capsule(memory, versioned);
  object = capsule ? PyObject_CallOneArg(to->take, capsule) : NULL;
  Py_XDECREF(capsule);
  return object;
}

/* Without a copy of ours. */
static PyObject *hand_over(struct pf_runtime *to, struct pf_array *array,
                           bool read_only) {
  PyObject *memory, *object;
  if (to->is_buffer)
    return pf_ndarray_view(array, read_only);
  if (to->exchange && !to->adapter_take)
    return by_exchange(to->exchange, array, read_only);
  memory = pf_array_object_create(array, read_only);
  if (!memory)
    return NULL;
  /* A legacy capsule cannot say "read-only" to those who never write. */
  ((struct pf_array_object *)memory)->lends = to->entry->give_aliased;
  object = by_call(to, memory);
  Py_DECREF(memory);
  return object;
}

static PyObject *refuse(struct pf_runtime *to,
                        const struct pf_convert_plan *plan,
                        const struct pf_array_facts *facts) {
  struct pf_error err = PF_ERROR_INIT;
  (void)pf_convert_refuse(plan, to->entry, facts, &err);
  return pf_raise_conversion(&err);
}

PyObject *pf_take(struct pf_runtime *to, struct pf_array *array,
                  bool read_only, struct pf_moved *moved) {
  struct pf_array_facts facts;
  struct pf_convert_plan plan;
  struct pf_array *copy;
  PyObject *object;
  *moved = (struct pf_moved){PF_MECHANISM_SHARED, NULL, false};
  if (!to->entry)
    return pf_array_object_create(array, read_only);
  if (pf_runtime_ready(to) < 0)
    return NULL;
  pf_array_facts(&facts, array);
  facts.is_read_only = facts.is_read_only || read_only;
  pf_convert_plan(&plan, NULL, to->entry, &facts);
  if (plan.mechanism == PF_MECHANISM_REFUSED) {
    pf_runtime_look_again(to);
    pf_convert_plan(&plan, NULL, to->entry, &facts);
  }
  if (plan.mechanism == PF_MECHANISM_REFUSED)
    return refuse(to, &plan, &facts);
  *moved = (struct pf_moved){plan.mechanism, plan.why, false};
  if (plan.mechanism != PF_MECHANISM_COPIED)
    return hand_over(to, array, facts.is_read_only);
  copy = copy_of(array);
  if (!copy)
    return NULL;
  object = hand_over(to, copy, false);
  pf_array_unref(&copy);
  return object;
}
