/* Making, calling and dropping what a step runs: see glue.h. GIL not held. */
#include "steps/python/framework.h"

#include <stdlib.h>
#include <string.h>

#include "bridge/json.h"

/* The input, then keywords; more than any readable function has. */
enum { MAX_ARGS = 64 };

struct instance {
  struct pf_python_step *step; /* borrowed: outlives its instances */
  PyObject *callable;          /* the function, or the class's object */
  PyObject *names;  /* of keywords: parameters, `with` arrays, info */
  PyObject *values; /* of the parameters, a tuple */
  size_t n_with;    /* that `names` was made for */
  bool names_ready;
  bool has_containers; /* values that a function could change */
};

static void free_instance(struct instance *instance) {
  Py_XDECREF(instance->callable);
  Py_XDECREF(instance->names);
  Py_XDECREF(instance->values);
  free(instance);
}

static bool has_containers(PyObject *values) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(values); i++)
    if (PyList_Check(PyTuple_GET_ITEM(values, i)) ||
        PyDict_Check(PyTuple_GET_ITEM(values, i)))
      return true;
  return false;
}

/* The keywords of a function's call: names and values of the parameters. -1
 * with an exception. */
static int bind_keywords(struct instance *instance, PyObject *params) {
  PyObject *keys = PyDict_Keys(params), *values = PyDict_Values(params);
  if (keys && values) {
    instance->names = PyList_AsTuple(keys);
    instance->values = PyList_AsTuple(values);
  }
  Py_XDECREF(keys);
  Py_XDECREF(values);
  if (!instance->names || !instance->values)
    return -1;
  if (PyTuple_GET_SIZE(instance->values) > MAX_ARGS / 2) {
    PyErr_SetString(PyExc_ValueError, "more parameters than a call can have");
    return -1;
  }
  instance->has_containers = has_containers(instance->values);
  return 0;
}

/* -1 with an exception. */
static int bind(struct instance *instance, PyObject *params) {
  PyObject *none, *empty;
  int code;
  if (!instance->step->is_class) {
    instance->callable = Py_NewRef(instance->step->object);
    return bind_keywords(instance, params);
  }
  none = PyTuple_New(0);
  empty = PyDict_New();
  if (none && empty)
    instance->callable = PyObject_Call(instance->step->object, none, params);
  code = instance->callable ? bind_keywords(instance, empty) : -1;
  Py_XDECREF(none);
  Py_XDECREF(empty);
  return code;
}

int pf_glue_make(void **made, void *handle, const struct pf_json_doc *doc,
                 const struct cJSON *params, struct pf_error *err) {
  struct instance *instance = calloc(1, sizeof(*instance));
  PyObject *keywords = NULL;
  struct pf_gil gil;
  int code;
  *made = NULL;
  if (!instance)
    return pf_error_set(err, PF_ENOMEM, "out of memory");
  if ((code = pf_gil_enter(&gil, err))) {
    free(instance);
    return code;
  }
  (void)pf_deferred_drain();
  instance->step = handle;
  keywords = params ? pf_json_to_python(doc, params) : PyDict_New();
  if (!keywords || bind(instance, keywords) < 0) {
    code = pf_glue_error(err, PF_ESTEP);
    free_instance(instance);
  } else {
    *made = instance;
  }
  Py_XDECREF(keywords);
  pf_gil_leave(&gil);
  return code;
}

void pf_glue_drop(void *made) {
  struct pf_error ignored = PF_ERROR_INIT;
  struct pf_gil gil;
  /* Without memory for a thread state the object stays until the end. */
  if (!pf_gil_enter(&gil, &ignored)) {
    free_instance(made);
    (void)pf_deferred_drain();
    pf_gil_leave(&gil);
  }
  pf_error_clear(&ignored);
}

/* The arguments of one call; all references are owned. */
struct arguments {
  PyObject *item[1 + MAX_ARGS];
  size_t n;
  PyObject *info; /* borrowed from item, or NULL */
};

/* -1 with an exception if `item` is NULL. */
static int append(struct arguments *arguments, PyObject *item) {
  if (!item)
    return -1;
  arguments->item[arguments->n++] = item;
  return 0;
}

static void drop_arguments(struct arguments *arguments) {
  for (size_t i = 0; i < arguments->n; i++)
    if (arguments->item[i] != arguments->info)
      Py_CLEAR(arguments->item[i]);
  if (arguments->info)
    pf_info_finish(arguments->info);
  arguments->n = 0;
  arguments->info = NULL;
}

