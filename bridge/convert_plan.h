/*
 * Which way an array takes into a framework, known without its data: the
 * limits of the framework's entry against what is known of the array.
 *
 * Threads: pure functions; none takes the GIL.
 */
#ifndef PF_CONVERT_PLAN_H
#define PF_CONVERT_PLAN_H

#include "bridge/frameworks.h"

/* Name, the word in plans and logs. */
#define PF_MECHANISM_MAP(XX)                                                  \
  XX(STAYS, "stays in place")                                                 \
  XX(SHARED, "shared by DLPack")                                              \
  XX(COPIED, "copied on the host")                                            \
  XX(ADAPTER, "copied by the framework")                                      \
  XX(REFUSED, "refused")

enum pf_mechanism {
#define XX(name, word) PF_MECHANISM_##name,
  PF_MECHANISM_MAP(XX)
#undef XX
};
PF_API const char *pf_mechanism_name(enum pf_mechanism mechanism);

/* What is known of an array; what is not known stands for "no problem". */
struct pf_array_facts {
  enum pf_dtype dtype; /* PF_DTYPE_NONE: unknown */
  int ndim;            /* 0: unknown, or no dimension */
  bool has_gaps;       /* not in C order and compact */
  bool is_negative;    /* a stride is */
  bool is_read_only;
  uint32_t alignment; /* of its address, a power of two; 0: unknown */
};
PF_API void pf_array_facts(struct pf_array_facts *out,
                           const struct pf_array *array);

struct pf_convert_plan {
  enum pf_mechanism mechanism;
  const char *why;     /* static: of a copy or a refusal; NULL otherwise */
  enum pf_dtype other; /* of a refusal: the type to cast to, or NONE */
};
/* Into `to` from `from`; NULL stands for plateflow's own memory. */
PF_API void pf_convert_plan(struct pf_convert_plan *plan,
                            const struct pf_framework *from,
                            const struct pf_framework *to,
                            const struct pf_array_facts *facts);

/* Whether the framework works on the host's memory, itself or by its adapter:
 * what it makes of any other must not be read here, nor handed to it. */
PF_API bool pf_framework_is_on_host(const struct pf_framework *framework);

/* A refusal's sentence: "torch cannot hold ..."; returns PF_EINVAL. */
PF_API int pf_convert_refuse(const struct pf_convert_plan *plan,
                             const struct pf_framework *to,
                             const struct pf_array_facts *facts,
                             struct pf_error *err);

#endif
