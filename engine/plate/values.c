/* Values of components: see engine/plate/values.h. */
#include "engine/plate/values.h"

#include <stdlib.h>
#include <string.h>

static bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

static bool is_number(struct pf_text text) {
  for (uint32_t i = 0; i < text.n; i++)
    if (!is_digit(text.at[i]))
      return false;
  return text.n > 0;
}

static struct pf_text trim_blanks(struct pf_text text) {
  while (text.n && text.at[0] == ' ') {
    text.at++;
    text.n--;
  }
  while (text.n && text.at[text.n - 1] == ' ')
    text.n--;
  return text;
}

/* 1 to 26 for a letter of either case, else 0. */
static unsigned letter(char c) {
  if (c >= 'A' && c <= 'Z')
    return (unsigned)(c - 'A') + 1;
  return c >= 'a' && c <= 'z' ? (unsigned)(c - 'a') + 1 : 0;
}

bool pf_well_parse(const char *text, size_t n, unsigned *row, unsigned *col) {
  size_t i = 0, digits = 0;
  unsigned r = 0, c = 0;
  while (i < n && letter(text[i]) && r <= 26)
    r = r * 26 + letter(text[i++]);
  if (i == 0)
    return false;
  while (i < n && text[i] == ' ')
    i++;
  if (i < n && text[i] == '-')
    i++;
  while (i < n && text[i] == ' ')
    i++;
  for (; i < n && is_digit(text[i]) && digits < 3; i++, digits++)
    c = c * 10 + (unsigned)(text[i] - '0');
  *row = r;
  *col = c;
  return i == n && c > 0 && r <= 26 * 27;
}

bool pf_well_format(char out[16], unsigned row, unsigned col) {
  char *p = out;
  if (row == 0 || row > 26 * 27 || col == 0 || col > 9999)
    return false;
  if (row > 26)
    *p++ = (char)('A' + (row - 1) / 26 - 1);
  *p++ = (char)('A' + (row - 1) % 26);
  if (col > 999)
    *p++ = (char)('0' + col / 1000);
  if (col > 99)
    *p++ = (char)('0' + col / 100 % 10);
  *p++ = (char)('0' + col / 10 % 10);
  *p++ = (char)('0' + col % 10);
  *p = '\0';
  return true;
}

struct pf_text pf_value_canonical(enum pf_component component,
                                  struct pf_text text, char *well) {
  unsigned row, col;
  if (component == PF_PLATE)
    return text;
  text = trim_blanks(text);
  if (component == PF_WELL && pf_well_parse(text.at, text.n, &row, &col) &&
      pf_well_format(well, row, col))
    return (struct pf_text){well, (uint32_t)strlen(well)};
  if (is_number(text))
    while (text.n > 1 && text.at[0] == '0') {
      text.at++;
      text.n--;
    }
  return text;
}

uint32_t pf_values_add(struct pf_values *values, struct pf_text text) {
  int64_t id = pf_strmap_add(&values->ids, text.at, text.n);
  return id < 0 ? PF_NO_VALUE : (uint32_t)id;
}

/* What qsort compares: `key` first, then the text as its class asks. */
struct item {
  uint64_t key; /* class in the top 2 bits, below it the number or the well */
  const char *text;
  uint32_t id;
};

enum { CLASS_VALUE, CLASS_LONG_NUMBER, CLASS_WORD };

static uint64_t key_of(enum pf_component component, const char *text) {
  size_t n = strlen(text);
  unsigned row, col;
  if (component == PF_WELL && pf_well_parse(text, n, &row, &col))
    return (uint64_t)row * 10000 + col;
  if (!is_number((struct pf_text){text, (uint32_t)n}))
    return (uint64_t)CLASS_WORD << 62;
  while (*text == '0')
    text++;
  if (strlen(text) > 18)
    return (uint64_t)CLASS_LONG_NUMBER << 62;
  /* Numbers stand behind wells where a component has both. */
  return strtoull(*text ? text : "0", NULL, 10) |
         (component == PF_WELL ? (uint64_t)1 << 61 : 0);
}

static int compare_long_numbers(const char *a, const char *b) {
  while (*a == '0')
    a++;
  while (*b == '0')
    b++;
  if (strlen(a) != strlen(b))
    return strlen(a) < strlen(b) ? -1 : 1;
  return strcmp(a, b);
}

static int compare_items(const void *va, const void *vb) {
  const struct item *a = va, *b = vb;
  int order = 0;
  if (a->key != b->key)
    return a->key < b->key ? -1 : 1;
  if (a->key >> 62 == CLASS_LONG_NUMBER)
    order = compare_long_numbers(a->text, b->text);
  else if (a->key >> 62 == CLASS_WORD)
    order = strverscmp(a->text, b->text);
  return order ? order : strcmp(a->text, b->text);
}

/* The items of the used ids; their number in *n. */
static struct item *collect_items(const struct pf_values *values,
                                  enum pf_component component,
                                  const uint8_t *used, uint32_t *n) {
  uint32_t n_ids = values->ids.n;
  struct item *items = malloc((n_ids + 1) * sizeof(*items));
  *n = 0;
  for (uint32_t id = 0; items && id < n_ids; id++) {
    const char *text = pf_strmap_get(&values->ids, id);
    if (!used || used[id])
      items[(*n)++] = (struct item){key_of(component, text), text, id};
  }
  return items;
}

int pf_values_rank(struct pf_values *values, enum pf_component component,
                   const uint8_t *used) {
  uint32_t n_ids = values->ids.n, n = 0;
  struct item *items = collect_items(values, component, used, &n);
  uint32_t *rank = realloc(values->rank, (n_ids + 1) * sizeof(*rank));
  const char **text = NULL;
  values->rank = rank ? rank : values->rank;
  text = realloc(values->text, ((size_t)n + 1) * sizeof(*text));
  values->text = text ? text : values->text;
  if (!items || !rank || !text) {
    free(items);
    return PF_ENOMEM;
  }
  qsort(items, n, sizeof(*items), compare_items);
  memset(rank, 0xff, n_ids * sizeof(*rank)); /* PF_NO_VALUE */
  for (uint32_t i = 0; i < n; i++) {
    rank[items[i].id] = i;
    text[i] = items[i].text;
  }
  values->n = n;
  free(items);
  return PF_OK;
}

void pf_values_finish(struct pf_values *values) {
  pf_strmap_free(&values->ids);
  free(values->rank);
  free(values->text);
  *values = (struct pf_values){0};
}
