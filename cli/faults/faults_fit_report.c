/*
 * faults_fit_report.c - a fault model fitted to a trace, with its goodness of fit.
 */
#include "cli/faults/faults_report.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "cli/output/result.h"
#include "cli/output/table.h"
#include "model/spec/json_text.h"

static const char *const repair_names[N_REPAIR_KINDS] = {"none", "hardware", "network", "software", "facility", "reboot"};

static void row(struct table *table, const char *name, struct interval_estimate e, const char *meaning)
{
    table_cell(table, "%s", name);
    table_tint(table, TINT_STRONG);
    table_cell(table, "%.4g", e.value);
    table_cell(table, "%.4g", e.low);
    table_cell(table, "%.4g", e.high);
    table_tint(table, TINT_DIM);
    table_cell(table, "%s", meaning);
}

static void write_table(struct invocation *call, const struct fault_fit *fit)
{
    struct table table = {0};
    char name[80];
    table_column(&table, "parameter", NULL, ALIGN_LEFT);
    table_column(&table, "value", NULL, ALIGN_RIGHT);
    table_column(&table, "low", NULL, ALIGN_RIGHT);
    table_column(&table, "high", NULL, ALIGN_RIGHT);
    table_column(&table, "meaning", NULL, ALIGN_LEFT);
    row(&table, "rate", fit->rate, "failures per node and day");
    row(&table, "shape", fit->shape, "Weibull shape of a node's time to failure");
    if (fit->lemons) {
        row(&table, "lemon_share", fit->lemon_share, "of the nodes");
        row(&table, "lemon_factor", fit->lemon_factor, "times the failures of the others");
    }
    if (fit->bursts) {
        row(&table, "burst_probability", fit->burst_probability, "of another failure soon after one, on the same node");
        row(&table, "burst_hours", fit->burst_hours, "mean time until then");
    }
    if (fit->early) {
        row(&table, "early_share", fit->early_share, "of the nodes are defective from the start");
        row(&table, "early_days", fit->early_days, "mean time until that shows");
    }
    for (int i = 0; i < fit->model.groups.n; i++) {
        const struct fault_group *group = &fit->model.groups.items[i];
        snprintf(name, sizeof name, "group %.50s", group->name);
        row(&table, name, fit->groups[i].rate, "events per group and day");
    }
    for (int i = 0; i < N_REPAIR_KINDS; i++) {
        if (fit->repairs[i].n == 0)
            continue;
        snprintf(name, sizeof name, "%s_mu", repair_names[i]);
        row(&table, name, fit->repairs[i].mu, "repair: mean of ln hours");
        snprintf(name, sizeof name, "%s_sigma", repair_names[i]);
        row(&table, name, fit->repairs[i].sigma, "repair: deviation of ln hours");
    }
    table_write(&table, call);
    table_free(&table);
}

/* Lemons, and what speaks for them. */
static void write_lemons(const struct invocation *call, const struct fault_fit *fit)
{
    const struct lemon_evidence *e = &fit->evidence;
    if (e->all_on_one) {
        fprintf(call->out, "lemons: nothing can be said (%zu failures name node %" PRId32 ")\n", e->worst_failures,
                e->worst_node);
        return;
    }
    fprintf(call->out,
            "lemons: %s (log-likelihood %.1f with, %.1f without: by chance with probability %.2g, where 0.01 is asked for; "
            "%" PRId32 " node%s more likely a lemon than not)\n",
            fit->lemons ? "yes" : "no evidence", fit->log_likelihood, fit->log_likelihood_plain, e->p, e->n_lemons,
            plural(e->n_lemons));
    if (e->worst_node >= 0)
        fprintf(call->out,
                "worst node: %" PRId32 "%s%s%s with %zu failure%s, which some node of a fleet of %d alike has with "
                "probability %.2g\n",
                e->worst_node, *e->worst_host ? " (" : "", e->worst_host, *e->worst_host ? ")" : "", e->worst_failures,
                plural((int64_t)e->worst_failures), fit->model.nodes, e->worst_p);
}

