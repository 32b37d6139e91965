/* CUDA C++ to device code, which needs the compiler's library but no card. */
#include <stdlib.h>

#include "bridge/cuda_private.h"
#include "tests/unit/check.h"

enum { CAPABILITY = 90 };

static const struct source_case {
  const char *source;
  const char *refusal; /* a part of the compiler's log; NULL: compiles */
} cases[] = {
    {"extern \"C\" __global__ void f(float *x) { x[threadIdx.x] *= 2; }",
     NULL},
    {"extern \"C\" __global__ void f(float *x) { y[threadIdx.x] = 2; }",
     "\"y\" is undefined"},
    {"not C++", "error"},
};

static void test_sources(void) {
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    struct pf_error err = PF_ERROR_INIT;
    char *image = NULL;
    int code = pf_cuda_compile(&image, cases[i].source, "f", CAPABILITY, &err);
    CHECK_INT(code, cases[i].refusal ? PF_EINVAL : PF_OK);
    CHECK((image != NULL) == !cases[i].refusal);
    CHECK(!image || memcmp(image, "\177ELF", 4) == 0);
    CHECK(!cases[i].refusal ||
          (err.detail && strstr(err.detail, cases[i].refusal)));
    pf_error_clear(&err);
    free(image);
  }
}

int main(void) {
  struct pf_error err = PF_ERROR_INIT;
  char *image = NULL;
  if (pf_cuda_compile(&image, cases[0].source, "f", CAPABILITY, &err) ==
      PF_EMISSING) {
    CHECK(err.message && strstr(err.message, "nvidia-cuda-nvrtc"));
    CHECK(!image);
    (void)printf("without the compiler: %s\n", err.message);
  } else {
    test_sources();
  }
  free(image);
  pf_error_clear(&err);
  return check_done();
}
