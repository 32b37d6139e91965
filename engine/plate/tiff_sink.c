/*
 * A TIFF file while it is written. libtiff writes a header, strips, a
 * directory, and then the place of the directory into the header: a buffer
 * makes one call of all that where the image is small, and lets the strips
 * of large ones pass.
 */
#include "engine/plate/tiff_client.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int pf_tiff_sink_init(struct pf_tiff_sink *sink, int fd, size_t cap) {
  *sink = (struct pf_tiff_sink){.fd = fd, .cap = cap};
  sink->buffer = malloc(cap);
  return sink->buffer ? 0 : -1;
}

void pf_tiff_sink_finish(struct pf_tiff_sink *sink) {
  free(sink->buffer);
  sink->buffer = NULL;
}

static int write_at(struct pf_tiff_sink *sink, uint64_t at, const void *bytes,
                    size_t n) {
  size_t done = 0;
  while (done < n && !sink->saved_errno) {
    ssize_t put = pwrite(sink->fd, (const char *)bytes + done, n - done,
                         (off_t)(at + done));
    if (put < 0 && errno == EINTR)
      continue;
    if (put <= 0)
      sink->saved_errno = put < 0 ? errno : ENOSPC;
    else
      done += (size_t)put;
  }
  return sink->saved_errno ? -1 : 0;
}

int pf_tiff_sink_flush(struct pf_tiff_sink *sink) {
  size_t n = sink->len;
  sink->len = 0;
  return write_at(sink, sink->base, sink->buffer, n);
}

/* Whether `n` bytes at `at` overwrite or continue what waits in the buffer. */
static bool fits(const struct pf_tiff_sink *sink, uint64_t at, size_t n) {
  return at >= sink->base && at - sink->base <= sink->len &&
         n <= sink->cap - (size_t)(at - sink->base);
}

static int put(struct pf_tiff_sink *sink, uint64_t at, const void *bytes,
               size_t n) {
  size_t place;
  if (!fits(sink, at, n)) {
    if (pf_tiff_sink_flush(sink) != 0)
      return -1;
    sink->base = at;
    if (n > sink->cap)
      return write_at(sink, at, bytes, n);
  }
  place = (size_t)(at - sink->base);
  memcpy(sink->buffer + place, bytes, n);
  if (sink->len < place + n)
    sink->len = place + n;
  return 0;
}

static tmsize_t sink_write(thandle_t client, void *bytes, tmsize_t n) {
  struct pf_tiff_sink *sink = client;
  if (n < 0 || put(sink, sink->position, bytes, (size_t)n) != 0)
    return -1;
  sink->position += (uint64_t)n;
  if (sink->end < sink->position)
    sink->end = sink->position;
  return n;
}

/* A file that is only written is never read back. */
static tmsize_t sink_read(thandle_t client, void *bytes, tmsize_t n) {
  (void)client;
  (void)bytes;
  (void)n;
  return -1;
}

static toff_t sink_seek(thandle_t client, toff_t offset, int whence) {
  struct pf_tiff_sink *sink = client;
  if (whence == SEEK_CUR)
    offset += sink->position;
  else if (whence == SEEK_END)
    offset += sink->end;
  sink->position = offset;
  return offset;
}

static toff_t sink_size(thandle_t client) {
  struct pf_tiff_sink *sink = client;
  return sink->end;
}

static const struct pf_tiff_procs sink_procs = {sink_read, sink_write,
                                                sink_seek, sink_size};

struct tiff *pf_tiff_sink_open(struct pf_tiff_sink *sink, bool is_big) {
  return pf_tiff_client(is_big ? "w8" : "w", sink, &sink_procs, 0, &sink->log);
}
