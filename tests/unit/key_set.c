/* engine/key_set.c: what is added is there once, however full it gets. */
#include "engine/key_set.h"
#include "tests/unit/check.h"

enum { N_KEYS = 100000 };

/* Neighbours, multiples of large powers of two, and mixed bits: what ranks
 * and hashes give. */
static uint64_t key_of(int kind, uint64_t i) {
  switch (kind) {
  case 0:
    return i + 1;
  case 1:
    return (i + 1) << 44;
  case 2:
    return UINT64_MAX - i;
  default:
    return pf_mix64(i + 1);
  }
}

static void test_keys(int kind) {
  struct pf_key_set set = {0};
  int n_added = 0, n_known = 0;
  for (uint64_t i = 0; i < N_KEYS; i++)
    n_added += pf_key_set_add(&set, key_of(kind, i)) == 1;
  for (uint64_t i = 0; i < N_KEYS; i++)
    n_known += pf_key_set_add(&set, key_of(kind, i)) == 0;
  CHECK_INT(n_added, N_KEYS);
  CHECK_INT(n_known, N_KEYS);
  CHECK_INT(set.n, N_KEYS);
  CHECK(set.n_slots >= 2 * set.n);
  pf_key_set_free(&set);
  CHECK_INT(set.n, 0);
  CHECK(!set.slot);
}

/* Texts that names of outputs could be: no two hash alike. */
static void test_hash(void) {
  static const char *const texts[] = {
      "",           "a",          "b",           "images/A01_s1_w1.tif",
      "images/A01", "images/A10", "images/A010", "images/A01_s1_w2.tif",
      "01234567",   "012345678",  "0123456\x80", "images/A02_s1_w1.tif"};
  struct pf_key_set set = {0};
  for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
    uint64_t hash = pf_hash64(texts[i], strlen(texts[i]));
    CHECK(hash != 0);
    CHECK(hash == pf_hash64(texts[i], strlen(texts[i])));
    CHECK_INT(pf_key_set_add(&set, hash), 1);
  }
  /* Zeros count, too. */
  CHECK_INT(pf_key_set_add(&set, pf_hash64("\0", 1)), 1);
  CHECK_INT(pf_key_set_add(&set, pf_hash64("\0\0", 2)), 1);
  CHECK_INT(pf_key_set_add(&set, pf_hash64("\0\0\0\0\0\0\0\0", 8)), 1);
  pf_key_set_free(&set);
}

int main(void) {
  for (int kind = 0; kind < 4; kind++)
    test_keys(kind);
  test_hash();
  return check_done();
}
