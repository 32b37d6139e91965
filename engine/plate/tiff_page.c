/*
 * Going to a page and refusing what is no gray image of a type that plateflow
 * has: see pf_tiff_page(). One check, one sentence each.
 */
#include "engine/plate/tiff_client.h"

#define N_OF(table) (sizeof(table) / sizeof((table)[0]))

static uint16_t tag16(const struct pf_tiff *tiff, uint32_t tag) {
  uint16_t value = 0;
  (void)TIFFGetFieldDefaulted(tiff->handle, tag, &value);
  return value;
}

static uint32_t tag32(const struct pf_tiff *tiff, uint32_t tag) {
  uint32_t value = 0;
  (void)TIFFGetFieldDefaulted(tiff->handle, tag, &value);
  return value;
}

/* Photometric interpretations that are no gray values, by their names. */
static const struct {
  uint16_t tag;
  const char *name;
} colours[] = {
    {PHOTOMETRIC_RGB, "RGB"},
    {PHOTOMETRIC_MASK, "a transparency mask"},
    {PHOTOMETRIC_SEPARATED, "CMYK"},
    {PHOTOMETRIC_YCBCR, "YCbCr"},
    {PHOTOMETRIC_CIELAB, "CIE L*a*b*"},
    {PHOTOMETRIC_ICCLAB, "ICC L*a*b*"},
    {PHOTOMETRIC_ITULAB, "ITU L*a*b*"},
    {PHOTOMETRIC_CFA, "a colour filter mosaic"},
    {PHOTOMETRIC_LOGL, "logarithmic luminance"},
    {PHOTOMETRIC_LOGLUV, "logarithmic LUV"},
};

static int check_colour(const struct pf_tiff *tiff, struct pf_error *err) {
  uint16_t photometric = PHOTOMETRIC_MINISBLACK;
  uint16_t samples = tag16(tiff, TIFFTAG_SAMPLESPERPIXEL);
  /* Files without the tag are gray: there is no default to ask for. */
  (void)TIFFGetField(tiff->handle, TIFFTAG_PHOTOMETRIC, &photometric);
  for (size_t i = 0; i < N_OF(colours); i++)
    if (colours[i].tag == photometric)
      return pf_tiff_fail(tiff, tiff->page.number, err,
                          "its pixels are %s (%u samples each); save each "
                          "channel as a gray image",
                          colours[i].name, samples);
  if (samples != 1)
    return pf_tiff_fail(tiff, tiff->page.number, err,
                        "its pixels have %u samples each; save each channel "
                        "as a gray image, one a page or a file",
                        samples);
  if (photometric != PHOTOMETRIC_MINISBLACK &&
      photometric != PHOTOMETRIC_MINISWHITE &&
      photometric != PHOTOMETRIC_PALETTE)
    return pf_tiff_fail(tiff, tiff->page.number, err,
                        "its photometric interpretation %u is not known; "
                        "save it as a gray image",
                        photometric);
  return PF_OK;
}

/*
 * Old 8-bit cameras wrote gray images with a palette that says so: their
 * indices are the gray values.
 */
static int check_palette(const struct pf_tiff *tiff, struct pf_error *err) {
  uint16_t *red = NULL, *green = NULL, *blue = NULL;
  size_t n = (size_t)1 << (tiff->page.n_bits <= 16 ? tiff->page.n_bits : 0);
  bool is_ramp;
  if (!tiff->page.is_palette)
    return PF_OK;
  is_ramp =
      n > 1 &&
      TIFFGetField(tiff->handle, TIFFTAG_COLORMAP, &red, &green, &blue) == 1 &&
      red[0] < red[n - 1];
  for (size_t i = 0; is_ramp && i < n; i++)
    is_ramp = red[i] == green[i] && red[i] == blue[i] &&
              (i == 0 || red[i - 1] <= red[i]);
  if (is_ramp)
    return PF_OK;
  return pf_tiff_fail(tiff, tiff->page.number, err,
                      "its pixels are indices into a colour palette that is "
                      "no gray ramp; save it as a gray image");
}

