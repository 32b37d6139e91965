/*
 * What engine/plate/tiff.h makes of files, for tests/e2e/test_tiff.py.
 *
 *   tool_tiff_dump pages FILE...      one line of JSON a file: its header, and
 *                                     size, type, CRC-32 and tags of its pages
 *   tool_tiff_dump copy IN PAGE OUT COMPRESSION PREDICTOR   (PREDICTOR 0 or 1)
 *
 * An error is a line {"error": ..., "file": ...}; the exit status is 0 all
 * the same, so that a status is a crash.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bridge/buf.h"
#include "engine/plate/tiff.h"

static uint32_t crc32_of(const unsigned char *bytes, size_t n) {
  uint32_t table[256], crc = 0xffffffffu;
  for (uint32_t i = 0; i < 256; i++) {
    table[i] = i;
    for (int bit = 0; bit < 8; bit++)
      table[i] = table[i] >> 1 ^ (table[i] & 1 ? 0xedb88320u : 0);
  }
  for (size_t i = 0; i < n; i++)
    crc = crc >> 8 ^ table[(crc ^ bytes[i]) & 255];
  return ~crc;
}

/* Go to a page and read it into a new array. */
static int read_page(struct pf_tiff *tiff, uint32_t page,
                     struct pf_array **pixels, struct pf_error *err) {
  uint32_t width = 0, height = 0;
  enum pf_dtype dtype = PF_DTYPE_NONE;
  int result = pf_tiff_page(tiff, page, &width, &height, &dtype, err);
  if (result != PF_OK)
    return result;
  result =
      pf_array_create(pixels, dtype, 2, (const int64_t[]){height, width}, err);
  if (result == PF_OK)
    result = pf_tiff_read_pixels(tiff, pf_array_data(*pixels),
                                 pf_array_n_bytes(*pixels), err);
  return result;
}

static int dump_page(struct pf_buf *out, struct pf_tiff *tiff, uint32_t page,
                     struct pf_error *err) {
  struct pf_tiff_tags tags = {.description = NULL};
  struct pf_array *pixels = NULL;
  int result = read_page(tiff, page, &pixels, err);
  if (result == PF_OK)
    result = pf_tiff_read_tags(tiff, &tags, err);
  if (result == PF_OK) {
    const int64_t *shape = pf_array_shape(pixels);
    pf_buf_printf(out, "%s{\"shape\": [%lld, %lld], \"dtype\": \"%s\", ",
                  page ? ", " : "", (long long)shape[0], (long long)shape[1],
                  pf_dtype_name(pf_array_dtype(pixels)));
    pf_buf_printf(out, "\"crc\": %u, \"compression\": \"%s\", ",
                  crc32_of(pf_array_data(pixels), pf_array_n_bytes(pixels)),
                  pf_compression_name(tags.compression));
    pf_buf_printf(out, "\"resolution\": [%.9g, %.9g, %u], ", tags.x_resolution,
                  tags.y_resolution, tags.resolution_unit);
    pf_buf_str(out, "\"description\": ");
    pf_buf_json(out, tags.description ? tags.description : "");
    pf_buf_char(out, '}');
  }
  pf_tiff_tags_free(&tags);
  pf_array_unref(&pixels);
  return result;
}

static int dump_file(struct pf_buf *out, const char *path,
                     struct pf_error *err) {
  struct pf_tiff_header header;
  struct pf_tiff *tiff = NULL;
  int result = pf_tiff_read_header(&header, path, UINT32_MAX, err);
  if (result != PF_OK)
    return result;
  pf_buf_printf(out, "{\"n_pages\": %u, \"imagej\": [%u, %u, %u], ",
                header.n_pages, header.ij_channels, header.ij_slices,
                header.ij_frames);
  pf_buf_str(out, "\"pages\": [");
  result = pf_tiff_open(&tiff, path, err);
  for (uint32_t i = 0; i < header.n_pages && result == PF_OK; i++)
    result = dump_page(out, tiff, i, err);
  pf_buf_str(out, "]}");
  pf_tiff_close(&tiff);
  pf_tiff_header_free(&header);
  return result;
}

static int copy_page(struct pf_buf *out, char **argv, struct pf_error *err) {
  struct pf_tiff_tags tags = {.description = NULL};
  struct pf_tiff_write how = {.path = argv[2],
                              .compression = pf_compression_find(argv[3]),
                              .predictor = argv[4][0] == '1',
                              .tags = &tags};
  struct pf_tiff *tiff = NULL;
  struct pf_array *pixels = NULL;
  uint64_t n_bytes = 0;
  int result = pf_tiff_open(&tiff, argv[0], err);
  if (result == PF_OK)
    result =
        read_page(tiff, (uint32_t)strtoul(argv[1], NULL, 10), &pixels, err);
  if (result == PF_OK)
    result = pf_tiff_read_tags(tiff, &tags, err);
  if (result == PF_OK)
    result = pf_tiff_write(&how, pixels, &n_bytes, err);
  pf_buf_printf(out, "{\"n_bytes\": %llu}", (unsigned long long)n_bytes);
  pf_tiff_tags_free(&tags);
  pf_array_unref(&pixels);
  pf_tiff_close(&tiff);
  return result;
}

static void print_line(struct pf_buf *out, int result, struct pf_error *err) {
  if (result != PF_OK) {
    pf_buf_reset(out);
    pf_buf_str(out, "{\"error\": ");
    pf_buf_json(out, err->message ? err->message : "");
    pf_buf_str(out, ", \"file\": ");
    pf_buf_json(out, err->file ? err->file : "");
    pf_buf_char(out, '}');
  }
  (void)puts(pf_buf_text(out));
  pf_buf_free(out);
  pf_error_clear(err);
}

int main(int argc, char **argv) {
  struct pf_error err = PF_ERROR_INIT;
  struct pf_buf out = {0};
  if (argc == 7 && strcmp(argv[1], "copy") == 0) {
    int result = copy_page(&out, argv + 2, &err);
    print_line(&out, result, &err);
    return 0;
  }
  if (argc < 3 || strcmp(argv[1], "pages") != 0) {
    (void)fprintf(stderr,
                  "usage: %s pages FILE... | copy IN PAGE OUT "
                  "COMPRESSION PREDICTOR\n",
                  argv[0]);
    return 2;
  }
  for (int i = 2; i < argc; i++) {
    int result = dump_file(&out, argv[i], &err);
    print_line(&out, result, &err);
  }
  return 0;
}
