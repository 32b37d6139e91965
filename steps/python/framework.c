/* Frameworks as their entries describe them: see framework.h. */
#include "steps/python/framework.h"

#include <stdlib.h>
#include <string.h>

#include "bridge/json.h"

enum { MAX_RUNTIMES = 64, TYPE_SLOTS = 256, MAX_TYPES = 128 };

/* Plateflow's own memory, then the entries, by `order`. */
static struct pf_runtime *runtimes[MAX_RUNTIMES];
static size_t n_runtimes;

/* Array types that were seen, by address; a reference keeps each alive. */
static struct type_row {
  PyTypeObject *type;
  struct pf_runtime *runtime;
} types[TYPE_SLOTS];
static size_t n_types;

PyObject *pf_raise_conversion(struct pf_error *err) {
  PyObject *type = pf_helper(PF_HELPER_CONVERSION_ERROR);
  PyObject *exception = NULL;
  const char *word = err->code == PF_EMISSING ? "EMISSING" : "ESTEP";
  const char *text = err->message ? err->message : "out of memory";
  if (err->code == PF_ENOMEM)
    PyErr_SetString(PyExc_MemoryError, text);
  else if (type)
    exception = PyObject_CallFunction(type, "ss", word, text);
  if (exception)
    PyErr_SetObject(type, exception);
  Py_XDECREF(exception);
  pf_error_clear(err);
  return NULL;
}

/* ------------------------------------------------------------- entries */

static struct pf_runtime *add_runtime(const struct pf_framework *entry) {
  const char *word = entry ? entry->name : pf_memory_type_name(PF_MEM_NATIVE);
  struct pf_runtime *runtime = calloc(1, sizeof(*runtime));
  PyObject *name = runtime ? PyUnicode_InternFromString(word) : NULL;
  if (!name || n_runtimes >= MAX_RUNTIMES) {
    Py_XDECREF(name);
    free(runtime);
    return (struct pf_runtime *)PyErr_NoMemory();
  }
  runtime->entry = entry;
  runtime->name = name;
  runtime->index = n_runtimes;
  runtime->type = entry ? entry->type : PF_MEM_NATIVE;
  runtime->is_ready = !entry;
  runtime->is_buffer = runtime->type == PF_MEM_NUMPY;
  runtimes[n_runtimes++] = runtime;
  return runtime;
}

int pf_runtimes_load(void) {
  struct pf_error err = PF_ERROR_INIT;
  const struct pf_frameworks *all;
  if (n_runtimes)
    return 0;
  if (pf_frameworks_load(NULL, &err)) {
    (void)pf_raise_conversion(&err);
    return -1;
  }
  all = pf_frameworks_get();
  if (!add_runtime(NULL))
    return -1;
  for (size_t i = 0; all && i < all->n && n_runtimes < MAX_RUNTIMES; i++)
    if (!add_runtime(all->entries[i]))
      return -1;
  return 0;
}

static struct pf_runtime *refuse_name(PyObject *name) {
  PyObject *words = PyList_New(0);
  for (size_t i = 0; words && i < n_runtimes; i++)
    if (PyList_Append(words, runtimes[i]->name) < 0)
      Py_CLEAR(words);
  if (words)
    PyErr_Format(PyExc_ValueError, "no memory type %R; there are %S", name,
                 words);
  Py_XDECREF(words);
  return NULL;
}

struct pf_runtime *pf_runtime_find(PyObject *name) {
  if (pf_runtimes_load() < 0)
    return NULL;
  for (size_t i = 0; i < n_runtimes; i++)
    if (runtimes[i]->name == name)
      return runtimes[i];
  for (size_t i = 0; i < n_runtimes && PyUnicode_Check(name); i++)
    if (PyUnicode_Compare(runtimes[i]->name, name) == 0)
      return runtimes[i];
  return PyErr_Occurred() ? NULL : refuse_name(name);
}

