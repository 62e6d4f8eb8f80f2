/* A stand-in for a GPU, its runtime and its driver, for the worker's own tests: device memory is
 * this process's, device code is a function that runs when somebody waits for it. A fault of device
 * code loses the context: what was launched behind it never runs, and every call returns 700.
 *
 * The environment's CUDA_STAND_IN_NO_DEVICE leaves no device; CUDA_STAND_IN_MEMORY says how many
 * bytes one allocation may have; CUDA_STAND_IN_GUARDS makes a driver that maps memory where it is
 * told, without it the driver refuses. */
#ifndef ATTEST_STAND_IN_CUDA_H
#define ATTEST_STAND_IN_CUDA_H

#include <stdint.h>

typedef struct device_args {
    float *o, *q;
    int64_t o_size, q_size; /* elements */
} device_args;

/* Stream NULL is the default one. Streams that were made do not wait for it, nor it for them. */
void device_launch(void (*code)(const device_args*), device_args args, const void* stream);
int cudaGetLastError(void);

#endif
