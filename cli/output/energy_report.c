#include "cli/output/energy_report.h"

#include <math.h>
#include <stdio.h>

#include "cli/output/table.h"
#include "model/base/order.h"
#include "model/base/units.h"

static const double J_PER_MWH = 3.6e9;

char *megawatt_hours_text(double joules, char *buffer, size_t size)
{
    double mwh = joules / J_PER_MWH;

    return three_digits(mwh, buffer, size);
}

char *energy_text(double joules, char *buffer, size_t size)
{
    char number[32];

    if (joules < J_PER_MWH * 1e-5)
        snprintf(buffer, size, "%s J", three_digits(joules, number, sizeof number));
    else if (joules < J_PER_MWH)
        snprintf(buffer, size, "%s kWh", three_digits(joules / J_PER_MWH * 1e3, number, sizeof number));
    else
        snprintf(buffer, size, "%s MWh", megawatt_hours_text(joules, number, sizeof number));
    return buffer;
}

char *power_bound_text(const struct power_bound *bound, char *buffer, size_t size)
{
    bool nodes = bound->count == POWER_NODES;
    char watts[32];

    quantity_format(bound->each_w, DIM_POWER, watts, sizeof watts);
    snprintf(buffer, size, "%s (%s), without %s; PUE %.3g%s", nodes ? "nodes at full load" : "GPUs at board power", watts,
             nodes ? "switches and storage" : "hosts and network", bound->pue, bound->pue_assumed ? " assumed" : "");
    return buffer;
}

const char *power_count_name(enum power_count count)
{
    return count == POWER_NODES ? "nodes" : "boards";
}

const char *power_count_text(enum power_count count)
{
    return count == POWER_NODES ? "nodes at full load, without switches and storage; PUE of each cluster, 1 if unknown"
                                : "GPUs at board power, without hosts and network; PUE of each cluster, 1 if unknown";
}

bool power_bounds_alike(const struct power_bound *a, const struct power_bound *b)
{
    return a->count == b->count && double_compare(&a->each_w, &b->each_w) == 0 && double_compare(&a->pue, &b->pue) == 0 &&
           a->pue_assumed == b->pue_assumed;
}

json_t *energy_json(const struct power_bound *bound, double gpus, double gpu_hours, double tokens_per_s)
{
    if (bound->count == POWER_UNKNOWN)
        return json_null();
    double power = bound->gpu_w * gpus;
    json_t *json = json_pack("{s:s, s:f, s:f, s:b, s:f}", "counted", power_count_name(bound->count), "each_w", bound->each_w,
                             "pue", bound->pue, "pue_assumed", bound->pue_assumed, "power_w", power);
    json_object_set_new(json, "energy_j", gpu_hours > 0 ? json_real(power_bound_energy(bound, gpu_hours)) : json_null());
    json_object_set_new(json, "j_per_token", tokens_per_s > 0 ? json_real(power / tokens_per_s) : json_null());
    return json;
}
