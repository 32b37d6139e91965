/*
 * TIFF files through libtiff: headers, pages in, pages out.
 *
 * Threads: every function may be called from any thread at once; nothing is
 * shared between calls. Everything in a file is hostile until checked.
 * Errors name the file (as for people), the page (1-based in messages) and
 * what is wrong, and set err->file.
 */
#ifndef PF_TIFF_H
#define PF_TIFF_H

#include <stdint.h>

#include "plateflow/array.h"

/* Compression as a pipeline or a header says it. */
#define PF_COMPRESSION_MAP(XX)                                                \
  XX(NONE, "none")                                                            \
  XX(LZW, "lzw")                                                              \
  XX(DEFLATE, "deflate")                                                      \
  XX(ZSTD, "zstd")                                                            \
  XX(PACKBITS, "packbits")

enum pf_compression {
#define XX(name, word) PF_COMPRESSION_##name,
  PF_COMPRESSION_MAP(XX)
#undef XX
      PF_N_COMPRESSIONS /* as the input */
};

const char *pf_compression_name(enum pf_compression compression);
enum pf_compression pf_compression_find(const char *word);

/* Version of the TIFF library, "4.5.0", appended. */
struct pf_buf;
void pf_tiff_version(struct pf_buf *out);

/* What a page carries beside its pixels; handed from input to output. */
struct pf_tiff_tags {
  double x_resolution, y_resolution; /* pixels per unit; 0: not said */
  uint16_t resolution_unit;          /* TIFF's: 1 none, 2 inch, 3 cm */
  char *description;                 /* malloc'd, or NULL */
  enum pf_compression compression;   /* of the input */
};
void pf_tiff_tags_free(struct pf_tiff_tags *tags);

/* What the header of a file says, without reading a pixel. */
struct pf_tiff_header {
  uint32_t width, height; /* of the first page */
  enum pf_dtype dtype;
  uint32_t n_pages;  /* counted only up to the `max_pages` that was asked */
  char *description; /* of the first page, malloc'd, or NULL */
  /* From an ImageJ description; 0: not said. */
  uint32_t ij_channels, ij_slices, ij_frames;
};
/*
 * Read a header; refuses what pf_tiff_read() would refuse (RGB, palette that
 * is no gray ramp, complex, sizes beyond 2^31 bytes a plane ...).
 */
int pf_tiff_read_header(struct pf_tiff_header *header, const char *path,
                        uint32_t max_pages,
                        struct pf_error *err) PF_MUST_CHECK;
void pf_tiff_header_free(struct pf_tiff_header *header);

/* A file opened for reading its pages; closed by pf_tiff_close(). */
struct pf_tiff;
struct pf_tiff_identity {
  uint64_t size;    /* bytes */
  int64_t mtime_ns; /* since 1970 */
};
int pf_tiff_open(struct pf_tiff **out, const char *path,
                 struct pf_error *err) PF_MUST_CHECK;
void pf_tiff_close(struct pf_tiff **tiff);
void pf_tiff_identify(const struct pf_tiff *tiff,
                      struct pf_tiff_identity *identity);

/* Go to a page and say what it is (shape and type), checked. */
int pf_tiff_page(struct pf_tiff *tiff, uint32_t page, uint32_t *width,
                 uint32_t *height, enum pf_dtype *dtype,
                 struct pf_error *err) PF_MUST_CHECK;
/* Refuse a file that has more than `n_pages`, or a loop behind them: they
 * would be lost without a word. */
int pf_tiff_check_end(struct pf_tiff *tiff, uint32_t n_pages,
                      struct pf_error *err) PF_MUST_CHECK;
/*
 * Read the page that pf_tiff_page() went to into `pixels`, compact rows of
 * width * pf_dtype_size() bytes, native byte order (1-bit images become uint8
 * 0/1 typed bool). A short or missing strip is an error, never zeros.
 */
int pf_tiff_read_pixels(struct pf_tiff *tiff, void *pixels, size_t n_bytes,
                        struct pf_error *err) PF_MUST_CHECK;
/* Tags of that page; freed with pf_tiff_tags_free(). */
int pf_tiff_read_tags(struct pf_tiff *tiff, struct pf_tiff_tags *tags,
                      struct pf_error *err) PF_MUST_CHECK;

struct pf_tiff_write {
  const char *path;                /* final name; appears complete or not */
  enum pf_compression compression; /* not PF_N_COMPRESSIONS */
  bool predictor;                  /* horizontal, floating-point for floats */
  const struct pf_tiff_tags *tags; /* resolution and description, or NULL */
};
/*
 * Write a 2D host array (any strides) as a one-page TIFF: temporary dot-file
 * beside it (pf_os_temporary()), then rename. BigTIFF past 4 GiB. After
 * failure no temporary is left and what stood at `path` stands untouched.
 * bfloat16 is refused. bool is written as 8-bit 0/1.
 * *n_bytes, if not NULL, is the file's size.
 */
int pf_tiff_write(const struct pf_tiff_write *how, struct pf_array *image,
                  uint64_t *n_bytes, struct pf_error *err) PF_MUST_CHECK;

#endif
