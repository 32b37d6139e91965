/*
 * The interpreter, from outside: see steps/python.h. This library links no
 * libpython; it loads the chosen environment's, then the glue module, which
 * starts it.
 */
#include "steps/python.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bridge/buf.h"
#include "bridge/child.h"
#include "bridge/frameworks.h"
#include "steps/provider.h"
#include "steps/python_find.h"

enum { DESCRIBE_SECONDS = 120 };

/* The interpreter that was chosen, asked once: the answer takes a process.
 * Main thread only. */
static struct pf_python_found chosen;

/* Set in the process that replaced the program, so that it cannot go on
 * replacing itself. */
static const char reexec_mark[] = "PLATEFLOW_REEXEC";

/* A Python program that puts this copy of the package first, and takes the
 * folder off again, so that nothing else is found in it. */
#define WITH_PACKAGE(imported)                                                \
  "import sys\n"                                                              \
  "sys.path.insert(0, sys.argv.pop(1))\n"                                     \
  "from plateflow." imported " import main\n"                                 \
  "sys.path.pop(0)\n"                                                         \
  "sys.exit(main())\n"

static int choose(const struct pf_python_options *options,
                  struct pf_error *err) {
  if (chosen.executable)
    return PF_OK;
  return pf_python_find(&chosen, options->python, err);
}

/* Of all frameworks: which ones a step's function imports is not known. */
static int set_frameworks_env(struct pf_error *err) {
  const struct pf_frameworks *all = pf_frameworks_get();
  int code = PF_OK;
  for (size_t i = 0; i < all->n && !code; i++)
    code = pf_frameworks_set_env(&all->entries[i]->name, 1, NULL, err);
  return code;
}

/*
 * Numerical libraries read these when they are loaded. What the pipeline says
 * wins, then what the user has set, then 1. The program alone calls this,
 * before it has threads.
 */
static int set_threads(int threads, struct pf_error *err) {
  static const char *const names[] = {
      "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"};
  char text[16];
  (void)snprintf(text, sizeof(text), "%d", threads > 0 ? threads : 1);
  for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
    if (setenv(names[i], text, threads > 0) != 0)
      return pf_error_set(err, PF_ENOMEM, "out of memory");
  return set_frameworks_env(err);
}

/* dlopen() with its reason as an error. The library stays for good. */
static int load(void **library, const char *path, int flags,
                struct pf_error *err) {
  const char *why;
  char *shown;
  *library = dlopen(path, flags);
  if (*library)
    return PF_OK;
  why = dlerror();
  shown = pf_name_for_people(path);
  (void)pf_error_set(err, PF_EMISSING, "cannot load %s: %s",
                     shown ? shown : "", why ? why : "no reason given");
  free(shown);
  return PF_EMISSING;
}

static int start_glue(struct pf_error *err) {
  struct pf_glue_options options = {chosen.executable, NULL,
                                    pf_core_address()};
  char *package_dir = NULL, *glue = NULL;
  void *libpython = NULL, *module = NULL, *symbol;
  pf_glue_start_function *start = NULL;
  int code = pf_python_package(&package_dir, &glue, err);
  if (code)
    return code;
  /* Extension modules take Python's symbols from whoever made them global. */
  if ((code = load(&libpython, chosen.library, RTLD_NOW | RTLD_GLOBAL, err)) ||
      (code = load(&module, glue, RTLD_NOW | RTLD_LOCAL, err)))
    goto out;
  symbol = dlsym(module, PF_GLUE_START);
  if (!symbol) {
    code = pf_error_set(err, PF_EMISSING,
                        "%s is of another version: install plateflow again",
                        glue);
    goto out;
  }
  memcpy(&start, &symbol, sizeof(start)); /* ISO C has no such cast */
  options.package_dir = package_dir;
  code = start(&options, err);
out:
  free(glue);
  free(package_dir);
  return code;
}

static int prepare(const struct pf_python_options *options,
                   struct pf_error *err) {
  const struct pf_python_ops *ops = pf_python_ops();
  return ops->prepare(options->frameworks, options->n_frameworks, err);
}

bool pf_python_has_module(const char *name) {
  const struct pf_python_ops *ops = pf_python_ops();
  return !ops || ops->has_module(name);
}

