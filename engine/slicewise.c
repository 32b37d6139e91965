/* One call per plane: see engine/slicewise.h. */
#include "engine/slicewise.h"

#include <stdlib.h>
#include <string.h>

struct slicewise {
  const struct pf_plan *plan;
  const struct pf_plan_step *step;
  struct pf_step_instance *instance;
  const struct pf_call *call;
  const uint32_t *positions;
  size_t n;                  /* planes */
  struct pf_array **planes;  /* results, 2D */
  struct pf_result *results; /* of each call; tables are in here */
};

/* Plane z of an argument: of itself where it is as deep, else its only one. */
static int plane_of(struct pf_array **out, struct pf_array *array, size_t z,
                    size_t n, const char *name, struct pf_error *err) {
  int64_t depth = pf_array_shape(array)[0];
  if (depth != (int64_t)n && depth != 1)
    return pf_error_set(err, PF_EINVAL,
                        "\"%s\" has %lld planes for a stack of %zu: it must "
                        "have as many, or one",
                        name, (long long)depth, n);
  return pf_array_plane(out, array, depth == 1 ? 0 : (int64_t)z, err);
}

/* The channel of that plane. */
static const char *const *plane_channel(const struct pf_with_array *with,
                                        size_t z) {
  bool deep = pf_array_shape(with->array)[0] > 1;
  return with->channels && deep ? with->channels + z : with->channels;
}

/* C steps take 3D always: a plane is a stack of depth 1. */
static int as_argument(const struct slicewise *s, struct pf_array **plane,
                       struct pf_error *err) {
  const int64_t *shape = pf_array_shape(*plane);
  int64_t deep[3] = {1, shape[0], shape[1]};
  struct pf_array *view = NULL;
  int result;
  if (!s->step->traits->is_native)
    return PF_OK;
  result = pf_array_reshape(&view, *plane, 3, deep, err);
  if (result == PF_OK) {
    pf_array_unref(plane);
    *plane = view;
  }
  return result;
}

static int take_result(struct slicewise *s, size_t z, struct pf_error *err) {
  struct pf_array *stack = s->results[z].stack;
  struct pf_buf shape = {0};
  int result;
  if (!stack)
    return PF_OK;
  if (pf_array_ndim(stack) == 2) {
    s->planes[z] = stack;
    s->results[z].stack = NULL;
    return PF_OK;
  }
  if (pf_array_ndim(stack) == 3 && pf_array_shape(stack)[0] == 1)
    return pf_array_plane(&s->planes[z], stack, 0, err);
  for (int i = 0; i < pf_array_ndim(stack); i++)
    pf_buf_printf(&shape, "%s%lld", i ? ", " : "",
                  (long long)pf_array_shape(stack)[i]);
  result = pf_error_set(err, PF_ESTEP,
                        "the result for one slice has the shape (%s): with "
                        "\"slice_by_slice\" it must be 2D, [Y,X]",
                        pf_buf_text(&shape));
  pf_buf_free(&shape);
  return result;
}

static int call_plane(struct slicewise *s, size_t z, struct pf_error *err) {
  struct pf_call call = *s->call;
  struct pf_group_info info = *s->call->info;
  struct pf_with_array *with = calloc(call.n_with + 1, sizeof(*with));
  struct pf_array *plane = NULL;
  int result = with ? pf_array_plane(&plane, call.stack, (int64_t)z, err)
                    : pf_error_set(err, PF_ENOMEM, "out of memory");
  if (result == PF_OK)
    result = as_argument(s, &plane, err);
  for (size_t i = 0; i < call.n_with && result == PF_OK; i++) {
    with[i].name = call.with[i].name;
    with[i].channels = plane_channel(&call.with[i], z);
    result = plane_of(&with[i].array, call.with[i].array, z, s->n,
                      with[i].name, err);
    if (result == PF_OK)
      result = as_argument(s, &with[i].array, err);
  }
  call.stack = plane;
  call.with = with;
  call.info = &info;
  if (info.slices) {
    info.slices = &s->call->info->slices[z];
    info.n_slices = 1;
  }
  if (result == PF_OK)
    result = pf_step_call(s->instance, &call, &s->results[z], err);
  if (result == PF_OK)
    result = take_result(s, z, err);
  for (size_t i = 0; with && i < call.n_with; i++)
    pf_array_unref(&with[i].array);
  free(with);
  pf_array_unref(&plane);
  return result;
}

