/* remedy.c - try changes that would make a job fit. */
#include "model/plan/remedy.h"

#include <math.h>
#include <string.h>

#include "model/base/append.h"
#include "model/base/units.h"
#include "model/cost/memory/footprint.h"
#include "model/layout/dimension_value.h"

static const double WORTH_NAMING = 0.98; /* a remedy that does not suffice should at least be felt */

/* A setting of its own, so that one thing can be changed in it. */
struct trial {
    struct cluster cluster;
    struct job job;
    struct setting setting;
};

static void trial_init(struct trial *trial, const struct setting *setting)
{
    trial->cluster = *setting->cluster;
    trial->job = *setting->job;
    trial->setting = (struct setting){setting->model, &trial->cluster, &trial->job, setting->gpus};
}

/* The layout that needs least memory. False when no layout is legal, or what remains of the space is nothing. */
static bool least_memory(const struct setting *setting, const struct space_limits *limits, int threads, struct remedy *remedy)
{
    struct space *space;
    struct diags unheard = {0};
    if (space_create(setting, limits, &space, &unheard) != STATUS_OK) {
        diags_free(&unheard);
        return false;
    }
    struct search_options options = {.keep = 1, .memory_only = true, .threads = threads};
    struct search_result result;
    search_run(space, &options, &result);
    space_destroy(space);
    diags_free(&unheard);
    bool found = result.least_bytes > 0;
    if (found) {
        memcpy(&remedy->layout, &result.least, sizeof remedy->layout);
        remedy->bytes = result.least_bytes;
        remedy->fits = result.counts.fit > 0;
    }
    search_result_free(&result);
    return found;
}

struct remedy_list {
    struct remedy *items;
    int n, threads;
    double closest_bytes;
};

/* Try a setting; keep the remedy when it helps. Does it fit? */
static bool try_remedy(struct remedy_list *list, const struct setting *setting, const struct space_limits *limits,
                       const char *what, const char *option)
{
    struct remedy remedy = {0};
    if (list->n == REMEDIES_MAX || !least_memory(setting, limits, list->threads, &remedy))
        return false;
    if (!remedy.fits && remedy.bytes > WORTH_NAMING * list->closest_bytes)
        return false;
    snprintf(remedy.what, sizeof remedy.what, "%s", what);
    snprintf(remedy.option, sizeof remedy.option, "%s", option);
    list->items[list->n++] = remedy;
    return remedy.fits;
}

/* "recompute=full": what a dimension is in the layout found. */
static void name_dimension(struct remedy *remedy, enum space_dimension dimension)
{
    int of_layout = space_dimension_of_layout(dimension);
    struct layout layout = remedy->layout;
    char text[DIMENSION_TEXT] = "0"; /* an overlap costs memory, so what fits does without it */
    layout.etp = layout_expert_tp(&layout);
    snprintf(remedy->what, sizeof remedy->what, "%s=%s", space_dimension_name(dimension),
             of_layout < 0 ? text : dimension_text(&layout, (enum layout_dimension)of_layout, text));
}

static void try_without_restrictions(struct remedy_list *list, const struct setting *setting, const struct space_limits *limits)
{
    int n_restricted = 0;
    for (int i = 0; i < N_SPACE_DIMENSIONS; i++) {
        if (limits->dimensions[i].n == 0)
            continue;
        n_restricted++;
        struct space_limits lifted = *limits;
        lifted.dimensions[i].n = 0;
        int before = list->n;
        try_remedy(list, setting, &lifted, "", "");
        if (list->n > before)
            name_dimension(&list->items[before], (enum space_dimension)i);
    }
    struct space_limits none = {0};
    if (n_restricted > 1)
        try_remedy(list, setting, &none, "a layout without restrictions", "");
}

static bool is_restricted(const struct space_limits *limits)
{
    for (int i = 0; i < N_SPACE_DIMENSIONS; i++)
        if (limits->dimensions[i].n > 0)
            return true;
    return false;
}

/* The least that suffices, of whole parts: optimizer states, then activations, then both, then parameters too. Said in a way that
 * every command which searches takes, and that leaves what is asked of the layout already. */
static void try_offloading(struct remedy_list *list, const struct setting *setting, const struct space_limits *limits)
{
    const struct space_limit *limit = &limits->dimensions[SPACE_OFFLOAD];
    for (int i = 1; i < N_OFFLOAD_WHOLES && limit->n == 0; i++) {
        struct space_limits offloading = *limits;
        struct space_limit *only = &offloading.dimensions[SPACE_OFFLOAD];
        only->n = 1;
        only->ranges[0].low = only->ranges[0].high = offload_number(&offload_wholes[i]);
        char what[96], option[96], text[OFFLOAD_TEXT];
        int before = list->n;
        offload_format(&offload_wholes[i], text, sizeof text);
        snprintf(what, sizeof what, "offload=%s", text);
        snprintf(option, sizeof option, "%s%s", is_restricted(limits) ? "--set layout.offload=" : "--layout auto,offload=", text);
        if (try_remedy(list, setting, &offloading, what, option))
            return;
        if (i + 1 < N_OFFLOAD_WHOLES)
            list->n = before; /* not enough: the next one says it better */
    }
}

