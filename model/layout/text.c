/* text.c - the text form of a layout, and the values of dimensions that were left out. */
#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/append.h"
#include "model/base/units.h"
#include "model/layout/dimension_value.h"
#include "model/spec/layout_items.h"

/* What completing would put in, and what is a choice of its own even where it is 0 (zero=0). */
#define DEFAULT_NUMBER(member, least, usual) .member = (least) > 0 ? 0 : (usual),
#define DEFAULT_FLAG(member, least, usual)   .member = (usual),
#define DEFAULT_CP_COMM(member, least, usual)
#define DEFAULT_RECOMPUTE(member, least, usual)
#define DEFAULT_OFFLOAD(member, least, usual)
#define DEFAULT_SCHEDULE(member, least, usual)
const struct layout layout_defaults = {
#define X(id, type, member, key, word, brief, long_name, least, most, usual, ...) DEFAULT_##type(member, least, usual)
    LAYOUT_DIMENSIONS(X)
#undef X
};

/* The order in which texts name dimensions. */
static const enum layout_dimension TEXT_ORDER[N_LAYOUT_DIMENSIONS] = {
#define X(id, ...) DIMENSION_##id,
    LAYOUT_DIVISION(X) LAYOUT_SHARDING(X) LAYOUT_RECOMPUTE(X) LAYOUT_SCHEDULE(X) LAYOUT_OFFLOAD(X)
#undef X
};

static void report_unknown_key(const char *key, struct diags *diags)
{
    const char *known[2 * N_LAYOUT_DIMENSIONS];
    char words[160] = "known are ", hint[192];
    size_t n = 0;
    for (int i = 0; i < N_LAYOUT_DIMENSIONS; i++) {
        const struct layout_dimension_row *row = &layout_dimensions[TEXT_ORDER[i]];
        known[n++] = row->word;
        if (strcmp(row->key, row->word) != 0)
            known[n++] = row->key;
        text_append(words, sizeof words, "%s%s", i ? ", " : "", row->word);
    }
    diag_error(diags, PLACE_NONE, "layout: unknown key '%s'; %s", key, name_hint(key, known, n, words, hint, sizeof hint));
}

static void parse_number(enum layout_dimension dimension, const char *value, struct layout *layout, struct diags *diags)
{
    const struct layout_dimension_row *row = &layout_dimensions[dimension];
    char *end;
    errno = 0;
    long number = strtol(value, &end, 10);
    if (end == value || *end || errno || number > INT_MAX || number < row->least) {
        diag_error(diags, PLACE_NONE, "layout: %s=%s is not a whole number of at least %d", row->word, value, row->least);
        return;
    }
    dimension_set(layout, dimension, (int)number);
}

static void parse_flag(enum layout_dimension dimension, const char *value, struct layout *layout, struct diags *diags)
{
    static const char *const yes[] = {"1", "true", "yes", "on"}, *const no[] = {"0", "false", "no", "off"};
    for (int i = 0; i < 4; i++) {
        if (strcmp(value, yes[i]) == 0 || strcmp(value, no[i]) == 0) {
            dimension_set(layout, dimension, strcmp(value, yes[i]) == 0);
            return;
        }
    }
    const char *word = layout_dimensions[dimension].word;
    diag_error(diags, PLACE_NONE, "layout: %s=%s is neither on nor off; write %s=1 or %s=0", word, value, word, word);
}

/* One of n words; -1 with a diagnostic otherwise. */
static int parse_word(const char *key, const char *value, const char *const *words, int n, struct diags *diags)
{
    for (int i = 0; i < n; i++)
        if (strcmp(words[i], value) == 0)
            return i;
    char list[128] = "";
    for (int i = 0; i < n; i++)
        text_append(list, sizeof list, "%s%s", i ? ", " : "", words[i]);
    const char *near = nearest_name(value, words, (size_t)n);
    if (near)
        diag_error(diags, PLACE_NONE, "layout: %s=%s is unknown; did you mean '%s'? (%s)", key, value, near, list);
    else
        diag_error(diags, PLACE_NONE, "layout: %s=%s is not known; known are %s", key, value, list);
    return -1;
}

static void parse_recompute(const char *value, struct layout *layout, struct diags *diags)
{
    char why[RECOMPUTE_WHY];
    if (!recompute_parse(value, &layout->recompute, why, sizeof why))
        diag_error(diags, PLACE_NONE, "layout: recompute=%s: %s", value, why);
}

static void parse_schedule(const char *value, struct layout *layout, struct diags *diags)
{
    int found = parse_word("schedule", value, schedule_names, N_SCHEDULES, diags);
    if (found >= 0)
        layout->schedule = (enum schedule)found;
}

static void parse_offload(const char *value, struct layout *layout, struct diags *diags)
{
    char why[OFFLOAD_WHY];
    if (!offload_parse(value, &layout->offload, why, sizeof why))
        diag_error(diags, PLACE_NONE, "layout: offload=%s: %s", value, why);
}

static void parse_cp_comm(const char *value, struct layout *layout, struct diags *diags)
{
    char why[CP_COMM_WHY];
    int found = cp_comm_parse(value, why, sizeof why);
    if (found >= 0)
        layout->cp_comm = (enum cp_comm)found;
    else
        diag_error(diags, PLACE_NONE, "layout: cp_comm=%s: %s", value, why);
}

