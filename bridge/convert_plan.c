/* Which way an array takes: see bridge/convert_plan.h. */
#include "bridge/convert_plan.h"

#include <stddef.h>

#include "plateflow/device.h"

static const char *const mechanisms[] = {
#define XX(name, word) word,
    PF_MECHANISM_MAP(XX)
#undef XX
};

/* What a type is cast to where a framework cannot hold it: the nearest that
 * every framework can. */
static const enum pf_dtype nearest[PF_N_DTYPES] = {
    [PF_BOOL] = PF_U8, [PF_U8] = PF_F32,   [PF_I8] = PF_F32,
    [PF_U16] = PF_F32, [PF_I16] = PF_F32,  [PF_U32] = PF_F32,
    [PF_I32] = PF_F32, [PF_U64] = PF_U32,  [PF_I64] = PF_I32,
    [PF_F16] = PF_F32, [PF_BF16] = PF_F32, [PF_F32] = PF_DTYPE_NONE,
    [PF_F64] = PF_F32,
};

static const char elsewhere[] = "its memory is not the host's";
static const char wrong_type[] = "it cannot hold the element type";
static const char too_deep[] = "it takes fewer dimensions";
static const char gaps[] = "it takes arrays in C order without gaps only";
static const char negative[] = "it takes no negative strides";
static const char aligned[] = "the memory is not aligned as it needs";
static const char written[] = "it could write to memory that is read-only";
static const char read_only[] = "it takes no read-only memory";

const char *pf_mechanism_name(enum pf_mechanism mechanism) {
  return mechanisms[mechanism];
}

static uint32_t alignment_of(const void *data) {
  uintptr_t at = (uintptr_t)data;
  return at % 4096 == 0 ? 4096 : (uint32_t)(at & (~at + 1));
}

void pf_array_facts(struct pf_array_facts *out, const struct pf_array *array) {
  const int64_t *strides = pf_array_strides(array);
  const int64_t *shape = pf_array_shape(array);
  *out = (struct pf_array_facts){
      .dtype = pf_array_dtype(array),
      .ndim = pf_array_ndim(array),
      .has_gaps = !pf_array_is_compact(array),
      .is_read_only = pf_array_is_read_only(array),
      .alignment =
          pf_array_size(array) ? alignment_of(pf_array_data(array)) : 4096,
  };
  for (int i = 0; i < out->ndim; i++)
    out->is_negative = out->is_negative || (strides[i] < 0 && shape[i] > 1);
}

/* Why memory cannot be shared; NULL: it can. */
static const char *copy_because(const struct pf_framework *to,
                                const struct pf_array_facts *facts) {
  if (facts->has_gaps && to->take_strides == PF_STRIDES_COMPACT)
    return gaps;
  if (facts->is_negative && to->take_strides != PF_STRIDES_ANY)
    return negative;
  if (facts->alignment && facts->alignment < to->take_alignment)
    return aligned;
  if (facts->is_read_only && to->writes_through)
    return written;
  /* Who never writes may be given read-only memory without being told. */
  if (facts->is_read_only && !to->takes_read_only && !to->give_aliased)
    return read_only;
  return NULL;
}

bool pf_framework_is_on_host(const struct pf_framework *framework) {
  for (size_t i = 0; i < framework->n_devices; i++)
    if (framework->devices[i] == PF_DEVICE_HOST)
      return true;
  return !framework->n_devices || framework->adapter;
}

static void refuse(struct pf_convert_plan *plan, const struct pf_framework *to,
                   const struct pf_array_facts *facts) {
  plan->mechanism = PF_MECHANISM_REFUSED;
  plan->why = too_deep;
  if (facts->dtype >= PF_N_DTYPES || to->dtypes[facts->dtype])
    return;
  plan->why = wrong_type;
  plan->other = nearest[facts->dtype];
  if (plan->other != PF_DTYPE_NONE && !to->dtypes[plan->other])
    plan->other = PF_DTYPE_NONE;
}

void pf_convert_plan(struct pf_convert_plan *plan,
                     const struct pf_framework *from,
                     const struct pf_framework *to,
                     const struct pf_array_facts *facts) {
  *plan = (struct pf_convert_plan){PF_MECHANISM_SHARED, NULL, PF_DTYPE_NONE};
  if (from != to && ((from && !pf_framework_is_on_host(from)) ||
                     (to && !pf_framework_is_on_host(to)))) {
    plan->mechanism = PF_MECHANISM_REFUSED;
    plan->why = elsewhere;
  } else if (to &&
             ((facts->dtype != PF_DTYPE_NONE && !to->dtypes[facts->dtype]) ||
              (to->take_max_ndim && facts->ndim > to->take_max_ndim))) {
    refuse(plan, to, facts);
  } else if (from == to) {
    plan->mechanism = PF_MECHANISM_STAYS;
  } else if ((from && from->adapter) || (to && to->adapter)) {
    plan->mechanism = PF_MECHANISM_ADAPTER;
    plan->why = elsewhere;
  } else if (to && (plan->why = copy_because(to, facts))) {
    plan->mechanism = PF_MECHANISM_COPIED;
  }
}

int pf_convert_refuse(const struct pf_convert_plan *plan,
                      const struct pf_framework *to,
                      const struct pf_array_facts *facts,
                      struct pf_error *err) {
  const char *type =
      facts->dtype == PF_DTYPE_NONE ? "?" : pf_dtype_name(facts->dtype);
  if (plan->why == elsewhere)
    return pf_error_set(err, PF_EMISSING,
                        "arrays do not go into or out of %s here: its memory "
                        "is a device's, not the host's",
                        to && !pf_framework_is_on_host(to) ? to->name
                                                           : "its framework");
  if (plan->why == too_deep)
    return pf_error_set(err, PF_EINVAL,
                        "%s takes arrays of at most %d dimensions, and this "
                        "one has %d",
                        to->name, to->take_max_ndim, facts->ndim);
  if (plan->other == PF_DTYPE_NONE)
    return pf_error_set(err, PF_EINVAL, "%s cannot hold %s", to->name, type);
  return pf_error_set(err, PF_EINVAL,
                      "%s cannot hold %s without narrowing it to %s: cast "
                      "with \"input_dtype\": \"%s\"",
                      to->name, type, pf_dtype_name(plan->other),
                      pf_dtype_name(plan->other));
}
