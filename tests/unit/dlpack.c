/* bridge/dlpack.c */
#include "plateflow/array.h"
#include "plateflow/bridge.h"
#include "tests/unit/check.h"

#include <dlpack/dlpack.h>
#include <stdlib.h>

static _Alignas(64) char buffer[512];
static int n_deleted;

static void count_deleted(DLManagedTensorVersioned *tensor) {
  (void)tensor;
  n_deleted++;
}

static void count_deleted_legacy(DLManagedTensor *tensor) {
  (void)tensor;
  n_deleted++;
}

/* What a row changes in a good tensor of 3x4 uint16. */
struct change {
  uint32_t major; /* 0: as it is */
  uint64_t flags;
  void *data; /* NULL: as it is */
  bool no_data, no_shape, no_strides, no_deleter;
  int device, device_index;
  int ndim; /* 0: as it is */
  DLDataType dtype;
  int64_t shape[8], strides[8]; /* [0] of 0: as they are */
  uint64_t byte_offset;
};

static const struct in_case {
  struct change change;
  const char *refusal; /* a part of it; NULL: accepted */
  enum pf_dtype dtype;
} in_cases[] = {
    {{0}, NULL, PF_U16},
    {{.no_strides = true}, NULL, PF_U16},
    {{.no_deleter = true}, NULL, PF_U16},
    {{.device = kDLCUDAHost}, NULL, PF_U16},
    {{.byte_offset = 8}, NULL, PF_U16},
    {{.flags = DLPACK_FLAG_BITMASK_READ_ONLY}, NULL, PF_U16},
    {{.flags = ~DLPACK_FLAG_BITMASK_READ_ONLY}, NULL, PF_U16},
    {{.shape = {3, 0}, .no_data = true}, NULL, PF_U16},
    {{.shape = {3, 0}, .no_data = true, .byte_offset = UINT64_MAX},
     NULL,
     PF_U16},
    {{.strides = {1, 3}}, NULL, PF_U16},
    {{.data = buffer + 64, .strides = {-4, -1}}, NULL, PF_U16},
    {{.dtype = {kDLBfloat, 16, 1}}, NULL, PF_BF16},
    {{.dtype = {kDLFloat, 16, 1}}, NULL, PF_F16},
    {{.dtype = {kDLFloat, 32, 1}}, NULL, PF_F32},
    {{.dtype = {kDLFloat, 64, 1}}, NULL, PF_F64},
    {{.dtype = {kDLBool, 8, 1}}, NULL, PF_BOOL},
    {{.dtype = {kDLInt, 8, 1}}, NULL, PF_I8},
    {{.dtype = {kDLInt, 64, 1}}, NULL, PF_I64},
    {{.dtype = {kDLUInt, 64, 1}}, NULL, PF_U64},
    {{.major = 2}, "major version is 2: only 1 is possible", PF_U16},
    {{.major = UINT32_MAX}, "major version is 4294967295", PF_U16},
    {{.device = kDLCUDA, .device_index = 99},
     "device type is 2: there ",
     PF_U16},
    {{.device = kDLOpenCL, .device_index = 99},
     "device type is 4: there ",
     PF_U16},
    {{.device = kDLMetal}, "device type is 8: there are no such", PF_U16},
    {{.device = -1}, "device type is -1", PF_U16},
    {{.dtype = {kDLUInt, 16, 2}}, "number of lanes is 2", PF_U16},
    {{.dtype = {kDLUInt, 12, 1}}, "code 1 and 12 bits", PF_U16},
    {{.dtype = {kDLBool, 1, 1}}, "code 6 and 1 bits", PF_U16},
    {{.dtype = {kDLComplex, 64, 1}}, "code 5 and 64 bits", PF_U16},
    {{.dtype = {kDLFloat8_e4m3, 8, 1}}, "code 8 and 8 bits", PF_U16},
    {{.dtype = {255, 255, 1}}, "code 255 and 255 bits", PF_U16},
    {{.ndim = -1}, "number of dimensions is -1", PF_U16},
    {{.ndim = 9}, "number of dimensions is 9", PF_U16},
    {{.ndim = INT32_MAX}, "number of dimensions is 2147483647", PF_U16},
    {{.no_shape = true}, "without a shape", PF_U16},
    {{.shape = {-3, 4}}, "a size is negative", PF_U16},
    {{.shape = {(int64_t)1 << 40, (int64_t)1 << 40}},
     "size overflows",
     PF_U16},
    {{.shape = {1, INT64_MAX}}, "size overflows", PF_U16},
    {{.strides = {INT64_MAX, 1}}, "strides overflow", PF_U16},
    {{.strides = {4, INT64_MIN}}, "strides overflow", PF_U16},
    {{.no_data = true}, "its data pointer is NULL", PF_U16},
    {{.no_data = true, .byte_offset = 64}, "its data pointer is NULL", PF_U16},
    {{.data = buffer + 1}, "not aligned", PF_U16},
    {{.byte_offset = 3}, "not aligned", PF_U16},
    {{.data = buffer + 4, .dtype = {kDLFloat, 64, 1}}, "not aligned", PF_F64},
    {{.byte_offset = UINT64_MAX - 1},
     "byte_offset 18446744073709551614",
     PF_U16},
    {{.byte_offset = INT64_MAX - 1, .data = (void *)(UINTPTR_MAX / 2 + 1)},
     "outside the address space",
     PF_U16},
};

