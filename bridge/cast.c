/* Casts of arrays: see include/plateflow/bridge.h. */
#include "plateflow/bridge.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "bridge/array_private.h"
#include "bridge/cast_kernels.h"

static const char *const mode_names[] = {
#define XX(name, word) word,
    PF_CAST_MODE_MAP(XX)
#undef XX
};

const char *pf_cast_mode_name(enum pf_cast_mode mode) {
  return (unsigned)mode < PF_N_CAST_MODES ? mode_names[mode] : "none";
}

enum pf_cast_mode pf_cast_mode_find(const char *word) {
  int i = 0;
  while (i < PF_N_CAST_MODES && strcmp(mode_names[i], word) != 0)
    i++;
  return (enum pf_cast_mode)i;
}

/* What is done to a value before it is rounded; both modes in float64. */
struct transform {
  double min;   /* of the array, times `scale` */
  double range; /* max - min, times `scale`; 0: every value becomes `lo` */
  double span;  /* of the target: hi - lo */
  double lo;    /* of the target */
  double scale; /* 1, or 0.5 where max - min is beyond float64 */
};

static void transform_rescale(double *x, size_t n, const struct transform *t) {
  for (size_t i = 0; i < n; i++) {
    double y = t->lo;
    if (t->range > 0)
      y = (x[i] * t->scale - t->min) / t->range * t->span + t->lo;
    x[i] = fabs(x[i]) <= DBL_MAX ? y : x[i]; /* NaN, infinity: as they are */
  }
}

static void transform_unit(double *x, size_t n, const struct transform *t) {
  for (size_t i = 0; i < n; i++)
    x[i] *= t->span;
}

/* Smallest and largest finite value; min > max where there is none. */
static void find_range(double *min, double *max,
                       const struct pf_array *array) {
  double values[PF_WALK_ELEMS], lo = DBL_MAX, hi = -DBL_MAX;
  struct pf_cast_stats ignored = {0};
  struct pf_walk walk;
  const void *piece = NULL;
  size_t n = 0;
  pf_walk_start(&walk, array);
  while ((piece = pf_walk_next(&walk, &n))) {
    pf_cast_run(values, PF_F64, piece, array->dtype, n, &ignored);
    for (size_t i = 0; i < n; i++) {
      double x = values[i];
      if (x < lo && x >= -DBL_MAX)
        lo = x;
      if (x > hi && x <= DBL_MAX)
        hi = x;
    }
  }
  *min = lo;
  *max = hi;
}

static struct transform rescale_of(const struct pf_array *array,
                                   enum pf_dtype to) {
  struct transform t = {.lo = pf_dtype_min(to), .scale = 1};
  double max = 0;
  t.span = pf_dtype_max(to) - t.lo;
  find_range(&t.min, &max, array);
  if (t.min > max)
    return t;
  t.range = max - t.min;
  if (t.range > DBL_MAX) {
    t.scale = 0.5;
    t.min *= t.scale;
    t.range = max * t.scale - t.min;
  }
  return t;
}

static struct transform unit_of(enum pf_dtype to) {
  return (struct transform){.span = pf_dtype_max(to), .scale = 1};
}

/* Write `in`, cast, to `to`; `apply` may be NULL. */
static void
cast_all(char *to, enum pf_dtype to_type, const struct pf_array *in,
         void (*apply)(double *x, size_t n, const struct transform *t),
         const struct transform *t, struct pf_cast_stats *stats) {
  double values[PF_WALK_ELEMS];
  struct pf_walk walk;
  const void *piece = NULL;
  size_t n = 0;
  pf_walk_start(&walk, in);
  while ((piece = pf_walk_next(&walk, &n))) {
    enum pf_dtype type = in->dtype;
    if (apply) {
      pf_cast_run(values, PF_F64, piece, type, n, stats);
      apply(values, n, t);
      piece = values;
      type = PF_F64;
    }
    pf_cast_run(to, to_type, piece, type, n, stats);
    to += n * pf_dtype_size(to_type);
  }
}

int pf_cast(struct pf_array **out, struct pf_array *in, enum pf_dtype to,
            enum pf_cast_mode mode, struct pf_cast_stats *stats,
            struct pf_error *err) {
  struct pf_cast_stats counted = {0};
  struct transform t = {0};
  int code;
  *out = NULL;
  if (mode == PF_CAST_NATIVE || (in->dtype == to && mode != PF_CAST_RESCALE)) {
    *out = pf_array_ref(in);
    return PF_OK;
  }
  if ((code = pf_array_check_host(in, "change the element type of", err)) ||
      (code = pf_array_create(out, to, in->ndim, in->dims, err)))
    return code;
  (*out)->memory_type = in->memory_type;
  if (mode == PF_CAST_RESCALE)
    t = rescale_of(in, to);
  else if (mode == PF_CAST_UNIT)
    t = unit_of(to);
  cast_all((*out)->data, to, in,
           mode == PF_CAST_RESCALE ? transform_rescale
           : mode == PF_CAST_UNIT  ? transform_unit
                                   : NULL,
           &t, &counted);
  if (stats) {
    stats->n_clipped += counted.n_clipped;
    stats->n_rounded += counted.n_rounded;
    stats->n_nan += counted.n_nan;
  }
  return PF_OK;
}