/* -- tables -------------------------------------------------------------- */

static int copy_cell(struct pf_table *to, size_t row, size_t column,
                     const struct pf_table *from, size_t r, size_t c,
                     struct pf_error *err) {
  const struct pf_cell *cell = &from->cells[r * from->n_columns + c];
  struct pf_cell *out = pf_table_cell(to, row, column);
  enum pf_column_type type = from->columns[c].type;
  if (cell->state == PF_CELL_EMPTY)
    return PF_OK;
  if (type == PF_COLUMN_TEXT)
    return pf_table_set_text(to, row, column, cell->as.t, err);
  out->state = PF_CELL_SET;
  if (to->columns[column].type == PF_COLUMN_REAL && type != PF_COLUMN_REAL)
    out->as.r = (double)cell->as.i;
  else
    out->as = cell->as;
  return PF_OK;
}

static size_t find_column(const struct pf_table *table, const char *name) {
  size_t c = 0;
  while (c < table->n_columns && strcmp(table->columns[c].name, name) != 0)
    c++;
  return c;
}

/* Columns for the components that vary inside the stack. */
static int add_component_columns(const struct slicewise *s,
                                 struct pf_table *to, struct pf_error *err) {
  for (size_t k = 0; k < s->plan->n_order; k++) {
    enum pf_component c = s->plan->order_of[k];
    int result;
    if (!(s->step->mask & PF_BIT(c)))
      continue;
    result =
        pf_table_add_column(to, pf_component_name(c), PF_COLUMN_TEXT, err);
    if (result != PF_OK)
      return result;
  }
  return PF_OK;
}

/* The columns of all planes' tables behind those of the components, widening
 * integer to real. */
static int add_columns(const struct slicewise *s, size_t t,
                       struct pf_table *to, struct pf_error *err) {
  size_t n_components = to->n_columns;
  for (size_t z = 0; z < s->n; z++) {
    const struct pf_table *from = s->results[z].tables[t];
    for (size_t c = 0; c < from->n_columns; c++) {
      size_t have = find_column(to, from->columns[c].name);
      int result = PF_OK;
      if (have < n_components)
        result = pf_error_set(err, PF_ESTEP,
                              "the table has a column \"%s\", which says "
                              "already which slice a row is of: call it "
                              "something else",
                              from->columns[c].name);
      else if (have == to->n_columns)
        result = pf_table_add_column(to, from->columns[c].name,
                                     from->columns[c].type, err);
      else if (to->columns[have].type == PF_COLUMN_INT &&
               from->columns[c].type == PF_COLUMN_REAL)
        to->columns[have].type = PF_COLUMN_REAL;
      else if (to->columns[have].type != from->columns[c].type &&
               !(to->columns[have].type == PF_COLUMN_REAL &&
                 from->columns[c].type == PF_COLUMN_INT) &&
               from->n_rows)
        result = pf_error_set(err, PF_ESTEP,
                              "column \"%s\" has another type in each slice",
                              from->columns[c].name);
      if (result != PF_OK)
        return result;
    }
  }
  return PF_OK;
}

