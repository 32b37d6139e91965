/*
 * DLPack, given out and taken in: dlpack.h 1.3.
 *
 * The versioned and the legacy struct differ in their heads only; both are
 * filled from and checked as the one DLTensor that they hold.
 */
#include <dlpack/dlpack.h>

#include <stdlib.h>

#include "bridge/array_private.h"
#include "bridge/device_private.h"
#include "plateflow/bridge.h"

struct code_row {
  uint8_t code, bits;
};

/* In the order of enum pf_dtype. */
static const struct code_row codes[] = {
#define XX(name, word, n_bytes, dl_code, bits) {dl_code, bits},
    PF_DTYPE_MAP(XX)
#undef XX
};

/* A tensor that we gave out. */
struct export_versioned {
  DLManagedTensorVersioned tensor;
  struct pf_array *array; /* one reference */
};
struct export_legacy {
  DLManagedTensor tensor;
  struct pf_array *array; /* one reference */
};

static void fill_tensor(DLTensor *tensor, struct pf_array *array) {
  const struct code_row *row = &codes[array->dtype];
  tensor->data = array->size ? array->data : NULL; /* as dlpack.h asks */
  tensor->device.device_type = (DLDeviceType)array->device.type;
  tensor->device.device_id = array->device.index;
  tensor->ndim = array->ndim;
  tensor->dtype = (DLDataType){row->code, row->bits, 1};
  tensor->shape = array->dims;
  tensor->strides = array->dims + array->ndim;
  tensor->byte_offset = array->offset;
}

/* Nobody reads host memory by a stream: its elements must be there. */
static bool is_ready(const struct pf_array *array) {
  return !array->event || array->device.type != PF_DEVICE_HOST ||
         pf_array_wait(array, NULL) == PF_OK;
}

static void delete_versioned(DLManagedTensorVersioned *tensor) {
  struct export_versioned *given = (struct export_versioned *)tensor;
  pf_array_unref(&given->array);
  free(given);
}

static void delete_legacy(DLManagedTensor *tensor) {
  struct export_legacy *given = (struct export_legacy *)tensor;
  pf_array_unref(&given->array);
  free(given);
}

struct DLManagedTensorVersioned *pf_array_to_dlpack(struct pf_array *array) {
  struct export_versioned *given =
      is_ready(array) ? calloc(1, sizeof(*given)) : NULL;
  if (!given)
    return NULL;
  given->array = pf_array_ref(array);
  given->tensor.version.major = DLPACK_MAJOR_VERSION;
  given->tensor.version.minor = DLPACK_MINOR_VERSION;
  given->tensor.deleter = delete_versioned;
  given->tensor.flags = array->read_only ? DLPACK_FLAG_BITMASK_READ_ONLY : 0;
  fill_tensor(&given->tensor.dl_tensor, array);
  return &given->tensor;
}

struct DLManagedTensor *pf_array_to_dlpack_legacy(struct pf_array *array) {
  struct export_legacy *given =
      is_ready(array) ? calloc(1, sizeof(*given)) : NULL;
  if (!given)
    return NULL;
  given->array = pf_array_ref(array);
  given->tensor.deleter = delete_legacy;
  fill_tensor(&given->tensor.dl_tensor, array);
  return &given->tensor;
}

/* A tensor that we took in, until its deleter has run. */
struct taken {
  struct pf_deferred node; /* first: a node is its struct taken */
  DLManagedTensorVersioned *versioned;
  DLManagedTensor *legacy; /* one of the two is set */
};

static void delete_taken(struct pf_deferred *node) {
  struct taken *taken = (struct taken *)node;
  if (taken->versioned && taken->versioned->deleter)
    taken->versioned->deleter(taken->versioned);
  if (taken->legacy && taken->legacy->deleter)
    taken->legacy->deleter(taken->legacy);
  free(taken);
}

/* Our own deleters take no GIL and need not wait for somebody who drains. */
static bool is_ours(const struct taken *taken) {
  return taken->versioned ? taken->versioned->deleter == delete_versioned
                          : taken->legacy->deleter == delete_legacy;
}

static void release_taken(void *owner) {
  struct taken *taken = owner;
  if (is_ours(taken))
    delete_taken(&taken->node);
  else
    pf_deferred_push(&taken->node);
}

static int refuse(struct pf_error *err, const char *what, long long value,
                  const char *possible) {
  return pf_error_set(err, PF_EINVAL,
                      "cannot take a DLPack tensor whose %s is %lld: %s", what,
                      value, possible);
}

