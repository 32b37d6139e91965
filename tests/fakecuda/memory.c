/* Memory: of devices, which the host cannot read, and pinned. */
#include "tests/fakecuda/fakecuda.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGE = 4096, GARBAGE = 0xA5 };

static struct region *regions;
static int n_allocations, n_pinned;

static int read_int(const int *value) {
  int n;
  LOCK();
  n = *value;
  UNLOCK();
  return n;
}

int fakecuda_n_allocations(void) {
  return read_int(&n_allocations);
}

int fakecuda_n_pinned(void) {
  return read_int(&n_pinned);
}

struct region *fake_region(const void *at) {
  struct region *region = regions;
  while (region && ((const char *)at < region->address ||
                    (const char *)at >= region->address + region->n_bytes))
    region = region->next;
  return region;
}

void *fake_reach(const void *at, size_t n_bytes) {
  struct region *region = fake_region(at);
  size_t offset;
  if (!region || region->device < 0) {
    fake_violation("%zu bytes at %p are no device memory", n_bytes, at);
    return NULL;
  }
  offset = (size_t)((const char *)at - region->address);
  if (n_bytes > region->n_bytes - offset) {
    fake_violation("%zu bytes at %p reach past the end of their allocation",
                   n_bytes, at);
    return NULL;
  }
  if (region->is_freed)
    fake_violation("%zu bytes at %p are used after they were freed", n_bytes,
                   at);
  return region->mapped + offset;
}

static bool map_twice(struct region *region) {
  int file = memfd_create("fakecuda", MFD_CLOEXEC);
  bool is_mapped = file >= 0 && ftruncate(file, (off_t)region->n_mapped) == 0;
  if (is_mapped) {
    region->address =
        mmap(NULL, region->n_mapped, PROT_NONE, MAP_SHARED, file, 0);
    region->mapped = mmap(NULL, region->n_mapped, PROT_READ | PROT_WRITE,
                          MAP_SHARED, file, 0);
    is_mapped = region->address != MAP_FAILED && region->mapped != MAP_FAILED;
  }
  if (file >= 0)
    (void)close(file);
  return is_mapped;
}

static void unmap(struct region *region) {
  if (region->address && region->address != MAP_FAILED)
    (void)munmap(region->address, region->n_mapped);
  if (region->mapped && region->mapped != MAP_FAILED)
    (void)munmap(region->mapped, region->n_mapped);
  free(region);
}

static struct region *add_region(int device, size_t n_bytes) {
  struct region *region = calloc(1, sizeof(*region));
  if (!region)
    return NULL;
  region->n_bytes = n_bytes;
  region->n_mapped = (n_bytes + PAGE - 1) / PAGE * PAGE;
  region->device = device;
  if (!map_twice(region)) {
    unmap(region);
    return NULL;
  }
  memset(region->mapped, GARBAGE, n_bytes);
  region->next = regions;
  regions = region;
  return region;
}

static void remove_region(struct region *region) {
  struct region **at = &regions;
  while (*at != region)
    at = &(*at)->next;
  *at = region->next;
  fake_devices[region->device].n_used -= region->n_bytes;
  unmap(region);
}

/* -- of devices ------------------------------------------------------------
 */

static int allocate(struct region **out, size_t n_bytes) {
  int result;
  struct device *device = fake_current(&result);
  *out = NULL;
  if (!device)
    return result;
  if (n_bytes == 0)
    return PF_CU_INVALID_VALUE;
  if (fake_fails() || n_bytes > fake_memory ||
      device->n_used > fake_memory - n_bytes)
    return PF_CU_OUT_OF_MEMORY;
  *out = add_region(device->context.device, n_bytes);
  if (!*out)
    return PF_CU_OUT_OF_MEMORY;
  device->n_used += n_bytes;
  n_allocations++;
  return PF_CU_SUCCESS;
}

int cuMemAlloc_v2(pf_cu_address *at, size_t n_bytes) {
  struct region *region = NULL;
  int result;
  LOCK();
  result = allocate(&region, n_bytes);
  *at = region ? (pf_cu_address)(uintptr_t)region->address : 0;
  UNLOCK();
  return result;
}

int cuMemAllocAsync(pf_cu_address *at, size_t n_bytes,
                    struct pf_cu_stream *stream) {
  struct region *region = NULL;
  int result;
  LOCK();
  result = fake_check_stream(stream);
  if (result == PF_CU_SUCCESS)
    result = allocate(&region, n_bytes);
  if (region) {
    fake_tick(stream);
    fake_access(stream, region->address, n_bytes, true);
  }
  *at = region ? (pf_cu_address)(uintptr_t)region->address : 0;
  UNLOCK();
  return result;
}

