/* The driver itself: start, devices, contexts, and how it fails. */
#include "tests/fakecuda/fakecuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

pthread_mutex_t fake_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t fake_changed = PTHREAD_COND_INITIALIZER;
struct device fake_devices[MAX_DEVICES];
int fake_n_devices = -1; /* not started */
size_t fake_memory;

static uint64_t random_state;
static unsigned least_delay, delay = 200;
static int n_asked, fail_at; /* calls for memory since; which fails */
static bool fail_for_good;
static bool is_fast_first; /* numbered the wrong way round, as the driver's
                              default may be */

enum { MAX_DEPTH = 16 };
static _Thread_local struct pf_cu_context *stack[MAX_DEPTH];
static _Thread_local int depth;

unsigned long fake_number(const char *variable, unsigned long otherwise) {
  const char *text = getenv(variable);
  return text && *text ? strtoul(text, NULL, 10) : otherwise;
}

unsigned fake_random(unsigned n) {
  random_state ^= random_state << 13;
  random_state ^= random_state >> 7;
  random_state ^= random_state << 17;
  return n ? (unsigned)(random_state >> 33) % n : 0;
}

unsigned fake_delay(void) {
  return least_delay + fake_random(delay - least_delay + 1);
}

bool fake_fails(void) {
  n_asked++;
  return fail_at &&
         (n_asked == fail_at || (fail_for_good && n_asked > fail_at));
}

int fakecuda_fail(int n, int for_good) {
  int counted;
  LOCK();
  counted = n_asked;
  n_asked = 0;
  fail_at = n;
  fail_for_good = for_good != 0;
  UNLOCK();
  return counted;
}

void fakecuda_set_delay(unsigned least, unsigned most) {
  LOCK();
  least_delay = least;
  delay = most;
  UNLOCK();
}

/* "3" or "3+": that one, or that one and all later ones. */
static void read_fail(void) {
  const char *text = getenv("FAKECUDA_OOM");
  fail_at = (int)fake_number("FAKECUDA_OOM", 0);
  fail_for_good = text && strchr(text, '+') != NULL;
}

static void start(void) {
  const char *order = getenv("CUDA_DEVICE_ORDER");
  fake_n_devices = (int)fake_number("FAKECUDA_DEVICES", 1);
  if (fake_n_devices > MAX_DEVICES)
    fake_n_devices = MAX_DEVICES;
  fake_memory = fake_number("FAKECUDA_MEMORY", 256UL << 20);
  random_state = fake_number("FAKECUDA_SEED", 1) * 0x9E3779B97F4A7C15u + 1;
  delay = (unsigned)fake_number("FAKECUDA_DELAY", delay);
  fakecuda_lose((int)fake_number("FAKECUDA_LOST", 0));
  LOCK();
  read_fail();
  UNLOCK();
  is_fast_first = !order || strcmp(order, "PCI_BUS_ID") != 0;
  for (int i = 0; i < fake_n_devices; i++)
    fake_devices[i].context.device = i;
}

int cuInit(unsigned flags) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  (void)pthread_once(&once, start);
  if (flags)
    return PF_CU_INVALID_VALUE;
  return fake_n_devices ? PF_CU_SUCCESS : PF_CU_NO_DEVICE;
}

int cuDriverGetVersion(int *version) {
  *version = 13000;
  return PF_CU_SUCCESS;
}

int cuGetErrorString(int result, const char **text) {
#define XX(name, value, is_lost) {value, #name},
  static const struct {
    int value;
    const char *text;
  } rows[] = { PF_CU_RESULT_MAP(XX) };
#undef XX
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
    if (rows[i].value == result) {
      *text = rows[i].text;
      return PF_CU_SUCCESS;
    }
  *text = NULL;
  return PF_CU_INVALID_VALUE;
}

/* -- devices ---------------------------------------------------------------
 */

static bool is_device(int device) {
  return device >= 0 && device < fake_n_devices;
}

int cuDeviceGetCount(int *n) {
  *n = fake_n_devices;
  return fake_n_devices < 0 ? PF_CU_NOT_INITIALIZED : PF_CU_SUCCESS;
}

int cuDeviceGet(int *device, int ordinal) {
  *device = ordinal;
  return is_device(ordinal) ? PF_CU_SUCCESS : PF_CU_INVALID_DEVICE;
}

int cuDeviceGetName(char *name, int size, int device) {
  if (!is_device(device))
    return PF_CU_INVALID_DEVICE;
  (void)snprintf(name, (size_t)size, "stand-in %d", device);
  return PF_CU_SUCCESS;
}

int cuDeviceGetPCIBusId(char *id, int size, int device) {
  if (!is_device(device))
    return PF_CU_INVALID_DEVICE;
  (void)snprintf(id, (size_t)size, "0000:%02x:00.0",
                 1 + (is_fast_first ? fake_n_devices - 1 - device : device));
  return PF_CU_SUCCESS;
}

int cuDeviceTotalMem_v2(size_t *n_bytes, int device) {
  *n_bytes = fake_memory;
  return is_device(device) ? PF_CU_SUCCESS : PF_CU_INVALID_DEVICE;
}

int cuDeviceGetAttribute(int *value, int attribute, int device) {
  if (!is_device(device))
    return PF_CU_INVALID_DEVICE;
  *value = 0;
  if (attribute == PF_CU_CAPABILITY_MAJOR)
    *value = 9;
  if (attribute == PF_CU_HAS_MEMPOOLS)
    *value = fake_number("FAKECUDA_POOLS", 1) != 0;
  return PF_CU_SUCCESS;
}

int cuDeviceCanAccessPeer(int *can, int device, int peer) {
  *can = device != peer;
  return is_device(device) && is_device(peer) ? PF_CU_SUCCESS
                                              : PF_CU_INVALID_DEVICE;
}

/* -- contexts --------------------------------------------------------------
 */

int cuDevicePrimaryCtxRetain(struct pf_cu_context **context, int device) {
  *context = NULL;
  if (!is_device(device))
    return PF_CU_INVALID_DEVICE;
  *context = &fake_devices[device].context;
  return PF_CU_SUCCESS;
}

int cuCtxGetCurrent(struct pf_cu_context **context) {
  *context = depth ? stack[depth - 1] : NULL;
  return PF_CU_SUCCESS;
}

int cuCtxPushCurrent_v2(struct pf_cu_context *context) {
  if (depth == MAX_DEPTH || !context)
    return PF_CU_INVALID_CONTEXT;
  stack[depth++] = context;
  return PF_CU_SUCCESS;
}

int cuCtxPopCurrent_v2(struct pf_cu_context **context) {
  if (depth == 0)
    return PF_CU_INVALID_CONTEXT;
  *context = stack[--depth];
  return PF_CU_SUCCESS;
}

struct device *fake_current(int *result) {
  struct device *device = NULL;
  *result = PF_CU_INVALID_CONTEXT;
  if (depth == 0)
    return NULL;
  device = &fake_devices[stack[depth - 1]->device];
  *result = device->is_lost ? PF_CU_ILLEGAL_ADDRESS : PF_CU_SUCCESS;
  return device->is_lost ? NULL : device;
}

int cuCtxEnablePeerAccess(struct pf_cu_context *peer, unsigned flags) {
  int result = PF_CU_SUCCESS;
  LOCK();
  if (fake_current(&result) && (!peer || flags))
    result = PF_CU_INVALID_VALUE;
  UNLOCK();
  return result;
}
