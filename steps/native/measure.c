/*
 * native:measure: one table row per object of a label stack.
 *
 * Columns are called and defined as in skimage.measure.regionprops_table; what
 * is measured on a channel is called FEATURE_CHANNEL. The labels are walked in
 * runs of one label, so that the bookkeeping is paid per run, not per pixel.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bridge/buf.h"
#include "steps/native/native.h"
#include "steps/table.h"

/* What is known of one object from its pixels' places. */
struct object {
  int64_t label;
  uint64_t area;
  double sum[3]; /* of z, y, x: integers, exact below 2^53 */
};

struct objects {
  size_t n, cap;
  struct object *object; /* by label, ascending, once sorted */
  /* Where an object is: by label, as long as labels are small. */
  uint32_t *index; /* index + 1; 0: no such object yet */
  size_t n_index;
};

static void objects_finish(struct objects *objects) {
  free(objects->object);
  free(objects->index);
}

static int no_memory(struct pf_error *err) {
  return pf_error_set(err, PF_ENOMEM, "no memory to measure objects");
}

/* -- the labels --------------------------------------------------------- */

struct run {
  int64_t label;
  size_t row; /* z * height + y */
  size_t first, end;
};

/* Visits the runs of one label (0 left out) row by row; a visitor that returns
 * an error ends the walk. */
typedef int visit_run(void *context, const struct run *run,
                      struct pf_error *err);

#define LOAD_LABELS(suffix, type)                                             \
  static void labels_##suffix(int64_t *restrict out, const void *in,          \
                              size_t n) {                                     \
    const type *restrict from = in;                                           \
    for (size_t i = 0; i < n; i++)                                            \
      out[i] = (int64_t)from[i];                                              \
  }
LOAD_LABELS(u8, uint8_t)
LOAD_LABELS(i8, int8_t)
LOAD_LABELS(u16, uint16_t)
LOAD_LABELS(i16, int16_t)
LOAD_LABELS(u32, uint32_t)
LOAD_LABELS(i32, int32_t)
LOAD_LABELS(u64, uint64_t) /* those beyond 2^63 come out negative */
LOAD_LABELS(i64, int64_t)

static void (*const label_loaders[PF_N_DTYPES])(int64_t *, const void *,
                                                size_t) = {
    [PF_U8] = labels_u8,   [PF_I8] = labels_i8,   [PF_U16] = labels_u16,
    [PF_I16] = labels_i16, [PF_U32] = labels_u32, [PF_I32] = labels_i32,
    [PF_U64] = labels_u64, [PF_I64] = labels_i64};

static int visit_row(const int64_t *label, size_t row, size_t width,
                     visit_run *visit, void *context, struct pf_error *err) {
  int code = PF_OK;
  for (size_t x = 0; !code && x < width;) {
    struct run run = {label[x], row, x, x + 1};
    while (run.end < width && label[run.end] == run.label)
      run.end++;
    x = run.end;
    if (run.label)
      code = visit(context, &run, err);
  }
  return code;
}

static int for_runs(const struct pf_native_stack *in, visit_run *visit,
                    void *context, struct pf_error *err) {
  const size_t row_bytes = in->width * pf_dtype_size(in->dtype);
  int64_t *label = malloc(in->width * sizeof(*label));
  int code = label ? PF_OK : no_memory(err);
  for (size_t r = 0; !code && r < in->depth * in->height; r++) {
    label_loaders[in->dtype](
        label, (char *)pf_array_data(in->array) + r * row_bytes, in->width);
    code = visit_row(label, r, in->width, visit, context, err);
  }
  free(label);
  return code;
}

/* -- finding the objects ------------------------------------------------ */

/* Labels up to here are looked up in a table, larger ones by search: ids that
 * are far apart need no memory for what is between. */
static size_t index_limit(const struct pf_native_stack *in) {
  const size_t pixels = in->plane * in->depth;
  return pixels < (1u << 20) ? 1u << 20 : pixels;
}

struct finding {
  struct objects *objects;
  size_t height, limit;
  int64_t max;
};

static int find_max(void *context, const struct run *run,
                    struct pf_error *err) {
  struct finding *f = context;
  if (run->label < 0)
    return pf_error_set(err, PF_ESTEP,
                        "a label is negative or beyond 2^63: labels are "
                        "numbers from 1, 0 is background");
  f->max = run->label > f->max ? run->label : f->max;
  return PF_OK;
}

static int add_object(struct objects *objects, int64_t label,
                      struct pf_error *err) {
  if (objects->n == objects->cap) {
    const size_t cap = objects->cap ? objects->cap * 2 : 256;
    struct object *grown = realloc(objects->object, cap * sizeof(*grown));
    if (!grown)
      return no_memory(err);
    objects->object = grown;
    objects->cap = cap;
  }
  objects->object[objects->n++] = (struct object){.label = label};
  return PF_OK;
}

