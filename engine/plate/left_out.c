/* What was left out: see engine/plate/left_out.h. */
#include "engine/plate/left_out.h"

#include <stdlib.h>
#include <string.h>

void pf_leftovers_add(struct pf_leftovers *left, const char *folder,
                      const char *name, const char *reason) {
  int64_t id = pf_strmap_add(&left->reasons, reason, strlen(reason));
  if (left->n == left->cap) {
    size_t cap = left->cap ? left->cap * 2 : 16;
    struct pf_leftover *items = realloc(left->items, cap * sizeof(*items));
    if (!items) {
      left->failed = true;
      return;
    }
    left->items = items;
    left->cap = cap;
  }
  if (id < 0) {
    left->failed = true;
    return;
  }
  left->items[left->n++] = (struct pf_leftover){left->paths.len, (uint32_t)id};
  pf_buf_str(&left->paths, folder);
  if (*folder && *name)
    pf_buf_char(&left->paths, '/');
  pf_buf_add(&left->paths, name, strlen(name) + 1);
}

static int compare_paths(const void *a, const void *b) {
  const struct pf_left_out *x = a, *y = b;
  int order = strcmp(x->path, y->path);
  return order ? order : strcmp(x->reason, y->reason);
}

int pf_leftovers_close(struct pf_leftovers *left) {
  if (left->failed || !pf_buf_ok(&left->paths))
    return PF_ENOMEM;
  left->list = malloc((left->n + 1) * sizeof(*left->list));
  if (!left->list)
    return PF_ENOMEM;
  for (size_t i = 0; i < left->n; i++) {
    left->list[i].path = left->paths.data + left->items[i].path;
    left->list[i].reason =
        pf_strmap_get(&left->reasons, left->items[i].reason);
  }
  if (left->n)
    qsort(left->list, left->n, sizeof(*left->list), compare_paths);
  free(left->items);
  left->items = NULL;
  return PF_OK;
}

void pf_leftovers_finish(struct pf_leftovers *left) {
  pf_buf_free(&left->paths);
  pf_strmap_free(&left->reasons);
  free(left->items);
  free(left->list);
  *left = (struct pf_leftovers){0};
}
