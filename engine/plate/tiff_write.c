/* Writing one plane: see pf_tiff_write(). */
#include "engine/plate/tiff_client.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bridge/buf.h"
#include "bridge/os.h"

enum {
  STRIP_BYTES = 128 * 1024, /* about: whole rows, at least one */
  /* Up to this an image is one strip, and one write() with all around it. */
  ONE_STRIP_BYTES = 256 * 1024,
  SINK_SLACK = 4096 /* of a buffer, for header and directory */
};
/* Classic TIFF ends at 4 GiB; leave room for directory and overhead. */
#define CLASSIC_BYTES ((uint64_t)4 << 30)
#define CLASSIC_ROOM ((uint64_t)64 << 20)

/* The image to be written, as a table of rows. */
struct source {
  const unsigned char *data;
  enum pf_dtype dtype;
  size_t element; /* bytes */
  uint32_t width, height;
  int64_t row_step, step; /* in elements */
  size_t row_bytes;       /* compact */
  uint32_t rows_per_strip;
  unsigned char *gathered; /* one strip, or NULL where rows are compact */
};

static int PF_PRINTF(4, 5)
    fail(const struct pf_tiff_write *how, enum pf_code code,
         struct pf_error *err, const char *fmt, ...) {
  struct pf_buf text = {0};
  va_list args;
  if (!err || err->code != PF_OK)
    return (int)code;
  pf_buf_str(&text, "cannot write ");
  pf_buf_name(&text, how->path);
  pf_buf_str(&text, ": ");
  va_start(args, fmt);
  pf_buf_vprintf(&text, fmt, args);
  va_end(args);
  (void)pf_error_set(err, code, "%s", pf_buf_text(&text));
  pf_error_at_file(err, how->path, 0, 0);
  pf_buf_free(&text);
  return (int)code;
}

static int fail_errno(const struct pf_tiff_write *how, int saved,
                      struct pf_error *err) {
  return fail(how, pf_os_write_code(saved), err, "%s", strerror(saved));
}

static int check_image(const struct pf_tiff_write *how,
                       const struct pf_array *image, struct pf_error *err) {
  const int64_t *shape = pf_array_shape(image);
  enum pf_dtype dtype = pf_array_dtype(image);
  if ((unsigned)how->compression >= PF_N_COMPRESSIONS ||
      pf_array_device(image).type != 1)
    return fail(how, PF_EBUG, err,
                "no compression is chosen, or the image is on a device");
  if (pf_array_ndim(image) != 2)
    return fail(how, PF_EWRITE, err, "an image of %d dimensions is no plane",
                pf_array_ndim(image));
  if (shape[0] < 1 || shape[1] < 1 || shape[0] > INT32_MAX ||
      shape[1] > INT32_MAX)
    return fail(how, PF_EWRITE, err,
                "TIFF holds no image of %lld x %lld pixels",
                (long long)shape[1], (long long)shape[0]);
  if ((unsigned)dtype >= PF_N_DTYPES || dtype == PF_BF16)
    return fail(how, PF_EWRITE, err,
                "TIFF has no pixels of type %s; cast to float32",
                pf_dtype_name(dtype));
  if (!TIFFIsCODECConfigured(pf_tiff_compression_tag(how->compression)))
    return fail(how, PF_EMISSING, err,
                "this libtiff was built without %s; choose deflate",
                pf_compression_name(how->compression));
  return PF_OK;
}

/* The rows of the image; bools pass the buffer to become 0 and 1. */
static int source_init(struct source *source, struct pf_array *image) {
  const int64_t *shape = pf_array_shape(image);
  const int64_t *strides = pf_array_strides(image);
  uint64_t rows;
  *source = (struct source){.data = pf_array_data(image),
                            .dtype = pf_array_dtype(image),
                            .width = (uint32_t)shape[1],
                            .height = (uint32_t)shape[0],
                            .row_step = strides ? strides[0] : shape[1],
                            .step = strides ? strides[1] : 1};
  source->element = pf_dtype_size(source->dtype);
  source->row_bytes = source->width * source->element;
  rows = STRIP_BYTES / source->row_bytes;
  if (rows < 1)
    rows = 1;
  if (rows > source->height ||
      source->row_bytes * source->height <= ONE_STRIP_BYTES)
    rows = source->height;
  source->rows_per_strip = (uint32_t)rows;
  if (source->dtype != PF_BOOL && source->step == 1 &&
      source->row_step == shape[1])
    return 0;
  source->gathered = malloc(source->row_bytes * rows);
  return source->gathered ? 0 : -1;
}

