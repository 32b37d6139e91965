/*
 * A growing string. Failure to grow is remembered, not returned: build, then
 * ask once (pf_buf_ok) or take the string (pf_buf_take: NULL after failure).
 * A zeroed struct is an empty buffer. One thread at a time.
 */
#ifndef PF_BUF_H
#define PF_BUF_H

#include <stdbool.h>
#include <stddef.h>

#include "plateflow/error.h"

struct pf_buf {
  char *data; /* always NUL-terminated once len > 0; NULL while empty */
  size_t len, cap;
  bool failed; /* an allocation failed; the content is cut */
};

PF_API void pf_buf_add(struct pf_buf *buf, const void *bytes, size_t n);
PF_API void pf_buf_str(struct pf_buf *buf, const char *text);
PF_API void pf_buf_char(struct pf_buf *buf, char c);
PF_API void pf_buf_printf(struct pf_buf *buf, const char *fmt, ...)
    PF_PRINTF(2, 3);
PF_API void pf_buf_vprintf(struct pf_buf *buf, const char *fmt, va_list args)
    PF_PRINTF(2, 0);
/* `text` as a JSON string, quotes included; invalid UTF-8 becomes U+FFFD. */
PF_API void pf_buf_json(struct pf_buf *buf, const char *text);
/* A name for people: control bytes, DEL and invalid UTF-8 as \xNN, backslash
 * doubled. For every file name that goes into a message. */
PF_API void pf_buf_name(struct pf_buf *buf, const char *text);
/* Empty it, keeping its memory. */
PF_API void pf_buf_reset(struct pf_buf *buf);
PF_API bool pf_buf_ok(const struct pf_buf *buf);
/* The text, "" while empty; valid until the buffer changes. */
PF_API const char *pf_buf_text(const struct pf_buf *buf);
/* Hand the malloc'd string over and leave the buffer empty. */
PF_API char *pf_buf_take(struct pf_buf *buf);
PF_API void pf_buf_free(struct pf_buf *buf);

/* Bytes of the valid UTF-8 sequence at `s` in a NUL-terminated text, 0 if
 * there is none. */
size_t pf_utf8_length(const unsigned char *s);

/* pf_buf_name() as a malloc'd string; NULL if memory ran out. */
PF_API char *pf_name_for_people(const char *text);

#endif
