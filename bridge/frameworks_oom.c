/* Whether an exception says that memory ran out: by the entries alone. */
#include <string.h>

#include "bridge/frameworks.h"

/* "builtins." may be left out on either side. */
static const char *without_builtins(const char *name) {
  static const char prefix[] = "builtins.";
  size_t n = sizeof(prefix) - 1;
  return strncmp(name, prefix, n) == 0 ? name + n : name;
}

static bool is_instance(const char *exception, const char *const *names,
                        size_t n) {
  for (size_t i = 0; i < n; i++)
    if (strcmp(without_builtins(names[i]), without_builtins(exception)) == 0)
      return true;
  return false;
}

static bool holds_one(const char *text, const char *const *patterns,
                      size_t n) {
  for (size_t i = 0; i < n; i++)
    if (strstr(text, patterns[i]))
      return true;
  return false;
}

static bool matches(const struct pf_framework_oom *rules, size_t n_rules,
                    const char *const *names, size_t n, const char *text) {
  for (size_t i = 0; i < n_rules; i++)
    if (is_instance(rules[i].exception, names, n) &&
        (!rules[i].n_patterns ||
         holds_one(text, rules[i].patterns, rules[i].n_patterns)))
      return true;
  return false;
}

static bool is_of_entry(const struct pf_framework *f, const char *const *names,
                        size_t n, const char *text) {
  return matches(f->oom, f->n_oom, names, n, text) &&
         !holds_one(text, f->not_oom, f->n_not_oom);
}

bool pf_framework_is_oom(const struct pf_framework *framework,
                         const char *const *names, size_t n,
                         const char *text) {
  const struct pf_frameworks *all = pf_frameworks_get();
  if (!text)
    text = "";
  if (holds_one(text, all->not_oom, all->n_not_oom))
    return false;
  if (matches(all->oom, all->n_oom, names, n, text))
    return true;
  if (framework)
    return is_of_entry(framework, names, n, text);
  for (size_t i = 0; i < all->n; i++)
    if (is_of_entry(all->entries[i], names, n, text))
      return true;
  return false;
}
