/* Calls in an entry: the grammar of bridge/frameworks.h. */
#include <string.h>

#include "bridge/frameworks_private.h"

static const char *const placeholders[] = {"array", "capsule", "device",
                                           "stream", "threads"};
enum { N_PLACEHOLDERS = sizeof(placeholders) / sizeof(placeholders[0]) };

/* Bytes of the name at `text`, 0: none. */
static size_t identifier(const char *text) {
  static const char letters[] =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";
  static const char more[] =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
  return strspn(text, letters) ? strspn(text, more) : 0;
}

bool pf_framework_is_dotted(const char *text, bool calls, bool array) {
  static const char start[] = "{array}.";
  if (array && strncmp(text, start, sizeof(start) - 1) == 0)
    text += sizeof(start) - 1;
  for (;;) {
    size_t n = identifier(text);
    if (!n)
      return false;
    text += n;
    if (calls && strncmp(text, "()", 2) == 0)
      text += 2;
    if (*text == '\0')
      return true;
    if (*text++ != '.')
      return false;
  }
}

/* The {words} in a string that is an argument. */
static int check_text(struct pf_framework_reader *r, const pf_json *value) {
  const char *text = pf_json_string(value);
  while ((text = strchr(text, '{')) != NULL) {
    size_t n = strcspn(++text, "}");
    char word[32];
    bool known = false;
    if (text[n] != '}' || n >= sizeof(word))
      return pf_framework_complain(r, value, false,
                                   "a { without its placeholder: there are "
                                   "{array}, {capsule}, {device}, {stream} "
                                   "and {threads}");
    memcpy(word, text, n);
    word[n] = '\0';
    for (size_t i = 0; i < N_PLACEHOLDERS; i++)
      known = known || strcmp(word, placeholders[i]) == 0;
    if (!known)
      return pf_framework_complain_word(r, value, false, "placeholder", word,
                                        placeholders, N_PLACEHOLDERS);
    text += n + 1;
  }
  return PF_OK;
}

static int check_name(struct pf_framework_reader *r, const pf_json *value) {
  const char *text = pf_json_string(value);
  if (text && pf_framework_is_dotted(text, true, true))
    return PF_OK;
  return pf_framework_complain(
      r, value, false,
      "expected a dotted name such as \"package.module.function\"");
}

/* {"value": NAME} or a call. */
static int check_object(struct pf_framework_reader *r, const pf_json *value) {
  struct pf_framework_call call;
  const pf_json *name = pf_json_get(value, "value");
  if (!name)
    return pf_framework_read_call(r, value, &call);
  if (pf_json_n(value) != 1)
    return pf_framework_complain(r, value, false,
                                 "\"value\" stands alone in its object");
  return check_name(r, name);
}

static int check_argument(struct pf_framework_reader *r,
                          const pf_json *value) {
  int code = PF_OK;
  switch (pf_json_type(r->file->doc, value)) {
  case PF_JSON_STRING:
    return check_text(r, value);
  case PF_JSON_OBJECT:
    return check_object(r, value);
  case PF_JSON_ARRAY:
    for (const pf_json *v = pf_json_first(value); v && !code;
         v = pf_json_next(v))
      code = check_argument(r, v);
    return code;
  default:
    return PF_OK;
  }
}

/* "args" or "kwargs": every member an argument. */
static int read_arguments(struct pf_framework_reader *r, const pf_json *value,
                          enum pf_json_type type, const pf_json **out) {
  int code = PF_OK;
  if (pf_json_type(r->file->doc, value) != type)
    return pf_framework_complain(r, value, false, "expected %s",
                                 pf_json_type_name(type));
  for (const pf_json *v = pf_json_first(value); v && !code;
       v = pf_json_next(v)) {
    if (type == PF_JSON_OBJECT && pf_json_key(v)[identifier(pf_json_key(v))])
      return pf_framework_complain(
          r, v, true, "\"%s\" is no name of a parameter", pf_json_key(v));
    code = check_argument(r, v);
  }
  *out = value;
  return code;
}

int pf_framework_read_call_key(struct pf_framework_reader *r,
                               const pf_json *value,
                               struct pf_framework_call *out) {
  static const char *const keys[] = {"function", "args", "kwargs"};
  const char *key = pf_json_key(value);
  if (strcmp(key, "function") == 0) {
    out->function = pf_json_string(value);
    return check_name(r, value);
  }
  if (strcmp(key, "args") == 0)
    return read_arguments(r, value, PF_JSON_ARRAY, &out->args);
  if (strcmp(key, "kwargs") == 0)
    return read_arguments(r, value, PF_JSON_OBJECT, &out->kwargs);
  return pf_framework_complain_word(r, value, true, "key of a call", key, keys,
                                    sizeof(keys) / sizeof(keys[0]));
}

int pf_framework_read_call(struct pf_framework_reader *r, const pf_json *value,
                           struct pf_framework_call *out) {
  int code = PF_OK;
  *out = (struct pf_framework_call){0};
  if (pf_json_type(r->file->doc, value) != PF_JSON_OBJECT)
    return pf_framework_complain(
        r, value, false, "expected a call: {\"function\": ..., \"args\": []}");
  for (const pf_json *v = pf_json_first(value); v && !code;
       v = pf_json_next(v))
    code = pf_framework_read_call_key(r, v, out);
  if (!code && !out->function)
    return pf_framework_complain(r, value, false, "\"function\" is missing");
  return code;
}
