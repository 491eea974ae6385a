#include "cli/oversubscribed.h"

#include <math.h>

#include "model/base/append.h"

static double load_of(const struct group_span *span, const struct cluster *cluster)
{
    double leaf = fmax(1, cluster_leaf_oversubscription(cluster)), pod = fmax(1, cluster_pod_oversubscription(cluster));
    double above_leaves = span->leaves > 1 && leaf > 1 ? leaf * span->leaves / span->domains : 0;
    double above_pods = span->pods > 1 && pod > 1 ? leaf * pod * span->pods / span->domains : 0;

    return fmax(above_leaves, above_pods);
}

double oversubscribed_load(const struct layout *layout, const struct cluster *cluster, enum group_kind *kind)
{
    static const enum group_kind rings[] = {GROUP_TP, GROUP_CP, GROUP_DP, GROUP_EXPERT_DP, GROUP_REPLICA, GROUP_PP};
    double most = 0;

    for (size_t i = 0; i < sizeof rings / sizeof rings[0]; i++) {
        const struct group_span span = layout_span(layout, cluster, rings[i]);
        double load = load_of(&span, cluster);
        if (load > most) {
            most = load;
            *kind = rings[i];
        }
    }
    return most;
}

char *oversubscribed_text(const struct layout *layout, const struct cluster *cluster, char *buffer, size_t size)
{
    double leaf = cluster_leaf_oversubscription(cluster), pod = cluster_pod_oversubscription(cluster);
    enum group_kind kind = GROUP_DP;
    double load = oversubscribed_load(layout, cluster, &kind);

    buffer[0] = '\0';
    if (load <= 0)
        return buffer;
    text_append(buffer, size, "the fabric is oversubscribed (");
    if (leaf > 1)
        text_append(buffer, size, "%.3g:1 above leaves", leaf);
    if (pod > 1)
        text_append(buffer, size, "%s%.3g:1 above pods", leaf > 1 ? ", " : "", pod);
    text_append(buffer, size, "): while NICs are full, ");
    if (kind == GROUP_PP)
        text_append(buffer, size, "messages between pipeline stages");
    else
        text_append(buffer, size, "rings of %s in order", group_kind_name(kind));
    text_append(buffer, size, " fill it to %.0f %%", 100 * load);
    return text_append(buffer, size,
                       load > 1 ? ", which is not charged here: --network flow shows what that costs"
                                : "; --network flow shows what paths that meet cost, --placement random what scattered ranks do");
}
