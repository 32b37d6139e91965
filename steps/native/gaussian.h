/* What native:gaussian and its twins share. Private to steps/. */
#ifndef PF_GAUSSIAN_H
#define PF_GAUSSIAN_H

#include "steps/native/native.h"

/* Filled from the pipeline. */
struct pf_gaussian_params {
  double sigma, truncate;
  int mode; /* what is beyond the edge, in the order of the choices */
};

/* An instance: half of the symmetric kernel; weight[0] is the centre's. */
struct pf_gaussian {
  size_t radius;
  double weight[]; /* radius + 1 of them; with both halves their sum is 1 */
};

extern const struct pf_step_twin pf_gaussian_opencl; /* gaussian_opencl.c */

#endif
