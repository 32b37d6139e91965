/*
 * A Gaussian blur of one plane: along y into sums, then along x into elements.
 * One source for OpenCL and for C (steps/kernels/host.h).
 *
 * PF_T is the element type and PF_REAL that of the sums; pf_store() and the
 * rest are in steps/kernels/common.cl. The order of the additions is that of
 * steps/native/gaussian.c: the centre, then pairs from the outermost in. So
 * with double sums the results are the same to the bit.
 */

/* Where index i beyond 0..n-1 looks; -1: nowhere, the value is 0. The modes
 * are those of native:gaussian: reflect, nearest, constant, mirror, wrap. */
static pf_long border_index(pf_long i, pf_long n, int mode) {
  const pf_long period = mode == 3 ? 2 * n - 2 : 2 * n;
  if (i >= 0 && i < n)
    return i;
  if (mode == 1)
    return i < 0 ? 0 : n - 1;
  if (mode == 2)
    return -1;
  if (mode == 4)
    return (i % n + n) % n;
  if (n == 1)
    return 0;
  i = (i % period + period) % period;
  return i < n ? i : (mode == 3 ? period : period - 1) - i;
}

static PF_REAL at_row(PF_GLOBAL const PF_T *in, pf_long y, pf_long x,
                      pf_long height, pf_long width, int mode) {
  const pf_long row = border_index(y, height, mode);
  return row < 0 ? (PF_REAL)0 : (PF_REAL)in[row * width + x];
}

static PF_REAL at_column(PF_GLOBAL const PF_REAL *row, pf_long x,
                         pf_long width, int mode) {
  const pf_long column = border_index(x, width, mode);
  return column < 0 ? (PF_REAL)0 : row[column];
}

/* `first` is the plane's first element in the stack; weight[0] is the
 * centre's. One work item per pixel: x, y. */
PF_KERNEL void gaussian_y(PF_GLOBAL const PF_T *stack,
                          PF_GLOBAL PF_REAL *sums,
                          PF_GLOBAL const PF_REAL *weight, pf_long first,
                          pf_long height, pf_long width, int radius,
                          int mode) {
  const pf_long x = (pf_long)get_global_id(0), y = (pf_long)get_global_id(1);
  PF_GLOBAL const PF_T *in = stack + first;
  PF_REAL sum;
  if (x >= width || y >= height)
    return;
  sum = (PF_REAL)in[y * width + x] * weight[0];
  if (y >= radius && y < height - radius) /* most rows: no edge to look at */
    for (pf_long k = radius; k >= 1; k--)
      sum += ((PF_REAL)in[(y - k) * width + x] +
              (PF_REAL)in[(y + k) * width + x]) *
             weight[k];
  else
    for (pf_long k = radius; k >= 1; k--)
      sum += (at_row(in, y - k, x, height, width, mode) +
              at_row(in, y + k, x, height, width, mode)) *
             weight[k];
  sums[y * width + x] = sum;
}

PF_KERNEL void gaussian_x(PF_GLOBAL const PF_REAL *sums,
                          PF_GLOBAL PF_T *result,
                          PF_GLOBAL const PF_REAL *weight, pf_long first,
                          pf_long height, pf_long width, int radius,
                          int mode) {
  const pf_long x = (pf_long)get_global_id(0), y = (pf_long)get_global_id(1);
  PF_GLOBAL const PF_REAL *row = sums + y * width;
  PF_REAL sum;
  if (x >= width || y >= height)
    return;
  sum = row[x] * weight[0];
  if (x >= radius && x < width - radius)
    for (pf_long k = radius; k >= 1; k--)
      sum += (row[x - k] + row[x + k]) * weight[k];
  else
    for (pf_long k = radius; k >= 1; k--)
      sum += (at_column(row, x - k, width, mode) +
              at_column(row, x + k, width, mode)) *
             weight[k];
  result[first + y * width + x] = pf_store(sum);
}
