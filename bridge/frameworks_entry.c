/* The keys of an entry and of a file of frameworks: one row each. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "bridge/frameworks_private.h"

enum { VERSION = 1, MAX_ORDER = 1000000, MAX_NDIM = 64 };

#define AT(field) .offset = offsetof(struct pf_framework, field)
#define LIST(field, n)                                                        \
  .offset = offsetof(struct pf_framework, field),                             \
  .offset_n = offsetof(struct pf_framework, n)
#define END                                                                   \
  { .name = NULL }

/* A framework's name: a memory type, of Python where it is built in. */
static int read_name(struct pf_framework_reader *r,
                     const struct pf_fw_key *key, const pf_json *value,
                     void *base) {
  static const char letters[] = "abcdefghijklmnopqrstuvwxyz_0123456789";
  const char *text = pf_json_string(value);
  enum pf_memory_type known;
  size_t n = text ? strlen(text) : 0;
  (void)key;
  if (!n || n > 31 || strspn(text, letters) != n || text[0] < 'a' ||
      strcmp(text, "none") == 0)
    return pf_framework_complain(r, value, false,
                                 "expected a name: a lower-case letter, then "
                                 "letters, digits and _, 31 at the most");
  known = pf_memory_type_find(text);
  if (known != PF_MEM_NONE && !pf_memory_type_is_python(known))
    return pf_framework_complain(r, value, false,
                                 "\"%s\" is a memory type of C steps", text);
  ((struct pf_framework *)base)->name = text;
  return PF_OK;
}

/* A call's own keys stand beside the others of "take". */
static int read_take_call(struct pf_framework_reader *r,
                          const struct pf_fw_key *key, const pf_json *value,
                          void *base) {
  (void)key;
  return pf_framework_read_call_key(r, value,
                                    &((struct pf_framework *)base)->take);
}

static const struct pf_fw_key array_keys[] = {
    {.name = "modules",
     .read = pf_fw_texts,
     LIST(modules, n_modules),
     .required = true},
    {.name = "types", .read = pf_fw_texts, LIST(types, n_types)},
    END,
};

static const struct pf_fw_key more_keys[] = {
    {.name = "when", .read = pf_fw_dotted, AT(more_when), .required = true},
    {.name = "dtypes",
     .read = pf_fw_dtypes,
     AT(more_dtypes),
     .required = true},
    END,
};

static const char *const take_kinds[] = {"object", "capsule", "legacy", NULL};
static const char *const strides[] = {"compact", "positive", "any", NULL};

static const struct pf_fw_key take_keys[] = {
    {.name = "function", .read = read_take_call, .required = true},
    {.name = "args", .read = read_take_call, .required = true},
    {.name = "kwargs", .read = read_take_call},
    {.name = "kind",
     .read = pf_fw_choice,
     AT(take_kind),
     .words = take_kinds,
     .required = true},
    {.name = "strides",
     .read = pf_fw_choice,
     AT(take_strides),
     .words = strides},
    {.name = "alignment", .read = pf_fw_alignment, AT(take_alignment)},
    {.name = "read_only", .read = pf_fw_bool, AT(takes_read_only)},
    {.name = "writes_through", .read = pf_fw_bool, AT(writes_through)},
    {.name = "waits", .read = pf_fw_bool, AT(take_waits)},
    {.name = "max_ndim",
     .read = pf_fw_int,
     AT(take_max_ndim),
     .max = MAX_NDIM},
    {.name = "dtypes", .read = pf_fw_dtypes, AT(dtypes), .required = true},
    {.name = "more_dtypes", .read = pf_fw_part, .table = more_keys},
    END,
};

static const struct pf_fw_key give_keys[] = {
    {.name = "prepare", .read = pf_fw_dotted, AT(give_prepare)},
    {.name = "versioned", .read = pf_fw_bool, AT(give_versioned)},
    {.name = "stream", .read = pf_fw_bool, AT(give_stream)},
    {.name = "blocks", .read = pf_fw_bool, AT(give_blocks)},
    {.name = "aliased", .read = pf_fw_bool, AT(give_aliased)},
    {.name = "view_of", .read = pf_fw_dotted, AT(give_view_of)},
    {.name = "refuses",
     .read = pf_fw_texts,
     LIST(give_refuses, n_give_refuses)},
    END,
};

