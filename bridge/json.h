/*
 * JSON with places. cJSON parses; a source map beside it knows, for each
 * value, line and column, and whether a number was written as an integer
 * (`3` is, `3.0` and `3e0` are not; integers are exact in 64 bits). Duplicate
 * keys, trailing text, `\u0000`, invalid UTF-8, numbers beyond 64-bit/double
 * range, and nesting deeper than 64 are refused with a place.
 *
 * Ownership: pf_json_parse() gives a document; its values are borrowed from it
 * and live as long. Threads: a parsed document is constant.
 */
#ifndef PF_JSON_H
#define PF_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bridge/buf.h"
#include "plateflow/error.h"

struct pf_json_doc;
typedef struct cJSON pf_json; /* look into it only through these functions */

enum pf_json_type {
  PF_JSON_NULL,
  PF_JSON_BOOL,
  PF_JSON_INT,
  PF_JSON_REAL,
  PF_JSON_STRING,
  PF_JSON_ARRAY,
  PF_JSON_OBJECT
};

/* `file` names the source in errors (err->file, line, column are set). */
PF_API int pf_json_parse(struct pf_json_doc **out, const char *text, size_t n,
                         const char *file, struct pf_error *err) PF_MUST_CHECK;
PF_API int pf_json_read(struct pf_json_doc **out, const char *path,
                        struct pf_error *err) PF_MUST_CHECK;
PF_API void pf_json_free(struct pf_json_doc **doc);

PF_API const pf_json *pf_json_root(const struct pf_json_doc *doc);
PF_API const char *pf_json_file(const struct pf_json_doc *doc);
PF_API enum pf_json_type pf_json_type(const struct pf_json_doc *doc,
                                      const pf_json *value);
/* With its article: "an integer", "a string", "a list"; "null". */
PF_API const char *pf_json_type_name(enum pf_json_type type);
PF_API bool pf_json_bool(const pf_json *value);
PF_API int64_t pf_json_int(const struct pf_json_doc *doc,
                           const pf_json *value);
PF_API double pf_json_real(const pf_json *value); /* of an int too */
PF_API const char *pf_json_string(const pf_json *value);
PF_API size_t pf_json_n(const pf_json *value); /* members or elements */
/* Iteration: first child, next sibling; NULL at the end. */
PF_API const pf_json *pf_json_first(const pf_json *value);
PF_API const pf_json *pf_json_next(const pf_json *value);
PF_API const char *pf_json_key(const pf_json *value); /* of a member */
/* Member by exact key, or NULL (also where `object` is NULL or none). */
PF_API const pf_json *pf_json_get(const pf_json *object, const char *key);
/* Place of a value; of its key where `of_key`. 1-based, columns in bytes. */
PF_API void pf_json_place(const struct pf_json_doc *doc, const pf_json *value,
                          bool of_key, int *line, int *column);
/* "steps[2].parameters.sigma", appended to `out`. */
PF_API void pf_json_path(const struct pf_json_doc *doc, const pf_json *value,
                         struct pf_buf *out);
/* Write a value as compact JSON with its integers as written and keys in
 * the file's order; the same text for the same value, so it can be a key. */
PF_API void pf_json_write(const struct pf_json_doc *doc, const pf_json *value,
                          struct pf_buf *out);

/*
 * Set object[key] to `text`: JSON, or a string where it is not valid JSON. The
 * new value has line 0, and its path is `origin` ("--set denoise.sigma").
 * Values borrowed from a member that is replaced end here. Not for a document
 * that other threads read. Errors: PF_EINVAL (`object` is none of this
 * document, `text` is not UTF-8), PF_ENOMEM; the document is then unchanged.
 */
PF_API int pf_json_set(struct pf_json_doc *doc, const pf_json *object,
                       const char *key, const char *text, const char *origin,
                       struct pf_error *err) PF_MUST_CHECK;

/* The known word nearest to `word` (edit distance at most a third of its
 * length, at least 1), or NULL; for "did you mean". */
PF_API const char *pf_nearest_word(const char *word, const char *const *known,
                                   size_t n);

#endif
