/*
 * Errors are values. A function that can fail returns an enum pf_code as int
 * (0 is success) and, where it is given one, fills a struct pf_error. Nothing
 * below the command line prints, exits or keeps an error in a global.
 *
 * The first cause wins: setting an error that is already set changes nothing;
 * callers on the way up add what they know (step, group, file) with the
 * pf_error_at_* functions, which again fill only what is still empty.
 *
 * Threads: a struct pf_error belongs to one thread at a time.
 */
#ifndef PLATEFLOW_ERROR_H
#define PLATEFLOW_ERROR_H

#include <stdarg.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Name, exit status of the program, what the code stands for. */
#define PF_CODE_MAP(XX)                                                       \
  XX(OK, 0, "all done")                                                       \
  XX(EBUG, 1, "a bug in plateflow")                                           \
  XX(EINVAL, 2, "the pipeline, the plate or the arguments are wrong")         \
  XX(EMISSING, 3, "something that the run needs is missing")                  \
  XX(EREAD, 4, "an image could not be read")                                  \
  XX(EWRITE, 4, "an output could not be written")                             \
  XX(ESTEP, 4, "a step failed")                                               \
  XX(ENOMEM, 4, "memory ran out")                                             \
  XX(EFAILED, 4, "some groups failed")                                        \
  XX(EALLFAILED, 5, "all groups failed")                                      \
  XX(EINTERRUPTED, 130, "interrupted")                                        \
  XX(ETERMINATED, 143, "terminated")

enum pf_code {
#define XX(name, exit_status, text) PF_##name,
  PF_CODE_MAP(XX)
#undef XX
};

struct pf_error {
  enum pf_code code; /* PF_OK: nothing is set, all pointers are NULL */
  char *message;     /* one sentence: what, where, what to do */
  char *step;        /* the step's name, or NULL */
  char *group;       /* the group's components, "well A01 site 2", or NULL */
  char *file;        /* the file that the message is about, or NULL */
  int line, column;  /* place in `file`, 1-based; 0: unknown */
  char *detail;      /* more lines (a traceback), or NULL */
};

#define PF_ERROR_INIT                                                         \
  { PF_OK, NULL, NULL, NULL, NULL, 0, 0, NULL }

#if defined(__GNUC__)
#define PF_PRINTF(fmt, first) __attribute__((format(printf, fmt, first)))
#define PF_MUST_CHECK __attribute__((warn_unused_result))
#else
#define PF_PRINTF(fmt, first)
#define PF_MUST_CHECK
#endif

/* What crosses a shared library's border; all else is hidden. */
#if defined(__GNUC__)
#define PF_API __attribute__((visibility("default")))
#else
#define PF_API
#endif

/*
 * Set the error if none is set yet. `err` may be NULL. Always returns `code`,
 * so that a function ends with `return pf_error_set(err, PF_EREAD, ...)`.
 */
PF_API int pf_error_set(struct pf_error *err, enum pf_code code,
                        const char *fmt, ...) PF_PRINTF(3, 4);

#ifdef __clang_analyzer__
/* The analyser sees one file at a time: tell it what is returned. */
static inline int pf_error_second(int first, int second) {
  (void)first;
  return second;
}
#define pf_error_set(err, code, ...)                                          \
  pf_error_second(pf_error_set(err, code, __VA_ARGS__), code)
#endif

/* Put "PREFIX: " before the message. Does nothing if no error is set. */
PF_API void pf_error_prefix(struct pf_error *err, const char *fmt, ...)
    PF_PRINTF(2, 3);

/* Complete what is still unknown; strings are copied. NULL err is allowed. */
PF_API void pf_error_at_file(struct pf_error *err, const char *file, int line,
                             int column);
PF_API void pf_error_at_step(struct pf_error *err, const char *step);
PF_API void pf_error_at_group(struct pf_error *err, const char *group);
PF_API void pf_error_detail(struct pf_error *err, const char *detail);

/* Move `src` into `dst` if `dst` is not set; `src` ends up cleared. */
PF_API void pf_error_move(struct pf_error *dst, struct pf_error *src);

/* Free what the error holds; it is PF_ERROR_INIT again. NULL is allowed. */
PF_API void pf_error_clear(struct pf_error *err);

/*
 * The error in one line, "file:line:column: step "x" (well A01): message".
 * Returns a malloc'd string (the caller frees it), NULL if memory ran out.
 */
PF_API char *pf_error_format(const struct pf_error *err);

PF_API const char *pf_code_name(enum pf_code code); /* "PF_EREAD" */
PF_API const char *pf_code_text(enum pf_code code);
PF_API int pf_code_exit_status(enum pf_code code);

#ifdef __cplusplus
}
#endif
#endif
