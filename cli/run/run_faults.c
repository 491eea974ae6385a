/* The faults of a run: a trace or a model, and how long its repairs are. */
#include "cli/run/run_faults.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/output/table.h"

bool run_sweeps(const struct invocation *call, const char *key)
{
    int n = 0;
    bool swept = false;
    const char *const *texts = option_list(call, "sweep", &n);
    for (int i = 0; i < n; i++)
        swept |= strncmp(texts[i], key, strlen(key)) == 0 && texts[i][strlen(key)] == '=';
    return swept;
}

/*
 * Reports a job that is larger than the fleet of a shipped trace: its other nodes never fail. In a fleet of n nodes that fail
 * alike, all k faults hit the first m nodes with probability (m / n)^k. Where that is below 5 % for the n nodes of the job, the
 * fleet is smaller.
 */
static void note_beyond(struct invocation *call, const struct run_session *s)
{
    int32_t last = -1;
    for (size_t i = 0; i < s->trace.n_items; i++)
        last = s->trace.items[i].node > last ? s->trace.items[i].node : last;
    if (s->trace.n_outside > 0 || pow((last + 1.0) / s->options.nodes, (double)s->trace.n_items) >= 0.05)
        return;
    diag_note(&call->diags, PLACE_NONE,
              "%s has faults on nodes 0 to %" PRId32 " only, but the job uses %" PRId32
              " nodes; the other nodes never fail in this run. --fault-model draws faults for all nodes",
              s->experiment.faults.trace, last, s->options.nodes);
}

static void note_outside(struct invocation *call, const struct run_session *s, bool shipped)
{
    if (shipped)
        note_beyond(call, s);
    if (s->trace.n_outside > 0 && s->trace.n_items == 0)
        diag_warning(&call->diags, PLACE_NONE,
                     "%s has no fault on the nodes of the job (0 to %" PRId32
                     "), so nothing fails in this run; --fault-model draws faults for a job of any size",
                     s->experiment.faults.trace, s->options.nodes - 1);
    else if (s->trace.n_outside > 0)
        diag_note(&call->diags, PLACE_NONE,
                  "msim ignores %zu fault%s of %s on nodes outside the job, which uses %" PRId32 " nodes", s->trace.n_outside,
                  plural((int64_t)s->trace.n_outside), s->experiment.faults.trace, s->options.nodes);
}

/* Reports repair times that are not those of a GPU cluster: of shipped traces, and of models that have none of their own. */
static void assume_repairs(struct run_session *s, bool shipped)
{
    char mean[32];
    bool lanl = s->has_model && fault_model_repairs_are_lanls(&s->model);
    if (s->repairs.mean_s <= 0 || !(lanl || shipped))
        return;
    snprintf(s->repairs_text, sizeof s->repairs_text, "failed nodes return after %s on average, as %s; --repair changes this",
             quantity_format(s->repairs.mean_s, DIM_TIME, mean, sizeof mean),
             lanl ? "at LANL in 1996-2005" : "in the shipped trace");
    run_assume(&s->report, s->repairs_text);
}

static enum status take_repairs(struct invocation *call, struct run_session *s, bool shipped)
{
    double mean_s = s->experiment.faults.repair_s;
    bool given = mean_s > 0, swept = run_sweeps(call, "repair");
    s->repairs = s->has_model ? repairs_of_model(&s->model) : repairs_of_trace(&s->trace);
    s->report.repair_s = given && s->repairs.mean_s > 0 ? mean_s : s->repairs.mean_s;
    if (!given && !swept)
        assume_repairs(s, shipped);
    if ((given || swept) && s->repairs.mean_s <= 0) {
        diag_error(&call->diags, PLACE_NONE, "%s: no failure of %s takes a node away, so there is no repair time to change",
                   option_given(call, "repair") ? "--repair"
                   : given                      ? "faults.repair"
                                                : "--sweep repair",
                   s->has_model ? s->experiment.faults.model : s->experiment.faults.trace);
        return STATUS_BAD_INPUT;
    }
    if (given) {
        const struct run_parts run = run_parts_of(s);
        run_parts_set_repairs(&run, mean_s);
    }
    return STATUS_OK;
}

static enum status read_model(struct invocation *call, struct run_session *s)
{
    enum status status = fault_model_load(s->experiment.faults.model, &s->model, &call->diags);
    return status == STATUS_OK ? take_repairs(call, s, false) : status;
}

enum status run_read_faults(struct invocation *call, struct run_session *s)
{
    s->has_model = s->experiment.faults.model[0] != '\0';
    if (s->has_model)
        return read_model(call, s);
    char *path;
    bool shipped;
    enum status status = fault_trace_find(s->experiment.faults.trace, &path, &shipped, &call->diags);
    if (status != STATUS_OK)
        return status;
    int32_t with_spares = s->options.nodes + s->experiment.faults.spares;
    int32_t known = s->experiment.cluster.nodes > with_spares ? s->experiment.cluster.nodes : with_spares;
    struct fault_trace_limits limits = {.keep = s->options.nodes, .known = known, .drop = shipped};
    status = fault_trace_read(path, limits, &s->trace, &call->diags);
    free(path);
    if (status != STATUS_OK)
        return status;
    note_outside(call, s, shipped);
    return take_repairs(call, s, shipped);
}
