/* Redirected output: see engine/cli/capture.h. */
#include "engine/cli/capture.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bridge/buf.h"
#include "bridge/os.h"

/* Standard output is the process's, so this is too. */
static struct {
  bool running;
  pthread_t thread;
  atomic_bool ending;
  int pipe_fd;  /* read end */
  int saved[3]; /* of 1 and 2 */
  struct pf_log *log;
  struct pf_buf line; /* of the thread */
} capture;

enum { MAX_LINE = 64 * 1024 }; /* a longer line is cut into several */

static void take_bytes(const char *bytes, size_t n) {
  while (n) {
    const char *end = memchr(bytes, '\n', n);
    size_t part = end ? (size_t)(end - bytes) : n;
    pf_buf_add(&capture.line, bytes, part);
    if (end || capture.line.len >= MAX_LINE) {
      pf_log_line(capture.log, NULL, NULL, pf_buf_text(&capture.line),
                  capture.line.len);
      pf_buf_reset(&capture.line);
    }
    part += end != NULL;
    bytes += part;
    n -= part;
  }
}

/* A child that a step started may hold the pipe open for ever: the end is
 * when it was asked for and nothing more is there. */
static void *capture_main(void *context) {
  char bytes[4096];
  (void)context;
  pf_os_name_thread("pf-log");
  for (;;) {
    struct pollfd wait = {.fd = capture.pipe_fd, .events = POLLIN};
    bool ending = atomic_load(&capture.ending);
    int ready = poll(&wait, 1, ending ? 0 : 100);
    ssize_t n;
    if (ready == 0 && ending)
      break;
    if (ready <= 0)
      continue;
    n = read(capture.pipe_fd, bytes, sizeof(bytes));
    if (n > 0)
      take_bytes(bytes, (size_t)n);
    else if (n == 0 || errno != EINTR)
      break;
  }
  if (capture.line.len)
    pf_log_line(capture.log, NULL, NULL, capture.line.data, capture.line.len);
  pf_buf_free(&capture.line);
  return NULL;
}

static int redirect(int write_end, struct pf_error *err) {
  for (int fd = 1; fd <= 2; fd++) {
    capture.saved[fd] = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    if (capture.saved[fd] < 0 || dup2(write_end, fd) < 0)
      return pf_error_set(err, PF_EMISSING,
                          "cannot redirect what steps print: %s",
                          strerror(errno));
  }
  return PF_OK;
}

int capture_start(struct pf_log *log, struct pf_error *err) {
  int ends[2];
  int result;
  if (capture.running)
    return PF_OK;
  (void)fflush(NULL);
  if (pipe2(ends, O_CLOEXEC) != 0)
    return pf_error_set(err, PF_EMISSING, "cannot make a pipe: %s",
                        strerror(errno));
  capture.log = log;
  capture.pipe_fd = ends[0];
  atomic_store(&capture.ending, false);
  result = redirect(ends[1], err);
  (void)close(ends[1]);
  if (result == PF_OK &&
      pthread_create(&capture.thread, NULL, capture_main, NULL) != 0)
    result = pf_error_set(err, PF_EMISSING, "cannot start a thread");
  capture.running = result == PF_OK;
  return result;
}

void capture_stop(void) {
  if (!capture.running)
    return;
  capture.running = false;
  (void)fflush(stdout);
  (void)fflush(stderr);
  for (int fd = 1; fd <= 2; fd++) {
    (void)dup2(capture.saved[fd], fd);
    (void)close(capture.saved[fd]);
  }
  atomic_store(&capture.ending, true);
  (void)pthread_join(capture.thread, NULL);
  (void)close(capture.pipe_fd);
}
