/* Reading a group's planes into one stack. */
#include "engine/runner.h"

#include <stdlib.h>
#include <string.h>

#include "bridge/os.h"

/* Whether the step takes planes of the plate for this group. */
static bool reads_plate(const struct pf_worker *worker, size_t s) {
  const struct pf_plan_step *step = &worker->runner->plan->steps[s];
  if (worker->flow[s] == PF_FLOW_NONE)
    return false;
  if (step->input < 0)
    return true;
  for (size_t k = 0; k < step->n_with; k++)
    if (step->with[k].from < 0)
      return true;
  return false;
}

/* The planes that any step takes: a single reader's choice, else all. */
static size_t choose_planes(struct pf_worker *worker,
                            const struct pf_group *group, size_t *reader) {
  const struct pf_plan *plan = worker->runner->plan;
  struct pf_value *value = &worker->values[0];
  size_t n_readers = 0;
  for (uint32_t i = 0; i < group->n; i++)
    value->positions[i] = group->first + i;
  value->n = group->n;
  value->n_consumers = 0;
  for (size_t s = 0; s < plan->n_steps; s++) {
    if (!reads_plate(worker, s))
      continue;
    n_readers++;
    *reader = s;
    value->n_consumers += plan->steps[s].input < 0;
    for (size_t k = 0; k < plan->steps[s].n_with; k++)
      value->n_consumers += plan->steps[s].with[k].from < 0;
  }
  if (n_readers == 1 && value->n_consumers == 1 &&
      worker->flow[*reader] == PF_FLOW_RUNS &&
      !pf_plan_keeps_rest(&plan->steps[*reader]))
    value->n = pf_plan_choose(plan, &plan->steps[*reader], value->positions,
                              value->n, value->positions);
  return n_readers;
}

static int check_page(struct pf_tiff *tiff, const struct pf_slice *slice,
                      const struct pf_format *format, const char *path,
                      struct pf_error *err) {
  uint32_t width = 0, height = 0;
  enum pf_dtype dtype = PF_DTYPE_NONE;
  char *people;
  int result = pf_tiff_page(tiff, slice->page, &width, &height, &dtype, err);
  if (result != PF_OK)
    return result;
  if (width == format->width && height == format->height &&
      dtype == format->dtype)
    return PF_OK;
  people = pf_name_for_people(path);
  result = pf_error_set(
      err, PF_EREAD,
      "%s (page %u) is %ux%u %s, but the files of its channel are %ux%u %s",
      people ? people : "a file", slice->page + 1, width, height,
      pf_dtype_name(dtype), format->width, format->height,
      pf_dtype_name(format->dtype));
  free(people);
  return result;
}

/* A file that stays open while the next plane is in it too. */
struct open_file {
  struct pf_tiff *tiff;
  uint32_t file;
  char *path;
};

static void close_file(struct open_file *file) {
  pf_tiff_close(&file->tiff);
  free(file->path);
  *file = (struct open_file){0};
}

static int open_file(struct open_file *file, const struct pf_plate *plate,
                     const struct pf_slice *slice, struct pf_error *err) {
  int result;
  if (file->tiff && file->file == slice->file)
    return PF_OK;
  close_file(file);
  file->path = pf_plate_path(plate, slice);
  if (!file->path)
    return pf_error_set(err, PF_ENOMEM, "out of memory");
  result = pf_tiff_open(&file->tiff, file->path, err);
  file->file = slice->file;
  return result;
}

/* Pages behind the last one that the plate knows of are missed here. */
static int check_last(const struct pf_plate *plate, struct pf_tiff *tiff,
                      const struct pf_slice *slice, struct pf_error *err) {
  uint32_t n = pf_plate_n_slices_in_file(plate, slice->file);
  return slice->page + 1 == n ? pf_tiff_check_end(tiff, n, err) : PF_OK;
}

static int read_plane(struct pf_worker *worker, struct open_file *file,
                      const struct pf_slice *slice, struct pf_array *plane,
                      struct pf_tiff_tags *tags, struct pf_error *err) {
  struct pf_runner *runner = worker->runner;
  const struct pf_plate *plate = runner->plan->plate;
  size_t n_bytes = pf_array_n_bytes(plane);
  int result = open_file(file, plate, slice, err);
  if (result == PF_OK)
    result =
        check_page(file->tiff, slice, pf_plate_format(plate, slice->format),
                   file->path, err);
  if (result == PF_OK)
    result = check_last(plate, file->tiff, slice, err);
  if (result == PF_OK)
    result =
        pf_tiff_read_pixels(file->tiff, pf_array_data(plane), n_bytes, err);
  if (result == PF_OK)
    result = pf_tiff_read_tags(file->tiff, tags, err);
  if (result == PF_OK) {
    atomic_fetch_add(&runner->n_images_read, 1);
    atomic_fetch_add(&runner->n_bytes_read, n_bytes);
  }
  return result;
}