static void parse_pair(const char *key, const char *value, struct layout *layout, struct diags *diags)
{
    int found = layout_dimension_of(key);
    if (found < 0) {
        report_unknown_key(key, diags);
        return;
    }
    enum layout_dimension dimension = (enum layout_dimension)found;
    switch (layout_dimensions[dimension].type) {
    case DIMENSION_TYPE_NUMBER: parse_number(dimension, value, layout, diags); return;
    case DIMENSION_TYPE_FLAG: parse_flag(dimension, value, layout, diags); return;
    case DIMENSION_TYPE_CP_COMM: parse_cp_comm(value, layout, diags); return;
    case DIMENSION_TYPE_RECOMPUTE: parse_recompute(value, layout, diags); return;
    case DIMENSION_TYPE_OFFLOAD: parse_offload(value, layout, diags); return;
    case DIMENSION_TYPE_SCHEDULE: parse_schedule(value, layout, diags); return;
    }
}

enum status layout_parse(const char *text, struct layout *layout, struct diags *diags)
{
    struct layout parsed = *layout;
    struct layout_items items = {.text = text};
    struct layout_item item;
    size_t errors = diags->n_errors;
    char why[LAYOUT_ITEM_WHY];
    for (enum layout_item_found found; (found = layout_items_next(&items, &item, why)) != LAYOUT_ITEM_NONE;)
        if (found == LAYOUT_ITEM_READ)
            parse_pair(item.key, item.value, &parsed, diags);
        else
            diag_error(diags, PLACE_NONE, "layout: %s", why);
    if (diags->n_errors != errors)
        return STATUS_BAD_INPUT;
    *layout = parsed;
    return STATUS_OK;
}

char *layout_format(const struct layout *layout, char *buffer, size_t size)
{
    char text[DIMENSION_TEXT];
    *buffer = '\0';
    for (int i = 0; i < N_LAYOUT_DIMENSIONS; i++) {
        enum layout_dimension dimension = TEXT_ORDER[i];
        if (dimension_is_shown(layout, dimension))
            text_append(buffer, size, "%s%s=%s", *buffer ? "," : "", layout_dimensions[dimension].word,
                        dimension_text(layout, dimension, text));
    }
    return buffer;
}

/* What layout_complete makes of none. */
static enum schedule usual_schedule(const struct layout *layout)
{
    if (layout->pp <= 1)
        return SCHEDULE_NONE;
    return layout->vpp > 1 ? SCHEDULE_INTERLEAVED : SCHEDULE_1F1B;
}

/* Ranks of an expert, where they are not what a layout means that does not say. */
static int brief_expert_tp(const struct layout *layout)
{
    struct layout silent = *layout;
    silent.etp = 0;
    int ranks = layout_expert_tp(layout);
    return ranks != layout_expert_tp(&silent) ? ranks : 0;
}

char *layout_brief(const struct layout *layout, char *buffer, size_t size)
{
    const struct {
        enum layout_dimension dimension;
        int value, least;
    } parts[] = {{DIMENSION_TP, layout->tp, 2},
                 {DIMENSION_PP, layout->pp, 2},
                 {DIMENSION_VPP, layout->vpp, schedule_is_folded(layout->schedule) ? 1 : 2},
                 {DIMENSION_CP, layout->cp, 2},
                 {DIMENSION_EP, layout->ep, 2},
                 {DIMENSION_ETP, brief_expert_tp(layout), 1}};
    char recompute[RECOMPUTE_TEXT], offload[OFFLOAD_TEXT], comm[CP_COMM_TEXT];
    buffer[0] = '\0';
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (parts[i].value >= parts[i].least)
            text_append(buffer, size, "%s%d ", layout_dimensions[parts[i].dimension].brief, parts[i].value);
    if (layout->cp_comm != CP_RING)
        text_append(buffer, size, "%s ", cp_comm_format(layout->cp_comm, comm, sizeof comm));
    text_append(buffer, size, "mb%d z%d", layout->micro_batch, layout->zero);
    if (layout->shard)
        text_append(buffer, size, "/%d", layout->shard);
    if (layout->tp > 1 && !layout->sequence_parallel)
        text_append(buffer, size, " sp0");
    if (layout->recompute.what != RECOMPUTE_NONE)
        text_append(buffer, size, " %s", recompute_brief(layout->recompute, recompute, sizeof recompute));
    if (layout->schedule != SCHEDULE_NONE && layout->schedule != usual_schedule(layout))
        text_append(buffer, size, " %s", schedule_name(layout->schedule));
    if (!offload_is_none(&layout->offload))
        text_append(buffer, size, " offload=%s", offload_format(&layout->offload, offload, sizeof offload));
    return buffer;
}

static void default_to(int *dimension, int value)
{
    if (*dimension == 0)
        *dimension = value;
}

void layout_complete(struct layout *layout, const struct setting *setting)
{
    default_to(&layout->tp, 1);
    default_to(&layout->cp, 1);
    default_to(&layout->pp, 1);
    default_to(&layout->vpp, schedule_is_folded(layout->schedule) ? 2 : 1);
    default_to(&layout->ep, 1);
    default_to(&layout->micro_batch, 1);
    int64_t others = (int64_t)layout->tp * layout->cp * layout->pp;
    if (layout->dp == 0)
        layout->dp = others > 0 && others <= setting->gpus ? (int)(setting->gpus / others) : 1;
    layout_settle_shard(layout);
    layout->cp_comm = cp_comm_settled(layout->cp_comm, layout->cp);
    if (layout->schedule == SCHEDULE_NONE)
        layout->schedule = usual_schedule(layout);
    if (layout->tp == 1)
        layout->sequence_parallel = false;
    if (!layout->features)
        layout->features = setting->job->features;
}
