/* megatron_model.c - translates arguments that describe the model together. */
#include <stdlib.h>
#include <string.h>

#include "model/spec/catalog.h"
#include "traces/launch/megatron/megatron_translate_internal.h"

/* --- vocabulary --- */

/* Words of tokenizers that have always the same number. */
static int64_t vocabulary_of(const char *tokenizer)
{
    static const struct {
        const char *name;
        int64_t words;
    } known[] = {
        {"GPT2BPETokenizer", 50257},       {"Llama2Tokenizer", 32000},   {"Llama3Tokenizer", 128256},
        {"BertWordPieceLowerCase", 30522}, {"BertWordPieceCase", 28996},
    };
    for (size_t i = 0; tokenizer && i < sizeof known / sizeof known[0]; i++)
        if (strcmp(tokenizer, known[i].name) == 0)
            return known[i].words;
    return 0;
}

/* The tokenizer's words: as said, as everybody's tokenizer of that name has, or as the model has whose tokenizer it is. */
static int64_t unpadded_vocabulary(struct translation *m, enum argument *by)
{
    const struct megatron_value *merges = &m->arguments->of[ARGUMENT_MERGE_FILE],
                                *spelling = &m->arguments->of[ARGUMENT_TOKENIZER];
    const char *tokenizer = translate_text(m, *by = ARGUMENT_TOKENIZER);
    if (!spelling->text && !spelling->unknown && (merges->text || merges->unknown) && !translate_has(m, ARGUMENT_VOCAB)) {
        *by = ARGUMENT_MERGE_FILE; /* pretrain_gpt.py's own tokenizer, which alone has one */
        tokenizer = "GPT2BPETokenizer";
    }
    bool null = tokenizer && strcmp(tokenizer, "NullTokenizer") == 0; /* adds a word that ends a document */
    if (translate_has(m, ARGUMENT_VOCAB)) {
        *by = ARGUMENT_VOCAB;
        return translate_int(m, *by, 1, 0) + null;
    }
    int64_t words = vocabulary_of(tokenizer);
    const char *owner = translate_text(m, ARGUMENT_TOKENIZER_MODEL);
    if (words || !owner || strlen(owner) >= NAME_SIZE || owner[0] == '/' || owner[0] == '.')
        return words;
    struct transformer model;
    struct diags quiet = {0};
    *by = ARGUMENT_TOKENIZER_MODEL;
    words = catalog_model(owner, &model, &quiet) == STATUS_OK ? model.vocab : 0;
    diags_free(&quiet);
    return words;
}

static void read_vocabulary(struct translation *m)
{
    struct launch_job *job = &m->description->job;
    enum argument by = translate_has(m, ARGUMENT_PADDED_VOCAB) ? ARGUMENT_PADDED_VOCAB : ARGUMENT_PAD_VOCAB_TO;
    job->model.vocab = translate_int(m, by, 1, 0);
    if (!job->model.vocab) {
        int64_t words = unpadded_vocabulary(m, &by), divisor = translate_int(m, ARGUMENT_VOCAB_DIVISOR, 1, 1);
        int64_t unit = divisor * (job->layout.tp > 1 ? job->layout.tp : 1);
        job->model.vocab = divisor == 1 ? words : (words + unit - 1) / unit * unit;
    }
    if (job->model.vocab)
        translate_from(m, "model.vocab", by);
    else
        translate_missing(m, ARGUMENT_VOCAB, "the vocabulary (--with \"--vocab-size N\")");
}

/* --- mixture of experts --- */

static void read_pattern(struct translation *m, const char *text)
{
    struct transformer *model = &m->description->job.model;
    int *pattern = memory_new(PIECES_MAX, sizeof *pattern), n = megatron_list(text, pattern), first = 0;
    if (n == 0 || n != model->layers) {
        diag_error(m->diags, m->arguments->of[ARGUMENT_MIXTURE_FREQ].at,
                   "--moe-layer-freq: '%.40s' is neither a number nor a list of %d layers, such as ([0]*3+[1]*%d)", text,
                   model->layers, model->layers > 3 ? model->layers - 3 : 1);
        free(pattern);
        return;
    }
    while (first < n && !pattern[first])
        first++;
    int second = first + 1;
    while (second < n && !pattern[second])
        second++;
    model->moe.every = second < n ? second - first : 1;
    model->moe.first_dense_layers = first - model->moe.every + 1 > 0 ? first - model->moe.every + 1 : 0;
    for (int i = 0; i < n; i++)
        if (layer_is_mixture(model, i) != (pattern[i] != 0)) {
            translate_not_modelled(m, ARGUMENT_MIXTURE_FREQ,
                                   "layer %d: after %d dense ones one layer in %d is taken as a mixture", i,
                                   model->moe.first_dense_layers, model->moe.every);
            break;
        }
    free(pattern);
}

