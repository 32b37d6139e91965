/*
 * Names of outputs: see pf_plate_output_name(). The file's path is matched
 * again, the bytes of what was lost are marked, and the rest is copied.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "engine/plate/index.h"

/* Letters that stand before a page's number when it is appended. */
static const struct {
  enum pf_component component;
  char letter;
} appended[] = {{PF_TIMEPOINT, 't'}, {PF_CHANNEL, 'w'}, {PF_Z, 'z'}};

struct naming {
  struct pf_parser parser; /* its `path` is the relative path */
  struct pf_parsed parsed;
  size_t n, n_folder; /* bytes of the path, of the folder and its slash */
  uint8_t cut[sizeof(((struct pf_parser *)NULL)->path)];
};

static bool is_separator(char c) {
  return c == '_' || c == '-' || c == '.' || c == ' ';
}

static bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool pf_plate_parse_again(const struct pf_plate *plate, uint32_t file,
                          struct pf_parser *parser, struct pf_parsed *parsed) {
  const char *reason;
  parser->layout = plate->layout;
  parser->regex = plate->regex;
  parser->of_path = plate->of_path;
  parser->scratch = pf_regex_scratch_create(plate->regex);
  if (!parser->scratch)
    return false;
  reason = pf_parser_parse(parser, pf_tree_folder(&plate->tree, file),
                           pf_tree_name(&plate->tree, file), parsed);
  pf_regex_scratch_free(parser->scratch);
  parser->scratch = NULL;
  return reason == NULL;
}

static void cut(struct naming *it, size_t start, size_t end) {
  memset(it->cut + start, 1, end - start);
}

/* Tokens count from the name, unless the expression is about the path. */
static size_t token_base(const struct naming *it) {
  return it->parser.of_path ? 0 : it->n_folder;
}

/* A token goes with the letters and the separators before it, but not with
 * what belongs to another token or another folder. */
static void cut_token(struct naming *it, int token) {
  struct pf_span span = it->parser.match.token[token];
  size_t base = token_base(it), start = span.start + base, floor = base;
  const char *path = it->parser.path;
  if (span.start == PF_NO_SPAN)
    return;
  for (int t = 0; t < PF_TOKEN_CUT; t++) {
    struct pf_span other = it->parser.match.token[t];
    if (other.start != PF_NO_SPAN && other.end <= span.start &&
        other.end + base > floor)
      floor = other.end + base;
  }
  while (start > floor && is_letter(path[start - 1]))
    start--;
  while (start > floor && is_separator(path[start - 1]))
    start--;
  cut(it, start, span.end + base);
}

/* The folders that the layout's rules read `component` from. */
static void cut_folders(struct naming *it, enum pf_component component) {
  size_t end = it->n_folder;
  while (end > it->parsed.n_plate_folder + 1) {
    size_t start = end - 1; /* behind it is a slash */
    struct pf_text text;
    const struct pf_folder_rule *rule;
    while (start > 0 && it->parser.path[start - 1] != '/')
      start--;
    rule = pf_layout_folder(it->parser.layout, it->parser.path + start,
                            end - 1 - start, &text);
    if (rule && rule->component == component)
      cut(it, start, end);
    end = start;
  }
}

static void cut_component(struct naming *it, enum pf_component component) {
  struct pf_span span = it->parser.match.token[PF_TOKEN_CUT + (int)component];
  if (span.start != PF_NO_SPAN) {
    cut(it, span.start + token_base(it), span.end + token_base(it));
  } else {
    cut_token(it, (int)component);
    if (component == PF_WELL) {
      cut_token(it, PF_TOKEN_ROW);
      cut_token(it, PF_TOKEN_COL);
    }
  }
  if (it->parser.of_path)
    return;
  cut_folders(it, component);
  if (component == PF_PLATE && it->parsed.n_plate_folder)
    cut(it, 0, it->parsed.n_plate_folder);
}

