/*
 * Opening a plate: scan, choose the layout, parse the names, sample headers,
 * spread pages, sort, look for duplicates, choose, rank. See index.h.
 */
#include <stdlib.h>
#include <string.h>

#include "bridge/buf.h"
#include "bridge/json.h"
#include "engine/plate/choose.h"

int pf_build_no_memory(struct pf_build *build) {
  return pf_error_set(build->err, PF_ENOMEM,
                      "out of memory for the index of the plate");
}

void pf_build_drop(struct pf_build *build, struct pf_slice *slice,
                   const char *reason) {
  struct pf_plate *plate = build->plate;
  slice->kind |= PF_KIND_DROPPED;
  pf_leftovers_add(&plate->left, pf_tree_folder(&plate->tree, slice->file),
                   pf_tree_name(&plate->tree, slice->file), reason);
}

/* One slice from what a name said. */
static bool add_slice(struct pf_build *build, uint32_t file,
                      const char *folder, const struct pf_parsed *parsed) {
  struct pf_plate *plate = build->plate;
  struct pf_slice *slice = &plate->slices[plate->n_slices++];
  struct pf_text plate_folder = {folder, parsed->n_plate_folder};
  const struct pf_text *token = &parsed->value[PF_PLATE];
  *slice = (struct pf_slice){.file = file, .kind = (uint8_t)parsed->kind};
  memset(slice->value, 0xff, sizeof(slice->value)); /* PF_NO_VALUE */
  slice->value[PF_PLATE] =
      pf_candidate_add(&build->candidates, plate_folder,
                       token->at ? *token : (struct pf_text){"", 0});
  if (slice->value[PF_PLATE] == PF_NO_VALUE)
    return false;
  for (int c = PF_PLATE + 1; c < PF_N_COMPONENTS; c++) {
    if (!parsed->value[c].at || (c == PF_Z && slice->kind != PF_KIND_SLICE))
      continue;
    slice->value[c] = pf_values_add(&plate->values[c], parsed->value[c]);
    if (slice->value[c] == PF_NO_VALUE)
      return false;
  }
  return true;
}

/* All names of the tree; those that do not fit are left out. */
static int parse_names(struct pf_build *build) {
  struct pf_plate *plate = build->plate;
  uint32_t n = plate->tree.n_files;
  struct pf_parser *parser = calloc(1, sizeof(*parser));
  struct pf_parsed parsed;
  bool ok;
  plate->slices = malloc(((size_t)n + 1) * sizeof(*plate->slices));
  plate->page_components = calloc((size_t)n + 1, 1);
  ok = parser && plate->slices && plate->page_components;
  if (ok) {
    parser->layout = plate->layout;
    parser->regex = plate->regex;
    parser->of_path = plate->of_path;
    parser->scratch = pf_regex_scratch_create(plate->regex);
    ok = parser->scratch != NULL;
  }
  for (uint32_t file = 0; ok && file < n; file++) {
    const char *folder = pf_tree_folder(&plate->tree, file);
    const char *name = pf_tree_name(&plate->tree, file);
    const char *reason = pf_parser_parse(parser, folder, name, &parsed);
    if (reason)
      pf_leftovers_add(&plate->left, folder, name, reason);
    else
      ok = add_slice(build, file, folder, &parsed);
  }
  if (parser)
    pf_regex_scratch_free(parser->scratch);
  free(parser);
  return ok ? PF_OK : pf_build_no_memory(build);
}

/* What speaks for the layout, now that all names are known. */
static int say_evidence(struct pf_build *build) {
  struct pf_plate *plate = build->plate;
  const char *named = build->options->layout;
  struct pf_buf text = {0};
  if (plate->evidence)
    return PF_OK;
  pf_buf_printf(&text, "%zu of %u TIFF names fit%s", plate->n_slices,
                plate->tree.n_files,
                named && strcmp(named, "auto") != 0
                    ? "; the layout was asked for by name"
                    : "");
  plate->evidence = pf_buf_take(&text);
  return plate->evidence ? PF_OK : pf_build_no_memory(build);
}

