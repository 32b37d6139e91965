/*
 * Damaged TIFF files: every prefix of a file gives an error or the right
 * pixels, never zeros; no changed byte crashes, takes memory out of
 * proportion, or makes libtiff write to stderr.
 */
#include "engine/plate/tiff.h"
#include "tests/unit/check.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <tiffio.h>
#include <unistd.h>

enum { WIDTH = 20, HEIGHT = 18, MOST_BYTES = 8192, MOST_RATIO = 32768 };

static char folder[] = "/tmp/pf-hostile-XXXXXX";
static char file[sizeof(folder) + 16];
static uint16_t image[HEIGHT][WIDTH]; /* no pixel is 0 */

/* One small file of each kind, written with libtiff itself. */
static const struct {
  const char *mode;
  uint16_t compression, predictor;
  uint32_t rows, tile; /* a strip; or the tile's edge, 0: strips */
  uint32_t n_pages;
  bool is_ahead; /* the directory stands before the pixels */
} kinds[] = {
    {"w", COMPRESSION_NONE, 1, HEIGHT, 0, 1, false},
    {"wb", COMPRESSION_NONE, 1, 5, 0, 2, false},
    {"w8", COMPRESSION_NONE, 1, 1, 0, 1, false},
    {"w", COMPRESSION_NONE, 1, 0, 16, 1, false},
    {"w", COMPRESSION_LZW, 2, 7, 0, 1, false},
    {"wb8", COMPRESSION_LZW, 1, HEIGHT, 0, 1, false},
    {"wb", COMPRESSION_ADOBE_DEFLATE, 2, HEIGHT, 0, 1, false},
    {"w", COMPRESSION_DEFLATE, 1, 0, 16, 1, false},
    {"w", COMPRESSION_ZSTD, 2, 6, 0, 1, false},
    {"w", COMPRESSION_PACKBITS, 1, 5, 0, 1, false},
    {"w+", COMPRESSION_NONE, 1, 5, 0, 1, true},
    {"w+", COMPRESSION_LZW, 1, HEIGHT, 0, 1, true},
    {"w+", COMPRESSION_ADOBE_DEFLATE, 1, 0, 16, 1, true},
    {"w+", COMPRESSION_ZSTD, 1, 5, 0, 1, true},
    {"w+", COMPRESSION_PACKBITS, 1, HEIGHT, 0, 1, true},
};
enum { N_KINDS = sizeof(kinds) / sizeof(kinds[0]) };

static void write_page(TIFF *tiff, size_t kind) {
  uint32_t rows = kinds[kind].rows, edge = kinds[kind].tile;
  (void)TIFFSetField(tiff, TIFFTAG_IMAGEWIDTH, WIDTH);
  (void)TIFFSetField(tiff, TIFFTAG_IMAGELENGTH, HEIGHT);
  (void)TIFFSetField(tiff, TIFFTAG_BITSPERSAMPLE, 16);
  (void)TIFFSetField(tiff, TIFFTAG_PHOTOMETRIC, PHOTOMETRIC_MINISBLACK);
  (void)TIFFSetField(tiff, TIFFTAG_COMPRESSION, kinds[kind].compression);
  if (kinds[kind].predictor > 1)
    (void)TIFFSetField(tiff, TIFFTAG_PREDICTOR, kinds[kind].predictor);
  if (edge) {
    (void)TIFFSetField(tiff, TIFFTAG_TILEWIDTH, edge);
    (void)TIFFSetField(tiff, TIFFTAG_TILELENGTH, edge);
  } else {
    (void)TIFFSetField(tiff, TIFFTAG_ROWSPERSTRIP, rows);
  }
  if (kinds[kind].is_ahead)
    CHECK(TIFFDeferStrileArrayWriting(tiff) &&
          TIFFWriteCheck(tiff, edge != 0, "") && TIFFWriteDirectory(tiff) &&
          TIFFSetDirectory(tiff, 0));
  if (edge) {
    uint16_t tile[16 * 16];
    for (uint32_t i = 0; i < TIFFNumberOfTiles(tiff); i++) {
      for (uint32_t p = 0; p < edge * edge; p++) {
        uint32_t y = i / 2 * edge + p / edge, x = i % 2 * edge + p % edge;
        tile[p] = y < HEIGHT && x < WIDTH ? image[y][x] : 0;
      }
      CHECK(TIFFWriteEncodedTile(tiff, i, tile, sizeof(tile)) > 0);
    }
    return;
  }
  for (uint32_t y = 0; y < HEIGHT; y += rows) {
    uint32_t n = HEIGHT - y < rows ? HEIGHT - y : rows;
    uint16_t strip[HEIGHT * WIDTH]; /* libtiff swaps bytes in place */
    memcpy(strip, image[y], n * sizeof(image[0]));
    CHECK(TIFFWriteEncodedStrip(tiff, y / rows, strip,
                                (tmsize_t)(n * sizeof(image[0]))) > 0);
  }
}

static size_t make_file(size_t kind, unsigned char *bytes) {
  /* libtiff has a word to say on writing the old number of deflate. */
  TIFFErrorHandler handler = TIFFSetWarningHandler(NULL);
  TIFF *tiff = TIFFOpen(file, kinds[kind].mode);
  ssize_t n = 0;
  int fd;
  CHECK(tiff != NULL);
  for (uint32_t page = 0; tiff && page < kinds[kind].n_pages; page++) {
    write_page(tiff, kind);
    CHECK(kinds[kind].is_ahead ? TIFFForceStrileArrayWriting(tiff)
                               : TIFFWriteDirectory(tiff));
  }
  if (tiff)
    TIFFClose(tiff);
  (void)TIFFSetWarningHandler(handler);
  fd = open(file, O_RDONLY | O_CLOEXEC);
  if (fd >= 0) {
    n = read(fd, bytes, MOST_BYTES);
    (void)close(fd);
  }
  CHECK(n > 100 && n < MOST_BYTES);
  return n > 0 ? (size_t)n : 0;
}

