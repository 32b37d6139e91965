/* Opening a function or a class, and checking parameters: see glue.h. */
#include "steps/python/glue.h"

#include <stdlib.h>
#include <string.h>

#include "bridge/json.h"

/* The text of dict[key], malloc'd; "" where there is none. NULL with an
 * exception. */
static char *text_of(PyObject *dict, const char *key) {
  PyObject *value = PyDict_GetItemString(dict, key);
  const char *text =
      value && PyUnicode_Check(value) ? PyUnicode_AsUTF8(value) : "";
  char *copy = text ? strdup(text) : NULL;
  if (text && !copy)
    (void)PyErr_NoMemory();
  return copy;
}

static bool flag_of(PyObject *dict, const char *key) {
  return PyDict_GetItemString(dict, key) == Py_True;
}

/* A word of the description, through `find`; `otherwise` where there is none.
 * Python's half has checked it. */
static int word_of(PyObject *dict, const char *key, int (*find)(const char *),
                   int otherwise) {
  PyObject *value = PyDict_GetItemString(dict, key);
  const char *word =
      value && PyUnicode_Check(value) ? PyUnicode_AsUTF8(value) : NULL;
  return word ? find(word) : otherwise;
}

static int find_memory_type(const char *word) {
  return (int)pf_memory_type_find(word);
}

static struct pf_yields yields_of(PyObject *dict) {
  struct pf_yields yields = {PF_YIELDS_SAME, PF_N_COMPONENTS};
  PyObject *value = PyDict_GetItemString(dict, "yields");
  const char *word =
      value && PyUnicode_Check(value) ? PyUnicode_AsUTF8(value) : "same";
  enum pf_component along = word ? pf_component_find(word) : PF_N_COMPONENTS;
  if (word && strcmp(word, "one") == 0)
    yields.kind = PF_YIELDS_ONE;
  else if (along != PF_N_COMPONENTS)
    yields = (struct pf_yields){PF_YIELDS_ALONG, along};
  return yields;
}

/* -1 with an exception. */
static int fill_step(struct pf_python_step *step,
                     struct pf_step_traits *traits, PyObject *about) {
  memset(traits, 0, sizeof(*traits));
  step->help = text_of(about, "help");
  step->source_file = text_of(about, "source_file");
  if (!step->help || !step->source_file)
    return -1;
  step->is_class = flag_of(about, "is_class");
  step->is_reduction = flag_of(about, "is_reduction");
  step->takes_info = flag_of(about, "takes_info");
  traits->input_memory_type = (enum pf_memory_type)word_of(
      about, "input_memory_type", find_memory_type, PF_MEM_NONE);
  traits->output_memory_type = (enum pf_memory_type)word_of(
      about, "output_memory_type", find_memory_type, PF_MEM_NONE);
  traits->result = (enum pf_result_kind)word_of(
      about, "result", pf_result_kind_find, PF_RESULT_IMAGE);
  traits->yields = yields_of(about);
  traits->resizes = flag_of(about, "resizes");
  traits->dtype = PF_CAST_PRESERVE;
  traits->is_class = step->is_class;
  traits->is_reduction = step->is_reduction;
  traits->is_decorated = flag_of(about, "is_decorated");
  traits->help = step->help;
  traits->source_file = *step->source_file ? step->source_file : NULL;
  return 0;
}

static void free_step(struct pf_python_step *step) {
  Py_XDECREF(step->object);
  free(step->help);
  free(step->source_file);
  free(step);
}

/* GIL held; -1 with an exception. */
static int open_held(struct pf_python_step *step,
                     struct pf_step_traits *traits, const char *function,
                     const char *base_dir) {
  PyObject *load = pf_helper(PF_HELPER_LOAD);
  PyObject *describe = load ? pf_helper(PF_HELPER_DESCRIBE) : NULL;
  PyObject *name = describe ? PyUnicode_DecodeFSDefault(function) : NULL;
  PyObject *dir = name ? PyUnicode_DecodeFSDefault(base_dir) : NULL;
  PyObject *about = NULL;
  int code = -1;
  if (dir)
    step->object = PyObject_CallFunctionObjArgs(load, name, dir, NULL);
  if (step->object)
    about = PyObject_CallOneArg(describe, step->object);
  if (about)
    code = fill_step(step, traits, about);
  Py_XDECREF(about);
  Py_XDECREF(dir);
  Py_XDECREF(name);
  return code;
}

