/* Regular expressions on names, by PCRE2: see engine/plate/layout.h. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <stdlib.h>
#include <string.h>

#include "bridge/buf.h"
#include "bridge/json.h"
#include "engine/plate/layout.h"

enum {
  MAX_GROUPS = 64,
  /* Past it a name is given up: a pattern that backtracks without end must
   * not hold a run. Real names need a few hundred. */
  MATCH_LIMIT = 200000
};

struct pf_regex {
  pcre2_code *code;
  pcre2_match_context *context;
  uint8_t token[MAX_GROUPS + 1]; /* of each group; PF_N_TOKENS: none */
};

static const char *const token_names[PF_N_TOKENS] = {
#define XX(name, word) [PF_##name] = word,
    PF_COMPONENT_MAP(XX)
#undef XX
#define XX(name, word) [PF_TOKEN_CUT + PF_##name] = "cut_" word,
        PF_COMPONENT_MAP(XX)
#undef XX
            [PF_TOKEN_ROW] = "row",
    [PF_TOKEN_COL] = "col", [PF_TOKEN_GUID] = "guid"};

/* The names that a person may use, for "did you mean". */
static const char *const words[] = {
    "plate", "well", "row", "col", "site", "timepoint", "channel", "z", "any"};

static int unknown_group(const char *name, struct pf_error *err) {
  const char *near =
      pf_nearest_word(name, words, sizeof(words) / sizeof(words[0]));
  return pf_error_set(err, PF_EINVAL,
                      "the pattern has a group \"%s\"%s%s%s; known are plate, "
                      "well, row, col, site, timepoint, channel, z and any",
                      name, near ? "; did you mean \"" : "", near ? near : "",
                      near ? "\"?" : "");
}

static int token_of(const char *name, uint8_t *token, struct pf_error *err) {
  for (unsigned t = 0; t < PF_N_TOKENS; t++)
    if (strcmp(name, token_names[t]) == 0) {
      *token = (uint8_t)t;
      return PF_OK;
    }
  return strcmp(name, "any") == 0 ? PF_OK : unknown_group(name, err);
}

/* Which token each group is, from PCRE2's table of names. */
static int find_tokens(struct pf_regex *regex, struct pf_error *err) {
  uint32_t n_groups = 0, n_names = 0, entry_size = 0;
  PCRE2_SPTR table = NULL;
  int result = PF_OK;
  (void)pcre2_pattern_info(regex->code, PCRE2_INFO_CAPTURECOUNT, &n_groups);
  (void)pcre2_pattern_info(regex->code, PCRE2_INFO_NAMECOUNT, &n_names);
  (void)pcre2_pattern_info(regex->code, PCRE2_INFO_NAMEENTRYSIZE, &entry_size);
  (void)pcre2_pattern_info(regex->code, PCRE2_INFO_NAMETABLE, &table);
  if (n_groups > MAX_GROUPS)
    return pf_error_set(err, PF_EINVAL,
                        "the pattern has %u groups, more than %d", n_groups,
                        MAX_GROUPS);
  memset(regex->token, PF_N_TOKENS, sizeof(regex->token));
  for (uint32_t i = 0; i < n_names && result == PF_OK; i++) {
    const unsigned char *entry = table + (size_t)i * entry_size;
    unsigned group = (unsigned)entry[0] << 8 | entry[1];
    result = token_of((const char *)entry + 2, &regex->token[group], err);
  }
  return result;
}

static int compile_error(int code, size_t offset, const char *text,
                         struct pf_error *err) {
  PCRE2_UCHAR message[200];
  char *name = pf_name_for_people(text);
  if (pcre2_get_error_message(code, message, sizeof(message)) < 0)
    message[0] = '\0';
  (void)pf_error_set(err, PF_EINVAL,
                     "the pattern \"%s\" is wrong at offset %zu: %s",
                     name ? name : "", offset, (const char *)message);
  free(name);
  return PF_EINVAL;
}

int pf_regex_compile(struct pf_regex **out, const char *text, bool any_case,
                     struct pf_error *err) {
  struct pf_regex *regex = calloc(1, sizeof(*regex));
  uint32_t options = PCRE2_DUPNAMES | PCRE2_NEVER_BACKSLASH_C |
                     PCRE2_DOLLAR_ENDONLY | PCRE2_DOTALL |
                     (any_case ? PCRE2_CASELESS : 0);
  size_t offset = 0;
  int code = 0, result = PF_ENOMEM;
  *out = NULL;
  if (!regex)
    goto out;
  regex->context = pcre2_match_context_create(NULL);
  if (!regex->context)
    goto out;
  (void)pcre2_set_match_limit(regex->context, MATCH_LIMIT);
  regex->code = pcre2_compile((PCRE2_SPTR)text, PCRE2_ZERO_TERMINATED, options,
                              &code, &offset, NULL);
  if (!regex->code) {
    result = compile_error(code, offset, text, err);
    goto out;
  }
  result = find_tokens(regex, err);
  if (result != PF_OK)
    goto out;
  /* Where there is no JIT, pcre2_match() interprets. */
  (void)pcre2_jit_compile(regex->code, PCRE2_JIT_COMPLETE);
  *out = regex;
  regex = NULL;
out:
  pf_regex_free(regex);
  if (result == PF_ENOMEM)
    (void)pf_error_set(err, PF_ENOMEM, "out of memory for a pattern");
  return result;
}

void pf_regex_free(struct pf_regex *regex) {
  if (!regex)
    return;
  pcre2_code_free(regex->code);
  pcre2_match_context_free(regex->context);
  free(regex);
}

void *pf_regex_scratch_create(const struct pf_regex *regex) {
  return pcre2_match_data_create_from_pattern(regex->code, NULL);
}

void pf_regex_scratch_free(void *scratch) {
  pcre2_match_data_free(scratch);
}

enum pf_matched pf_regex_match(const struct pf_regex *regex, void *scratch,
                               const char *text, size_t n,
                               struct pf_match *match) {
  int count = pcre2_match(regex->code, (PCRE2_SPTR)text, n, 0, 0, scratch,
                          regex->context);
  const size_t *at;
  if (count < 0)
    return count == PCRE2_ERROR_NOMATCH ? PF_MATCHED_NOT : PF_MATCHED_GAVE_UP;
  at = pcre2_get_ovector_pointer(scratch);
  match->start = (uint32_t)at[0];
  memset(match->token, 0xff, sizeof(match->token)); /* PF_NO_SPAN */
  for (size_t group = 1; group < (size_t)count; group++) {
    uint8_t t = regex->token[group];
    /* Of groups with one name, the first that took part. */
    if (t < PF_N_TOKENS && at[2 * group] != PCRE2_UNSET &&
        match->token[t].start == PF_NO_SPAN)
      match->token[t] = (struct pf_span){(uint32_t)at[2 * group],
                                         (uint32_t)at[2 * group + 1]};
  }
  return PF_MATCHED;
}