/* All planes of a stack are of one size and type. */
static int check_uniform(const struct pf_plan *plan,
                         const struct pf_value *value, struct pf_error *err) {
  const struct pf_slice *first = pf_plan_slice(plan, value->positions[0]);
  const struct pf_format *a = pf_plate_format(plan->plate, first->format);
  for (size_t i = 1; i < value->n; i++) {
    const struct pf_slice *slice = pf_plan_slice(plan, value->positions[i]);
    const struct pf_format *b = pf_plate_format(plan->plate, slice->format);
    char *path, *people;
    if (a->width == b->width && a->height == b->height && a->dtype == b->dtype)
      continue;
    path = pf_plate_relative_path(plan->plate, slice);
    people = path ? pf_name_for_people(path) : NULL;
    (void)pf_error_set(err, PF_EREAD,
                       "%s is %ux%u %s and cannot be stacked with slices of "
                       "%ux%u %s",
                       people ? people : "a slice", b->width, b->height,
                       pf_dtype_name(b->dtype), a->width, a->height,
                       pf_dtype_name(a->dtype));
    free(path);
    free(people);
    return PF_EREAD;
  }
  return PF_OK;
}

static int read_planes(struct pf_worker *worker, struct pf_array *stack,
                       struct pf_error *err) {
  const struct pf_plan *plan = worker->runner->plan;
  struct pf_value *value = &worker->values[0];
  struct open_file file = {0};
  int result = PF_OK;
  for (size_t i = 0; i < value->n && result == PF_OK; i++) {
    struct pf_array *plane = NULL;
    result = pf_array_plane(&plane, stack, (int64_t)i, err);
    if (result == PF_OK)
      result =
          read_plane(worker, &file, pf_plan_slice(plan, value->positions[i]),
                     plane, &value->tags[i], err);
    pf_array_unref(&plane);
  }
  close_file(&file);
  return result;
}

/* Planes of their own, so that the cast happens while they are stacked. */
static int read_and_cast(struct pf_worker *worker, enum pf_dtype as,
                         const struct pf_format *format,
                         struct pf_error *err) {
  const struct pf_plan *plan = worker->runner->plan;
  struct pf_value *value = &worker->values[0];
  const int64_t shape[2] = {format->height, format->width};
  struct pf_array **planes = calloc(value->n, sizeof(struct pf_array *));
  struct open_file file = {0};
  int result = planes ? PF_OK : pf_error_set(err, PF_ENOMEM, "out of memory");
  for (size_t i = 0; i < value->n && result == PF_OK; i++) {
    result = pf_array_create(&planes[i], format->dtype, 2, shape, err);
    if (result == PF_OK)
      result =
          read_plane(worker, &file, pf_plan_slice(plan, value->positions[i]),
                     planes[i], &value->tags[i], err);
  }
  close_file(&file);
  if (result == PF_OK)
    result = pf_stack_slices(&value->stack, planes, value->n, as, err);
  for (size_t i = 0; planes && i < value->n; i++)
    pf_array_unref(&planes[i]);
  free(planes);
  return result;
}

static int read_value(struct pf_worker *worker, enum pf_dtype as,
                      struct pf_error *err) {
  const struct pf_plan *plan = worker->runner->plan;
  struct pf_value *value = &worker->values[0];
  const struct pf_slice *slice = pf_plan_slice(plan, value->positions[0]);
  const struct pf_format *format = pf_plate_format(plan->plate, slice->format);
  const int64_t shape[3] = {(int64_t)value->n, format->height, format->width};
  int result = check_uniform(plan, value, err);
  if (result != PF_OK)
    return result;
  value->dtype = format->dtype;
  if (as != PF_DTYPE_NONE && as != format->dtype)
    return read_and_cast(worker, as, format, err);
  result = pf_array_create(&value->stack, format->dtype, 3, shape, err);
  if (result == PF_OK)
    result = read_planes(worker, value->stack, err);
  return result;
}

int pf_run_read(struct pf_worker *worker, const struct pf_group *group,
                struct pf_error *err) {
  const struct pf_plan *plan = worker->runner->plan;
  double start = pf_os_seconds();
  enum pf_dtype as = PF_DTYPE_NONE;
  size_t reader = 0;
  int result;
  if (!choose_planes(worker, group, &reader))
    return PF_OK;
  if (worker->values[0].n_consumers == 1 &&
      worker->flow[reader] == PF_FLOW_RUNS &&
      !pf_plan_keeps_rest(&plan->steps[reader]))
    as = plan->steps[reader].spec->input_dtype;
  result = read_value(worker, as, err);
  if (result != PF_OK && result != PF_ENOMEM)
    pf_array_unref(&worker->values[0].stack);
  atomic_fetch_add(&worker->runner->ns_read,
                   (uint64_t)((pf_os_seconds() - start) * 1e9));
  return result;
}
