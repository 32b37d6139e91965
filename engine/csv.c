/* CSV files: see engine/csv.h. */
#include "engine/csv.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bridge/os.h"

static int csv_error(const struct pf_csv *csv, int saved,
                     struct pf_error *err) {
  return pf_error_set(err, pf_os_write_code(saved), "cannot write OUT/%s: %s",
                      csv->name, strerror(saved));
}

int pf_csv_open(struct pf_csv *csv, const char *out_dir, const char *name,
                struct pf_error *err) {
  char *folder = NULL;
  int result = PF_OK;
  *csv = (struct pf_csv){.name = name, .at_start = true};
  csv->path = pf_os_join(out_dir, name);
  csv->temporary = csv->path ? pf_os_temporary(csv->path) : NULL;
  folder = csv->path ? pf_os_dirname(csv->path) : NULL;
  if (!csv->temporary || !folder)
    result = pf_error_set(err, PF_ENOMEM, "out of memory");
  if (result == PF_OK)
    result = pf_os_make_dirs(folder, err);
  if (result == PF_OK) {
    csv->file = fopen(csv->temporary, "we");
    if (!csv->file)
      result = csv_error(csv, errno, err);
  }
  free(folder);
  return result;
}

void pf_csv_text(struct pf_csv *csv, const char *text) {
  if (!csv->at_start)
    (void)fputc(',', csv->file);
  csv->at_start = false;
  if (!text)
    return;
  if (!strpbrk(text, ",\"\r\n")) {
    (void)fputs(text, csv->file);
    return;
  }
  (void)fputc('"', csv->file);
  for (; *text; text++) {
    if (*text == '"')
      (void)fputc('"', csv->file);
    (void)fputc(*text, csv->file);
  }
  (void)fputc('"', csv->file);
}

void pf_csv_real(struct pf_csv *csv, double x) {
  char text[40] = "";
  for (int digits = 15; digits <= 17 && isfinite(x); digits++) {
    (void)snprintf(text, sizeof(text), "%.*g", digits, x);
    if (strtod(text, NULL) == x)
      break;
  }
  if (isinf(x))
    (void)snprintf(text, sizeof(text), "%s", x > 0 ? "inf" : "-inf");
  pf_csv_text(csv, text);
}

void pf_csv_int(struct pf_csv *csv, long long x) {
  char text[32];
  (void)snprintf(text, sizeof(text), "%lld", x);
  pf_csv_text(csv, text);
}

void pf_csv_line(struct pf_csv *csv) {
  (void)fputc('\n', csv->file);
  csv->at_start = true;
  if (!csv->saved_errno && ferror(csv->file))
    csv->saved_errno = errno;
}

int pf_csv_close(struct pf_csv *csv, int result, struct pf_error *err) {
  if (csv->file && fclose(csv->file) != 0 && !csv->saved_errno)
    csv->saved_errno = errno;
  if (result == PF_OK && csv->saved_errno)
    result = csv_error(csv, csv->saved_errno, err);
  if (result == PF_OK && rename(csv->temporary, csv->path) != 0)
    result = csv_error(csv, errno, err);
  if (result != PF_OK && csv->temporary)
    (void)remove(csv->temporary);
  free(csv->temporary);
  free(csv->path);
  return result;
}
