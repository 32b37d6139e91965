/* engine/plate/tiff_*.c: what is written is read back, or nothing is left. */
#include "engine/plate/tiff_private.h"
#include "tests/unit/check.h"

#include <dirent.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/pf-tiff-XXXXXX";
static char file[sizeof(folder) + 16];

/* Bytes that are smooth enough to compress, and finite as floats. */
static void fill(unsigned char *bytes, size_t n, enum pf_dtype dtype) {
  uint32_t state = 1;
  for (size_t i = 0; i < n; i++) {
    state = state * 1664525 + 1013904223;
    bytes[i] = (unsigned char)(i / 8 % 61 + (state >> 30));
    if (dtype == PF_BOOL)
      bytes[i] &= 1;
  }
}

static int count_files(void) {
  DIR *dir = opendir(folder);
  int n = 0;
  while (dir && readdir(dir))
    n++;
  if (dir)
    (void)closedir(dir);
  return n - 2;
}

/* Read page 0 of `file`; NULL after failure, with the message in err. */
static struct pf_array *read_file(struct pf_error *err) {
  struct pf_tiff *tiff = NULL;
  struct pf_array *pixels = NULL;
  uint32_t width, height;
  enum pf_dtype dtype;
  int result = pf_tiff_open(&tiff, file, err);
  if (result == PF_OK)
    result = pf_tiff_page(tiff, 0, &width, &height, &dtype, err);
  if (result == PF_OK)
    result = pf_array_create(&pixels, dtype, 2,
                             (const int64_t[]){height, width}, err);
  if (result == PF_OK)
    result = pf_tiff_read_pixels(tiff, pf_array_data(pixels),
                                 pf_array_n_bytes(pixels), err);
  if (result != PF_OK)
    pf_array_unref(&pixels);
  pf_tiff_close(&tiff);
  return pixels;
}

/* Height, width and how the array lies: compact, transposed, every second. */
static const struct {
  int64_t height, width, row_step, step;
} forms[] = {
    {1, 1, 1, 1},    {7, 5, 5, 1},    {64, 64, 64, 1},    {300, 701, 701, 1},
    {33, 20, 1, 33}, {33, 20, 80, 2}, {300, 701, 1, 300}, {20, 10, 0, 1},
};
enum { N_FORMS = sizeof(forms) / sizeof(forms[0]), MOST = 300 * 701 * 8 };

static void check_pixels(const unsigned char *data, size_t form,
                         enum pf_dtype dtype, const struct pf_array *read) {
  size_t size = pf_dtype_size(dtype), n_wrong = 0;
  const unsigned char *got = pf_array_data(read);
  CHECK_INT(pf_array_shape(read)[0], forms[form].height);
  CHECK_INT(pf_array_shape(read)[1], forms[form].width);
  CHECK_INT(pf_array_dtype(read), dtype == PF_BOOL ? PF_U8 : dtype);
  for (int64_t y = 0; y < forms[form].height; y++)
    for (int64_t x = 0; x < forms[form].width; x++, got += size)
      n_wrong += memcmp(got,
                        data + (size_t)(y * forms[form].row_step +
                                        x * forms[form].step) *
                                   size,
                        size) != 0;
  CHECK_INT(n_wrong, 0);
}

static void round_trip(unsigned char *data, size_t form, enum pf_dtype dtype,
                       enum pf_compression compression, bool predictor) {
  struct pf_error err = PF_ERROR_INIT;
  struct pf_array *image = NULL, *read = NULL;
  struct stat st = {0};
  uint64_t n_bytes = 0;
  const struct pf_tiff_write how = {
      .path = file, .compression = compression, .predictor = predictor};
  const struct pf_array_desc desc = {
      .data = data,
      .dtype = dtype,
      .ndim = 2,
      .shape = (const int64_t[]){forms[form].height, forms[form].width},
      .strides = (const int64_t[]){forms[form].row_step, forms[form].step},
      .device = {1, 0},
      .memory_type = PF_MEM_NATIVE,
      .read_only = true};
  CHECK_INT(pf_array_wrap(&image, &desc, NULL, NULL, &err), PF_OK);
  CHECK_INT(pf_tiff_write(&how, image, &n_bytes, &err), PF_OK);
  CHECK(stat(file, &st) == 0 && (uint64_t)st.st_size == n_bytes);
  read = read_file(&err);
  CHECK(read != NULL);
  if (read)
    check_pixels(data, form, dtype, read);
  else
    (void)printf("%s, %s: %s\n", pf_dtype_name(dtype),
                 pf_compression_name(compression), err.message);
  pf_array_unref(&image);
  pf_array_unref(&read);
  pf_error_clear(&err);
}

