/* plateflow doctor: what there is to work with, and what to install. */
#include "engine/cli/app.h"

#include <stdlib.h>
#include <string.h>

#include "bridge/frameworks.h"
#include "bridge/json.h"
#include "bridge/os.h"
#include "plateflow/device.h"
#include "steps/python.h"

static const double MIB = 1024.0 * 1024.0;

/* ---------------------------------------------------------------- devices */

/* A kind of device, the memory type of C steps on it, where its driver comes
 * from. */
static const struct kind {
  enum pf_device_kind kind;
  enum pf_memory_type type;
  const char *word, *install;
} kinds[] = {
    {PF_DEVICE_CUDA, PF_MEM_CUDA, "gpu", "NVIDIA's driver, 525 or newer"},
    {PF_DEVICE_OPENCL, PF_MEM_OPENCL, "opencl",
     "sudo apt install pocl-opencl-icd (a device on the CPU)"},
};
enum { N_KINDS = sizeof(kinds) / sizeof(kinds[0]) };

static int count_devices(const struct kind *kind, struct pf_error *err) {
  const struct pf_device_ops *ops = pf_device_ops(kind->kind);
  if (!ops) {
    (void)pf_error_set(err, PF_EMISSING, "not in this build");
    return 0;
  }
  return ops->count(err);
}

static void device_text(struct pf_buf *out, const struct kind *kind, int i,
                        const struct pf_device_info *info) {
  struct pf_buf word = {0};
  pf_buf_printf(&word, "%s:%d", kind->word, i);
  pf_buf_printf(out, "  %-12s %s, %.0f MiB", pf_buf_text(&word), info->name,
                (double)info->total / MIB);
  if (info->driver[0])
    pf_buf_printf(out, ", %s", info->driver);
  if (info->bus[0])
    pf_buf_printf(out, ", PCI %s", info->bus);
  if (info->shares_host)
    pf_buf_str(out, ", shares the host's memory");
  pf_buf_char(out, '\n');
  pf_buf_free(&word);
}

static void device_json(struct pf_buf *out, const struct kind *kind, int i,
                        const struct pf_device_info *info) {
  pf_buf_printf(out, "%s{\"device\": \"%s:%d\", \"name\": ", i ? ", " : "",
                kind->word, i);
  pf_buf_json(out, info->name);
  pf_buf_str(out, ", \"driver\": ");
  pf_buf_json(out, info->driver);
  pf_buf_str(out, ", \"bus\": ");
  pf_buf_json(out, info->bus);
  pf_buf_printf(
      out,
      ", \"bytes\": %llu, \"largest\": %llu, \"shares_host\": %s, "
      "\"is_cpu\": %s}",
      (unsigned long long)info->total, (unsigned long long)info->largest,
      info->shares_host ? "true" : "false", info->is_cpu ? "true" : "false");
}

/* Every device of a kind, as text or as JSON; why there is none. */
static void add_devices(struct pf_buf *out, const struct kind *kind,
                        bool json) {
  struct pf_error err = PF_ERROR_INIT;
  int n = count_devices(kind, &err);
  const char *why = err.message ? err.message : "there is none";
  if (json)
    pf_buf_printf(out, "\"%s\": {\"devices\": [", kind->word);
  for (int i = 0; i < n; i++) {
    struct pf_device_info info = {0};
    if (pf_device_ops(kind->kind)->info(i, &info, &err) == PF_OK)
      (json ? device_json : device_text)(out, kind, i, &info);
  }
  if (json) {
    pf_buf_str(out, "], \"why_none\": ");
    if (n > 0)
      pf_buf_str(out, "null");
    else
      pf_buf_json(out, why);
    pf_buf_str(out, ", \"install\": ");
    pf_buf_json(out, kind->install);
    pf_buf_char(out, '}');
  } else if (n <= 0) {
    pf_buf_printf(out, "  %-12s none: %s\n  %-12s to get one: %s\n",
                  kind->word, why, "", kind->install);
  }
  pf_error_clear(&err);
}

/* ----------------------------------------------------------------- Python */