#define DEFINE_GATHER(bits)                                                   \
  static void gather_##bits(void *to, const void *from, int64_t step,         \
                            uint32_t n) {                                     \
    uint##bits##_t *t = to;                                                   \
    const uint##bits##_t *f = from;                                           \
    for (uint32_t x = 0; x < n; x++)                                          \
      t[x] = f[x * step];                                                     \
  }
DEFINE_GATHER(8)
DEFINE_GATHER(16)
DEFINE_GATHER(32)
DEFINE_GATHER(64)

static void gather_bool(void *to, const void *from, int64_t step, uint32_t n) {
  unsigned char *t = to;
  const unsigned char *f = from;
  for (uint32_t x = 0; x < n; x++)
    t[x] = f[x * step] != 0;
}

static void gather_row(const struct source *source, void *to,
                       const void *from) {
  if (source->dtype == PF_BOOL)
    gather_bool(to, from, source->step, source->width);
  else if (source->element == 1)
    gather_8(to, from, source->step, source->width);
  else if (source->element == 2)
    gather_16(to, from, source->step, source->width);
  else if (source->element == 4)
    gather_32(to, from, source->step, source->width);
  else
    gather_64(to, from, source->step, source->width);
}

/* Compact bytes of `n` rows from `y`; libtiff only reads them. */
static unsigned char *rows_at(const struct source *source, uint32_t y,
                              uint32_t n) {
  int64_t element = (int64_t)source->element;
  if (!source->gathered)
    return (unsigned char *)(uintptr_t)(source->data +
                                        (size_t)y * source->row_bytes);
  for (uint32_t row = 0; row < n; row++)
    gather_row(source, source->gathered + row * source->row_bytes,
               source->data + (y + (int64_t)row) * source->row_step * element);
  return source->gathered;
}

static uint16_t format_of(enum pf_dtype dtype) {
  if (pf_dtype_is_float(dtype))
    return SAMPLEFORMAT_IEEEFP;
  return pf_dtype_is_signed(dtype) ? SAMPLEFORMAT_INT : SAMPLEFORMAT_UINT;
}

static bool takes_predictor(enum pf_compression compression) {
  return compression == PF_COMPRESSION_LZW ||
         compression == PF_COMPRESSION_DEFLATE ||
         compression == PF_COMPRESSION_ZSTD;
}

static int set_resolution(TIFF *handle, const struct pf_tiff_tags *tags) {
  uint16_t unit = tags->resolution_unit;
  int ok = 1;
  if (unit < RESUNIT_NONE || unit > RESUNIT_CENTIMETER)
    unit = RESUNIT_NONE;
  if (tags->x_resolution > 0)
    ok = TIFFSetField(handle, TIFFTAG_XRESOLUTION, tags->x_resolution);
  if (tags->y_resolution > 0)
    ok = ok && TIFFSetField(handle, TIFFTAG_YRESOLUTION, tags->y_resolution);
  if (tags->x_resolution > 0 || tags->y_resolution > 0)
    ok = ok && TIFFSetField(handle, TIFFTAG_RESOLUTIONUNIT, unit);
  return ok;
}

static int set_fields(TIFF *handle, const struct pf_tiff_write *how,
                      const struct source *source, const char *description) {
  int ok =
      TIFFSetField(handle, TIFFTAG_IMAGEWIDTH, source->width) &&
      TIFFSetField(handle, TIFFTAG_IMAGELENGTH, source->height) &&
      TIFFSetField(handle, TIFFTAG_BITSPERSAMPLE,
                   (int)(8 * source->element)) &&
      TIFFSetField(handle, TIFFTAG_SAMPLESPERPIXEL, 1) &&
      TIFFSetField(handle, TIFFTAG_SAMPLEFORMAT, format_of(source->dtype)) &&
      TIFFSetField(handle, TIFFTAG_PHOTOMETRIC, PHOTOMETRIC_MINISBLACK) &&
      TIFFSetField(handle, TIFFTAG_PLANARCONFIG, PLANARCONFIG_CONTIG) &&
      TIFFSetField(handle, TIFFTAG_COMPRESSION,
                   pf_tiff_compression_tag(how->compression)) &&
      TIFFSetField(handle, TIFFTAG_ROWSPERSTRIP, source->rows_per_strip);
  if (ok && how->predictor && takes_predictor(how->compression))
    ok =
        TIFFSetField(handle, TIFFTAG_PREDICTOR,
                     pf_dtype_is_float(source->dtype) ? PREDICTOR_FLOATINGPOINT
                                                      : PREDICTOR_HORIZONTAL);
  if (ok && how->tags)
    ok = set_resolution(handle, how->tags);
  if (ok && description)
    ok = TIFFSetField(handle, TIFFTAG_IMAGEDESCRIPTION, description);
  return ok;
}