static void test_round_trips(void) {
  unsigned char *data = malloc(MOST);
  for (int dtype = 0; data && dtype < (int)PF_N_DTYPES; dtype++) {
    if (dtype == PF_BF16)
      continue;
    fill(data, MOST, (enum pf_dtype)dtype);
    for (size_t form = 0; form < N_FORMS; form++)
      for (int c = 0; c < (int)PF_N_COMPRESSIONS; c++)
        for (int predictor = 0; predictor < 2; predictor++)
          round_trip(data, form, (enum pf_dtype)dtype, (enum pf_compression)c,
                     predictor == 1);
  }
  CHECK_INT(count_files(), 1); /* no temporary stays */
  free(data);
}

/* Any byte but 0 is true. */
static void test_bool_bytes(void) {
  struct pf_error err = PF_ERROR_INIT;
  struct pf_array *image = NULL, *read = NULL;
  const struct pf_tiff_write how = {.path = file};
  CHECK_INT(pf_array_create(&image, PF_BOOL, 2, (const int64_t[]){1, 3}, &err),
            PF_OK);
  memcpy(pf_array_data(image), "\0\1\200", 3);
  CHECK_INT(pf_tiff_write(&how, image, NULL, &err), PF_OK);
  read = read_file(&err);
  CHECK(read && memcmp(pf_array_data(read), "\0\1\1", 3) == 0);
  pf_array_unref(&image);
  pf_array_unref(&read);
  pf_error_clear(&err);
}

static const struct {
  double x, y;
  uint16_t unit;
  double x_read, y_read;
  uint16_t unit_read;
} resolutions[] = {
    {72, 36, 2, 72, 36, 2},         {15503.875, 0.5, 3, 15503.875, 0.5, 3},
    {6.25, 6.25, 1, 6.25, 6.25, 1}, {0, 0, 3, 0, 0, 2},
    {1e9, 1e-3, 3, 1e9, 1e-3, 3},   {2, 2, 77, 2, 2, 1},
};

static void test_tags(void) {
  struct pf_error err = PF_ERROR_INIT;
  struct pf_array *image = NULL;
  CHECK_INT(pf_array_create(&image, PF_U16, 2, (const int64_t[]){2, 2}, &err),
            PF_OK);
  memset(pf_array_data(image), 0, 8);
  for (size_t i = 0; i < sizeof(resolutions) / sizeof(resolutions[0]); i++) {
    char text[] = "text";
    struct pf_tiff_tags tags = {.x_resolution = resolutions[i].x,
                                .y_resolution = resolutions[i].y,
                                .resolution_unit = resolutions[i].unit,
                                .description = text};
    const struct pf_tiff_write how = {
        .path = file, .compression = PF_COMPRESSION_ZSTD, .tags = &tags};
    struct pf_tiff *tiff = NULL;
    uint32_t width, height;
    enum pf_dtype dtype;
    CHECK_INT(pf_tiff_write(&how, image, NULL, &err), PF_OK);
    CHECK_INT(pf_tiff_open(&tiff, file, &err), PF_OK);
    CHECK_INT(pf_tiff_page(tiff, 0, &width, &height, &dtype, &err), PF_OK);
    CHECK_INT(pf_tiff_read_tags(tiff, &tags, &err), PF_OK);
    CHECK(tags.x_resolution <= resolutions[i].x_read * 1.000001 &&
          tags.x_resolution >= resolutions[i].x_read * 0.999999);
    CHECK(tags.y_resolution <= resolutions[i].y_read * 1.000001 &&
          tags.y_resolution >= resolutions[i].y_read * 0.999999);
    CHECK_INT(tags.resolution_unit, resolutions[i].unit_read);
    CHECK_INT(tags.compression, PF_COMPRESSION_ZSTD);
    CHECK_STR(tags.description, "text");
    pf_tiff_tags_free(&tags);
    pf_tiff_close(&tiff);
  }
  pf_array_unref(&image);
  pf_error_clear(&err);
}