/* One layer in n, from the first on; here one in n from the n-th on. */
static void read_every(struct translation *m)
{
    struct transformer *model = &m->description->job.model;
    int every = (int)translate_int(m, ARGUMENT_MIXTURE_FREQ, 1, 1);
    model->moe.every = every;
    if (model->layers % every)
        translate_not_modelled(m, ARGUMENT_MIXTURE_FREQ, "%d of %d layers are mixtures; msim assumes %d",
                               model->layers / every + 1, model->layers, model->layers / every);
}

static void read_frequency(struct translation *m)
{
    struct transformer *model = &m->description->job.model;
    const char *text = translate_text(m, ARGUMENT_MIXTURE_FREQ);
    model->moe.every = 1;
    if (text && strchr(text, '['))
        read_pattern(m, text);
    else if (text)
        read_every(m);
    if (!megatron_given(m->arguments, ARGUMENT_MIXTURE_FREQ))
        return;
    translate_from(m, "model.moe.every", ARGUMENT_MIXTURE_FREQ);
    translate_from(m, "model.moe.first_dense_layers", ARGUMENT_MIXTURE_FREQ);
}

/* The width of all shared experts, as a number of routed ones' widths if it is a multiple. */
static void divide_shared(struct mixture *moe)
{
    if (!moe->shared_ffn || !moe->expert_ffn)
        return;
    bool whole = moe->shared_ffn % moe->expert_ffn == 0;
    moe->shared_experts = whole ? (int)(moe->shared_ffn / moe->expert_ffn) : 1;
    moe->shared_ffn = whole ? 0 : moe->shared_ffn;
}

/* Other frameworks count shared experts, which are as wide as the others, and the dense layers in front. */
static void read_counted(struct translation *m)
{
    struct transformer *model = &m->description->job.model;
    if (translate_has(m, ARGUMENT_SHARED_EXPERTS)) {
        model->moe.shared_experts = (int)translate_int(m, ARGUMENT_SHARED_EXPERTS, 0, 0);
        model->moe.shared_ffn = 0;
        translate_from(m, "model.moe.shared_experts", ARGUMENT_SHARED_EXPERTS);
    }
    if (!translate_has(m, ARGUMENT_DENSE_FIRST))
        return;
    int64_t dense = translate_int(m, ARGUMENT_DENSE_FIRST, 0, 0);
    if (dense >= model->layers && model->layers > 0)
        diag_error(m->diags, m->arguments->of[ARGUMENT_DENSE_FIRST].at, "%s: %lld dense layers leave none of %d for experts",
                   m->arguments->of[ARGUMENT_DENSE_FIRST].spelling, (long long)dense, model->layers);
    else
        model->moe.first_dense_layers = (int)dense;
    translate_from(m, "model.moe.first_dense_layers", ARGUMENT_DENSE_FIRST);
}

/* A capacity that is not above 0 is none. Routers forced to balance draw experts by chance: nearly even. Which of the copies
 * beyond a capacity are dropped (--moe-token-drop-policy) changes no time. */
static void read_load(struct translation *m)
{
    struct expert_load *load = &m->description->job.job.load;
    const struct megatron_value *value = &m->arguments->of[ARGUMENT_CAPACITY];
    double capacity;
    if (megatron_given(m->arguments, ARGUMENT_CAPACITY) && !value->unknown && strcmp(value->text, "None") != 0 &&
        megatron_number(value, &megatron_rows[ARGUMENT_CAPACITY], -1e5, 1e5, &capacity, m->diags) && capacity > 0) {
        load->capacity = capacity;
        translate_from(m, "job.capacity_factor", ARGUMENT_CAPACITY);
        load->padded = translate_true(m, ARGUMENT_PAD_TO_CAPACITY);
        if (load->padded)
            translate_from(m, "job.pad_to_capacity", ARGUMENT_PAD_TO_CAPACITY);
    }
    if (translate_true(m, ARGUMENT_FORCE_BALANCE)) {
        load->busiest = 1;
        translate_from(m, "job.expert_load", ARGUMENT_FORCE_BALANCE);
    }
}

