/*
 * The columns of the tables that a run makes. Types are checked once and then
 * for every group: an integer column may become real, nothing else changes. A
 * group may bring its columns in another order, leave some out or add some
 * (a feature per channel); their cells in other groups are empty. A table
 * without rows need not know its types.
 *
 * Threads: accept may be called from any thread; the rest once workers ended
 * or from the thread that writes the journal.
 */
#ifndef PF_SCHEMA_H
#define PF_SCHEMA_H

#include <stdbool.h>

#include "steps/table.h"

struct pf_schema;

int pf_schema_create(struct pf_schema **out, const char *table,
                     struct pf_error *err) PF_MUST_CHECK;
void pf_schema_destroy(struct pf_schema **schema);
/*
 * Check a group's table. *map is a malloc'd vector: for each of the table's
 * columns its number in the schema. PF_ESTEP names the column that is wrong.
 */
int pf_schema_accept(struct pf_schema *schema, uint64_t group,
                     const struct pf_table *table, size_t **map,
                     struct pf_error *err) PF_MUST_CHECK;
const char *pf_schema_name(const struct pf_schema *schema);
/* Columns seen so far; numbers are given in order of arrival. */
size_t pf_schema_n_columns(struct pf_schema *schema);

/* Put the columns in the order to write them: by the plan's first group that
 * has each, whatever order the workers met them in. */
void pf_schema_sort(struct pf_schema *schema);
/* The i-th column in that order; *number is its number. */
const char *pf_schema_column(struct pf_schema *schema, size_t i,
                             size_t *number, enum pf_column_type *type);

#endif
