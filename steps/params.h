/*
 * Parameters of C steps: from the pipeline's JSON to the step's struct, by the
 * rows of its table. Private to steps/.
 *
 * Threads: any; nothing is shared between calls.
 */
#ifndef PF_PARAMS_H
#define PF_PARAMS_H

#include "bridge/json.h"
#include "plateflow/step.h"

/*
 * Report all that is wrong with `params` (an object, or NULL for none).
 * Strings with a placeholder ("{well}") are not checked for their value.
 * Returns the number of reports, -1 with err where memory ran out.
 */
int pf_params_check(const struct pf_step_type *type, const char *base_dir,
                    const struct pf_json_doc *doc, const pf_json *params,
                    pf_param_report *report, void *context,
                    struct pf_error *err);

/*
 * A filled parameter struct, freed by pf_params_free(). NULL without an error
 * for a step that has no parameters. Strings are taken as they are.
 * Errors: PF_EINVAL with the first thing that is wrong and its place.
 */
int pf_params_parse(void **out, const struct pf_step_type *type,
                    const char *base_dir, const struct pf_json_doc *doc,
                    const pf_json *params, struct pf_error *err) PF_MUST_CHECK;
void pf_params_free(void **params, const struct pf_step_type *type);

#endif