static int add_rows(const struct slicewise *s, size_t t, size_t z,
                    struct pf_table *to, struct pf_error *err) {
  const struct pf_table *from = s->results[z].tables[t];
  const struct pf_slice *slice = pf_plan_slice(s->plan, s->positions[z]);
  size_t first = to->n_rows, column = 0;
  int result = pf_table_add_rows(to, from->n_rows, err);
  for (size_t k = 0; k < s->plan->n_order && result == PF_OK; k++) {
    enum pf_component c = s->plan->order_of[k];
    if (!(s->step->mask & PF_BIT(c)))
      continue;
    for (size_t r = 0; r < from->n_rows && result == PF_OK; r++)
      if (slice->value[c] != PF_NO_VALUE)
        result = pf_table_set_text(
            to, first + r, column,
            pf_plate_value(s->plan->plate, c, slice->value[c]), err);
    column++;
  }
  for (size_t r = 0; r < from->n_rows && result == PF_OK; r++)
    for (size_t c = 0; c < from->n_columns && result == PF_OK; c++)
      result = copy_cell(to, first + r, find_column(to, from->columns[c].name),
                         from, r, c, err);
  return result;
}

static int join_table(const struct slicewise *s, size_t t,
                      struct pf_table **out, struct pf_error *err) {
  int result = pf_table_create(out, err);
  if (result == PF_OK)
    result = add_component_columns(s, *out, err);
  if (result == PF_OK)
    result = add_columns(s, t, *out, err);
  for (size_t z = 0; z < s->n && result == PF_OK; z++)
    result = add_rows(s, t, z, *out, err);
  return result;
}

static int join_tables(const struct slicewise *s, struct pf_result *result,
                       struct pf_error *err) {
  size_t n = s->results[0].n_tables;
  int code = PF_OK;
  for (size_t z = 1; z < s->n; z++)
    if (s->results[z].n_tables != n)
      return pf_error_set(err, PF_ESTEP,
                          "slices returned different numbers of tables");
  if (!n)
    return PF_OK;
  result->tables = calloc(n, sizeof(struct pf_table *));
  if (!result->tables)
    return pf_error_set(err, PF_ENOMEM, "out of memory");
  result->n_tables = n;
  for (size_t t = 0; t < n && code == PF_OK; t++)
    code = join_table(s, t, &result->tables[t], err);
  return code;
}

/* ------------------------------------------------------------------------ */

static int join_planes(const struct slicewise *s, struct pf_result *result,
                       struct pf_error *err) {
  size_t n = 0;
  for (size_t z = 0; z < s->n; z++) {
    n += s->planes[z] != NULL;
    if (s->results[z].copied) {
      result->copied = true;
      result->copied_why = s->results[z].copied_why;
    }
  }
  if (n == 0)
    return PF_OK;
  if (n < s->n)
    return pf_error_set(err, PF_ESTEP,
                        "some slices returned an image and some none");
  return pf_stack_slices(&result->stack, s->planes, n, PF_DTYPE_NONE, err);
}

int pf_call_slicewise(const struct pf_plan *plan,
                      const struct pf_plan_step *step,
                      struct pf_step_instance *instance,
                      const struct pf_call *call, const uint32_t *positions,
                      struct pf_result *result, struct pf_error *err) {
  struct slicewise s = {.plan = plan,
                        .step = step,
                        .instance = instance,
                        .call = call,
                        .positions = positions};
  int code = PF_OK;
  s.n = (size_t)pf_array_shape(call->stack)[0];
  s.planes = calloc(s.n, sizeof(struct pf_array *));
  s.results = calloc(s.n, sizeof(*s.results));
  if (!s.planes || !s.results)
    code = pf_error_set(err, PF_ENOMEM, "out of memory");
  for (size_t z = 0; z < s.n && code == PF_OK; z++)
    code = call_plane(&s, z, err);
  if (code == PF_OK)
    code = join_planes(&s, result, err);
  if (code == PF_OK)
    code = join_tables(&s, result, err);
  for (size_t z = 0; z < s.n; z++) {
    if (s.planes)
      pf_array_unref(&s.planes[z]);
    if (s.results)
      pf_result_clear(&s.results[z]);
  }
  free(s.planes);
  free(s.results);
  return code;
}
