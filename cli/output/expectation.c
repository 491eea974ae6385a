#include "cli/output/expectation.h"

#include <string.h>

#include "model/base/append.h"

/* What no run of the record has: as text ("on b300, of a hybrid model, with Muon") and as a key. */
struct unheard {
    bool there;
    const char *how, *what, *key;
};
enum { N_UNHEARD = 10 };

static void find_unheard(const struct layout *layout, const struct setting *setting, struct unheard things[N_UNHEARD])
{
    const char *gpu = setting->cluster->gpu.name;
    const struct track_record *record = track_record_of(run_kind_of(layout, setting->model));
    const struct unheard all[N_UNHEARD] = {
        {!track_record_has_gpu(record, gpu), "on ", gpu, "gpu"},
        {transformer_is_hybrid(setting->model), "of a hybrid model", "", "hybrid"},
        {setting->job->optimizer == OPTIMIZER_MUON, "with Muon", "", "muon"},
        {job_adapts(setting->job), "with adapters", "", "adapter"},
        {job_masks_documents(setting->job), "with masks between documents", "", "documents"},
        {setting->job->load.busiest > 1, "with uneven experts", "", "expert_load"},
        {setting->job->load.capacity > 0, "with a capacity of experts", "", "capacity_factor"},
        {!offload_is_none(&layout->offload), "with offloading", "", "offload"},
        {layout->cp > 1 && layout->cp_comm != CP_RING, "with this exchange of context parallelism", "", "cp_comm"},
        {layout->recompute.of != RECOMPUTE_ALL, "with recomputation of some layers", "", "recompute"},
    };
    memcpy(things, all, sizeof all);
}

void expectation_write_runs(const struct layout *layout, const struct setting *setting, FILE *out)
{
    enum run_kind kind = run_kind_of(layout, setting->model);
    const struct track_record *record = track_record_of(kind);
    char unheard[UNHEARD_TEXT];
    fprintf(out, "eight in ten of %d real runs of its kind (%s; %d source%s)", record->runs, run_kind_text(kind), record->sources,
            record->sources == 1 ? "" : "s");
    expectation_unheard(layout, setting, unheard, sizeof unheard);
    if (unheard[0])
        fprintf(out, ", none of them %s", unheard);
}

char *expectation_unheard(const struct layout *layout, const struct setting *setting, char *buffer, size_t size)
{
    struct unheard things[N_UNHEARD];
    find_unheard(layout, setting, things);
    buffer[0] = '\0';
    for (size_t i = 0; i < N_UNHEARD; i++)
        if (things[i].there)
            text_append(buffer, size, "%s%s%s", buffer[0] ? ", " : "", things[i].how, things[i].what);
    return buffer;
}

json_t *expectation_json(const struct layout *layout, const struct setting *setting, double step_s)
{
    enum run_kind kind = run_kind_of(layout, setting->model);
    const struct track_record *record = track_record_of(kind);
    struct unheard things[N_UNHEARD];
    json_t *without = json_array();
    find_unheard(layout, setting, things);
    for (size_t i = 0; i < N_UNHEARD; i++)
        if (things[i].there)
            json_array_append_new(without, json_string(things[i].key));
    return json_pack("{s:s, s:f, s:f, s:i, s:i, s:b, s:o}", "kind", run_kind_name(kind), "low_s", step_s * record->low, "high_s",
                     step_s * record->high, "runs", record->runs, "sources", record->sources, "gpu_among_them", !things[0].there,
                     "none_with", without);
}

void expectation_write_outcomes(const struct layout *layout, const struct setting *setting, FILE *out)
{
    enum run_kind kind = run_kind_of(layout, setting->model);
    int of_kind = track_record_of(kind)->outcomes;
    char number[16] = "none";
    if (of_kind > 0)
        snprintf(number, sizeof number, "%d", of_kind);
    fprintf(out, "%d real runs whose sources tell of failures (%s of its kind: %s)", memory_record()->runs, number,
            run_kind_text(kind));
}

json_t *expectation_memory_json(const struct layout *layout, const struct setting *setting, double use)
{
    const struct memory_record *record = memory_record();
    return json_pack("{s:f, s:f, s:i, s:i, s:i}", "use_pct", 100 * use, "share_pct", 100 * memory_record_share(use), "runs",
                     record->runs, "runs_of_kind", track_record_of(run_kind_of(layout, setting->model))->outcomes, "sources",
                     record->sources);
}
