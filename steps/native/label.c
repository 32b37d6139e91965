/*
 * native:label: number the connected objects of a stack.
 *
 * Rows are cut into runs of foreground; runs that touch a run of a row before
 * are joined in a union-find whose root is always the earliest run. So roots
 * come up in scan order, and numbering them in that order gives SciPy's and
 * scikit-image's numbers.
 */
#include <stdlib.h>
#include <string.h>

#include "steps/native/native.h"

enum connectivity { FACES_4, FACES_6, FULL_8, EDGES_18, FULL_26 };

struct label_params {
  int connectivity;
  int64_t min_area;
};

static const struct pf_param params[] = {
    {.name = "connectivity",
     .help = "neighbours of a pixel: 8 of a plane or 26 of a volume, all; 4 "
             "or 6, those that share a face; 18, a face or an edge",
     .type = PF_PARAM_CHOICE,
     .offset = offsetof(struct label_params, connectivity),
     .standard = FULL_8,
     .choices = "4|6|8|18|26"},
    {.name = "min_area",
     .help = "objects of fewer pixels are removed",
     .type = PF_PARAM_INT,
     .offset = offsetof(struct label_params, min_area),
     .standard = 0,
     .min = 0,
     .max = 0x1p53},
    {.name = NULL}};

/* A row that was seen before this one, and how far (in x) beyond its ends a
 * run reaches there. */
struct neighbour {
  int dz, dy;
  uint32_t reach;
};

enum { MAX_NEIGHBOURS = 4 };

static const struct neighbour faces[MAX_NEIGHBOURS] = {{0, -1, 0}, {-1, 0, 0}};
static const struct neighbour edges[MAX_NEIGHBOURS] = {
    {0, -1, 1}, {-1, 0, 1}, {-1, -1, 0}, {-1, 1, 0}};
static const struct neighbour full[MAX_NEIGHBOURS] = {
    {0, -1, 1}, {-1, 0, 1}, {-1, -1, 1}, {-1, 1, 1}};

/* The words 4 and 6, and 8 and 26, mean the same at every depth. */
static const struct neighbour *const neighbours[] = {[FACES_4] = faces,
                                                     [FACES_6] = faces,
                                                     [FULL_8] = full,
                                                     [EDGES_18] = edges,
                                                     [FULL_26] = full};

struct run {
  uint32_t first, end; /* x */
  uint32_t parent;     /* a run of the same object, at most this one */
};

struct runs {
  struct run *run;
  size_t n, cap;
  uint32_t *row;   /* row r (z * height + y) has the runs row[r]..row[r + 1] */
  uint32_t *label; /* of a root, by its run */
  size_t *area;    /* of a root */
};

static void runs_finish(struct runs *runs) {
  free(runs->run);
  free(runs->row);
  free(runs->label);
  free(runs->area);
}

static int no_memory(struct pf_error *err) {
  return pf_error_set(err, PF_ENOMEM, "no memory to label the stack");
}

/* Room for the most runs that one more row can have. */
static int reserve(struct runs *runs, size_t width, struct pf_error *err) {
  const size_t need = runs->n + width / 2 + 1;
  size_t cap = runs->cap ? runs->cap : 4096;
  struct run *run;
  if (runs->run && need <= runs->cap)
    return PF_OK;
  if (need > UINT32_MAX)
    return pf_error_set(err, PF_ESTEP,
                        "the foreground is in more than 2^32 pieces");
  while (cap < need)
    cap *= 2;
  run = realloc(runs->run, cap * sizeof(*run));
  if (!run)
    return no_memory(err);
  runs->run = run;
  runs->cap = cap;
  return PF_OK;
}

/* First x from `x` on where the mask is `value` (0 or 1), or `width`. Eight
 * pixels at a time while none is. */
static size_t find(const uint8_t *mask, size_t x, size_t width,
                   uint8_t value) {
  const uint64_t other = value ? 0 : 0x0101010101010101u;
  uint64_t eight;
  for (; x + 8 <= width; x += 8) {
    memcpy(&eight, mask + x, 8);
    if (eight != other)
      break;
  }
  while (x < width && mask[x] != value)
    x++;
  return x;
}

static void add_row(struct runs *runs, const uint8_t *mask, size_t width) {
  size_t x = find(mask, 0, width, 1);
  while (x < width) {
    struct run *run = &runs->run[runs->n];
    run->first = (uint32_t)x;
    x = find(mask, x, width, 0);
    run->end = (uint32_t)x;
    run->parent = (uint32_t)runs->n++;
    x = find(mask, x, width, 1);
  }
}

static uint32_t root_of(struct run *run, uint32_t i) {
  while (run[i].parent != i) {
    run[i].parent = run[run[i].parent].parent;
    i = run[i].parent;
  }
  return i;
}

static void join(struct run *run, uint32_t a, uint32_t b) {
  a = root_of(run, a);
  b = root_of(run, b);
  if (a < b)
    run[b].parent = a;
  else
    run[a].parent = b;
}

