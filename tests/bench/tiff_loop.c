/*
 * The yardstick of tests/bench/engine: a bare libtiff loop that reads each
 * file of a folder and writes it to another the way plateflow does (temporary
 * name, rename), one thread. usage: bench_tiff_loop IN OUT
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tiffio.h>
#include <unistd.h>

struct image {
  uint32_t width, height;
  uint16_t bits;
  tmsize_t n_bytes;
  void *pixels;
};

static int read_image(const char *path, struct image *image) {
  TIFF *tiff = TIFFOpen(path, "r");
  tmsize_t done = 0;
  if (!tiff)
    return -1;
  TIFFGetField(tiff, TIFFTAG_IMAGEWIDTH, &image->width);
  TIFFGetField(tiff, TIFFTAG_IMAGELENGTH, &image->height);
  TIFFGetField(tiff, TIFFTAG_BITSPERSAMPLE, &image->bits);
  image->n_bytes = (tmsize_t)image->width * image->height * image->bits / 8;
  image->pixels = malloc((size_t)image->n_bytes);
  for (uint32_t s = 0; s < TIFFNumberOfStrips(tiff); s++) {
    tmsize_t n = TIFFReadEncodedStrip(tiff, s, (char *)image->pixels + done,
                                      image->n_bytes - done);
    if (n < 0)
      return -1;
    done += n;
  }
  TIFFClose(tiff);
  return 0;
}

static int write_image(const char *path, const struct image *image) {
  char temporary[4200];
  TIFF *tiff;
  (void)snprintf(temporary, sizeof(temporary), "%s.tmp", path);
  tiff = TIFFOpen(temporary, "w");
  if (!tiff)
    return -1;
  TIFFSetField(tiff, TIFFTAG_IMAGEWIDTH, image->width);
  TIFFSetField(tiff, TIFFTAG_IMAGELENGTH, image->height);
  TIFFSetField(tiff, TIFFTAG_BITSPERSAMPLE, image->bits);
  TIFFSetField(tiff, TIFFTAG_SAMPLESPERPIXEL, 1);
  TIFFSetField(tiff, TIFFTAG_PHOTOMETRIC, PHOTOMETRIC_MINISBLACK);
  TIFFSetField(tiff, TIFFTAG_PLANARCONFIG, PLANARCONFIG_CONTIG);
  TIFFSetField(tiff, TIFFTAG_ROWSPERSTRIP, image->height);
  if (TIFFWriteEncodedStrip(tiff, 0, image->pixels, image->n_bytes) < 0)
    return -1;
  TIFFClose(tiff);
  return rename(temporary, path);
}

int main(int argc, char **argv) {
  DIR *dir = argc == 3 ? opendir(argv[1]) : NULL;
  struct dirent *entry;
  int n = 0;
  if (!dir) {
    (void)fprintf(stderr, "usage: bench_tiff_loop IN OUT\n");
    return 2;
  }
  while ((entry = readdir(dir))) {
    char in[2100], out[2100];
    struct image image = {0};
    if (entry->d_name[0] == '.')
      continue;
    (void)snprintf(in, sizeof(in), "%s/%s", argv[1], entry->d_name);
    (void)snprintf(out, sizeof(out), "%s/%s", argv[2], entry->d_name);
    if (read_image(in, &image) != 0 || write_image(out, &image) != 0) {
      (void)fprintf(stderr, "%s failed\n", in);
      return 1;
    }
    free(image.pixels);
    n++;
  }
  (void)closedir(dir);
  (void)printf("%d\n", n);
  return 0;
}
