/*
 * Strips and tiles ("chunks"), checked before memory is taken for the pixels:
 * all of them are in the file, and are long enough for what they claim to
 * hold. The counts are read from the file and not asked of libtiff, which
 * replaces those that it finds implausible by what the image would need.
 */
#include "engine/plate/tiff_client.h"

#include "bridge/buf.h"

uint64_t pf_tiff_chunk_bytes(const struct pf_tiff_page_info *page,
                             uint32_t rows) {
  /* width < 2^32, bits <= 64: below 2^35 a row; 2^32 rows do not fit. */
  uint64_t row = ((uint64_t)page->chunk_width * page->n_bits + 7) / 8;
  return row && rows > UINT64_MAX / row ? UINT64_MAX : row * rows;
}

uint32_t pf_tiff_chunk_rows(const struct pf_tiff_page_info *page, uint32_t i) {
  uint64_t first = (uint64_t)i * page->chunk_height;
  if (page->is_tiled || page->height - first > page->chunk_height)
    return page->chunk_height;
  return (uint32_t)(page->height - first);
}

int pf_tiff_chunk_fail(const struct pf_tiff *tiff, uint32_t i,
                       struct pf_error *err, const char *fmt, ...) {
  struct pf_buf text = {0};
  va_list args;
  va_start(args, fmt);
  pf_buf_vprintf(&text, fmt, args);
  va_end(args);
  (void)pf_tiff_fail(tiff, tiff->page.number, err, "%s %u of %u %s",
                     tiff->page.is_tiled ? "tile" : "strip", i + 1,
                     tiff->page.n_chunks, pf_buf_text(&text));
  pf_buf_free(&text);
  return PF_EREAD;
}

static uint32_t divide_up(uint32_t a, uint32_t b) {
  return a / b + (a % b != 0);
}

/* The grid of chunks, and whether the lists in the file fit it. */
static int check_grid(struct pf_tiff *tiff, struct pf_error *err) {
  struct pf_tiff_page_info *page = &tiff->page;
  const char *word = page->is_tiled ? "tile" : "strip";
  uint64_t n_places = page->offsets[page->is_tiled].count;
  uint64_t n_lengths = page->counts[page->is_tiled].count;
  uint64_t n;
  if (page->chunk_width == 0 || page->chunk_height == 0 ||
      pf_tiff_chunk_bytes(page, page->chunk_height) > PF_TIFF_MAX_PLANE)
    return pf_tiff_fail(tiff, page->number, err,
                        "its %ss of %u x %u pixels cannot be read", word,
                        page->chunk_width, page->chunk_height);
  page->n_across = divide_up(page->width, page->chunk_width);
  n = (uint64_t)page->n_across * divide_up(page->height, page->chunk_height);
  if (n_places != n || n_lengths != n)
    return pf_tiff_fail(tiff, page->number, err,
                        "it needs %llu %ss, but lists %llu places and %llu "
                        "lengths of %ss",
                        (unsigned long long)n, word,
                        (unsigned long long)n_places,
                        (unsigned long long)n_lengths, word);
  page->n_chunks = (uint32_t)n; /* take_list() takes no longer lists */
  return PF_OK;
}

/* Whether so many bytes can come out of `n_packed`, without overflow. */
static bool is_plausible(const struct pf_tiff_page_info *page,
                         uint64_t n_bytes, uint64_t n_packed) {
  return n_bytes / page->max_ratio <= n_packed;
}

static int check_chunk(struct pf_tiff *tiff, uint32_t i,
                       struct pf_error *err) {
  const struct pf_tiff_page_info *page = &tiff->page;
  const struct pf_tiff_list *counts = &page->counts[page->is_tiled];
  uint64_t size = tiff->identity.size, count = 0;
  uint64_t offset = TIFFGetStrileOffset(tiff->handle, i);
  uint64_t need = pf_tiff_chunk_bytes(page, pf_tiff_chunk_rows(page, i));
  if (!pf_tiff_number(tiff, counts->at + (uint64_t)i * counts->n_value_bytes,
                      counts->n_value_bytes, &count))
    return pf_tiff_chunk_fail(tiff, i, err, "has no length in the file");
  if (count == 0 || offset == 0)
    return pf_tiff_chunk_fail(tiff, i, err, "is missing (it has no bytes)");
  if (offset > size || count > size - offset)
    return pf_tiff_chunk_fail(
        tiff, i, err, "is truncated (file has %llu of %llu bytes)",
        (unsigned long long)size,
        (unsigned long long)(count < UINT64_MAX - offset ? offset + count
                                                         : UINT64_MAX));
  if (!is_plausible(page, need, count))
    return pf_tiff_chunk_fail(tiff, i, err,
                              "is too short (%llu bytes for %llu bytes of "
                              "pixels)",
                              (unsigned long long)count,
                              (unsigned long long)need);
  return PF_OK;
}

int pf_tiff_chunks_check(struct pf_tiff *tiff, struct pf_error *err) {
  struct pf_tiff_page_info *page = &tiff->page;
  uint64_t n_bytes;
  int result = check_grid(tiff, err);
  if (result != PF_OK)
    return result;
  for (uint32_t i = 0; i < page->n_chunks; i++) {
    result = check_chunk(tiff, i, err);
    if (result != PF_OK)
      return result;
  }
  /* Chunks that share their bytes could still claim any size. */
  n_bytes = ((uint64_t)page->width * page->n_bits + 7) / 8 * page->height;
  if (!is_plausible(page, n_bytes, tiff->identity.size))
    return pf_tiff_fail(tiff, page->number, err,
                        "its %u x %u pixels (%llu bytes) cannot be in a file "
                        "of %llu bytes",
                        page->width, page->height, (unsigned long long)n_bytes,
                        (unsigned long long)tiff->identity.size);
  return PF_OK;
}
