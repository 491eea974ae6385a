/*
 * step_rates.h - a step as the rates that papers and frameworks state: MFU, TFLOPS and tokens a second of a GPU; and how long a
 * budget of tokens takes.
 *
 * Example: llama2-7b on 8 H100s, 64 sequences of 4,096 tokens in 2.64 s:
 *
 *     step_rates_of(&layout, &setting, 2.64)      12,400 tokens/s of each GPU, 572 TFLOPS, 532 with causal attention
 *
 * Model FLOPS come by both conventions (model/cost/work/work.h): attention counted in full, as NeMo, Megatron-LM and nanotron
 * print them, or its causal half alone, as torchtitan does.
 */
#ifndef MSIM_MODEL_COST_STEP_STEP_RATES_H
#define MSIM_MODEL_COST_STEP_STEP_RATES_H

#include "model/layout/layout.h"

struct step_rates {
    double mfu, mfu_causal;       /* fractions */
    double tflops, tflops_causal; /* of a GPU, 1e12 FLOP/s */
    double tokens_per_s;          /* of all GPUs */
    double tokens_per_gpu;        /* a second */
    double days, gpu_hours;       /* for the job's budget of tokens, by steps alone; 0: it has none */
};

/* Of a step of step_s seconds, with the layout's features. */
struct step_rates step_rates_of(const struct layout *layout, const struct setting *setting, double step_s);

#endif