static void read_mixture(struct translation *m)
{
    struct transformer *model = &m->description->job.model;
    model->moe.experts = (int)translate_int(m, ARGUMENT_EXPERTS, 0, 0);
    if (!model->moe.experts) {
        model->moe.every = 1;
        return;
    }
    translate_from(m, "model.moe.experts", ARGUMENT_EXPERTS);
    if (!model->moe.expert_ffn) {
        model->moe.expert_ffn = model->ffn_hidden;
        launch_originate(m->description, "model.moe.expert_ffn",
                         "as wide as a dense layer, --moe-ffn-hidden-size being left out");
    }
    divide_shared(&model->moe);
    if (megatron_given(m->arguments, ARGUMENT_SHARED_FFN))
        translate_from(m, "model.moe.shared_experts", ARGUMENT_SHARED_FFN);
    read_frequency(m);
    read_counted(m);
    if (!translate_true(m, ARGUMENT_GROUPED_GEMM))
        translate_not_modelled(m, ARGUMENT_GROUPED_GEMM, "switched off: experts one after the other; msim assumes grouped ones");
    if (translate_is(m, ARGUMENT_DISPATCHER, "allgather") && m->description->job.layout.ep > 1)
        translate_not_modelled(m, ARGUMENT_DISPATCHER, "all-gather; msim assumes all-to-all");
}

/* --- attention --- */

static void read_heads(struct translation *m)
{
    struct transformer *model = &m->description->job.model;
    model->kv_heads = model->heads;
    if (translate_true(m, ARGUMENT_LATENT)) {
        model->attention = ATTENTION_LATENT;
        model->head_dim = model->latent.v_dim;
        model->qk_norm = false; /* latent attention's norms are of what it compresses: it has them anyhow */
        translate_from(m, "model.attention", ARGUMENT_LATENT);
        return;
    }
    if (translate_true(m, ARGUMENT_GROUPED_QUERIES)) {
        model->kv_heads = (int)translate_int(m, ARGUMENT_QUERY_GROUPS, 1, 1);
        translate_from(m, "model.kv_heads", ARGUMENT_QUERY_GROUPS);
    }
    if (!model->head_dim && model->heads && model->hidden % model->heads == 0)
        model->head_dim = (int)(model->hidden / model->heads);
}

/* "1024,0" or "(1024, 0)": tokens before the own one. */
static void read_window(struct translation *m)
{
    struct transformer *model = &m->description->job.model;
    const char *text = translate_text(m, ARGUMENT_WINDOW);
    if (!text)
        return;
    model->window = strtol(text + strspn(text, "( "), NULL, 10);
    if (model->window < 0 || model->window > model->max_seq_len)
        model->window = 0;
    model->window_every = (int)translate_int(m, ARGUMENT_WINDOW_EVERY, 1, 0);
    translate_from(m, "model.window", ARGUMENT_WINDOW);
}

static void read_positions(struct translation *m)
{
    struct transformer *model = &m->description->job.model;
    struct job *job = &m->description->job.job;
    if (translate_true(m, ARGUMENT_ROTARY)) {
        model->position = POSITION_ROTARY;
        translate_from(m, "model.position", ARGUMENT_ROTARY);
    } else if (model->position == POSITION_LEARNED && !translate_usual(m, ARGUMENT_NO_POSITION)) {
        model->position = POSITION_NONE;
        translate_from(m, "model.position", ARGUMENT_NO_POSITION);
    }
    if (!job->seq_len && (job->seq_len = translate_int(m, ARGUMENT_ENCODER_SEQ_LEN, 1, 0)) > 0)
        translate_from(m, "job.seq_len", ARGUMENT_ENCODER_SEQ_LEN);
    if (!job->seq_len)
        translate_missing(m, ARGUMENT_SEQ_LEN, "the sequence length (--seq-length)");
    if (!model->max_seq_len)
        model->max_seq_len = job->seq_len;
}

/* --- hybrids --- */

/* A letter a layer; what newer versions write between them (where stages end, prediction layers) is not read. */
static bool read_letters(struct translation *m, const char *text)
{
    struct transformer *model = &m->description->job.model;
    size_t n = strlen(text), known = strspn(text, "M*-E");
    if (n == known && (int)n == model->layers && n < PATTERN_SIZE) {
        memcpy(model->layer_pattern, text, n + 1);
        layer_pattern_shorten(model->layer_pattern);
        return true;
    }
    const struct place at = m->arguments->of[ARGUMENT_PATTERN].at;
    if (n != known)
        diag_error(m->diags, at, "--hybrid-override-pattern: letter %zu is '%c'; known are M, *, - and E", known + 1,
                   text[known]);
    else
        diag_error(m->diags, at, "--hybrid-override-pattern: %zu letters for %d layers; it needs one for each, %d at most", n,
                   model->layers, PATTERN_SIZE - 1);
    return false;
}

