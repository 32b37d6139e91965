/* "Did you mean": see pf_nearest_word() in bridge/json.h. */
#include "bridge/json.h"

#include <string.h>

/* Nobody mistypes a longer word, and the table below stays small. */
enum { MAX_WORD = 64 };

static char lower(char c) {
  return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static size_t least(size_t a, size_t b, size_t c) {
  size_t least_ab = a < b ? a : b;
  return least_ab < c ? least_ab : c;
}

/*
 * Edits that turn `a` into `b`: insert, delete, replace, swap two neighbours
 * (optimal string alignment). Letters in the other case cost nothing.
 */
static size_t distance(const char *a, size_t n_a, const char *b, size_t n_b) {
  size_t row[3][MAX_WORD + 1]; /* the last three rows of the table */
  for (size_t j = 0; j <= n_b; j++)
    row[0][j] = j;
  for (size_t i = 1; i <= n_a; i++) {
    size_t *now = row[i % 3], *before = row[(i + 2) % 3];
    const size_t *earlier = row[(i + 1) % 3];
    now[0] = i;
    for (size_t j = 1; j <= n_b; j++) {
      size_t differs = lower(a[i - 1]) != lower(b[j - 1]);
      now[j] = least(before[j] + 1, now[j - 1] + 1, before[j - 1] + differs);
      if (i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) &&
          lower(a[i - 2]) == lower(b[j - 1]) && earlier[j - 2] + 1 < now[j])
        now[j] = earlier[j - 2] + 1;
    }
  }
  return row[n_a % 3][n_b];
}

const char *pf_nearest_word(const char *word, const char *const *known,
                            size_t n) {
  size_t length = strlen(word), limit = length / 3;
  const char *best = NULL;
  if (length == 0 || length > MAX_WORD)
    return NULL;
  /* In a word of one letter, one edit leaves nothing of it. */
  if (limit == 0 && length > 1)
    limit = 1;
  limit++; /* the first below it wins */
  for (size_t i = 0; i < n; i++) {
    size_t d, other = known[i] ? strlen(known[i]) : MAX_WORD + 1;
    if (other > MAX_WORD)
      continue;
    d = distance(word, length, known[i], other);
    if (d < limit) {
      limit = d;
      best = known[i];
    }
  }
  return best;
}
