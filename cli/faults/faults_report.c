#include "cli/faults/faults_report.h"

#include <inttypes.h>

#include "cli/output/result.h"
#include "cli/output/table.h"
#include "model/spec/json_text.h"

static const char *cause_of(const struct faults_report *summary, const struct fault_count *count)
{
    return count->what < 0 ? "" : summary->trace->details[count->what];
}

/* What nothing is known of is no zero. */
static void known_row(struct table *table, const char *name, const char *meaning, bool known, int digits, double value)
{
    if (known)
        table_value_row(table, name, meaning, "%.*g", digits, value);
    else
        table_value_row(table, name, meaning, "unknown");
}

static void repair_rows(const struct repair_fit *repair, struct table *table)
{
    bool known = repair->n > 0;
    known_row(table, "repair_mean_h", "of repairs that take time", known, 4, repair->mean_s / 3600);
    known_row(table, "repair_median_h", "", known, 4, repair->median_s / 3600);
    known_row(table, "repair_p90_h", "", known, 4, repair->p90_s / 3600);
    known_row(table, "repair_max_h", "", known, 4, repair->max_s / 3600);
    known_row(table, "repair_mu", "lognormal: mean of ln hours", known, 4, repair->mu);
    known_row(table, "repair_sigma", "lognormal: standard deviation of ln hours", known, 4, repair->sigma);
    table_value_row(table, "repairs_of_no_length", "outages that end at once", "%zu", repair->n_empty);
}

static void summary_rows(const struct faults_report *summary, struct table *table)
{
    const struct fault_statistics *s = &summary->statistics;
    table_value_row(table, "failures", "node outages", "%zu", s->n_failures);
    table_value_row(table, "slowdowns", "stragglers and slow links", "%zu", s->n_slow);
    if (s->n_planned > 0)
        table_value_row(table, "planned", "outages that are announced", "%zu", s->n_planned);
    table_value_row(table, "nodes", "of the cluster, up to the last one named", "%" PRId32, s->nodes);
    table_value_row(table, "nodes_hit", "nodes that failed at least once", "%" PRId32, s->nodes_hit);
    table_value_row(table, "horizon_d", "days that the trace covers", "%.6g", s->horizon_s / 86400);
    known_row(table, "mtbf_h", "hours between failures of the cluster, mean", s->n_failures > 0, 4, s->mtbf_s / 3600);
    if (s->n_failures == 0)
        table_value_row(table, "mtbf_least_h", "it is longer, at 95 % confidence, if failures are memoryless", "%.4g",
                        24 / (s->most_per_node_day * s->nodes));
    table_value_row(table, "per_node_day", "failures per node and day", "%.4g", s->per_node_day);
    if (s->n_failures == 0)
        table_value_row(table, "per_node_day_most", "the rate is lower, likewise", "%.4g", s->most_per_node_day);
    known_row(table, "variance_to_mean", "of the daily counts; 1 for a Poisson process", s->n_failures > 0, 3,
              s->variance_to_mean);
    known_row(table, "top_share_pct", "share of the failures on the worst 1 % of the nodes", s->n_failures > 0, 3,
              100 * s->top_share);
    known_row(table, "gap_shape", "Weibull shape k of the times between failures; below 1: bursts", s->gaps.shape > 0, 4,
              s->gaps.shape);
    known_row(table, "gap_scale_h", "Weibull scale", s->gaps.shape > 0, 4, s->gaps.scale_s / 3600);
    known_row(table, "gap_ks", "Kolmogorov-Smirnov distance to that fit", s->gaps.shape > 0, 3, s->gaps.ks);
    known_row(table, "gap_ks_exponential", "and to the exponential of the same mean", s->gaps.shape > 0, 3,
              s->gaps.ks_exponential);
    repair_rows(&s->repair, table);
}

static void write_values(struct invocation *call, const struct faults_report *summary)
{
    struct table table = {0};
    table_column(&table, "quantity", NULL, ALIGN_LEFT);
    table_column(&table, "value", NULL, ALIGN_RIGHT);
    table_column(&table, "meaning", NULL, ALIGN_LEFT);
    summary_rows(summary, &table);
    table_write(&table, call);
    table_free(&table);
}

static void write_causes(struct invocation *call, const struct faults_report *summary)
{
    const struct fault_statistics *s = &summary->statistics;
    size_t shown = call->verbosity > 0 || s->n_causes < 15 ? s->n_causes : 15;
    struct table table = {0};
    table_column(&table, "cause", NULL, ALIGN_LEFT);
    table_column(&table, "faults", NULL, ALIGN_RIGHT);
    table_column(&table, "share", "%", ALIGN_RIGHT);
    table_column(&table, "mean repair", "h", ALIGN_RIGHT);
    for (size_t i = 0; i < shown; i++) {
        table_cell(&table, "%s", s->causes[i].what < 0 ? "(none given)" : cause_of(summary, &s->causes[i]));
        table_cell(&table, "%zu", s->causes[i].n);
        table_cell(&table, "%.1f", 100.0 * (double)s->causes[i].n / (double)summary->trace->n_items);
        table_cell(&table, "%.2f", s->causes[i].mean_down_s / 3600);
    }
    fputc('\n', call->out);
    table_write(&table, call);
    table_free(&table);
    if (shown < s->n_causes)
        fprintf(call->out, "... and %zu more (-v shows all)\n", s->n_causes - shown);
}

