/*
 * Steps on devices: which device a step runs on, and how its stack gets there
 * and back. Private to engine/.
 *
 * A stack stays on a device from one step to the next; whoever needs it on the
 * host (casts, files, other memory types) brings it back.
 */
#ifndef PF_ENGINE_DEVICE_H
#define PF_ENGINE_DEVICE_H

#include "bridge/buf.h"
#include "plateflow/device.h"
#include "plateflow/pipeline.h"

struct pf_plan;
struct pf_plan_step;

/* plan_device.c ----------------------------------------------------------- */

/*
 * Set step->device from "device" and the step's memory type: `auto` is the GPU
 * with most memory, else a CPU device. Its memory types and traits are known.
 * What the pipeline says wrongly goes into the report; a device that is not
 * here is PF_EMISSING.
 */
int pf_plan_choose_device(struct pf_plan_step *step,
                          const struct pf_pipeline *pipeline,
                          struct pf_report *report,
                          struct pf_error *err) PF_MUST_CHECK;
bool pf_plan_on_device(const struct pf_plan_step *step);
/* "opencl:0", "cpu"; `text` has `size` bytes. Returns `text`. */
const char *pf_device_text(char *text, size_t size, struct pf_device device);
/* Whether the step's result stays on its device for a later step. */
bool pf_plan_stays(const struct pf_plan *plan, size_t step);
/* How the stack reaches a step where a device takes part, appended; false
 * where none does. */
bool pf_plan_device_way(const struct pf_plan *plan,
                        const struct pf_plan_step *step, struct pf_buf *out);

/* run_device.c ------------------------------------------------------------ */

enum pf_move { PF_MOVE_NONE, PF_MOVE_SHARED, PF_MOVE_COPIED, PF_N_MOVES };

/* Bring *stack, which is replaced, to the device or to the host, without a
 * copy where the two share memory; *move says how. NULL stacks are allowed. */
int pf_run_to_device(struct pf_array **stack, struct pf_device device,
                     enum pf_move *move, struct pf_error *err) PF_MUST_CHECK;
int pf_run_to_host(struct pf_array **stack, enum pf_move *move,
                   struct pf_error *err) PF_MUST_CHECK;
/* What a task's note says about its way in and out; NULL: nothing. */
const char *pf_run_move_note(enum pf_move in, enum pf_move out);

#endif
