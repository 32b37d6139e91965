/* What pages carry beside pixels: see struct pf_tiff_tags. */
#include "engine/plate/tiff_client.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/*
 * libtiff's number, the compression, and how many bytes at most one byte can
 * stand for: a code of LZW holds one string of at most 4096 bytes in 12 bits,
 * 1032 is deflate's own limit, a block of zstd is 128 KiB in 4 bytes, a run
 * of PackBits 128 in 2. Rows with one number: the first one is written.
 */
static const struct {
  uint16_t tag;
  enum pf_compression compression;
  unsigned max_ratio;
} compressions[] = {
    {COMPRESSION_NONE, PF_COMPRESSION_NONE, 1},
    {COMPRESSION_LZW, PF_COMPRESSION_LZW, 4096},
    {COMPRESSION_ADOBE_DEFLATE, PF_COMPRESSION_DEFLATE, 1032},
    {COMPRESSION_DEFLATE, PF_COMPRESSION_DEFLATE, 1032},
    {COMPRESSION_ZSTD, PF_COMPRESSION_ZSTD, 32768},
    {COMPRESSION_PACKBITS, PF_COMPRESSION_PACKBITS, 64},
};
enum { N_COMPRESSIONS = sizeof(compressions) / sizeof(compressions[0]) };

uint16_t pf_tiff_compression_tag(enum pf_compression compression) {
  for (size_t i = 0; i < N_COMPRESSIONS; i++)
    if (compressions[i].compression == compression)
      return compressions[i].tag;
  return COMPRESSION_NONE;
}

enum pf_compression pf_tiff_compression_of(uint16_t tag, unsigned *max_ratio) {
  *max_ratio = 1;
  for (size_t i = 0; i < N_COMPRESSIONS; i++)
    if (compressions[i].tag == tag) {
      *max_ratio = compressions[i].max_ratio;
      return compressions[i].compression;
    }
  return PF_N_COMPRESSIONS;
}

static const char *const compression_names[] = {
#define XX(name, word) word,
    PF_COMPRESSION_MAP(XX)
#undef XX
};

const char *pf_compression_name(enum pf_compression compression) {
  return (size_t)compression < PF_N_COMPRESSIONS
             ? compression_names[compression]
             : "input";
}

enum pf_compression pf_compression_find(const char *word) {
  for (int i = 0; i < (int)PF_N_COMPRESSIONS; i++)
    if (strcmp(compression_names[i], word) == 0)
      return (enum pf_compression)i;
  return PF_N_COMPRESSIONS;
}

/* Pixels per unit, or 0 for what is not said or makes no sense. */
static double resolution(const struct pf_tiff *tiff, uint32_t tag) {
  float value = 0;
  if (TIFFGetField(tiff->handle, tag, &value) != 1 || !isfinite(value) ||
      value <= 0)
    return 0;
  return (double)value;
}

int pf_tiff_read_tags(struct pf_tiff *tiff, struct pf_tiff_tags *tags,
                      struct pf_error *err) {
  const char *text = NULL;
  *tags = (struct pf_tiff_tags){.compression = PF_N_COMPRESSIONS};
  if (tiff->page.number == 0)
    return pf_error_set(err, PF_EBUG, "no page of %s is chosen", tiff->path);
  tags->compression = tiff->page.compression;
  tags->x_resolution = resolution(tiff, TIFFTAG_XRESOLUTION);
  tags->y_resolution = resolution(tiff, TIFFTAG_YRESOLUTION);
  (void)TIFFGetFieldDefaulted(tiff->handle, TIFFTAG_RESOLUTIONUNIT,
                              &tags->resolution_unit);
  if (TIFFGetField(tiff->handle, TIFFTAG_IMAGEDESCRIPTION, &text) != 1 ||
      !text || !*text)
    return PF_OK;
  tags->description = strdup(text);
  return tags->description ? PF_OK
                           : pf_error_set(err, PF_ENOMEM, "out of memory");
}

void pf_tiff_tags_free(struct pf_tiff_tags *tags) {
  if (!tags)
    return;
  free(tags->description);
  *tags = (struct pf_tiff_tags){.compression = PF_N_COMPRESSIONS};
}
