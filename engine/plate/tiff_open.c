/* Opening a TIFF file, its header, its messages: see engine/plate/tiff.h. */
#include "engine/plate/tiff_client.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bridge/buf.h"

static int fail_with(const char *path, uint32_t page, struct pf_error *err,
                     enum pf_code code, const char *fmt, va_list args) {
  struct pf_buf text = {0};
  if (!err || err->code != PF_OK)
    return (int)code;
  pf_buf_str(&text, "cannot read ");
  if (page)
    pf_buf_printf(&text, "page %u of ", page);
  pf_buf_name(&text, path);
  pf_buf_str(&text, ": ");
  pf_buf_vprintf(&text, fmt, args);
  (void)pf_error_set(err, code, "%s", pf_buf_text(&text));
  pf_error_at_file(err, path, 0, 0);
  pf_buf_free(&text);
  return (int)code;
}

static int PF_PRINTF(4, 5) fail(const char *path, enum pf_code code,
                                struct pf_error *err, const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  (void)fail_with(path, 0, err, code, fmt, args);
  va_end(args);
  return (int)code;
}

int pf_tiff_fail(const struct pf_tiff *tiff, uint32_t page,
                 struct pf_error *err, const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  (void)fail_with(tiff->path, page, err, PF_EREAD, fmt, args);
  va_end(args);
  return PF_EREAD;
}

static const char *kind_of(mode_t mode) {
  switch (mode & S_IFMT) {
  case S_IFDIR:
    return "it is a folder";
  case S_IFIFO:
    return "it is a pipe, not a file";
  case S_IFSOCK:
    return "it is a socket, not a file";
  default:
    return "it is a device, not a file";
  }
}

