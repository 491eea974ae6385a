/*
 * toys.h - small models, jobs and layouts for tests of the runtime.
 */
#ifndef MSIM_TESTS_RUNTIME_TOYS_H
#define MSIM_TESTS_RUNTIME_TOYS_H

#include <check.h>

#include "runtime/run/thread_run.h"

#define COUNT(array) (int)(sizeof(array) / sizeof(array)[0])

/* Everything a run needs. `setting` points into the struct: do not copy it. */
struct toy {
    struct transformer model;
    struct cluster cluster;
    struct job job;
    struct layout layout;
    struct setting setting;
};

enum toy_model {
    TOY_GPT,            /* layer norm, biases, learned positions, tied table */
    TOY_LLAMA,          /* RMS norm, SwiGLU, rotary, grouped queries, untied */
    TOY_WINDOW,         /* TOY_LLAMA with a sliding window in every layer */
    TOY_MIXTURE,        /* TOY_LLAMA with experts, two of eight per token, and a shared one; the first layer dense */
    TOY_MIXTURE_GPT,    /* TOY_GPT with experts, two of four per token, in every second layer */
    TOY_ALIBI,          /* TOY_GPT with distances in the scores instead of positions, in a window */
    TOY_NORMS,          /* TOY_LLAMA with norms of query and key heads */
    TOY_LATENT,         /* latent attention with compressed queries, experts */
    TOY_LATENT_GPT,     /* latent attention with queries from the input, layer norm, dense */
    TOY_LATENT_NORMS,   /* latent attention with rotary embedding, layer norm, biases, norms of heads, experts */
    TOY_OSS,            /* as gpt-oss: biases, clamped gates, experts and full attention in every second layer */
    TOY_PREDICTION,     /* TOY_MIXTURE with two modules of multi-token prediction */
    TOY_PREDICTION_GPT, /* TOY_GPT with one */
    TOY_MAMBA,          /* TOY_LLAMA with layers M - m *: Mamba-2 alone, feed-forward alone, both, attention alone */
    TOY_MAMBA_GPT,      /* TOY_GPT with layers p M - a: attention and Mamba-2 side by side first */
    TOY_LIGHTNING,      /* TOY_LLAMA with layers m p a m, lightning attention */
    TOY_DELTA,          /* TOY_MIXTURE with layers m m * E, gated delta rule */
    TOY_KIMI,           /* TOY_LATENT with layers m a m p, Kimi's delta rule */
    N_TOY_MODELS
};

/* One rank, with the features of today. */
struct layout toy_one_rank(void);
/* With toy_one_rank's layout; change what the test is about, then toy_complete. */
void toy_make(struct toy *toy, enum toy_model model);
/* Set the number of GPUs from the layout, and the schedule "none" where there is no pipeline. */
void toy_complete(struct toy *toy);
/* The same, with a layout as layout_parse reads it and some features turned over: those the toy has are taken away. */
void toy_lay_out(struct toy *toy, const char *layout, feature_set turned_over);
/* "gpt tp=2,...: feature ..." Returns buffer. */
enum { TOY_TEXT_MAX = 512 };
char *toy_text(const struct toy *toy, char *buffer, size_t size);
/* Build, verify and execute; ends the test on failure unless `diags` is given. */
enum status toy_run(const struct toy *toy, enum detail detail, const struct thread_run_options *options,
                    struct thread_run *result, struct diags *diags);

/* A suite of tests, each executed `rounds` times with its number: what main returns. */
struct toy_test {
    const TTest *test;
    int rounds;
};
int toy_suite(const char *name, const struct toy_test *tests, int n);

#endif