static int check_dtype(enum pf_dtype *dtype, const DLDataType *type,
                       struct pf_error *err) {
  *dtype = PF_DTYPE_NONE;
  if (type->lanes != 1)
    return refuse(err, "number of lanes", type->lanes,
                  "only 1 is possible; separate the components first");
  for (int i = 0; i < PF_N_DTYPES; i++)
    if (codes[i].code == type->code && codes[i].bits == type->bits)
      *dtype = (enum pf_dtype)i;
  if (*dtype == PF_DTYPE_NONE)
    return pf_error_set(err, PF_EINVAL,
                        "cannot take a DLPack tensor whose element type has "
                        "code %u and %u bits: convert it to an integer, "
                        "float or bool type first",
                        type->code, type->bits);
  return PF_OK;
}

/* A device of ours that exists, or memory that the CPU reads. */
static int check_device(const DLDevice *device, struct pf_error *err) {
  const struct pf_device here = {(int32_t)device->device_type,
                                 device->device_id};
  const struct pf_device_ops *ops = NULL;
  struct pf_error why = PF_ERROR_INIT;
  int code = PF_OK;
  if (here.type == kDLCPU || here.type == kDLCUDAHost)
    return PF_OK;
  if (!pf_device_ops((enum pf_device_kind)here.type))
    return refuse(err, "device type", here.type,
                  "there are no such devices here; copy it to the host first");
  if (pf_device_find(&ops, here, &why) != PF_OK)
    code = refuse(err, "device type", here.type, why.message);
  pf_error_clear(&why);
  return code;
}

/* A buffer that is no address keeps its offset apart. */
static bool has_offset(const DLTensor *tensor) {
  return tensor->device.device_type == kDLOpenCL;
}

static int check_tensor(struct pf_array_desc *desc, const DLTensor *tensor,
                        struct pf_error *err) {
  int device = (int)tensor->device.device_type, code;
  uintptr_t at = (uintptr_t)tensor->data;
  if ((code = check_device(&tensor->device, err)) != PF_OK)
    return code;
  if ((code = check_dtype(&desc->dtype, &tensor->dtype, err)) != PF_OK)
    return code;
  if (tensor->ndim < 0 || tensor->ndim > PF_MAX_NDIM)
    return refuse(err, "number of dimensions", tensor->ndim,
                  "0 to 8 are possible");
  /* What is NULL stays NULL, so that it is refused where there are elements
   * rather than become an address. */
  if (at && !has_offset(tensor) &&
      __builtin_add_overflow(at, (uintptr_t)tensor->byte_offset, &at))
    return pf_error_set(err, PF_EINVAL,
                        "cannot take a DLPack tensor whose byte_offset %llu "
                        "reaches outside the address space",
                        (unsigned long long)tensor->byte_offset);
  desc->data = (void *)at;
  desc->ndim = tensor->ndim;
  desc->shape = tensor->shape;
  desc->strides = tensor->strides;
  desc->device = (struct pf_device){device, tensor->device.device_id};
  return PF_OK;
}

/* `taken` names the tensor; its copy on the heap lives as long as the array.
 */
static int take(struct pf_array **out, const DLTensor *tensor, bool read_only,
                enum pf_memory_type type, const struct taken *taken,
                struct pf_error *err) {
  struct pf_array_desc desc = {.memory_type = type, .read_only = read_only};
  struct taken *owner = NULL;
  int code = check_tensor(&desc, tensor, err);
  *out = NULL;
  if (code != PF_OK)
    return code;
  owner = malloc(sizeof(*owner));
  if (!owner)
    return pf_error_set(err, PF_ENOMEM, "out of memory");
  *owner = *taken;
  owner->node.release = delete_taken;
  code = pf_array_wrap(out, &desc, release_taken, owner, err);
  if (code != PF_OK)
    free(owner);
  else if (has_offset(tensor))
    (*out)->offset = tensor->byte_offset;
  return code;
}

int pf_array_from_dlpack(struct pf_array **out,
                         struct DLManagedTensorVersioned *tensor,
                         enum pf_memory_type type, struct pf_error *err) {
  struct taken taken = {.versioned = tensor};
  *out = NULL;
  if (!tensor)
    return pf_error_set(err, PF_EINVAL, "there is no DLPack tensor");
  if (tensor->version.major != DLPACK_MAJOR_VERSION)
    return refuse(err, "major version", tensor->version.major,
                  "only 1 is possible");
  return take(out, &tensor->dl_tensor,
              (tensor->flags & DLPACK_FLAG_BITMASK_READ_ONLY) != 0, type,
              &taken, err);
}

int pf_array_from_dlpack_legacy(struct pf_array **out,
                                struct DLManagedTensor *tensor,
                                enum pf_memory_type type,
                                struct pf_error *err) {
  struct taken taken = {.legacy = tensor};
  *out = NULL;
  if (!tensor)
    return pf_error_set(err, PF_EINVAL, "there is no DLPack tensor");
  return take(out, &tensor->dl_tensor, false, type, &taken, err);
}