static void write_goodness(const struct invocation *call, const struct fault_fit *fit)
{
    char length[32];
    fprintf(call->out, "\n%zu failure%s, %zu time%s between failures of a node: Kolmogorov-Smirnov distance %.4f, p %.3g\n",
            fit->n_failures, plural((int64_t)fit->n_failures), fit->n_gaps, plural((int64_t)fit->n_gaps), fit->ks, fit->p);
    for (int i = 0; i < N_REPAIR_KINDS; i++)
        if (fit->repairs[i].n > 0 && fit->repairs[i].sigma.value <= 0)
            fprintf(call->out, "%zu repair%s (%s): all of %s, which is the value of --down if the source has none\n",
                    fit->repairs[i].n, plural((int64_t)fit->repairs[i].n), repair_names[i],
                    quantity_format(3600 * exp(fit->repairs[i].mu.value), DIM_TIME, length, sizeof length));
        else if (fit->repairs[i].n > 0)
            fprintf(call->out, "%zu repair%s (%s): distance %.4f, p %.3g\n", fit->repairs[i].n,
                    plural((int64_t)fit->repairs[i].n), repair_names[i], fit->repairs[i].ks, fit->repairs[i].p);
        else if (fit->repairs[i].n_few > 0)
            fprintf(call->out, "%zu repair%s (%s): too few to fit; the model uses those of LANL, 1996-2005\n",
                    fit->repairs[i].n_few, plural((int64_t)fit->repairs[i].n_few), repair_names[i]);
    write_lemons(call, fit);
    fprintf(call->out, "bursts: %s (log-likelihood %.1f with)\n", fit->bursts ? "yes" : "no evidence",
            fit->log_likelihood_bursts);
    fprintf(call->out, "early deaths: %s (log-likelihood %+.1f)\n", fit->early ? "yes" : "no evidence",
            fit->log_likelihood_early);
    for (int i = 0; i < fit->model.groups.n; i++) {
        const struct fault_group *group = &fit->model.groups.items[i];
        fprintf(call->out, "group %s: %zu event%s on blocks of %d node%s; %.3g of the block fails\n", group->name,
                fit->groups[i].n_events, plural((int64_t)fit->groups[i].n_events), group->nodes, plural(group->nodes),
                group->share);
    }
    fprintf(call->out, "%.1f %% of the failures occur in the same second as one of another node; %.1f %% belong to groups\n",
            100 * fit->simultaneous, 100 * (double)fit->n_grouped / (double)fit->n_failures);
}

static json_t *interval_json(struct interval_estimate e)
{
    return json_pack("{s:f, s:f, s:f}", "value", e.value, "ci95_low", e.low, "ci95_high", e.high);
}

static json_t *evidence_json(const struct lemon_evidence *e)
{
    json_t *json = json_pack("{s:f, s:f, s:i, s:i, s:I, s:f, s:b}", "log_likelihood_gain", e->gain, "p", e->p, "nodes",
                             (int)e->n_lemons, "worst_node", (int)e->worst_node, "worst_failures", (json_int_t)e->worst_failures,
                             "worst_p", e->worst_p, "all_on_one_node", e->all_on_one);
    if (*e->worst_host)
        json_object_set_new(json, "worst_host", json_text(e->worst_host));
    return json;
}

static json_t *groups_json(const struct fault_fit *fit)
{
    json_t *groups = json_array();
    for (int i = 0; i < fit->model.groups.n; i++) {
        const struct fault_group *group = &fit->model.groups.items[i];
        json_array_append_new(groups, json_pack("{s:s, s:I, s:i, s:f, s:o}", "name", group->name, "events",
                                                (json_int_t)fit->groups[i].n_events, "nodes", group->nodes, "share", group->share,
                                                "rate", interval_json(fit->groups[i].rate)));
    }
    return groups;
}

static enum status write_json(struct invocation *call, const struct fault_fit *fit)
{
    json_t *result = result_create(call, NULL), *repairs = json_object();
    char *model = fault_model_to_json(&fit->model);
    json_object_set_new(result, "rate", interval_json(fit->rate));
    json_object_set_new(result, "shape", interval_json(fit->shape));
    json_object_set_new(result, "lemons", json_boolean(fit->lemons));
    json_object_set_new(result, "lemon_evidence", evidence_json(&fit->evidence));
    json_object_set_new(result, "lemon_share", interval_json(fit->lemon_share));
    json_object_set_new(result, "lemon_factor", interval_json(fit->lemon_factor));
    json_object_set_new(result, "bursts", json_boolean(fit->bursts));
    json_object_set_new(result, "burst_probability", interval_json(fit->burst_probability));
    json_object_set_new(result, "burst_hours", interval_json(fit->burst_hours));
    json_object_set_new(result, "early_deaths", json_boolean(fit->early));
    json_object_set_new(result, "early_share", interval_json(fit->early_share));
    json_object_set_new(result, "early_days", interval_json(fit->early_days));
    json_object_set_new(result, "groups", groups_json(fit));
    json_object_set_new(result, "gaps", json_pack("{s:I, s:f, s:f}", "n", (json_int_t)fit->n_gaps, "ks", fit->ks, "p", fit->p));
    for (int i = 0; i < N_REPAIR_KINDS; i++)
        if (fit->repairs[i].n > 0)
            json_object_set_new(repairs, repair_names[i],
                                json_pack("{s:I, s:o, s:o, s:f, s:f}", "n", (json_int_t)fit->repairs[i].n, "mu",
                                          interval_json(fit->repairs[i].mu), "sigma", interval_json(fit->repairs[i].sigma), "ks",
                                          fit->repairs[i].ks, "p", fit->repairs[i].p));
    json_object_set_new(result, "repairs", repairs);
    json_object_set_new(result, "simultaneous_share", json_real(fit->simultaneous));
    json_object_set_new(result, "model", json_loads(model, 0, NULL));
    free(model);
    return result_write(call, result);
}

enum status faults_report_fit(struct invocation *call, const struct fault_fit *fit)
{
    if (call->format == FORMAT_JSON)
        return write_json(call, fit);
    write_table(call, fit);
    if (call->format == FORMAT_TEXT)
        write_goodness(call, fit);
    return STATUS_OK;
}
