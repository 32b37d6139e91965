/*
 * native:gaussian on an OpenCL device: steps/kernels/gaussian.cl.
 *
 * Sums are doubles where the device has them: then the pixels are those of the
 * host. Elsewhere they are floats: of 16-bit pixels up to 0.5 % are one count
 * off where they use the whole range, and wider types are refused.
 */
#include "bridge/opencl.h"
#include "plateflow/bridge.h"
#include "steps/kernels/kernels.h"
#include "steps/native/gaussian.h"

/* A call's arrays, all on the device but `host_weight`. */
struct work {
  const struct pf_device_ops *ops;
  struct pf_device device;
  struct pf_stream *stream;
  enum pf_dtype dtype, real;    /* of elements and of sums */
  struct pf_array *stack;       /* borrowed */
  struct pf_array *sums;        /* [Y,X], of one plane at a time */
  struct pf_array *weight;      /* [radius + 1] */
  struct pf_array *host_weight; /* the same; lives until it is copied */
  struct pf_array *result;      /* as the stack */
  struct pf_kernel *along_y, *along_x;
};

static void finish(struct work *work) {
  pf_array_unref(&work->sums);
  pf_array_unref(&work->weight);
  pf_array_unref(&work->host_weight);
  pf_array_unref(&work->result);
  pf_stream_put(&work->stream);
}

static int check_stack(struct work *work, struct pf_error *err) {
  char text[PF_ARRAY_TEXT];
  const int ndim = pf_array_ndim(work->stack);
  if ((ndim != 2 && ndim != 3) || pf_array_size(work->stack) == 0 ||
      !pf_array_is_compact(work->stack))
    return pf_error_set(err, PF_ESTEP,
                        "expected a stack [Z,Y,X] with pixels in it, got %s",
                        pf_array_text(text, sizeof(text), work->stack));
  if (work->real == PF_F32 && work->dtype != PF_F32 &&
      pf_dtype_size(work->dtype) > 2)
    return pf_error_set(err, PF_ESTEP,
                        "opencl:%d has no double, and float cannot hold %s: "
                        "give the step \"input_dtype\": \"float32\"",
                        work->device.index, pf_dtype_name(work->dtype));
  return PF_OK;
}

static int prepare_weights(struct work *work, const struct pf_gaussian *kernel,
                           struct pf_error *err) {
  const int64_t n = (int64_t)kernel->radius + 1;
  int code = pf_array_create(&work->host_weight, work->real, 1, &n, err);
  if (code != PF_OK)
    return code;
  pf_native_store(pf_array_data(work->host_weight), kernel->weight, work->real,
                  (size_t)n);
  return pf_array_to_device(&work->weight, work->host_weight, work->device,
                            work->stream, err);
}

static int prepare(struct work *work, const struct pf_gaussian *kernel,
                   struct pf_error *err) {
  const int ndim = pf_array_ndim(work->stack);
  const int64_t *shape = pf_array_shape(work->stack);
  int code;
  if ((code = check_stack(work, err)) ||
      (code = pf_kernels_get(&work->along_y, work->device, pf_kernels_gaussian,
                             "gaussian_y", work->dtype, work->real, err)) ||
      (code = pf_kernels_get(&work->along_x, work->device, pf_kernels_gaussian,
                             "gaussian_x", work->dtype, work->real, err)) ||
      (code = pf_stream_get(&work->stream, work->device, err)) ||
      (code = prepare_weights(work, kernel, err)) ||
      (code = pf_array_create_on(&work->sums, work->device, work->real, 2,
                                 shape + ndim - 2, work->stream, err)) ||
      (code = pf_array_create_on(&work->result, work->device, work->dtype,
                                 ndim, shape, work->stream, err)))
    return code;
  return pf_array_order(work->stack, work->stream, false, err);
}

static int filter_plane(struct work *work, int64_t z, int radius, int mode,
                        struct pf_error *err) {
  const int64_t *shape = pf_array_shape(work->sums);
  const int64_t first = z * shape[0] * shape[1];
  const size_t global[3] = {(size_t)shape[1], (size_t)shape[0], 1};
  struct pf_kernel_argument arguments[] = {
      {.array = work->stack},
      {.array = work->sums},
      {.array = work->weight},
      {.value = &first, .n_bytes = sizeof(first)},
      {.value = &shape[0], .n_bytes = sizeof(shape[0])},
      {.value = &shape[1], .n_bytes = sizeof(shape[1])},
      {.value = &radius, .n_bytes = sizeof(radius)},
      {.value = &mode, .n_bytes = sizeof(mode)}};
  const size_t n = sizeof(arguments) / sizeof(arguments[0]);
  int code = work->ops->launch(work->along_y, work->stream, global, NULL,
                               arguments, n, err);
  if (code != PF_OK)
    return code;
  arguments[0].array = work->sums;
  arguments[1].array = work->result;
  return work->ops->launch(work->along_x, work->stream, global, NULL,
                           arguments, n, err);
}

static int filter(struct work *work, const struct pf_gaussian *kernel,
                  int mode, struct pf_error *err) {
  const int64_t *shape = pf_array_shape(work->stack);
  const int64_t depth = pf_array_ndim(work->stack) == 3 ? shape[0] : 1;
  int code = PF_OK, done;
  for (int64_t z = 0; z < depth && code == PF_OK; z++)
    code = filter_plane(work, z, (int)kernel->radius, mode, err);
  /* Always: a failure of the device is this step's, and what the kernels use
   * is given back when we return. */
  done = work->ops->stream_sync(work->stream, err);
  return code != PF_OK ? code : done;
}

static int call(void *instance, const void *given, const struct pf_call *call,
                struct pf_result *result, struct pf_error *err) {
  const struct pf_gaussian_params *p = given;
  const struct pf_gaussian *kernel = instance;
  struct work work = {.device = pf_array_device(call->stack),
                      .dtype = pf_array_dtype(call->stack),
                      .stack = call->stack};
  int code;
  if (kernel->radius == 0) {
    result->stack = pf_array_ref(call->stack);
    return PF_OK;
  }
  work.ops = pf_device_ops(PF_DEVICE_OPENCL);
  work.real = pf_opencl_has_double(work.device.index) ? PF_F64 : PF_F32;
  if (work.dtype == PF_BOOL) /* as on the host */
    work.dtype = PF_U8;
  code = prepare(&work, kernel, err);
  if (code == PF_OK)
    code = filter(&work, kernel, p->mode, err);
  if (code == PF_OK) {
    result->stack = work.result;
    work.result = NULL;
  }
  finish(&work);
  return code;
}

const struct pf_step_twin pf_gaussian_opencl = {
    .memory_type = PF_MEM_OPENCL,
    .counts = 1,
    .relative = 1e-6,
    .call = call,
};