/* The names of the keywords, once the names of the `with` arrays are known;
 * they are the same in each call of an instance. */
static int complete_names(struct instance *instance,
                          const struct pf_call *call) {
  PyObject *list;
  int code = 0;
  if (instance->names_ready && instance->n_with == call->n_with)
    return 0;
  if (instance->names_ready || call->n_with > MAX_ARGS / 4) {
    PyErr_SetString(PyExc_SystemError,
                    "the arrays of a step changed between its calls");
    return -1;
  }
  list = PySequence_List(instance->names);
  for (size_t i = 0; list && i < call->n_with && !code; i++) {
    PyObject *name = PyUnicode_FromString(call->with[i].name);
    code = name ? PyList_Append(list, name) : -1;
    Py_XDECREF(name);
  }
  if (list && !code && instance->step->takes_info) {
    PyObject *name = PyUnicode_FromString("info");
    code = name ? PyList_Append(list, name) : -1;
    Py_XDECREF(name);
  }
  if (list && !code) {
    PyObject *names = PyList_AsTuple(list);
    code = names ? 0 : -1;
    /* Another thread may have been faster, and be calling with its names. */
    if (names && instance->names_ready) {
      Py_DECREF(names);
    } else if (names) {
      Py_SETREF(instance->names, names);
      instance->n_with = call->n_with;
      instance->names_ready = true;
    }
  }
  Py_XDECREF(list);
  return list ? code : -1;
}

/* An array as the function takes it. Notes in *copied_why where that took a
 * copy. */
static PyObject *take(struct pf_array *array, enum pf_memory_type type,
                      bool read_only, const char **copied_why) {
  struct pf_runtime *to;
  struct pf_moved moved;
  PyObject *object;
  if (type == PF_MEM_NUMPY)
    return pf_ndarray_from_array(array, read_only);
  to = pf_runtime_of_type(type);
  if (!to || pf_runtime_first_use(to) < 0)
    return NULL;
  object = pf_take(to, array, read_only, &moved);
  if (moved.why && !*copied_why)
    *copied_why = moved.why;
  return object;
}

/* -1 with an exception. */
static int build_arguments(struct arguments *arguments,
                           struct instance *instance,
                           const struct pf_call *call,
                           const char **copied_why) {
  const char *ignored = NULL; /* the plan says it of every `with` array */
  if (complete_names(instance, call) < 0)
    return -1;
  if (append(arguments, take(call->stack, call->input_type, !call->may_write,
                             copied_why)))
    return -1;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(instance->values); i++) {
    PyObject *value = PyTuple_GET_ITEM(instance->values, i);
    if (append(arguments, instance->has_containers ? pf_json_copy(value)
                                                   : Py_NewRef(value)))
      return -1;
  }
  for (size_t i = 0; i < call->n_with; i++)
    if (append(arguments,
               take(call->with[i].array, call->input_type, true, &ignored)))
      return -1;
  if (instance->step->takes_info) {
    arguments->info = pf_info_create(call->info);
    if (append(arguments, arguments->info))
      return -1;
  }
  return 0;
}

static int call_held(struct instance *instance, const struct pf_call *call,
                     struct pf_result *result, struct pf_error *err) {
  struct arguments arguments = {{NULL}, 0, NULL};
  const char *copied_why = NULL;
  struct pf_given given;
  PyObject *value = NULL;
  int code = PF_OK;
  pf_stdio_begin(call->info);
  if (build_arguments(&arguments, instance, call, &copied_why) == 0)
    value = PyObject_Vectorcall(instance->callable, arguments.item, 1,
                                instance->names);
  if (value) {
    given = (struct pf_given){call->stack, arguments.item[0], call->may_write,
                              copied_why};
    code = pf_glue_result(result, value, call, &given, err);
  } else {
    code = pf_step_error(err);
  }
  drop_arguments(&arguments);
  pf_stdio_end();
  return code;
}

int pf_glue_call(void *made, const struct pf_call *call,
                 struct pf_result *result, struct pf_error *err) {
  struct pf_gil gil;
  int code = pf_gil_enter(&gil, err);
  if (code)
    return code;
  (void)pf_deferred_drain();
  code = call_held(made, call, result, err);
  (void)pf_deferred_drain();
  pf_gil_leave(&gil);
  return code;
}