/* The entries go along, so that the child needs no file. */
static void add_request(struct pf_buf *out) {
  const struct pf_frameworks *all = pf_frameworks_get();
  pf_buf_str(out, "{\"doctor\": {\"frameworks\": [");
  for (size_t i = 0; i < all->n; i++) {
    pf_buf_str(out, i ? ", " : "");
    pf_json_write(pf_framework_doc(all->entries[i]), all->entries[i]->json,
                  out);
  }
  pf_buf_printf(out, "], \"native\": [\"%s\"",
                pf_memory_type_name(PF_MEM_NATIVE));
  for (size_t i = 0; i < N_KINDS; i++) {
    struct pf_error err = PF_ERROR_INIT;
    if (count_devices(&kinds[i], &err) > 0)
      pf_buf_printf(out, ", \"%s\"", pf_memory_type_name(kinds[i].type));
    pf_error_clear(&err);
  }
  pf_buf_str(out, "]}}");
}

static int ask_python(struct app *app, struct pf_json_doc **doc,
                      struct pf_error *err) {
  struct pf_python_options options = {.python = app->options.python};
  struct pf_buf request = {0};
  char *answer = NULL;
  int result;
  add_request(&request);
  if (!pf_buf_ok(&request))
    result = pf_error_set(err, PF_ENOMEM, "out of memory");
  else
    result = pf_python_describe(&answer, &options, pf_buf_text(&request), err);
  if (result == PF_OK)
    result = pf_json_parse(doc, answer, strlen(answer), "doctor", err);
  free(answer);
  pf_buf_free(&request);
  return result;
}

static const char *text_of(const pf_json *object, const char *key) {
  const pf_json *value = pf_json_get(object, key);
  const char *text = value ? pf_json_string(value) : NULL;
  return text ? text : "";
}

/* ------------------------------------------------------------------- text */

static void framework_text(struct pf_buf *out, const pf_json *f) {
  const pf_json *installed = pf_json_get(f, "installed");
  size_t n = 0;
  pf_buf_printf(out, "  %-14s ", text_of(f, "name"));
  if (!installed || !pf_json_bool(installed)) {
    pf_buf_printf(out, "missing: %s\n", text_of(f, "install"));
    return;
  }
  if (*text_of(f, "error")) {
    pf_buf_printf(out, "does not load: %s\n", text_of(f, "error"));
    return;
  }
  pf_buf_printf(out, "%-12s ", text_of(f, "version"));
  for (const pf_json *v = pf_json_first(pf_json_get(f, "devices")); v;
       v = pf_json_next(v))
    pf_buf_printf(out, "%s%s", n++ ? ", " : "", pf_json_string(v));
  if (*text_of(f, "no_devices"))
    pf_buf_printf(out, "no device: %s", text_of(f, "no_devices"));
  pf_buf_char(out, '\n');
}

/* ----------------------------------------------------------------- matrix */

enum { MAX_NAMES = 32, CELL = 12 };

/* The distinct texts of a member of all pairs, in their order. */
static size_t distinct(const pf_json *pairs, const char *key,
                       const char **words) {
  size_t n = 0, i;
  for (const pf_json *v = pf_json_first(pairs); v; v = pf_json_next(v)) {
    const char *word = text_of(v, key);
    for (i = 0; i < n && strcmp(words[i], word) != 0; i++)
      continue;
    if (i == n && *word && n < MAX_NAMES)
      words[n++] = word;
  }
  return n;
}

static const pf_json *find_pair(const pf_json *pairs, const char *source,
                                const char *target) {
  const pf_json *v = pf_json_first(pairs);
  while (v && (strcmp(text_of(v, "source"), source) != 0 ||
               strcmp(text_of(v, "target"), target) != 0))
    v = pf_json_next(v);
  return v;
}

/* "1.9 b": the letter says by which of the mechanisms. */
static void cell_text(struct pf_buf *out, const pf_json *pair,
                      const char *const *mechanisms, size_t n) {
  const pf_json *time = pf_json_get(pair, "microseconds");
  size_t i = 0;
  if (!time) {
    pf_buf_printf(out, "%*s", CELL, pair ? "-" : "");
    return;
  }
  while (i < n && strcmp(mechanisms[i], text_of(pair, "mechanism")) != 0)
    i++;
  pf_buf_printf(out, "%*.1f %c", CELL - 2, pf_json_real(time),
                i < n ? (char)('a' + i % 26) : ' ');
}

static void refusals_text(struct pf_buf *out, const pf_json *pairs) {
  for (const pf_json *v = pf_json_first(pairs); v; v = pf_json_next(v))
    if (*text_of(v, "error"))
      pf_buf_printf(out, "  - %s to %s: %s\n", text_of(v, "source"),
                    text_of(v, "target"), text_of(v, "error"));
}

