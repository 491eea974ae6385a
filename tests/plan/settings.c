#include "tests/plan/settings.h"

#include <check.h>
#include <string.h>

#include "model/plan/remedy.h"
#include "model/spec/catalog.h"

/* MegaScale's A100 cluster from the catalog, with as many nodes as the job needs. */
static struct cluster test_cluster(int gpus)
{
    struct cluster cluster;
    struct diags diags = {0};
    ck_assert_int_eq(catalog_cluster("megascale-a100", &cluster, &diags), STATUS_OK);
    diags_free(&diags);
    cluster.nodes = (gpus + 7) / 8;
    return cluster;
}

void dense_case(struct job_case *c, int layers, int gpus, int64_t global_batch)
{
    memset(c, 0, sizeof *c);
    c->model = (struct transformer){
        .name = "test-model",
        .layers = layers,
        .hidden = 512,
        .ffn_hidden = 2048,
        .heads = 8,
        .kv_heads = 8,
        .head_dim = 64,
        .vocab = 32000,
        .max_seq_len = 1024,
    };
    c->cluster = test_cluster(gpus);
    c->job = (struct job){
        .global_batch = global_batch,
        .seq_len = 1024,
        .precision = PRECISION_BF16,
        .gradient_precision = PRECISION_FP32,
        .optimizer = OPTIMIZER_ADAM,
        .features = FEATURE_BIT(FLASH_ATTENTION2) | FEATURE_BIT(TP_OVERLAP) | FEATURE_BIT(PP_OVERLAP) | FEATURE_BIT(DP_OVERLAP),
    };
    c->setting = (struct setting){&c->model, &c->cluster, &c->job, gpus};
}

void mixture_case(struct job_case *c, int layers, int experts, int gpus, int64_t global_batch)
{
    dense_case(c, layers, gpus, global_batch);
    c->model.moe = (struct mixture){.experts = experts, .top_k = 2, .expert_ffn = 1024, .every = 1};
}

void gpt_175b_case(struct job_case *c, int gpus, int64_t global_batch)
{
    dense_case(c, 96, gpus, global_batch);
    c->model.hidden = 12288;
    c->model.ffn_hidden = 4 * 12288;
    c->model.heads = c->model.kv_heads = 128;
    c->model.head_dim = 96;
    c->model.vocab = 64000;
    c->model.max_seq_len = c->job.seq_len = 2048;
}

bool same_layout(const struct layout *a, const struct layout *b)
{
    return a->tp == b->tp && a->cp == b->cp && a->cp_comm == b->cp_comm && a->pp == b->pp && a->vpp == b->vpp && a->dp == b->dp &&
           a->ep == b->ep && a->zero == b->zero && a->shard == b->shard && a->sequence_parallel == b->sequence_parallel &&
           a->micro_batch == b->micro_batch && recompute_equal(a->recompute, b->recompute) &&
           offload_equal(&a->offload, &b->offload) && a->schedule == b->schedule && a->features == b->features;
}

struct space *space_of(const struct setting *setting, const char *restrictions)
{
    struct space_limits limits = {0};
    struct diags diags = {0};
    struct space *space = NULL;
    if (restrictions != NULL)
        ck_assert_int_eq(space_restrict(&limits, restrictions, PLACE_NONE, &diags), STATUS_OK);
    ck_assert_int_eq(space_create(setting, &limits, &space, &diags), STATUS_OK);
    diags_free(&diags);
    return space;
}

struct search_result search(const struct space *space, struct search_options options)
{
    struct search_result result;
    search_run(space, &options, &result);
    return result;
}

void check_same_plans(const struct search_result *a, const struct search_result *b)
{
    ck_assert_mem_eq(&a->counts, &b->counts, sizeof a->counts);
    ck_assert_int_eq(a->n_plans, b->n_plans);
    for (int i = 0; i < a->n_plans; i++) {
        ck_assert_uint_eq(a->plans[i].index, b->plans[i].index);
        ck_assert(same_layout(&a->plans[i].layout, &b->plans[i].layout));
        ck_assert_mem_eq(&a->plans[i].estimate, &b->plans[i].estimate, sizeof a->plans[i].estimate);
    }
}

enum status plans_best(const struct setting *setting, const char *restrictions, const struct search_options *options,
                       struct search_result *result, struct diags *diags)
{
    struct space_limits limits = {0};
    struct space *space;
    enum status status = STATUS_OK;
    if (restrictions != NULL && restrictions[0] != '\0')
        status = space_restrict(&limits, restrictions, PLACE_NONE, diags);
    if (status == STATUS_OK)
        status = space_create(setting, &limits, &space, diags);
    if (status != STATUS_OK)
        return status;
    struct search_result found;
    search_run(space, options, &found);
    if (found.n_plans > 0) {
        *result = found;
    } else {
        remedies_report(space, &limits, options->threads, &found, diags);
        search_result_free(&found);
        status = STATUS_BAD_INPUT;
    }
    space_destroy(space);
    return status;
}
