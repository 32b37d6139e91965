/* From a folder and a name to components: see engine/plate/layout.h. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "engine/plate/values.h"

static const char not_of_layout[] = "its name does not fit the layout";

static bool all_digits(const char *text, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (text[i] < '0' || text[i] > '9')
      return false;
  return n > 0;
}

const struct pf_folder_rule *pf_layout_folder(const struct pf_layout *layout,
                                              const char *name, size_t n,
                                              struct pf_text *value) {
  for (size_t i = 0; i < layout->n_folders; i++) {
    const struct pf_folder_rule *rule = &layout->folders[i];
    size_t n_prefix = strlen(rule->prefix), rest;
    if (n < n_prefix || strncasecmp(name, rule->prefix, n_prefix) != 0)
      continue;
    rest = n - n_prefix;
    *value = (struct pf_text){name + n_prefix, (uint32_t)rest};
    if (rule->component == PF_N_COMPONENTS
            ? rest == 0
            : rest > 0 && (rule->any_text || all_digits(value->at, rest)))
      return rule;
  }
  return NULL;
}

/* Where the last segment of folder[0..n) starts. */
static size_t segment_start(const char *folder, size_t n) {
  while (n > 0 && folder[n - 1] != '/')
    n--;
  return n;
}

static bool is_zero(struct pf_text text) {
  for (uint32_t i = 0; i < text.n; i++)
    if (text.at[i] != '0')
      return false;
  return true;
}

/* Components from the folders; what no rule explains is the plate's folder. */
static void parse_folders(struct pf_parser *parser, const char *folder,
                          struct pf_parsed *out) {
  size_t n = strlen(folder);
  while (n > 0) {
    size_t start = segment_start(folder, n);
    struct pf_text text = {0};
    const struct pf_folder_rule *rule =
        pf_layout_folder(parser->layout, folder + start, n - start, &text);
    if (!rule)
      break;
    if (rule->zero_is_projection && is_zero(text)) {
      out->kind = PF_KIND_PROJECTION;
    } else if (rule->component != PF_N_COMPONENTS) {
      out->value[rule->component] =
          pf_value_canonical(rule->component, text, parser->well);
      out->from_folder |= 1u << rule->component;
    }
    n = start ? start - 1 : 0;
  }
  out->n_plate_folder = (uint32_t)n;
}

static struct pf_text token_text(const struct pf_parser *parser, int token) {
  struct pf_span span = parser->match.token[token];
  if (span.start == PF_NO_SPAN)
    return (struct pf_text){0};
  return (struct pf_text){parser->subject + span.start, span.end - span.start};
}

/* Row 1.. from a number or letters; 0: neither. */
static unsigned row_number(struct pf_text text) {
  unsigned row = 0, col;
  char cell[8];
  if (text.n == 0 || text.n > 4)
    return 0;
  if (all_digits(text.at, text.n)) {
    for (uint32_t i = 0; i < text.n; i++)
      row = row * 10 + (unsigned)(text.at[i] - '0');
    return row;
  }
  (void)snprintf(cell, sizeof(cell), "%.*s1", (int)text.n, text.at);
  return pf_well_parse(cell, strlen(cell), &row, &col) ? row : 0;
}

/* A well in two parts. */
static const char *parse_row_col(struct pf_parser *parser,
                                 struct pf_parsed *out) {
  struct pf_text row = token_text(parser, PF_TOKEN_ROW);
  struct pf_text col = token_text(parser, PF_TOKEN_COL);
  unsigned column = 0;
  if (!row.at && !col.at)
    return NULL;
  if (!col.at || col.n > 4 || !all_digits(col.at, col.n))
    return "its name has no column for the well";
  for (uint32_t i = 0; i < col.n; i++)
    column = column * 10 + (unsigned)(col.at[i] - '0');
  if (!row.at || !pf_well_format(parser->well, row_number(row), column))
    return "its name has no well: row or column is out of range";
  out->value[PF_WELL] =
      (struct pf_text){parser->well, (uint32_t)strlen(parser->well)};
  return NULL;
}

static const char *parse_tokens(struct pf_parser *parser,
                                struct pf_parsed *out) {
  for (int c = 0; c < PF_N_COMPONENTS; c++) {
    struct pf_text text = token_text(parser, c);
    bool verbatim = c == PF_SITE && parser->layout->verbatim_site;
    if (!text.n)
      continue;
    out->value[c] = verbatim ? text
                             : pf_value_canonical((enum pf_component)c, text,
                                                  parser->well);
    out->from_folder &= ~(1u << c);
    if (c == PF_Z)
      out->kind = PF_KIND_SLICE;
  }
  return parse_row_col(parser, out);
}

/* For an expression about the whole path: what lies before the match. */
static uint32_t folder_before(const char *path, uint32_t start) {
  uint32_t n = start;
  if (path[n] == '/')
    return n;
  while (n > 0 && path[n - 1] != '/')
    n--;
  return n ? n - 1 : 0;
}

const char *pf_parser_parse(struct pf_parser *parser, const char *folder,
                            const char *name, struct pf_parsed *out) {
  enum pf_matched matched;
  memset(out, 0, sizeof(*out));
  parser->subject = name;
  if (parser->of_path) {
    int n = snprintf(parser->path, sizeof(parser->path), "%s%s%s", folder,
                     *folder ? "/" : "", name);
    if (n < 0 || (size_t)n >= sizeof(parser->path))
      return "its path is too long";
    parser->subject = parser->path;
  }
  matched = pf_regex_match(parser->regex, parser->scratch, parser->subject,
                           strlen(parser->subject), &parser->match);
  if (matched == PF_MATCHED_GAVE_UP)
    return "the pattern backtracks too much on its name";
  if (matched == PF_MATCHED_NOT)
    return not_of_layout;
  if (parser->of_path)
    out->n_plate_folder = folder_before(parser->path, parser->match.start);
  else
    parse_folders(parser, folder, out);
  return parse_tokens(parser, out);
}