static void matrix_text(struct pf_buf *out, const pf_json *pairs) {
  const char *names[MAX_NAMES], *mechanisms[MAX_NAMES];
  size_t n = distinct(pairs, "source", names);
  size_t n_mechanisms = distinct(pairs, "mechanism", mechanisms);
  pf_buf_printf(out, "  %-14s", "from \\ to");
  for (size_t i = 0; i < n; i++)
    pf_buf_printf(out, "%*.*s", CELL, CELL - 1, names[i]);
  pf_buf_char(out, '\n');
  for (size_t i = 0; i < n; i++) {
    pf_buf_printf(out, "  %-14s", names[i]);
    for (size_t j = 0; j < n; j++)
      cell_text(out, find_pair(pairs, names[i], names[j]), mechanisms,
                n_mechanisms);
    pf_buf_char(out, '\n');
  }
  for (size_t i = 0; i < n_mechanisms; i++)
    pf_buf_printf(out, "  %c %s\n", (char)('a' + i % 26), mechanisms[i]);
  refusals_text(out, pairs);
}

static void python_text(struct pf_buf *out, const struct pf_json_doc *doc) {
  const pf_json *all = pf_json_get(pf_json_root(doc), "doctor");
  const pf_json *python = pf_json_get(all, "python");
  const pf_json *conversions = pf_json_get(all, "conversions");
  pf_buf_printf(out, "python         %s, %s\n\nframeworks\n",
                text_of(python, "version"), text_of(python, "executable"));
  for (const pf_json *v = pf_json_first(pf_json_get(all, "frameworks")); v;
       v = pf_json_next(v))
    framework_text(out, v);
  pf_buf_printf(out, "\nconversions of [5, 64, 64] %s, microseconds\n",
                text_of(conversions, "dtype"));
  matrix_text(out, pf_json_get(conversions, "pairs"));
  if (*text_of(conversions, "error"))
    pf_buf_printf(out, "  they ended early: %s\n",
                  text_of(conversions, "error"));
  if (!pf_json_n(pf_json_get(all, "conflicts")))
    return;
  pf_buf_str(out, "\nconflicts\n");
  for (const pf_json *v = pf_json_first(pf_json_get(all, "conflicts")); v;
       v = pf_json_next(v))
    pf_buf_printf(out, "  %s\n", pf_json_string(v));
}

static void print_text(const struct pf_json_doc *doc, struct pf_buf *out) {
  pf_buf_printf(out, "plateflow      %s\ncores          %d\n", PF_VERSION,
                pf_os_n_cores());
  if (doc)
    python_text(out, doc);
  pf_buf_str(out, "\ndevices\n");
  for (size_t i = 0; i < N_KINDS; i++)
    add_devices(out, &kinds[i], false);
}

/* ------------------------------------------------------------------- JSON */

static void print_json(const struct pf_json_doc *doc,
                       const struct pf_error *err, struct pf_buf *out) {
  static const char *const parts[] = {"python", "frameworks", "conversions",
                                      "conflicts"};
  const pf_json *all = doc ? pf_json_get(pf_json_root(doc), "doctor") : NULL;
  pf_buf_printf(out, "{\"version\": \"%s\",\n \"cores\": %d", PF_VERSION,
                pf_os_n_cores());
  for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
    pf_buf_printf(out, ",\n \"%s\": ", parts[i]);
    if (pf_json_get(all, parts[i]))
      pf_json_write(doc, pf_json_get(all, parts[i]), out);
    else
      pf_buf_str(out, "null");
  }
  pf_buf_str(out, ",\n \"error\": ");
  if (err->message)
    pf_buf_json(out, err->message);
  else
    pf_buf_str(out, "null");
  pf_buf_str(out, ",\n \"devices\": {");
  for (size_t i = 0; i < N_KINDS; i++) {
    pf_buf_str(out, i ? ",\n  " : "");
    add_devices(out, &kinds[i], true);
  }
  pf_buf_str(out, "}}\n");
}

/* Without an interpreter there still are devices, and what to do is said. */
int cmd_doctor(struct app *app) {
  struct pf_json_doc *doc = NULL;
  struct pf_error err = PF_ERROR_INIT;
  struct pf_buf out = {0};
  int status = 0;
  (void)ask_python(app, &doc, &err);
  if (app->options.json)
    print_json(doc, &err, &out);
  else
    print_text(doc, &out);
  (void)fputs(pf_buf_text(&out), app->out);
  if (!pf_buf_ok(&out))
    status = 1;
  if (err.code != PF_OK)
    status = print_error(app, &err);
  pf_buf_free(&out);
  pf_json_free(&doc);
  return status;
}