/* A tensor and the arrays that it points to. */
struct tensor {
  DLManagedTensorVersioned managed;
  int64_t shape[8], strides[8];
};

static void make_tensor(struct tensor *tensor, const struct change *change) {
  DLTensor *t = &tensor->managed.dl_tensor;
  const int64_t shape[8] = {3, 4}, strides[8] = {4, 1};
  memset(tensor, 0, sizeof(*tensor));
  memcpy(tensor->shape, change->shape[0] ? change->shape : shape,
         sizeof(shape));
  memcpy(tensor->strides, change->strides[0] ? change->strides : strides,
         sizeof(strides));
  tensor->managed.version.major = change->major ? change->major : 1;
  tensor->managed.version.minor = 99;
  tensor->managed.flags = change->flags;
  tensor->managed.deleter = change->no_deleter ? NULL : count_deleted;
  t->data = change->no_data ? NULL : change->data ? change->data : buffer;
  t->device.device_type =
      (DLDeviceType)(change->device ? change->device : kDLCPU);
  t->device.device_id = change->device_index;
  t->ndim = change->ndim ? change->ndim : 2;
  t->dtype = change->dtype.bits ? change->dtype : (DLDataType){kDLUInt, 16, 1};
  t->shape = change->no_shape ? NULL : tensor->shape;
  t->strides = change->no_strides ? NULL : tensor->strides;
  t->byte_offset = change->byte_offset;
}

/* The caller keeps what was refused; what was taken is deleted once, by the
 * drain. */
static void check_deleted(const struct in_case *row, struct pf_array **array,
                          int code) {
  int n_before = n_deleted;
  CHECK_INT(code, row->refusal ? PF_EINVAL : PF_OK);
  CHECK_INT(*array != NULL, !row->refusal);
  pf_array_unref(array);
  CHECK_INT(n_deleted, n_before);
  CHECK_INT(pf_deferred_drain(), !row->refusal);
  CHECK_INT(n_deleted - n_before,
            !row->refusal && !row->change.no_deleter ? 1 : 0);
}

static void check_taken(const struct in_case *row,
                        const struct pf_array *array,
                        const struct tensor *tensor) {
  const DLTensor *t = &tensor->managed.dl_tensor;
  CHECK_INT(pf_array_dtype(array), row->dtype);
  CHECK_INT(pf_array_memory_type(array), PF_MEM_TORCH);
  CHECK_INT(pf_array_ndim(array), 2);
  CHECK(memcmp(pf_array_shape(array), tensor->shape, 16) == 0);
  CHECK(row->change.no_strides ||
        memcmp(pf_array_strides(array), tensor->strides, 16) == 0);
  CHECK(!t->data || pf_array_data(array) == (char *)t->data + t->byte_offset);
  CHECK_INT(pf_array_is_read_only(array), row->change.flags & 1);
  CHECK_INT(pf_array_device(array).type, t->device.device_type);
}

