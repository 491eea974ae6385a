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

/* A step that takes so long by prediction. */
struct expected_step {
    const struct track_record *record;
    enum run_kind kind;
    double step_s;
    unsigned gaps;
};

static json_t *gaps_json(unsigned gaps)
{
    json_t *without = json_array();
    for (int gap = 0; gap < N_RECORD_GAPS; gap++)
        if (gaps >> gap & 1)
            json_array_append_new(without, json_string(record_gap_key((enum record_gap)gap)));
    return without;
}

#define LIKELY_ROWS(ROW)                                                                                                         \
    ROW(expected_step, kind, as_text(run_kind_name(s->kind)), "", JSON, "kind of run: fused, eager, sharded or mixture")         \
    ROW(expected_step, low_s, as_real(s->step_s * s->record->low), "s", JSON, "low end of the 80 % interval of the step time")   \
    ROW(expected_step, high_s, as_real(s->step_s * s->record->high), "s", JSON, "its high end")                                  \
    ROW(expected_step, runs, as_count(s->record->runs), "", JSON, "published runs of this kind")                                 \
    ROW(expected_step, sources, as_count(s->record->sources), "", JSON, "number of their sources")                               \
    ROW(expected_step, gpu_among_them, as_flag(!(s->gaps >> GAP_GPU & 1)), "", JSON, "whether some ran on this GPU")             \
    ROW(expected_step, none_with, as_json(gaps_json(s->gaps)), "", JSON, "features of this run that none of them has")
RESULT_ROWS(likely_rows, LIKELY_ROWS)

json_t *expectation_json(const struct layout *layout, const struct setting *setting, double step_s)
{
    enum run_kind kind = run_kind_of(layout, setting->model);
    const struct expected_step step = {track_record_of(kind), kind, step_s, track_record_gaps(layout, setting)};
    return rows_object(likely_rows, &step);
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

/* A GPU that is filled to `use` of its memory. */
struct expected_memory {
    double use;
    int runs_of_kind;
};

#define OUT_OF_MEMORY_ROWS(ROW)                                                                                                  \
    ROW(expected_memory, use_pct, as_real(100 * s->use), "%", JSON, "predicted use of the GPU's memory")                         \
    ROW(expected_memory, share_pct, as_real(100 * memory_record_share(s->use)), "%", JSON,                                       \
        "share of published runs with this use that ran out of memory")                                                          \
    ROW(expected_memory, runs, as_count(memory_record()->runs), "", JSON, "published runs that report failures")                 \
    ROW(expected_memory, runs_of_kind, as_count(s->runs_of_kind), "", JSON, "those of this kind")                                \
    ROW(expected_memory, sources, as_count(memory_record()->sources), "", JSON, "number of their sources")
RESULT_ROWS(out_of_memory_rows, OUT_OF_MEMORY_ROWS)

json_t *expectation_memory_json(const struct layout *layout, const struct setting *setting, double use)
{
    const struct expected_memory memory = {use, track_record_of(run_kind_of(layout, setting->model))->outcomes};
    return rows_object(out_of_memory_rows, &memory);
}
