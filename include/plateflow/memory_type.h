/*
 * Memory types: the framework whose arrays a step takes and returns, and the
 * element types that arrays can have.
 *
 * Threads: everything here is constant.
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
  PF_MEM_NONE = PF_N_MEMORY_TYPES /* not said */
};

PF_API const char *pf_memory_type_name(enum pf_memory_type type);
/* PF_MEM_NONE where there is no such word. */
PF_API enum pf_memory_type pf_memory_type_find(const char *word);
PF_API bool pf_memory_type_is_python(enum pf_memory_type type);

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