static const struct pf_fw_key oom_keys[] = {
    {.name = "exception",
     .read = pf_fw_dotted,
     .offset = offsetof(struct pf_framework_oom, exception),
     .required = true},
    {.name = "patterns",
     .read = pf_fw_texts,
     .offset = offsetof(struct pf_framework_oom, patterns),
     .offset_n = offsetof(struct pf_framework_oom, n_patterns)},
    END,
};

static const struct pf_fw_key conflict_keys[] = {
    {.name = "with",
     .read = pf_fw_dotted,
     .offset = offsetof(struct pf_framework_conflict, with),
     .required = true},
    {.name = "text",
     .read = pf_fw_text,
     .offset = offsetof(struct pf_framework_conflict, text),
     .required = true},
    END,
};

static int read_conflicts(struct pf_framework_reader *r,
                          const struct pf_fw_key *key, const pf_json *value,
                          void *base) {
  struct pf_framework *f = base;
  size_t i = 0;
  int code = pf_fw_list(r, value, sizeof(*f->conflicts), &f->conflicts,
                        &f->n_conflicts);
  (void)key;
  for (const pf_json *v = pf_json_first(value); v && !code;
       v = pf_json_next(v))
    code = pf_fw_object(r, v, conflict_keys, &f->conflicts[i++]);
  return code;
}

static int read_oom(struct pf_framework_reader *r, const struct pf_fw_key *key,
                    const pf_json *value, void *base) {
  struct pf_framework_oom *list = NULL;
  size_t i = 0;
  int code = pf_fw_list(r, value, sizeof(*list), &list,
                        (size_t *)((char *)base + key->offset_n));
  for (const pf_json *v = pf_json_first(value); v && !code;
       v = pf_json_next(v))
    code = pf_fw_object(r, v, oom_keys, &list[i++]);
  *(struct pf_framework_oom **)((char *)base + key->offset) = list;
  return code;
}

/* As pf_fw_pairs() needs them. */
static_assert(offsetof(struct pf_framework, env_values) ==
                  offsetof(struct pf_framework, env_names) + sizeof(void *),
              "the values stand behind the names");
static_assert(offsetof(struct pf_framework, cpu_module_values) ==
                  offsetof(struct pf_framework, cpu_module_names) +
                      sizeof(void *),
              "the values stand behind the names");

static const struct pf_fw_key entry_keys[] = {
    {.name = "name", .read = read_name, .required = true},
    {.name = "import", .read = pf_fw_dotted, AT(import), .required = true},
    {.name = "order", .read = pf_fw_int, AT(order), .max = MAX_ORDER},
    {.name = "install", .read = pf_fw_text, AT(install)},
    {.name = "arrays",
     .read = pf_fw_part,
     .table = array_keys,
     .required = true},
    {.name = "devices",
     .read = pf_fw_devices,
     LIST(devices, n_devices),
     .required = true},
    {.name = "environment", .read = pf_fw_pairs, LIST(env_names, n_env)},
    {.name = "before_import",
     .read = pf_fw_calls,
     LIST(before_import, n_before)},
    {.name = "before_first_use",
     .read = pf_fw_calls,
     LIST(before_first_use, n_first)},
    {.name = "take", .read = pf_fw_part, .table = take_keys, .required = true},
    {.name = "give", .read = pf_fw_part, .table = give_keys},
    {.name = "wait", .read = pf_fw_call, AT(wait)},
    {.name = "clear_caches", .read = pf_fw_calls, LIST(clear_caches, n_clear)},
    {.name = "cached_bytes", .read = pf_fw_call, AT(cached_bytes)},
    {.name = "list_devices", .read = pf_fw_call, AT(list_devices)},
    {.name = "out_of_memory", .read = read_oom, LIST(oom, n_oom)},
    {.name = "not_out_of_memory",
     .read = pf_fw_texts,
     LIST(not_oom, n_not_oom)},
    {.name = "host_context", .read = pf_fw_call, AT(host_context)},
    {.name = "device_context", .read = pf_fw_call, AT(device_context)},
    {.name = "stream_context", .read = pf_fw_call, AT(stream_context)},
    {.name = "adapter", .read = pf_fw_dotted, AT(adapter)},
    {.name = "cpu_fallback", .read = pf_fw_text, AT(cpu_fallback)},
    {.name = "conflicts", .read = read_conflicts},
    {.name = "cpu_modules",
     .read = pf_fw_pairs,
     LIST(cpu_module_names, n_cpu_modules)},
    END,
};

