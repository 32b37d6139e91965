/*
 * Which plates a tree holds. Each pair of a folder (without the parts that the
 * layout explains) and a plate's name in the file names is a candidate.
 *
 * - Names without a plate, and layouts whose folder is the plate: a folder is
 *   a plate.
 * - Otherwise a name is a plate, wherever its files are; but where that would
 *   make two files one slice and their folders stand beside each other, each
 *   folder is a plate. (A copy in a sub-folder is a clash for people to see.)
 */
#include <stdlib.h>
#include <string.h>

#include "engine/plate/index.h"

static const char *text_at(const struct pf_candidates *all, size_t offset) {
  return all->texts.data + offset;
}

uint32_t pf_candidate_add(struct pf_candidates *all, struct pf_text folder,
                          struct pf_text token) {
  struct pf_buf key = {0};
  uint32_t n = all->keys.n;
  int64_t id = PF_STRMAP_NONE;
  pf_buf_add(&key, folder.at, folder.n);
  pf_buf_str(&key, "//");
  pf_buf_add(&key, token.at, token.n);
  if (pf_buf_ok(&key))
    id = pf_strmap_add(&all->keys, key.data, key.len);
  pf_buf_free(&key);
  if (id < 0 || (uint32_t)id < n)
    return id < 0 ? PF_NO_VALUE : (uint32_t)id;
  if (n == all->cap) {
    uint32_t cap = n ? n * 2 : 8;
    struct pf_candidate *items = realloc(all->items, cap * sizeof(*items));
    if (!items)
      return PF_NO_VALUE;
    all->items = items;
    all->cap = cap;
  }
  all->items[n] = (struct pf_candidate){.folder = all->texts.len};
  pf_buf_add(&all->texts, folder.at, folder.n);
  pf_buf_char(&all->texts, '\0');
  all->items[n].token = all->texts.len;
  pf_buf_add(&all->texts, token.at, token.n);
  pf_buf_char(&all->texts, '\0');
  return pf_buf_ok(&all->texts) ? n : PF_NO_VALUE;
}

