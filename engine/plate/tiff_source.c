/*
 * The bytes of a TIFF file, for libtiff and for our own checks.
 *
 * pread() and no memory map: a file on a share that shrinks while it is read
 * is then an error of this file and not a SIGBUS of the run. A window is read
 * ahead, since directories are read in pieces of a few bytes.
 */
#include "engine/plate/tiff_client.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* libtiff allocates no more at once than the file's size and this. */
#define MEMORY_SLACK ((uint64_t)64 << 20)

/* Bytes read; fewer than `n` at the end of the file or after an error. */
static size_t read_at(int fd, uint64_t at, void *bytes, size_t n) {
  size_t done = 0;
  while (done < n) {
    ssize_t got =
        pread(fd, (char *)bytes + done, n - done, (off_t)(at + done));
    if (got < 0 && errno == EINTR)
      continue;
    if (got <= 0)
      break;
    done += (size_t)got;
  }
  return done;
}

static bool in_window(const struct pf_tiff *tiff, uint64_t at, size_t n) {
  return at >= tiff->window_at && at - tiff->window_at <= tiff->window_len &&
         n <= tiff->window_len - (size_t)(at - tiff->window_at);
}

bool pf_tiff_bytes(struct pf_tiff *tiff, uint64_t at, void *bytes, size_t n) {
  uint64_t size = tiff->identity.size;
  if (at > size || n > size - at)
    return false;
  if (!in_window(tiff, at, n)) {
    if (n > tiff->window_cap)
      return read_at(tiff->fd, at, bytes, n) == n;
    tiff->window_at = at;
    tiff->window_len = read_at(tiff->fd, at, tiff->window, tiff->window_cap);
    if (n > tiff->window_len)
      return false;
  }
  memcpy(bytes, tiff->window + (at - tiff->window_at), n);
  return true;
}

bool pf_tiff_number(struct pf_tiff *tiff, uint64_t at, unsigned n_bytes,
                    uint64_t *value) {
  unsigned char bytes[8];
  uint64_t number = 0;
  *value = 0;
  if (n_bytes > sizeof(bytes) || !pf_tiff_bytes(tiff, at, bytes, n_bytes))
    return false;
  for (unsigned i = 0; i < n_bytes; i++)
    number = number << 8 | bytes[tiff->is_big_endian ? i : n_bytes - 1 - i];
  *value = number;
  return true;
}

/* libtiff asks for more than there is where a file lies; it gets the rest. */
static tmsize_t source_read(thandle_t client, void *bytes, tmsize_t n) {
  struct pf_tiff *tiff = client;
  uint64_t size = tiff->identity.size, left;
  left = tiff->position < size ? size - tiff->position : 0;
  if (n < 0)
    return -1;
  if ((uint64_t)n > left)
    n = (tmsize_t)left;
  if (!pf_tiff_bytes(tiff, tiff->position, bytes, (size_t)n))
    return -1;
  tiff->position += (uint64_t)n;
  return n;
}

static tmsize_t source_write(thandle_t client, void *bytes, tmsize_t n) {
  (void)client;
  (void)bytes;
  (void)n;
  return -1;
}

static toff_t source_seek(thandle_t client, toff_t offset, int whence) {
  struct pf_tiff *tiff = client;
  if (whence == SEEK_CUR)
    offset += tiff->position;
  else if (whence == SEEK_END)
    offset += tiff->identity.size;
  tiff->position = offset;
  return offset;
}

static toff_t source_size(thandle_t client) {
  struct pf_tiff *tiff = client;
  return tiff->identity.size;
}

static const struct pf_tiff_procs source_procs = {source_read, source_write,
                                                  source_seek, source_size};

int pf_tiff_attach(struct pf_tiff *tiff, struct pf_error *err) {
  uint64_t limit = tiff->identity.size + MEMORY_SLACK;
  /* Read; the header alone; no map; strips as they are in the file. */
  tiff->handle =
      pf_tiff_client("rhmc", tiff, &source_procs, limit, &tiff->log);
  if (!tiff->handle)
    return pf_tiff_fail(tiff, 0, err, "its header is damaged (%s)",
                        tiff->log.text);
  return PF_OK;
}
