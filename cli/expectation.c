#include "cli/expectation.h"

#include <math.h>

#include "model/base/append.h"

/* What no run of the record has, "on b300, of a hybrid model, with Muon"; "": nothing of what is asked here. Returns buffer. */
static char *unheard_of(const struct layout *layout, const struct setting *setting, char *buffer, size_t size)
{
    const char *gpu = setting->cluster->gpu.name;
    const struct {
        bool there;
        const char *how, *what;
    } things[] = {
        {!track_record_has_gpu(track_record_of(run_kind_of(layout, setting->model)), gpu), "on ", gpu},
        {transformer_is_hybrid(setting->model), "of a hybrid model", ""},
        {setting->job->optimizer == OPTIMIZER_MUON, "with Muon", ""},
        {!offload_is_none(&layout->offload), "with offloading", ""},
        {layout->cp > 1 && layout->cp_comm != CP_RING, "with this exchange of context parallelism", ""},
        {layout->recompute.of != RECOMPUTE_ALL, "with recomputation of some layers", ""},
    };
    buffer[0] = '\0';
    for (size_t i = 0; i < sizeof things / sizeof things[0]; i++)
        if (things[i].there)
            text_append(buffer, size, "%s%s%s", *buffer ? ", " : "", things[i].how, things[i].what);
    return buffer;
}

void expectation_write_runs(const struct layout *layout, const struct setting *setting, FILE *out)
{
    enum run_kind kind = run_kind_of(layout, setting->model);
    const struct track_record *record = track_record_of(kind);
    char without[256];
    fprintf(out, "eight in ten of %d real runs of its kind (%s; %d source%s)", record->runs, run_kind_text(kind), record->sources,
            record->sources == 1 ? "" : "s");
    if (*unheard_of(layout, setting, without, sizeof without))
        fprintf(out, ", none of them %s", without);
}

json_t *expectation_json(const struct layout *layout, const struct setting *setting, double step_s)
{
    enum run_kind kind = run_kind_of(layout, setting->model);
    const struct track_record *record = track_record_of(kind);
    return json_pack("{s:s, s:f, s:f, s:i, s:i, s:b}", "kind", run_kind_name(kind), "low_s", step_s * record->low, "high_s",
                     step_s * record->high, "runs", record->runs, "sources", record->sources, "gpu_among_them",
                     track_record_has_gpu(record, setting->cluster->gpu.name));
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

double expectation_margin(void)
{
    return ceil(100 * (1 - memory_record_use(SHARE_WITH_MARGIN))) / 100;
}
