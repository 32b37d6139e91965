/*
 * Inside engine/pipeline*.c and engine/report.c only: how a pipeline file is
 * read. The keys of each object are a table with one row per key; checking,
 * suggestions and the reference page loop over the rows.
 *
 * Threads: a reader belongs to one thread; the tables are constant.
 */
#ifndef PF_PIPELINE_READ_H
#define PF_PIPELINE_READ_H

#include "bridge/buf.h"
#include "bridge/json.h"
#include "plateflow/pipeline.h"

enum {
  PF_MAX_STEPS = 1000,
  PF_MAX_TABLES = 100, /* of one step; also rows of `keep` */
  PF_MAX_CHANNELS = 1000,
  PF_MAX_NAME = 64, /* bytes of a step's or a table's name */
  PF_MAX_THREADS = 1024
};

/* Reading goes on after an error; the caller asks at the end. */
struct pf_reader {
  struct pf_pipeline *pipeline; /* being filled */
  const struct pf_json_doc *doc;
  struct pf_report *report;
  bool no_memory;
};

struct pf_key;
/* Check `value` and store it; `field` is at the row's offset. */
typedef void pf_key_read(struct pf_reader *r, const struct pf_key *key,
                         const pf_json *value, void *field);

struct pf_key {
  const char *name;
  const char *type;         /* what it takes, for people: "true or false" */
  const char *standard;     /* the default, for people; "required" */
  pf_key_read *read;        /* NULL: not supported yet */
  size_t offset;            /* of the field in the object's struct */
  int64_t min, max;         /* of an integer */
  const char *const *words; /* of a word: its values, NULL at the end */
  const char *help;
};

struct pf_key_table {
  const char *object; /* "a step", for people */
  size_t n;
  const struct pf_key *keys;
};

enum { PF_KEYS_ROOT, PF_KEYS_PLATE, PF_KEYS_STEP, PF_KEYS_WITH, PF_KEYS_KEEP };
/* In this order, then a row with `object` NULL. */
extern const struct pf_key_table pf_pipeline_keys[];

/* --- complaints (pipeline_values.c): each adds one message to the report */

void pf_complain(struct pf_reader *r, const pf_json *value, bool of_key,
                 const char *fmt, ...) PF_PRINTF(4, 5);
/* `expected WHAT, got the string "3"`. */
void pf_complain_type(struct pf_reader *r, const pf_json *value,
                      const char *what);
/* `unknown WHAT "x"; did you mean "y"?` */
void pf_complain_word(struct pf_reader *r, const pf_json *value, bool of_key,
                      const char *what, const char *word,
                      const char *const *known, size_t n);
/* `WHAT "x" is not supported yet`; `what` ends with a space or is "". */
void pf_complain_not_yet(struct pf_reader *r, const pf_json *value,
                         bool of_key, const char *what, const char *word);
/* `text` as a JSON string, cut where it is long. */
void pf_add_quoted(struct pf_buf *buf, const char *text);

/* --- values (pipeline_values.c) */

/* Read the members of an object by the rows of a table; false if `value` is
 * no object. */
bool pf_read_object(struct pf_reader *r, const struct pf_key_table *table,
                    const pf_json *value, void *base);
/* A list's zeroed elements (the caller owns them) and their number; NULL,
 * with a complaint, if it is no list, is empty where it must not be, or has
 * more than `max` elements. */
void *pf_read_list(struct pf_reader *r, const pf_json *value, const char *what,
                   size_t min, size_t max, size_t size, size_t *n);
/* A non-empty string, borrowed; NULL with a complaint. */
const char *pf_read_text(struct pf_reader *r, const pf_json *value);
/* A copy that the caller owns; NULL if memory ran out, which is noted. */
char *pf_read_copy(struct pf_reader *r, const char *text);
/* Index of a word in a list that ends with NULL; -1 with a complaint. */
int pf_read_word(struct pf_reader *r, const pf_json *value, const char *what,
                 const char *const *words);

pf_key_read pf_read_version, pf_read_string, pf_read_bool, pf_read_int,
    pf_read_choice, pf_read_choice_text;

/* Letters, digits, `_`, `.`, `-`, not starting with `.` or `-`. */
bool pf_is_name(const char *text);
/* What Python takes as a name. */
bool pf_is_identifier(const char *text, size_t n);

/* Words in the order of their enums, NULL at the end. */
extern const char *const pf_component_words[];
extern const char *const pf_dtype_words[];
extern const char *const pf_cast_mode_words[];

/* --- keys that need more than a row (pipeline_plate.c, _step.c, _source.c) */

pf_key_read pf_read_plate, pf_read_channels, pf_read_steps, pf_read_name,
    pf_read_function, pf_read_memory_types, pf_read_memory_type, pf_read_stack,
    pf_read_where, pf_read_source, pf_read_with, pf_read_yields,
    pf_read_parameters, pf_read_input_dtype, pf_read_dtype, pf_read_device,
    pf_read_sample, pf_read_keep, pf_read_limit, pf_read_save, pf_read_tables,
    pf_read_with_stack, pf_read_with_where;

/* --- what several keys or several steps say together (pipeline_check.c) */
void pf_check_pipeline(struct pf_reader *r);
/* Placeholders in all strings of `value` (pipeline_placeholder.c). `stacked`
 * has bits of components that cannot be filled in; `out` allows {out}. */
void pf_check_placeholders(struct pf_reader *r, const pf_json *value,
                           unsigned stacked, bool out);

/* A message at a place that is no value (report.c). Returns 0, PF_ENOMEM. */
int pf_report_add_at(struct pf_report *report, int line, int column,
                     const char *where, const char *text);

/* Free what the readers put into a step (pipeline_step.c). */
void pf_step_spec_finish(struct pf_step_spec *spec);
void pf_wheres_free(struct pf_where *where, size_t n); /* pipeline_source.c */

#endif
