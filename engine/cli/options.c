/* Options: one row each. */
#include "engine/cli/app.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "bridge/json.h"

enum kind {
  FLAG,    /* bool */
  TEXT,    /* const char * */
  COUNT,   /* int64_t, at least 1 */
  PERCENT, /* double, 0 to 100 */
  ONLY,    /* COMPONENT=VALUE,VALUE ...; takes all words that hold a `=` */
  SET,     /* STEP.PARAM=VALUE */
  NOT_YET, /* refused; takes a value */
  NOT_YET_FLAG
};

struct option_row {
  const char *name; /* without the dashes */
  char letter;      /* 0: none */
  enum kind kind;
  size_t offset; /* in struct options */
  unsigned commands;
  const char *value, *help;
};

#define AT(field) offsetof(struct options, field)
#define PLANS (CMD_RUN | CMD_PLAN)
#define ALL_PYTHON (CMD_RUN | CMD_CHECK | CMD_PLAN | CMD_STEPS | CMD_DOCTOR)

static const struct option_row rows[] = {
    {"out", 'o', TEXT, AT(out), CMD_RUN, "OUT", "the folder of the results"},
    {"workers", 0, COUNT, AT(workers), CMD_RUN, "N",
     "groups at a time (default: the cores this process may use)"},
    {"only", 0, ONLY, 0, PLANS, "COMPONENT=VALUE,...",
     "only these groups: --only well=A01,B02 channel=1"},
    {"set", 0, SET, 0, PLANS | CMD_CHECK, "STEP.PARAM=VALUE",
     "another value for a parameter"},
    {"until", 0, TEXT, AT(until), PLANS, "STEP", "stop after this step"},
    {"on-error", 0, TEXT, AT(on_error), CMD_RUN, "continue|stop",
     "what to do when a group fails (default: continue)"},
    {"fresh", 0, FLAG, AT(fresh), CMD_RUN, NULL,
     "first remove what an earlier run left in OUT"},
    {"tolerate", 0, PERCENT, AT(tolerate), CMD_RUN, "PERCENT",
     "share of groups that may fail with exit status 0"},
    {"compression", 0, TEXT, AT(compression), CMD_RUN, "NAME",
     "none, lzw, deflate, zstd or packbits (default: as the input)"},
    {"progress", 0, TEXT, AT(progress), CMD_RUN, "auto|plain|json|none",
     "how to show progress"},
    {"format", 0, TEXT, AT(format), CMD_RUN, "tiff", "of the images"},
    {"tables", 0, TEXT, AT(tables), CMD_RUN, "csv", "format of the tables"},
    {"python", 0, TEXT, AT(python), ALL_PYTHON, "PATH",
     "the interpreter or environment to use"},
    {"json", 0, FLAG, AT(json),
     CMD_CHECK | CMD_PLAN | CMD_INSPECT | CMD_STEPS | CMD_DOCTOR, NULL,
     "print one JSON object"},
    {"layout", 0, TEXT, AT(layout), CMD_INSPECT, "NAME",
     "how to read the names (default: auto)"},
    {"pattern", 0, TEXT, AT(pattern), CMD_INSPECT, "PATTERN",
     "of the names, for --layout pattern"},
    {"pages", 0, TEXT, AT(pages), CMD_INSPECT, "COMPONENT",
     "what the pages of a file are: z, channel or timepoint"},
    {"deep", 0, FLAG, AT(deep), CMD_INSPECT, NULL,
     "open the header of every file"},
    {"verbose", 'v', FLAG, AT(verbose), CMD_INSPECT, NULL,
     "list every value, gap and left out file"},
    {"frameworks", 0, TEXT, AT(frameworks), ALL_PYTHON, "FILE",
     "frameworks of your own (default: PLATEFLOW_FRAMEWORKS)"},
    {"memory", 0, NOT_YET, 0, CMD_RUN, NULL, NULL},
    {"gpus", 0, NOT_YET, 0, CMD_RUN, NULL, NULL},
    {"isolate", 0, NOT_YET_FLAG, 0, CMD_RUN, NULL, NULL},
    {"verify", 0, NOT_YET_FLAG, 0, CMD_RUN, NULL, NULL},
    {"index", 0, NOT_YET, 0, CMD_RUN, NULL, NULL},
    {"scratch", 0, NOT_YET, 0, CMD_RUN, NULL, NULL},
    {"shard", 0, NOT_YET, 0, CMD_RUN, NULL, NULL},
    {"gpu-memory", 0, NOT_YET, 0, CMD_RUN, NULL, NULL},
    {"deterministic", 0, NOT_YET_FLAG, 0, CMD_RUN, NULL, NULL},
    {"readers", 0, NOT_YET, 0, CMD_RUN, NULL, NULL},
    {"trace", 0, NOT_YET, 0, CMD_RUN, NULL, NULL},
    {"plugin", 0, NOT_YET, 0, CMD_RUN, NULL, NULL},
};
enum { N_ROWS = sizeof(rows) / sizeof(rows[0]) };

