/* What is looked up by name: native steps, result kinds, the image reader. */
#include <string.h>

#include "steps/native/native.h"

static const char *const kind_names[] = {[PF_RESULT_IMAGE] = "image",
                                         [PF_RESULT_LABELS] = "labels",
                                         [PF_RESULT_NONE] = "none"};

enum { N_KINDS = sizeof(kind_names) / sizeof(kind_names[0]) };

const char *pf_result_kind_name(enum pf_result_kind kind) {
  return (int)kind >= 0 && (int)kind < N_KINDS ? kind_names[kind] : NULL;
}

int pf_result_kind_find(const char *word) {
  for (int i = 0; i < N_KINDS; i++)
    if (strcmp(kind_names[i], word) == 0)
      return i;
  return -1;
}

const struct pf_step_type *pf_native_find(const char *name) {
  size_t n;
  const struct pf_step_type *const *steps = pf_native_steps(&n);
  for (size_t i = 0; i < n; i++)
    if (strcmp(steps[i]->name, name) == 0)
      return steps[i];
  return NULL;
}

/* Set once, before any instance is made, and constant from then on. */
static pf_image_reader *image_reader;

void pf_step_set_image_reader(pf_image_reader *read) {
  image_reader = read;
}

int pf_step_read_image(struct pf_array **out, const char *path,
                       struct pf_error *err) {
  *out = NULL;
  if (!image_reader)
    return pf_error_set(err, PF_EMISSING,
                        "a step wants to read an image, and no reader is set");
  return image_reader(out, path, err);
}
