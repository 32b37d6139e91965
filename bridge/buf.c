/* Growing strings: see bridge/buf.h. */
#include "bridge/buf.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Room for `n` more bytes and a NUL; false (and failed) without memory. */
static bool reserve(struct pf_buf *buf, size_t n) {
  size_t need, cap;
  char *data;
  if (buf->failed)
    return false;
  if (n > SIZE_MAX / 2 - buf->len - 1) {
    buf->failed = true;
    return false;
  }
  need = buf->len + n + 1;
  if (buf->data && need <= buf->cap)
    return true;
  cap = buf->cap ? buf->cap : 64;
  while (cap < need)
    cap *= 2;
  data = realloc(buf->data, cap);
  if (!data) {
    buf->failed = true;
    return false;
  }
  buf->data = data;
  buf->cap = cap;
  return true;
}

void pf_buf_add(struct pf_buf *buf, const void *bytes, size_t n) {
  if (!reserve(buf, n))
    return;
  if (n)
    memcpy(buf->data + buf->len, bytes, n);
  buf->len += n;
  buf->data[buf->len] = '\0';
}

void pf_buf_str(struct pf_buf *buf, const char *text) {
  pf_buf_add(buf, text, strlen(text));
}

void pf_buf_char(struct pf_buf *buf, char c) {
  pf_buf_add(buf, &c, 1);
}

void pf_buf_vprintf(struct pf_buf *buf, const char *fmt, va_list args) {
  va_list again;
  int n;
  va_copy(again, args);
  n = vsnprintf(NULL, 0, fmt, again);
  va_end(again);
  if (n < 0) {
    buf->failed = true;
    return;
  }
  if (!reserve(buf, (size_t)n))
    return;
  (void)vsnprintf(buf->data + buf->len, (size_t)n + 1, fmt, args);
  buf->len += (size_t)n;
}

void pf_buf_printf(struct pf_buf *buf, const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  pf_buf_vprintf(buf, fmt, args);
  va_end(args);
}

/* Shortest forms only, no surrogates, at most U+10FFFF (RFC 3629). */
size_t pf_utf8_length(const unsigned char *s) {
  if (s[0] < 0x80)
    return 1;
  if (s[0] >= 0xc2 && s[0] <= 0xdf)
    return (s[1] & 0xc0) == 0x80 ? 2 : 0;
  if (s[0] >= 0xe0 && s[0] <= 0xef) {
    if ((s[1] & 0xc0) != 0x80 || (s[2] & 0xc0) != 0x80)
      return 0;
    if (s[0] == 0xe0 && s[1] < 0xa0)
      return 0;
    return s[0] == 0xed && s[1] > 0x9f ? 0 : 3;
  }
  if (s[0] >= 0xf0 && s[0] <= 0xf4) {
    if ((s[1] & 0xc0) != 0x80 || (s[2] & 0xc0) != 0x80 ||
        (s[3] & 0xc0) != 0x80)
      return 0;
    if (s[0] == 0xf0 && s[1] < 0x90)
      return 0;
    return s[0] == 0xf4 && s[1] > 0x8f ? 0 : 4;
  }
  return 0;
}

static void json_control(struct pf_buf *buf, unsigned char c) {
  switch (c) {
  case '"':
  case '\\':
    pf_buf_printf(buf, "\\%c", c);
    break;
  case '\n':
    pf_buf_str(buf, "\\n");
    break;
  case '\t':
    pf_buf_str(buf, "\\t");
    break;
  default:
    pf_buf_printf(buf, "\\u%04x", c);
  }
}

void pf_buf_json(struct pf_buf *buf, const char *text) {
  const unsigned char *s = (const unsigned char *)text;
  pf_buf_char(buf, '"');
  while (*s) {
    size_t n = pf_utf8_length(s);
    if (n == 0) {
      pf_buf_str(buf, "\xef\xbf\xbd"); /* U+FFFD */
      s++;
      continue;
    }
    if (*s < 0x20 || *s == 0x7f || *s == '"' || *s == '\\')
      json_control(buf, *s);
    else
      pf_buf_add(buf, s, n);
    s += n;
  }
  pf_buf_char(buf, '"');
}

void pf_buf_name(struct pf_buf *buf, const char *text) {
  const unsigned char *s = (const unsigned char *)text;
  while (*s) {
    size_t n = pf_utf8_length(s);
    if (n == 0 || *s < 0x20 || *s == 0x7f) {
      pf_buf_printf(buf, "\\x%02x", *s);
      s++;
      continue;
    }
    if (*s == '\\')
      pf_buf_char(buf, '\\');
    pf_buf_add(buf, s, n);
    s += n;
  }
}

void pf_buf_reset(struct pf_buf *buf) {
  buf->len = 0;
  buf->failed = false;
  if (buf->data)
    buf->data[0] = '\0';
}

bool pf_buf_ok(const struct pf_buf *buf) {
  return !buf->failed;
}

const char *pf_buf_text(const struct pf_buf *buf) {
  return buf->data ? buf->data : "";
}

char *pf_buf_take(struct pf_buf *buf) {
  char *data;
  if (!buf->data)
    pf_buf_add(buf, "", 0);
  data = buf->data;
  if (buf->failed) {
    free(data);
    data = NULL;
  }
  *buf = (struct pf_buf){0};
  return data;
}

void pf_buf_free(struct pf_buf *buf) {
  free(buf->data);
  *buf = (struct pf_buf){0};
}

char *pf_name_for_people(const char *text) {
  struct pf_buf buf = {0};
  pf_buf_name(&buf, text);
  return pf_buf_take(&buf);
}
