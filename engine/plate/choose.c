/* Which layout a tree of names has, and what speaks for it. */
#include <stdlib.h>
#include <string.h>

#include "bridge/buf.h"
#include "engine/plate/choose.h"

/* Names that `auto` looks at; of more, an even sample. */
enum { MAX_EVIDENCE = 20000 };

/* How many of the tree's names a layout explains, of how many asked. */
struct evidence {
  size_t n_fit, n_asked;
};

static int count_fits(struct pf_plate *plate, struct evidence *out,
                      struct pf_error *err) {
  uint32_t n = plate->tree.n_files;
  uint32_t step = n / MAX_EVIDENCE + 1;
  struct pf_parser *parser = calloc(1, sizeof(*parser));
  struct pf_parsed parsed;
  int result = PF_ENOMEM;
  *out = (struct evidence){0, 0};
  if (!parser)
    goto out;
  parser->layout = plate->layout;
  parser->regex = plate->regex;
  parser->of_path = plate->of_path;
  parser->scratch = pf_regex_scratch_create(plate->regex);
  if (!parser->scratch)
    goto out;
  for (uint32_t file = 0; file < n; file += step) {
    out->n_asked++;
    if (!pf_parser_parse(parser, pf_tree_folder(&plate->tree, file),
                         pf_tree_name(&plate->tree, file), &parsed))
      out->n_fit++;
  }
  result = PF_OK;
out:
  if (parser)
    pf_regex_scratch_free(parser->scratch);
  free(parser);
  if (result != PF_OK)
    return pf_error_set(err, PF_ENOMEM, "out of memory");
  return PF_OK;
}

/* Make `layout` the plate's, its expression compiled. */
static int take_layout(struct pf_plate *plate, const struct pf_layout *layout,
                       const char *pattern, struct pf_error *err) {
  char *text = NULL;
  int result;
  pf_regex_free(plate->regex);
  plate->regex = NULL;
  plate->layout = layout;
  plate->of_path = false;
  if (layout->regex)
    return pf_regex_compile(&plate->regex, layout->regex, true, err);
  if (!pattern)
    return pf_error_set(err, PF_EINVAL,
                        "the layout \"pattern\" needs a \"pattern\", such as "
                        "\"{well}_s{site}_w{channel}_z{z}.tif\"");
  result = pf_pattern_expression(&text, &plate->of_path, pattern, err);
  if (result == PF_OK)
    result = pf_regex_compile(&plate->regex, text, false, err);
  free(text);
  return result;
}

static int say_fallback(struct pf_plate *plate, const struct pf_layout *best,
                        const struct evidence *e, struct pf_error *err) {
  struct pf_buf text = {0};
  pf_buf_str(&text, "no layout fits the names");
  if (best)
    pf_buf_printf(&text, " (%s fits %zu of %zu, the most)", best->name,
                  e->n_fit, e->n_asked);
  pf_buf_str(&text, "; each file is a site of its own");
  plate->evidence = pf_buf_take(&text);
  return plate->evidence ? PF_OK
                         : pf_error_set(err, PF_ENOMEM, "out of memory");
}

static int by_evidence(struct pf_plate *plate, struct pf_error *err) {
  const struct pf_layout *layout, *best = NULL, *fallback = NULL;
  struct evidence most = {0, 0}, here;
  int result = PF_OK;
  for (size_t i = 0; (layout = pf_layout_at(i)); i++) {
    if (!layout->regex)
      continue;
    if (layout->open_each) { /* explains everything, so it comes last */
      fallback = layout;
      continue;
    }
    result = take_layout(plate, layout, NULL, err);
    if (result == PF_OK)
      result = count_fits(plate, &here, err);
    if (result != PF_OK)
      return result;
    if (here.n_fit > most.n_fit)
      best = layout;
    if (here.n_fit >= most.n_fit)
      most = here;
    if (most.n_fit && most.n_fit == most.n_asked)
      break;
  }
  /* One name of a hundred that happens to look like a well is no evidence. */
  if (best && most.n_fit * 2 >= most.n_asked)
    return plate->layout == best ? PF_OK : take_layout(plate, best, NULL, err);
  if (!fallback)
    return pf_error_set(err, PF_EBUG, "no layout takes any name");
  result = take_layout(plate, fallback, NULL, err);
  return result == PF_OK ? say_fallback(plate, best, &most, err) : result;
}

static int unknown_layout(const char *name, const char *nearest,
                          struct pf_error *err) {
  struct pf_buf known = {0};
  char *shown = pf_name_for_people(name);
  for (size_t i = 0; pf_layout_at(i); i++)
    pf_buf_printf(&known, ", %s", pf_layout_at(i)->name);
  (void)pf_error_set(
      err, PF_EINVAL, "there is no layout \"%s\"%s%s%s; known are auto%s",
      shown ? shown : "", nearest ? "; did you mean \"" : "",
      nearest ? nearest : "", nearest ? "\"?" : "", pf_buf_text(&known));
  pf_buf_free(&known);
  free(shown);
  return PF_EINVAL;
}

int pf_choose_layout(struct pf_plate *plate,
                     const struct pf_plate_options *options,
                     struct pf_error *err) {
  const char *name = options->layout ? options->layout : "auto";
  const char *nearest = NULL;
  const struct pf_layout *layout;
  if (strcmp(name, "auto") == 0 && !options->pattern)
    return by_evidence(plate, err);
  if (strcmp(name, "auto") == 0)
    name = "pattern";
  layout = pf_layout_find(name, &nearest);
  if (!layout)
    return unknown_layout(name, nearest, err);
  if (layout->regex && options->pattern)
    return pf_error_set(err, PF_EINVAL,
                        "a \"pattern\" needs the layout \"pattern\", not "
                        "\"%s\"",
                        name);
  return take_layout(plate, layout, options->pattern, err);
}