/* Join the runs of row `r` with those of the earlier row `before`. */
static void join_rows(struct runs *runs, size_t r, size_t before,
                      uint32_t reach) {
  struct run *run = runs->run;
  uint32_t a = runs->row[r], b = runs->row[before];
  const uint32_t a_end = (uint32_t)runs->n, b_end = runs->row[before + 1];
  while (a < a_end && b < b_end) {
    /* add_row() has set every run below runs->n. */
    /* NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult) */
    if (run[a].first < run[b].end + reach && run[b].first < run[a].end + reach)
      join(run, a, b);
    if (run[a].end < run[b].end)
      a++;
    else
      b++;
  }
}

static void join_neighbours(struct runs *runs, size_t z, size_t y,
                            const struct pf_native_stack *in,
                            const struct neighbour *table) {
  const size_t r = z * in->height + y;
  for (int i = 0; i < MAX_NEIGHBOURS && (table[i].dz || table[i].dy); i++) {
    const int64_t before_z = (int64_t)z + table[i].dz;
    const int64_t before_y = (int64_t)y + table[i].dy;
    if (before_z < 0 || before_y < 0 || before_y >= (int64_t)in->height)
      continue;
    join_rows(runs, r, (size_t)before_z * in->height + (size_t)before_y,
              table[i].reach);
  }
}

static int find_runs(struct runs *runs, const struct pf_native_stack *in,
                     const struct neighbour *table, struct pf_error *err) {
  const size_t row_bytes = in->width * pf_dtype_size(in->dtype);
  const size_t n_rows = in->depth * in->height;
  uint8_t *mask = malloc(in->width);
  int code = PF_OK;
  runs->row = calloc(n_rows + 1, sizeof(*runs->row));
  if (!mask || !runs->row)
    code = no_memory(err);
  for (size_t r = 0; !code && r < n_rows; r++) {
    code = reserve(runs, in->width, err);
    if (code)
      break;
    runs->row[r] = (uint32_t)runs->n;
    pf_native_mask(mask, (char *)pf_array_data(in->array) + r * row_bytes,
                   in->dtype, in->width);
    add_row(runs, mask, in->width);
    join_neighbours(runs, r / in->height, r % in->height, in, table);
    runs->row[r + 1] = (uint32_t)runs->n;
  }
  free(mask);
  return code;
}

/* Number the roots in scan order; objects below `min_area` get 0. */
static int number_objects(struct runs *runs, size_t min_area,
                          struct pf_error *err) {
  uint32_t n_objects = 0;
  const size_t n = runs->n ? runs->n : 1;
  runs->label = calloc(n, sizeof(*runs->label));
  runs->area = calloc(n, sizeof(*runs->area));
  if (!runs->label || !runs->area)
    return no_memory(err);
  for (uint32_t i = 0; i < runs->n; i++) {
    const struct run *run = &runs->run[i];
    runs->area[root_of(runs->run, i)] += run->end - run->first;
  }
  for (uint32_t i = 0; i < runs->n; i++) {
    const uint32_t root = root_of(runs->run, i);
    if (root == i && runs->area[i] >= min_area)
      runs->label[i] = ++n_objects;
    else
      runs->label[i] = runs->label[root];
  }
  return PF_OK;
}

static void paint(uint32_t *out, const struct runs *runs,
                  const struct pf_native_stack *in) {
  const size_t n_rows = in->depth * in->height;
  memset(out, 0, n_rows * in->width * sizeof(*out));
  for (size_t r = 0; r < n_rows; r++)
    for (uint32_t i = runs->row[r]; i < runs->row[r + 1]; i++)
      for (uint32_t x = runs->run[i].first; x < runs->run[i].end; x++)
        out[r * in->width + x] = runs->label[i];
}

static int call(void *instance, const void *given, const struct pf_call *call,
                struct pf_result *result, struct pf_error *err) {
  const struct label_params *p = given;
  struct runs runs = {0};
  struct pf_native_stack in;
  struct pf_array *out = NULL;
  int code = pf_native_take(&in, call->stack, call->may_write, "stack", err);
  (void)instance;
  if (code)
    return code;
  code = find_runs(&runs, &in, neighbours[p->connectivity], err);
  if (!code)
    code = number_objects(&runs, (size_t)p->min_area, err);
  if (!code)
    code = pf_native_create_like(&out, &in, PF_U32, err);
  if (!code) {
    paint(pf_array_data(out), &runs, &in);
    code = pf_native_give(result, out, &in, err);
  }
  runs_finish(&runs);
  pf_native_drop(&in);
  return code;
}

const struct pf_step_type pf_native_label = {
    .name = "label",
    .help = "Number connected objects (uint32), a deep stack as a volume.\n"
            "Foreground is what is neither 0 nor NaN. Objects are numbered "
            "from 1 in the order of their first pixel, as "
            "scipy.ndimage.label does; those that `min_area` removes leave no "
            "gap.",
    .params = params,
    .params_size = sizeof(struct label_params),
    .result = PF_RESULT_LABELS,
    .yields = {.kind = PF_YIELDS_SAME},
    .any_depth = true,
    .dtype = PF_CAST_NATIVE,
    .memory_types = 1u << PF_MEM_NATIVE,
    .call = call,
};
