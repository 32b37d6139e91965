/*
 * What a finished group leaves for the journal: its tasks, outputs and rows.
 * Made and filled by one worker, then handed to the journal, which frees it.
 */
#ifndef PF_RECORD_H
#define PF_RECORD_H

#include "bridge/buf.h"
#include "plateflow/run.h"
#include "steps/table.h"

struct pf_schema;

struct pf_task_row {
  uint32_t step;
  enum pf_status status;
  float seconds;
  const char *note; /* static text, or NULL: what was copied and why */
};

/* Planes from here on are files that a step wrote itself. */
#define PF_FIRST_EXTRA 0x40000000u

struct pf_output_row {
  uint32_t step, plane;
  uint32_t position; /* of its slice in the plan's order */
  char *path;        /* below OUT; owned */
};

struct pf_rows {
  struct pf_schema *schema; /* borrowed from the run */
  struct pf_table *table;   /* owned */
  size_t *map;              /* table column -> schema column; owned */
};

struct pf_record {
  struct pf_record *next; /* in the journal's queue */
  uint64_t group;
  enum pf_status status;
  struct pf_error error; /* of a failed group; else only `message` counts */
  size_t n_tasks, n_outputs, n_rows, output_cap;
  struct pf_output_row *outputs;
  struct pf_rows *rows;       /* room for as many as the plan has tables */
  struct pf_task_row tasks[]; /* room for as many as the plan has steps */
};

/* NULL if memory ran out. */
struct pf_record *pf_record_create(uint64_t group, size_t n_steps,
                                   size_t n_tables);
void pf_record_destroy(struct pf_record *record); /* NULL is allowed */
/* Why the group is not done, without its name: `step "x": ...`. */
void pf_record_reason(const struct pf_record *record, struct pf_buf *out);
/* Takes `path`, also on failure. */
int pf_record_add_output(struct pf_record *record, uint32_t step,
                         uint32_t plane, uint32_t position, char *path,
                         struct pf_error *err) PF_MUST_CHECK;

#endif
