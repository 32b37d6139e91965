/* OUT/log.txt: see engine/log.h. */
#include "engine/log.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bridge/buf.h"

/* Lines printed before OUT exists; more than this is not worth keeping. */
enum { MAX_EARLY = 64 * 1024 };

struct pf_log {
  pthread_mutex_t lock;
  /* --- protected by lock */
  int fd;              /* -1: no file yet */
  struct pf_buf early; /* lines from before the file */
};

int pf_log_create(struct pf_log **out, struct pf_error *err) {
  struct pf_log *log = calloc(1, sizeof(*log));
  *out = log;
  if (!log)
    return pf_error_set(err, PF_ENOMEM, "out of memory");
  log->fd = -1;
  (void)pthread_mutex_init(&log->lock, NULL);
  return PF_OK;
}

void pf_log_destroy(struct pf_log **log_p) {
  struct pf_log *log = *log_p;
  *log_p = NULL;
  if (!log)
    return;
  if (log->fd >= 0)
    (void)close(log->fd);
  pf_buf_free(&log->early);
  (void)pthread_mutex_destroy(&log->lock);
  free(log);
}

/* A full disk must not stop a run for its log: what cannot be written is
 * dropped. */
static void write_locked(struct pf_log *log, const char *bytes, size_t n) {
  while (n) {
    ssize_t done = write(log->fd, bytes, n);
    if (done < 0 && errno == EINTR)
      continue;
    if (done <= 0)
      return;
    bytes += done;
    n -= (size_t)done;
  }
}

int pf_log_attach(struct pf_log *log, const char *path, struct pf_error *err) {
  int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (fd < 0)
    return pf_error_set(err, PF_EWRITE, "cannot write %s: %s", path,
                        strerror(errno));
  (void)pthread_mutex_lock(&log->lock);
  if (log->fd >= 0)
    (void)close(log->fd);
  log->fd = fd;
  write_locked(log, pf_buf_text(&log->early), log->early.len);
  pf_buf_free(&log->early);
  (void)pthread_mutex_unlock(&log->lock);
  return PF_OK;
}

void pf_log_line(struct pf_log *log, const char *step, const char *group,
                 const char *text, size_t n) {
  struct pf_buf line = {0};
  if (!log)
    return;
  while (n && (text[n - 1] == '\n' || text[n - 1] == '\r'))
    n--;
  if (step)
    pf_buf_printf(&line, "[%s%s%s] ", step, group ? ", " : "",
                  group ? group : "");
  pf_buf_add(&line, text, n);
  pf_buf_char(&line, '\n');
  if (pf_buf_ok(&line)) {
    (void)pthread_mutex_lock(&log->lock);
    if (log->fd >= 0)
      write_locked(log, line.data, line.len);
    else if (log->early.len + line.len <= MAX_EARLY)
      pf_buf_add(&log->early, line.data, line.len);
    (void)pthread_mutex_unlock(&log->lock);
  }
  pf_buf_free(&line);
}
