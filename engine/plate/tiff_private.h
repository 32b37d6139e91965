/*
 * What the tiff_*.c files share. No function here is for others: see
 * engine/plate/tiff.h.
 */
#ifndef PF_TIFF_PRIVATE_H
#define PF_TIFF_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/plate/tiff.h"

struct tiff; /* libtiff's TIFF, so that this header needs no tiffio.h */

enum {
  /* A file up to this size is read with one call when it is opened. */
  PF_TIFF_WHOLE_FILE = 65536,
  /* Of larger ones this much is read ahead around each directory. */
  PF_TIFF_READ_AHEAD = 4096,
  /* libtiff takes no directory with more entries. */
  PF_TIFF_MAX_ENTRIES = 4096,
  PF_TIFF_LOG_BYTES = 200
};

/* Largest plane, in bytes: 2^31. */
#define PF_TIFF_MAX_PLANE ((uint64_t)1 << 31)

/* What libtiff said first since the log was emptied. */
struct pf_tiff_log {
  char text[PF_TIFF_LOG_BYTES];
};

/* One entry of a directory that lists bytes or places of strips or tiles. */
struct pf_tiff_list {
  uint64_t count;         /* values; 0: there is no such entry */
  uint64_t at;            /* where the first value is in the file */
  unsigned n_value_bytes; /* 2, 4 or 8 */
};

/* What pf_tiff_page() found; valid while number is not 0. */
struct pf_tiff_page_info {
  uint32_t number; /* 1-based, as in messages; 0: no page is chosen */
  uint32_t width, height;
  enum pf_dtype dtype;
  unsigned n_bits;                 /* per pixel, 1 or 8 * the type's size */
  enum pf_compression compression; /* one that can be read */
  unsigned max_ratio; /* bytes that one compressed byte can stand for */
  bool reversed_bits; /* FillOrder 2 */
  bool is_tiled;
  uint32_t chunk_width, chunk_height; /* of a tile, or of a full strip */
  uint32_t n_chunks, n_across;        /* all; side by side (strips: 1) */
  bool is_palette;                    /* as the file says, map or not */
  /* Places and lengths; [0] of strips, [1] of tiles. */
  struct pf_tiff_list offsets[2], counts[2];
};

/* A growing list of the directories of a file, in their order. */
struct pf_tiff_chain {
  uint64_t *offsets;
  uint32_t n, capacity;
  bool complete;               /* the last one has been found */
  uint64_t landmark;           /* Brent's cycle search: offset to meet again */
  uint32_t n_steps, n_allowed; /* since the landmark; until the next one */
};

/* One open file; belongs to one thread at a time. */
struct pf_tiff {
  struct tiff *handle;
  char *path;
  int fd;
  struct pf_tiff_identity identity;
  bool is_big, is_big_endian; /* BigTIFF; byte order */
  struct pf_tiff_chain chain;
  struct pf_tiff_page_info page;
  struct pf_tiff_log log;
  uint64_t position;             /* libtiff's, in the file */
  uint64_t window_at;            /* where in the file `window` was read */
  size_t window_len, window_cap; /* bytes valid; allocated */
  unsigned char window[];
};

/* tiff_open.c */
/*
 * Set "cannot read page PAGE of FILE: ..." with PF_EREAD; page 0 leaves the
 * page out.
 */
int pf_tiff_fail(const struct pf_tiff *tiff, uint32_t page,
                 struct pf_error *err, const char *fmt, ...) PF_PRINTF(4, 5);

/* tiff_source.c: bytes of the file */
/* Whether all `n` bytes from `at` could be read into `bytes`. */
bool pf_tiff_bytes(struct pf_tiff *tiff, uint64_t at, void *bytes, size_t n);
/* An unsigned integer of 1 to 8 bytes in the file's byte order. */
bool pf_tiff_number(struct pf_tiff *tiff, uint64_t at, unsigned n_bytes,
                    uint64_t *value);
/* Give tiff->handle a libtiff handle that reads through the functions above;
 * no directory is read yet. */
int pf_tiff_attach(struct pf_tiff *tiff, struct pf_error *err) PF_MUST_CHECK;

/* tiff_chain.c: directories, without libtiff */
void pf_tiff_chain_finish(struct pf_tiff_chain *chain);
/* Find directories until there are `n` or no more; tiff->chain.n says. */
int pf_tiff_chain_extend(struct pf_tiff *tiff, uint32_t n,
                         struct pf_error *err) PF_MUST_CHECK;
/* What libtiff mends or hides of the directory at `at`, into tiff->page. */
int pf_tiff_chain_entries(struct pf_tiff *tiff, uint64_t at,
                          struct pf_error *err) PF_MUST_CHECK;

/* tiff_chunks.c: strips and tiles */
/* Bytes of `rows` decoded rows of a chunk. */
uint64_t pf_tiff_chunk_bytes(const struct pf_tiff_page_info *page,
                             uint32_t rows);
/* Rows of chunk `i` that are in the file: the last strip can be shorter. */
uint32_t pf_tiff_chunk_rows(const struct pf_tiff_page_info *page, uint32_t i);
/* Check that all strips or tiles are in the file and can be what they claim.
 */
int pf_tiff_chunks_check(struct pf_tiff *tiff,
                         struct pf_error *err) PF_MUST_CHECK;
/* Say that chunk `i` is wrong: "strip 12 of 30 ...", with what libtiff said.
 */
int pf_tiff_chunk_fail(const struct pf_tiff *tiff, uint32_t i,
                       struct pf_error *err, const char *fmt, ...)
    PF_PRINTF(4, 5);

/* tiff_tags.c */
/* libtiff's number of a compression, and back with the name for messages. */
uint16_t pf_tiff_compression_tag(enum pf_compression compression);
enum pf_compression pf_tiff_compression_of(uint16_t tag, unsigned *max_ratio);
/*
 * The description that a single plane can carry of the one that its input
 * had: NULL in *out where nothing is left. -1 if memory ran out.
 */
int pf_tiff_describe_plane(char **out, const char *description);
/* The number behind `key` in the lines of an ImageJ description; 0: none. */
uint32_t pf_tiff_imagej_number(const char *description, const char *key);

/* tiff_sink.c: a file being written */
struct pf_tiff_sink {
  int fd;
  int saved_errno; /* of the first failed write; 0: none */
  struct pf_tiff_log log;
  uint64_t position, end; /* libtiff's position; bytes of the file so far */
  uint64_t base;          /* where in the file `buffer` belongs */
  size_t len, cap;        /* bytes that wait in the buffer; allocated */
  unsigned char *buffer;
};
int pf_tiff_sink_init(struct pf_tiff_sink *sink, int fd, size_t cap);
void pf_tiff_sink_finish(struct pf_tiff_sink *sink);
/* A libtiff handle that writes there; NULL: see the log. */
struct tiff *pf_tiff_sink_open(struct pf_tiff_sink *sink, bool is_big);
/* Write what waits. -1: see saved_errno. */
int pf_tiff_sink_flush(struct pf_tiff_sink *sink);

#endif
