/* Errors as values: see include/plateflow/error.h. */
#include "plateflow/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bridge/buf.h"

/* Stands in for a message when there is no memory for one; never freed. */
static char out_of_memory[] = "out of memory";

static char *format_alloc(const char *fmt, va_list args) {
  struct pf_buf buf = {0};
  pf_buf_vprintf(&buf, fmt, args);
  if (buf.failed) {
    pf_buf_free(&buf);
    return NULL;
  }
  return pf_buf_take(&buf);
}

#undef pf_error_set /* the analyser's macro */
int pf_error_set(struct pf_error *err, enum pf_code code, const char *fmt,
                 ...) {
  va_list args;
  if (!err || err->code != PF_OK)
    return (int)code;
  err->code = code;
  va_start(args, fmt);
  err->message = format_alloc(fmt, args);
  va_end(args);
  if (!err->message)
    err->message = out_of_memory;
  return (int)code;
}

void pf_error_prefix(struct pf_error *err, const char *fmt, ...) {
  struct pf_buf buf = {0};
  va_list args;
  if (!err || err->code == PF_OK)
    return;
  va_start(args, fmt);
  pf_buf_vprintf(&buf, fmt, args);
  va_end(args);
  pf_buf_printf(&buf, ": %s", err->message ? err->message : "");
  if (buf.failed) {
    pf_buf_free(&buf);
    return;
  }
  if (err->message != out_of_memory)
    free(err->message);
  err->message = pf_buf_take(&buf);
}

/* Copy `text` into an empty field; without memory the field stays empty. */
static void fill(char **field, const char *text) {
  if (!*field && text)
    *field = strdup(text);
}

void pf_error_at_file(struct pf_error *err, const char *file, int line,
                      int column) {
  if (!err || err->code == PF_OK || err->file)
    return;
  fill(&err->file, file);
  err->line = line;
  err->column = column;
}

void pf_error_at_step(struct pf_error *err, const char *step) {
  if (err && err->code != PF_OK)
    fill(&err->step, step);
}

void pf_error_at_group(struct pf_error *err, const char *group) {
  if (err && err->code != PF_OK)
    fill(&err->group, group);
}

void pf_error_detail(struct pf_error *err, const char *detail) {
  if (err && err->code != PF_OK)
    fill(&err->detail, detail);
}

void pf_error_move(struct pf_error *dst, struct pf_error *src) {
  if (dst && dst->code == PF_OK) {
    *dst = *src;
    *src = (struct pf_error)PF_ERROR_INIT;
  } else {
    pf_error_clear(src);
  }
}

void pf_error_clear(struct pf_error *err) {
  if (!err)
    return;
  if (err->message != out_of_memory)
    free(err->message);
  free(err->step);
  free(err->group);
  free(err->file);
  free(err->detail);
  *err = (struct pf_error)PF_ERROR_INIT;
}

static void format_place(struct pf_buf *buf, const struct pf_error *err) {
  if (!err->file)
    return;
  /* A file without a line is already named in the message. */
  if (err->line <= 0)
    return;
  pf_buf_name(buf, err->file);
  pf_buf_printf(buf, ":%d", err->line);
  if (err->column > 0)
    pf_buf_printf(buf, ":%d", err->column);
  pf_buf_str(buf, ": ");
}

char *pf_error_format(const struct pf_error *err) {
  struct pf_buf buf = {0};
  format_place(&buf, err);
  if (err->step && err->group)
    pf_buf_printf(&buf, "step \"%s\" (%s): ", err->step, err->group);
  else if (err->step)
    pf_buf_printf(&buf, "step \"%s\": ", err->step);
  else if (err->group)
    pf_buf_printf(&buf, "%s: ", err->group);
  pf_buf_str(&buf, err->message ? err->message : pf_code_text(err->code));
  return pf_buf_take(&buf);
}

struct code_row {
  const char *name, *text;
  int exit_status;
};

static const struct code_row code_rows[] = {
#define XX(name, exit_status, text) {"PF_" #name, text, exit_status},
    PF_CODE_MAP(XX)
#undef XX
};

static const struct code_row *code_row(enum pf_code code) {
  size_t n = sizeof(code_rows) / sizeof(code_rows[0]);
  return (size_t)code < n ? &code_rows[code] : &code_rows[PF_EBUG];
}

const char *pf_code_name(enum pf_code code) {
  return code_row(code)->name;
}

const char *pf_code_text(enum pf_code code) {
  return code_row(code)->text;
}

int pf_code_exit_status(enum pf_code code) {
  return code_row(code)->exit_status;
}