static const struct {
  uint16_t n_bits, format;
  enum pf_dtype dtype;
} types[] = {
    {1, SAMPLEFORMAT_UINT, PF_BOOL},   {8, SAMPLEFORMAT_UINT, PF_U8},
    {8, SAMPLEFORMAT_INT, PF_I8},      {16, SAMPLEFORMAT_UINT, PF_U16},
    {16, SAMPLEFORMAT_INT, PF_I16},    {32, SAMPLEFORMAT_UINT, PF_U32},
    {32, SAMPLEFORMAT_INT, PF_I32},    {64, SAMPLEFORMAT_UINT, PF_U64},
    {64, SAMPLEFORMAT_INT, PF_I64},    {16, SAMPLEFORMAT_IEEEFP, PF_F16},
    {32, SAMPLEFORMAT_IEEEFP, PF_F32}, {64, SAMPLEFORMAT_IEEEFP, PF_F64},
};

static const char *format_name(uint16_t format) {
  static const char *const names[] = {
      "",        "unsigned integers", "signed integers", "floats",
      "untyped", "complex integers",  "complex floats"};
  return format < N_OF(names) && format > 0 ? names[format] : "unknown";
}

static int find_type(struct pf_tiff *tiff, struct pf_error *err) {
  uint16_t n_bits = tag16(tiff, TIFFTAG_BITSPERSAMPLE);
  uint16_t format = tag16(tiff, TIFFTAG_SAMPLEFORMAT);
  /* "Untyped" data are taken as libtiff takes them. */
  uint16_t wanted = format == SAMPLEFORMAT_VOID ? SAMPLEFORMAT_UINT : format;
  tiff->page.n_bits = n_bits;
  for (size_t i = 0; i < N_OF(types); i++)
    if (types[i].n_bits == n_bits && types[i].format == wanted) {
      tiff->page.dtype = types[i].dtype;
      return PF_OK;
    }
  return pf_tiff_fail(tiff, tiff->page.number, err,
                      "its pixels are %s of %u bits, which are not read; "
                      "save it with 8, 16 or 32 bit integers or floats",
                      format_name(format), n_bits);
}

static int check_size(struct pf_tiff *tiff, struct pf_error *err) {
  struct pf_tiff_page_info *page = &tiff->page;
  uint64_t n_bytes;
  page->width = tag32(tiff, TIFFTAG_IMAGEWIDTH);
  page->height = tag32(tiff, TIFFTAG_IMAGELENGTH);
  if (page->width == 0 || page->height == 0 || page->width > INT32_MAX ||
      page->height > INT32_MAX)
    return pf_tiff_fail(tiff, page->number, err,
                        "its size of %u x %u pixels cannot be read",
                        page->width, page->height);
  n_bytes = (uint64_t)page->width * page->height * pf_dtype_size(page->dtype);
  if (n_bytes > PF_TIFF_MAX_PLANE)
    return pf_tiff_fail(tiff, page->number, err,
                        "its %u x %u pixels take %llu bytes, more than %llu "
                        "a plane; crop or tile it",
                        page->width, page->height, (unsigned long long)n_bytes,
                        (unsigned long long)PF_TIFF_MAX_PLANE);
  if (tag32(tiff, TIFFTAG_IMAGEDEPTH) > 1)
    return pf_tiff_fail(tiff, page->number, err,
                        "it is a volume in one page; save it as one page a "
                        "plane");
  return PF_OK;
}

/*
 * libtiff decodes whole strips with libdeflate and passes over its verdict
 * where the stream fills the strip: one that is cut by some bytes is then
 * completed with others. zlib says that the stream ends early.
 */
static bool be_strict(struct pf_tiff *tiff) {
  return tiff->page.compression != PF_COMPRESSION_DEFLATE ||
         TIFFSetField(tiff->handle, TIFFTAG_DEFLATE_SUBCODEC,
                      DEFLATE_SUBCODEC_ZLIB) == 1;
}