static int collect_label(void *context, const struct run *run,
                         struct pf_error *err) {
  struct objects *objects = ((struct finding *)context)->objects;
  const size_t at = (size_t)run->label;
  if (objects->index) {
    if (objects->index[at])
      return PF_OK;
    objects->index[at] = 1;
  } else if (objects->n &&
             objects->object[objects->n - 1].label == run->label) {
    return PF_OK;
  }
  return add_object(objects, run->label, err);
}

static int compare_objects(const void *a, const void *b) {
  const struct object *x = a, *y = b;
  return (x->label > y->label) - (x->label < y->label);
}

/* In order of their labels, each once. */
static void sort_objects(struct objects *objects) {
  size_t n = 0;
  if (objects->n)
    qsort(objects->object, objects->n, sizeof(*objects->object),
          compare_objects);
  for (size_t i = 0; i < objects->n; i++)
    if (n == 0 || objects->object[n - 1].label != objects->object[i].label)
      objects->object[n++] = objects->object[i];
  objects->n = n;
  for (size_t i = 0; objects->index && i < n; i++)
    objects->index[objects->object[i].label] = (uint32_t)(i + 1);
}

static size_t index_of(const struct objects *objects, int64_t label) {
  const struct object key = {.label = label};
  const struct object *found;
  if (objects->index)
    return objects->index[label] - 1;
  found =
      bsearch(&key, objects->object, objects->n, sizeof(key), compare_objects);
  return (size_t)(found - objects->object);
}

static int place_run(void *context, const struct run *run,
                     struct pf_error *err) {
  const struct finding *f = context;
  struct object *object =
      &f->objects->object[index_of(f->objects, run->label)];
  const size_t n = run->end - run->first;
  const size_t z = run->row / f->height, y = run->row % f->height;
  (void)err;
  object->area += n;
  object->sum[0] += (double)(z * n);
  object->sum[1] += (double)(y * n);
  object->sum[2] += (double)((run->first + run->end - 1) * n) / 2;
  return PF_OK;
}

static int find_objects(struct objects *objects,
                        const struct pf_native_stack *in,
                        struct pf_error *err) {
  struct finding f = {objects, in->height, index_limit(in), 0};
  int code = for_runs(in, find_max, &f, err);
  if (code)
    return code;
  if ((size_t)f.max <= f.limit) {
    objects->index = calloc((size_t)f.max + 1, sizeof(*objects->index));
    if (!objects->index)
      return no_memory(err);
  }
  code = for_runs(in, collect_label, &f, err);
  if (code)
    return code;
  sort_objects(objects);
  return for_runs(in, place_run, &f, err);
}

/* -- intensities -------------------------------------------------------- */

enum feature { MEAN, MAX, MIN, STD, N_FEATURES };

static const char *const feature_names[] = {"intensity_mean", "intensity_max",
                                            "intensity_min", "intensity_std"};

/* One measured channel: N_FEATURES values per object. While it is measured,
 * MEAN and STD hold sums. */
struct measuring {
  const struct objects *objects;
  size_t height, width; /* of the labels */
  const char *pixels;   /* of the intensity */
  enum pf_dtype dtype;
  double *row; /* one row as doubles */
  size_t loaded;
  double (*value)[N_FEATURES];
};

/* The intensities of a run's row; a row is loaded once. */
static const double *load_row(struct measuring *m, size_t row) {
  const size_t row_bytes = m->width * pf_dtype_size(m->dtype);
  if (m->loaded != row)
    pf_native_load(m->row, m->pixels + row * row_bytes, m->dtype, m->width);
  m->loaded = row;
  return m->row;
}

/* A NaN wins over all and stays, as in NumPy. */
static int add_run(void *context, const struct run *run,
                   struct pf_error *err) {
  struct measuring *m = context;
  double *value = m->value[index_of(m->objects, run->label)];
  const double *v = load_row(m, run->row);
  double sum = 0, max = value[MAX], min = value[MIN];
  (void)err;
  for (size_t x = run->first; x < run->end; x++) {
    sum += v[x];
    max = v[x] > max || isnan(v[x]) ? v[x] : max;
    min = v[x] < min || isnan(v[x]) ? v[x] : min;
  }
  value[MEAN] += sum;
  value[MAX] = max;
  value[MIN] = min;
  return PF_OK;
}

static int add_spread(void *context, const struct run *run,
                      struct pf_error *err) {
  struct measuring *m = context;
  double *value = m->value[index_of(m->objects, run->label)];
  const double *v = load_row(m, run->row);
  double sum = 0;
  (void)err;
  for (size_t x = run->first; x < run->end; x++)
    sum += (v[x] - value[MEAN]) * (v[x] - value[MEAN]);
  value[STD] += sum;
  return PF_OK;
}