static void try_software(struct remedy_list *list, const struct setting *setting, const struct space_limits *limits)
{
    struct trial trial;
    trial_init(&trial, setting);
    if ((setting->job->features & FEATURES_FLASH) == 0) {
        trial.job.features |= FEATURE_BIT(FLASH_ATTENTION2);
        try_remedy(list, &trial.setting, limits, "the feature flash_attention2", "");
    }
    trial_init(&trial, setting);
    if (setting->job->precision != PRECISION_FP8 && setting->cluster->gpu.peak_flops[PRECISION_FP8] > 0) {
        trial.job.precision = PRECISION_FP8;
        try_remedy(list, &trial.setting, limits, "precision fp8", "--precision fp8");
    }
}

static void try_without_margin(struct remedy_list *list, const struct setting *setting, const struct space_limits *limits)
{
    struct trial trial;
    trial_init(&trial, setting);
    trial.job.memory_margin = 0;
    int before = list->n;
    if (setting->job->memory_margin > 0 && !try_remedy(list, &trial.setting, limits, "no memory margin", "--memory-margin 0"))
        list->n = before;
}

static void try_more_gpus(struct remedy_list *list, const struct setting *setting, const struct space_limits *limits)
{
    enum { MOST_TIMES = 64 };
    for (int times = 2; times <= MOST_TIMES && setting->gpus <= JOB_GPUS_MAX / times; times *= 2) {
        struct trial trial;
        trial_init(&trial, setting);
        trial.setting.gpus = setting->gpus * times;
        int before = list->n, nodes = trial.cluster.nodes;
        while (nodes * trial.cluster.gpus_per_node < trial.setting.gpus)
            nodes *= 2;
        if (!cluster_resize(&trial.cluster, nodes))
            return;
        char what[64], option[96];
        snprintf(what, sizeof what, "%d GPUs", trial.setting.gpus);
        snprintf(option, sizeof option, "--gpus %d", trial.setting.gpus);
        if (nodes > setting->cluster->nodes && !setting->cluster->as_needed)
            text_append(option, sizeof option, " --set cluster.nodes=%d%s", nodes,
                        cluster_groups_remedy(setting->cluster, nodes));
        if (try_remedy(list, &trial.setting, limits, what, option))
            return;
        list->n = before; /* more, but not enough: the next multiple says it better */
    }
}

int remedies_find(const struct setting *setting, const struct space_limits *limits, int threads, double closest_bytes,
                  struct remedy remedies[REMEDIES_MAX])
{
    struct remedy_list list = {.items = remedies, .threads = threads, .closest_bytes = closest_bytes};
    try_without_restrictions(&list, setting, limits);
    try_without_margin(&list, setting, limits);
    try_offloading(&list, setting, limits);
    try_software(&list, setting, limits);
    try_more_gpus(&list, setting, limits);
    return list.n;
}

/* --- the report --- */

static void report_illegal(const struct search_counts *counts, const struct setting *setting, struct diags *diags)
{
    diag_error(diags, PLACE_NONE, "none of the %llu layouts is legal", (unsigned long long)counts->in_space);
    for (int reason = 0; reason < N_LAYOUT_REASONS; reason++)
        if (counts->rejected[reason] > 0)
            diag_note(diags, PLACE_NONE, "%llu layouts: %s", (unsigned long long)counts->rejected[reason],
                      layout_reason_text((enum layout_reason)reason));
    if (counts->rejected[LAYOUT_BATCH] > 0)
        diag_note(diags, PLACE_NONE, "a global batch that is a multiple of the %d GPUs allows any number of replicas",
                  setting->gpus);
}

static void report_remedy(const struct remedy *remedy, double limit_bytes, struct diags *diags)
{
    char layout[LAYOUT_TEXT];
    layout_format(&remedy->layout, layout, sizeof layout);
    bool typed = remedy->option[0] != '\0';
    if (remedy->fits)
        diag_note(diags, PLACE_NONE, "with %s it fits%s%s%s: %.1f GiB for %s", remedy->what, typed ? " (" : "", remedy->option,
                  typed ? ")" : "", remedy->bytes / GIB, layout);
    else
        diag_note(diags, PLACE_NONE, "%s would help, but not enough: %.1f GiB would still be missing", remedy->what,
                  (remedy->bytes - limit_bytes) / GIB);
}

void remedies_report(const struct space *space, const struct space_limits *limits, int threads,
                     const struct search_result *result, struct diags *diags)
{
    if (result->counts.legal == 0) {
        report_illegal(&result->counts, space_setting(space), diags);
        return;
    }
    const struct setting *setting = space_setting(space);
    char layout[LAYOUT_TEXT];
    layout_format(&result->least, layout, sizeof layout);
    diag_error(diags, PLACE_NONE,
               "%s does not fit on %d %s in any of %llu legal layouts: the closest, %s, needs %.1f GiB, and %s %.1f GiB, %.1f "
               "GiB too few",
               setting->model->name, setting->gpus, setting->cluster->gpu.name, (unsigned long long)result->counts.legal, layout,
               result->least_bytes / GIB, setting->job->memory_margin > 0 ? "the margin leaves" : "there are",
               result->limit_bytes / GIB, (result->least_bytes - result->limit_bytes) / GIB);
    struct remedy remedies[REMEDIES_MAX];
    int n = remedies_find(setting, limits, threads, result->least_bytes, remedies);
    for (int i = 0; i < n; i++)
        report_remedy(&remedies[i], result->limit_bytes, diags);
    diag_note(diags, PLACE_NONE, "without changes, it needs GPUs with at least %.0f GiB",
              ceil(result->least_bytes / result->limit_bytes * setting->cluster->gpu.hbm_bytes / GIB));
}
