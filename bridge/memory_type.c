/* Names and facts of memory types and element types, one row each. */
#include "plateflow/memory_type.h"

#include <math.h>
#include <string.h>

struct memory_type_row {
  const char *word;
  bool is_python;
};

static const struct memory_type_row memory_types[] = {
#define XX(name, word, python) {word, python},
    PF_MEMORY_TYPE_MAP(XX)
#undef XX
};

struct dtype_row {
  const char *word;
  size_t size;
  int dl_code, bits;
};

static const struct dtype_row dtypes[] = {
#define XX(name, word, n_bytes, dl_code, bits) {word, n_bytes, dl_code, bits},
    PF_DTYPE_MAP(XX)
#undef XX
};

/* DLPack's codes, as in the map above. */
enum { DL_INT = 0, DL_FLOAT = 2, DL_BFLOAT = 4, DL_BOOL = 6 };

static bool is_dtype(enum pf_dtype dtype) {
  return (unsigned)dtype < PF_N_DTYPES;
}

const char *pf_memory_type_name(enum pf_memory_type type) {
  return (unsigned)type < PF_N_MEMORY_TYPES ? memory_types[type].word : "none";
}

enum pf_memory_type pf_memory_type_find(const char *word) {
  for (int i = 0; i < PF_N_MEMORY_TYPES; i++)
    if (strcmp(memory_types[i].word, word) == 0)
      return (enum pf_memory_type)i;
  return PF_MEM_NONE;
}

bool pf_memory_type_is_python(enum pf_memory_type type) {
  return (unsigned)type < PF_N_MEMORY_TYPES && memory_types[type].is_python;
}

const char *pf_dtype_name(enum pf_dtype dtype) {
  return is_dtype(dtype) ? dtypes[dtype].word : "none";
}

enum pf_dtype pf_dtype_find(const char *word) {
  for (int i = 0; i < PF_N_DTYPES; i++)
    if (strcmp(dtypes[i].word, word) == 0)
      return (enum pf_dtype)i;
  return PF_DTYPE_NONE;
}

size_t pf_dtype_size(enum pf_dtype dtype) {
  return is_dtype(dtype) ? dtypes[dtype].size : 0;
}

bool pf_dtype_is_float(enum pf_dtype dtype) {
  return is_dtype(dtype) && (dtypes[dtype].dl_code == DL_FLOAT ||
                             dtypes[dtype].dl_code == DL_BFLOAT);
}

bool pf_dtype_is_signed(enum pf_dtype dtype) {
  return pf_dtype_is_float(dtype) ||
         (is_dtype(dtype) && dtypes[dtype].dl_code == DL_INT);
}

double pf_dtype_max(enum pf_dtype dtype) {
  if (!is_dtype(dtype))
    return 0;
  if (pf_dtype_is_float(dtype) || dtypes[dtype].dl_code == DL_BOOL)
    return 1;
  return ldexp(1, dtypes[dtype].bits - pf_dtype_is_signed(dtype)) - 1;
}

double pf_dtype_min(enum pf_dtype dtype) {
  if (!pf_dtype_is_signed(dtype) || pf_dtype_is_float(dtype))
    return 0;
  return -ldexp(1, dtypes[dtype].bits - 1);
}