static int write_strips(TIFF *handle, const struct source *source) {
  uint32_t strip = 0, n;
  for (uint32_t y = 0; y < source->height; y += n, strip++) {
    tmsize_t n_bytes;
    n = source->height - y;
    if (n > source->rows_per_strip)
      n = source->rows_per_strip;
    n_bytes = (tmsize_t)(n * source->row_bytes);
    if (TIFFWriteEncodedStrip(handle, strip, rows_at(source, y, n), n_bytes) !=
        n_bytes)
      return 0;
  }
  return 1;
}

/* All that libtiff writes; the sink still holds the end of it. */
static int encode(struct pf_tiff_sink *sink, const struct pf_tiff_write *how,
                  const struct source *source, const char *description) {
  uint64_t n_bytes = (uint64_t)source->row_bytes * source->height;
  TIFF *handle =
      pf_tiff_sink_open(sink, n_bytes > CLASSIC_BYTES - CLASSIC_ROOM);
  int ok = handle && set_fields(handle, how, source, description) &&
           write_strips(handle, source) && TIFFFlush(handle);
  if (handle)
    TIFFClose(handle);
  return ok ? 0 : -1;
}

/* Write the whole file behind `fd`; its size into *n_bytes. */
static int write_file(int fd, const struct pf_tiff_write *how,
                      const struct source *source, uint64_t *n_bytes,
                      struct pf_error *err) {
  uint64_t room = (uint64_t)source->row_bytes * source->height + SINK_SLACK;
  struct pf_tiff_sink sink = {0};
  char *description = NULL;
  int result = PF_OK;
  if (room > ONE_STRIP_BYTES + SINK_SLACK)
    room = STRIP_BYTES / 2;
  if (pf_tiff_sink_init(&sink, fd, (size_t)room) != 0 ||
      pf_tiff_describe_plane(&description,
                             how->tags ? how->tags->description : NULL) != 0)
    result = fail(how, PF_ENOMEM, err, "out of memory");
  else if (encode(&sink, how, source, description) != 0 ||
           pf_tiff_sink_flush(&sink) != 0)
    result = sink.saved_errno
                 ? fail_errno(how, sink.saved_errno, err)
                 : fail(how, PF_EWRITE, err, "%s",
                        sink.log.text[0] ? sink.log.text : "out of memory");
  *n_bytes = sink.end;
  pf_tiff_sink_finish(&sink);
  free(description);
  return result;
}

int pf_tiff_write(const struct pf_tiff_write *how, struct pf_array *image,
                  uint64_t *n_bytes, struct pf_error *err) {
  struct source source = {0};
  char *temporary = NULL;
  uint64_t size = 0;
  int fd = -1, result = check_image(how, image, err);
  if (n_bytes)
    *n_bytes = 0;
  if (result != PF_OK)
    return result;
  temporary = pf_os_temporary(how->path);
  if (!temporary || source_init(&source, image) != 0) {
    result = fail(how, PF_ENOMEM, err, "out of memory");
    goto out;
  }
  fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW,
            0666);
  if (fd < 0) {
    result = fail_errno(how, errno, err);
    goto out;
  }
  result = write_file(fd, how, &source, &size, err);
  /* Shares report a full disk when the file is closed. */
  if (close(fd) != 0 && result == PF_OK)
    result = fail_errno(how, errno, err);
  if (result == PF_OK && rename(temporary, how->path) != 0)
    result = fail_errno(how, errno, err);
  if (result != PF_OK)
    (void)unlink(temporary);
  else if (n_bytes)
    *n_bytes = size;
out:
  free(source.gathered);
  free(temporary);
  return result;
}
