/* Names and facts of memory types and element types, one row each. */
#include "plateflow/memory_type.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
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

/* ----------------------------------------------------------- memory types */

enum { MAX_NAME = 31, N_REGISTERED = PF_MEM_END - PF_MEM_FIRST_REGISTERED };

/* Readers take no lock: a row is complete before the count includes it. */
static struct {
  char words[N_REGISTERED][MAX_NAME + 1];
  struct memory_type_row rows[N_REGISTERED];
  atomic_int n;
} registered;
static pthread_mutex_t register_lock = PTHREAD_MUTEX_INITIALIZER;

static const struct memory_type_row *find_row(enum pf_memory_type type) {
  int at = (int)type - PF_MEM_FIRST_REGISTERED;
  if ((unsigned)type < PF_N_MEMORY_TYPES)
    return &memory_types[type];
  if (at >= 0 && at < atomic_load(&registered.n))
    return &registered.rows[at];
  return NULL;
}

bool pf_memory_type_exists(enum pf_memory_type type) {
  return find_row(type) != NULL;
}

const char *pf_memory_type_name(enum pf_memory_type type) {
  const struct memory_type_row *row = find_row(type);
  return row ? row->word : "none";
}

enum pf_memory_type pf_memory_type_find(const char *word) {
  for (int i = 0; i < PF_MEM_END; i++) {
    const struct memory_type_row *row = find_row((enum pf_memory_type)i);
    if (row && strcmp(row->word, word) == 0)
      return (enum pf_memory_type)i;
  }
  return PF_MEM_NONE;
}

bool pf_memory_type_is_python(enum pf_memory_type type) {
  const struct memory_type_row *row = find_row(type);
  return row && row->is_python;
}

static bool is_word(const char *text) {
  static const char letters[] = "abcdefghijklmnopqrstuvwxyz_0123456789";
  size_t n = strlen(text);
  return n > 0 && n <= MAX_NAME && strspn(text, letters) == n &&
         text[0] >= 'a' && text[0] <= 'z' && strcmp(text, "none") != 0;
}

static int add_row(const char *name, bool python) {
  int n = atomic_load(&registered.n);
  if (n == N_REGISTERED)
    return -1;
  memcpy(registered.words[n], name, strlen(name) + 1);
  registered.rows[n] = (struct memory_type_row){registered.words[n], python};
  atomic_store(&registered.n, n + 1);
  return PF_MEM_FIRST_REGISTERED + n;
}

int pf_memory_type_register(const char *name, bool python) {
  enum pf_memory_type known;
  int type;
  if (!name || !is_word(name))
    return -1;
  (void)pthread_mutex_lock(&register_lock);
  known = pf_memory_type_find(name);
  if (known == PF_MEM_NONE)
    type = add_row(name, python);
  else
    type = pf_memory_type_is_python(known) == python ? (int)known : -1;
  (void)pthread_mutex_unlock(&register_lock);
  return type;
}

/* ---------------------------------------------------------- element types */

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
