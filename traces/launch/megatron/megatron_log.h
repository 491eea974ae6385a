/*
 * megatron_log.h - what the log of a training job says: its arguments, how long steps took, how it ended.
 *
 * Read are the argument block of Megatron-LM and its kin ("--- arguments ---" to "--- end of arguments ---", a name, dots and a
 * value a line), the padded vocabulary ("dummy tokens (new size: 129024)"), lines of iterations of Megatron-LM ("elapsed time
 * per iteration (ms): 6340.0", or (s)), nanotron ("elapsed_time_per_iteration_ms: 6.34K"), NeMo ("train_step_timing in s: 6.34")
 * and torchtitan ("step: 10 ... tps: 6,300", tokens a second of one GPU, wps in 2024; what a step took follows from its tokens
 * and GPUs), whatever stands in front of them in a line (ranks, times), the words with which jobs fail, and what nvidia-smi or a
 * framework calls the GPU. A number at which the log breaks off does not count. A second argument block with other arguments is
 * another job: what comes from there on is not read, with a warning.
 *
 * The step time is the median of the iterations that count: those of the last global batch (smaller ones come before it while the
 * batch ramps up), without the first ones (warm-up: compilation, caches, allocators): a fifth of them, at most ten.
 */
#ifndef MSIM_TRACES_LAUNCH_MEGATRON_MEGATRON_LOG_H
#define MSIM_TRACES_LAUNCH_MEGATRON_MEGATRON_LOG_H

#include <stdint.h>

#include "traces/launch/job/launch_words.h"

enum { LOG_BYTES_MAX = 1 << 30 };

struct launch_log {
    size_t n_iterations; /* lines, all together */
    size_t n_taken;      /* of them */
    size_t n_warm_up, n_ramp_up;
    double step_s;        /* median; 0: no iteration */
    double low_s, high_s; /* quartiles */
    bool per_token;       /* these are of one token on one GPU */
    char gpu[48];         /* what a line calls the GPU ("NVIDIA H100 80GB HBM3"); "" no line does */
    int gpu_line;
    bool has_arguments;     /* an argument block was there */
    bool oom;               /* the job ended out of memory */
    struct place failed_at; /* where it failed; file NULL: nothing tells that it did */
    const char *failed;     /* the words that tell */
    size_t after_failure;   /* iterations behind them */
};

/* Takes what colours a terminal (ESC [ ... m) out of the text, in place; returns how long it is then. */
size_t launch_plain(char *bytes, size_t n);

/* Is this the log of a job? By its argument block or lines of iterations. */
bool launch_is_log(const char *bytes, size_t n);

/* Times of a token on one GPU become times of a step that has so many for each; a log of whole steps stays. */
void launch_log_settle(struct launch_log *log, double tokens_per_gpu);

/* Words of the argument block go to `words`. warm_up: iterations to leave out, -1 as above. `name` must outlive the words. */
void megatron_log_parse(const char *name, const char *bytes, size_t n, int warm_up, struct launch_words *words,
                        struct launch_log *log, struct diags *diags);

#endif