/* What neither names nor pages gave: MetaXpress leaves out "_s1" and "_w1". */
static int fill_defaults(struct pf_build *build) {
  struct pf_plate *plate = build->plate;
  for (int c = 0; c < PF_N_COMPONENTS; c++) {
    const char *text = plate->layout->defaults[c];
    uint32_t id;
    if (!text)
      continue;
    id = pf_values_add(&plate->values[c],
                       (struct pf_text){text, (uint32_t)strlen(text)});
    if (id == PF_NO_VALUE)
      return pf_build_no_memory(build);
    for (size_t i = 0; i < plate->n_slices; i++)
      if (plate->slices[i].value[c] == PF_NO_VALUE)
        plate->slices[i].value[c] = id;
  }
  return PF_OK;
}

/* Keep the slices without any of these marks, in their order. */
static void remove_marked(struct pf_plate *plate, unsigned marks) {
  size_t kept = 0;
  for (size_t i = 0; i < plate->n_slices; i++)
    if (!(plate->slices[i].kind & marks))
      plate->slices[kept++] = plate->slices[i];
  plate->n_slices = kept;
}

/* List and remove what `planes` does not ask for. */
static void leave_out_unchosen(struct pf_build *build) {
  struct pf_plate *plate = build->plate;
  for (size_t i = 0; i < plate->n_slices; i++) {
    struct pf_slice *slice = &plate->slices[i];
    plate->n_by_kind[slice->kind & PF_KIND_MASK]++;
    if (!(slice->kind & PF_KIND_UNCHOSEN))
      continue;
    pf_build_drop(build, slice,
                  (slice->kind & PF_KIND_MASK) == PF_KIND_PROJECTION
                      ? "a projection; the plate's \"planes\" takes slices"
                      : "a slice; the plate's \"planes\" takes projections");
  }
  remove_marked(plate, PF_KIND_DROPPED);
}

/* Values become ranks among those that chosen slices have. */
static int finish_values(struct pf_build *build) {
  struct pf_plate *plate = build->plate;
  int result = pf_build_rank_values(build, true);
  if (result != PF_OK)
    return result;
  plate->n_in_file =
      calloc((size_t)plate->tree.n_files + 1, sizeof(*plate->n_in_file));
  if (!plate->n_in_file)
    return pf_build_no_memory(build);
  for (size_t i = 0; i < plate->n_slices; i++) {
    struct pf_slice *slice = &plate->slices[i];
    for (int c = 0; c < PF_N_COMPONENTS; c++)
      slice->value[c] = pf_build_rank(build, slice, c);
    plate->n_in_file[slice->file]++;
  }
  return PF_OK;
}

static int alias_clash(struct pf_build *build, const char *name) {
  char *shown = pf_name_for_people(name);
  (void)pf_error_set(build->err, PF_EINVAL,
                     "two channels of the plate are called \"%s\"",
                     shown ? shown : "");
  free(shown);
  return PF_EINVAL;
}

/* Names for people; those of channels that the plate lacks are unused. */
static int name_channels(struct pf_build *build) {
  struct pf_plate *plate = build->plate;
  const struct pf_plate_options *options = build->options;
  uint32_t n = plate->values[PF_CHANNEL].n;
  plate->channel_names = calloc((size_t)n + 1, sizeof(char *));
  if (!plate->channel_names)
    return pf_build_no_memory(build);
  for (size_t i = 0; i < options->n_channels; i++) {
    uint32_t rank =
        pf_plate_find(plate, PF_CHANNEL, options->channel_values[i]);
    if (rank == PF_NO_VALUE)
      continue;
    for (uint32_t r = 0; r < n; r++)
      if (plate->channel_names[r] && r != rank &&
          strcmp(plate->channel_names[r], options->channel_names[i]) == 0)
        return alias_clash(build, options->channel_names[i]);
    free(plate->channel_names[rank]);
    plate->channel_names[rank] = strdup(options->channel_names[i]);
    if (!plate->channel_names[rank])
      return pf_build_no_memory(build);
  }
  return PF_OK;
}

/* What was left out, a line each; the first ones. */
static void add_left_out_lines(const struct pf_leftovers *left,
                               struct pf_buf *out) {
  enum { MAX_LINES = 100 };
  for (size_t i = 0; i < left->n && i < MAX_LINES; i++) {
    pf_buf_str(out, i ? "\n  " : "left out:\n  ");
    pf_buf_name(out, left->list[i].path);
    pf_buf_printf(out, ": %s", left->list[i].reason);
  }
  if (left->n > MAX_LINES)
    pf_buf_printf(out, "\n  and %zu more", left->n - MAX_LINES);
}

