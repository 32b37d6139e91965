/*
 * native:gaussian: as scipy.ndimage.gaussian_filter on float64, per plane.
 *
 * Separable: the rows around an output row wait in a ring of float64 rows, so
 * that each source row is converted once and no column is ever walked; their
 * weighted sum goes through the same correlation along x. SciPy's order is
 * kept (y first; the centre, then pairs from the outermost in), so that the
 * sums agree to the last bit or nearly.
 */
#include <math.h>
#include <stdlib.h>

#include "steps/native/gaussian.h"

enum border { REFLECT, NEAREST, CONSTANT, MIRROR, WRAP };

static const struct pf_param params[] = {
    {.name = "sigma",
     .help = "standard deviation in pixels, the same along y and x",
     .type = PF_PARAM_REAL,
     .offset = offsetof(struct pf_gaussian_params, sigma),
     .standard = 1,
     .min = 0,
     .max = 1000},
    {.name = "mode",
     .help = "what is beyond the edge, in SciPy's words (constant: 0)",
     .type = PF_PARAM_CHOICE,
     .offset = offsetof(struct pf_gaussian_params, mode),
     .standard = REFLECT,
     .choices = "reflect|nearest|constant|mirror|wrap"},
    {.name = "truncate",
     .help = "where the kernel is cut, in standard deviations",
     .type = PF_PARAM_REAL,
     .offset = offsetof(struct pf_gaussian_params, truncate),
     .standard = 4,
     .min = 0,
     .max = 100},
    {.name = NULL}};

static int make(void **instance, const void *given, struct pf_error *err) {
  const struct pf_gaussian_params *p = given;
  /* SciPy leaves an axis alone below this sigma. */
  const bool blurs = p->sigma > 1e-15;
  size_t radius = blurs ? (size_t)(p->truncate * p->sigma + 0.5) : 0;
  struct pf_gaussian *kernel =
      malloc(sizeof(*kernel) + (radius + 1) * sizeof(double));
  double sum = 1;
  *instance = kernel;
  if (!kernel)
    return pf_error_set(err, PF_ENOMEM, "no memory for a kernel");
  kernel->radius = radius;
  kernel->weight[0] = 1;
  for (size_t k = 1; k <= radius; k++) {
    double x = (double)k;
    kernel->weight[k] = exp(-0.5 / (p->sigma * p->sigma) * (x * x));
    sum += 2 * kernel->weight[k];
  }
  for (size_t k = 0; k <= radius; k++)
    kernel->weight[k] /= sum;
  return PF_OK;
}

/* Where index i beyond 0..n-1 looks; -1: nowhere, the value is 0. */
static int64_t border_index(int64_t i, int64_t n, enum border mode) {
  const int64_t period = mode == MIRROR ? 2 * n - 2 : 2 * n;
  if (i >= 0 && i < n)
    return i;
  switch (mode) {
  case NEAREST:
    return i < 0 ? 0 : n - 1;
  case CONSTANT:
    return -1;
  case WRAP:
    return (i % n + n) % n;
  case REFLECT: /* d c b a | a b c d | d c b a */
    i = (i % period + period) % period;
    return i < n ? i : period - 1 - i;
  case MIRROR: /* d c b | a b c d | c b a */
    if (n == 1)
      return 0;
    i = (i % period + period) % period;
    return i < n ? i : period - i;
  }
  return -1;
}

/* One call's working memory; rows are of doubles. */
struct scratch {
  size_t n_rows;        /* in the ring */
  double *ring;         /* source row y is ring row y % n_rows */
  double *zeros;        /* the row beyond the edge with CONSTANT */
  double *padded;       /* a filtered row with `radius` more at both ends */
  double *out;          /* a finished row */
  const double **above; /* [k]: the rows k above and below, k in 1..radius */
  const double **below;
};

static void scratch_finish(struct scratch *s) {
  free(s->ring);
  free(s->zeros);
  free(s->padded);
  free(s->out);
  free(s->above);
  free(s->below);
}

static int scratch_init(struct scratch *s, const struct pf_native_stack *in,
                        size_t radius, enum border mode,
                        struct pf_error *err) {
  const size_t row = in->width * sizeof(double);
  s->n_rows = 2 * radius + 1;
  /* The last rows of a wrapped plane look at the first ones. */
  if (s->n_rows > in->height || mode == WRAP)
    s->n_rows = in->height;
  s->ring = malloc(s->n_rows * row);
  s->zeros = calloc(in->width, sizeof(double));
  s->padded = malloc(row + 2 * radius * sizeof(double));
  s->out = malloc(row);
  s->above = malloc((radius + 1) * sizeof(*s->above));
  s->below = malloc((radius + 1) * sizeof(*s->below));
  if (s->ring && s->zeros && s->padded && s->out && s->above && s->below)
    return PF_OK;
  scratch_finish(s);
  return pf_error_set(err, PF_ENOMEM, "no memory for %zu rows of a blur",
                      s->n_rows);
}

/* Four pairs in one sweep, so that `sum` is loaded and stored less often. */
static void add_four(double *restrict sum, const double *const *left,
                     const double *const *right, const double *weight,
                     size_t n) {
  const double *l0 = left[0], *l1 = left[-1], *l2 = left[-2], *l3 = left[-3];
  const double *r0 = right[0], *r1 = right[-1], *r2 = right[-2],
               *r3 = right[-3];
  const double w0 = weight[0], w1 = weight[-1], w2 = weight[-2],
               w3 = weight[-3];
  for (size_t x = 0; x < n; x++) {
    double s = sum[x];
    s += (l0[x] + r0[x]) * w0;
    s += (l1[x] + r1[x]) * w1;
    s += (l2[x] + r2[x]) * w2;
    s += (l3[x] + r3[x]) * w3;
    sum[x] = s;
  }
}

