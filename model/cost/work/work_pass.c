/* work_pass.c - one micro-batch through a chunk of the model, forward or backward; the optimizer step; parameters of a stage. */
#include "model/cost/work/work_layer.h"

#include <math.h>

#include "model/base/memory.h"
#include "model/cost/work/adapter.h"
#include "model/cost/work/host_memory.h"
#include "model/cost/work/precision_bytes.h"

enum { PASS_CHILDREN_MAX = 512 };

static int32_t builder_close(struct layer_builder *b, const char *label, int32_t repeat)
{
    return work_add_sequence(b->table, b->recomputing ? CLASS_RECOMPUTE : CLASS_GEMM, label, b->ids, b->n, repeat);
}

bool work_keeps_products(const struct layout *layout)
{
    return layout->recompute.what == RECOMPUTE_SELECTIVE && layout_recomputes_by_need(layout);
}

int work_repeats_before(const struct layout *layout, const struct transformer *model, int layer)
{
    struct layer_range group = layout_repeated_with(layout, model, layer);
    return layer == group.first + group.count - 1 ? group.count : 0;
}

bool work_gathers_to_recompute(const struct layout *layout, const struct transformer *model, int layer)
{
    return work_repeats_before(layout, model, layer) > 0 && layout->zero == 3 && layout->recompute.what == RECOMPUTE_FULL &&
           !(layout->features & FEATURE_BIT(DP_OVERLAP));
}

/* The layers that are repeated with this one, which is the last of them, up to it. */
static void layer_recompute(struct layer_builder *b, int layer)
{
    struct layer_kind kind = layer_kind_of(b->model, layer);
    int again = work_repeats_before(b->layout, b->model, layer);
    b->recomputing = true;
    b->stops_early = layout_recomputes_by_need(b->layout);
    b->keeps_products = work_keeps_products(b->layout);
    b->products = 0;
    if (again > 0 && (b->layout->recompute.what == RECOMPUTE_FULL || b->keeps_products))
        for (int before = again - 1; before >= 0; before--)
            layer_forward(b, layer_kind_of(b->model, layer - before));
    else if (again > 0)
        layer_modules(b, kind, layout_recomputed_modules(b->layout));
    b->recomputing = b->stops_early = b->keeps_products = false;
}

/* A run of `repeat` layers equal to this one. */
static int32_t layer_pass(struct work_table *table, const struct layout *layout, const struct setting *setting, enum pass pass,
                          int layer, int32_t repeat)
{
    struct layer_builder b = layer_builder_of(table, layout, setting);
    const struct layer_kind kind = layer_kind_of(setting->model, layer);
    if (pass == PASS_FORWARD)
        layer_forward(&b, kind);
    if (pass == PASS_BACKWARD || pass == PASS_BACKWARD_INPUT)
        layer_recompute(&b, layer);
    if (pass != PASS_FORWARD)
        layer_backward(&b, kind, pass != PASS_BACKWARD_WEIGHT, pass != PASS_BACKWARD_INPUT);
    int32_t id = builder_close(&b, "layer", repeat);
    table->items[id].sequence.pauses = layout_checkpoints_in_python(layout, setting->model) &&
                                       work_repeats_before(layout, setting->model, layer) > 0 &&
                                       (pass == PASS_BACKWARD || pass == PASS_BACKWARD_INPUT);
    return id;
}

/* The head after the modules of multi-token prediction that follow it; backward the other way round. */
static int32_t head_pass(struct work_table *table, const struct layout *layout, const struct setting *setting, enum pass pass)
{
    struct layer_builder b = layer_builder_of(table, layout, setting);
    bool backward = pass != PASS_FORWARD, input = pass != PASS_BACKWARD_WEIGHT;
    bool weight = pass != PASS_BACKWARD_INPUT && adapter_trains(b.job, b.model, WHOLE_HEAD);
    const struct layer_kind kind = layer_kind_of(setting->model, setting->model->layers);
    if (!backward)
        head_works(&b, false, false, false);
    for (int i = 0; i < setting->model->mtp_layers; i++) { /* one more layer and one more prediction each */
        if (backward) {
            head_works(&b, true, input, weight);
            if (input)
                layer_recompute(&b, setting->model->layers);
            layer_backward(&b, kind, input, weight);
            prediction_backward(&b, input, weight);
        } else {
            prediction_forward(&b);
            layer_forward(&b, kind);
            head_works(&b, false, false, false);
        }
    }
    if (backward)
        head_works(&b, true, input, weight);
    return builder_close(&b, "head", 1);
}

