#include "sim/weeks/startup.h"

/* 1,047 s and 361 s over 2 n G = 4,587,520 operations. */
#define TCP_S   (1047 / 4587520.0)
#define REDIS_S (361 / 4587520.0)
enum { GROUPS_OF_A_RANK = 6, OPERATIONS = 2 };

struct startup_options startup_usual(void)
{
    return (struct startup_options){.store = STORE_ORDERED, .scheduling_s = 60, .process_s = 30, .warm_up_s = 60};
}

/* Process groups of a layout. */
static double startup_groups(const struct layout *layout, int gpus)
{
    double n = gpus;
    return n / layout->tp + 3 * n / layout->pp + n / layout->dp + n / ((double)layout->tp * layout->pp);
}

double startup_groups_s(int n, double groups, int own, enum store_kind store)
{
    if (store == STORE_ORDERED)
        return OPERATIONS * own * (double)n * REDIS_S;
    return OPERATIONS * (double)n * groups * (store == STORE_TCP ? TCP_S : REDIS_S);
}

double startup_communicators_s(const struct layout *layout, int gpus, enum store_kind store)
{
    return startup_groups_s(gpus, startup_groups(layout, gpus), GROUPS_OF_A_RANK, store);
}

struct startup startup_of(const struct startup_options *options, const struct layout *layout, const struct setting *setting,
                          int new_nodes, double loading_s)
{
    const struct cluster *cluster = setting->cluster;
    struct startup startup = {
        .scheduling_s = options->scheduling_s,
        .process_s = options->process_s,
        .communicators_s = startup_communicators_s(layout, setting->gpus, options->store),
        .loading_s = loading_s,
        .warm_up_s = options->warm_up_s,
    };
    double node_rate = cluster->nics_per_node * cluster->nic_rate;
    if (options->image_bytes > 0 && options->registry_rate > 0 && new_nodes > 0) {
        double rate = options->registry_rate / new_nodes;
        startup.image_s = options->image_bytes / (rate < node_rate || node_rate <= 0 ? rate : node_rate);
    }
    return startup;
}

double startup_hot_s(const struct startup *startup)
{
    return startup->process_s + startup->communicators_s + startup->loading_s + startup->warm_up_s;
}

double startup_total_s(const struct startup *startup)
{
    return startup->scheduling_s + startup->image_s + startup_hot_s(startup);
}
