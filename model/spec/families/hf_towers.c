/* Configurations of several models: the part that is the language model, and how large the others are. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/spec/families/hf_internal.h"

static const char *const text_keys[] = {"text_config", "llm_config", "language_config", "thinker_config.text_config",
                                        "llm",         "text_model"};

static bool is_part_name(const char *key)
{
    size_t n = strlen(key);
    return n > 7 && strcmp(key + n - 7, "_config") == 0 && strcmp(key, "quantization_config") != 0 &&
           strcmp(key, "generation_config") != 0 && strcmp(key, "compression_config") != 0;
}

/* A part with sizes, whatever they are called. */
static bool has_size(const struct yaml_node *part)
{
    static const char *const keys[] = {"hidden_size", "num_hidden_layers", "n_embd", "d_model", "model_type", "vocab_size"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (hf_find(part, keys[i]))
            return true;
    return false;
}

const struct yaml_node *hf_text_part(const struct yaml_node *rows, const struct yaml_node *file, const char **family,
                                     struct arena *arena)
{
    const struct yaml_node *type = hf_find(file, "model_type"), *wrapper = NULL, *part = NULL;
    *family = NULL;
    if (type && type->kind == YAML_SCALAR)
        wrapper = yaml_find(yaml_find(rows, "_wrappers"), type->text);
    for (const struct yaml_node *w = yaml_find(rows, "_wrappers") ? yaml_find(rows, "_wrappers")->first : NULL;
         w && type && !wrapper; w = w->next)
        for (const struct yaml_node *name = yaml_find(w, "names") ? yaml_find(w, "names")->first : NULL; name; name = name->next)
            if (type->kind == YAML_SCALAR && strcmp(name->text, type->text) == 0)
                wrapper = w;
    for (size_t i = 0; i < sizeof text_keys / sizeof *text_keys && !part; i++) {
        part = hf_find(file, text_keys[i]);
        if (part && (part->kind != YAML_MAPPING || !(wrapper || has_size(part))))
            part = NULL;
    }
    if (!part)
        return file;
    const struct yaml_node *own = hf_find(part, "model_type"), *default_family = yaml_find(wrapper, "text_family");
    bool known = own && own->kind == YAML_SCALAR && hf_family(rows, own->text, arena);
    *family = !known && default_family ? default_family->text : NULL;
    return part;
}

/* The first of several names that a part has. */
static double size_of(const struct yaml_node *part, const struct yaml_node *defaults, const char *const *names)
{
    for (int pass = 0; pass < 2; pass++)
        for (const char *const *name = names; *name; name++) {
            const struct yaml_node *value = hf_find(pass ? defaults : part, *name);
            if (value && value->kind == YAML_SCALAR && strtod(value->text, NULL) > 0)
                return strtod(value->text, NULL);
        }
    return 0;
}

static double largest(double a, double b)
{
    return a > b ? a : b;
}

/* Parameters of a tower by its sizes: attention, feed-forward part, patches, and what leads to the language model's width; parts
 * inside it likewise. 0: it does not say its sizes. */
static double tower_parameters(const struct yaml_node *rows, const struct yaml_node *part, double width, int depth)
{
    static const char *const layers[] = {"num_hidden_layers", "depth",  "encoder_layers",       "num_layers",
                                         "n_layers",          "layers", "vt_num_hidden_layers", NULL};
    static const char *const hidden[] = {"embed_dim", "hidden_size", "d_model", "width", "n_embd", "vt_hidden_size", NULL};
    static const char *const ffn[] = {"intermediate_size", "encoder_ffn_dim", "ffn_dim", "mlp_dim", "vt_intermediate_size", NULL};
    static const char *const vocab[] = {"vocab_size", NULL}, *const patch[] = {"patch_size", NULL},
                             *const ratio[] = {"mlp_ratio", NULL};
    static const char *const experts[] = {"num_experts", "num_local_experts", NULL}, *const expert[] = {"moe_intermediate_size",
                                                                                                        NULL};
    const struct yaml_node *type = hf_find(part, "model_type"), *towers = yaml_find(rows, "_towers");
    const struct yaml_node *known = type && type->kind == YAML_SCALAR ? yaml_find(towers, type->text) : NULL;
    double l = size_of(part, known, layers), h = size_of(part, known, hidden), f = size_of(part, known, ffn), inside = 0;
    for (const struct yaml_node *child = part->first; child && depth < 4; child = child->next)
        if (child->kind == YAML_MAPPING && is_part_name(child->key))
            inside += tower_parameters(rows, child, h, depth + 1);
    if (l <= 0 || h <= 0)
        return inside;
    f = f > 0 ? f : h * largest(size_of(part, NULL, ratio), 4 * (size_of(part, NULL, ratio) <= 0));
    bool reads_text = hf_find(part, "num_key_value_heads") && size_of(part, NULL, vocab) > 0;
    bool gated = reads_text || hf_true(known, "gated");
    double mixture = size_of(part, NULL, experts) * 3 * h * size_of(part, NULL, expert), p = size_of(part, NULL, patch);
    double layer = 4 * h * h + (mixture > 0 ? mixture : (gated ? 3 : 2) * h * f);
    return inside + l * layer + 3 * p * p * h + (reads_text ? 2 * h * size_of(part, NULL, vocab) : 0) +
           (width > 0 ? width * (h + width) : 0);
}

static void report_tower(const struct hf_reading *r, const struct yaml_node *part, double size, double all)
{
    const char *name = part->key;
    if (size > 0)
        diag_warning(r->diags, part->key_at, "%s: not modelled; about %.3gB parameters, %.2g %% of the whole model, are left out",
                     name, size / 1e9, 100 * size / all);
    else
        diag_warning(r->diags, part->key_at, "%s: not modelled; its parameters, whose number it does not say, are left out",
                     name);
}

/* A part of the file other than the language model, with sizes; the family may read some of its own keys in a part. */
static bool is_tower(const struct hf_reading *r, const struct yaml_node *value)
{
    return value != r->config && value->kind == YAML_MAPPING && is_part_name(value->key) && value->first &&
           !(r->file == r->config && hf_understands(r->rows, r->row, value->key));
}

/* The towers of a mapping, and those beside the language model in a part of it; reports them, or adds them up. */
static double each_tower(const struct hf_reading *r, const struct yaml_node *in, double width, double all)
{
    double sum = 0;
    for (const struct yaml_node *value = in->first; value; value = value->next) {
        if (!is_tower(r, value))
            continue;
        const struct yaml_node *text = yaml_find(value, "text_config");
        if (text && text == r->config) {
            sum += each_tower(r, value, width, all);
            continue;
        }
        double size = tower_parameters(r->rows, value, width, 0);
        sum += size;
        if (all > 0)
            report_tower(r, value, size, all);
    }
    return sum;
}

void hf_towers(const struct hf_reading *r, double text)
{
    double width = (double)hf_integer(r->entry, "hidden");
    double others = each_tower(r, r->file, width, 0);
    each_tower(r, r->file, width, text + others);
}