static void write_nodes(struct invocation *call, const struct faults_report *summary)
{
    const struct fault_statistics *s = &summary->statistics;
    struct table table = {0};
    bool named = summary->trace->n_hosts > 0;
    table_column(&table, "node", NULL, ALIGN_RIGHT);
    if (named)
        table_column(&table, "host", NULL, ALIGN_LEFT);
    table_column(&table, "failures", NULL, ALIGN_RIGHT);
    table_column(&table, "mean repair", "h", ALIGN_RIGHT);
    for (int i = 0; i < s->n_top_nodes; i++) {
        table_cell(&table, "%" PRId32, s->top_nodes[i].what);
        if (named)
            table_cell(&table, "%s", fault_trace_host(summary->trace, s->top_nodes[i].what));
        table_cell(&table, "%zu", s->top_nodes[i].n);
        table_cell(&table, "%.2f", s->top_nodes[i].mean_down_s / 3600);
    }
    fputc('\n', call->out);
    table_write(&table, call);
    table_free(&table);
}

static json_t *counts_json(const struct faults_report *summary)
{
    const struct fault_statistics *s = &summary->statistics;
    json_t *causes = json_array();
    for (size_t i = 0; i < s->n_causes; i++)
        json_array_append_new(causes, json_pack("{s:s, s:I, s:f}", "detail", cause_of(summary, &s->causes[i]), "faults",
                                                (json_int_t)s->causes[i].n, "mean_down_s", s->causes[i].mean_down_s));
    return causes;
}

static json_t *nodes_json(const struct faults_report *summary)
{
    const struct fault_statistics *s = &summary->statistics;
    json_t *nodes = json_array();
    for (int i = 0; i < s->n_top_nodes; i++) {
        const char *host = fault_trace_host(summary->trace, s->top_nodes[i].what);
        json_t *node = json_pack("{s:i, s:I, s:f}", "node", s->top_nodes[i].what, "failures", (json_int_t)s->top_nodes[i].n,
                                 "mean_down_s", s->top_nodes[i].mean_down_s);
        if (*host)
            json_object_set_new(node, "host", json_text(host));
        json_array_append_new(nodes, node);
    }
    return nodes;
}

static json_t *kinds_json(const struct fault_statistics *s)
{
    json_t *kinds = json_object();
    for (int i = 0; i < N_FAULT_KINDS; i++)
        json_object_set_new(kinds, fault_kind_name((enum fault_kind)i), json_integer((json_int_t)s->kinds[i]));
    return kinds;
}

static enum status write_json(struct invocation *call, const struct faults_report *summary)
{
    const struct fault_statistics *s = &summary->statistics;
    json_t *result = result_create(call, NULL);
    json_object_set_new(result, "trace", json_text(summary->name));
    json_object_set_new(result, "failures", json_integer((json_int_t)s->n_failures));
    json_object_set_new(result, "nodes", json_integer(s->nodes));
    json_object_set_new(result, "nodes_hit", json_integer(s->nodes_hit));
    json_object_set_new(result, "horizon_s", json_real(s->horizon_s));
    json_object_set_new(result, "mtbf_s", s->n_failures > 0 ? json_real(s->mtbf_s) : json_null());
    json_object_set_new(result, "per_node_day", json_real(s->per_node_day));
    json_object_set_new(result, "per_node_day_most", s->n_failures > 0 ? json_null() : json_real(s->most_per_node_day));
    json_object_set_new(result, "variance_to_mean", json_real(s->variance_to_mean));
    json_object_set_new(result, "top_share", json_real(s->top_share));
    json_object_set_new(result, "gaps",
                        json_pack("{s:I, s:f, s:f, s:f, s:f, s:f}", "n", (json_int_t)s->gaps.n, "mean_s", s->gaps.mean_s, "shape",
                                  s->gaps.shape, "scale_s", s->gaps.scale_s, "ks", s->gaps.ks, "ks_exponential",
                                  s->gaps.ks_exponential));
    json_object_set_new(result, "repair",
                        json_pack("{s:I, s:I, s:f, s:f, s:f, s:f, s:f, s:f}", "n", (json_int_t)s->repair.n, "n_empty",
                                  (json_int_t)s->repair.n_empty, "mean_s", s->repair.mean_s, "median_s", s->repair.median_s,
                                  "p90_s", s->repair.p90_s, "max_s", s->repair.max_s, "mu", s->repair.mu, "sigma",
                                  s->repair.sigma));
    json_object_set_new(result, "kinds", kinds_json(s));
    json_object_set_new(result, "causes", counts_json(summary));
    json_object_set_new(result, "top_nodes", nodes_json(summary));
    return result_write(call, result);
}

enum status faults_report_write(struct invocation *call, const struct faults_report *summary)
{
    if (call->format == FORMAT_JSON)
        return write_json(call, summary);
    if (call->format == FORMAT_TEXT)
        fprintf(call->out, "%s\n\n", summary->name);
    write_values(call, summary);
    if (call->format == FORMAT_TEXT) {
        write_causes(call, summary);
        write_nodes(call, summary);
    }
    return STATUS_OK;
}

enum status faults_report_trace(struct invocation *call, const struct fault_trace *trace)
{
    json_t *root = result_create(call, NULL), *list = json_array();
    for (size_t i = 0; i < trace->n_items; i++) {
        const struct fault *fault = &trace->items[i];
        json_t *row = json_pack("{s:f, s:i, s:s, s:f}", "time_s", nanos_to_seconds(fault->time), "node", fault->node, "kind",
                                fault_kind_name(fault->kind), "down_s", nanos_to_seconds(fault->down));
        if (fault->kind != FAULT_NODE)
            json_object_set_new(row, "factor", json_real((double)fault->speed / FULL_SPEED));
        if (fault->detail >= 0)
            json_object_set_new(row, "detail", json_text(trace->details[fault->detail]));
        if (*fault_trace_host(trace, fault->node))
            json_object_set_new(row, "host", json_text(fault_trace_host(trace, fault->node)));
        json_array_append_new(list, row);
    }
    json_object_set_new(root, "faults", list);
    return result_write(call, root);
}
