/* measurement_features.c - the features of a row: those of its cell, and the usual ones of its stack. */
#include <stdio.h>
#include <string.h>

#include "traces/table/measurement_internal.h"

/* A cell of which nobody knows what the run had. */
static void skip_features(struct measurement_parser *parser, const char *why)
{
    parser_skip(parser, COLUMN_FEATURES, "features '%.40s': %s", parser_text(parser, COLUMN_FEATURES), why);
    parser->bad_cell = true;
}

/* A feature by a name of its cell, or one to take away; behind a sign ('\0': there is none) it must be one. False where nobody
 * knows it. */
static bool read_feature(struct measurement_parser *parser, char sign, const char *name, feature_set *set)
{
    bool takes = sign == '-';
    const char *ours = words_ours(COLUMN_FEATURES, name);
    int feature = feature_parse(ours ? ours : name);
    bool none = strcmp(ours ? ours : name, "none") == 0, plain = !takes && strcmp(name, PLAIN_LOSS) == 0;
    if (sign && (none || !*name)) {
        skip_features(parser, "a name belongs behind a sign; write none alone where there is no feature");
        return true;
    }
    if (feature < 0) {
        parser->plain_loss |= plain;
        return plain || none;
    }
    feature_set bit = (feature_set)1 << feature;
    if (takes) {
        parser->absent |= bit & ~*set;
        parser->plain_loss |= bit == FEATURE_BIT(FUSED_LOSS);
        *set &= ~bit;
    } else {
        *set = parser->changes_usual ? features_with(*set, (enum feature)feature) : *set | bit;
    }
    return true;
}

static void warn_unknown_feature(struct measurement_parser *parser, char sign, const char *name)
{
    char hint[96];
    parser_warn_once(parser, COLUMN_FEATURES, name, "unknown feature '%s%.40s' left out%s", sign == '-' ? "-" : "", name,
                     parser_hint(name, feature_names, N_FEATURES, hint, sizeof hint));
}

/* An empty cell names no feature, nor does the word none; PLAIN_LOSS says that the loss is not fused. A table without the column
 * says nothing of them, as a job that names none; where a cell begins with a sign, +NAME and -NAME change what such a job has. A
 * name may be of several words ("flash attention 2"), and several names may have but blanks between them, or a +. */
feature_set parser_features(struct measurement_parser *parser, feature_set usual)
{
    const char *rest = parser_text(parser, COLUMN_FEATURES);
    rest += strspn(rest, ";, ");
    parser->plain_loss = false;
    parser->absent = 0;
    parser->changes_usual = *rest == '+' || *rest == '-';
    feature_set set = parser->changes_usual || parser->columns[COLUMN_FEATURES] < 0 ? usual : 0;
    if (!*rest && *parser_text(parser, COLUMN_FEATURES))
        skip_features(parser, "names are wanted; write none where there is no feature");
    while (*(rest += strspn(rest, ";, "))) {
        char name[64], sign = *rest == '+' || *rest == '-' ? *rest : '\0';
        rest += sign ? 1 + strspn(rest + 1, " ") : 0;
        size_t n = strcspn(rest, ";,+"), first = strcspn(rest, ";,+ ");
        snprintf(name, sizeof name, "%.*s", (int)n, rest);
        bool known = read_feature(parser, sign, name, &set);
        if (!known && first < n) {
            snprintf(name, sizeof name, "%.*s", (int)first, rest);
            known = read_feature(parser, sign, name, &set);
            n = known ? first : n;
            snprintf(name, sizeof name, "%.*s", (int)n, rest);
        }
        if (!known)
            warn_unknown_feature(parser, sign, name);
        rest += n;
    }
    return set;
}