struct pf_runtime *pf_runtime_of_type(enum pf_memory_type type) {
  if (pf_runtimes_load() < 0)
    return NULL;
  for (size_t i = 0; i < n_runtimes; i++)
    if (runtimes[i]->type == type)
      return runtimes[i];
  PyErr_Format(PyExc_ValueError, "the memory type %s has no framework",
               pf_memory_type_name(type));
  return NULL;
}

/* ----------------------------------------------------- looking calls up */

/* helper(argument), where there is an argument; *out is NULL for None. */
static int look_up(PyObject **out, enum pf_helper which, PyObject *argument) {
  PyObject *helper = pf_helper(which);
  PyObject *found = helper ? PyObject_CallOneArg(helper, argument) : NULL;
  *out = found == Py_None ? NULL : found;
  if (found == Py_None)
    Py_DECREF(found);
  return found ? 0 : -1;
}

/* data[key], or None; borrowed. */
static PyObject *member(PyObject *data, const char *key) {
  PyObject *value =
      PyDict_Check(data) ? PyDict_GetItemString(data, key) : NULL;
  return value ? value : Py_None;
}

void pf_runtime_look_again(struct pf_runtime *runtime) {
  struct pf_framework *own = &runtime->own;
  PyObject *helper = own->more_when ? pf_helper(PF_HELPER_IS_SET) : NULL;
  PyObject *flag =
      helper ? PyObject_CallFunction(helper, "s", own->more_when) : NULL;
  if (!flag)
    PyErr_Clear();
  for (int i = 0; flag && i < PF_N_DTYPES; i++)
    if (own->more_dtypes[i])
      own->dtypes[i] = flag == Py_True;
  Py_XDECREF(flag);
}

static PyObject *word_list(const char *const *words, size_t n) {
  PyObject *list = PyList_New((Py_ssize_t)n);
  for (size_t i = 0; list && i < n; i++) {
    PyObject *word = PyUnicode_FromString(words[i]);
    if (!word) {
      Py_CLEAR(list);
      break;
    }
    PyList_SET_ITEM(list, (Py_ssize_t)i, word);
  }
  return list;
}

/* The C functions of the array type, where it has some of our version. */
static int find_exchange(struct pf_runtime *runtime) {
  const struct pf_framework *entry = runtime->entry;
  PyObject *helper = pf_helper(PF_HELPER_EXCHANGE);
  PyObject *modules = word_list(entry->modules, entry->n_modules);
  PyObject *words = word_list(entry->types, entry->n_types);
  PyObject *capsule = NULL;
  if (helper && modules && words)
    capsule = PyObject_CallFunctionObjArgs(helper, modules, words, NULL);
  Py_XDECREF(words);
  Py_XDECREF(modules);
  if (!capsule)
    return -1;
  runtime->exchange = pf_exchange_of(capsule);
  Py_DECREF(capsule); /* the table lives as long as the process */
  return 0;
}

static int find_adapter(struct pf_runtime *runtime) {
  PyObject *helper = pf_helper(PF_HELPER_ADAPTER), *pair = NULL;
  int code = -1;
  if (!runtime->entry->adapter)
    return 0;
  if (helper)
    pair = PyObject_CallFunction(helper, "s", runtime->entry->adapter);
  if (pair && PyArg_ParseTuple(pair, "OO", &runtime->adapter_take,
                               &runtime->adapter_give)) {
    Py_INCREF(runtime->adapter_take);
    Py_INCREF(runtime->adapter_give);
    code = 0;
  }
  Py_XDECREF(pair);
  return code;
}

/* As the entry says: before_import, the import, then its functions. */
static int import_it(struct pf_runtime *runtime) {
  const struct pf_framework *entry = runtime->entry;
  PyObject *before = member(runtime->data, "before_import");
  PyObject *helper = pf_helper(PF_HELPER_FIRST_USE), *done, *module;
  if (!helper)
    return -1;
  if (PyList_Check(before) && pf_glue_program_core) {
    done = PyObject_CallFunction(helper, "OiiO", before, 1, 0, Py_False);
    Py_XDECREF(done);
    if (!done)
      return -1;
  }
  module = PyImport_ImportModule(entry->import);
  Py_XDECREF(module);
  return module ? 0 : -1;
}

