/* The table of C steps: one line each, in alphabetical order. */
#include "steps/native/native.h"

#define STEPS(XX)                                                             \
  XX(flatfield)                                                               \
  XX(gaussian)                                                                \
  XX(identity)                                                                \
  XX(label)                                                                   \
  XX(measure)                                                                 \
  XX(project)                                                                 \
  XX(rescale_intensity)                                                       \
  XX(threshold)

#define XX(name) extern const struct pf_step_type pf_native_##name;
STEPS(XX)
#undef XX

static const struct pf_step_type *const steps[] = {
#define XX(name) &pf_native_##name,
    STEPS(XX)
#undef XX
};

const struct pf_step_type *const *pf_native_steps(size_t *n) {
  *n = sizeof(steps) / sizeof(steps[0]);
  return steps;
}
