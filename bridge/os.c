/* The operating system: see bridge/os.h. Linux. */
#include "bridge/os.h"

#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "bridge/buf.h"

struct pf_os_numbers {
  locale_t ours, before;
};

struct pf_os_numbers *pf_os_begin_numbers(void) {
  struct pf_os_numbers *numbers = malloc(sizeof(*numbers));
  if (!numbers)
    return NULL;
  numbers->ours = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0);
  if (numbers->ours == (locale_t)0) {
    free(numbers);
    return NULL;
  }
  numbers->before = uselocale(numbers->ours);
  return numbers;
}

void pf_os_end_numbers(struct pf_os_numbers **numbers_p) {
  struct pf_os_numbers *numbers = *numbers_p;
  *numbers_p = NULL;
  if (!numbers)
    return;
  (void)uselocale(numbers->before);
  freelocale(numbers->ours);
  free(numbers);
}

static double clock_seconds(clockid_t clock) {
  struct timespec t = {0, 0};
  (void)clock_gettime(clock, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

double pf_os_seconds(void) {
  return clock_seconds(CLOCK_MONOTONIC);
}

double pf_os_cpu_seconds(void) {
  return clock_seconds(CLOCK_PROCESS_CPUTIME_ID);
}

double pf_os_thread_cpu_seconds(void) {
  return clock_seconds(CLOCK_THREAD_CPUTIME_ID);
}

int pf_os_n_cores(void) {
  cpu_set_t set;
  int n;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) != 0)
    return 1;
  n = CPU_COUNT(&set);
  return n > 0 ? n : 1;
}

size_t pf_os_page_size(void) {
  long n = sysconf(_SC_PAGESIZE);
  return n > 0 ? (size_t)n : 4096;
}

void pf_os_name_thread(const char *name) {
  char cut[16]; /* the kernel's limit, NUL included */
  (void)snprintf(cut, sizeof(cut), "%s", name);
  (void)pthread_setname_np(pthread_self(), cut);
}

enum pf_code pf_os_write_code(int saved_errno) {
  return saved_errno == ENOSPC || saved_errno == EDQUOT ? PF_EMISSING
                                                        : PF_EWRITE;
}

static int make_dir(const char *path, struct pf_error *err) {
  struct stat st;
  int saved;
  if (mkdir(path, 0777) == 0)
    return PF_OK;
  saved = errno;
  if (saved == EEXIST && stat(path, &st) == 0 && S_ISDIR(st.st_mode))
    return PF_OK;
  return pf_error_set(err, pf_os_write_code(saved),
                      "cannot make the folder %s: %s", path, strerror(saved));
}

int pf_os_make_dirs(const char *path, struct pf_error *err) {
  char *copy = strdup(path);
  int result = PF_OK;
  if (!copy)
    return pf_error_set(err, PF_ENOMEM, "out of memory");
  for (char *p = copy + 1; *copy && *p && result == PF_OK; p++) {
    if (*p != '/')
      continue;
    *p = '\0';
    result = make_dir(copy, err);
    *p = '/';
  }
  if (result == PF_OK)
    result = make_dir(copy, err);
  free(copy);
  return result;
}

int pf_os_sync_dir(const char *path, struct pf_error *err) {
  int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  int failed = fd < 0 || fsync(fd) != 0;
  int saved = errno;
  if (fd >= 0)
    (void)close(fd);
  /* Some network file systems cannot sync a folder; they say EINVAL. */
  if (failed && saved != EINVAL)
    return pf_error_set(err, PF_EWRITE, "cannot sync the folder %s: %s", path,
                        strerror(saved));
  return PF_OK;
}

static bool has_mode(const char *path, mode_t kind) {
  struct stat st;
  return stat(path, &st) == 0 && (st.st_mode & S_IFMT) == kind;
}

bool pf_os_is_dir(const char *path) {
  return has_mode(path, S_IFDIR);
}

bool pf_os_is_file(const char *path) {
  return has_mode(path, S_IFREG);
}

bool pf_os_stays_below(const char *path) {
  for (const char *part = path;; part++) {
    if (*part == '/' || *part == '.' || *part == '\0')
      return false;
    part += strcspn(part, "/");
    if (!*part)
      return true;
  }
}