static void add_one(double *restrict sum, const double *left,
                    const double *right, double weight, size_t n) {
  for (size_t x = 0; x < n; x++)
    sum[x] += (left[x] + right[x]) * weight;
}

/* sum = centre * w[0] + the pairs left[k], right[k], outermost first. */
static void correlate(double *restrict sum, const double *centre,
                      const double *const *left, const double *const *right,
                      const struct pf_gaussian *kernel, size_t n) {
  size_t k = kernel->radius;
  for (size_t x = 0; x < n; x++)
    sum[x] = centre[x] * kernel->weight[0];
  for (; k >= 4; k -= 4)
    add_four(sum, left + k, right + k, kernel->weight + k, n);
  for (; k >= 1; k--)
    add_one(sum, left[k], right[k], kernel->weight[k], n);
}

static const double *ring_row(const struct scratch *s, int64_t y,
                              const struct pf_native_stack *in,
                              enum border mode) {
  y = border_index(y, (int64_t)in->height, mode);
  return y < 0 ? s->zeros : s->ring + ((size_t)y % s->n_rows) * in->width;
}

static void filter_y(struct scratch *s, size_t y,
                     const struct pf_native_stack *in,
                     const struct pf_gaussian *kernel, enum border mode) {
  for (size_t k = 1; k <= kernel->radius; k++) {
    s->above[k] = ring_row(s, (int64_t)y - (int64_t)k, in, mode);
    s->below[k] = ring_row(s, (int64_t)(y + k), in, mode);
  }
  correlate(s->padded + kernel->radius, ring_row(s, (int64_t)y, in, mode),
            s->above, s->below, kernel, in->width);
}

/* Fill the ends of the padded row from its middle, then correlate along it. */
static void filter_x(struct scratch *s, const struct pf_native_stack *in,
                     const struct pf_gaussian *kernel, enum border mode) {
  const int64_t n = (int64_t)in->width;
  double *row = s->padded + kernel->radius;
  for (int64_t k = 1; k <= (int64_t)kernel->radius; k++) {
    int64_t before = border_index(-k, n, mode);
    int64_t after = border_index(n - 1 + k, n, mode);
    row[-k] = before < 0 ? 0 : row[before];
    row[n - 1 + k] = after < 0 ? 0 : row[after];
    s->above[k] = row - k;
    s->below[k] = row + k;
  }
  correlate(s->out, row, s->above, s->below, kernel, in->width);
}

/* `to` may be the plane itself: a row is in the ring before it is written. */
static void filter_plane(struct scratch *s, const struct pf_native_stack *in,
                         const char *from, char *to,
                         const struct pf_gaussian *kernel, enum border mode) {
  const size_t row_bytes = in->width * pf_dtype_size(in->dtype);
  size_t loaded = 0;
  for (size_t y = 0; y < in->height; y++) {
    size_t need = mode == WRAP ? in->height : y + kernel->radius + 1;
    for (; loaded < need && loaded < in->height; loaded++)
      pf_native_load(s->ring + (loaded % s->n_rows) * in->width,
                     from + loaded * row_bytes, in->dtype, in->width);
    filter_y(s, y, in, kernel, mode);
    filter_x(s, in, kernel, mode);
    pf_native_store(to + y * row_bytes, s->out, in->dtype, in->width);
  }
}

static int filter_stack(struct pf_array *to, const struct pf_native_stack *in,
                        const struct pf_gaussian *kernel, enum border mode,
                        struct pf_error *err) {
  const size_t plane_bytes = in->plane * pf_dtype_size(in->dtype);
  struct scratch s = {0};
  int code = scratch_init(&s, in, kernel->radius, mode, err);
  if (code)
    return code;
  for (size_t z = 0; z < in->depth; z++)
    filter_plane(&s, in, pf_native_plane(in, z),
                 (char *)pf_array_data(to) + z * plane_bytes, kernel, mode);
  scratch_finish(&s);
  return PF_OK;
}

static int call(void *instance, const void *given, const struct pf_call *call,
                struct pf_result *result, struct pf_error *err) {
  const struct pf_gaussian_params *p = given;
  const struct pf_gaussian *kernel = instance;
  struct pf_native_stack in;
  struct pf_array *out = NULL;
  int code;
  if (kernel->radius == 0) {
    result->stack = pf_array_ref(call->stack);
    return PF_OK;
  }
  code = pf_native_take(&in, call->stack, call->may_write, "stack", err);
  if (code)
    return code;
  code = pf_native_create_like(&out, &in, in.dtype, err);
  if (!code)
    code = filter_stack(out, &in, kernel, (enum border)p->mode, err);
  if (!code) {
    code = pf_native_give(result, out, &in, err);
    out = NULL;
  }
  pf_array_unref(&out);
  pf_native_drop(&in);
  return code;
}

const struct pf_step_type pf_native_gaussian = {
    .name = "gaussian",
    .help = "Blur each plane with a Gaussian.\n"
            "Agrees with scipy.ndimage.gaussian_filter on float64, rounded "
            "half to even for integers. NaN and infinity spread over the "
            "kernel's width.",
    .params = params,
    .params_size = sizeof(struct pf_gaussian_params),
    .result = PF_RESULT_IMAGE,
    .yields = {.kind = PF_YIELDS_SAME},
    .dtype = PF_CAST_PRESERVE,
    .memory_types = 1u << PF_MEM_NATIVE | 1u << PF_MEM_OPENCL,
    .make = make,
    .call = call,
    .drop = free,
    .n_twins = 1,
    .twins = &pf_gaussian_opencl,
};