/* The region that begins at the address, and is not freed yet. */
static struct region *to_free(pf_cu_address at) {
  struct region *region = fake_region((void *)(uintptr_t)at);
  if (region && region->device >= 0 && !region->is_freed &&
      region->address == (char *)(uintptr_t)at)
    return region;
  fake_violation("%p is freed and is no allocation", (void *)(uintptr_t)at);
  return NULL;
}

int cuMemFree_v2(pf_cu_address at) {
  struct region *region = NULL;
  int result;
  LOCK();
  if (fake_current(&result) && !(region = to_free(at)))
    result = PF_CU_INVALID_VALUE;
  if (region) {
    fake_access(NULL, region->address, region->n_bytes, true);
    n_allocations--;
    remove_region(region);
  }
  UNLOCK();
  return result;
}

static void free_late(struct operation *operation) {
  LOCK();
  remove_region(operation->region);
  UNLOCK();
}

int cuMemFreeAsync(pf_cu_address at, struct pf_cu_stream *stream) {
  struct operation operation = {.run = free_late, .always = true};
  int result;
  LOCK();
  result = fake_check_stream(stream);
  if (result == PF_CU_SUCCESS && !(operation.region = to_free(at)))
    result = PF_CU_INVALID_VALUE;
  if (operation.region) {
    fake_tick(stream);
    fake_access(stream, operation.region->address, operation.region->n_bytes,
                true);
    operation.region->is_freed = true;
    n_allocations--;
    if (!fake_queue(stream, &operation))
      result = PF_CU_OUT_OF_MEMORY;
  }
  UNLOCK();
  return result;
}

int cuMemGetInfo_v2(size_t *n_free, size_t *total) {
  int result;
  struct device *device;
  LOCK();
  device = fake_current(&result);
  *total = fake_memory;
  *n_free = device ? fake_memory - device->n_used : 0;
  UNLOCK();
  return result;
}

int cuDeviceGetDefaultMemPool(struct pf_cu_mempool **pool, int device) {
  *pool = (struct pf_cu_mempool *)&fake_devices[device];
  return PF_CU_SUCCESS;
}

int cuMemPoolTrimTo(struct pf_cu_mempool *pool, size_t keep) {
  (void)pool;
  (void)keep;
  return PF_CU_SUCCESS;
}

int cuMemPoolSetAccess(struct pf_cu_mempool *pool,
                       const struct pf_cu_access *access, size_t n) {
  return pool && n == 1 && access->location_type == PF_CU_LOCATION_DEVICE &&
                 access->location_id < fake_n_devices
             ? PF_CU_SUCCESS
             : PF_CU_INVALID_VALUE;
}

/* -- pinned ----------------------------------------------------------------
 */

int cuMemHostAlloc(void **data, size_t n_bytes, unsigned flags) {
  struct region *region = NULL;
  int result;
  LOCK();
  *data = NULL;
  if (fake_current(&result) &&
      (flags != PF_CU_HOST_PORTABLE || n_bytes == 0 || n_bytes % PAGE))
    result = PF_CU_INVALID_VALUE;
  if (result == PF_CU_SUCCESS &&
      (fake_fails() || !(region = calloc(1, sizeof(*region))) ||
       !(*data = aligned_alloc(PAGE, n_bytes))))
    result = PF_CU_OUT_OF_MEMORY;
  if (*data) {
    *region = (struct region){
        .next = regions, .address = *data, .n_bytes = n_bytes, .device = -1};
    regions = region;
    n_pinned++;
  } else {
    free(region);
  }
  UNLOCK();
  return result;
}

int cuMemFreeHost(void *data) {
  struct region **at, *region = NULL;
  int result;
  LOCK();
  for (at = &regions; *at && (*at)->address != data;)
    at = &(*at)->next;
  if (fake_current(&result) && (!*at || (*at)->device >= 0))
    result = PF_CU_INVALID_VALUE;
  if (result == PF_CU_SUCCESS && *at) {
    region = *at;
    *at = region->next;
    fake_access(NULL, data, region->n_bytes, true);
    n_pinned--;
    free(region);
    free(data);
  }
  UNLOCK();
  return result;
}