void print_options(FILE *out, const struct command *command) {
  for (size_t i = 0; i < N_ROWS; i++) {
    char left[64];
    if (!(rows[i].commands & command->bit) || !rows[i].help)
      continue;
    (void)snprintf(left, sizeof(left), "--%s%s%s", rows[i].name,
                   rows[i].value ? " " : "",
                   rows[i].value ? rows[i].value : "");
    (void)fprintf(out, "  %c%c%c %-32s %s\n", rows[i].letter ? '-' : ' ',
                  rows[i].letter ? rows[i].letter : ' ',
                  rows[i].letter ? ',' : ' ', left, rows[i].help);
  }
}

static int unknown_option(const struct command *command, const char *word,
                          struct pf_error *err) {
  const char *names[N_ROWS];
  const char *nearest;
  size_t n = 0;
  for (size_t i = 0; i < N_ROWS; i++)
    if (rows[i].commands & command->bit)
      names[n++] = rows[i].name;
  nearest = word[0] == '-' && word[1] == '-'
                ? pf_nearest_word(word + 2, names, n)
                : NULL;
  return pf_error_set(err, PF_EINVAL, "plateflow %s has no option %s%s%s%s",
                      command->name, word, nearest ? ": did you mean --" : "",
                      nearest ? nearest : "", nearest ? "?" : "");
}

/* A copy of `text` that lives as long as the options. */
static char *keep_text(struct options *options, const char *text, size_t n) {
  char **list =
      realloc(options->texts, (options->n_texts + 1) * sizeof(*list));
  char *copy = strndup(text, n);
  if (list)
    options->texts = list;
  if (!list || !copy) {
    free(copy);
    return NULL;
  }
  list[options->n_texts++] = copy;
  return copy;
}

static int parse_count(const char *name, const char *text, int64_t *out,
                       struct pf_error *err) {
  char *end = NULL;
  long long n;
  errno = 0;
  n = strtoll(text, &end, 10);
  if (errno || end == text || *end || n < 1 || n > 4096)
    return pf_error_set(err, PF_EINVAL,
                        "--%s: expected a number from 1 to 4096, got \"%s\"",
                        name, text);
  *out = n;
  return PF_OK;
}

static int parse_percent(const char *name, const char *text, double *out,
                         struct pf_error *err) {
  char *end = NULL;
  double x = strtod(text, &end);
  if (end != text && *end == '%')
    end++;
  if (end == text || *end || !(x >= 0 && x <= 100))
    return pf_error_set(err, PF_EINVAL,
                        "--%s: expected a percentage from 0 to 100, got "
                        "\"%s\"",
                        name, text);
  *out = x;
  return PF_OK;
}

static size_t count_values(const char *text) {
  size_t n = 1;
  for (; *text; text++)
    n += *text == ',';
  return n;
}

static int split_values(struct options *options, struct pf_only *only,
                        const char *text, struct pf_error *err) {
  const char **values = calloc(count_values(text), sizeof(*values));
  only->values = values;
  if (!values)
    return pf_error_set(err, PF_ENOMEM, "out of memory");
  if (text[strspn(text, ",")] == '\0')
    return pf_error_set(err, PF_EINVAL, "--only: no value after \"%s=\"",
                        pf_component_name(only->component));
  while (*text) {
    size_t n = strcspn(text, ",");
    if (n) {
      values[only->n_values] = keep_text(options, text, n);
      if (!values[only->n_values++])
        return pf_error_set(err, PF_ENOMEM, "out of memory");
    }
    text += n + (text[n] == ',');
  }
  return PF_OK;
}

static int parse_only(struct options *options, const char *text,
                      struct pf_error *err) {
  const char *equals = strchr(text, '=');
  struct pf_only *list =
      realloc(options->only, (options->n_only + 1) * sizeof(*list));
  enum pf_component component = PF_N_COMPONENTS;
  const char *word =
      equals ? keep_text(options, text, (size_t)(equals - text)) : NULL;
  if (!list)
    return pf_error_set(err, PF_ENOMEM, "out of memory");
  options->only = list;
  if (word)
    component = pf_component_find(word);
  if (component == PF_N_COMPONENTS || !equals[1])
    return pf_error_set(err, PF_EINVAL,
                        "--only: expected COMPONENT=VALUE,... with plate, "
                        "well, site, timepoint or channel, got \"%s\"",
                        text);
  list = &list[options->n_only++];
  *list = (struct pf_only){.component = component};
  return split_values(options, list, equals + 1, err);
}

