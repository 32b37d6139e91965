/*
 * CUDA's memory. Blocks come from the driver's stream-ordered allocator where
 * the card has one, which frameworks can share, through the bridge's pool.
 *
 * Allocations and frees go through a stream of their own that never has work
 * to wait for: a new block is there for every stream at once, and a freed one
 * is only given back after the event of its last use.
 */
#include <stdlib.h>
#include <string.h>

#include "bridge/cuda_private.h"

/* -- blocks ----------------------------------------------------------------
 */

static int take_ordered(struct pf_cuda_device *device, pf_cu_address *at,
                        size_t n_bytes) {
  int result = pf_cu.cuMemAllocAsync(at, n_bytes, device->memory_stream);
  if (result == PF_CU_OUT_OF_MEMORY &&
      pf_cu.cuStreamSynchronize(device->memory_stream) == PF_CU_SUCCESS &&
      pf_cu.cuMemPoolTrimTo(device->mempool, 0) == PF_CU_SUCCESS)
    result = pf_cu.cuMemAllocAsync(at, n_bytes, device->memory_stream);
  return result == PF_CU_SUCCESS
             ? pf_cu.cuStreamSynchronize(device->memory_stream)
             : result;
}

static int take(int index, size_t n_bytes, void **data, struct pf_error *err) {
  struct pf_cuda_scope scope;
  pf_cu_address at = 0;
  int code = pf_cuda_enter(&scope, index, err);
  if (code != PF_OK)
    return code;
  code = pf_cuda_check(scope.device,
                       scope.device->mempool
                           ? take_ordered(scope.device, &at, n_bytes)
                           : pf_cu.cuMemAlloc(&at, n_bytes),
                       n_bytes, "allocate", err);
  pf_cuda_leave(&scope);
  *data = (void *)(uintptr_t)at; /* one address space for host and device */
  return code;
}

/* On a lost card there is nothing to give back to. */
static void give(int index, void *data, size_t n_bytes) {
  struct pf_cuda_scope scope;
  const pf_cu_address at = (uintptr_t)data;
  (void)n_bytes;
  if (pf_cuda_enter(&scope, index, NULL) != PF_OK)
    return;
  if (scope.device->mempool)
    (void)pf_cu.cuMemFreeAsync(at, scope.device->memory_stream);
  else
    (void)pf_cu.cuMemFree(at);
  pf_cuda_leave(&scope);
}

static bool has_mempools(const struct pf_cuda_device *device) {
  int has = 0;
  return pf_cu.cuMemAllocAsync && pf_cu.cuMemFreeAsync &&
         pf_cu.cuDeviceGetDefaultMemPool && pf_cu.cuMemPoolTrimTo &&
         pf_cu.cuDeviceGetAttribute(&has, PF_CU_HAS_MEMPOOLS,
                                    device->handle) == PF_CU_SUCCESS &&
         has;
}

/* Half of the card may wait in the pool to be used again. */
void pf_cuda_memory_open(struct pf_cuda_device *device) {
  const struct pf_device_pool pool =
      PF_DEVICE_POOL_INIT(&pf_device_cuda_ops, device->index, take, give);
  size_t total = 0;
  device->pool = pool;
  if (pf_cu.cuDeviceTotalMem(&total, device->handle) == PF_CU_SUCCESS) {
    device->pool.total = total;
    device->pool.keep = total / 2;
  }
  if (has_mempools(device) &&
      pf_cu.cuStreamCreate(&device->memory_stream,
                           PF_CU_STREAM_NON_BLOCKING) == PF_CU_SUCCESS &&
      pf_cu.cuDeviceGetDefaultMemPool(&device->mempool, device->handle) !=
          PF_CU_SUCCESS)
    device->mempool = NULL;
}

int pf_cuda_alloc(int index, size_t n_bytes, struct pf_stream *stream,
                  void **data, struct pf_error *err) {
  struct pf_cuda_scope scope;
  int code = pf_device_check_limit(err);
  *data = NULL;
  if (code != PF_OK || (code = pf_cuda_enter(&scope, index, err)) != PF_OK)
    return code;
  if (!stream)
    code = pf_stream_default(&stream, &pf_device_cuda_ops, index, err);
  if (code == PF_OK)
    code =
        pf_device_pool_alloc(&scope.device->pool, n_bytes, stream, data, err);
  pf_cuda_leave(&scope);
  return code;
}

void pf_cuda_free(int index, void *data, size_t n_bytes,
                  struct pf_event *last) {
  struct pf_cuda_device *device = pf_cuda_device(index, NULL);
  if (!device || !data)
    return;
  if (atomic_load(&device->is_dead)) /* nobody gets it any more */
    pf_device_pool_discard(&device->pool, data, n_bytes);
  else
    pf_device_pool_free(&device->pool, data, n_bytes, last);
}

void pf_cuda_clear(int index) {
  struct pf_cuda_scope scope;
  if (pf_cuda_enter(&scope, index, NULL) != PF_OK)
    return;
  pf_device_pool_clear(&scope.device->pool);
  pf_cuda_pinned_clear();
  if (scope.device->mempool) {
    (void)pf_cu.cuStreamSynchronize(scope.device->memory_stream);
    (void)pf_cu.cuMemPoolTrimTo(scope.device->mempool, 0);
  }
  pf_cuda_leave(&scope);
}

