#include "tests/sim/fabric/fabric_jobs.h"

#include <check.h>

#include "model/spec/catalog.h"
#include "sim/step/step.h"

struct fabric fabric_parsed(const char *text)
{
    struct diags diags = {0};
    struct fabric fabric;
    ck_assert_int_eq(fabric_parse(text, PLACE_NONE, &fabric, &diags), STATUS_OK);
    return fabric;
}

struct packets_parameters packets_of_4000(enum congestion congestion)
{
    struct packets_parameters with = packets_usual();
    with.packet_bytes = 4000;
    with.xon_gap = 8000;
    with.congestion = congestion;
    return with;
}

struct packets *packets_created(const struct fabric *fabric, const struct packets_parameters *with)
{
    struct packets *packets;
    struct diags diags = {0};
    ck_assert_int_eq(packets_create(fabric, with, &packets, &diags), STATUS_OK);
    return packets;
}

void job_create(struct job_case *c, const char *model, feature_set features, int nodes, int batch, const char *layout,
                const char *fabric)
{
    struct diags diags = {0};
    *c = (struct job_case){.job = {.global_batch = batch,
                                   .seq_len = 2048,
                                   .precision = PRECISION_BF16,
                                   .gradient_precision = PRECISION_FP32,
                                   .optimizer = OPTIMIZER_ADAM,
                                   .features = features}};
    ck_assert_int_eq(catalog_model(model, &c->model, &diags), STATUS_OK);
    ck_assert_int_eq(catalog_cluster("megascale-a100", &c->cluster, &diags), STATUS_OK);
    c->cluster.nodes = nodes;
    c->setting = (struct setting){.model = &c->model, .cluster = &c->cluster, .job = &c->job, .gpus = nodes * 8};
    ck_assert_int_eq(layout_parse(layout, &c->layout, &diags), STATUS_OK);
    layout_complete(&c->layout, &c->setting);
    ck_assert_int_eq(layout_check(&c->layout, &c->setting, NULL, 0), LAYOUT_LEGAL);
    if (fabric == NULL)
        ck_assert_int_eq(fabric_create(&c->cluster, &c->fabric, &diags), STATUS_OK);
    else
        c->fabric = fabric_parsed(fabric);
}

nanos transfer_taken(const struct network *table, uint64_t *what, nanos *latency)
{
    for (;;) {
        nanos next = table->next(table->state), end = table->advance != NULL ? table->advance(table->state, next) : INT64_MAX;
        end = nanos_earlier(end, next);
        ck_assert_int_lt(end, INT64_MAX);
        if (table->take(table->state, end, what, latency))
            return end;
    }
}

nanos job_step(struct job_case *c, const struct network_flow_options *flow)
{
    struct diags diags = {0};
    struct step_options how = {.all_ranks = true, .flow = flow};
    struct step_result result;
    enum status status = step_simulate(&c->layout, &c->setting, &how, &result, NULL, NULL, &diags);
    ck_assert_msg(status == STATUS_OK, "%s", diags.n_items ? diags.items[0].text : "");
    return result.step;
}