static int check_compression(struct pf_tiff *tiff, struct pf_error *err) {
  struct pf_tiff_page_info *page = &tiff->page;
  uint16_t tag = tag16(tiff, TIFFTAG_COMPRESSION);
  const TIFFCodec *codec;
  page->compression = pf_tiff_compression_of(tag, &page->max_ratio);
  page->reversed_bits = tag16(tiff, TIFFTAG_FILLORDER) == FILLORDER_LSB2MSB;
  if (page->compression != PF_N_COMPRESSIONS && TIFFIsCODECConfigured(tag) &&
      be_strict(tiff))
    return PF_OK;
  codec = TIFFFindCODEC(tag);
  return pf_tiff_fail(tiff, page->number, err,
                      "its compression %u (%s) is not read; save it with "
                      "lzw, deflate, zstd, packbits or none",
                      tag, codec ? codec->name : "unknown");
}

/* How the plane is cut into chunks: strips or tiles. */
static void find_chunks(struct pf_tiff *tiff) {
  struct pf_tiff_page_info *page = &tiff->page;
  page->is_tiled = TIFFIsTiled(tiff->handle) != 0;
  if (page->is_tiled) {
    page->chunk_width = tag32(tiff, TIFFTAG_TILEWIDTH);
    page->chunk_height = tag32(tiff, TIFFTAG_TILELENGTH);
  } else {
    page->chunk_width = page->width;
    page->chunk_height = tag32(tiff, TIFFTAG_ROWSPERSTRIP);
    if (page->chunk_height > page->height)
      page->chunk_height = page->height;
  }
}

static int check_page(struct pf_tiff *tiff, struct pf_error *err) {
  int result = check_colour(tiff, err);
  if (result == PF_OK)
    result = find_type(tiff, err);
  if (result == PF_OK)
    result = check_palette(tiff, err);
  if (result == PF_OK)
    result = check_size(tiff, err);
  if (result == PF_OK)
    result = check_compression(tiff, err);
  if (result != PF_OK)
    return result;
  find_chunks(tiff);
  return pf_tiff_chunks_check(tiff, err);
}

static int go_to(struct pf_tiff *tiff, uint32_t page, struct pf_error *err) {
  uint64_t offset;
  int result = pf_tiff_chain_extend(tiff, page + 1, err);
  if (result != PF_OK)
    return result;
  if (page >= tiff->chain.n)
    return pf_tiff_fail(tiff, page + 1, err,
                        "there is no such page (the file has %u)",
                        tiff->chain.n);
  offset = tiff->chain.offsets[page];
  tiff->log.text[0] = '\0';
  tiff->page.number = page + 1;
  result = pf_tiff_chain_entries(tiff, offset, err);
  if (result != PF_OK)
    return result;
  if (!TIFFSetSubDirectory(tiff->handle, offset))
    return pf_tiff_fail(tiff, page + 1, err, "its directory is damaged (%s)",
                        tiff->log.text[0] ? tiff->log.text : "no reason");
  return check_page(tiff, err);
}

int pf_tiff_check_end(struct pf_tiff *tiff, uint32_t n_pages,
                      struct pf_error *err) {
  int result;
  if (n_pages == UINT32_MAX)
    return PF_OK;
  result = pf_tiff_chain_extend(tiff, n_pages + 1, err);
  if (result != PF_OK || tiff->chain.n <= n_pages)
    return result;
  return pf_tiff_fail(tiff, 0, err,
                      "it has more pages than the first file of its channel "
                      "(%u)",
                      n_pages);
}

int pf_tiff_page(struct pf_tiff *tiff, uint32_t page, uint32_t *width,
                 uint32_t *height, enum pf_dtype *dtype,
                 struct pf_error *err) {
  int result = PF_OK;
  *width = *height = 0;
  *dtype = PF_DTYPE_NONE;
  if (page == UINT32_MAX)
    return pf_tiff_fail(tiff, 0, err, "there is no page %u", page);
  if (tiff->page.number != page + 1) {
    tiff->page = (struct pf_tiff_page_info){0};
    result = go_to(tiff, page, err);
  }
  if (result != PF_OK) {
    tiff->page.number = 0;
    return result;
  }
  *width = tiff->page.width;
  *height = tiff->page.height;
  *dtype = tiff->page.dtype;
  return PF_OK;
}
