/* How libtiff is opened here: our bytes, our log, nothing on stderr. */
#ifndef PF_TIFF_CLIENT_H
#define PF_TIFF_CLIENT_H

#include <tiffio.h>

#include "engine/plate/tiff_private.h"

struct pf_tiff_procs {
  TIFFReadWriteProc read, write;
  TIFFSeekProc seek;
  TIFFSizeProc size;
};

/*
 * A handle that takes at most `max_bytes` of memory at once (0: no limit) and
 * whose bytes come from and go to `client`, which must outlive it.
 * The first error text goes into `log`, warnings nowhere. NULL: see the log.
 */
TIFF *pf_tiff_client(const char *mode, void *client,
                     const struct pf_tiff_procs *procs, uint64_t max_bytes,
                     struct pf_tiff_log *log);

#endif
