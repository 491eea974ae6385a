#include "cli/output/oversubscribed.h"

#include "cli/output/table.h"
#include "model/base/append.h"
#include "model/cost/kernel/machine.h"
#include "model/cost/kernel/oversubscription.h"

/* Where trees are asked for what is reduced and not divided takes them; where NCCL chooses, only what is short. */
static bool takes_trees(const struct layout *layout, const struct cluster *cluster, enum group_kind kind)
{
    if (cluster->collective_algorithm != ALGORITHM_TREE)
        return false;
    switch (kind) {
    case GROUP_TP: return !layout->sequence_parallel;
    case GROUP_DP:
    case GROUP_EXPERT_DP: return layout->zero == 0;
    case GROUP_REPLICA: return true;
    default: return false;
    }
}

static double load_of(const struct layout *layout, const struct cluster *cluster, enum group_kind kind)
{
    const struct group_span span = replica_span(layout, cluster, kind);

    if (kind == GROUP_EP)
        return oversubscription_of_all_to_all(cluster, span);
    if (takes_trees(layout, cluster, kind))
        return oversubscription_of_trees(cluster, span);
    return kind == GROUP_PP ? oversubscription_of_stages(cluster, span) : oversubscription_of_rings(cluster, span);
}

double oversubscribed_load(const struct layout *layout, const struct cluster *cluster, enum group_kind *kind)
{
    static const enum group_kind kinds[] = {GROUP_TP, GROUP_CP, GROUP_DP, GROUP_EXPERT_DP, GROUP_REPLICA, GROUP_EP, GROUP_PP};
    bool narrow = cluster_leaf_oversubscription(cluster) > 1 || cluster_pod_oversubscription(cluster) > 1;
    double most = narrow ? 0 : 1; /* ways around fill a dragonfly that would be wide enough */

    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        double load = load_of(layout, cluster, kinds[i]);
        if (load > most) {
            most = load;
            *kind = kinds[i];
            narrow = true;
        }
    }
    return narrow ? most : 0;
}

double oversubscribed_text(const struct layout *layout, const struct cluster *cluster, char *buffer, size_t size)
{
    double leaf = cluster_leaf_oversubscription(cluster), pod = cluster_pod_oversubscription(cluster);
    enum group_kind kind = GROUP_DP;
    char ratio[32];
    double load = oversubscribed_load(layout, cluster, &kind);

    buffer[0] = '\0';
    if (load <= 0)
        return 0;
    text_append(buffer, size, "the fabric is oversubscribed (");
    if (leaf > 1)
        text_append(buffer, size, "%s:1 above leaves", ratio_text(leaf, ratio, sizeof ratio));
    if (pod > 1)
        text_append(buffer, size, "%s%s:1 above pods", leaf > 1 ? ", " : "", ratio_text(pod, ratio, sizeof ratio));
    if (leaf <= 1 && pod <= 1)
        text_append(buffer, size, "where a dragonfly's ways go around");
    text_append(buffer, size, "): while NICs are full, ");
    if (kind == GROUP_PP)
        text_append(buffer, size, "messages between pipeline stages");
    else
        text_append(buffer, size,
                    kind == GROUP_EP                     ? "all-to-all of %s"
                    : takes_trees(layout, cluster, kind) ? "trees of %s in order"
                                                         : "rings of %s in order",
                    group_kind_name(kind));
    text_append(buffer, size, " fill it to %.0f %%", 100 * load);
    if (load > 1.005)
        text_append(buffer, size, ", so %s %s times as long (charged)", kind == GROUP_PP ? "those that leave take" : "they take",
                    ratio_text(load, ratio, sizeof ratio));
    text_append(buffer, size, "; --network flow shows what exchanges that meet cost, --placement random what scattered ranks do");
    return load;
}
