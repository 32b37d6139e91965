/* Pixels of a page into the caller's memory: see pf_tiff_read_pixels(). */
#include "engine/plate/tiff_client.h"

#include <stdlib.h>
#include <string.h>

static const char *reason(const struct pf_tiff *tiff) {
  return tiff->log.text[0] ? tiff->log.text : "no reason given";
}

/* libtiff decodes chunk `i` into `bytes`; anything less is an error. */
static int decode(struct pf_tiff *tiff, uint32_t i, void *bytes, uint64_t n,
                  struct pf_error *err) {
  tmsize_t got;
  tiff->log.text[0] = '\0';
  if (tiff->page.is_tiled)
    got = TIFFReadEncodedTile(tiff->handle, i, bytes, (tmsize_t)n);
  else
    got = TIFFReadEncodedStrip(tiff->handle, i, bytes, (tmsize_t)n);
  if (got >= 0 && (uint64_t)got == n)
    return PF_OK;
  return pf_tiff_chunk_fail(tiff, i, err, "cannot be decoded (%s)",
                            reason(tiff));
}

/* Strips, decoded where they belong. */
static int read_strips(struct pf_tiff *tiff, unsigned char *pixels,
                       struct pf_error *err) {
  const struct pf_tiff_page_info *page = &tiff->page;
  for (uint32_t i = 0; i < page->n_chunks; i++) {
    uint64_t n = pf_tiff_chunk_bytes(page, pf_tiff_chunk_rows(page, i));
    int result = decode(tiff, i, pixels, n, err);
    if (result != PF_OK)
      return result;
    pixels += n;
  }
  return PF_OK;
}

static void swap_elements(unsigned char *pixels, size_t n_bytes,
                          size_t element) {
  switch (element) {
  case 2:
    TIFFSwabArrayOfShort((uint16_t *)(void *)pixels, (tmsize_t)n_bytes / 2);
    break;
  case 4:
    TIFFSwabArrayOfLong((uint32_t *)(void *)pixels, (tmsize_t)n_bytes / 4);
    break;
  case 8:
    TIFFSwabArrayOfLong8((uint64_t *)(void *)pixels, (tmsize_t)n_bytes / 8);
    break;
  default:
    break;
  }
}

/*
 * Uncompressed strips need no decoder: neighbours in the file are read with
 * one call. Places and lengths were checked by pf_tiff_chunks_check().
 */
static int read_plain(struct pf_tiff *tiff, unsigned char *pixels,
                      size_t n_bytes, struct pf_error *err) {
  const struct pf_tiff_page_info *page = &tiff->page;
  unsigned char *at = pixels;
  uint32_t i = 0;
  while (i < page->n_chunks) {
    uint32_t first = i;
    uint64_t start = TIFFGetStrileOffset(tiff->handle, i), n = 0;
    do
      n += pf_tiff_chunk_bytes(page, pf_tiff_chunk_rows(page, i++));
    while (i < page->n_chunks &&
           TIFFGetStrileOffset(tiff->handle, i) == start + n);
    if (!pf_tiff_bytes(tiff, start, at, (size_t)n))
      return pf_tiff_chunk_fail(
          tiff, first, err, "cannot be read (%llu bytes from byte %llu)",
          (unsigned long long)n, (unsigned long long)start);
    at += n;
  }
  if (TIFFIsByteSwapped(tiff->handle))
    swap_elements(pixels, n_bytes, pf_dtype_size(page->dtype));
  return PF_OK;
}

/* Bits of one row, the leftmost in the highest bit, as bytes 0 and 1. */
static void unpack_bits(unsigned char *to, const unsigned char *bits,
                        uint32_t n) {
  for (uint32_t x = 0; x < n; x++)
    to[x] = bits[x >> 3] >> (7 - (x & 7)) & 1;
}

/* Put the part of a decoded chunk that is inside the image there. */
static void place_chunk(const struct pf_tiff_page_info *page, uint32_t i,
                        unsigned char *pixels, const unsigned char *chunk) {
  size_t element = pf_dtype_size(page->dtype);
  uint32_t x = i % page->n_across * page->chunk_width;
  uint32_t y = i / page->n_across * page->chunk_height;
  uint32_t width = page->width - x, height = page->height - y;
  size_t chunk_row = (size_t)pf_tiff_chunk_bytes(page, 1);
  if (width > page->chunk_width)
    width = page->chunk_width;
  if (height > page->chunk_height)
    height = page->chunk_height;
  for (uint32_t row = 0; row < height; row++) {
    unsigned char *to =
        pixels + ((size_t)(y + row) * page->width + x) * element;
    if (page->n_bits == 1)
      unpack_bits(to, chunk + row * chunk_row, width);
    else
      memcpy(to, chunk + row * chunk_row, width * element);
  }
}

/* Tiles and 1-bit strips, through a buffer of one chunk. */
static int read_chunks(struct pf_tiff *tiff, unsigned char *pixels,
                       struct pf_error *err) {
  const struct pf_tiff_page_info *page = &tiff->page;
  uint64_t n = pf_tiff_chunk_bytes(page, page->chunk_height);
  unsigned char *chunk = malloc((size_t)n);
  int result = PF_OK;
  if (!chunk)
    return pf_error_set(err, PF_ENOMEM,
                        "out of memory for a tile of %llu bytes",
                        (unsigned long long)n);
  for (uint32_t i = 0; i < page->n_chunks && result == PF_OK; i++) {
    result =
        decode(tiff, i, chunk,
               pf_tiff_chunk_bytes(page, pf_tiff_chunk_rows(page, i)), err);
    if (result == PF_OK)
      place_chunk(page, i, pixels, chunk);
  }
  free(chunk);
  return result;
}

int pf_tiff_read_pixels(struct pf_tiff *tiff, void *pixels, size_t n_bytes,
                        struct pf_error *err) {
  const struct pf_tiff_page_info *page = &tiff->page;
  if (page->number == 0)
    return pf_error_set(err, PF_EBUG, "no page of %s is chosen", tiff->path);
  if (n_bytes !=
      (size_t)page->width * page->height * pf_dtype_size(page->dtype))
    return pf_error_set(err, PF_EBUG, "%zu bytes are no room for the page",
                        n_bytes);
  if (page->is_tiled || page->n_bits == 1)
    return read_chunks(tiff, pixels, err);
  if (page->compression == PF_COMPRESSION_NONE && !page->reversed_bits)
    return read_plain(tiff, pixels, n_bytes, err);
  return read_strips(tiff, pixels, err);
}