static const char *base_name(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

/* How a merged plate is called; more words where the first name is not alone.
 */
enum naming { NAMED_SHORT, NAMED_BY_FOLDER, NAMED_BY_BOTH, NAMED_BY_NUMBER };

struct merged {
  uint32_t candidate; /* the first of it */
  enum naming naming;
};

/* The acquisition's or the folder's own name; malloc'd. */
static char *folder_name(const struct pf_plate *plate, const char *folder,
                         bool *is_acquisition) {
  struct pf_buf path = {0};
  const char *name = NULL;
  char *result = NULL;
  pf_buf_str(&path, plate->tree.root);
  if (*folder) {
    pf_buf_char(&path, '/');
    pf_buf_str(&path, folder);
  }
  /* The root may be the folder of images itself ("MEASUREMENT/Images"). */
  while (pf_buf_ok(&path) && !*folder) {
    struct pf_text unused;
    const char *last = base_name(path.data);
    if (last == path.data || last == path.data + 1 ||
        !pf_layout_folder(plate->layout, last, strlen(last), &unused))
      break;
    path.len = (size_t)(last - path.data) - 1;
    path.data[path.len] = '\0';
  }
  if (pf_buf_ok(&path) && plate->layout->acquisition)
    name = plate->layout->acquisition(path.data);
  *is_acquisition = name != NULL;
  if (pf_buf_ok(&path))
    result = strdup(name ? name : base_name(path.data));
  pf_buf_free(&path);
  if (result && !*result) {
    free(result);
    result = strdup("plate");
  }
  return result;
}

static bool token_is_split(const struct pf_candidates *all,
                           const char *token) {
  return pf_strmap_find(&all->split, token, strlen(token)) >= 0;
}

static bool is_by_token(const struct pf_build *b, uint32_t candidate) {
  const struct pf_candidates *all = &b->candidates;
  const char *token = text_at(all, all->items[candidate].token);
  bool is_acquisition = false;
  char *name;
  if (!*token || b->plate->layout->folder_is_plate ||
      token_is_split(all, token))
    return false;
  name = folder_name(b->plate, text_at(all, all->items[candidate].folder),
                     &is_acquisition);
  free(name);
  return !is_acquisition;
}

/* What two candidates of one plate have in common, as a key. */
static void merge_key(const struct pf_build *b, uint32_t candidate,
                      bool by_token, struct pf_buf *key) {
  const struct pf_candidates *all = &b->candidates;
  const struct pf_candidate *it = &all->items[candidate];
  pf_buf_reset(key);
  pf_buf_char(key, by_token ? 'T' : 'F');
  if (!by_token) {
    pf_buf_str(key, text_at(all, it->folder));
    pf_buf_str(key, "//");
  }
  pf_buf_str(key, text_at(all, it->token));
}

/* Append a merged plate's name to `out`. */
static bool add_name(const struct pf_build *b, const struct merged *m,
                     struct pf_buf *out) {
  const struct pf_candidates *all = &b->candidates;
  const char *folder = text_at(all, all->items[m->candidate].folder);
  const char *token = text_at(all, all->items[m->candidate].token);
  bool is_acquisition = false;
  char *name = folder_name(b->plate, folder, &is_acquisition);
  bool is_split = token_is_split(all, token);
  if (!name)
    return false;
  if (m->naming == NAMED_SHORT)
    pf_buf_str(out, *token && !is_acquisition && !is_split ? token : name);
  else
    pf_buf_str(out, *folder ? folder : name);
  if (m->naming >= NAMED_BY_BOTH && *token) {
    pf_buf_char(out, '/');
    pf_buf_str(out, token);
  }
  if (m->naming == NAMED_BY_NUMBER)
    pf_buf_printf(out, " #%u", m->candidate + 1);
  free(name);
  return pf_buf_ok(out);
}

/* Names for all merged plates into `names`, id i for plate i; false where a
 * name occurs twice: then those that have it are to be named longer. */
static bool try_names(const struct pf_build *b, struct merged *merged,
                      uint32_t n, struct pf_strmap *names, bool *clash) {
  struct pf_buf name = {0};
  uint32_t *first = calloc((size_t)n + 1, sizeof(*first));
  bool ok = first != NULL;
  *clash = false;
  for (uint32_t i = 0; ok && i < n; i++) {
    uint32_t before = names->n;
    int64_t id;
    pf_buf_reset(&name);
    ok = add_name(b, &merged[i], &name);
    id = ok ? pf_strmap_add(names, name.data, name.len) : -1;
    ok = id >= 0;
    if (!ok)
      break;
    if (names->n > before) {
      first[id] = i;
      continue;
    }
    *clash = true;
    if (merged[i].naming < NAMED_BY_NUMBER)
      merged[i].naming++;
    if (merged[first[id]].naming < merged[i].naming)
      merged[first[id]].naming++;
  }
  free(first);
  pf_buf_free(&name);
  return ok;
}

/* Group the candidates into plates: candidate->plate is the plate's index. */
static bool merge(struct pf_build *b, struct merged *merged, uint32_t *n) {
  struct pf_candidates *all = &b->candidates;
  struct pf_strmap keys = {0};
  struct pf_buf key = {0};
  bool ok = true;
  for (uint32_t i = 0; ok && i < all->keys.n; i++) {
    bool by_token = is_by_token(b, i);
    int64_t id;
    merge_key(b, i, by_token, &key);
    id = pf_buf_ok(&key) ? pf_strmap_add(&keys, pf_buf_text(&key), key.len)
                         : -1;
    ok = id >= 0;
    if (!ok)
      break;
    if ((uint32_t)id == *n)
      merged[(*n)++] = (struct merged){.candidate = i};
    all->items[i].plate = (uint32_t)id;
  }
  pf_buf_free(&key);
  pf_strmap_free(&keys);
  return ok;
}

int pf_candidates_resolve(struct pf_build *build) {
  struct pf_values *values = &build->plate->values[PF_PLATE];
  uint32_t n = 0, n_candidates = build->candidates.keys.n;
  struct merged *merged = calloc((size_t)n_candidates + 1, sizeof(*merged));
  bool clash = true, ok = merged && merge(build, merged, &n);
  /* Each round makes the names that clash longer. */
  for (int round = 0; ok && clash && round < 8; round++) {
    pf_values_finish(values);
    ok = try_names(build, merged, n, &values->ids, &clash);
  }
  free(merged);
  if (!ok)
    return pf_build_no_memory(build);
  /* Without a clash, plate i has name i. */
  return clash ? pf_error_set(build->err, PF_EINVAL,
                              "two plates cannot be told apart by their names")
               : PF_OK;
}

static bool holds(const char *outer, const char *inner) {
  size_t n = strlen(outer);
  return n == 0 || (strncmp(outer, inner, n) == 0 &&
                    (inner[n] == '/' || inner[n] == '\0'));
}

bool pf_candidates_split(struct pf_build *build, uint32_t a, uint32_t b) {
  struct pf_candidates *all = &build->candidates;
  const char *folder_a = text_at(all, all->items[a].folder);
  const char *folder_b = text_at(all, all->items[b].folder);
  const char *token = text_at(all, all->items[a].token);
  if (a == b || holds(folder_a, folder_b) || holds(folder_b, folder_a))
    return false;
  return pf_strmap_add(&all->split, token, strlen(token)) >= 0;
}

void pf_candidates_finish(struct pf_candidates *all) {
  pf_strmap_free(&all->keys);
  free(all->items);
  pf_buf_free(&all->texts);
  pf_strmap_free(&all->split);
  *all = (struct pf_candidates){0};
}
