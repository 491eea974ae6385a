/* megatron_rows.c - the table of Megatron-LM's arguments: finding rows, and reading their values. */
#include <ctype.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "traces/launch/megatron/megatron_arguments.h"

const char *const megatron_positions[] = {[POSITION_LEARNED] = "learned_absolute",
                                          [POSITION_ROTARY] = "rope",
                                          [POSITION_ALIBI] = "alibi",
                                          [POSITION_NONE] = "none",
                                          NULL};
const char *const megatron_norms[] = {[NORM_LAYER] = "LayerNorm", [NORM_RMS] = "RMSNorm", NULL};
const char *const megatron_shardings[] = {"no_shard", "optim", "optim_grads", "optim_grads_params", NULL};
const char *const megatron_optimizers[] = {
    [OPTIMIZER_ADAM] = "adam", [OPTIMIZER_LAMB] = "lamb", [OPTIMIZER_SGD] = "sgd", [OPTIMIZER_MUON] = "muon", NULL};

#define MEMBER(m)        .offset = offsetof(struct launch_job, m), .size = sizeof(((struct launch_job *)0)->m)
#define NUMBER(m)        .key = #m, .map = MAP_NUMBER, MEMBER(m)
#define BOOL(m)          .key = #m, .map = MAP_BOOL, MEMBER(m)
#define NOT(m)           .key = #m, .map = MAP_NOT, MEMBER(m)
#define CHOICE(m, words) .key = #m, .map = MAP_CHOICE, .choices = words, MEMBER(m)
#define ONE_OF(...)                                                                                                              \
    .accepts = (const char *const[])                                                                                             \
    {                                                                                                                            \
        __VA_ARGS__, NULL                                                                                                        \
    }
#define X(id, name, kind, initial, ...)                                                                                          \
    [ARGUMENT_##id] = {.flag = name, .type = ARGUMENT_##kind, .fallback = initial, __VA_ARGS__},
const struct argument_row megatron_rows[N_ARGUMENTS] = {MEGATRON_ARGUMENTS(X)};
#undef X

/* Other spellings: of launchers, of older versions. */
static const struct {
    const char *name, *flag;
} aliases[] = {
    {"num-nodes", "nnodes"},
    {"nodes", "nnodes"},
    {"num-machines", "nnodes"},
    {"num-gpus", "nproc-per-node"},
    {"gpus-per-node", "nproc-per-node"},
    {"ntasks-per-node", "nproc-per-node"},
    {"model-parallel-size", "tensor-model-parallel-size"},
    {"batch-size", "micro-batch-size"},
    {"fp8-recipe-type", "fp8-recipe"},
    {"fp8", "fp8-format"},
    {"moe-shared-expert-size", "moe-shared-expert-intermediate-size"},
    {"decoder-seq-length", "seq-length"},
    {"use-flash-attn-v2", "use-flash-attn"},
    {"use-flash-attn-triton", "use-flash-attn"},
    {"deepspeed-activation-checkpointing", "checkpoint-activations"},
    {"num-layers-in-first-pipeline-stage", "decoder-first-pipeline-num-layers"}, /* NeMo's and Megatron-Core's names */
    {"num-layers-in-last-pipeline-stage", "decoder-last-pipeline-num-layers"},
    {"peft", "adapter"},
    {"peft-scheme", "adapter"},
    {"factory", "catalog-model"}, /* nemo llm pretrain --factory llama3_70b */
};

/* Do the first n letters of two names agree? A dash is an underscore. */
static bool same_letters(const char *a, const char *b, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        bool both = (a[i] == '-' || a[i] == '_') && (b[i] == '-' || b[i] == '_');
        if (a[i] != b[i] && !both)
            return false;
        if (!a[i])
            return true;
    }
    return true;
}

static bool same_name(const char *a, const char *b)
{
    return same_letters(a, b, SIZE_MAX);
}

bool megatron_ignores(const char *const *ignored, const char *name)
{
    for (; ignored && *ignored; ignored++) {
        size_t n = strlen(*ignored);
        bool family = (*ignored)[n - 1] == '*';
        if (same_letters(name, *ignored, family ? n - 1 : SIZE_MAX))
            return true;
    }
    return false;
}

int megatron_find(const char *name, bool by_dest)
{
    for (size_t i = 0; !by_dest && i < sizeof aliases / sizeof aliases[0]; i++)
        if (same_name(name, aliases[i].name)) {
            name = aliases[i].flag;
            break;
        }
    for (int i = 0; i < N_ARGUMENTS; i++) {
        const struct argument_row *row = &megatron_rows[i];
        if (same_name(name, by_dest && row->dest ? row->dest : row->flag))
            return i;
    }
    return -1;
}

/* --- values --- */

bool megatron_given(const struct megatron_arguments *arguments, enum argument argument)
{
    return arguments->of[argument].text != NULL;
}

const char *megatron_text(const struct megatron_arguments *arguments, enum argument argument)
{
    const char *text = arguments->of[argument].text;
    return text ? text : megatron_rows[argument].fallback;
}

bool megatron_true(const struct megatron_arguments *arguments, enum argument argument)
{
    const char *text = megatron_text(arguments, argument);
    return text && strcmp(text, "true") == 0;
}

/* As Python reads numbers: 1_000_000 is one. */
static bool parse_number(const char *text, double *number)
{
    char digits[48], *end;
    size_t n = 0;
    for (const char *p = text; *p && n + 1 < sizeof digits; p++)
        if (*p != '_' || p == text)
            digits[n++] = *p;
    digits[n] = '\0';
    *number = strtod(digits, &end);
    return end != digits && !*end && isfinite(*number);
}

bool megatron_number(const struct megatron_value *value, const struct argument_row *row, double low, double high, double *number,
                     struct diags *diags)
{
    const char *text = value->text ? value->text : row->fallback;
    bool whole = row->type == ARGUMENT_INT;
    double parsed = 0;
    if (!text || !parse_number(text, &parsed) || (whole && parsed > floor(parsed))) {
        diag_error(diags, value->at, "%s: '%.40s' is not a %snumber", value->spelling, text ? text : "", whole ? "whole " : "");
        return false;
    }
    if (parsed < low || parsed > high) {
        diag_error(diags, value->at, "%s: %s is not between %.15g and %.15g", value->spelling, text, low, high);
        return false;
    }
    *number = parsed;
    return true;
}
