/*
 * Who may touch what when. Each stream counts its operations and knows, in a
 * vector clock, which operations of the others are over before its next one:
 * by an event that it waited for, or because the host waited and queued after
 * that. An access is in order if all that it conflicts with are known.
 *
 * The clocks follow from the order of the calls alone, so that a missing wait
 * is seen even when the work happened to run in time.
 */
#include "tests/fakecuda/fakecuda.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { MAX_TOLD = 32, TEXT = 256 };

struct clock fake_host;
static struct access *accesses; /* that some stream may not know of */
static char told[MAX_TOLD][TEXT];
static int n_violations;

__attribute__((destructor)) static void tell(void) {
  LOCK();
  for (int i = 0; i < n_violations && i < MAX_TOLD; i++)
    (void)fprintf(stderr, "fakecuda: %s\n", told[i]);
  if (n_violations)
    (void)fprintf(stderr, "fakecuda: %d accesses that no event orders\n",
                  n_violations);
  UNLOCK();
}

int fakecuda_violations(void) {
  int n;
  LOCK();
  n = n_violations;
  UNLOCK();
  return n;
}

const char *fakecuda_violation(int i) {
  return i >= 0 && i < fakecuda_violations() && i < MAX_TOLD ? told[i] : NULL;
}

void fakecuda_forget(void) {
  LOCK();
  n_violations = 0;
  UNLOCK();
}

void fake_violation(const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  if (n_violations < MAX_TOLD)
    (void)vsnprintf(told[n_violations], TEXT, fmt, args);
  va_end(args);
  n_violations++;
}

void fake_join(struct clock *into, const struct clock *other) {
  for (int i = 0; i < MAX_CLOCKS; i++)
    if (into->at[i] < other->at[i])
      into->at[i] = other->at[i];
}

void fake_tick(struct pf_cu_stream *stream) {
  fake_join(&stream->clock, &fake_host);
  stream->clock.at[stream->number]++;
}

static void name_stream(char *text, size_t size, int number) {
  if (number)
    (void)snprintf(text, size, "stream %d", number);
  else
    (void)snprintf(text, size, "the host");
}

static void tell_conflict(const struct access *now,
                          const struct access *earlier) {
  char a[32], b[32];
  name_stream(a, sizeof(a), now->stream);
  name_stream(b, sizeof(b), earlier->stream);
  fake_violation("%s %s %zu bytes at %p that %s %s, and does not wait for it",
                 a, now->writes ? "writes or frees" : "reads",
                 (size_t)(now->end - now->first), (void *)now->first, b,
                 earlier->writes ? "writes" : "reads");
}

/* What the host knows is known to all that it queues from now on. */
static bool is_history(const struct access *access) {
  return access->time <= fake_host.at[access->stream];
}

static bool covers(const struct access *now, const struct access *earlier) {
  return now->stream == earlier->stream && now->writes >= earlier->writes &&
         now->first <= earlier->first && now->end >= earlier->end;
}

void fake_access(struct pf_cu_stream *stream, const void *at, size_t n_bytes,
                 bool writes) {
  const struct clock *clock = stream ? &stream->clock : &fake_host;
  const int number = stream ? stream->number : 0;
  struct access now = {.first = (uintptr_t)at,
                       .end = (uintptr_t)at + n_bytes,
                       .stream = number,
                       .time = clock->at[number],
                       .writes = writes};
  struct access *kept = NULL;
  for (struct access **at_access = &accesses; *at_access;) {
    struct access *earlier = *at_access;
    if (earlier->first < now.end && now.first < earlier->end &&
        (earlier->writes || writes) &&
        earlier->time > clock->at[earlier->stream])
      tell_conflict(&now, earlier);
    if (is_history(earlier) || covers(&now, earlier)) {
      *at_access = earlier->next;
      free(earlier);
    } else {
      at_access = &earlier->next;
    }
  }
  kept = number && n_bytes ? malloc(sizeof(*kept)) : NULL;
  if (kept) {
    *kept = now;
    kept->next = accesses;
    accesses = kept;
  }
}
