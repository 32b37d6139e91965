/* `{component}` and `{out}` in parameters and in name templates. */
#include "engine/pipeline_read.h"

#include <string.h>

/* `{plate}` ... `{z}` in the order of the components, then `{out}`. */
enum { PLACEHOLDER_OUT = PF_N_COMPONENTS };

static int find_placeholder(const char *word, size_t n) {
  for (int i = 0; i < (int)PF_N_COMPONENTS; i++)
    if (strlen(pf_component_words[i]) == n &&
        memcmp(pf_component_words[i], word, n) == 0)
      return i;
  return n == 3 && memcmp(word, "out", 3) == 0 ? PLACEHOLDER_OUT : -1;
}

static void unknown_placeholder(struct pf_reader *r, const pf_json *value,
                                const char *word, size_t n, bool out) {
  const char *known[PF_N_COMPONENTS + 1];
  struct pf_buf text = {0}, quoted = {0};
  const char *nearest;
  for (size_t i = 0; i < PF_N_COMPONENTS; i++)
    known[i] = pf_component_words[i];
  known[PLACEHOLDER_OUT] = "out";
  pf_buf_add(&text, word, n);
  nearest = pf_nearest_word(pf_buf_text(&text), known,
                            PF_N_COMPONENTS + (out ? 1 : 0));
  pf_buf_reset(&text);
  pf_buf_char(&text, '{');
  pf_buf_add(&text, word, n);
  pf_buf_char(&text, '}');
  pf_add_quoted(&quoted, pf_buf_text(&text));
  if (nearest)
    pf_buf_printf(&quoted, "; did you mean {%s}?", nearest);
  pf_complain(r, value, false,
              "unknown placeholder %s (a brace of its own is written {{)",
              pf_buf_text(&quoted));
  pf_buf_free(&text);
  pf_buf_free(&quoted);
}

/* The placeholder behind a `{`: its word and the length up to the `}`. */
static void check_word(struct pf_reader *r, const pf_json *value,
                       const char *word, size_t n, unsigned stacked,
                       bool out) {
  int at = find_placeholder(word, n);
  if (at < 0 || (at == PLACEHOLDER_OUT && !out))
    unknown_placeholder(r, value, word, n, out);
  else if (at < (int)PF_N_COMPONENTS && (stacked & 1u << at))
    pf_complain(r, value, false,
                "{%s} cannot be filled in: the step stacks \"%s\", so that a "
                "group has several",
                pf_component_words[at], pf_component_words[at]);
}

static void check_text(struct pf_reader *r, const pf_json *value,
                       const char *text, unsigned stacked, bool out) {
  const char *p = strchr(text, '{');
  while (p) {
    size_t n;
    if (p[1] == '{') {
      p = strchr(p + 2, '{');
      continue;
    }
    n = strcspn(p + 1, "{}");
    if (p[1 + n] != '}') {
      pf_complain(r, value, false,
                  "a { is not closed; a brace of its own is written {{");
      return;
    }
    check_word(r, value, p + 1, n, stacked, out);
    p = strchr(p + 1 + n, '{');
  }
}

/* Recursion ends with the limit on a document's depth. */
void pf_check_placeholders(struct pf_reader *r, const pf_json *value,
                           unsigned stacked, bool out) {
  const char *text = pf_json_string(value);
  if (text)
    check_text(r, value, text, stacked, out);
  for (const pf_json *v = pf_json_first(value); v; v = pf_json_next(v))
    pf_check_placeholders(r, v, stacked, out);
}