static void test_in(void) {
  for (size_t i = 0; i < sizeof(in_cases) / sizeof(in_cases[0]); i++) {
    const struct in_case *row = &in_cases[i];
    struct pf_error err = PF_ERROR_INIT;
    struct pf_array *array = NULL;
    struct tensor tensor;
    int code, n_failed = check_failures;
    make_tensor(&tensor, &row->change);
    code = pf_array_from_dlpack(&array, &tensor.managed, PF_MEM_TORCH, &err);
    if (array)
      check_taken(row, array, &tensor);
    check_deleted(row, &array, code);
    if (row->refusal)
      CHECK(err.message && strstr(err.message, row->refusal));
    if (check_failures > n_failed)
      (void)printf("  in row %zu: %s\n", i, err.message);
    pf_error_clear(&err);
  }
}

static void test_in_legacy(void) {
  for (size_t i = 0; i < sizeof(in_cases) / sizeof(in_cases[0]); i++) {
    const struct in_case *row = &in_cases[i];
    struct pf_array *array = NULL;
    struct tensor tensor;
    DLManagedTensor legacy = {0};
    int code;
    if (row->change.major || row->change.flags)
      continue; /* the legacy struct has neither */
    make_tensor(&tensor, &row->change);
    legacy.dl_tensor = tensor.managed.dl_tensor;
    legacy.deleter = row->change.no_deleter ? NULL : count_deleted_legacy;
    code = pf_array_from_dlpack_legacy(&array, &legacy, PF_MEM_JAX, NULL);
    CHECK(!array || !pf_array_is_read_only(array));
    check_deleted(row, &array, code);
  }
}

static void test_out(void) {
  struct pf_array *array = NULL, *plane = NULL, *back = NULL;
  struct pf_error err = PF_ERROR_INIT;
  int64_t shape[3] = {2, 3, 4};
  DLManagedTensorVersioned *tensor = NULL;
  DLManagedTensor *legacy = NULL;
  CHECK_INT(pf_array_create(&array, PF_BF16, 3, shape, &err), PF_OK);
  CHECK_INT(pf_array_plane(&plane, array, 1, &err), PF_OK);
  pf_array_set_read_only(plane);
  tensor = pf_array_to_dlpack(plane);
  CHECK_INT(tensor->version.major, 1);
  CHECK_INT(tensor->flags, DLPACK_FLAG_BITMASK_READ_ONLY);
  CHECK(tensor->dl_tensor.data == pf_array_data(plane));
  CHECK_INT(tensor->dl_tensor.dtype.code, kDLBfloat);
  CHECK_INT(tensor->dl_tensor.dtype.lanes, 1);
  CHECK_INT(tensor->dl_tensor.ndim, 2);
  CHECK_INT(tensor->dl_tensor.shape[0], 3);
  CHECK_INT(tensor->dl_tensor.strides[0], 4);
  CHECK_INT(tensor->dl_tensor.device.device_type, kDLCPU);
  /* The tensor holds the storage alone, and comes back without a queue. */
  pf_array_unref(&plane);
  pf_array_unref(&array);
  CHECK_INT(pf_array_from_dlpack(&back, tensor, PF_MEM_NUMPY, &err), PF_OK);
  CHECK(pf_array_is_read_only(back));
  pf_array_unref(&back);
  CHECK_INT(pf_deferred_drain(), 0);

  shape[1] = 0;
  CHECK_INT(pf_array_create(&array, PF_U8, 3, shape, &err), PF_OK);
  legacy = pf_array_to_dlpack_legacy(array);
  CHECK(!legacy->dl_tensor.data);
  CHECK(!pf_array_is_writable(array));
  CHECK_INT(pf_array_from_dlpack_legacy(&back, legacy, PF_MEM_JAX, &err),
            PF_OK);
  pf_array_unref(&back);
  CHECK(pf_array_is_writable(array));
  pf_array_unref(&array);
}

int main(void) {
  struct pf_array *array = NULL;
  CHECK_INT(pf_array_from_dlpack(&array, NULL, PF_MEM_NUMPY, NULL), PF_EINVAL);
  CHECK_INT(pf_array_from_dlpack_legacy(&array, NULL, PF_MEM_JAX, NULL),
            PF_EINVAL);
  test_in();
  test_in_legacy();
  test_out();
  return check_done();
}
