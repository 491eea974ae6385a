#include "model/spec/transformer.h"

#include <string.h>

const char layer_letters[] = "am*M-Ep";

const struct transformer *transformer_view(const struct transformer *model, bool windowed, struct transformer *view)
{
    const struct windowed_heads *own = &model->windowed;
    if (!windowed || !(own->heads || own->kv_heads || own->head_dim || own->value_dim))
        return model;
    *view = *model;
    view->windowed = (struct windowed_heads){0};
    view->values_are_keys = false;
    view->heads = own->heads ? own->heads : model->heads;
    view->kv_heads = own->kv_heads ? own->kv_heads : model->kv_heads;
    view->head_dim = own->head_dim ? own->head_dim : model->head_dim;
    view->value_dim = own->value_dim ? own->value_dim : own->head_dim ? 0 : model->value_dim;
    return view;
}

/* --- mixers with a state */

struct mixer_width mixer_width_of(const struct state_mixer *mixer)
{
    double values = (double)mixer->heads * mixer->head_dim, keys = (double)mixer->groups * mixer->state;
    return (struct mixer_width){.values = values, .keys = keys, .convolved = values + 2 * keys};
}

struct mixer_columns mixer_columns_of(const struct state_mixer *mixer)
{
    struct mixer_width width = mixer_width_of(mixer);
    struct mixer_columns columns = {.mixed = width.convolved, .gate = width.values};
    switch (mixer->kind) {
    case MIXER_MAMBA2: columns.scalars = mixer->heads; break;            /* the step, dt */
    case MIXER_GATED_DELTA: columns.scalars = 2.0 * mixer->heads; break; /* decay and strength */
    case MIXER_KIMI_DELTA:                                               /* strength; decays and gate by rank */
        columns.scalars = mixer->heads;
        columns.gate = 0;
        columns.ranks = 2;
        break;
    case MIXER_LIGHTNING: break;
    }
    return columns;
}

/* --- layers */

static int like_layer(const struct transformer *model, int layer)
{
    return layer < model->layers || !model->mtp_layers ? layer : model->layers - 1;
}

void layer_pattern_shorten(char *pattern)
{
    size_t n = strlen(pattern);
    for (size_t period = 1; period < n; period++) {
        size_t same = period;
        while (n % period == 0 && same < n && pattern[same] == pattern[same - period])
            same++;
        if (same == n) {
            pattern[period] = '\0';
            return;
        }
    }
}

/* 'a' where there is no pattern. */
static char letter_of(const struct transformer *model, int layer)
{
    size_t period = strlen(model->layer_pattern);
    return period > 0 ? model->layer_pattern[(size_t)layer % period] : 'a';
}

/* Of the layers with a feed-forward part by `moe`. */
static bool feeds_experts(const struct transformer *model, int layer)
{
    int after = layer - model->moe.first_dense_layers;
    int every = model->moe.every > 1 ? model->moe.every : 1;
    return model->moe.experts > 0 && after >= 0 && (after + 1) % every == 0 &&
           layer < model->layers - model->moe.last_dense_layers;
}

bool layer_is_mixture(const struct transformer *model, int layer)
{
    return layer_kind_of(model, layer).feed == FEEDS_EXPERTS;
}

struct layer_kind layer_kind_of(const struct transformer *model, int layer)
{
    int like = like_layer(model, layer);
    struct layer_kind kind = {.windowed = layer_is_windowed(model, layer)};
    switch (letter_of(model, like)) {
    case '-': return (struct layer_kind){.feed = FEEDS_DENSE};
    case 'E': return (struct layer_kind){.feed = FEEDS_EXPERTS};
    case 'M': return (struct layer_kind){.mixers = MIXES_BY_STATE};
    case '*': kind.mixers = MIXES_BY_ATTENTION; return kind;
    case 'm': kind.mixers = MIXES_BY_STATE, kind.windowed = false; break;
    case 'p': kind.mixers = MIXES_BY_BOTH; break;
    default: kind.mixers = MIXES_BY_ATTENTION; break;
    }
    kind.feed = feeds_experts(model, like) ? FEEDS_EXPERTS : FEEDS_DENSE;
    return kind;
}

int layer_kind_index(struct layer_kind kind)
{
    return ((int)kind.mixers * 3 + (int)kind.feed) * 2 + kind.windowed;
}

bool layer_is_windowed(const struct transformer *model, int layer)
{
    if (model->window <= 0)
        return false;
    return model->window_every <= 0 || (like_layer(model, layer) + 1) % model->window_every != 0;
}

struct layer_kind layer_kind_at(int index)
{
    return (struct layer_kind){
        .mixers = (enum layer_mixers)(index / 6), .feed = (enum layer_feed)(index / 2 % 3), .windowed = index % 2};
}

struct layer_kinds layer_kinds_of(const struct transformer *model, int first, int count)
{
    struct layer_kinds kinds = {0};
    for (int layer = first; layer < first + count; layer++) {
        int kind = layer_kind_index(layer_kind_of(model, layer));
        kinds.count[kind]++;
        kinds.one[kind] = layer;
    }
    return kinds;
}

size_t model_name_length(const char *name)
{
    size_t n = strlen(name), end = sizeof MODEL_CHANGED - 1;
    return n > end && strcmp(name + n - end, MODEL_CHANGED) == 0 ? n - end : n;
}