/* One descriptor for all: closing a cut file can make a disk flush it. */
static void put_file(const unsigned char *bytes, size_t n) {
  static int fd = -1;
  if (fd < 0)
    fd = open(file, O_RDWR | O_CLOEXEC);
  CHECK(fd >= 0 && pwrite(fd, bytes, n, 0) == (ssize_t)n &&
        ftruncate(fd, (off_t)n) == 0);
}

/* Read a page: 1 the right pixels, 0 others, -1 an error. */
static int read_page(struct pf_tiff *tiff, uint32_t page, size_t size,
                     struct pf_error *err) {
  struct pf_tiff_tags tags = {.description = NULL};
  unsigned char *pixels = NULL;
  uint32_t width = 0, height = 0;
  enum pf_dtype dtype = PF_DTYPE_NONE;
  size_t n = 0;
  int outcome = -1;
  int result = pf_tiff_page(tiff, page, &width, &height, &dtype, err);
  if (result == PF_OK) {
    n = (size_t)width * height * pf_dtype_size(dtype);
    CHECK(n > 0 && n <= size * MOST_RATIO);
    pixels = calloc(n, 1);
    result = pixels ? pf_tiff_read_pixels(tiff, pixels, n, err) : PF_ENOMEM;
  }
  if (result == PF_OK)
    result = pf_tiff_read_tags(tiff, &tags, err);
  if (result == PF_OK)
    outcome = n == sizeof(image) && memcmp(pixels, image, n) == 0;
  free(pixels);
  pf_tiff_tags_free(&tags);
  return outcome;
}

/* Read all pages: 1 the right pixels, 0 others, -1 an error. */
static int read_all(size_t size) {
  struct pf_error err = PF_ERROR_INIT;
  struct pf_tiff_header header;
  struct pf_tiff *tiff = NULL;
  int outcome = -1;
  if (pf_tiff_read_header(&header, file, 1000, &err) == PF_OK &&
      pf_tiff_open(&tiff, file, &err) == PF_OK) {
    outcome = 1;
    for (uint32_t page = 0; page < header.n_pages && outcome == 1; page++)
      outcome = read_page(tiff, page, size, &err);
  }
  if (outcome < 0)
    CHECK(err.message && err.file && strstr(err.message, "cannot read "));
  pf_tiff_header_free(&header);
  pf_tiff_close(&tiff);
  pf_error_clear(&err);
  return outcome;
}

static void test_prefixes(size_t kind, const unsigned char *bytes, size_t n) {
  size_t n_wrong = 0, n_right = 0;
  for (size_t i = 0; i < n; i++) {
    int outcome;
    put_file(bytes, i);
    outcome = read_all(i);
    n_wrong += outcome == 0;
    n_right += outcome == 1;
  }
  CHECK_INT(n_wrong, 0);
  /* At most the padding at the end can be missing. */
  CHECK(n_right < 8);
  put_file(bytes, n);
  CHECK_INT(read_all(n), 1);
  if (n_wrong)
    (void)printf("  kind %zu: %zu prefixes read as other pixels\n", kind,
                 n_wrong);
}

static void test_changes(unsigned char *bytes, size_t n) {
  static const unsigned char masks[] = {0xff, 0x01, 0x80, 0x10};
  for (size_t i = 0; i < n; i++) {
    unsigned char was = bytes[i];
    for (size_t m = 0; m < sizeof(masks); m++) {
      bytes[i] = was ^ masks[m];
      put_file(bytes, n);
      (void)read_all(n);
    }
    bytes[i] = was;
  }
}

/* The header says at most as many pages as it was asked for. */
static void test_page_count(void) {
  struct pf_error err = PF_ERROR_INIT;
  struct pf_tiff_header header;
  unsigned char bytes[MOST_BYTES];
  (void)make_file(1, bytes);
  for (uint32_t most = 0; most < 4; most++) {
    CHECK_INT(pf_tiff_read_header(&header, file, most, &err), PF_OK);
    CHECK_INT(header.n_pages, most < 2 ? 1 : 2);
    pf_tiff_header_free(&header);
  }
}

/* Run everything with stderr in a file: it must stay empty. */
static long run_silent(void) {
  struct stat st = {0};
  char log[sizeof(folder) + 16];
  unsigned char bytes[MOST_BYTES];
  int saved = dup(STDERR_FILENO), fd;
  (void)snprintf(log, sizeof(log), "%s/stderr", folder);
  fd = open(log, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (fd < 0 || dup2(fd, STDERR_FILENO) < 0)
    return -1;
  for (size_t kind = 0; kind < N_KINDS; kind++) {
    size_t n = make_file(kind, bytes);
    test_prefixes(kind, bytes, n);
    test_changes(bytes, n);
  }
  test_page_count();
  (void)fstat(fd, &st);
  (void)dup2(saved, STDERR_FILENO);
  (void)close(saved);
  (void)close(fd);
  (void)unlink(log);
  return (long)st.st_size;
}

int main(void) {
  if (!mkdtemp(folder))
    return 1;
  (void)snprintf(file, sizeof(file), "%s/a.tif", folder);
  for (uint32_t y = 0; y < HEIGHT; y++)
    for (uint32_t x = 0; x < WIDTH; x++)
      image[y][x] = (uint16_t)(257 + 300 * (y / 3) + 7 * x % 5);
  CHECK_INT(run_silent(), 0);
  CHECK_INT(unlink(file), 0);
  CHECK_INT(rmdir(folder), 0);
  return check_done();
}
