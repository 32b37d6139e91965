/* The module plateflow._core and the table of functions that the engine calls
 * Python through: see glue.h. */
#include "steps/python/framework.h"

#include <stdlib.h>
#include <string.h>

/* The helper's text, malloc'd. GIL held. */
static int versions_held(char **out, struct pf_error *err) {
  PyObject *helper = pf_helper(PF_HELPER_VERSIONS);
  PyObject *answer = helper ? PyObject_CallNoArgs(helper) : NULL;
  const char *text = answer ? PyUnicode_AsUTF8(answer) : NULL;
  int code = text ? PF_OK : pf_glue_error(err, PF_EBUG);
  if (text && !(*out = strdup(text)))
    code = pf_error_set(err, PF_ENOMEM, "out of memory");
  Py_XDECREF(answer);
  return code;
}

static int versions(char **out, struct pf_error *err) {
  struct pf_gil gil;
  int code;
  *out = NULL;
  if ((code = pf_gil_enter(&gil, err)))
    return code;
  code = versions_held(out, err);
  pf_gil_leave(&gil);
  return code;
}

/* module.name() where there is such a thing; what it raises is dropped: the
 * process is at its end. */
static void call_quietly(PyObject *module, const char *name) {
  PyObject *result = module && module != Py_None
                         ? PyObject_CallMethod(module, name, NULL)
                         : NULL;
  Py_XDECREF(result);
  PyErr_Clear();
}

static void finish(void) {
  struct pf_error ignored = PF_ERROR_INIT;
  struct pf_gil gil;
  if (pf_gil_enter(&gil, &ignored)) {
    pf_error_clear(&ignored);
    return;
  }
  if (pf_glue_program_core) { /* else Python's own end does it */
    PyObject *module = PyImport_ImportModule("atexit");
    call_quietly(module, "_run_exitfuncs");
    Py_XDECREF(module);
    PyErr_Clear();
  }
  call_quietly(PySys_GetObject("stdout"), "flush");
  call_quietly(PySys_GetObject("stderr"), "flush");
  (void)pf_deferred_drain();
  pf_gil_leave(&gil);
}

static const struct pf_python_ops ops = {
    .open = pf_glue_open,
    .close = pf_glue_close,
    .check_params = pf_glue_check_params,
    .make = pf_glue_make,
    .call = pf_glue_call,
    .drop = pf_glue_drop,
    .thread_start = pf_glue_thread_start,
    .thread_stop = pf_glue_thread_stop,
    .versions = versions,
    .finish = finish,
    .interrupted = pf_glue_interrupted,
    .prepare = pf_glue_prepare,
    .has_module = pf_glue_has_module,
};

static PyObject *core_address(PyObject *self, PyObject *unused) {
  (void)self;
  (void)unused;
  return PyLong_FromVoidPtr((void *)(uintptr_t)pf_core_address());
}

static PyObject *program_address(PyObject *self, PyObject *unused) {
  (void)self;
  (void)unused;
  if (!pf_glue_program_core)
    Py_RETURN_NONE;
  return PyLong_FromVoidPtr((void *)(uintptr_t)pf_glue_program_core);
}

static PyMethodDef functions[] = {
    {"main", pf_glue_main, METH_VARARGS,
     PyDoc_STR("main(argv, adopted=True) -> (exit status, message or None)\n\n"
               "The command line; argv[0] is the program's name.")},
    {"print_text", pf_stdio_print, METH_O,
     PyDoc_STR("Send text to the log of the group whose step runs on this "
               "thread; False where none does.")},
    {"device_count", pf_glue_device_count, METH_O,
     PyDoc_STR("device_count(kind) -> how many devices there are of \"cpu\",\n"
               "\"gpu\" or \"opencl\"")},
    {"core_address", core_address, METH_NOARGS,
     PyDoc_STR("The address of one constant of libplateflow.")},
    {"program_address", program_address, METH_NOARGS,
     PyDoc_STR("The same address as the program sees it that started this "
               "interpreter; None in one that was adopted.")},
    {NULL, NULL, 0, NULL}};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = PF_PACKAGE "._core",
    .m_doc = PyDoc_STR("plateflow's core: libplateflow, as Python sees it."),
    .m_size = -1, /* one per process, as the core is */
    .m_methods = functions,
};

/* Types may not be called as Info(), which no call is behind. */
static int add_types(PyObject *module) {
  if (pf_info_ready() < 0 || PyType_Ready(&pf_array_type) < 0)
    return -1;
  return PyModule_AddObjectRef(module, "Array", (PyObject *)&pf_array_type) ||
                 PyModule_AddObjectRef(module, "Info",
                                       (PyObject *)&pf_info_type) ||
                 PyModule_AddStringConstant(module, "__version__", PF_VERSION)
             ? -1
             : 0;
}

PyMODINIT_FUNC PyInit__core(void) {
  PyObject *module;
  if (PyInterpreterState_Get() != PyInterpreterState_Main()) {
    PyErr_SetString(PyExc_ImportError,
                    "plateflow runs in the main interpreter alone");
    return NULL;
  }
  module = PyModule_Create(&definition);
  if (module && (add_types(module) < 0 ||
                 PyModule_AddFunctions(module, pf_convert_methods) < 0))
    Py_CLEAR(module);
  if (module)
    pf_python_register(&ops);
  return module;
}
