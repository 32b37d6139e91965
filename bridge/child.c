/*
 * Another program, run to its end: see bridge/child.h.
 *
 * Its three standard files are memory files rather than pipes: nothing can
 * block half-way, and a child that dies early raises no SIGPIPE here.
 */
#include "bridge/child.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bridge/buf.h"
#include "bridge/os.h"

enum { MAX_OUTPUT = 16 << 20, N_FILES = 3 };

void pf_child_end_clear(struct pf_child_end *end) {
  free(end->output);
  free(end->errors);
  memset(end, 0, sizeof(*end));
}

static void close_files(int *fds) {
  for (int i = 0; i < N_FILES; i++)
    if (fds[i] >= 0)
      (void)close(fds[i]);
}

/* Memory files for 0, 1 and 2, the first holding `input`, read from its
 * start. -1 with errno on failure. */
static int open_files(int *fds, const char *input) {
  size_t n = input ? strlen(input) : 0;
  for (int i = 0; i < N_FILES; i++) {
    fds[i] = memfd_create("plateflow-child", MFD_CLOEXEC);
    if (fds[i] < 0)
      return -1;
  }
  while (n) {
    ssize_t done = write(fds[0], input, n);
    if (done < 0)
      return -1;
    input += done;
    n -= (size_t)done;
  }
  return lseek(fds[0], 0, SEEK_SET) < 0 ? -1 : 0;
}

/* The child starts with no signal blocked and none ignored, whatever the
 * program around us does with its own. */
static int set_signals(posix_spawnattr_t *attr) {
  static const int ours[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGQUIT};
  sigset_t none, usual;
  (void)sigemptyset(&none);
  (void)sigemptyset(&usual);
  for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
    (void)sigaddset(&usual, ours[i]);
  if (posix_spawnattr_setsigmask(attr, &none) ||
      posix_spawnattr_setsigdefault(attr, &usual))
    return ENOMEM;
  return posix_spawnattr_setflags(attr, POSIX_SPAWN_SETSIGMASK |
                                            POSIX_SPAWN_SETSIGDEF);
}

/* An errno value, 0 for success. */
static int spawn(pid_t *pid, const struct pf_child *child, const int *fds) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attr;
  int code = posix_spawn_file_actions_init(&actions);
  if (code)
    return code;
  code = posix_spawnattr_init(&attr);
  if (code)
    goto actions;
  for (int i = 0; i < N_FILES && !code; i++)
    code = posix_spawn_file_actions_adddup2(&actions, fds[i], i);
  if (!code)
    code = set_signals(&attr);
  if (!code)
    code = posix_spawnp(pid, child->argv[0], &actions, &attr,
                        (char *const *)child->argv, environ);
  (void)posix_spawnattr_destroy(&attr);
actions:
  (void)posix_spawn_file_actions_destroy(&actions);
  return code;
}

/* Wait for the end, asking every few milliseconds: a signal handler for
 * SIGCHLD belongs to the program. False if the child had to be killed. */
static bool wait_for(pid_t pid, double timeout_s, int *status) {
  double deadline = pf_os_seconds() + timeout_s;
  struct timespec pause = {0, 500000};
  for (;;) {
    pid_t done = waitpid(pid, status, WNOHANG);
    if (done == pid || (done < 0 && errno != EINTR))
      return true;
    if (pf_os_seconds() > deadline)
      break;
    (void)nanosleep(&pause, NULL);
    if (pause.tv_nsec < 10000000)
      pause.tv_nsec += pause.tv_nsec / 4;
  }
  (void)kill(pid, SIGKILL);
  while (waitpid(pid, status, 0) < 0 && errno == EINTR)
    continue;
  return false;
}

/* What the file holds, as a string; NULL if memory ran out. */
static char *content(int fd) {
  off_t size = lseek(fd, 0, SEEK_END);
  struct pf_buf buf = {0};
  char piece[4096];
  off_t at = 0;
  if (size > MAX_OUTPUT)
    size = MAX_OUTPUT;
  while (at < size) {
    ssize_t n = pread(fd, piece, sizeof(piece), at);
    if (n <= 0)
      break;
    pf_buf_add(&buf, piece, (size_t)n);
    at += n;
  }
  return pf_buf_take(&buf);
}

static int exit_status(int status) {
  if (WIFSIGNALED(status))
    return 128 + WTERMSIG(status);
  return WEXITSTATUS(status);
}

/* The error for a child that cannot be started or did not end in time. */
static int refuse(const struct pf_child *child, const char *why,
                  struct pf_error *err) {
  char *shown = pf_name_for_people(child->argv[0]);
  (void)pf_error_set(err, PF_EMISSING, "cannot run %s: %s", shown ? shown : "",
                     why);
  free(shown);
  return PF_EMISSING;
}

int pf_child_run(struct pf_child_end *end, const struct pf_child *child,
                 struct pf_error *err) {
  int fds[N_FILES] = {-1, -1, -1}, status = 0, code = PF_OK, saved;
  char why[64];
  pid_t pid = 0;
  memset(end, 0, sizeof(*end));
  if (open_files(fds, child->input) < 0) {
    code = refuse(child, strerror(errno), err);
    goto out;
  }
  saved = spawn(&pid, child, fds);
  if (saved) {
    code = refuse(child, strerror(saved), err);
    goto out;
  }
  if (!wait_for(pid, child->timeout_s, &status)) {
    (void)snprintf(why, sizeof(why), "it did not end within %.0f seconds",
                   child->timeout_s);
    code = refuse(child, why, err);
    goto out;
  }
  end->status = exit_status(status);
  end->output = content(fds[1]);
  end->errors = content(fds[2]);
  if (!end->output || !end->errors) {
    pf_child_end_clear(end);
    code = pf_error_set(err, PF_ENOMEM, "out of memory");
  }
out:
  close_files(fds);
  return code;
}
