#include "fabric_jobs.h"

#include <check.h>

#include "model/spec/catalog.h"

static const struct place NOWHERE;

struct fabric fabric_parsed(const char *text)
{
    struct diags diags = {0};
    struct fabric fabric;
    ck_assert_int_eq(fabric_parse(text, NOWHERE, &fabric, &diags), STATUS_OK);
    return fabric;
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