/* No slice is left: say what there was instead. */
static int nothing_readable(struct pf_build *build) {
  struct pf_plate *plate = build->plate;
  struct pf_buf why = {0}, lines = {0};
  char *root = pf_name_for_people(plate->tree.root);
  size_t n = plate->left.n;
  if (pf_leftovers_close(&plate->left) != PF_OK) {
    free(root);
    return pf_build_no_memory(build);
  }
  if (n)
    pf_buf_printf(&why, "; %zu %s left out", n,
                  n == 1 ? "entry was" : "entries were");
  (void)pf_error_set(build->err, PF_EINVAL,
                     "there is no image to read in %s (layout %s)%s",
                     root ? root : "", plate->layout->name, pf_buf_text(&why));
  add_left_out_lines(&plate->left, &lines);
  if (n)
    pf_error_detail(build->err, pf_buf_text(&lines));
  pf_buf_free(&why);
  pf_buf_free(&lines);
  free(root);
  return PF_EINVAL;
}

static bool one_of(const char *word, const char *const *known, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (strcmp(word, known[i]) == 0)
      return true;
  return false;
}

static int check_word(struct pf_build *build, const char *key,
                      const char *word, const char *const *known, size_t n) {
  const char *near = NULL;
  char *shown;
  if (!word || one_of(word, known, n))
    return PF_OK;
  near = pf_nearest_word(word, known, n);
  shown = pf_name_for_people(word);
  (void)pf_error_set(build->err, PF_EINVAL,
                     "the plate's \"%s\" cannot be \"%s\"%s%s%s; it is "
                     "\"%s\", \"%s\" or \"%s\"",
                     key, shown ? shown : "", near ? "; did you mean \"" : "",
                     near ? near : "", near ? "\"?" : "", known[0], known[1],
                     known[2]);
  free(shown);
  return PF_EINVAL;
}

static int check_options(struct pf_build *build) {
  static const char *const planes[] = {"slices", "projections", "both"};
  static const char *const pages[] = {"z", "channel", "timepoint"};
  int result = check_word(build, "planes", build->options->planes, planes, 3);
  if (result == PF_OK)
    result = check_word(build, "pages", build->options->pages, pages, 3);
  build->pages = result == PF_OK && build->options->pages
                     ? pf_component_find(build->options->pages)
                     : PF_N_COMPONENTS;
  return result;
}

/* From names to sampled slices, one per page. */
static int index_names(struct pf_build *build) {
  int result = parse_names(build);
  if (result == PF_OK)
    result = say_evidence(build);
  if (result == PF_OK)
    result = pf_candidates_resolve(build);
  if (result == PF_OK)
    result = pf_build_rank_values(build, false);
  if (result == PF_OK)
    result = pf_build_choose_kinds(build);
  if (result == PF_OK)
    result = pf_build_sample(build);
  if (result == PF_OK)
    remove_marked(build->plate, PF_KIND_DROPPED);
  return result == PF_OK ? fill_defaults(build) : result;
}

static int build_plate(struct pf_build *build, const char *path) {
  struct pf_plate *plate = build->plate;
  int result = check_options(build);
  if (result == PF_OK)
    result = pf_tree_scan(&plate->tree, path, &plate->left, build->err);
  if (result == PF_OK)
    result = pf_choose_layout(plate, build->options, build->err);
  if (result == PF_OK)
    result = index_names(build);
  if (result == PF_OK && plate->n_slices == 0)
    return nothing_readable(build);
  if (result == PF_OK)
    result = pf_build_settle(build);
  if (result != PF_OK)
    return result;
  leave_out_unchosen(build);
  result = finish_values(build);
  if (result == PF_OK)
    result = name_channels(build);
  if (result == PF_OK && pf_leftovers_close(&plate->left) != PF_OK)
    result = pf_build_no_memory(build);
  return result;
}

int pf_plate_open(struct pf_plate **out, const char *path,
                  const struct pf_plate_options *options,
                  struct pf_error *err) {
  static const struct pf_plate_options no_options;
  struct pf_build build = {.options = options ? options : &no_options,
                           .err = err};
  int result;
  *out = NULL;
  build.plate = calloc(1, sizeof(*build.plate));
  if (!build.plate)
    return pf_build_no_memory(&build);
  atomic_init(&build.plate->n_refs, 1);
  result = build_plate(&build, path);
  pf_candidates_finish(&build.candidates);
  free(build.order);
  if (result != PF_OK)
    pf_plate_unref(&build.plate);
  *out = build.plate;
  return result;
}