char *pf_os_join(const char *dir, const char *name) {
  struct pf_buf buf = {0};
  if (name[0] != '/') {
    pf_buf_str(&buf, dir);
    if (buf.len && buf.data[buf.len - 1] != '/')
      pf_buf_char(&buf, '/');
  }
  pf_buf_str(&buf, name);
  return pf_buf_take(&buf);
}

char *pf_os_absolute(const char *path) {
  char *cwd = path[0] == '/' ? strdup("/") : getcwd(NULL, 0);
  char *joined = cwd ? pf_os_join(cwd, path) : NULL;
  free(cwd);
  return joined;
}

char *pf_os_dirname(const char *path) {
  const char *slash = strrchr(path, '/');
  if (!slash)
    return strdup(".");
  if (slash == path)
    return strdup("/");
  return strndup(path, (size_t)(slash - path));
}

char *pf_os_temporary(const char *path) {
  const char *slash = strrchr(path, '/');
  const char *name = slash ? slash + 1 : path;
  struct pf_buf buf = {0};
  pf_buf_add(&buf, path, (size_t)(name - path));
  pf_buf_printf(&buf, ".%s.pf-tmp", name);
  return pf_buf_take(&buf);
}

static int read_all(int fd, char *bytes, size_t size) {
  size_t done = 0;
  while (done < size) {
    ssize_t n = read(fd, bytes + done, size - done);
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0) {
      errno = n == 0 ? EIO : errno;
      return -1;
    }
    done += (size_t)n;
  }
  return 0;
}

/* Size of an open regular file, checked against the limit. */
static int file_size(int fd, const char *path, size_t limit, size_t *size,
                     struct pf_error *err) {
  struct stat st;
  if (fstat(fd, &st) != 0)
    return pf_error_set(err, PF_EINVAL, "cannot read %s: %s", path,
                        strerror(errno));
  if (!S_ISREG(st.st_mode))
    return pf_error_set(err, PF_EINVAL, "cannot read %s: it is not a file",
                        path);
  if (st.st_size < 0 || (uint64_t)st.st_size > limit)
    return pf_error_set(err, PF_EINVAL,
                        "cannot read %s: it has %lld bytes, more than %zu",
                        path, (long long)st.st_size, limit);
  *size = (size_t)st.st_size;
  return PF_OK;
}

int pf_os_read_file(char **out, size_t *size, const char *path, size_t limit,
                    struct pf_error *err) {
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  char *bytes = NULL;
  int result;
  *out = NULL;
  *size = 0;
  if (fd < 0)
    return pf_error_set(err, PF_EINVAL, "cannot read %s: %s", path,
                        strerror(errno));
  result = file_size(fd, path, limit, size, err);
  if (result != PF_OK)
    goto out;
  bytes = malloc(*size + 1);
  if (!bytes) {
    result = pf_error_set(err, PF_ENOMEM, "out of memory reading %s", path);
    goto out;
  }
  if (read_all(fd, bytes, *size) != 0) {
    result = pf_error_set(err, PF_EINVAL, "cannot read %s: %s", path,
                          strerror(errno));
    goto out;
  }
  bytes[*size] = '\0';
  *out = bytes;
  bytes = NULL;
out:
  free(bytes);
  (void)close(fd);
  return result;
}

static int write_all(int fd, const char *bytes, size_t size) {
  while (size) {
    ssize_t n = write(fd, bytes, size);
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0)
      return -1;
    bytes += n;
    size -= (size_t)n;
  }
  return 0;
}

int pf_os_write_file(const char *path, const void *bytes, size_t size,
                     struct pf_error *err) {
  char *temporary = pf_os_temporary(path);
  int fd = -1, failed, saved = ENOMEM;
  if (!temporary)
    return pf_error_set(err, PF_ENOMEM, "out of memory writing %s", path);
  fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  failed = fd < 0 || write_all(fd, bytes, size) != 0;
  saved = errno;
  if (fd >= 0 && close(fd) != 0 && !failed) {
    failed = 1;
    saved = errno;
  }
  if (!failed && rename(temporary, path) != 0) {
    failed = 1;
    saved = errno;
  }
  if (failed && fd >= 0)
    (void)unlink(temporary);
  free(temporary);
  if (failed)
    return pf_error_set(err, pf_os_write_code(saved), "cannot write %s: %s",
                        path, strerror(saved));
  return PF_OK;
}
