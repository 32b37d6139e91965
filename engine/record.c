/* Records of finished groups: see engine/record.h. */
#include "engine/record.h"

#include <stdlib.h>

struct pf_record *pf_record_create(uint64_t group, size_t n_steps,
                                   size_t n_tables) {
  struct pf_record *record =
      calloc(1, sizeof(*record) + n_steps * sizeof(struct pf_task_row));
  if (!record)
    return NULL;
  record->group = group;
  if (n_tables) {
    record->rows = calloc(n_tables, sizeof(*record->rows));
    if (!record->rows) {
      free(record);
      return NULL;
    }
  }
  return record;
}

void pf_record_destroy(struct pf_record *record) {
  if (!record)
    return;
  for (size_t i = 0; i < record->n_outputs; i++)
    free(record->outputs[i].path);
  for (size_t i = 0; i < record->n_rows; i++) {
    pf_table_destroy(&record->rows[i].table);
    free(record->rows[i].map);
  }
  pf_error_clear(&record->error);
  free(record->outputs);
  free(record->rows);
  free(record);
}

int pf_record_add_output(struct pf_record *record, uint32_t step,
                         uint32_t plane, uint32_t position, char *path,
                         struct pf_error *err) {
  if (record->n_outputs == record->output_cap) {
    size_t cap = record->output_cap ? record->output_cap * 2 : 2;
    struct pf_output_row *rows = realloc(record->outputs, cap * sizeof(*rows));
    if (!rows) {
      free(path);
      return pf_error_set(err, PF_ENOMEM, "out of memory");
    }
    record->outputs = rows;
    record->output_cap = cap;
  }
  record->outputs[record->n_outputs++] =
      (struct pf_output_row){step, plane, position, path};
  return PF_OK;
}

void pf_record_reason(const struct pf_record *record, struct pf_buf *out) {
  if (record->error.step)
    pf_buf_printf(out, "step \"%s\": ", record->error.step);
  if (record->error.message)
    pf_buf_str(out, record->error.message);
}
