/*
 * What all kernels use. Before it come, from steps/kernels/source.c:
 *   PF_T       the element type
 *   PF_T_MAX   its largest value, and for integers
 *   PF_T_MIN   its smallest value (a power of two or 0: exact as a float)
 *   PF_T_END   the first integer beyond PF_T_MAX (a power of two)
 *   PF_REAL    the type of sums, and rint() of it
 * Nothing here is transcendental and nothing contracts, so that a result is
 * the same on every device that has PF_REAL.
 */

/* Round half to even and saturate; NaN is 0. The sum is compared before it is
 * converted: what the type cannot hold has no defined conversion. */
static PF_T pf_store(PF_REAL x) {
#ifdef PF_T_END
  x = x == x ? rint(x) : (PF_REAL)0;
  if (x >= (PF_REAL)PF_T_END)
    return (PF_T)PF_T_MAX;
  return x < (PF_REAL)PF_T_MIN ? (PF_T)PF_T_MIN : (PF_T)x;
#else
  return (PF_T)x;
#endif
}
