/*
 * steps/kernels/: each kernel as C reads it, as an OpenCL device runs it and
 * as the step on the host does it.
 */
#include "bridge/json.h"
#include "bridge/opencl.h"
#include "plateflow/step.h"
#include "steps/kernels/host.h"
#include "steps/kernels/kernels.h"
#include "tests/unit/check.h"

#include <stdlib.h>

PF_API const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) {
  return "leak:libpocl\nleak:libOpenCL\nleak:libLLVM\nleak:libclang\n"
         "leak:libhwloc\n";
}

/* float32 with float sums. */
#define pf_store pf_store_f32
#define border_index border_index_f32
#define at_row at_row_f32
#define at_column at_column_f32
#define gaussian_y gaussian_y_f32
#define gaussian_x gaussian_x_f32
#define PF_T float
#define PF_REAL float
#include "steps/kernels/common.cl"
#include "steps/kernels/gaussian.cl"
#undef pf_store
#undef border_index
#undef at_row
#undef at_column
#undef gaussian_y
#undef gaussian_x
#undef PF_T
#undef PF_REAL

/* uint16 with double sums. */
#define PF_T uint16_t
#define PF_T_MIN 0
#define PF_T_MAX 65535
#define PF_T_END 65536
#define PF_REAL double
#include "steps/kernels/common.cl"
#include "steps/kernels/gaussian.cl"

static const struct pf_device device = {PF_DEVICE_OPENCL, 0};
static const char *const modes[] = {"reflect", "nearest", "constant", "mirror",
                                    "wrap"};

/* -- what the step gives ------------------------------------------------- */

static struct pf_step_instance *make_step(double sigma, const char *mode) {
  struct pf_step *step = NULL;
  struct pf_step_instance *instance = NULL;
  struct pf_json_doc *doc = NULL;
  char text[100];
  (void)snprintf(text, sizeof(text), "{\"sigma\": %g, \"mode\": \"%s\"}",
                 sigma, mode);
  CHECK_INT(pf_json_parse(&doc, text, strlen(text), "test", NULL), PF_OK);
  CHECK_INT(pf_step_open(&step, "native:gaussian", ".", NULL), PF_OK);
  CHECK_INT(pf_step_make(&instance, step, doc, pf_json_root(doc), NULL),
            PF_OK);
  pf_step_unref(&step);
  pf_json_free(&doc);
  return instance;
}

/* On the stack's device; the result on the host. */
static struct pf_array *run_step(struct pf_step_instance *step,
                                 struct pf_array *stack,
                                 struct pf_error *err) {
  const struct pf_group_info info = {.step = "test",
                                     .device = pf_array_device(stack)};
  const struct pf_call call = {.stack = stack, .info = &info};
  struct pf_result result;
  struct pf_array *out = NULL;
  if (pf_step_call(step, &call, &result, err) == PF_OK) {
    CHECK_INT(pf_array_device(result.stack).type, pf_array_device(stack).type);
    CHECK_INT(pf_array_to_device(&out, result.stack,
                                 (struct pf_device){PF_DEVICE_HOST, 0}, NULL,
                                 NULL),
              PF_OK);
    CHECK_INT(pf_array_wait(out, NULL), PF_OK);
  }
  pf_result_clear(&result);
  return out;
}

static struct pf_array *noise(enum pf_dtype dtype, int64_t depth,
                              int64_t height, int64_t width) {
  const int64_t shape[3] = {depth, height, width};
  struct pf_array *real = NULL, *array = NULL;
  uint64_t x = 12345;
  CHECK_INT(pf_array_create(&real, PF_F64, 3, shape, NULL), PF_OK);
  for (int64_t i = 0; i < pf_array_size(real); i++) {
    x = x * 6364136223846793005u + 1442695040888963407u;
    ((double *)pf_array_data(real))[i] =
        ldexp((double)(x >> 11), -53) *
        (pf_dtype_is_float(dtype) ? 1000 : pf_dtype_max(dtype));
  }
  CHECK_INT(pf_cast(&array, real, dtype, PF_CAST_PRESERVE, NULL, NULL), PF_OK);
  pf_array_unref(&real);
  return array;
}

static double at(const struct pf_array *as_double, int64_t i) {
  return ((const double *)pf_array_data(as_double))[i];
}

