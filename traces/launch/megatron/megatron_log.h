/*
 * megatron_log.h - the log of a training job: its arguments, the time of its steps, how it ended.
 *
 *     num_layers ...................... 80                          argument block
 *     iteration 20/ 100 | elapsed time per iteration (ms): 6340.0   Megatron-LM; also (s)
 *     elapsed_time_per_iteration_ms: 6.34K                          nanotron
 *     train_step_timing in s: 6.34                                  NeMo
 *     step: 10 ... tps: 6,300                                       torchtitan (wps in 2024): tokens per second and GPU
 *
 * Read are the argument block of Megatron-LM and its relatives ("--- arguments ---" to "--- end of arguments ---"), the padded
 * vocabulary
 * ("dummy tokens (new size: 129024)"), the lines above with any text before them (ranks, times), the messages of failing jobs,
 * and the name of the GPU as nvidia-smi or a framework prints it. torchtitan's step time follows from its tokens and GPUs. A
 * number at which the log breaks off does not count. A second argument block with other arguments is another job: the rest is not
 * read, with a warning.
 *
 * The step time is the median of the iterations that count: those with the last global batch (batches ramp up) without the
 * warm-up (compilation, caches, allocators), which is a fifth of them, at most ten.
 */
#ifndef MSIM_TRACES_LAUNCH_MEGATRON_MEGATRON_LOG_H
#define MSIM_TRACES_LAUNCH_MEGATRON_MEGATRON_LOG_H

#include <stdint.h>

#include "traces/launch/job/launch_words.h"

struct launch_log {
    size_t n_iterations; /* lines of iterations */
    size_t n_taken;      /* of them, those that count */
    size_t n_warm_up, n_ramp_up;
    double step_s;        /* median; 0: no iteration */
    double low_s, high_s; /* quartiles */
    bool per_token;       /* times of one token on one GPU */
    char gpu[48];         /* the name of the GPU ("NVIDIA H100 80GB HBM3"); "": no line has it */
    int gpu_line;
    bool has_arguments;     /* there was an argument block */
    bool oom;               /* the job ended out of memory */
    struct place failed_at; /* where it failed; file NULL: no line says that it did */
    const char *failed;     /* the message */
    size_t after_failure;   /* iterations after it */
};

/* Removes a terminal's colour codes (ESC [ ... m) from the text, in place; returns the new length. */
size_t launch_plain(char *bytes, size_t n);

/* Is this the log of a job? It is if it has an argument block or lines of iterations. */
bool launch_is_log(const char *bytes, size_t n);

/* Turns times per token and GPU into times per step of tokens_per_gpu tokens; a log of whole steps stays as it is. */
void launch_log_settle(struct launch_log *log, double tokens_per_gpu);

/* Words of the argument block go to `words`. warm_up: iterations to leave out; -1: as above. `name` must outlive the words. */
void megatron_log_parse(const char *name, const char *bytes, size_t n, int warm_up, struct launch_words *words,
                        struct launch_log *log, struct diags *diags);

#endif
