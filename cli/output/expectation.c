#include "cli/output/expectation.h"

#include "model/base/append.h"

static const char *const gap_texts[N_RECORD_GAPS] = {
    [GAP_GPU] = "on ", /* and its name */
    [GAP_HYBRID] = "of a hybrid model",
    [GAP_MUON] = "with Muon",
    [GAP_ADAPTER] = "with adapters",
    [GAP_DOCUMENTS] = "with masks between documents",
    [GAP_EXPERT_LOAD] = "with uneven experts",
    [GAP_CAPACITY] = "with a capacity of experts",
    [GAP_OFFLOAD] = "with offloading",
    [GAP_CP_COMM] = "with this exchange of context parallelism",
    [GAP_RECOMPUTE] = "with recomputation of some layers",
};

char *expectation_runs_text(const struct layout *layout, const struct setting *setting, char *buffer, size_t size)
{
    enum run_kind kind = run_kind_of(layout, setting->model);
    const struct track_record *record = track_record_of(kind);
    char unheard[UNHEARD_TEXT];
    snprintf(buffer, size, "80 %% interval from %d published runs of this kind (%s; %d source%s)", record->runs,
             run_kind_text(kind), record->sources, record->sources == 1 ? "" : "s");
    expectation_unheard(layout, setting, unheard, sizeof unheard);
    return unheard[0] ? text_append(buffer, size, "; none of them %s", unheard) : buffer;
}

char *expectation_unheard(const struct layout *layout, const struct setting *setting, char *buffer, size_t size)
{
    unsigned gaps = track_record_gaps(layout, setting);
    buffer[0] = '\0';
    for (int gap = 0; gap < N_RECORD_GAPS; gap++)
        if (gaps >> gap & 1)
            text_append(buffer, size, "%s%s%s", buffer[0] ? ", " : "", gap_texts[gap],
                        gap == GAP_GPU ? setting->cluster->gpu.name : "");
    return buffer;
}

json_t *expectation_json(const struct layout *layout, const struct setting *setting, double step_s)
{
    enum run_kind kind = run_kind_of(layout, setting->model);
    const struct track_record *record = track_record_of(kind);
    unsigned gaps = track_record_gaps(layout, setting);
    json_t *without = json_array();
    for (int gap = 0; gap < N_RECORD_GAPS; gap++)
        if (gaps >> gap & 1)
            json_array_append_new(without, json_string(record_gap_key((enum record_gap)gap)));
    return json_pack("{s:s, s:f, s:f, s:i, s:i, s:b, s:o}", "kind", run_kind_name(kind), "low_s", step_s * record->low, "high_s",
                     step_s * record->high, "runs", record->runs, "sources", record->sources, "gpu_among_them",
                     !(gaps >> GAP_GPU & 1), "none_with", without);
}

char *expectation_outcomes_text(const struct layout *layout, const struct setting *setting, char *buffer, size_t size)
{
    enum run_kind kind = run_kind_of(layout, setting->model);
    int of_kind = track_record_of(kind)->outcomes;
    char number[16] = "none";
    if (of_kind > 0)
        snprintf(number, sizeof number, "%d", of_kind);
    snprintf(buffer, size, "%d published runs that report failures, %s of this kind: %s", memory_record()->runs, number,
             run_kind_text(kind));
    return buffer;
}

json_t *expectation_memory_json(const struct layout *layout, const struct setting *setting, double use)
{
    const struct memory_record *record = memory_record();
    return json_pack("{s:f, s:f, s:i, s:i, s:i}", "use_pct", 100 * use, "share_pct", 100 * memory_record_share(use), "runs",
                     record->runs, "runs_of_kind", track_record_of(run_kind_of(layout, setting->model))->outcomes, "sources",
                     record->sources);
}
