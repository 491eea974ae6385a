#include "traces/launch/megatron_arguments.h"

#include <ctype.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/append.h"
#include "model/base/units.h"
#include "traces/launch/megatron_mistakes.h"

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

/* What says nothing of time and memory, or is what msim takes anyhow. A name that ends in '*' stands for all that begin so. */
static const char *const silent[] = {
    "lr",
    "lr-*",
    "min-lr",
    "decoupled-*",
    "override-opt*",
    "use-checkpoint-*",
    "weight-decay*",
    "start-weight-decay",
    "end-weight-decay",
    "adam-*",
    "sgd-*",
    "muon-momentum",
    "muon-scale-mode",
    "muon-extra-scale-factor",
    "muon-fp32-matmul-prec",
    "muon-use-nesterov",
    "muon-split-qkv",
    "muon-no-split-qkv",
    "clip-grad",
    "init-method*",
    "seed",
    "split",
    "data-*",
    "train-data*",
    "valid-data*",
    "test-data*",
    "per-split-data*",
    "vocab-file",
    "tokenizer-*",
    "null-tokenizer*",
    "tiktoken-*",
    "save",
    "save-*",
    "load",
    "load-*",
    "no-load-*",
    "no-save-*",
    "ckpt-*",
    "async-save",
    "use-dist-ckpt*",
    "auto-detect-ckpt*",
    "dist-ckpt-*",
    "use-mcore-models",
    "use-legacy-models",
    "eval-*",
    "log-*",
    "tensorboard-*",
    "wandb-*",
    "timing-*",
    "exit-*",
    "distributed-backend",
    "distributed-timeout-*",
    "no-log-*",
    "norm-epsilon",
    "layernorm-epsilon",
    "apply-layernorm-1p",
    "attention-dropout",
    "attention-softmax-in-fp32",
    "apply-query-key-layer-scaling",
    "no-query-key-layer-scaling",
    "rotary-*",
    "rope-*",
    "use-rope-scaling",
    "no-rope-*",
    "mscale*",
    "original-max-position-embeddings",
    "beta-fast",
    "beta-slow",
    "mmap-*",
    "no-mmap-*",
    "dataloader-type",
    "no-create-attention-*",
    "reset-*",
    "eod-mask-loss",
    "mock-data",
    "finetune",
    "moe-router-load-balancing-type",
    "moe-aux-loss-coeff",
    "moe-z-loss-coeff",
    "moe-router-score-function",
    "moe-router-enable-expert-bias",
    "moe-router-bias-update-rate",
    "moe-router-topk-scaling-factor",
    "moe-router-dtype",
    "moe-router-pre-softmax",
    "moe-router-fusion",
    "moe-router-padding-*",
    "init-model-with-meta-device",
    "spec",
    "tp-comm-overlap-cfg",
    "moe-permute-fusion",
    "moe-per-layer-logging",
    "moe-token-drop-policy",
    "mtp-loss-scaling-factor",
    "fp8-amax-*",
    "fp8-margin",
    "fp8-interval",
    "no-fp8-wgrad",
    "loss-scale",
    "initial-loss-scale",
    "min-loss-scale",
    "loss-scale-window",
    "hysteresis",
    "no-async-*",
    "nccl-*",
    "manual-gc*",
    "empty-unused-memory-level",
    "no-check-for-nan*",
    "check-for-*",
    "calculate-per-token-loss",
    "use-cpu-initialization",
    "profile*",
    "enable-one-logger",
    "no-one-logger",
    "one-logger-*",
    "node-rank",
    "node_rank",
    "master-addr",
    "master-port",
    "rdzv-*",
    "max-restarts",
    "role",
    "tee",
    "log_dir",
    "local-rank",
    "local-addr",
    "start-method",
    "redirects",
    "monitor-interval",
    "standalone",
    "module",
    "no-python",
    "hostfile",
    "include",
    "exclude",
    "launcher*",
    "deepspeed-config",
    "no-pipeline-parallel",
    "job-name",
    "container-*",
    "no-container-*",
    "time",
    "partition",
    "account",
    "exclusive",
    "output",
    "error",
    "label",
    "kill-on-*",
    "mpi",
    "cpus-per-task",
    "cpu-bind",
    "mem",
    "gres",
    "export",
    "no-bias-*",
    "attention-backend",
    "moe-token-*",
    "moe-input-jitter*",
    "high-priority-stream-groups",
    "ddp-*",
    "fim-*",
    "sft*",
    "legacy-*",
    "swiglu",
    "squared-relu",
    "openai-gelu",
    "onnx-safe",
    "no-persist-layer-norm",
    "no-rope-fusion",
    "apply-residual-*",
    "inference-*",
    "inprocess-*",
    "disable-*",
    "te-rng-tracker",
    "reuse-*",
    "tp-comm-bootstrap-backend",
    "ntasks",
    "task-*",
    "mem-*",
    "signal",
    "dependency",
    "chdir",
    "nodelist",
    "no-requeue",
    "consumed-*",
    "params-dtype",
    "rank",
    "use-pytorch-profiler",
    "iter*",
    "enable-gloo-*",
    "disable-gloo-*",
    "bind-to",
    "map-by",
    "config-file",
    "config",
    "config-path",
    "config-name",
    "config-dir",
    "yaml-cfg",
    "yaml",
    "cfg",
    "job.config*",
    "cfg",
    "configuration-*",
    "written-file",
    "doubted-file",
    "num-processes",
    "nproc",
    "lora-*",
    "peft-*",
    "output-*",
    "overwrite-*",
    "learning-rate*",
    "num-train-epochs",
    "logging-*",
    "warmup-*",
    "dataset*",
    "report-to",
    "trust-remote-code",
    "run-name",
    "do-train",
    "do-eval",
    "evaluation-*",
    "max-grad-norm",
    "remove-unused-columns",
    "push-to-hub*",
    "dataloader-*",
    "preprocessing-*",
    "embed-layernorm",
    "sync-tp-*",
    "abort-on-*",
    "kill-switch-path",
    "train-weighted*",
    "valid-weighted*",
    "valid-num-workers",
    "jobid",
    "constraint",
    "hint",
    "per-device-eval-batch-size",
    "tf32",
    "main-process-*",
    "machine-rank",
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

static bool is_silent(const char *name)
{
    for (size_t i = 0; i < sizeof silent / sizeof silent[0]; i++) {
        size_t n = strlen(silent[i]);
        bool family = silent[i][n - 1] == '*';
        if (same_letters(name, silent[i], family ? n - 1 : SIZE_MAX))
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

static bool describes(const struct launch_word *word)
{
    int row = megatron_find(word->name, word->by_dest);
    const char *key = row >= 0 ? megatron_rows[row].key : NULL;
    return key && strncmp(key, "cluster.", 8) != 0;
}

size_t megatron_count(const struct launch_words *words)
{
    size_t n = 0;
    for (size_t i = 0; i < words->n; i++)
        n += describes(&words->items[i]);
    return n;
}

size_t megatron_count_flags(const struct launch_words *words)
{
    size_t n = 0;
    for (size_t i = 0; i < words->n; i++)
        n += !words->items[i].by_dest && !launch_word_sets(&words->items[i]) && describes(&words->items[i]);
    return n;
}

/* --- from words to values --- */

static bool is_truth(const char *text, bool *truth)
{
    static const char *const words[] = {"false", "False", "0", "no", "true", "True", "1", "yes"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strcmp(text, words[i]) == 0) {
            *truth = i >= 4;
            return true;
        }
    return false;
}

static bool is_flag(const struct argument_row *row)
{
    return row->type == ARGUMENT_TRUE || row->type == ARGUMENT_FALSE;
}

/* What a word says of a row: flags have no value in a script, a truth in a log; None is nothing. */
static const char *value_of(const struct argument_row *row, const struct launch_word *word)
{
    bool truth, flag = is_flag(row);
    if (!word->value && !word->unknown)
        return flag ? row->type == ARGUMENT_TRUE ? "true" : "false" : NULL;
    if (word->by_dest && (!word->value || strcmp(word->value, "None") == 0))
        return NULL;
    if (!flag)
        return word->value ? word->value : "";
    if (!word->by_dest)
        return row->type == ARGUMENT_TRUE ? "true" : "false";
    return is_truth(word->value, &truth) && truth ? "true" : "false";
}

/* Arguments that msim does not know, in the order in which they stand. */
struct unknown_arguments {
    char list[4096];
    size_t n;
    struct place first;
};

static void add_unknown(struct unknown_arguments *unknown, const struct launch_word *word, bool flag)
{
    const char *meant = flag ? megatron_meant(word->name) : NULL;
    text_append(unknown->list, sizeof unknown->list, " %s%.100s", flag ? "--" : "", word->name);
    if (meant)
        text_append(unknown->list, sizeof unknown->list, " (did you mean --%s?)", meant);
    if (unknown->n++ == 0)
        unknown->first = word->at;
}

static void tell_unknown(const struct unknown_arguments *unknown, bool all, struct diags *diags)
{
    enum { FEW = 6 };
    if (unknown->n && (all || unknown->n <= FEW))
        diag_note(diags, unknown->first, "unknown to msim, left out:%s", unknown->list);
    else if (unknown->n)
        diag_note(diags, unknown->first, "%zu arguments are unknown to msim and left out; -v lists them", unknown->n);
}

/* Behind a flag that has no value, or behind one's value, stands what may be any arguments. */
static bool tell_untold(const struct launch_word *word, bool flag, struct diags *diags)
{
    bool untold = word->unknown && !word->by_dest && (flag || !*word->name);
    if (untold)
        diag_warning(diags, word->at, "further arguments may stand here: %s", word->unknown);
    return untold && !*word->name;
}

/* DeepSpeed itself asks its file for the stage of ZeRO, whatever Megatron-DeepSpeed's and accelerate's commands say (from
 * memory); what --with says wins. */
static bool keeps_stage(const struct megatron_value *kept, const struct launch_word *word, const char *text, struct diags *diags)
{
    static const char file[] = "zero_optimization.stage";
    bool by_file = kept->text && kept->said && strcmp(kept->said, file) == 0;
    bool besides = word->said && strcmp(word->said, file) != 0 && !(word->at.file && strcmp(word->at.file, "--with") == 0);
    if (by_file && besides && !word->unknown && text && strcmp(text, kept->text) != 0)
        diag_warning(diags, word->at,
                     "%s %s is left out: DeepSpeed takes %s of its file's %s; --with \"--zero-stage N\" wins over it", word->said,
                     text, kept->text, file);
    return by_file && besides;
}

/* Do words of a framework's configuration stand among these? Its program has flags of its own. */
static bool is_foreign(const struct launch_words *words)
{
    for (size_t i = 0; i < words->n; i++)
        if (words->items[i].by_dest && words->items[i].said)
            return true;
    return false;
}

/* Of an argument that no row has: the script's own, or one written wrong where no other program's flags stand. */
static void read_stranger(const struct launch_word *word, bool foreign, struct unknown_arguments *unknown, struct diags *diags)
{
    bool flag = !word->said || *word->said == '-';
    if (word->by_dest || is_silent(word->name) || (flag && !foreign && megatron_refuse(word, diags)))
        return;
    add_unknown(unknown, word, flag);
}

static void read_argument(struct launch_words *words, const struct launch_word *word, int found,
                          struct megatron_arguments *arguments, struct diags *diags)
{
    const struct argument_row *row = &megatron_rows[found];
    const char *text = value_of(row, word);
    bool one = row->type == ARGUMENT_INT || row->type == ARGUMENT_REAL || row->type == ARGUMENT_TEXT;
    if (text && one && word->first) /* positional arguments stand behind */
        text = launch_text(words, text, word->first);
    const char *wrong = megatron_wrong(words, row, word, &text, diags);
    if (found == ARGUMENT_ZERO_STAGE && keeps_stage(&arguments->of[found], word, text, diags))
        return;
    arguments->of[found] = (struct megatron_value){.text = text,
                                                   .unknown = is_flag(row) ? NULL : wrong,
                                                   .said = word->said ? word->said : word->name,
                                                   .at = word->at,
                                                   .by_flag = !word->by_dest,
                                                   .commanded = word->commanded};
    arguments->foreign |= word->by_dest && word->said;
    arguments->logged |= word->by_dest && !word->said; /* a configuration says how it calls it */
}

void megatron_read(struct launch_words *words, bool all, struct megatron_arguments *arguments, struct diags *diags)
{
    struct unknown_arguments unknown = {.n = 0};
    bool foreign = is_foreign(words);
    for (size_t i = 0; i < words->n; i++) {
        const struct launch_word *word = &words->items[i];
        int found = megatron_find(word->name, word->by_dest);
        if (tell_untold(word, found >= 0 && is_flag(&megatron_rows[found]), diags))
            continue;
        if (word->strange)
            diag_warning(diags, word->at, "%.100s is unknown to msim and left out", word->name);
        else if (found < 0)
            read_stranger(word, foreign, &unknown, diags);
        else
            read_argument(words, word, found, arguments, diags);
    }
    tell_unknown(&unknown, all, diags);
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
        diag_error(diags, value->at, "%s: '%.40s' is not a %snumber", value->said, text ? text : "", whole ? "whole " : "");
        return false;
    }
    if (parsed < low || parsed > high) {
        diag_error(diags, value->at, "%s: %s is not between %.15g and %.15g", value->said, text, low, high);
        return false;
    }
    *number = parsed;
    return true;
}
