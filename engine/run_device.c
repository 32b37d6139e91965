/* Stacks to a step's device and back: see engine/device.h. */
#include "engine/device.h"

#include "bridge/opencl.h"

static const struct pf_device host = {PF_DEVICE_HOST, 0};

static bool is_on(const struct pf_array *array, struct pf_device device) {
  const struct pf_device at = pf_array_device(array);
  return at.type == device.type && at.index == device.index;
}

/* Take `moved` for *stack. */
static int replace(struct pf_array **stack, struct pf_array *moved,
                   enum pf_move *move, enum pf_move how) {
  pf_array_unref(stack);
  *stack = moved;
  *move = how;
  return PF_OK;
}

int pf_run_to_device(struct pf_array **stack, struct pf_device device,
                     enum pf_move *move, struct pf_error *err) {
  struct pf_array *moved = NULL;
  int result;
  *move = PF_MOVE_NONE;
  if (!*stack || is_on(*stack, device))
    return PF_OK;
  if (device.type == PF_DEVICE_OPENCL &&
      pf_opencl_can_share(*stack, device.index)) {
    result = pf_opencl_from_host(&moved, *stack, device.index, err);
    return result == PF_OK ? replace(stack, moved, move, PF_MOVE_SHARED)
                           : result;
  }
  result = pf_array_to_device(&moved, *stack, device, NULL, err);
  return result == PF_OK ? replace(stack, moved, move, PF_MOVE_COPIED)
                         : result;
}

static bool shares_host(struct pf_device device) {
  struct pf_device_info info = {.shares_host = false};
  const struct pf_device_ops *ops =
      pf_device_ops((enum pf_device_kind)device.type);
  return ops && ops->info(device.index, &info, NULL) == PF_OK &&
         info.shares_host;
}

int pf_run_to_host(struct pf_array **stack, enum pf_move *move,
                   struct pf_error *err) {
  struct pf_array *moved = NULL;
  struct pf_device at;
  int result;
  *move = PF_MOVE_NONE;
  if (!*stack || is_on(*stack, host))
    return PF_OK;
  at = pf_array_device(*stack);
  if (at.type == PF_DEVICE_OPENCL && shares_host(at) &&
      pf_array_size(*stack) > 0) {
    result = pf_opencl_to_host_view(&moved, *stack, err);
    return result == PF_OK ? replace(stack, moved, move, PF_MOVE_SHARED)
                           : result;
  }
  result = pf_array_to_device(&moved, *stack, host, NULL, err);
  if (result == PF_OK)
    result = pf_array_wait(moved, err);
  if (result == PF_OK)
    return replace(stack, moved, move, PF_MOVE_COPIED);
  pf_array_unref(&moved);
  return result;
}

const char *pf_run_move_note(enum pf_move in, enum pf_move out) {
  static const char *const notes[PF_N_MOVES][PF_N_MOVES] = {
      [PF_MOVE_NONE] = {NULL, "shared with the host", "copied to the host"},
      [PF_MOVE_SHARED] = {"shared with the device",
                          "shared with the device and back",
                          "shared with the device, copied back"},
      [PF_MOVE_COPIED] = {"copied to the device",
                          "copied to the device, shared with the host",
                          "copied to the device and back"}};
  return notes[in][out];
}
