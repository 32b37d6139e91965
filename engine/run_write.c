/* Saving the result of a step: one file per plane. */
#include "engine/runner.h"

#include <stdlib.h>
#include <string.h>

#include "bridge/os.h"
#include "engine/temporaries.h"

/* Tags of the plane's slice, as they were read; NULL: not read. */
static const struct pf_tiff_tags *find_tags(const struct pf_worker *worker,
                                            uint32_t position) {
  const struct pf_value *plate = &worker->values[0];
  for (size_t i = 0; i < plate->n; i++)
    if (plate->positions[i] == position)
      return &plate->tags[i];
  return NULL;
}

/* As the input unless told; labels and what was LZW become deflate, which is
 * smaller and read everywhere. */
static void choose_compression(const struct pf_runner *runner, size_t s,
                               const struct pf_tiff_tags *tags,
                               struct pf_tiff_write *how) {
  enum pf_compression c = tags ? tags->compression : PF_COMPRESSION_NONE;
  if (runner->options->compression >= 0)
    c = (enum pf_compression)runner->options->compression;
  else if (runner->plan->steps[s].result == PF_RESULT_LABELS ||
           c == PF_COMPRESSION_LZW)
    c = PF_COMPRESSION_DEFLATE;
  how->compression = c;
  how->predictor = c == PF_COMPRESSION_DEFLATE || c == PF_COMPRESSION_LZW ||
                   c == PF_COMPRESSION_ZSTD;
}

static int write_file(struct pf_worker *worker, size_t s, const char *path,
                      uint32_t position, struct pf_array *plane,
                      struct pf_error *err) {
  struct pf_runner *runner = worker->runner;
  struct pf_tiff_write how = {.path = path,
                              .tags = find_tags(worker, position)};
  uint64_t n_bytes = 0;
  int result;
  choose_compression(runner, s, how.tags, &how);
  result = pf_temporaries_begin(worker->slot, path, err);
  if (result == PF_OK)
    result = pf_tiff_write(&how, plane, &n_bytes, err);
  pf_temporaries_end(worker->slot);
  if (result == PF_OK) {
    atomic_fetch_add(&runner->n_images_written, 1);
    atomic_fetch_add(&runner->n_bytes_written, n_bytes);
  }
  return result;
}

/* The folder of the last file mostly is the folder of this one too: only a
 * write that fails for want of it makes it. */
static int write_with_folder(struct pf_worker *worker, size_t s,
                             const char *path, uint32_t position,
                             struct pf_array *plane, struct pf_error *err) {
  struct pf_error first = PF_ERROR_INIT;
  char *folder = NULL;
  int result = write_file(worker, s, path, position, plane, &first);
  if (result != PF_EWRITE)
    goto out;
  folder = pf_os_dirname(path);
  if (!folder || pf_os_is_dir(folder))
    goto out;
  pf_error_clear(&first);
  result = pf_os_make_dirs(folder, &first);
  if (result == PF_OK)
    result = write_file(worker, s, path, position, plane, &first);
out:
  free(folder);
  pf_error_move(err, &first);
  return result;
}

static int write_plane(struct pf_worker *worker, size_t s, size_t i,
                       struct pf_record *record, struct pf_error *err) {
  struct pf_runner *runner = worker->runner;
  const struct pf_value *value = &worker->values[s + 1];
  uint32_t position = value->positions[i];
  struct pf_array *plane = NULL;
  char *path = NULL;
  char *name = pf_plan_output_name(runner->plan, &runner->plan->steps[s],
                                   pf_plan_slice(runner->plan, position));
  int result;
  if (name)
    path = pf_os_join(runner->out_dir, name);
  if (!path) {
    free(name);
    return pf_error_set(err, PF_ENOMEM, "out of memory");
  }
  result = pf_array_plane(&plane, value->stack, (int64_t)i, err);
  if (result == PF_OK)
    result = write_with_folder(worker, s, path, position, plane, err);
  pf_array_unref(&plane);
  free(path);
  if (result == PF_OK)
    return pf_record_add_output(record, (uint32_t)s, (uint32_t)i, position,
                                name, err);
  free(name);
  return result;
}

int pf_run_write(struct pf_worker *worker, size_t s, struct pf_record *record,
                 struct pf_error *err) {
  double start = pf_os_seconds();
  size_t n = worker->values[s + 1].n;
  int result = PF_OK;
  for (size_t i = 0; i < n && result == PF_OK; i++)
    result = write_plane(worker, s, i, record, err);
  atomic_fetch_add(&worker->runner->ns_write,
                   (uint64_t)((pf_os_seconds() - start) * 1e9));
  return result;
}
