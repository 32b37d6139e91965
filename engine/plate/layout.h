/*
 * Layouts: how a microscope names its folders and files. A layout is data (one
 * file and one row of the table each); what it cannot say as data is a small
 * callback. This header also has the parser that applies one.
 *
 * Threads: layouts and compiled expressions are constant; a parser belongs to
 * one thread at a time.
 */
#ifndef PF_LAYOUT_H
#define PF_LAYOUT_H

#include <limits.h>
#include <stdint.h>

#include "plateflow/plate.h"

/* A folder that names a component ("ZStep_3"), or only holds the images
 * ("Images"). Read from the innermost folder outwards while a rule fits. */
struct pf_folder_rule {
  const char *prefix;          /* of the folder's name, in either case */
  enum pf_component component; /* of the rest; PF_N_COMPONENTS: no rest */
  bool any_text;               /* the rest need not be a number */
  bool zero_is_projection;     /* the rest 0 says projection, without z */
};

struct pf_layout {
  const char *name;
  const char *help; /* one line */
  /*
   * Of the file's name, in either case. Groups: the components, `row` and
   * `col` for wells in two parts, `guid` for what goes with any lost
   * component, `cut_COMPONENT` around what goes with that component where
   * "its letters and the separator before it" would be wrong.
   * NULL: the user's pattern.
   */
  const char *regex;
  const struct pf_folder_rule *folders;
  size_t n_folders;
  /* The plate's name inside the path of its folder where the folder is what
   * makes the plate, else NULL. May be NULL. */
  const char *(*acquisition)(const char *folder);
  bool folder_is_plate; /* the name in the files is no identity */
  bool verbatim_site;   /* "001" and "1" are two sites */
  bool open_each;       /* files have nothing in common: no sampling */
  /* Values where neither name, folder nor pages give one; or NULL. */
  const char *defaults[PF_N_COMPONENTS];
};

/* The known layouts, the most telling first; NULL past the last. */
const struct pf_layout *pf_layout_at(size_t i);
/* The row of that name; NULL, and *nearest (may become NULL) for people. */
const struct pf_layout *pf_layout_find(const char *name, const char **nearest);

/* What a group of an expression stands for: the components, and more. */
enum pf_token {
  PF_TOKEN_ROW = PF_N_COMPONENTS,
  PF_TOKEN_COL,
  PF_TOKEN_GUID,
  PF_TOKEN_CUT, /* PF_TOKEN_CUT + component */
  PF_N_TOKENS = PF_TOKEN_CUT + PF_N_COMPONENTS
};

struct pf_span {
  uint32_t start, end; /* bytes; start PF_NO_SPAN: the token is absent */
};
#define PF_NO_SPAN UINT32_MAX

struct pf_match {
  uint32_t start; /* of the whole match */
  struct pf_span token[PF_N_TOKENS];
};

/* A compiled expression; constant, so that threads may share it. */
struct pf_regex;
int pf_regex_compile(struct pf_regex **out, const char *text, bool any_case,
                     struct pf_error *err) PF_MUST_CHECK;
void pf_regex_free(struct pf_regex *regex);
/* Memory for matching, for one thread at a time; NULL without memory. */
void *pf_regex_scratch_create(const struct pf_regex *regex);
void pf_regex_scratch_free(void *scratch);
enum pf_matched { PF_MATCHED_NOT, PF_MATCHED, PF_MATCHED_GAVE_UP };
enum pf_matched pf_regex_match(const struct pf_regex *regex, void *scratch,
                               const char *text, size_t n,
                               struct pf_match *match);

/*
 * The expression for the user's pattern (template or regular expression), its
 * mistakes explained. *of_path says whether it is about the whole relative
 * path. malloc'd text in *out.
 */
int pf_pattern_expression(char **out, bool *of_path, const char *pattern,
                          struct pf_error *err) PF_MUST_CHECK;

/* What a name says. Spans of text belong to the path or the parser. */
struct pf_text {
  const char *at; /* NULL: absent */
  uint32_t n;
};
struct pf_parsed {
  struct pf_text value[PF_N_COMPONENTS]; /* canonical; see values.h */
  enum pf_kind kind;
  uint32_t n_plate_folder; /* bytes of the folder that belong to the plate */
  unsigned from_folder;    /* components (1u << c) that a folder named */
};

struct pf_parser {
  const struct pf_layout *layout;
  const struct pf_regex *regex;
  bool of_path;
  void *scratch;
  const char *subject;   /* what was matched: the name, or `path` */
  struct pf_match match; /* of the last name, in `subject` */
  char well[16];         /* its well, canonical */
  char path[PATH_MAX + NAME_MAX + 2];
};
/*
 * Parse one file; `folder` is relative to the plate ("" at the top). Returns
 * NULL, or one clause that says why the file is not of this layout.
 */
const char *pf_parser_parse(struct pf_parser *parser, const char *folder,
                            const char *name, struct pf_parsed *out);
/* One folder by the layout's rules: the rule that fits, or NULL; *value is the
 * text behind the prefix. */
const struct pf_folder_rule *pf_layout_folder(const struct pf_layout *layout,
                                              const char *name, size_t n,
                                              struct pf_text *value);

#endif
