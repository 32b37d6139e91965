/* The Python side as libplateflow knows it: see steps/provider.h. */
#include "steps/provider.h"

#include <stdatomic.h>

/* Set once; read by every worker. */
static const struct pf_python_ops *_Atomic registered;

/* Its address tells one copy of this library from another. */
static const char core_id[] = "plateflow " PF_VERSION;

void pf_python_register(const struct pf_python_ops *ops) {
  atomic_store_explicit(&registered, ops, memory_order_release);
}

const struct pf_python_ops *pf_python_ops(void) {
  return atomic_load_explicit(&registered, memory_order_acquire);
}

const void *pf_core_address(void) {
  return core_id;
}