static const struct {
  const char *text;
  uint32_t slices;
  const char *plane; /* what is left of it for one plane; NULL: nothing */
} descriptions[] = {
    {"ImageJ=1.5\nimages=6\nslices=6\nmin=1\n", 6, "ImageJ=1.5\nmin=1\n"},
    {"ImageJ=1.5\nslices=1\nmin=1", 1, "ImageJ=1.5\nslices=1\nmin=1"},
    {"ImageJ=1.5\nslices=99999999999\n", 0, "ImageJ=1.5\n"},
    {"ImageJ=1.5\nslices=-1\n", 0, "ImageJ=1.5\n"},
    {"ImageJ=1.5\nslices=\n", 0, "ImageJ=1.5\n"},
    {"ImageJ=1.5\r\nslices=3\r\n", 3, "ImageJ=1.5\r\n"},
    {"slices=3\n", 0, "slices=3\n"},
    {"<?xml version='1.0'?>\n<!-- <x> -->\n<OME>", 0, NULL},
    {"\xef\xbb\xbf<a:OME ", 0, NULL},
    {"<?xml", 0, "<?xml"},
    {"<MetaData>", 0, "<MetaData>"},
    {"{\"shape\": [2, 3]}", 0, NULL},
    {"{\"a\": 1}", 0, "{\"a\": 1}"},
    {"", 0, NULL},
};

static void test_descriptions(void) {
  for (size_t i = 0; i < sizeof(descriptions) / sizeof(descriptions[0]); i++) {
    char *plane = NULL;
    CHECK_INT(pf_tiff_imagej_number(descriptions[i].text, "slices"),
              descriptions[i].slices);
    CHECK_INT(pf_tiff_describe_plane(&plane, descriptions[i].text), 0);
    CHECK_STR(plane ? plane : "",
              descriptions[i].plane ? descriptions[i].plane : "");
    free(plane);
  }
}

static void test_names(void) {
  for (int i = 0; i < (int)PF_N_COMPRESSIONS; i++)
    CHECK_INT(pf_compression_find(pf_compression_name((enum pf_compression)i)),
              i);
  CHECK_INT(pf_compression_find("jpeg"), PF_N_COMPRESSIONS);
}

/* A failed write leaves what stood there, and no temporary. */
static void check_failure(const char *path, enum pf_dtype dtype,
                          int64_t height, const char *text) {
  struct pf_error err = PF_ERROR_INIT;
  struct pf_array *image = NULL;
  const struct pf_tiff_write how = {.path = path};
  int n_files = count_files();
  CHECK_INT(
      pf_array_create(&image, dtype, 2, (const int64_t[]){height, 64}, &err),
      PF_OK);
  memset(pf_array_data(image), 1, pf_array_n_bytes(image));
  CHECK(pf_tiff_write(&how, image, NULL, &err) != PF_OK);
  CHECK(err.message && strstr(err.message, text));
  CHECK(err.message && strstr(err.message, "cannot write /tmp/pf-tiff-"));
  CHECK_STR(err.file, path);
  CHECK_INT(count_files(), n_files);
  pf_array_unref(&image);
  pf_error_clear(&err);
}

static void test_failures(void) {
  char path[sizeof(folder) + 32];
  struct rlimit limit, small;
  struct stat before, after;
  (void)snprintf(path, sizeof(path), "%s/no/x.tif", folder);
  check_failure(path, PF_U16, 64, "No such file");
  (void)snprintf(path, sizeof(path), "%s/x.tif", folder);
  CHECK_INT(mkdir(path, 0777), 0);
  check_failure(path, PF_U16, 64, "Is a directory");
  CHECK_INT(rmdir(path), 0);
  check_failure(file, PF_BF16, 64, "bfloat16");
  check_failure(file, PF_U16, 0, "64 x 0 pixels");
  /* A full disk, as far as write() tells: small and large images. */
  CHECK_INT(stat(file, &before), 0);
  (void)signal(SIGXFSZ, SIG_IGN);
  CHECK_INT(getrlimit(RLIMIT_FSIZE, &limit), 0);
  small = limit;
  small.rlim_cur = 4096;
  CHECK_INT(setrlimit(RLIMIT_FSIZE, &small), 0);
  check_failure(file, PF_U16, 64, "File too large");
  check_failure(file, PF_U16, 4000, "File too large");
  CHECK_INT(setrlimit(RLIMIT_FSIZE, &limit), 0);
  CHECK_INT(stat(file, &after), 0);
  CHECK(before.st_ino == after.st_ino && before.st_size == after.st_size);
}

int main(void) {
  if (!mkdtemp(folder))
    return 1;
  (void)snprintf(file, sizeof(file), "%s/a.tif", folder);
  test_names();
  test_descriptions();
  test_round_trips();
  test_bool_bytes();
  test_tags();
  test_failures();
  CHECK_INT(unlink(file), 0);
  CHECK_INT(rmdir(folder), 0);
  return check_done();
}
