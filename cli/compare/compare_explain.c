#include "cli/compare/compare.h"
#include "cli/output/explain.h"
#include "cli/output/table.h"
#include "model/base/units.h"

static void write_features(feature_set features, FILE *out)
{
    char text[FEATURES_TEXT];
    fprintf(out, "%s\n", features ? features_text(features, ", ", text, sizeof text) : "none");
}

static void write_run(const struct compared *row, FILE *out)
{
    const struct measurement *run = row->run;
    char layout[LAYOUT_TEXT], nic[32];
    fprintf(out, "case      %s (%s:%d)\n", run->name, row->table, run->at.line);
    fprintf(out, "model     %s: %d layer%s, hidden %lld, ffn %lld%s, %d head%s, %d kv head%s, vocabulary %lld\n", run->model.name,
            run->model.layers, plural(run->model.layers), (long long)run->model.hidden, (long long)run->model.ffn_hidden,
            run->model.gated_mlp ? " gated" : "", run->model.heads, plural(run->model.heads), run->model.kv_heads,
            plural(run->model.kv_heads), (long long)run->model.vocab);
    fprintf(out, "cluster   %d x %s, %d a node, NVLink domain of %d, %s a NIC\n", run->gpus, run->cluster.gpu.name,
            run->cluster.gpus_per_node, run->cluster.nvlink_domain,
            quantity_format(run->cluster.nic_rate, DIM_RATE, nic, sizeof nic));
    fprintf(out, "job       batch %lld x %lld tokens, %s, gradients reduced in %s\n", (long long)run->job.global_batch,
            (long long)run->job.seq_len, precision_name(run->job.precision), precision_name(run->job.gradient_precision));
    fprintf(out, "layout    %s\n", layout_format(&run->layout, layout, sizeof layout));
    fputs("features  ", out);
    write_features(run->layout.features, out);
    if (*run->source)
        fprintf(out, "source    %s\n", run->source);
    if (*run->assumed)
        fprintf(out, "assumed   %s\n", run->assumed);
}

static void write_verdict(const struct compared *row, FILE *out)
{
    const struct measurement *run = row->run;
    if (run->oom)
        fputs("\nmeasured  out of memory\n", out);
    else if (run->step_s > 0)
        fprintf(out, "\nmeasured  %.4g s", run->step_s);
    else
        fputs(run->outcome_unknown ? "\nmeasured  nothing" : "\nmeasured  no step time", out);
    if (!run->oom && run->mfu > 0)
        fprintf(out, ", MFU %.1f %%", 100 * run->mfu);
    if (row->predicted_s > 0)
        fprintf(out, "\npredicted %.4g s, MFU %.1f %%", row->predicted_s, 100 * row->predicted_mfu);
    if (row->predicted_s > 0 && run->step_s > 0)
        fprintf(out, ": %+.1f %%", 100 * (row->predicted_s / run->step_s - 1));
    fputc('\n', out);
}

static void write_memory(const struct compared *row, const struct invocation *call)
{
    const struct footprint *m = &row->memory;
    const struct {
        const char *name;
        double bytes;
    } parts[] = {
        {"weights", m->weights}, {"gradients", m->gradients}, {"optimizer", m->optimizer}, {"activations", m->activations},
        {"buffers", m->buffers}, {"framework", m->framework}, {"total", m->total},         {"capacity", row->capacity}};
    struct table table = {0};
    table_column(&table, "memory of the fullest stage", NULL, ALIGN_LEFT);
    table_column(&table, "size", "GiB", ALIGN_RIGHT);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        table_cell(&table, "%s", parts[i].name);
        table_cell(&table, "%.2f", parts[i].bytes / GIB);
    }
    table_write_text(&table, call);
    table_free(&table);
}

void compare_explain_text(const struct compared *row, const struct invocation *call)
{
    struct setting setting = measurement_setting(row->run);
    write_run(row, call->out);
    write_verdict(row, call->out);
    if (!row->legal)
        return;
    if (row->predicted_s > 0) {
        fputs("\nWhere the predicted time goes\n", call->out);
        explain_breakdown_text(&row->breakdown, call);
    }
    fputc('\n', call->out);
    write_memory(row, call);
    fputs("\nOne micro-batch through the embedding, one layer and the head\n", call->out);
    explain_works_text(&row->run->layout, &setting, call);
}

void compare_explain_json(const struct compared *row, json_t *result)
{
    const struct footprint *m = &row->memory;
    if (!row->legal)
        return;
    struct setting setting = measurement_setting(row->run);
    json_t *memory =
        json_pack("{s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "weights", m->weights / GIB, "gradients", m->gradients / GIB,
                  "optimizer", m->optimizer / GIB, "activations", m->activations / GIB, "buffers", m->buffers / GIB, "framework",
                  m->framework / GIB, "total", m->total / GIB, "capacity", row->capacity / GIB);
    json_object_set_new(result, "explain",
                        json_pack("{s:o, s:o}", "memory_gib", memory, "works", explain_works_json(&row->run->layout, &setting)));
}