static int parse_set(struct options *options, const char *text,
                     struct pf_error *err) {
  const char *equals = strchr(text, '=');
  const char *dot = equals ? memchr(text, '.', (size_t)(equals - text)) : NULL;
  struct pf_override *list =
      realloc(options->set, (options->n_set + 1) * sizeof(*list));
  if (!list)
    return pf_error_set(err, PF_ENOMEM, "out of memory");
  options->set = list;
  if (!dot || dot == text || dot + 1 == equals)
    return pf_error_set(err, PF_EINVAL,
                        "--set: expected STEP.PARAM=VALUE, got \"%s\"", text);
  list = &list[options->n_set];
  list->step = keep_text(options, text, (size_t)(dot - text));
  list->parameter = keep_text(options, dot + 1, (size_t)(equals - dot - 1));
  list->value = equals + 1;
  if (!list->step || !list->parameter)
    return pf_error_set(err, PF_ENOMEM, "out of memory");
  options->n_set++;
  return PF_OK;
}

static int take_value(struct options *options, const struct option_row *row,
                      const char *text, struct pf_error *err) {
  void *field = (char *)options + row->offset;
  switch (row->kind) {
  case TEXT:
    *(const char **)field = text;
    return PF_OK;
  case COUNT:
    return parse_count(row->name, text, field, err);
  case PERCENT:
    return parse_percent(row->name, text, field, err);
  case ONLY:
    return parse_only(options, text, err);
  case SET:
    return parse_set(options, text, err);
  default:
    return pf_error_set(err, PF_EINVAL, "--%s is not supported yet",
                        row->name);
  }
}

static const struct option_row *find_row(const struct command *command,
                                         const char *word, size_t *length) {
  *length = strcspn(word, "=");
  for (size_t i = 0; i < N_ROWS; i++) {
    const struct option_row *row = &rows[i];
    if (!(row->commands & command->bit))
      continue;
    if (row->letter && word[0] == '-' && word[1] == row->letter && !word[2])
      return row;
    if (strncmp(word, "--", 2) == 0 && *length == strlen(row->name) + 2 &&
        strncmp(word + 2, row->name, *length - 2) == 0)
      return row;
  }
  return NULL;
}

/* How many words of argv the option took; 0 after an error. */
static int take_option(struct options *options, const struct command *command,
                       int argc, char **argv, struct pf_error *err) {
  size_t length = 0;
  const struct option_row *row = find_row(command, argv[0], &length);
  const char *value = argv[0][length] == '=' ? argv[0] + length + 1 : NULL;
  int taken = 1;
  if (!row) {
    (void)unknown_option(command, argv[0], err);
    return 0;
  }
  if (row->kind == FLAG && !value) {
    *(bool *)((char *)options + row->offset) = true;
    return 1;
  }
  if (row->kind == FLAG || row->kind == NOT_YET_FLAG) {
    (void)pf_error_set(err, PF_EINVAL,
                       row->kind == FLAG ? "--%s takes no value"
                                         : "--%s is not supported yet",
                       row->name);
    return 0;
  }
  if (!value && argc < 2) {
    (void)pf_error_set(err, PF_EINVAL, "--%s needs a value", row->name);
    return 0;
  }
  if (!value) {
    value = argv[1];
    taken = 2;
  }
  if (take_value(options, row, value, err) != PF_OK)
    return 0;
  /* --only takes a list: well=A01,B02 site=1 */
  while (row->kind == ONLY && taken < argc && argv[taken][0] != '-' &&
         strchr(argv[taken], '='))
    if (take_value(options, row, argv[taken++], err) != PF_OK)
      return 0;
  return taken;
}

int parse_options(struct app *app, const struct command *command, int argc,
                  char **argv, struct pf_error *err) {
  struct options *options = &app->options;
  bool only_arguments = false;
  options->arguments = calloc((size_t)argc + 1, sizeof(char *));
  if (!options->arguments)
    return pf_error_set(err, PF_ENOMEM, "out of memory");
  for (int i = 0; i < argc;) {
    int taken = 1;
    if (!only_arguments && strcmp(argv[i], "--") == 0)
      only_arguments = true;
    else if (only_arguments || argv[i][0] != '-' || !argv[i][1])
      options->arguments[options->n_arguments++] = argv[i];
    else
      taken = take_option(options, command, argc - i, argv + i, err);
    if (!taken)
      return (int)err->code;
    i += taken;
  }
  return PF_OK;
}

void free_options(struct options *options) {
  for (size_t i = 0; i < options->n_only; i++)
    free((void *)(uintptr_t)options->only[i].values);
  for (size_t i = 0; i < options->n_texts; i++)
    free(options->texts[i]);
  free(options->texts);
  free(options->only);
  free(options->set);
  free(options->arguments);
}
