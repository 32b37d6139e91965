/*
 * Memory types: the framework whose arrays a step takes and returns, and the
 * element types that arrays can have.
 *
 * Memory types that a user's file of frameworks adds get numbers behind the
 * built-in ones; all functions here know them once they are registered.
 *
 * Threads: any; what is registered stays.
 */
#ifndef PLATEFLOW_MEMORY_TYPE_H
#define PLATEFLOW_MEMORY_TYPE_H

#include <stdbool.h>
#include <stddef.h>

#include "plateflow/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Name, the word in pipelines, whether its steps are Python functions. */
#define PF_MEMORY_TYPE_MAP(XX)                                                \
  XX(NUMPY, "numpy", 1)                                                       \
  XX(CUPY, "cupy", 1)                                                         \
  XX(TORCH, "torch", 1)                                                       \
  XX(TENSORFLOW, "tensorflow", 1)                                             \
  XX(JAX, "jax", 1)                                                           \
  XX(PYCLESPERANTO, "pyclesperanto", 1)                                       \
  XX(NATIVE, "native", 0)                                                     \
  XX(CUDA, "cuda", 0)                                                         \
  XX(OPENCL, "opencl", 0)

enum pf_memory_type {
#define XX(name, word, python) PF_MEM_##name,
  PF_MEMORY_TYPE_MAP(XX)
#undef XX
      PF_N_MEMORY_TYPES,
  PF_MEM_NONE = PF_N_MEMORY_TYPES, /* not said */
  PF_MEM_FIRST_REGISTERED,
  PF_MEM_END = PF_MEM_FIRST_REGISTERED + 16 /* every number is below */
};

PF_API const char *pf_memory_type_name(enum pf_memory_type type);
/* PF_MEM_NONE where there is no such word. */
PF_API enum pf_memory_type pf_memory_type_find(const char *word);
PF_API bool pf_memory_type_is_python(enum pf_memory_type type);
/* Whether `type` is a built-in or a registered one; PF_MEM_NONE is none. For
 * loops up to PF_MEM_END. */
PF_API bool pf_memory_type_exists(enum pf_memory_type type);
/*
 * Add a name (copied): lower-case letters, digits and _, starting with a
 * letter, at most 31 bytes. Returns its number; a known name's where it is
 * the same kind; -1 if it is of the other kind, is no such name, or 16 are
 * registered.
 */
PF_API int pf_memory_type_register(const char *name, bool python);

/* Name, the word (NumPy's), bytes, DLPack type code, bits. */
#define PF_DTYPE_MAP(XX)                                                      \
  XX(BOOL, "bool", 1, 6, 8)                                                   \
  XX(U8, "uint8", 1, 1, 8)                                                    \
  XX(I8, "int8", 1, 0, 8)                                                     \
  XX(U16, "uint16", 2, 1, 16)                                                 \
  XX(I16, "int16", 2, 0, 16)                                                  \
  XX(U32, "uint32", 4, 1, 32)                                                 \
  XX(I32, "int32", 4, 0, 32)                                                  \
  XX(U64, "uint64", 8, 1, 64)                                                 \
  XX(I64, "int64", 8, 0, 64)                                                  \
  XX(F16, "float16", 2, 2, 16)                                                \
  XX(BF16, "bfloat16", 2, 4, 16)                                              \
  XX(F32, "float32", 4, 2, 32)                                                \
  XX(F64, "float64", 8, 2, 64)

enum pf_dtype {
#define XX(name, word, n_bytes, dl_code, bits) PF_##name,
  PF_DTYPE_MAP(XX)
#undef XX
      PF_N_DTYPES,
  PF_DTYPE_NONE = PF_N_DTYPES /* not said */
};

PF_API const char *pf_dtype_name(enum pf_dtype dtype);
/* PF_DTYPE_NONE where there is no such word. */
PF_API enum pf_dtype pf_dtype_find(const char *word);
PF_API size_t pf_dtype_size(enum pf_dtype dtype); /* bytes per element */
PF_API bool pf_dtype_is_float(enum pf_dtype dtype);
PF_API bool pf_dtype_is_signed(enum pf_dtype dtype); /* floats are */
/* The largest and smallest value as a double (integers and bool only). */
PF_API double pf_dtype_max(enum pf_dtype dtype);
PF_API double pf_dtype_min(enum pf_dtype dtype);

#ifdef __cplusplus
}
#endif
#endif
