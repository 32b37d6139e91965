/* Which Python: see steps/python_find.h. */
#include "steps/python_find.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bridge/buf.h"
#include "bridge/child.h"
#include "bridge/os.h"
#include "steps/provider.h"

/* Of the Python that the glue was compiled for; the build gives them. */
#ifndef PF_PYTHON_VERSION
#define PF_PYTHON_VERSION ""
#define PF_GLUE_NAME ""
#define PF_BUILT_PYTHON ""
#endif

/* Imports nothing but what sysconfig needs. Where a static interpreter came
 * with a libpython beside it (Debian, conda), that is taken. */
static const char question[] =
    "import os, sys, sysconfig\n"
    "v = sysconfig.get_config_var\n"
    "lib = v('LIBDIR') or ''\n"
    "folders = [lib, os.path.join(lib, v('MULTIARCH') or ''),\n"
    "           os.path.join(sys.base_prefix, 'lib')]\n"
    "paths = [os.path.join(folder, name) for folder in folders\n"
    "         for name in (v('INSTSONAME'), v('LDLIBRARY'))\n"
    "         if folder and name and '.so' in name]\n"
    "paths = [path for path in paths if os.path.isfile(path)] + ['']\n"
    "version = '%d.%d%s' % (*sys.version_info[:2], sys.abiflags)\n"
    "print(version, sys.executable, paths[0], sep='\\n')\n";

enum { QUESTION_SECONDS = 20 };

void pf_python_found_clear(struct pf_python_found *found) {
  free(found->executable);
  free(found->version);
  free(found->library);
  memset(found, 0, sizeof(*found));
}

/* PF_EMISSING about the interpreter `python`, its name made safe to print. */
static int refuse(const char *python, const char *why, struct pf_error *err) {
  char *shown = pf_name_for_people(python);
  (void)pf_error_set(err, PF_EMISSING, "cannot use the Python %s: %s",
                     shown ? shown : "", why);
  free(shown);
  return PF_EMISSING;
}

/* Up to the end of the line; *at moves behind it. */
static char *take_line(const char **at) {
  const char *end = strchrnul(*at, '\n');
  char *line = strndup(*at, (size_t)(end - *at));
  *at = *end ? end + 1 : end;
  return line;
}

static int parse_answer(struct pf_python_found *found, const char *answer,
                        struct pf_error *err) {
  const char *at = answer;
  found->version = take_line(&at);
  found->executable = take_line(&at);
  found->library = take_line(&at);
  if (!found->version || !found->executable || !found->library)
    return pf_error_set(err, PF_ENOMEM, "out of memory");
  if (!*found->library) {
    free(found->library);
    found->library = NULL;
  }
  return PF_OK;
}

/* The last line of what a failed interpreter said, which is its error. */
static const char *last_line(char *text) {
  size_t n = strlen(text);
  char *line;
  while (n && text[n - 1] == '\n')
    text[--n] = '\0';
  line = strrchr(text, '\n');
  return *text ? (line ? line + 1 : text) : "it printed nothing";
}

/* Ask `python` what it is. */
static int ask(struct pf_python_found *found, const char *python,
               struct pf_error *err) {
  const char *argv[] = {python, "-I", "-S", "-c", question, NULL};
  struct pf_child child = {argv, NULL, QUESTION_SECONDS};
  struct pf_child_end end;
  int code = pf_child_run(&end, &child, err);
  if (code)
    return code;
  if (end.status)
    code = refuse(python, last_line(end.errors), err);
  else if (!strchr(end.output, '.'))
    code = refuse(python, "it does not answer as Python does", err);
  else
    code = parse_answer(found, end.output, err);
  pf_child_end_clear(&end);
  return code;
}

static int check_version(const struct pf_python_found *found,
                         struct pf_error *err) {
  char *shown;
  if (strcmp(found->version, PF_PYTHON_VERSION) == 0)
    return PF_OK;
  shown = pf_name_for_people(found->executable);
  (void)pf_error_set(err, PF_EMISSING,
                     "plateflow was built for Python %s, and %s is %s: "
                     "install plateflow there (%s -m pip install plateflow), "
                     "or give another one with --python",
                     PF_PYTHON_VERSION, shown ? shown : "", found->version,
                     shown ? shown : "python");
  free(shown);
  return PF_EMISSING;
}

