#include "model/cost/kernel/data_loading.h"

static const double TOKEN_BYTES = 8 + 8; /* token and label */

static struct work_data batch_of(const struct layout *layout, const struct setting *setting)
{
    double samples = (double)(setting->job->global_batch / layout->dp);
    double tokens = samples * (double)setting->job->seq_len / layout->cp;
    return (struct work_data){.samples = samples, .bytes = tokens * TOKEN_BYTES};
}

int32_t work_add_data(struct work_table *table, const struct layout *layout, const struct setting *setting)
{
    return work_add(table,
                    (struct work){.kind = WORK_DATA, .class = CLASS_HOST, .label = "data", .data = batch_of(layout, setting)});
}

struct cost data_loading_cost(const struct cluster *cluster, const struct work_data *data)
{
    return (struct cost){
        .launch_s = data->samples * cluster->data_sample_s,
        .bandwidth_s = cluster->gpu.pcie_rate > 0 ? data->bytes / cluster->gpu.pcie_rate : 0,
    };
}

double data_loading_seconds(const struct layout *layout, const struct setting *setting)
{
    if (layout->features & FEATURE_BIT(ASYNC_DATA))
        return 0;
    struct work_data batch = batch_of(layout, setting);
    return cost_seconds(data_loading_cost(setting->cluster, &batch));
}
