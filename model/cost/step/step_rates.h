/*
 * step_rates.h - a step time as the rates that papers and frameworks report: MFU, TFLOPS and tokens per second.
 *
 * Example: llama2-7b on 8 H100s, 64 sequences of 4,096 tokens in 2.64 s:
 *
 *     step_rates_of(&layout, &setting, 2.64)      12,400 tokens/s per GPU, 572 TFLOPS, 532 with causal attention
 *
 * Model FLOPs follow both conventions (model/cost/work/work.h): attention counted in full, as NeMo, Megatron-LM and nanotron
 * print them, or only its causal half, as torchtitan does.
 */
#ifndef MSIM_MODEL_COST_STEP_STEP_RATES_H
#define MSIM_MODEL_COST_STEP_STEP_RATES_H

#include "model/layout/layout.h"

struct step_rates {
    double mfu, mfu_causal;       /* fractions */
    double tflops, tflops_causal; /* per GPU, 1e12 FLOP/s */
    double tokens_per_s;          /* of all GPUs */
    double tokens_per_gpu;        /* per second and GPU */
    double days, gpu_hours;       /* for the token budget of the job, without failures; 0: it has none */
};

/* The rates of a step of step_s seconds, with the features of the layout. */
struct step_rates step_rates_of(const struct layout *layout, const struct setting *setting, double step_s);

#endif
