/* The keys of `plate` that need more than a row. */
#include "engine/pipeline_read.h"

#include <stdlib.h>
#include <string.h>

/* `pattern` and the layout "pattern" belong together. */
static void check_pattern(struct pf_reader *r, const pf_json *plate) {
  const pf_json *layout = pf_json_get(plate, "layout");
  const pf_json *pattern = pf_json_get(plate, "pattern");
  const char *name = layout ? pf_json_string(layout) : NULL;
  bool is_pattern = name && strcmp(name, "pattern") == 0;
  if (is_pattern && !pattern)
    pf_complain(r, plate, false,
                "\"pattern\" is missing: the layout \"pattern\" needs it");
  if (pattern && !is_pattern)
    pf_complain(r, pattern, true,
                "\"pattern\" goes with \"layout\": \"pattern\" only");
}

void pf_read_plate(struct pf_reader *r, const struct pf_key *key,
                   const pf_json *value, void *field) {
  (void)key;
  if (pf_read_object(r, &pf_pipeline_keys[PF_KEYS_PLATE], value, field))
    check_pattern(r, value);
}

/* The member that gives the same name to another channel, or NULL. */
static const pf_json *same_alias(const pf_json *first, const pf_json *member) {
  for (; first != member; first = pf_json_next(first))
    if (pf_json_string(first) &&
        strcmp(pf_json_string(first), pf_json_string(member)) == 0)
      return first;
  return NULL;
}

static void read_alias(struct pf_reader *r, const pf_json *channels,
                       const pf_json *member) {
  struct pf_pipeline *p = r->pipeline;
  const char *name = pf_read_text(r, member);
  const pf_json *other;
  struct pf_buf quoted = {0};
  if (!*pf_json_key(member)) {
    pf_complain(r, member, true, "the channel's value is empty");
    return;
  }
  if (!name)
    return;
  other = same_alias(pf_json_first(channels), member);
  if (other) {
    pf_add_quoted(&quoted, pf_json_key(other));
    pf_complain(r, member, false, "channel %s has the same name",
                pf_buf_text(&quoted));
    pf_buf_free(&quoted);
  }
  p->channel_values[p->n_channels] = pf_read_copy(r, pf_json_key(member));
  p->channel_names[p->n_channels++] = pf_read_copy(r, name);
}

void pf_read_channels(struct pf_reader *r, const struct pf_key *key,
                      const pf_json *value, void *field) {
  struct pf_pipeline *p = field;
  size_t n = pf_json_n(value);
  if (pf_json_type(r->doc, value) != PF_JSON_OBJECT) {
    pf_complain_type(r, value, key->type);
    return;
  }
  if (n > PF_MAX_CHANNELS) {
    pf_complain(r, value, false, "%zu channels, %d at the most", n,
                PF_MAX_CHANNELS);
    return;
  }
  p->channel_values = calloc(n + 1, sizeof(*p->channel_values));
  p->channel_names = calloc(n + 1, sizeof(*p->channel_names));
  if (!p->channel_values || !p->channel_names) {
    r->no_memory = true;
    return;
  }
  for (const pf_json *m = pf_json_first(value); m; m = pf_json_next(m))
    read_alias(r, value, m);
}
