/* native:identity: gives its stack back; tests and benchmarks. */
#include "steps/native/native.h"

static int call(void *instance, const void *params, const struct pf_call *call,
                struct pf_result *result, struct pf_error *err) {
  (void)instance;
  (void)params;
  (void)err;
  result->stack = pf_array_ref(call->stack);
  return PF_OK;
}

const struct pf_step_type pf_native_identity = {
    .name = "identity",
    .help = "Give the stack back as it is.",
    .result = PF_RESULT_IMAGE,
    .yields = {.kind = PF_YIELDS_SAME},
    .any_depth = true,
    .dtype = PF_CAST_PRESERVE,
    .memory_types = 1u << PF_MEM_NATIVE,
    .call = call,
};
