/*
 * Starting the interpreter inside the program, which has loaded libpython and
 * then this module: see glue.h and steps/python.c. Main thread.
 */
#include "steps/python/glue.h"

#include "bridge/buf.h"

const void *pf_glue_program_core;

PF_API pf_glue_start_function pf_glue_start;

static int refuse_status(PyStatus status, const char *executable,
                         struct pf_error *err) {
  return pf_error_set(err, PF_EMISSING, "%s does not start: %s", executable,
                      status.err_msg ? status.err_msg : "no reason given");
}

/*
 * The environment's own interpreter, but for what belongs to our program:
 * signals, the command line, C's standard streams; and no module is found in
 * the working directory.
 */
static int initialize(const char *executable, struct pf_error *err) {
  PyConfig config;
  PyStatus status;
  char *argv[] = {"plateflow"};
  int code = PF_OK;
  PyConfig_InitPythonConfig(&config);
  config.install_signal_handlers = 0;
  config.parse_argv = 0;
  config.configure_c_stdio = 0;
  config.safe_path = 1;
  config.pathconfig_warnings = 0;
  status = PyConfig_SetBytesString(&config, &config.program_name, executable);
  if (!PyStatus_Exception(status))
    status = PyConfig_SetBytesArgv(&config, 1, argv);
  if (!PyStatus_Exception(status))
    status = Py_InitializeFromConfig(&config);
  if (PyStatus_Exception(status))
    code = refuse_status(status, executable, err);
  PyConfig_Clear(&config);
  return code;
}

/* Import our own package, wherever sys.path would find another one; it stays
 * in sys.modules, its folder does not stay in sys.path. */
static int import_package(const char *package_dir, struct pf_error *err) {
  PyObject *path = PySys_GetObject("path"); /* borrowed */
  PyObject *dir = PyUnicode_DecodeFSDefault(package_dir);
  PyObject *package = NULL, *stdio = NULL;
  if (path && dir && PyList_Insert(path, 0, dir) == 0) {
    package = PyImport_ImportModule(PF_PACKAGE "._core");
    if (PySequence_DelItem(path, 0) < 0)
      Py_CLEAR(package);
  }
  if (package)
    stdio = PyImport_ImportModule(PF_PACKAGE "._stdio");
  if (stdio)
    Py_SETREF(stdio, PyObject_CallMethod(stdio, "install", NULL));
  Py_XDECREF(package);
  Py_XDECREF(dir);
  if (!stdio)
    return pf_glue_error(err, PF_EMISSING);
  Py_DECREF(stdio);
  return PF_OK;
}

int pf_glue_start(const struct pf_glue_options *options,
                  struct pf_error *err) {
  int code;
  if (options->core != pf_core_address())
    return pf_error_set(err, PF_EMISSING,
                        "two copies of libplateflow are loaded: install "
                        "plateflow again in one place");
  pf_glue_program_core = options->core;
  code = initialize(options->executable, err);
  if (code)
    return code;
  code = import_package(options->package_dir, err);
  (void)pf_gil_lend(); /* for good: this thread takes it as workers do */
  return code;
}