int pf_python_start(const struct pf_python_options *options,
                    struct pf_error *err) {
  int code;
  if (pf_python_ops())
    return prepare(options, err);
  if ((code = choose(options, err)) ||
      (code = set_threads(options->threads, err)))
    return code;
  if (!chosen.library)
    return pf_error_set(err, PF_EMISSING,
                        "%s has no libpython%s.so that could be loaded",
                        chosen.executable, chosen.version);
  code = start_glue(err);
  if (!code && !pf_python_ops())
    code = pf_error_set(err, PF_EBUG, "the interpreter did not register");
  return code ? code : prepare(options, err);
}

void pf_python_finish(void) {
  const struct pf_python_ops *ops = pf_python_ops();
  if (ops)
    ops->finish();
}

/* PYTHON -P -c PROGRAM FOLDER ARGV[1...], NULL at the end; malloc'd. */
static char **python_command(const char *program, const char *package_dir,
                             char *const *argv) {
  const char *head[] = {chosen.executable, "-P", "-c", program, package_dir};
  enum { N_HEAD = sizeof(head) / sizeof(head[0]) };
  char **command;
  size_t n = 0;
  while (argv[0] && argv[1 + n])
    n++;
  command = calloc(N_HEAD + n + 1, sizeof(*command));
  if (!command)
    return NULL;
  for (size_t i = 0; i < N_HEAD; i++)
    command[i] = (char *)head[i]; /* execv() does not write into them */
  for (size_t i = 0; i < n; i++)
    command[N_HEAD + i] = argv[1 + i];
  return command;
}

/* Does not return unless it fails. */
static int replace_process(char *const *argv, struct pf_error *err) {
  char *package_dir = NULL, *glue = NULL;
  char **command = NULL;
  int code;
  if (getenv(reexec_mark))
    return pf_error_set(err, PF_EMISSING,
                        "%s was started for plateflow and did not load its "
                        "library: install plateflow there again",
                        chosen.executable);
  code = pf_python_package(&package_dir, &glue, err);
  if (code)
    return code;
  command = python_command(WITH_PACKAGE("__main__"), package_dir, argv);
  if (command && setenv(reexec_mark, "1", 1) == 0) {
    (void)execv(chosen.executable, command);
    code = pf_error_set(err, PF_EMISSING, "cannot start %s: %s",
                        chosen.executable, strerror(errno));
    (void)unsetenv(reexec_mark);
  } else {
    code = pf_error_set(err, PF_ENOMEM, "out of memory");
  }
  free(command);
  free(glue);
  free(package_dir);
  return code;
}

int pf_python_reexec(const struct pf_python_options *options,
                     char *const *argv, struct pf_error *err) {
  int code;
  if (pf_python_ops())
    return PF_OK;
  code = choose(options, err);
  if (code || chosen.library)
    return code;
  code = set_threads(options->threads, err);
  return code ? code : replace_process(argv, err);
}

/* What a child said, as an answer or as an error. */
static int judge(char **answer, struct pf_child_end *end,
                 struct pf_error *err) {
  if (end->status) {
    (void)pf_error_set(err, PF_ESTEP,
                       "Python ended with status %d looking at the steps",
                       end->status);
    pf_error_detail(err, end->errors);
    return PF_ESTEP;
  }
  *answer = end->output;
  end->output = NULL;
  return PF_OK;
}

int pf_python_describe(char **answer, const struct pf_python_options *options,
                       const char *request, struct pf_error *err) {
  const char *argv[] = {NULL, "-P", "-c", WITH_PACKAGE("_describe"),
                        NULL, NULL};
  struct pf_child child = {argv, request, DESCRIBE_SECONDS};
  char *package_dir = NULL, *glue = NULL;
  struct pf_child_end end;
  int code;
  *answer = NULL;
  if ((code = choose(options, err)) ||
      (code = pf_python_package(&package_dir, &glue, err)))
    return code;
  argv[0] = chosen.executable;
  argv[4] = package_dir;
  code = pf_child_run(&end, &child, err);
  if (!code) {
    code = judge(answer, &end, err);
    pf_child_end_clear(&end);
  }
  free(glue);
  free(package_dir);
  return code;
}