static int find_calls(struct pf_runtime *runtime) {
  if (look_up(&runtime->take, PF_HELPER_OF_ARRAY,
              member(runtime->data, "take")) < 0 ||
      look_up(&runtime->wait, PF_HELPER_OF_ARRAY,
              member(runtime->data, "wait")) < 0)
    return -1;
  if (runtime->entry->give_prepare)
    runtime->prepare =
        PyUnicode_InternFromString(runtime->entry->give_prepare);
  if (runtime->entry->give_view_of)
    runtime->view_of =
        PyUnicode_InternFromString(runtime->entry->give_view_of);
  return PyErr_Occurred() ? -1 : 0;
}

static void forget(struct pf_runtime *runtime) {
  Py_CLEAR(runtime->data);
  Py_CLEAR(runtime->take);
  Py_CLEAR(runtime->wait);
  Py_CLEAR(runtime->prepare);
  Py_CLEAR(runtime->view_of);
  Py_CLEAR(runtime->adapter_take);
  Py_CLEAR(runtime->adapter_give);
}

int pf_runtime_ready(struct pf_runtime *runtime) {
  const struct pf_framework *entry = runtime->entry;
  PyObject *data;
  if (runtime->is_ready)
    return 0;
  data = pf_json_to_python(pf_framework_doc(entry), entry->json);
  if (!data)
    return -1;
  Py_XSETREF(runtime->data, data);
  if (import_it(runtime) < 0)
    return -1;
  /* An import lets go of the GIL: another thread may have been faster. */
  if (runtime->is_ready)
    return 0;
  forget(runtime);
  runtime->data = pf_json_to_python(pf_framework_doc(entry), entry->json);
  if (!runtime->data || find_calls(runtime) < 0 || find_adapter(runtime) < 0 ||
      find_exchange(runtime) < 0) {
    forget(runtime);
    return -1;
  }
  runtime->own = *entry;
  pf_runtime_look_again(runtime);
  runtime->entry = &runtime->own;
  runtime->is_ready = true;
  return 0;
}

/* -------------------------------------------------------- recognising */

static bool has_word(const char *const *words, size_t n, const char *word) {
  for (size_t i = 0; i < n; i++)
    if (strcmp(words[i], word) == 0)
      return true;
  return false;
}

/* Of the classes that `type` derives from, itself first. */
static bool is_array_class(const struct pf_framework *entry, PyObject *class,
                           const char *module) {
  const char *name = ((PyTypeObject *)class)->tp_name;
  const char *dot = strrchr(name, '.');
  if (!has_word(entry->modules, entry->n_modules, module))
    return false;
  if (entry->n_types == 0)
    return PyObject_HasAttrString(class, "__dlpack__");
  return has_word(entry->types, entry->n_types, dot ? dot + 1 : name);
}

static struct pf_runtime *look_through(PyTypeObject *type) {
  PyObject *classes = type->tp_mro;
  for (Py_ssize_t i = 0; classes && i < PyTuple_GET_SIZE(classes); i++) {
    PyObject *class = PyTuple_GET_ITEM(classes, i);
    PyObject *module = PyObject_GetAttrString(class, "__module__");
    const char *word =
        module && PyUnicode_Check(module) ? PyUnicode_AsUTF8(module) : NULL;
    for (size_t k = 1; word && k < n_runtimes; k++)
      if (is_array_class(runtimes[k]->entry, class, word)) {
        Py_DECREF(module);
        return runtimes[k];
      }
    Py_XDECREF(module);
    PyErr_Clear();
  }
  return NULL;
}

static size_t slot_of(const PyTypeObject *type) {
  return ((uintptr_t)type >> 4) * 0x9E3779B1u % TYPE_SLOTS;
}

