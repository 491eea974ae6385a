/* The model of a row: what the catalog knows of its name, and what the shape columns say. */
#include <limits.h>
#include <string.h>

#include "model/base/memory.h"
#include "model/spec/catalog.h"
#include "traces/table/measurement_reading.h"

/* The catalog's model of the row's name, NULL when it has no name or one nobody knows. */
static const struct transformer *catalog_model_of_row(struct measurement_reading *reading)
{
    const char *name = reading_text(reading, COLUMN_MODEL);
    if (*name == '\0')
        return NULL;
    for (size_t i = 0; i < reading->n_models; i++)
        if (strcmp(reading->models[i].name, name) == 0)
            return reading->models[i].found ? &reading->models[i].model : NULL;
    struct known_model known = {.name = name};
    struct diags why = {0};
    known.found = catalog_model(name, &known.model, &why) == STATUS_OK;
    reading_tell_notes(reading, COLUMN_MODEL, &why);
    diags_free(&why);
    reading->models = memory_grow(reading->models, &reading->models_capacity, reading->n_models + 1, sizeof *reading->models);
    reading->models[reading->n_models++] = known;
    return known.found ? &reading->models[reading->n_models - 1].model : NULL;
}

struct measurement_shape reading_shape(struct measurement_reading *reading)
{
    return (struct measurement_shape){
        .layers = (int)reading_whole(reading, COLUMN_LAYERS, 1, 100000, 0),
        .heads = (int)reading_whole(reading, COLUMN_HEADS, 1, MAX_WIDTH, 0),
        .kv_heads = (int)reading_whole(reading, COLUMN_KV_HEADS, 1, MAX_WIDTH, 0),
        .gated = (int)reading_whole(reading, COLUMN_GATED_MLP, 0, 1, -1),
        .hidden = reading_whole(reading, COLUMN_HIDDEN, 1, MAX_WIDTH, 0),
        .ffn_hidden = reading_whole(reading, COLUMN_FFN_HIDDEN, 1, MAX_WIDTH, 0),
        .seq_len = reading_whole(reading, COLUMN_SEQ_LEN, 1, INT_MAX, 0),
        .vocab = reading_whole(reading, COLUMN_VOCAB, 1, INT_MAX, 0),
    };
}

/* What the columns say wins over the catalog. The widths of a mixture of experts are more than one number: they stay. */
static void model_override(struct transformer *model, const struct measurement_shape *shape)
{
    if (shape->layers)
        model->layers = shape->layers;
    if (shape->vocab)
        model->vocab = shape->vocab;
    if (model->moe.experts)
        return;
    bool same_heads = (!shape->hidden || shape->hidden == model->hidden) && (!shape->heads || shape->heads == model->heads);
    if (shape->hidden)
        model->hidden = shape->hidden;
    if (shape->ffn_hidden)
        model->ffn_hidden = shape->ffn_hidden;
    if (shape->gated >= 0)
        model->gated_mlp = shape->gated;
    if (shape->heads)
        model->heads = shape->heads;
    if (shape->kv_heads)
        model->kv_heads = shape->kv_heads;
    if (!same_heads)
        model->head_dim = (int)(model->hidden / model->heads);
}

static int64_t default_ffn(int64_t hidden, bool gated)
{
    enum { STEP = 256 };
    return gated ? (8 * hidden / 3 + STEP - 1) / STEP * STEP : 4 * hidden;
}

/* A dense model from its shape alone. */
static struct transformer model_of_shape(const struct measurement_shape *shape)
{
    enum { LEARNED_POSITIONS = 4096, VOCAB_LLAMA = 32000, VOCAB_GPT = 51200 };
    bool llama = shape->gated == 1 || (shape->kv_heads && shape->kv_heads < shape->heads);
    return (struct transformer){
        .layers = shape->layers,
        .hidden = shape->hidden,
        .ffn_hidden = shape->ffn_hidden ? shape->ffn_hidden : default_ffn(shape->hidden, shape->gated == 1),
        .gated_mlp = shape->gated == 1,
        .heads = shape->heads,
        .kv_heads = shape->kv_heads ? shape->kv_heads : shape->heads,
        .head_dim = (int)(shape->hidden / shape->heads),
        .vocab = shape->vocab ? shape->vocab
                 : llama      ? VOCAB_LLAMA
                              : VOCAB_GPT,
        .max_seq_len = shape->seq_len,
        .tied_embeddings = !llama,
        .linear_bias = !llama,
        .qkv_bias = !llama,
        .norm = llama ? NORM_RMS : NORM_LAYER,
        .position = llama                                ? POSITION_ROTARY
                    : shape->seq_len > LEARNED_POSITIONS ? POSITION_ALIBI
                                                         : POSITION_LEARNED,
        .attention = ATTENTION_GROUPED,
        .moe = {.every = 1},
    };
}

void reading_model(struct measurement_reading *reading, const struct measurement_shape *shape, struct transformer *model)
{
    const struct transformer *known = catalog_model_of_row(reading);
    const char *name = reading_text(reading, COLUMN_MODEL);
    if (known) {
        *model = *known;
        model_override(model, shape);
    } else if (shape->layers && shape->hidden && shape->heads) {
        *model = model_of_shape(shape);
        if (*name && (strcasestr(name, "moe") || reading_whole(reading, COLUMN_EP, 1, MAX_GPUS, 1) > 1))
            reading_tell_once(reading, COLUMN_MODEL, name,
                              "the catalog has no model '%.40s', and columns cannot say experts: without them it is a dense one",
                              name);
        snprintf(model->name, sizeof model->name, "%s", *name ? name : reading_text(reading, COLUMN_CASE));
        snprintf(model->source, sizeof model->source, "%s", reading_text(reading, COLUMN_SOURCE));
    } else if (*name) {
        reading_skip(reading, COLUMN_MODEL, "the catalog has no model '%.40s', and layers, hidden and heads do not say its shape",
                     name);
        return;
    } else {
        reading_skip(reading, COLUMN_LAYERS, "neither a model nor layers, hidden and heads");
        return;
    }
    if (model->heads <= 0 || (shape->hidden && shape->heads && !model->moe.experts && model->hidden % model->heads != 0))
        reading_skip(reading, COLUMN_HEADS, "hidden %lld is not divisible by %d heads", (long long)model->hidden, model->heads);
    else if (model->kv_heads <= 0 || model->heads % model->kv_heads != 0)
        reading_skip(reading, COLUMN_KV_HEADS, "%d heads are not divisible by %d key/value heads", model->heads, model->kv_heads);
}