static int32_t embedding_pass(struct work_table *table, const struct layout *layout, const struct setting *setting, bool backward)
{
    struct layer_builder b = layer_builder_of(table, layout, setting);
    embedding_works(&b, backward);
    return builder_close(&b, "embedding", 1);
}

/* Layer runs in the order the pass meets them: ascending forward, descending backward. */
static int add_layer_runs(struct work_table *table, const struct layout *layout, const struct setting *setting, enum pass pass,
                          struct layer_range range, int32_t *children, int n)
{
    const struct transformer *model = setting->model;
    int step = pass == PASS_FORWARD ? 1 : -1;
    int at = pass == PASS_FORWARD ? range.first : range.first + range.count - 1;
    int left = range.count;
    while (left > 0 && n < PASS_CHILDREN_MAX - 2) {
        struct layer_kind kind = layer_kind_of(model, at);
        int run = 1;
        while (run < left && layer_kind_equal(kind, layer_kind_of(model, at + step * run)) &&
               work_repeats_before(layout, model, at) == work_repeats_before(layout, model, at + step * run))
            run++;
        children[n++] = layer_pass(table, layout, setting, pass, at, run);
        at += step * run;
        left -= run;
    }
    return n;
}

int32_t work_add_pass(struct work_table *table, const struct layout *layout, const struct setting *setting, enum pass pass,
                      struct layer_range range, bool embedding, bool head)
{
    int32_t children[PASS_CHILDREN_MAX];
    int n = 0;
    bool forward = pass == PASS_FORWARD, first = adapter_trains(setting->job, setting->model, WHOLE_EMBEDDING);
    bool last = adapter_trains(setting->job, setting->model, WHOLE_HEAD); /* frozen ends have no gradients of weights */
    bool embeds = embedding && (forward || (first && pass != PASS_BACKWARD_WEIGHT));
    if (forward && embeds)
        children[n++] = embedding_pass(table, layout, setting, false);
    if (!forward && head && (last || pass != PASS_BACKWARD_WEIGHT))
        children[n++] = head_pass(table, layout, setting, pass);
    n = add_layer_runs(table, layout, setting, pass, range, children, n);
    if (forward && head)
        children[n++] = head_pass(table, layout, setting, pass);
    if (!forward && embeds)
        children[n++] = embedding_pass(table, layout, setting, true);
    int32_t id = work_add_sequence(table, CLASS_GEMM, pass_name(pass), children, n, 1);
    table->items[id].sequence.host_forward = forward;
    table->items[id].sequence.host_paced = !(layout->features & FEATURE_BIT(CUDA_GRAPHS));
    return id;
}

/* Bytes moved per parameter. Adam reads master weight and two moments, in fp32 12, and writes them and the half-precision weight
 * (14); LAMB reads and writes an update once more for its norms (8); SGD keeps one moment (8 + 10). Narrower moments move what
 * they take. What Muon leaves to Adam is Adam's (muon.h has the rest). The gradient is read by the update, before it for the
 * norm, and afterwards zeroed. Gradients of fp16 training that were accumulated and reduced in fp16 stay so, and the update
 * divides by the loss scale as it reads; where they are fp32, a pass of its own divides and looks for infinities (8). */
static double optimizer_bytes(const struct job *job, int gradient_passes)
{
    bool half = job->precision == PRECISION_FP16 && job->gradient_precision == PRECISION_FP16;
    double state = 2 * optimizer_state_bytes(job) + 2 + (job->optimizer == OPTIMIZER_LAMB ? 8 : 0);
    double gradient = half ? 2 : 4;
    double unscaled = job->precision == PRECISION_FP16 && !half ? 8 : 0;
    return state + gradient_passes * gradient + unscaled;
}

/* Weights of products in narrow precision are cast when they have changed: read, and written both ways, as other operands. */
static double weight_cast_bytes(const struct job *job)
{
    return precision_is_narrow(job->precision) ? 2 + 2 * precision_bytes(job->precision) : 0;
}

static int32_t add_update(struct work_table *table, const char *label, double bytes)
{
    struct work work = {.kind = WORK_MEMORY_BOUND,
                        .class = CLASS_OPTIMIZER,
                        .label = label,
                        .memory = {.bytes = bytes, .count = 8, .kernel = MEMORY_OPTIMIZER}};
    return work_add(table, work);
}

int32_t work_add_optimizer(struct work_table *table, const struct setting *setting, double updated, double cast)
{
    return add_update(table, "optimizer", updated * optimizer_bytes(setting->job, 3) + cast * weight_cast_bytes(setting->job));
}

int32_t work_add_device_optimizer(struct work_table *table, const struct setting *setting, double updated, double cast)
{
    double gradient = 2 * precision_bytes(setting->job->gradient_precision);
    return add_update(table, updated > 0 ? WORK_NORM_LABEL : WORK_CAST_LABEL,
                      updated * gradient + cast * weight_cast_bytes(setting->job));
}

