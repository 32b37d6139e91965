/* What is wrong with a pipeline, at its places: see plateflow/pipeline.h. */
#include "plateflow/pipeline.h"

#include <stdlib.h>
#include <string.h>

#include "bridge/buf.h"
#include "bridge/json.h"
#include "engine/pipeline_read.h"

/* Takes both strings, which are freed after failure. */
static int append(struct pf_report *report, bool is_warning, int line,
                  int column, char *where, char *text) {
  struct pf_message *messages = report->messages;
  if (where && text && report->n == report->cap) {
    size_t cap = report->cap ? 2 * report->cap : 16;
    messages = realloc(report->messages, cap * sizeof(*messages));
    if (messages) {
      report->messages = messages;
      report->cap = cap;
    }
  }
  if (!where || !text || !messages) {
    free(where);
    free(text);
    return PF_ENOMEM;
  }
  report->messages[report->n++] =
      (struct pf_message){is_warning, line, column, where, text};
  if (!is_warning)
    report->n_errors++;
  return PF_OK;
}

int pf_report_add(struct pf_report *report, bool is_warning,
                  const struct pf_json_doc *doc, const struct cJSON *value,
                  bool of_key, const char *fmt, ...) {
  struct pf_buf where = {0}, text = {0};
  int line = 0, column = 0;
  va_list args;
  va_start(args, fmt);
  pf_buf_vprintf(&text, fmt, args);
  va_end(args);
  if (doc && value) {
    pf_json_path(doc, value, &where);
    pf_json_place(doc, value, of_key, &line, &column);
  }
  return append(report, is_warning, line, column, pf_buf_take(&where),
                pf_buf_take(&text));
}

int pf_report_add_at(struct pf_report *report, int line, int column,
                     const char *where, const char *text) {
  return append(report, false, line, column, strdup(where), strdup(text));
}

void pf_report_clear(struct pf_report *report) {
  for (size_t i = 0; i < report->n; i++) {
    free(report->messages[i].where);
    free(report->messages[i].text);
  }
  free(report->messages);
  *report = (struct pf_report){0};
}

/* A message with its rank, since qsort() may swap equals. */
struct ranked {
  struct pf_message message;
  size_t rank;
};

static int compare(const void *a, const void *b) {
  const struct ranked *x = a, *y = b;
  if (x->message.line != y->message.line)
    return x->message.line < y->message.line ? -1 : 1;
  if (x->message.column != y->message.column)
    return x->message.column < y->message.column ? -1 : 1;
  return x->rank < y->rank ? -1 : 1;
}

void pf_report_sort(struct pf_report *report) {
  struct ranked *ranked = NULL;
  if (report->n < 2)
    return;
  ranked = calloc(report->n, sizeof(*ranked));
  if (!ranked)
    return; /* the order is a courtesy */
  for (size_t i = 0; i < report->n; i++)
    ranked[i] = (struct ranked){report->messages[i], i};
  qsort(ranked, report->n, sizeof(*ranked), compare);
  for (size_t i = 0; i < report->n; i++)
    report->messages[i] = ranked[i].message;
  free(ranked);
}
