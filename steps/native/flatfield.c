/* native:flatfield: divide by the illumination, after taking the dark away. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bridge/buf.h"
#include "steps/native/native.h"

struct flatfield_params {
  char *image, *dark;
};

static const struct pf_param params[] = {
    {.name = "image",
     .help = "image file of the illumination function",
     .type = PF_PARAM_FILE,
     .offset = offsetof(struct flatfield_params, image),
     .required = true},
    {.name = "dark",
     .help = "image file of the camera's signal without light",
     .type = PF_PARAM_FILE,
     .offset = offsetof(struct flatfield_params, dark)},
    {.name = NULL}};

/* Constant once made; calls share it. */
struct field {
  size_t height, width;
  double *flat; /* illumination divided by its mean */
  double *dark; /* zeros where no file was given */
};

static void drop(void *instance) {
  struct field *field = instance;
  if (!field)
    return;
  free(field->flat);
  free(field->dark);
  free(field);
}

static int refuse(const char *path, struct pf_error *err, const char *what) {
  char *name = pf_name_for_people(path);
  pf_error_set(err, PF_EINVAL, "cannot correct with %s: %s",
               name ? name : "the file", what);
  pf_error_at_file(err, path, 0, 0);
  free(name);
  return PF_EINVAL;
}

/* The one plane in a file, as malloc'd doubles. */
static int read_plane(double **out, size_t *height, size_t *width,
                      const char *path, struct pf_error *err) {
  struct pf_array *image = NULL;
  struct pf_native_stack in = {0};
  int code = pf_step_read_image(&image, path, err);
  if (!code)
    code = pf_native_take(&in, image, false, "image", err);
  if (!code && in.depth != 1)
    code = refuse(path, err, "it holds more than one plane");
  if (!code) {
    *out = malloc(in.plane * sizeof(**out));
    if (!*out)
      code = pf_error_set(err, PF_ENOMEM, "no memory for a flat field");
  }
  if (!code) {
    pf_native_load(*out, pf_array_data(in.array), in.dtype, in.plane);
    *height = in.height;
    *width = in.width;
  }
  pf_native_drop(&in);
  pf_array_unref(&image);
  return code;
}

/* Divide the illumination by its mean; it must be positive everywhere. */
static int normalise(struct field *field, const char *path,
                     struct pf_error *err) {
  const size_t n = field->height * field->width;
  double sum = 0, mean;
  for (size_t i = 0; i < n; i++) {
    if (!(field->flat[i] > 0) || isinf(field->flat[i]))
      return refuse(path, err,
                    "it has pixels that are zero, negative or not finite");
    sum += field->flat[i];
  }
  mean = sum / (double)n;
  if (isinf(mean))
    return refuse(path, err, "its values are too large");
  for (size_t i = 0; i < n; i++)
    field->flat[i] /= mean;
  return PF_OK;
}

static int read_dark(struct field *field, const char *path,
                     struct pf_error *err) {
  size_t height = 0, width = 0;
  int code;
  if (!path) {
    field->dark = calloc(field->height * field->width, sizeof(double));
    return field->dark
               ? PF_OK
               : pf_error_set(err, PF_ENOMEM, "no memory for a flat field");
  }
  code = read_plane(&field->dark, &height, &width, path, err);
  if (!code && (height != field->height || width != field->width))
    code = refuse(path, err, "its shape is not that of the illumination");
  return code;
}

static int make(void **instance, const void *given, struct pf_error *err) {
  const struct flatfield_params *p = given;
  struct field *field = calloc(1, sizeof(*field));
  int code;
  *instance = NULL;
  if (!field)
    return pf_error_set(err, PF_ENOMEM, "no memory for a flat field");
  code =
      read_plane(&field->flat, &field->height, &field->width, p->image, err);
  if (!code)
    code = normalise(field, p->image, err);
  if (!code)
    code = read_dark(field, p->dark, err);
  if (code)
    drop(field);
  else
    *instance = field;
  return code;
}

static void correct_plane(char *out, enum pf_dtype out_dtype, const char *in,
                          enum pf_dtype in_dtype, const struct field *field) {
  const size_t plane = field->height * field->width;
  double block[PF_NATIVE_BLOCK];
  for (size_t at = 0; at < plane; at += PF_NATIVE_BLOCK) {
    const double *flat = field->flat + at, *dark = field->dark + at;
    size_t n = plane - at;
    if (n > PF_NATIVE_BLOCK)
      n = PF_NATIVE_BLOCK;
    pf_native_load(block, in + at * pf_dtype_size(in_dtype), in_dtype, n);
    for (size_t i = 0; i < n; i++)
      block[i] = (block[i] - dark[i]) / flat[i];
    pf_native_store(out + at * pf_dtype_size(out_dtype), block, out_dtype, n);
  }
}

/* float32 holds every 16-bit value with 8 bits to spare. */
static enum pf_dtype result_type(enum pf_dtype in) {
  return in == PF_F32 || pf_dtype_size(in) <= 2 ? PF_F32 : PF_F64;
}

static int correct(struct pf_array **out, const struct pf_native_stack *in,
                   const struct field *field, struct pf_error *err) {
  const enum pf_dtype dtype = result_type(in->dtype);
  int code;
  if (in->height != field->height || in->width != field->width)
    return pf_error_set(err, PF_ESTEP,
                        "the stack's planes are [%zu, %zu], the illumination "
                        "is [%zu, %zu]",
                        in->height, in->width, field->height, field->width);
  code = pf_native_create_like(out, in, dtype, err);
  for (size_t z = 0; !code && z < in->depth; z++)
    correct_plane((char *)pf_array_data(*out) +
                      z * in->plane * pf_dtype_size(dtype),
                  dtype, pf_native_plane(in, z), in->dtype, field);
  return code;
}

static int call(void *instance, const void *given, const struct pf_call *call,
                struct pf_result *result, struct pf_error *err) {
  struct pf_native_stack in;
  struct pf_array *out = NULL;
  int code = pf_native_take(&in, call->stack, call->may_write, "stack", err);
  (void)given;
  if (code)
    return code;
  code = correct(&out, &in, instance, err);
  if (!code)
    code = pf_native_give(result, out, &in, err);
  pf_native_drop(&in);
  return code;
}

const struct pf_step_type pf_native_flatfield = {
    .name = "flatfield",
    .help = "Correct uneven illumination.\n"
            "(x - dark) / (image / mean(image)), computed in float64. NaN "
            "stays NaN.",
    .params = params,
    .params_size = sizeof(struct flatfield_params),
    .result = PF_RESULT_IMAGE,
    .yields = {.kind = PF_YIELDS_SAME},
    .dtype = PF_CAST_PRESERVE,
    .memory_types = 1u << PF_MEM_NATIVE,
    .make = make,
    .call = call,
    .drop = drop,
};
