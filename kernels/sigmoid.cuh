/*
 * sigmoid.cuh - the sigmoid of activations and gates, by the device's fast exponential and reciprocal.
 *
 * Example: sigmoid(0.0f) is 0.5f.
 */
#ifndef MSIM_KERNELS_SIGMOID_CUH
#define MSIM_KERNELS_SIGMOID_CUH

#include "kernels/vector.cuh"

#define LOG2_E 1.4426950409f

__device__ static inline float sigmoid(float x)
{
    return reciprocal_fast(1 + exp2_fast(-LOG2_E * x));
}

#endif