struct pf_runtime *pf_runtime_of(PyObject *object) {
  PyTypeObject *type = Py_TYPE(object);
  struct pf_runtime *found;
  size_t i = slot_of(type);
  for (; types[i].type; i = (i + 1) % TYPE_SLOTS)
    if (types[i].type == type)
      return types[i].runtime;
  if (pf_runtimes_load() < 0) {
    PyErr_Clear();
    return NULL;
  }
  found = type == &pf_array_type ? runtimes[0] : look_through(type);
  /* Only arrays' types are kept, and only while there is room. */
  for (i = slot_of(type); types[i].type; i = (i + 1) % TYPE_SLOTS)
    ;
  if (found && n_types < MAX_TYPES) {
    types[i] = (struct type_row){(PyTypeObject *)Py_NewRef(type), found};
    n_types++;
  }
  return found;
}

/* ----------------------------------------------------------- use and end */

int pf_runtime_first_use(struct pf_runtime *runtime) {
  static uint64_t made;               /* by any thread; under the GIL */
  static _Thread_local uint64_t here; /* by this one */
  uint64_t bit = (uint64_t)1 << runtime->index;
  PyObject *calls, *helper, *done;
  bool again = (made & bit) != 0;
  if (here & bit)
    return 0;
  here |= bit;
  if (pf_runtime_ready(runtime) < 0)
    return -1;
  calls = runtime->data ? member(runtime->data, "before_first_use") : Py_None;
  made |= bit;
  if (!PyList_Check(calls) || !pf_glue_program_core)
    return 0;
  helper = pf_helper(PF_HELPER_FIRST_USE);
  done = helper ? PyObject_CallFunction(helper, "OiiO", calls,
                                        pf_glue_inner_threads, 0,
                                        again ? Py_True : Py_False)
                : NULL;
  Py_XDECREF(done);
  return done ? 0 : -1;
}

/* "module.Name" of each class that the exception is of; their number. */
static size_t class_names(const char *names[], PyObject *texts[], size_t max,
                          PyObject *exception) {
  PyObject *classes = Py_TYPE(exception)->tp_mro;
  size_t n = 0;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(classes) && n < max; i++) {
    PyObject *class = PyTuple_GET_ITEM(classes, i);
    PyObject *module = PyObject_GetAttrString(class, "__module__");
    PyObject *name = PyObject_GetAttrString(class, "__qualname__");
    texts[n] =
        module && name ? PyUnicode_FromFormat("%S.%S", module, name) : NULL;
    names[n] = texts[n] ? PyUnicode_AsUTF8(texts[n]) : NULL;
    n += names[n] != NULL;
    Py_XDECREF(name);
    Py_XDECREF(module);
    PyErr_Clear();
  }
  return n;
}

bool pf_exception_is_oom(const struct pf_runtime *runtime,
                         PyObject *exception) {
  enum { MAX_CLASSES = 16 };
  const char *names[MAX_CLASSES];
  PyObject *texts[MAX_CLASSES];
  size_t n = class_names(names, texts, MAX_CLASSES, exception);
  PyObject *text = PyObject_Str(exception);
  const char *said = text ? PyUnicode_AsUTF8(text) : NULL;
  bool is_oom =
      pf_framework_is_oom(runtime ? runtime->entry : NULL, names, n, said);
  Py_XDECREF(text);
  while (n)
    Py_DECREF(texts[--n]);
  PyErr_Clear();
  return is_oom;
}

void pf_runtimes_clear(void) {
  PyObject *helper = pf_helper(PF_HELPER_CLEAR);
  for (size_t i = 0; helper && i < n_runtimes; i++) {
    PyObject *calls = runtimes[i]->data
                          ? member(runtimes[i]->data, "clear_caches")
                          : Py_None;
    if (PyList_Check(calls))
      Py_XDECREF(PyObject_CallOneArg(helper, calls));
    PyErr_Clear();
  }
  PyErr_Clear();
  (void)pf_deferred_drain();
  pf_host_pool_clear();
}
