/* Kernels for an element type: see steps/kernels/kernels.h. */
#include "steps/kernels/kernels.h"

#include "bridge/buf.h"

/* OpenCL's words of an element type. Limits are written so that they are exact
 * in float, double and the type; NULL: a type of floating point. */
struct type_row {
  const char *name, *min, *max, *end;
};

static const struct type_row types[PF_N_DTYPES] = {
    [PF_BOOL] = {"uchar", "0", "255", "256"},
    [PF_U8] = {"uchar", "0", "255", "256"},
    [PF_I8] = {"char", "-128", "127", "128"},
    [PF_U16] = {"ushort", "0", "65535", "65536"},
    [PF_I16] = {"short", "-32768", "32767", "32768"},
    [PF_U32] = {"uint", "0", "4294967295U", "4294967296L"},
    [PF_I32] = {"int", "(-2147483647-1)", "2147483647", "2147483648L"},
    [PF_U64] = {"ulong", "0", "18446744073709551615UL",
                "(4294967296.0f*4294967296.0f)"},
    [PF_I64] = {"long", "(-9223372036854775807L-1)", "9223372036854775807L",
                "(2147483648.0f*4294967296.0f)"},
    [PF_F32] = {"float", NULL, NULL, NULL},
    [PF_F64] = {"double", NULL, NULL, NULL},
};

static void write_source(struct pf_buf *out, const struct type_row *type,
                         const char *body, enum pf_dtype real) {
  pf_buf_str(out, "#define PF_KERNEL __kernel\n"
                  "#define PF_GLOBAL __global\n"
                  "typedef long pf_long;\n");
  pf_buf_printf(out, "#define PF_T %s\n#define PF_REAL %s\n", type->name,
                real == PF_F64 ? "double" : "float");
  if (type->end)
    pf_buf_printf(
        out, "#define PF_T_MIN %s\n#define PF_T_MAX %s\n#define PF_T_END %s\n",
        type->min, type->max, type->end);
  pf_buf_str(out, pf_kernels_common);
  pf_buf_str(out, "#line 1\n");
  pf_buf_str(out, body);
}

int pf_kernels_get(struct pf_kernel **out, struct pf_device device,
                   const char *body, const char *name, enum pf_dtype dtype,
                   enum pf_dtype real, struct pf_error *err) {
  const struct pf_device_ops *ops =
      pf_device_ops((enum pf_device_kind)device.type);
  struct pf_buf source = {0};
  int code;
  *out = NULL;
  if ((unsigned)dtype >= PF_N_DTYPES || !types[dtype].name)
    return pf_error_set(err, PF_EINVAL,
                        "kernels take no %s: give the step \"input_dtype\": "
                        "\"float32\"",
                        pf_dtype_name(dtype));
  if (!ops || !ops->kernel)
    return pf_error_set(err, PF_EMISSING,
                        "devices of type %d run no kernels from source",
                        device.type);
  write_source(&source, &types[dtype], body, real);
  code = pf_buf_ok(&source)
             ? ops->kernel(device.index, source.data, name, out, err)
             : pf_error_set(err, PF_ENOMEM, "no memory for a kernel");
  pf_buf_free(&source);
  return code;
}
