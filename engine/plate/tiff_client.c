/* Opening libtiff: see engine/plate/tiff_client.h. */
#include "engine/plate/tiff_client.h"

#include <stdio.h>

/*
 * The first error is the cause. Returning 1 keeps the process-wide handlers,
 * which write to stderr, out of it.
 */
static int keep_error(TIFF *handle, void *user, const char *module,
                      const char *fmt, va_list args) {
  struct pf_tiff_log *log = user;
  (void)handle;
  (void)module;
  if (!log->text[0])
    (void)vsnprintf(log->text, sizeof(log->text), fmt, args);
  return 1;
}

/* What libtiff only warns of is either checked here or harmless. */
static int drop_warning(TIFF *handle, void *user, const char *module,
                        const char *fmt, va_list args) {
  (void)handle;
  (void)user;
  (void)module;
  (void)fmt;
  (void)args;
  return 1;
}

/* Descriptors are closed by those who opened them. */
static int close_nothing(thandle_t client) {
  (void)client;
  return 0;
}

TIFF *pf_tiff_client(const char *mode, void *client,
                     const struct pf_tiff_procs *procs, uint64_t max_bytes,
                     struct pf_tiff_log *log) {
  TIFFOpenOptions *options = TIFFOpenOptionsAlloc();
  TIFF *handle = NULL;
  if (!options)
    return NULL;
  if (max_bytes && max_bytes < INT64_MAX)
    TIFFOpenOptionsSetMaxSingleMemAlloc(options, (tmsize_t)max_bytes);
  TIFFOpenOptionsSetErrorHandlerExtR(options, keep_error, log);
  TIFFOpenOptionsSetWarningHandlerExtR(options, drop_warning, NULL);
  handle = TIFFClientOpenExt("the file", mode, client, procs->read,
                             procs->write, procs->seek, close_nothing,
                             procs->size, NULL, NULL, options);
  TIFFOpenOptionsFree(options);
  return handle;
}