/* Size and time of an open file, if it is a regular one with bytes in it. */
static int identify(int fd, const char *path,
                    struct pf_tiff_identity *identity, struct pf_error *err) {
  struct stat st = {0};
  if (fd < 0 || fstat(fd, &st) != 0)
    return fail(path, PF_EREAD, err, "%s", strerror(errno));
  if (!S_ISREG(st.st_mode))
    return fail(path, PF_EREAD, err, "%s", kind_of(st.st_mode));
  if (st.st_size <= 0)
    return fail(path, PF_EREAD, err, "the file is empty");
  identity->size = (uint64_t)st.st_size;
  identity->mtime_ns =
      (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
  return PF_OK;
}

static size_t window_for(uint64_t size) {
  return size <= PF_TIFF_WHOLE_FILE ? (size_t)size : PF_TIFF_READ_AHEAD;
}

/* Byte order and kind from the first four bytes. */
static int read_magic(struct pf_tiff *tiff, struct pf_error *err) {
  unsigned char b[8] = {0};
  size_t n = tiff->identity.size < 4 ? (size_t)tiff->identity.size : 4;
  struct pf_buf text = {0};
  if (!pf_tiff_bytes(tiff, 0, b, n))
    return pf_tiff_fail(tiff, 0, err, "its first bytes cannot be read (%s)",
                        strerror(errno));
  tiff->is_big_endian = b[0] == 'M';
  tiff->is_big = b[tiff->is_big_endian ? 3 : 2] == 43;
  if (b[0] == b[1] && (b[0] == 'I' || b[0] == 'M') &&
      b[tiff->is_big_endian ? 2 : 3] == 0 &&
      (tiff->is_big || b[tiff->is_big_endian ? 3 : 2] == 42)) {
    if (pf_tiff_bytes(tiff, 0, b, 8))
      return PF_OK;
    return pf_tiff_fail(tiff, 0, err,
                        "its header is truncated (file has "
                        "%llu bytes)",
                        (unsigned long long)tiff->identity.size);
  }
  for (size_t i = 0; i < n; i++)
    pf_buf_printf(&text, " %02x", b[i]);
  (void)pf_tiff_fail(tiff, 0, err, "it is not a TIFF file (starts with%s)",
                     pf_buf_text(&text));
  pf_buf_free(&text);
  return PF_EREAD;
}

int pf_tiff_open(struct pf_tiff **out, const char *path,
                 struct pf_error *err) {
  /* O_NONBLOCK, so that a pipe cannot hold the run. */
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  struct pf_tiff_identity identity = {0, 0};
  struct pf_tiff *tiff = NULL;
  size_t window;
  int result = identify(fd, path, &identity, err);
  *out = NULL;
  if (result != PF_OK)
    goto out;
  window = window_for(identity.size);
  tiff = malloc(sizeof(*tiff) + window);
  if (!tiff) {
    (void)fail(path, PF_ENOMEM, err, "out of memory");
    result = PF_ENOMEM; /* known without a look into fail() */
    goto out;
  }
  *tiff =
      (struct pf_tiff){.fd = fd, .identity = identity, .window_cap = window};
  fd = -1;
  tiff->path = strdup(path);
  if (!tiff->path)
    result = fail(path, PF_ENOMEM, err, "out of memory");
  if (result == PF_OK)
    result = read_magic(tiff, err);
  if (result == PF_OK)
    result = pf_tiff_attach(tiff, err);
  if (result != PF_OK)
    pf_tiff_close(&tiff);
  *out = tiff;
out:
  if (fd >= 0)
    (void)close(fd);
  return result;
}

void pf_tiff_close(struct pf_tiff **tiff) {
  struct pf_tiff *t = *tiff;
  *tiff = NULL;
  if (!t)
    return;
  if (t->handle)
    TIFFClose(t->handle);
  (void)close(t->fd);
  pf_tiff_chain_finish(&t->chain);
  free(t->path);
  free(t);
}

void pf_tiff_identify(const struct pf_tiff *tiff,
                      struct pf_tiff_identity *identity) {
  *identity = tiff->identity;
}

static uint64_t planes_of(const struct pf_tiff_header *header) {
  uint64_t n = header->ij_channels ? header->ij_channels : 1;
  /* Each is at most 2^20, so that the product fits. */
  n *= header->ij_slices ? header->ij_slices : 1;
  return n * (header->ij_frames ? header->ij_frames : 1);
}

/*
 * ImageJ writes stacks of more than 4 GB as one page and puts the other
 * planes behind its pixels: reading that page alone would lose them.
 */
static int check_hidden_planes(struct pf_tiff *tiff,
                               const struct pf_tiff_header *header,
                               struct pf_error *err) {
  const struct pf_tiff_page_info *page = &tiff->page;
  uint64_t n_planes = planes_of(header);
  uint64_t n_bytes =
      (uint64_t)page->width * page->height * pf_dtype_size(page->dtype);
  if (header->n_pages != 1 || !tiff->chain.complete || n_planes < 2 ||
      page->compression != PF_COMPRESSION_NONE ||
      tiff->identity.size / n_planes < n_bytes)
    return PF_OK;
  return pf_tiff_fail(tiff, 0, err,
                      "it holds %llu ImageJ planes in one page; save it as "
                      "BigTIFF or as one file a plane",
                      (unsigned long long)n_planes);
}

static int fill_header(struct pf_tiff *tiff, struct pf_tiff_header *header,
                       uint32_t max_pages, struct pf_error *err) {
  const char *text = NULL;
  int result = pf_tiff_page(tiff, 0, &header->width, &header->height,
                            &header->dtype, err);
  if (result != PF_OK)
    return result;
  result = pf_tiff_chain_extend(tiff, max_pages, err);
  if (result != PF_OK)
    return result;
  header->n_pages = tiff->chain.n;
  if (TIFFGetField(tiff->handle, TIFFTAG_IMAGEDESCRIPTION, &text) == 1 &&
      text) {
    header->description = strdup(text);
    if (!header->description)
      return pf_error_set(err, PF_ENOMEM, "out of memory");
    header->ij_channels = pf_tiff_imagej_number(text, "channels");
    header->ij_slices = pf_tiff_imagej_number(text, "slices");
    header->ij_frames = pf_tiff_imagej_number(text, "frames");
  }
  return check_hidden_planes(tiff, header, err);
}

int pf_tiff_read_header(struct pf_tiff_header *header, const char *path,
                        uint32_t max_pages, struct pf_error *err) {
  struct pf_tiff *tiff = NULL;
  int result;
  *header = (struct pf_tiff_header){.dtype = PF_DTYPE_NONE};
  result = pf_tiff_open(&tiff, path, err);
  if (result == PF_OK)
    result = fill_header(tiff, header, max_pages, err);
  pf_tiff_close(&tiff);
  if (result != PF_OK)
    pf_tiff_header_free(header);
  return result;
}

void pf_tiff_header_free(struct pf_tiff_header *header) {
  if (!header)
    return;
  free(header->description);
  *header = (struct pf_tiff_header){.dtype = PF_DTYPE_NONE};
}

/* TIFFGetVersion() is "LIBTIFF, Version 4.5.0" and lines behind it. */
void pf_tiff_version(struct pf_buf *out) {
  static const char before[] = "Version ";
  const char *text = strstr(TIFFGetVersion(), before);
  if (!text) {
    pf_buf_str(out, "unknown");
    return;
  }
  text += sizeof(before) - 1;
  pf_buf_add(out, text, strcspn(text, "\n"));
}