/* Two passes: the spread around the mean, not a difference of large sums. */
static int measure_channel(struct measuring *m,
                           const struct pf_native_stack *labels,
                           struct pf_error *err) {
  const struct objects *objects = m->objects;
  int code;
  for (size_t i = 0; i < objects->n; i++) {
    m->value[i][MEAN] = m->value[i][STD] = 0;
    m->value[i][MAX] = -INFINITY;
    m->value[i][MIN] = INFINITY;
  }
  m->loaded = SIZE_MAX;
  code = for_runs(labels, add_run, m, err);
  for (size_t i = 0; i < objects->n; i++)
    m->value[i][MEAN] /= (double)objects->object[i].area;
  m->loaded = SIZE_MAX;
  if (!code)
    code = for_runs(labels, add_spread, m, err);
  for (size_t i = 0; i < objects->n; i++)
    m->value[i][STD] =
        sqrt(m->value[i][STD] / (double)objects->object[i].area);
  return code;
}

/* -- the table ---------------------------------------------------------- */

static int add_place_columns(struct pf_table *table, size_t depth,
                             struct pf_error *err) {
  static const char *const names[] = {"centroid-0", "centroid-1",
                                      "centroid-2"};
  const int n_axes = depth > 1 ? 3 : 2;
  int code = pf_table_add_column(table, "label", PF_COLUMN_INT, err);
  if (!code)
    code = pf_table_add_column(table, "area", PF_COLUMN_INT, err);
  for (int i = 0; !code && i < n_axes; i++)
    code = pf_table_add_column(table, names[i], PF_COLUMN_REAL, err);
  return code;
}

/* "intensity_mean_DNA"; no channel is known: "intensity_mean". */
static int add_feature_columns(struct pf_table *table, const char *channel,
                               struct pf_error *err) {
  int code = PF_OK;
  for (int i = 0; !code && i < N_FEATURES; i++) {
    struct pf_buf name = {0};
    pf_buf_str(&name, feature_names[i]);
    if (channel)
      pf_buf_printf(&name, "_%s", channel);
    code = pf_buf_ok(&name) ? pf_table_add_column(table, pf_buf_text(&name),
                                                  PF_COLUMN_REAL, err)
                            : no_memory(err);
    pf_buf_free(&name);
  }
  if (code == PF_EINVAL && channel)
    pf_error_prefix(err,
                    "two planes of \"intensity\" are channel %s, project "
                    "them first",
                    channel);
  return code;
}

static void set_real(struct pf_table *table, size_t row, size_t column,
                     double value) {
  struct pf_cell *cell = pf_table_cell(table, row, column);
  cell->state = PF_CELL_SET;
  cell->as.r = value;
}

static void set_int(struct pf_table *table, size_t row, size_t column,
                    int64_t value) {
  struct pf_cell *cell = pf_table_cell(table, row, column);
  cell->state = PF_CELL_SET;
  cell->as.i = value;
}

static size_t fill_places(struct pf_table *table,
                          const struct objects *objects, size_t depth) {
  const size_t first_axis = depth > 1 ? 0 : 1;
  size_t column = 2;
  for (size_t axis = first_axis; axis < 3; axis++, column++)
    for (size_t i = 0; i < objects->n; i++)
      set_real(table, i, column,
               objects->object[i].sum[axis] / (double)objects->object[i].area);
  for (size_t i = 0; i < objects->n; i++) {
    set_int(table, i, 0, objects->object[i].label);
    set_int(table, i, 1, (int64_t)objects->object[i].area);
  }
  return column;
}

/* -- the step ----------------------------------------------------------- */

/* What a call measures on: nothing, one volume as deep as the labels, or the
 * planes of a stack, one channel each, on labels of one plane. */
struct subject {
  struct pf_native_stack labels, intensity;
  const struct pf_with_array *with; /* NULL: no intensity */
  size_t n_channels, channel_depth;
};

/* The channel that goes into a column's name, or NULL: nobody knows it. */
static const char *channel_name(const struct subject *s, size_t i) {
  return s->with->channels ? s->with->channels[i] : NULL;
}

static int check_shapes(struct subject *s, struct pf_error *err) {
  const struct pf_native_stack *a = &s->labels, *b = &s->intensity;
  s->channel_depth = a->depth;
  s->n_channels = a->depth == 1 ? b->depth : 1;
  if (a->height == b->height && a->width == b->width &&
      b->depth == s->n_channels * s->channel_depth)
    return PF_OK;
  return pf_error_set(err, PF_ESTEP,
                      "the labels are [%zu, %zu, %zu] and \"intensity\" is "
                      "[%zu, %zu, %zu]: Y and X must agree, and Z where the "
                      "labels are a volume",
                      a->depth, a->height, a->width, b->depth, b->height,
                      b->width);
}