int pf_glue_open(void **handle, struct pf_step_traits *traits,
                 const char *function, const char *base_dir,
                 struct pf_error *err) {
  struct pf_python_step *step = calloc(1, sizeof(*step));
  struct pf_gil gil;
  int code;
  *handle = NULL;
  if (!step)
    return pf_error_set(err, PF_ENOMEM, "out of memory");
  if ((code = pf_gil_enter(&gil, err))) {
    free(step);
    return code;
  }
  (void)pf_deferred_drain();
  if (open_held(step, traits, function, base_dir) < 0) {
    code = pf_glue_error(err, PF_EINVAL);
    free_step(step);
  } else {
    *handle = step;
  }
  pf_gil_leave(&gil);
  return code;
}

void pf_glue_close(void *handle) {
  struct pf_error ignored = PF_ERROR_INIT;
  struct pf_gil gil;
  /* Without memory for a thread state the function stays until the end. */
  if (!pf_gil_enter(&gil, &ignored)) {
    free_step(handle);
    pf_gil_leave(&gil);
  }
  pf_error_clear(&ignored);
}

/* A list of the parameters' names, or of the `with` arrays'. */
static PyObject *list_names(const struct cJSON *params,
                            const char *const *with, size_t n_with) {
  PyObject *list = PyList_New(0);
  const pf_json *member = params ? pf_json_first(params) : NULL;
  for (size_t i = 0; list && (member || i < n_with); i++) {
    /* cppcheck-suppress nullPointer ; i < n_with where it is read */
    const char *text = member ? pf_json_key(member) : with[i];
    PyObject *name = PyUnicode_FromString(text);
    if (!name || PyList_Append(list, name) < 0)
      Py_CLEAR(list);
    Py_XDECREF(name);
    member = member ? pf_json_next(member) : NULL;
  }
  return list;
}

/* Hand on [(name or None, text), ...]; their number, -1 with an exception. */
static int report_all(PyObject *answer, const struct cJSON *params,
                      pf_param_report *report, void *context) {
  Py_ssize_t n = PyList_Check(answer) ? PyList_GET_SIZE(answer) : 0;
  for (Py_ssize_t i = 0; i < n; i++) {
    const char *name = NULL, *text = NULL;
    const pf_json *place;
    if (!PyArg_ParseTuple(PyList_GET_ITEM(answer, i), "zs", &name, &text))
      return -1;
    place = name ? pf_json_get(params, name) : NULL;
    report(context, place, place != NULL, text);
  }
  return (int)n;
}

int pf_glue_check_params(void *handle, const struct pf_json_doc *doc,
                         const struct cJSON *params, const char *const *with,
                         size_t n_with, pf_param_report *report, void *context,
                         struct pf_error *err) {
  struct pf_python_step *step = handle;
  PyObject *helper, *names, *arrays = NULL, *answer = NULL;
  struct pf_gil gil;
  int n = -1;
  (void)doc;
  if (pf_gil_enter(&gil, err))
    return -1;
  helper = pf_helper(PF_HELPER_CHECK);
  names = helper ? list_names(params, NULL, 0) : NULL;
  if (names)
    arrays = list_names(NULL, with, n_with);
  if (arrays)
    answer = PyObject_CallFunctionObjArgs(helper, step->object, names, arrays,
                                          NULL);
  if (answer)
    n = report_all(answer, params, report, context);
  if (n < 0)
    (void)pf_glue_error(err, PF_EINVAL);
  Py_XDECREF(answer);
  Py_XDECREF(arrays);
  Py_XDECREF(names);
  pf_gil_leave(&gil);
  return n;
}
