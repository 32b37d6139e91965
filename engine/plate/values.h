/*
 * The values of one component: texts in canonical form, and their order.
 * Canonical: a number without leading zeros, a well as "A01"; plates and other
 * texts stand as they are. One thread at a time until ranked.
 */
#ifndef PF_VALUES_H
#define PF_VALUES_H

#include "bridge/strmap.h"
#include "engine/plate/layout.h"

struct pf_values {
  struct pf_strmap ids; /* the texts */
  uint32_t *rank;       /* of an id; PF_NO_VALUE: no slice has it */
  const char **text;    /* by rank; borrowed */
  uint32_t n;           /* ranks */
};
void pf_values_finish(struct pf_values *values);

/* "a1", "A - 01", "AA01": row and column from 1. */
bool pf_well_parse(const char *text, size_t n, unsigned *row, unsigned *col);
/* Row as letters, column in two digits or more; false past row ZZ. */
bool pf_well_format(char out[16], unsigned row, unsigned col);
/* The canonical form of `text`, in itself or in `well` (of 16 bytes). */
struct pf_text pf_value_canonical(enum pf_component component,
                                  struct pf_text text, char *well);

/* The id of a canonical text, added if new; PF_NO_VALUE without memory. */
uint32_t pf_values_add(struct pf_values *values, struct pf_text text);
/*
 * Rank the ids whose bit in `used` (n bytes of 0 or 1, by id; NULL: all) is
 * set: wells by row and column, numbers before words, each in its order.
 */
int pf_values_rank(struct pf_values *values, enum pf_component component,
                   const uint8_t *used);

#endif
