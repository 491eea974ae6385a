/* Heads, widths and windows that single values decide. */
#include <math.h>
#include <string.h>

#include "model/spec/families/hf_internal.h"

static bool is_true(const struct yaml_node *value)
{
    return value && value->kind == YAML_SCALAR && strcmp(value->text, "true") == 0;
}

static bool is_false(const struct yaml_node *value)
{
    return value && value->kind == YAML_SCALAR && strcmp(value->text, "false") == 0;
}

static void widths(struct hf_reading *r)
{
    const struct yaml_node *expansion = hf_take_single(r, "@expansion"), *twice = hf_take(r, "@double_wide"),
                           *beside = hf_take(r, "@dense_beside"), *hidden = hf_find(r->entry, "hidden"),
                           *halved = hf_take_single(r, "@halved");
    int64_t layers = hf_integer(r->entry, "layers"), shared = hf_integer(r->entry, "shared_kv_layers");
    bool sane = layers < PATTERN_SIZE && shared < PATTERN_SIZE && hf_integer(r->entry, "hidden") < 1 << 20;
    if (!sane) /* the schema reports it */
        return;
    if (halved)
        hf_set_integer(r, "ffn_hidden", (int64_t)hf_number(halved) / 2, halved);
    if (expansion && hidden)
        hf_set_integer(r, "ffn_hidden", (int64_t)(hf_number(expansion) * (double)hf_integer(r->entry, "hidden")), expansion);
    if (is_true(twice) && layers > 0 &&
        shared > 0) /* of the layers that share keys; the average is as many weights and products */
        hf_set_integer(r, "ffn_hidden", hf_integer(r->entry, "ffn_hidden") * (layers + shared) / layers, twice);
    if (is_true(beside) && hidden)
        hf_set(r, "moe.shared_ffn", hidden, hf_name(beside));
}

static void attention_heads(struct hf_reading *r)
{
    const struct yaml_node *one = hf_take(r, "@multi_query"), *grouped = hf_take(r, "@grouped_heads"),
                           *alibi = hf_take(r, "@alibi");
    if (is_true(one) && !is_true(grouped) &&
        !(hf_find(r->entry, "kv_heads") && !grouped && hf_find(r->config, "multi_query_group_num")))
        hf_set_integer(r, "kv_heads", 1, one);
    if (is_false(one) && !is_true(grouped))
        hf_remove(r, "kv_heads");
    if (is_true(grouped) && !hf_find(r->config, "num_ln_in_parallel_attn"))
        hf_set_integer(r, "layer_norms", 2, grouped);
    if (alibi)
        hf_set_text(r, "position", is_true(alibi) ? "alibi" : strcmp(r->family, "mpt") == 0 ? "learned" : "rotary", alibi);
}

/* Tables narrower than the model, with a projection behind them (OPT-350M). */
static void embedding_width(struct hf_reading *r)
{
    const struct yaml_node *width = hf_take_single(r, "@embedding_width");
    if (width && (int64_t)hf_number(width) != hf_integer(r->entry, "hidden"))
        diag_warning(r->diags, width->at, "%s: not modelled; the embedding is as wide as the model", hf_name(width));
}

/* Windows that are switched off, or begin behind the last layer. */
static void windows(struct hf_reading *r)
{
    const struct yaml_node *used = hf_take(r, "@use_window"), *from = hf_take_single(r, "@window_from");
    int64_t layers = hf_integer(r->entry, "layers");
    if (!hf_find(r->entry, "window"))
        return;
    if (is_false(used) || (from && (int64_t)hf_number(from) >= layers))
        hf_remove(r, "window");
    else if (from && !hf_find(r->entry, "@layers") && (int64_t)hf_number(from) > 0)
        diag_warning(r->diags, from->at, "%s: not modelled; all layers have the window, not those from %s", hf_name(from),
                     from->text);
}

static void mixers(struct hf_reading *r)
{
    const struct yaml_node *expansion = hf_take_single(r, "@mixer_expansion"), *width = hf_take_single(r, "@mixer_width"),
                           *given = hf_find(r->entry, "mixer.head_dim");
    int64_t heads = hf_integer(r->entry, "mixer.heads");
    if (given && given->kind == YAML_SCALAR && strcmp(given->text, "auto") == 0) {
        hf_remove(r, "mixer.head_dim");
        given = NULL;
    }
    if (given || heads < 1)
        return;
    if (width)
        hf_set_integer(r, "mixer.head_dim", (int64_t)hf_number(width) / heads, width);
    else if (expansion)
        hf_set_integer(r, "mixer.head_dim",
                       (int64_t)fmin(hf_number(expansion) * (double)hf_integer(r->entry, "hidden") / (double)heads, 1e12),
                       expansion);
}

static void prediction(struct hf_reading *r)
{
    if (is_false(hf_take(r, "@use_mtp")))
        hf_remove(r, "mtp_layers");
}

/* Layers that take the keys which the layer before picked. */
static void indexers(struct hf_reading *r)
{
    const struct yaml_node *kinds = hf_take(r, "@indexers"), *every = hf_take_single(r, "@indexer_freq");
    bool shares = kinds && kinds->kind == YAML_SCALAR && strchr(kinds->text, 'S');
    for (const struct yaml_node *kind = kinds ? kinds->first : NULL; kind; kind = kind->next)
        shares = shares || (kind->kind == YAML_SCALAR && strcmp(kind->text, "shared") == 0);
    shares = shares || (!kinds && every && (int64_t)hf_number(every) > 1);
    const struct yaml_node *said = kinds ? kinds : every;
    if (shares)
        diag_note(r->diags, said->at, "%s: layers that share an indexer are not modelled; each has its own", hf_name(said));
}

/* A layer of LongCat is five parts: two times attention and a dense part, and experts. */
static void fives(struct hf_reading *r)
{
    const struct yaml_node *layers = hf_take_single(r, "@fives");
    if (layers)
        hf_set_integer(r, "layers", 5 * (int64_t)hf_number(layers), layers);
}

void hf_shape(struct hf_reading *r)
{
    fives(r);
    widths(r);
    embedding_width(r);
    attention_heads(r);
    windows(r);
    mixers(r);
    prediction(r);
    indexers(r);
}