int pf_cuda_memory_info(int index, struct pf_memory_info *out,
                        struct pf_error *err) {
  struct pf_cuda_scope scope;
  size_t n_free = 0, total = 0;
  int code = pf_cuda_enter(&scope, index, err);
  memset(out, 0, sizeof(*out));
  if (code != PF_OK)
    return code;
  code = pf_cuda_check(scope.device, pf_cu.cuMemGetInfo(&n_free, &total), 0,
                       "ask for the memory", err);
  pf_cuda_leave(&scope);
  if (code != PF_OK)
    return code;
  pf_device_pool_count(&scope.device->pool, &out->used, &out->cached);
  out->total = total;
  out->free = n_free;
  out->limit = pf_device_limit();
  if (out->limit && out->limit < out->total)
    out->total = out->limit;
  if (out->limit) {
    uint64_t left = out->limit > out->used ? out->limit - out->used : 0;
    if (left < out->free)
      out->free = left;
  }
  return PF_OK;
}

/* -- copies ----------------------------------------------------------------
 */

/* What the copies share: the context and the stream. */
struct queueing {
  struct pf_cuda_scope scope;
  struct pf_cu_stream *stream;
};

/* A stream works in the context that it was made in. */
static int start(struct queueing *queueing, int index,
                 struct pf_stream *stream, struct pf_error *err) {
  int code = PF_OK;
  if (!stream)
    code = pf_stream_default(&stream, &pf_device_cuda_ops, index, err);
  if (code != PF_OK)
    return code;
  queueing->stream = stream->handle;
  return pf_cuda_enter(&queueing->scope, stream->device.index, err);
}

static int finish(struct queueing *queueing, int result,
                  struct pf_error *err) {
  int code = pf_cuda_check(queueing->scope.device, result, 0, "copy", err);
  pf_cuda_leave(&queueing->scope);
  return code;
}

static pf_cu_address address(const void *data, size_t offset) {
  return (pf_cu_address)(uintptr_t)data + offset;
}

int pf_cuda_to_device(int index, void *to, size_t to_offset, const void *from,
                      size_t n_bytes, struct pf_stream *stream,
                      struct pf_error *err) {
  struct queueing queueing;
  int code = n_bytes ? start(&queueing, index, stream, err) : PF_OK;
  if (code != PF_OK || n_bytes == 0)
    return code;
  return finish(&queueing,
                pf_cu.cuMemcpyHtoDAsync(address(to, to_offset), from, n_bytes,
                                        queueing.stream),
                err);
}

int pf_cuda_to_host(int index, void *to, const void *from, size_t from_offset,
                    size_t n_bytes, struct pf_stream *stream,
                    struct pf_error *err) {
  struct queueing queueing;
  int code = n_bytes ? start(&queueing, index, stream, err) : PF_OK;
  if (code != PF_OK || n_bytes == 0)
    return code;
  return finish(&queueing,
                pf_cu.cuMemcpyDtoHAsync(to, address(from, from_offset),
                                        n_bytes, queueing.stream),
                err);
}

int pf_cuda_within(int index, void *to, size_t to_offset, const void *from,
                   size_t from_offset, size_t n_bytes,
                   struct pf_stream *stream, struct pf_error *err) {
  struct queueing queueing;
  int code = n_bytes ? start(&queueing, index, stream, err) : PF_OK;
  if (code != PF_OK || n_bytes == 0)
    return code;
  return finish(&queueing,
                pf_cu.cuMemcpyDtoDAsync(address(to, to_offset),
                                        address(from, from_offset), n_bytes,
                                        queueing.stream),
                err);
}

/*
 * Let `to` reach the memory of `from` where the cards can: the copy is then
 * direct, else the driver goes over the host. Asked for again each time, which
 * costs a microsecond and keeps no state; refusals change nothing.
 */
static int enable_peer(int to, int from, struct pf_error *err) {
  struct pf_cuda_scope source, target;
  struct pf_cu_access access = {.location_type = PF_CU_LOCATION_DEVICE,
                                .flags = PF_CU_ACCESS_READ_WRITE};
  int can = 0, code = pf_cuda_enter(&source, from, err);
  if (code != PF_OK)
    return code;
  pf_cuda_leave(&source);
  if ((code = pf_cuda_enter(&target, to, err)) != PF_OK)
    return code;
  access.location_id = target.device->handle;
  if (pf_cu.cuDeviceCanAccessPeer(&can, target.device->handle,
                                  source.device->handle) == PF_CU_SUCCESS &&
      can) {
    (void)pf_cu.cuCtxEnablePeerAccess(source.device->context, 0);
    if (source.device->mempool && pf_cu.cuMemPoolSetAccess)
      (void)pf_cu.cuMemPoolSetAccess(source.device->mempool, &access, 1);
  }
  pf_cuda_leave(&target);
  return PF_OK;
}

int pf_cuda_peer(int to_index, void *to, int from_index, const void *from,
                 size_t n_bytes, struct pf_stream *stream,
                 struct pf_error *err) {
  struct queueing queueing;
  int code = n_bytes ? enable_peer(to_index, from_index, err) : PF_OK;
  if (code != PF_OK || n_bytes == 0 ||
      (code = start(&queueing, to_index, stream, err)) != PF_OK)
    return code;
  return finish(&queueing,
                pf_cu.cuMemcpyPeerAsync(
                    address(to, 0), pf_cuda_device(to_index, NULL)->context,
                    address(from, 0),
                    pf_cuda_device(from_index, NULL)->context, n_bytes,
                    queueing.stream),
                err);
}