/* Within the twin's row; the share of equal integers too. */
static void check_close(struct pf_array *a, struct pf_array *b,
                        const struct pf_step_twin *twin) {
  struct pf_array *x = NULL, *y = NULL;
  double worst = 0, largest = 0;
  int64_t n_unequal = 0;
  CHECK_INT(pf_array_dtype(a), pf_array_dtype(b));
  CHECK_INT(pf_array_size(a), pf_array_size(b));
  CHECK_INT(pf_cast(&x, a, PF_F64, PF_CAST_PRESERVE, NULL, NULL), PF_OK);
  CHECK_INT(pf_cast(&y, b, PF_F64, PF_CAST_PRESERVE, NULL, NULL), PF_OK);
  for (int64_t i = 0; i < pf_array_size(a); i++) {
    worst = fmax(worst, fabs(at(x, i) - at(y, i)));
    largest = fmax(largest, fabs(at(y, i)));
    n_unequal += at(x, i) != at(y, i);
  }
  if (pf_dtype_is_float(pf_array_dtype(a))) {
    CHECK(worst <= largest * twin->relative);
  } else {
    CHECK(worst <= twin->counts);
    CHECK(n_unequal * (pf_opencl_has_double(0) ? 1000 : 200) <=
          pf_array_size(a));
  }
  pf_array_unref(&x);
  pf_array_unref(&y);
}

/* -- tests ---------------------------------------------------------------- */

static void compare_twin(enum pf_dtype dtype, double sigma, const char *mode,
                         int64_t depth, int64_t height, int64_t width) {
  const struct pf_step_type *type = pf_native_find("gaussian");
  struct pf_step_instance *step = make_step(sigma, mode);
  struct pf_array *stack = noise(dtype, depth, height, width), *there = NULL;
  struct pf_array *ours = run_step(step, stack, NULL), *theirs = NULL;
  CHECK_INT(pf_array_to_device(&there, stack, device, NULL, NULL), PF_OK);
  theirs = run_step(step, there, NULL);
  CHECK(ours && theirs);
  if (ours && theirs)
    check_close(theirs, ours, &type->twins[0]);
  pf_array_unref(&ours);
  pf_array_unref(&theirs);
  pf_array_unref(&there);
  pf_array_unref(&stack);
  pf_step_drop(&step);
}

static void test_dtypes(void) {
  for (int i = 0; i < PF_N_DTYPES; i++)
    if (i != PF_F16 && i != PF_BF16)
      compare_twin((enum pf_dtype)i, 1.5, "reflect", 2, 40, 50);
}

/* Images smaller than the kernel, too. */
static void test_modes(void) {
  for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
    compare_twin(PF_U16, 2, modes[i], 2, 33, 65);
    compare_twin(PF_U16, 3, modes[i], 1, 1, 7);
    compare_twin(PF_F32, 4, modes[i], 1, 5, 3);
  }
  compare_twin(PF_U16, 0, "reflect", 2, 5, 5);
}

static void test_refused(void) {
  struct pf_step_instance *step = make_step(1, "reflect");
  struct pf_array *stack = noise(PF_F16, 1, 5, 5), *there = NULL;
  struct pf_array *out = NULL;
  struct pf_error err = PF_ERROR_INIT;
  CHECK_INT(pf_array_to_device(&there, stack, device, NULL, NULL), PF_OK);
  out = run_step(step, there, &err);
  CHECK(!out && err.message && strstr(err.message, "float16"));
  pf_error_clear(&err);
  pf_array_unref(&there);
  pf_array_unref(&stack);
  pf_step_drop(&step);
}

/* A step without a twin says so. */
static void test_no_twin(void) {
  struct pf_step *opened = NULL;
  struct pf_step_instance *step = NULL;
  struct pf_array *stack = noise(PF_U8, 1, 5, 5), *there = NULL, *out = NULL;
  struct pf_error err = PF_ERROR_INIT;
  CHECK_INT(pf_step_open(&opened, "native:identity", ".", NULL), PF_OK);
  CHECK_INT((int)pf_step_traits(opened)->memory_types, 1 << PF_MEM_NATIVE);
  CHECK_INT(pf_step_make(&step, opened, NULL, NULL, NULL), PF_OK);
  CHECK_INT(pf_array_to_device(&there, stack, device, NULL, NULL), PF_OK);
  out = run_step(step, there, &err);
  CHECK(!out);
  CHECK_STR(err.message, "native:identity takes no opencl stack");
  pf_error_clear(&err);
  pf_array_unref(&there);
  pf_array_unref(&stack);
  pf_step_drop(&step);
  pf_step_unref(&opened);
}

/* -- the kernels as C reads them ----------------------------------------- */

/* A step's half kernel, as steps/native/gaussian.c makes it. */
static size_t weights(double *weight, double sigma) {
  const size_t radius = (size_t)(4 * sigma + 0.5);
  double sum = 1;
  weight[0] = 1;
  for (size_t k = 1; k <= radius; k++) {
    weight[k] = exp(-0.5 / (sigma * sigma) * ((double)k * (double)k));
    sum += 2 * weight[k];
  }
  for (size_t k = 0; k <= radius; k++)
    weight[k] /= sum;
  return radius;
}

/* One work item after the other, a few beyond the image's edge too. */
#define EACH_ITEM(statement)                                                  \
  for (pf_host_item[1] = 0; pf_host_item[1] < 26; pf_host_item[1]++)          \
    for (pf_host_item[0] = 0; pf_host_item[0] < 32; pf_host_item[0]++)        \
  statement

