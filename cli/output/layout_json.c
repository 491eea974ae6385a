#include "cli/output/layout_json.h"

json_t *layout_json(const struct layout *layout)
{
    char recompute[RECOMPUTE_TEXT], offload[OFFLOAD_TEXT], comm[CP_COMM_TEXT];
    json_t *json =
        json_pack("{s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:s, s:s, s:b}", "tp", layout->tp, "pp", layout->pp, "vpp",
                  layout->vpp, "cp", layout->cp, "dp", layout->dp, "ep", layout->ep, "zero", layout->zero, "micro_batch",
                  layout->micro_batch, "recompute", recompute_format(layout->recompute, recompute, sizeof recompute), "schedule",
                  schedule_name(layout->schedule), "sequence_parallel", layout->sequence_parallel);
    if (layout->cp_comm)
        json_object_set_new(json, "cp_comm", json_string(cp_comm_format(layout->cp_comm, comm, sizeof comm)));
    if (layout->etp)
        json_object_set_new(json, "etp", json_integer(layout->etp));
    if (layout->shard)
        json_object_set_new(json, "shard", json_integer(layout->shard));
    if (!offload_is_none(&layout->offload))
        json_object_set_new(json, "offload", json_string(offload_format(&layout->offload, offload, sizeof offload)));
    return json;
}

json_t *features_json(feature_set features)
{
    json_t *json = json_array();
    for (int i = 0; i < N_FEATURES; i++)
        if (features >> i & 1)
            json_array_append_new(json, json_string(feature_name((enum feature)i)));
    return json;
}

json_t *cost_by_class_json(const struct cost_by_class *by)
{
    json_t *json = json_object();
    for (int i = 0; i < N_WORK_CLASSES; i++)
        json_object_set_new(json, work_class_name((enum work_class)i), json_real(by->s[i]));
    return json;
}
