#include "cli/output/trained.h"

#include "model/base/units.h"
#include "model/cost/work/adapter.h"

void trained_write(const struct setting *setting, feature_set features, FILE *out)
{
    const struct adapter *adapter = &setting->job->adapter;
    char trained[32], all[32], targets[64], wholes[64];
    if (!job_adapts(setting->job))
        return;
    struct adapted_model model = adapted_model_of(setting, features);
    fprintf(out, "trains   %s of %s parameters: adapters of rank %lld beside %s%s%s\n",
            quantity_format(model.trained, DIM_COUNT, trained, sizeof trained),
            quantity_format(model.total, DIM_COUNT, all, sizeof all), (long long)adapter->rank,
            adapter_targets_text(adapter->targets, ", ", targets, sizeof targets), adapter->whole ? "; whole: " : "",
            adapter_wholes_text(adapter->whole, ", ", wholes, sizeof wholes));
}

void trained_json(const struct setting *setting, feature_set features, json_t *object)
{
    if (!job_adapts(setting->job))
        return;
    struct adapted_model model = adapted_model_of(setting, features);
    json_object_set_new(object, "parameters", json_real(model.total));
    json_object_set_new(object, "trained_parameters", json_real(model.trained));
}