static void test_host_reading(void) {
  enum { H = 25, W = 30, N = H * W };
  static double sums[N], weight[32];
  struct pf_array *stack = noise(PF_U16, 2, H, W);
  for (int mode = 0; mode < 5; mode++) {
    const int radius = (int)weights(weight, 2.5);
    struct pf_step_instance *step = make_step(2.5, modes[mode]);
    struct pf_array *host = run_step(step, stack, NULL), *read = NULL;
    CHECK_INT(pf_array_create(&read, PF_U16, 3, pf_array_shape(stack), NULL),
              PF_OK);
    for (int z = 0; z < 2; z++) {
      const uint16_t *in = pf_array_data(stack);
      uint16_t *out = pf_array_data(read);
      EACH_ITEM(
          gaussian_y(in, sums, weight, (pf_long)z * N, H, W, radius, mode));
      EACH_ITEM(
          gaussian_x(sums, out, weight, (pf_long)z * N, H, W, radius, mode));
    }
    CHECK(memcmp(pf_array_data(read), pf_array_data(host),
                 pf_array_n_bytes(read)) == 0);
    pf_array_unref(&read);
    pf_array_unref(&host);
    pf_step_drop(&step);
  }
  pf_array_unref(&stack);
}

/* What the device's compiler made of float sums is what C makes of them, to
 * the bit: nothing was contracted or reordered. */
static void test_float_sums(void) {
  enum { H = 25, W = 30, N = H * W };
  static float ours[N], sums[N], half[32];
  static double weight[32];
  const int radius = (int)weights(weight, 1.7), mode = 0;
  const int64_t shape[2] = {H, W}, n_weights = radius + 1, first = 0;
  const struct pf_device_ops *ops = pf_device_ops(PF_DEVICE_OPENCL);
  const size_t global[3] = {W, H, 1};
  struct pf_array *stack = noise(PF_F32, 1, H, W), *in = NULL, *out = NULL;
  struct pf_array *w = NULL, *there = NULL, *back = NULL;
  struct pf_kernel *along_y = NULL;
  for (int k = 0; k <= radius; k++)
    half[k] = (float)weight[k];
  EACH_ITEM(
      gaussian_y_f32(pf_array_data(stack), sums, half, 0, H, W, radius, mode));
  EACH_ITEM(gaussian_x_f32(sums, ours, half, 0, H, W, radius, mode));
  CHECK(fabs((double)ours[N / 2] - 500) < 200);
  CHECK_INT(pf_array_create(&w, PF_F32, 1, &n_weights, NULL), PF_OK);
  memcpy(pf_array_data(w), half, sizeof(float) * (size_t)n_weights);
  CHECK_INT(pf_array_to_device(&in, stack, device, NULL, NULL), PF_OK);
  CHECK_INT(pf_array_to_device(&there, w, device, NULL, NULL), PF_OK);
  CHECK_INT(pf_array_create_on(&out, device, PF_F32, 2, shape, NULL, NULL),
            PF_OK);
  CHECK_INT(pf_kernels_get(&along_y, device, pf_kernels_gaussian, "gaussian_y",
                           PF_F32, PF_F32, NULL),
            PF_OK);
  {
    const struct pf_kernel_argument arguments[] = {
        {.array = in},
        {.array = out},
        {.array = there},
        {.value = &first, .n_bytes = 8},
        {.value = &shape[0], .n_bytes = 8},
        {.value = &shape[1], .n_bytes = 8},
        {.value = &radius, .n_bytes = 4},
        {.value = &mode, .n_bytes = 4}};
    CHECK_INT(ops->launch(along_y, NULL, global, NULL, arguments, 8, NULL),
              PF_OK);
  }
  CHECK_INT(
      pf_array_to_device(&back, out, (struct pf_device){1, 0}, NULL, NULL),
      PF_OK);
  CHECK_INT(pf_array_wait(back, NULL), PF_OK);
  CHECK(memcmp(pf_array_data(back), (const unsigned char *)sums,
               sizeof(sums)) == 0); /* the same bits */
  pf_array_unref(&back);
  pf_array_unref(&out);
  pf_array_unref(&there);
  pf_array_unref(&in);
  pf_array_unref(&w);
  pf_array_unref(&stack);
}

int main(void) {
  struct pf_error err = PF_ERROR_INIT;
  test_host_reading();
  if (pf_device_ops(PF_DEVICE_OPENCL)->count(&err) < 1) {
    (void)printf("skipped on a device: %s\n", err.message);
    pf_error_clear(&err);
    return check_done();
  }
  test_float_sums();
  test_dtypes();
  test_modes();
  test_refused();
  test_no_twin();
  return check_done();
}
