#include "cli/expectation.h"

#include <math.h>

void expectation_write_runs(const struct layout *layout, const struct setting *setting, FILE *out)
{
    enum run_kind kind = run_kind_of(layout, setting->model);
    const struct track_record *record = track_record_of(kind);
    const char *gpu = setting->cluster->gpu.name;
    fprintf(out, "eight in ten of %d real runs of its kind (%s; %d source%s)", record->runs, run_kind_text(kind), record->sources,
            record->sources == 1 ? "" : "s");
    if (!track_record_has_gpu(record, gpu))
        fprintf(out, ", none of them on %s", gpu);
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