/* The outputs are no OME-TIFF even where the inputs were. */
static void cut_extension(struct naming *it) {
  static const char *const extensions[] = {".tif", ".tiff", ".ome"};
  size_t end = it->n;
  for (size_t i = 0; i < 3; i++) {
    size_t n = strlen(extensions[i]);
    if (end - it->n_folder > n &&
        strncasecmp(it->parser.path + end - n, extensions[i], n) == 0)
      end -= n;
  }
  cut(it, end, it->n);
}

/* Copy what is not cut; empty folders vanish, and so do separators that a
 * cut has left at the start of a name. */
static size_t copy_rest(const struct naming *it, char *out) {
  size_t n = 0, segment = 0;
  bool cut_at_start = false;
  for (size_t i = 0; i < it->n; i++) {
    char c = it->parser.path[i];
    if (it->cut[i]) {
      cut_at_start = cut_at_start || n == segment;
      continue;
    }
    if (n == segment && (c == '/' || (cut_at_start && is_separator(c))))
      continue;
    out[n++] = c;
    if (c == '/') {
      segment = n;
      cut_at_start = false;
    }
  }
  return n;
}

/* All of the name is lost: the plate's name stands in for it. */
static size_t add_plate_name(const struct pf_plate *plate,
                             const struct pf_slice *slice, char *out) {
  const char *name = pf_plate_value(plate, PF_PLATE, slice->value[PF_PLATE]);
  size_t n = strlen(name);
  for (size_t i = 0; i < n; i++)
    out[i] = name[i] == '/' ? '_' : name[i];
  if (n && out[0] == '.')
    out[0] = '_'; /* no hidden files */
  return n;
}

static size_t add_pages(const struct pf_plate *plate,
                        const struct pf_slice *slice, unsigned lost, char *out,
                        size_t size) {
  unsigned by_pages = plate->page_components[slice->file] & ~lost;
  size_t n = 0;
  if (plate->n_in_file[slice->file] < 2)
    return 0;
  for (size_t i = 0; i < sizeof(appended) / sizeof(appended[0]); i++) {
    enum pf_component c = appended[i].component;
    if (by_pages & 1u << c && slice->value[c] != PF_NO_VALUE)
      n += (size_t)snprintf(out + n, size - n, "_%c%s", appended[i].letter,
                            plate->values[c].text[slice->value[c]]);
  }
  return n;
}

char *pf_plate_output_name(const struct pf_plate *plate,
                           const struct pf_slice *slice, unsigned lost,
                           const char *extension) {
  struct naming it;
  char pages[64]; /* three times "_x" and ten digits */
  const char *folder = pf_tree_folder(&plate->tree, slice->file);
  size_t n_extension = strlen(extension), n, n_pages, size;
  char *out;
  int length;
  if (!pf_plate_parse_again(plate, slice->file, &it.parser, &it.parsed))
    return NULL;
  length =
      snprintf(it.parser.path, sizeof(it.parser.path), "%s%s%s", folder,
               *folder ? "/" : "", pf_tree_name(&plate->tree, slice->file));
  if (length < 0 || (size_t)length >= sizeof(it.parser.path))
    return NULL;
  it.n = (size_t)length;
  it.n_folder = *folder ? strlen(folder) + 1 : 0;
  memset(it.cut, 0, it.n);
  for (int c = 0; c < PF_N_COMPONENTS; c++)
    if (lost & 1u << c && slice->value[c] != PF_NO_VALUE) {
      cut_component(&it, (enum pf_component)c);
      cut_token(&it, PF_TOKEN_GUID);
    }
  cut_extension(&it);
  n_pages = add_pages(plate, slice, lost, pages, sizeof(pages));
  size = it.n + n_pages + n_extension + 1 +
         strlen(pf_plate_value(plate, PF_PLATE, slice->value[PF_PLATE]));
  out = malloc(size);
  if (!out)
    return NULL;
  n = copy_rest(&it, out);
  if (n == 0 || out[n - 1] == '/')
    n += add_plate_name(plate, slice, out + n);
  memcpy(out + n, pages, n_pages);
  memcpy(out + n + n_pages, extension, n_extension + 1);
  return out;
}