int32_t work_add_kept_update(struct work_table *table, const struct setting *setting, double updated)
{
    return add_update(table, "optimizer", updated * optimizer_bytes(setting->job, 1));
}

/* `n` layers like the one at `index`. Tensor parallelism divides most of their parameters, key/value heads as long as there are
 * as many. */
static void add_layers(struct stage_parameters *p, const struct layout *layout, const struct transformer *model, int index, int n)
{
    double dense = transformer_layer_parameters(model, index, false), all = transformer_layer_parameters(model, index, true);
    double whole = transformer_layer_undivided(model, index, false), head = transformer_key_value_head(model, index);
    double experts = all - dense, undivided = transformer_layer_undivided(model, index, true) - whole;
    double repeated = head > 0 ? layout_kv_heads(layout, model) - (double)model->kv_heads / layout->tp : 0;
    p->dense += n * (whole + (dense - whole) / layout->tp + repeated * head);
    p->experts += n * (undivided + (experts - undivided) / layout_expert_tp(layout)) / layout->ep;
}

/* Kind by kind, as layers of a kind are equal. */
static struct stage_parameters range_parameters(const struct layout *layout, const struct transformer *model,
                                                struct layer_range range)
{
    struct stage_parameters p = {0};
    struct layer_kinds kinds = layer_kinds_of(model, range.first, range.count);
    for (int kind = 0; kind < N_LAYER_KINDS; kind++)
        if (kinds.count[kind] > 0)
            add_layers(&p, layout, model, kinds.one[kind], kinds.count[kind]);
    return p;
}

struct stage_parameters work_stage_parameters(const struct layout *layout, const struct setting *setting,
                                              struct layer_range range, bool embedding, bool head)
{
    const struct transformer *model = setting->model;
    struct stage_parameters p = range_parameters(layout, model, range);
    double table = work_table_parameters(layout, model);
    p.dense += work_tables(layout, model, embedding, head) * table;
    p.dense += adapter_parameters(layout, setting, range);
    if (embedding)
        p.dense += (double)transformer_position_rows(model) * (double)model->hidden;
    if (head)
        p.dense += (double)model->hidden * (model->norm == NORM_LAYER ? 2 : 1);
    if (head && model->mtp_layers) {
        double h = (double)model->hidden, norms = 3 * h * (model->norm == NORM_LAYER ? 2 : 1);
        add_layers(&p, layout, model, model->layers, model->mtp_layers);
        p.dense += model->mtp_layers * (2 * h * h / layout->tp + norms);
    }
    return p;
}

struct stage_parameters work_trained_parameters(const struct layout *layout, const struct setting *setting,
                                                struct layer_range range, bool embedding, bool head)
{
    if (!job_adapts(setting->job))
        return work_stage_parameters(layout, setting, range, embedding, head);
    double dense = adapter_parameters(layout, setting, range) + adapter_tables(layout, setting, embedding, head);
    return (struct stage_parameters){.dense = dense};
}

double work_own_parameters(const struct layout *layout, struct stage_parameters parameters)
{
    if (layout->zero == 0)
        return parameters.dense + parameters.experts;
    return parameters.dense / layout_group_size(layout, GROUP_DP) +
           parameters.experts / layout_group_size(layout, GROUP_EXPERT_DP);
}

bool work_reduces_whole(const struct layout *layout, const struct job *job)
{
    return layout->zero == 0 || (job->optimizer == OPTIMIZER_MUON && job->muon_shard == MUON_LAYER_WISE);
}

int work_gradient_buckets(const struct layout *layout, struct stage_parameters trained, int layers)
{
    static const double bucket_parameters = 40e6, per_replica = 1e6;
    enum { BUCKETS_MIN = 4 };
    if (layers <= 1)
        return 1;
    double bucket = fmax(bucket_parameters, per_replica * layout->dp * layout->cp);
    double wanted = (trained.dense + trained.experts) / bucket;
    int least = layers < BUCKETS_MIN ? layers : BUCKETS_MIN;
    return wanted >= layers ? layers : wanted > least ? (int)wanted : least;
}

double work_reduced_parameters(const struct layout *layout, const struct job *job, struct stage_parameters parameters)
{
    return work_reduces_whole(layout, job) ? parameters.dense + parameters.experts : work_own_parameters(layout, parameters);
}

double work_cast_parameters(const struct layout *layout, struct stage_parameters layers)
{
    return layout->zero == 3 ? work_own_parameters(layout, layers) : layers.dense + layers.experts;
}