/* What several keys say together. */
static int check_entry(struct pf_framework_reader *r,
                       const struct pf_framework *f) {
  const pf_json *take = pf_json_get(f->json, "take");
  struct pf_buf args = {0};
  int code = PF_OK;
  pf_json_write(r->file->doc, f->take.args, &args);
  if (f->take.kwargs)
    pf_json_write(r->file->doc, f->take.kwargs, &args);
  if (!strstr(pf_buf_text(&args), "\"{array}\"") &&
      !strstr(pf_buf_text(&args), "\"{capsule}\""))
    code = pf_framework_complain(r, pf_json_get(take, "args"), false,
                                 "no argument is \"{array}\": the function "
                                 "would not get it");
  else if (!f->n_modules)
    code = pf_framework_complain(
        r, pf_json_get(pf_json_get(f->json, "arrays"), "modules"), false,
        "the list is empty: no array could be recognised");
  pf_buf_free(&args);
  return code;
}

static int check_unique(struct pf_framework_reader *r, size_t i) {
  for (size_t j = 0; j < i; j++)
    if (strcmp(r->file->entries[j].name, r->file->entries[i].name) == 0)
      return pf_framework_complain(
          r, pf_json_get(r->file->entries[i].json, "name"), false,
          "the name is here a second time");
  return PF_OK;
}

static int read_entry(struct pf_framework_reader *r, const pf_json *value,
                      size_t i) {
  struct pf_framework *f = &r->file->entries[i];
  int code;
  *f = (struct pf_framework){.json = value,
                             .type = PF_MEM_NONE,
                             .order = MAX_ORDER,
                             .take_alignment = 1};
  r->entry = f;
  code = pf_fw_object(r, value, entry_keys, f);
  if (!code)
    code = check_entry(r, f);
  if (!code)
    code = check_unique(r, i);
  r->entry = NULL;
  return code;
}

/* ------------------------------------------------------------------- file */

static int read_version(struct pf_framework_reader *r,
                        const struct pf_fw_key *key, const pf_json *value,
                        void *base) {
  (void)key;
  (void)base;
  if (pf_json_type(r->file->doc, value) != PF_JSON_INT)
    return pf_fw_expected(r, value, "an integer");
  if (pf_json_int(r->file->doc, value) != VERSION)
    return pf_framework_complain(r, value, false,
                                 "this program reads version %d of the "
                                 "format",
                                 VERSION);
  return PF_OK;
}

static int read_entries(struct pf_framework_reader *r,
                        const struct pf_fw_key *key, const pf_json *value,
                        void *base) {
  struct pf_framework_file *file = base;
  struct pf_framework *list = NULL;
  size_t i = 0, n = 0;
  int code = pf_fw_list(r, value, sizeof(*list), &list, &n);
  (void)key;
  file->entries = list;
  for (const pf_json *v = pf_json_first(value); v && !code;
       v = pf_json_next(v))
    code = read_entry(r, v, i++);
  file->n = i;
  return code;
}

#define FILE_LIST(field, n)                                                   \
  .offset = offsetof(struct pf_framework_file, field),                        \
  .offset_n = offsetof(struct pf_framework_file, n)

static const struct pf_fw_key file_keys[] = {
    {.name = "plateflow_frameworks", .read = read_version, .required = true},
    {.name = "frameworks", .read = read_entries, .required = true},
    {.name = "out_of_memory", .read = read_oom, FILE_LIST(oom, n_oom)},
    {.name = "not_out_of_memory",
     .read = pf_fw_texts,
     FILE_LIST(not_oom, n_not_oom)},
    END,
};

int pf_framework_file_parse(struct pf_framework_file **out, const char *text,
                            size_t n, const char *name, struct pf_error *err) {
  struct pf_framework_file *file = calloc(1, sizeof(*file));
  struct pf_framework_reader r = {file, NULL, err};
  int code;
  *out = NULL;
  if (!file)
    return pf_error_set(err, PF_ENOMEM, "out of memory");
  code = pf_json_parse(&file->doc, text, n, name, err);
  if (!code)
    code = pf_fw_object(&r, pf_json_root(file->doc), file_keys, file);
  if (code)
    pf_framework_file_free(&file);
  *out = file;
  return code;
}