/* What its mixer has without an argument: taps and chunk, and twice as many channels as the layer is wide. */
static void read_hybrid(struct translation *m)
{
    struct transformer *model = &m->description->job.model;
    struct state_mixer *mixer = &model->mixer;
    const char *text = translate_text(m, ARGUMENT_PATTERN);
    if (!text || !read_letters(m, text))
        return;
    translate_from(m, "model.layer_pattern", ARGUMENT_PATTERN);
    if (!strchr(model->layer_pattern, 'M')) {
        *mixer = (struct state_mixer){0};
        return;
    }
    mixer->kind = MIXER_MAMBA2;
    mixer->conv = 4;
    mixer->chunk = 128;
    mixer->norm = true;
    if (!mixer->heads && mixer->head_dim) {
        mixer->heads = (int)(2 * model->hidden / mixer->head_dim);
        launch_originate(m->description, "model.mixer.heads", "twice the width, --mamba-num-heads being left out");
    }
    if (mixer->groups && mixer->heads % mixer->groups)
        diag_error(m->diags, m->arguments->of[ARGUMENT_MIXER_GROUPS].at, "--mamba-num-groups: %d heads are not %d equal groups",
                   mixer->heads, mixer->groups);
}

/* 4 h; with SwiGLU two thirds of it, down to a multiple of 64. */
static void read_ffn(struct translation *m)
{
    struct transformer *model = &m->description->job.model;
    if (model->ffn_hidden || !model->hidden)
        return;
    model->ffn_hidden = model->gated_mlp ? model->hidden * 8 / 3 / 64 * 64 : 4 * model->hidden;
    launch_originate(m->description, "model.ffn_hidden", "default of --ffn-hidden-size");
}

/* A job that names its model still specifies the length of sequences, and perhaps how the vocabulary is padded. */
static void read_named(struct translation *m)
{
    struct transformer *model = &m->description->job.model;
    static const enum argument vocabularies[] = {ARGUMENT_PADDED_VOCAB, ARGUMENT_PAD_VOCAB_TO, ARGUMENT_VOCAB};
    int64_t seq_len = m->description->job.job.seq_len;
    if (translate_has(m, ARGUMENT_QUERY_GROUPS)) {
        model->kv_heads = (int)translate_int(m, ARGUMENT_QUERY_GROUPS, 1, 1);
        translate_from(m, "model.kv_heads", ARGUMENT_QUERY_GROUPS);
    }
    if (translate_has(m, ARGUMENT_EXPERTS)) {
        model->moe.experts = (int)translate_int(m, ARGUMENT_EXPERTS, 0, 0);
        translate_from(m, "model.moe.experts", ARGUMENT_EXPERTS);
    }
    if (model->moe.experts)
        read_counted(m);
    for (size_t i = 0; i < sizeof vocabularies / sizeof vocabularies[0]; i++)
        if (translate_has(m, vocabularies[i])) {
            read_vocabulary(m);
            break;
        }
    if (!seq_len)
        translate_missing(m, ARGUMENT_SEQ_LEN, "the sequence length (--seq-length)");
    model->max_seq_len = seq_len > model->max_seq_len ? seq_len : model->max_seq_len;
}

static void read_described(struct translation *m)
{
    static const struct {
        enum argument argument;
        const char *what;
    } needed[] = {{ARGUMENT_LAYERS, "the number of layers (--num-layers)"},
                  {ARGUMENT_HIDDEN, "the hidden width (--hidden-size)"},
                  {ARGUMENT_HEADS, "the attention heads (--num-attention-heads)"}};
    for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++)
        translate_missing(m, needed[i].argument, needed[i].what);
    read_ffn(m);
    read_mixture(m);
    read_heads(m);
    read_positions(m);
    read_window(m);
    read_vocabulary(m);
    read_hybrid(m);
}

void translate_model(struct translation *m)
{
    if (translate_names_model(m))
        read_named(m);
    else
        read_described(m);
    if (m->description->job.model.moe.experts)
        read_load(m);
}
