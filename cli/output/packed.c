#include "cli/output/packed.h"

#include "cli/output/table.h"
#include "model/cost/step/packing.h"

void packed_write(const struct setting *setting, feature_set features, FILE *out)
{
    const struct documents *documents = &setting->job->documents;
    char mean[32];
    if (!job_masks_documents(setting->job))
        return;
    struct packing packing = packing_of(setting, features);
    if (documents->mean < 100)
        snprintf(mean, sizeof mean, "%.3g", documents->mean);
    else
        grouped((int64_t)(documents->mean + 0.5), mean, sizeof mean);
    fprintf(out, "packs    documents of %s tokens on average (spread %g)", mean, documents->spread);
    if (packing.all_pairs <= 0)
        fputs(": no layer has attention\n", out);
    else
        fprintf(out, ": masks between them leave %.1f %% of attention's pairs%s\n", 100 * packing.pairs / packing.all_pairs,
                packing.skips ? "" : ", and all are computed: attention is not fused");
}

void packed_json(const struct setting *setting, feature_set features, json_t *object)
{
    if (!job_masks_documents(setting->job))
        return;
    struct packing packing = packing_of(setting, features);
    double left = packing.all_pairs > 0 ? 100 * packing.pairs / packing.all_pairs : 100;
    json_object_set_new(object, "documents",
                        json_pack("{s:f, s:f}", "pairs_left_pct", left, "computed_pct", packing.skips ? left : 100.0));
}