/* Usual features are those of the row's GPU, which is known now. */
static void assume_features(struct measurement_parser *parser, struct measurement *row)
{
    char names[FEATURES_TEXT], others[FEATURES_TEXT];
    feature_set assumed = row->job.features & ~parser_features(parser, FEATURES_USUAL);
    if (parser->columns[COLUMN_FEATURES] < 0 || parser->changes_usual)
        row->job.features = row->layout.features = parser_features(parser, features_usual(&row->cluster.gpu)) | assumed;
    parser->n_changes += parser->changes_usual;
    if (parser->absent)
        parser_warn_once(parser, COLUMN_FEATURES, features_text(parser->absent, ", -", names, sizeof names),
                         "features: -%s without effect; the run has %s", names,
                         row->job.features ? features_text(row->job.features, ", ", others, sizeof others) : "none");
}

/* A generation of FlashAttention that has no kernels for the row's GPU gives way to the newest that has. */
static void adapt_attention(struct measurement_parser *parser, struct measurement *row)
{
    static const feature_set generations[] = {FEATURE_BIT(FLASH_ATTENTION), FEATURE_BIT(FLASH_ATTENTION2),
                                              FEATURE_BIT(FLASH_ATTENTION3)};
    const int newest = gpu_flash_attention(&row->cluster.gpu);
    feature_set said = row->job.features & FEATURES_FLASH, there = 0;
    char names[FEATURES_TEXT], taken[FEATURES_TEXT];
    for (int i = 0; i < newest; i++)
        there |= generations[i];
    if (parser->unusable || !(said & ~there) || newest < 1)
        return;
    parser_warn_once(parser, COLUMN_FEATURES, row->cluster.gpu.name, "%s: no kernels for the %s, whose newest is taken: %s",
                     features_text(said & ~there, ", ", names, sizeof names), row->cluster.gpu.name,
                     features_text(generations[newest - 1], ", ", taken, sizeof taken));
    row->job.features = row->layout.features = (row->job.features & ~said) | generations[newest - 1];
}

/* GPT-like models of FSDP stacks are of MPT's line (assumption): ALiBi, no biases, tied tables. */
static void assume_line(const struct measurement_parser *parser, struct measurement *row)
{
    bool named = *parser_text(parser, COLUMN_MODEL) != '\0', gpt = row->model.norm == NORM_LAYER && !row->model.gated_mlp;
    if (named || !gpt || row->layout.zero < 3 || row->layout.features & FEATURES_FUSING)
        return;
    row->model.position = POSITION_ALIBI;
    row->model.linear_bias = row->model.qkv_bias = false;
}

/* Megatron-LM (since 2021) and DeepSpeed by default divide messages of stages among tensor-parallel ranks; tables rarely say so.
 */
static void assume_messages(struct measurement *row)
{
    const feature_set cut = FEATURE_BIT(SCATTER_GATHER_P2P);
    if (row->layout.tp == 1 || row->layout.pp == 1 || !(row->layout.features & FEATURE_BIT(FUSED_OPS)))
        return;
    row->layout.features |= cut;
    row->job.features |= cut;
}

/* A fused loss came years after fused layers: stacks of the age of overlapped exchanges have it (assumption); tables rarely say.
 */
static void assume_loss(struct measurement *row)
{
    const feature_set ways = FEATURE_BIT(TP_OVERLAP) | FEATURE_BIT(ASYNC_TP);
    feature_set used = row->layout.features;
    if ((used & FEATURES_LOSS) || !(used & FEATURE_BIT(FUSED_OPS)) || !(used & ways))
        return;
    row->layout.features |= FEATURE_BIT(FUSED_LOSS);
    row->job.features |= FEATURE_BIT(FUSED_LOSS);
    row->loss_assumed = true;
}

void parser_assume_stack(struct measurement_parser *parser, struct measurement *row)
{
    assume_line(parser, row);
    assume_messages(row);
    if (!parser->plain_loss)
        assume_loss(row);
}

void parser_settle_features(struct measurement_parser *parser, struct measurement *row)
{
    assume_features(parser, row);
    adapt_attention(parser, row);
}