static int take_subject(struct subject *s, const struct pf_call *call,
                        struct pf_error *err) {
  int code;
  memset(s, 0, sizeof(*s));
  code = pf_native_take(&s->labels, call->stack, false, "label stack", err);
  if (!code && !label_loaders[s->labels.dtype])
    code = pf_error_set(err, PF_ESTEP,
                        "expected a stack of integer labels, got %s",
                        pf_dtype_name(s->labels.dtype));
  for (size_t i = 0; i < call->n_with; i++)
    if (strcmp(call->with[i].name, "intensity") == 0)
      s->with = &call->with[i];
  if (!code && s->with)
    code = pf_native_take(&s->intensity, s->with->array, false,
                          "stack \"intensity\"", err);
  if (!code && s->with)
    code = check_shapes(s, err);
  return code;
}

static void drop_subject(struct subject *s) {
  pf_native_drop(&s->labels);
  pf_native_drop(&s->intensity);
}

/* Channels without a name are numbered, as scikit-image numbers them. */
static int add_columns(struct pf_table *table, const struct subject *s,
                       struct pf_error *err) {
  int code = add_place_columns(table, s->labels.depth, err);
  for (size_t i = 0; !code && i < s->n_channels; i++) {
    char number[24];
    const char *name = channel_name(s, i);
    if (!name && s->n_channels > 1) {
      (void)snprintf(number, sizeof(number), "%zu", i);
      name = number;
    }
    code = add_feature_columns(table, name, err);
  }
  return code;
}

static int fill_intensities(struct pf_table *table, size_t column,
                            const struct objects *objects,
                            const struct subject *s, struct pf_error *err) {
  struct measuring m = {.objects = objects,
                        .height = s->labels.height,
                        .width = s->labels.width,
                        .dtype = s->intensity.dtype};
  int code = PF_OK;
  m.row = malloc(m.width * sizeof(*m.row));
  m.value = malloc((objects->n + 1) * sizeof(*m.value));
  if (!m.row || !m.value)
    code = no_memory(err);
  for (size_t c = 0; !code && c < s->n_channels; c++) {
    m.pixels = pf_native_plane(&s->intensity, c * s->channel_depth);
    code = measure_channel(&m, &s->labels, err);
    for (size_t i = 0; i < objects->n; i++)
      for (size_t f = 0; f < N_FEATURES; f++)
        set_real(table, i, column + f, m.value[i][f]);
    column += N_FEATURES;
  }
  free(m.row);
  free(m.value);
  return code;
}

static int measure(struct pf_table *table, const struct subject *s,
                   struct pf_error *err) {
  struct objects objects = {0};
  size_t column;
  int code = add_columns(table, s, err);
  if (!code)
    code = find_objects(&objects, &s->labels, err);
  if (!code)
    code = pf_table_add_rows(table, objects.n, err);
  if (!code) {
    column = fill_places(table, &objects, s->labels.depth);
    if (s->with)
      code = fill_intensities(table, column, &objects, s, err);
  }
  objects_finish(&objects);
  return code;
}

static int call(void *instance, const void *given, const struct pf_call *call,
                struct pf_result *result, struct pf_error *err) {
  struct subject subject;
  int code = take_subject(&subject, call, err);
  (void)instance;
  (void)given;
  if (code)
    goto out;
  result->tables = calloc(1, sizeof(struct pf_table *));
  code = result->tables ? PF_OK : no_memory(err);
  if (!code)
    code = pf_table_create(&result->tables[0], err);
  if (code)
    goto out;
  result->n_tables = 1;
  code = measure(result->tables[0], &subject, err);
out:
  drop_subject(&subject);
  return code;
}

const struct pf_step_type pf_native_measure = {
    .name = "measure",
    .help =
        "Measure the objects of a label stack into a table.\n"
        "Columns label, area, centroid-0 .. (y and x; z, y and x of a "
        "volume), and with an array \"intensity\" its mean, max, min and std "
        "(of the population) per object, called intensity_mean_CHANNEL and so "
        "on, without _CHANNEL where the plate has none; "
        "named and defined as in skimage.measure.regionprops_table. "
        "Labels of one plane are measured on every plane of a deeper "
        "\"intensity\". NaN makes an object's intensities NaN.",
    .result = PF_RESULT_NONE,
    .yields = {.kind = PF_YIELDS_SAME},
    .any_depth = true,
    .may_intensity = true,
    .dtype = PF_CAST_NATIVE,
    .n_tables = 1,
    .memory_types = 1u << PF_MEM_NATIVE,
    .call = call,
};
