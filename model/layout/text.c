/* text.c - the text form of a layout, and what follows from what was left out. */
#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/append.h"
#include "model/base/units.h"
#include "model/layout/layout.h"
#include "model/spec/layout_items.h"

static const struct place NOWHERE = {0};

const struct layout layout_unasked = {.sequence_parallel = true, .zero = 1};

/* Keys whose value is a whole number, and where it goes. The second name is the long form. */
static const struct number_key {
    const char *name, *long_name;
    size_t offset;
    int least;
} NUMBER_KEYS[] = {
    {"tp", "tensor_parallel", offsetof(struct layout, tp), 1},
    {"cp", "context_parallel", offsetof(struct layout, cp), 1},
    {"pp", "pipeline_parallel", offsetof(struct layout, pp), 1},
    {"vpp", "virtual_pipeline", offsetof(struct layout, vpp), 1},
    {"dp", "data_parallel", offsetof(struct layout, dp), 1},
    {"ep", "expert_parallel", offsetof(struct layout, ep), 1},
    {"mb", "micro_batch", offsetof(struct layout, micro_batch), 1},
    {"zero", "zero_stage", offsetof(struct layout, zero), 0},
    {"etp", "expert_tensor_parallel", offsetof(struct layout, etp), 1},
    {"shard", "hybrid_shard", offsetof(struct layout, shard), 0},
};
enum { N_NUMBER_KEYS = sizeof NUMBER_KEYS / sizeof NUMBER_KEYS[0] };

static void report_unknown_key(const char *key, struct diags *diags)
{
    static const char *const known[] = {
        "tp",        "cp",       "pp",          "vpp",   "dp",      "ep",
        "etp",       "mb",       "micro_batch", "zero",  "sp",      "sequence_parallel",
        "recompute", "schedule", "offload",     "shard", "cp_comm",
    };
    char hint[96];
    diag_error(diags, NOWHERE, "layout: unknown key '%s'; %s", key,
               name_hint(key, known, sizeof known / sizeof known[0],
                         "known are tp, cp, cp_comm, pp, vpp, dp, ep, etp, mb, zero, shard, sp, recompute, schedule, offload",
                         hint, sizeof hint));
}

static void parse_number(const struct number_key *key, const char *value, struct layout *layout, struct diags *diags)
{
    char *end;
    errno = 0;
    long number = strtol(value, &end, 10);
    if (end == value || *end || errno || number > INT_MAX || number < key->least) {
        diag_error(diags, NOWHERE, "layout: %s=%s is not a whole number of at least %d", key->name, value, key->least);
        return;
    }
    int *field = (int *)(void *)((char *)layout + key->offset);
    *field = (int)number;
}

static void parse_flag(const char *value, bool *flag, struct diags *diags)
{
    static const char *const yes[] = {"1", "true", "yes", "on"}, *const no[] = {"0", "false", "no", "off"};
    for (int i = 0; i < 4; i++) {
        if (strcmp(value, yes[i]) == 0 || strcmp(value, no[i]) == 0) {
            *flag = strcmp(value, yes[i]) == 0;
            return;
        }
    }
    diag_error(diags, NOWHERE, "layout: sp=%s is neither on nor off; write sp=1 or sp=0", value);
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
        diag_error(diags, NOWHERE, "layout: %s=%s is not known; did you mean '%s'? (%s)", key, value, near, list);
    else
        diag_error(diags, NOWHERE, "layout: %s=%s is not known; known are %s", key, value, list);
    return -1;
}

static void parse_recompute(const char *value, struct layout *layout, struct diags *diags)
{
    char why[RECOMPUTE_WHY];
    if (!recompute_parse(value, &layout->recompute, why, sizeof why))
        diag_error(diags, NOWHERE, "layout: recompute=%s: %s", value, why);
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
        diag_error(diags, NOWHERE, "layout: offload=%s: %s", value, why);
}

static void parse_cp_comm(const char *value, struct layout *layout, struct diags *diags)
{
    char why[CP_COMM_WHY];
    int found = cp_comm_parse(value, why, sizeof why);
    if (found >= 0)
        layout->cp_comm = (enum cp_comm)found;
    else
        diag_error(diags, NOWHERE, "layout: cp_comm=%s: %s", value, why);
}

static void parse_pair(const char *key, const char *value, struct layout *layout, struct diags *diags)
{
    for (int i = 0; i < N_NUMBER_KEYS; i++) {
        if (strcmp(key, NUMBER_KEYS[i].name) == 0 || strcmp(key, NUMBER_KEYS[i].long_name) == 0) {
            parse_number(&NUMBER_KEYS[i], value, layout, diags);
            return;
        }
    }
    if (strcmp(key, "sp") == 0 || strcmp(key, "sequence_parallel") == 0)
        parse_flag(value, &layout->sequence_parallel, diags);
    else if (strcmp(key, "recompute") == 0)
        parse_recompute(value, layout, diags);
    else if (strcmp(key, "schedule") == 0)
        parse_schedule(value, layout, diags);
    else if (strcmp(key, "offload") == 0)
        parse_offload(value, layout, diags);
    else if (strcmp(key, "cp_comm") == 0 || strcmp(key, "cp_comm_type") == 0)
        parse_cp_comm(value, layout, diags);
    else
        report_unknown_key(key, diags);
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
            diag_error(diags, NOWHERE, "layout: %s", why);
    if (diags->n_errors != errors)
        return STATUS_BAD_INPUT;
    *layout = parsed;
    return STATUS_OK;
}

char *layout_format(const struct layout *layout, char *buffer, size_t size)
{
    char split[24] = "", shard[24] = "", recompute[RECOMPUTE_TEXT], offload[OFFLOAD_TEXT], comm[CP_COMM_TEXT];
    bool named = layout->cp_comm != CP_RING;
    if (layout->etp)
        snprintf(split, sizeof split, ",etp=%d", layout->etp);
    if (layout->shard)
        snprintf(shard, sizeof shard, ",shard=%d", layout->shard);
    snprintf(buffer, size, "tp=%d,cp=%d%s%s,pp=%d,vpp=%d,dp=%d,ep=%d%s,mb=%d,zero=%d%s,sp=%d,recompute=%s,schedule=%s",
             layout->tp, layout->cp, named ? ",cp_comm=" : "", named ? cp_comm_format(layout->cp_comm, comm, sizeof comm) : "",
             layout->pp, layout->vpp, layout->dp, layout->ep, split, layout->micro_batch, layout->zero, shard,
             layout->sequence_parallel, recompute_format(layout->recompute, recompute, sizeof recompute),
             schedule_name(layout->schedule));
    if (!offload_is_none(&layout->offload))
        text_append(buffer, size, ",offload=%s", offload_format(&layout->offload, offload, sizeof offload));
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
        const char *name;
        int value, least;
    } parts[] = {{"tp", layout->tp, 2}, {"pp", layout->pp, 2}, {"vpp", layout->vpp, schedule_is_folded(layout->schedule) ? 1 : 2},
                 {"cp", layout->cp, 2}, {"ep", layout->ep, 2}, {"etp", brief_expert_tp(layout), 1}};
    char recompute[RECOMPUTE_TEXT], offload[OFFLOAD_TEXT], comm[CP_COMM_TEXT];
    buffer[0] = '\0';
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (parts[i].value >= parts[i].least)
            text_append(buffer, size, "%s%d ", parts[i].name, parts[i].value);
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