/* The interpreter in an environment's folder, malloc'd; NULL: none. */
static char *in_folder(const char *folder) {
  static const char *const places[] = {"bin/python3", "bin/python", "python3",
                                       "python"};
  for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
    char *path = pf_os_join(folder, places[i]);
    if (path && access(path, X_OK) == 0 && pf_os_is_file(path))
      return path;
    free(path);
  }
  return NULL;
}

/* What the user named: an interpreter, a folder with one, or a name that PATH
 * knows. */
static int find_named(struct pf_python_found *found, const char *python,
                      struct pf_error *err) {
  char *path;
  int code;
  if (pf_os_is_dir(python)) {
    path = in_folder(python);
    if (!path)
      return refuse(python, "the folder has no bin/python3 and no bin/python",
                    err);
  } else {
    if (strchr(python, '/') && access(python, F_OK) != 0)
      return refuse(python, "there is no such file", err);
    path = strdup(python);
  }
  if (!path)
    return pf_error_set(err, PF_ENOMEM, "out of memory");
  code = ask(found, path, err);
  if (!code)
    code = check_version(found, err);
  free(path);
  return code;
}

/* The environment that the program is installed in, if its Python fits. */
static bool find_beside_program(struct pf_python_found *found) {
  struct pf_error ignored = PF_ERROR_INIT;
  char program[PATH_MAX];
  ssize_t n = readlink("/proc/self/exe", program, sizeof(program) - 1);
  char *folder = NULL, *python = NULL;
  bool fits = false;
  if (n <= 0)
    return false;
  program[n] = '\0';
  folder = pf_os_dirname(program);
  python = folder ? pf_os_join(folder, "python3") : NULL;
  if (python && access(python, X_OK) == 0)
    fits = !ask(found, python, &ignored) && !check_version(found, &ignored);
  if (!fits)
    pf_python_found_clear(found);
  pf_error_clear(&ignored);
  free(python);
  free(folder);
  return fits;
}

int pf_python_find(struct pf_python_found *found, const char *python,
                   struct pf_error *err) {
  const char *user = getenv("PLATEFLOW_PYTHON");
  int code;
  memset(found, 0, sizeof(*found));
  if (!*PF_PYTHON_VERSION)
    return pf_error_set(err, PF_EMISSING,
                        "this plateflow was built without Python: only "
                        "native: steps can run");
  if (python && *python) {
    code = find_named(found, python, err);
  } else if (user && *user) {
    code = find_named(found, user, err);
    if (code)
      pf_error_prefix(err, "PLATEFLOW_PYTHON");
  } else if (find_beside_program(found)) {
    return PF_OK;
  } else {
    code = find_named(found, PF_BUILT_PYTHON, err);
    if (code)
      pf_error_prefix(err, "plateflow's own environment (--python and "
                           "PLATEFLOW_PYTHON choose another)");
  }
  if (code)
    pf_python_found_clear(found);
  return code;
}

/* The folder of this library's file, malloc'd; NULL where nobody knows. */
static char *library_dir(void) {
  Dl_info info;
  char *path = NULL, *folder = NULL;
  if (!dladdr(pf_core_address(), &info) || !info.dli_fname)
    return NULL;
  path = realpath(info.dli_fname, NULL);
  if (path)
    folder = pf_os_dirname(path);
  free(path);
  return folder;
}

int pf_python_package(char **package_dir, char **glue, struct pf_error *err) {
  /* From the library: a wheel, the build folder, two kinds of prefix. */
  static const char *const places[] = {
      "..", "python", "python" PF_PYTHON_VERSION "/site-packages",
      "../python" PF_PYTHON_VERSION "/site-packages"};
  char *dir = library_dir();
  *package_dir = *glue = NULL;
  for (size_t i = 0; dir && i < sizeof(places) / sizeof(places[0]); i++) {
    char *parent = pf_os_join(dir, places[i]);
    char *path = parent ? pf_os_join(parent, "plateflow/" PF_GLUE_NAME) : NULL;
    if (path && pf_os_is_file(path)) {
      *package_dir = parent;
      *glue = path;
      free(dir);
      return PF_OK;
    }
    free(path);
    free(parent);
  }
  (void)pf_error_set(err, PF_EMISSING,
                     "plateflow's Python package is missing: no plateflow/%s "
                     "near %s; install plateflow again",
                     PF_GLUE_NAME, dir ? dir : "its library");
  free(dir);
  return PF_EMISSING;
}
