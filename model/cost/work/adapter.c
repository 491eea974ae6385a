/* adapter.c - numbers of parameters of adapters, and of tables trained with them. */
#include "model/cost/work/adapter.h"

#include "model/cost/work/work_layer.h"

static double layer_parameters(const struct layer_builder *b, struct layer_kind kind)
{
    struct linear adapted[ADAPTED_MAX];
    double parameters = 0;
    for (int i = 0, n = layer_adapted(b, kind, adapted); i < n; i++)
        parameters += adapter_elements(b, &adapted[i]);
    return parameters;
}

double adapter_parameters(const struct layout *layout, const struct setting *setting, struct layer_range range)
{
    double parameters = 0;
    if (!job_adapts(setting->job))
        return 0;
    struct layer_builder b = layer_builder_of(NULL, layout, setting);
    struct layer_kinds kinds = layer_kinds_of(setting->model, range.first, range.count);
    for (int kind = 0; kind < N_LAYER_KINDS; kind++)
        if (kinds.count[kind] > 0)
            parameters += kinds.count[kind] * layer_parameters(&b, layer_kind_of(setting->model, kinds.one[kind]));
    return parameters;
}

double adapter_tables(const struct layout *layout, const struct setting *setting, bool embedding, bool head)
{
    const struct transformer *model = setting->model;
    bool first = adapter_trains(setting->job, model, WHOLE_EMBEDDING), last = adapter_trains(setting->job, model, WHOLE_HEAD);
    int tables =
        model->tied_embeddings ? first * work_tables(layout, model, embedding, head) : (embedding && first) + (head && last);
    return tables * work_table_parameters(layout, model);
}

int adapter_count(const struct layout *layout, const struct setting *setting, struct layer_kind kind)
{
    struct linear adapted[ADAPTED_MAX];
    if (!job_adapts(setting->job))
        return 0;
    struct layer_builder b = layer_builder_of(NULL, layout, setting);
    return layer_adapted(&b, kind, adapted);
}

static struct layout one_rank(feature_set features)
{
    return (struct layout){.tp = 1, .cp = 1, .pp = 1, .vpp = 1, .dp = 1, .ep = 1, .micro_batch = 1, .features = features};
}

double adapter_parameters_of_model(const struct setting *setting, feature_set features)
{
    const struct layout alone = one_rank(features);
    return adapter_parameters(&alone, setting, (struct layer_range){0, setting->model->layers});
}

struct adapted_model adapted_model_of(const struct setting *setting, feature_set features)
{
    struct parameter_count count;
    const struct layout alone = one_rank(features);
    double adapters = adapter_parameters_of_model(setting, features);
    transformer_parameters(setting->model, &count);
    return (struct adapted_model){.trained = adapters + adapter_tables(&alone, setting, true, true),
                                  .total = count.total + adapters};
}
