#include "cli/catalog/experiment_template.h"

#include <string.h>

#include "cli/catalog/catalog_template.h"
#include "model/spec/catalog.h"
#include "model/spec/job.h"
#include "model/spec/schemas.h"

enum { SAID_MAX = 8 }; /* the last of `said` is NULL */

/* A part: its keys, with what values; which of them are no comments, behind the name that it builds on. */
struct part {
    const char *name;
    const struct schema *schema;
    const char *bases[TEMPLATE_EXAMPLES]; /* entries of the catalog: the first is the base */
    const char *values;                   /* JSON; of parts without entries */
    const char *said[SAID_MAX];
};

/* Values of commented keys are examples, each of which can be read; rows that have none show what is taken without them. */
static const struct part parts[] = {
    {.name = "model", .schema = &transformer_schema, .bases = {"llama3-8b", "mixtral-8x7b", "deepseek-v3", "qwen3-next-80b-a3b"}},
    {.name = "cluster", .schema = &cluster_schema, .bases = {"dgx-h100", "frontier"}},
    {.name = "job",
     .schema = &job_schema,
     .values = "{\"global_batch\": 128, \"batch_tokens\": 1048576, \"seq_len\": 8192, \"moment_precision\": \"fp32\", "
               "\"muon_tp\": \"blockwise\","
               " \"muon_shard\": \"elements\", \"window\": 4096, \"memory_margin\": 0.1, \"tokens\": \"300B\", \"clip\": 1,"
               " \"features\": [\"flash_attention2\", \"fused_ops\", \"tp_overlap\", \"pp_overlap\", \"dp_overlap\","
               " \"async_data\", \"fused_loss\"], \"dropout\": 0.1, \"expert_load\": 1.2, \"capacity_factor\": 1.25,"
               " \"pad_to_capacity\": true, \"adapter\": {\"rank\": 16, \"targets\": [\"qkv\", \"projection\", \"mlp_up\","
               " \"mlp_down\"], \"whole\": [\"embedding\", \"head\"]}, \"documents\": {\"mean\": 1200, \"spread\": 1.1}}",
     .said = {"global_batch", "seq_len", "precision", "optimizer"}},
    {.name = "layout",
     .schema = &layout_schema,
     .values = "{\"tp\": 2, \"cp\": 1, \"cp_comm\": \"ring\", \"pp\": 2, \"vpp\": 1, \"dp\": 16, \"ep\": 1, \"etp\": 1,"
               " \"zero\": 1, \"shard\": 0, \"micro_batch\": 1, \"sequence_parallel\": true, \"recompute\": \"selective\","
               " \"offload\": \"optimizer\", \"schedule\": \"1f1b\", \"auto\": true}",
     .said = {"tp", "pp", "zero", "micro_batch"}},
    {.name = "faults",
     .schema = &faults_schema,
     .values =
         "{\"trace\": \"llama3-54d\", \"model\": \"llama3\", \"policy\": \"megascale\", \"checkpoint\": \"two-stage\","
         " \"horizon\": \"30d\", \"checkpoint_interval\": \"30min\", \"checkpoint_steps\": 100,"
         " \"checkpoint_block\": \"5s\", \"detect\": \"5min\", \"restart\": \"15min\", \"repair\": \"5h\", \"spares\": 2}"}};

static json_t *tree_of(const struct part *part, int k, struct diags *diags)
{
    struct catalog_entry entry;
    if (part->values)
        return k == 0 ? json_loads(part->values, 0, NULL) : NULL;
    if (!part->bases[k] || catalog_entry(part->bases[k], &entry, diags) != STATUS_OK)
        return NULL;
    return entry.kind == CATALOG_CLUSTERS ? cluster_write(&entry.cluster, true) : schema_write(part->schema, &entry.model);
}

/* What job.features chooses from. */
static void write_features(FILE *out)
{
    static const char *const what[] = {
#define X(id, name, text) text,
        FEATURES(X)
#undef X
    };
    fputs("# Features:\n", out);
    for (int i = 0; i < N_FEATURES; i++)
        fprintf(out, "#     %-20s %s\n", feature_name((enum feature)i), what[i]);
}

static enum status write_part(const struct part *part, const char *help, FILE *out, struct diags *diags)
{
    size_t before = diags->n_errors;
    bool said = part->said[0] || part->bases[0];
    json_t *trees[TEMPLATE_EXAMPLES];
    for (int k = 0; k < TEMPLATE_EXAMPLES; k++)
        trees[k] = tree_of(part, k, diags);
    if (diags->n_errors == before) {
        fputc('\n', out);
        if (part->schema == &job_schema)
            write_features(out);
        template_line(part->name, "", help, said, 0, out);
        if (part->bases[0])
            template_line("base", part->bases[0],
                          "keys that are left out have the values of this entry: a name, a file or a config.json", true, 1, out);
        if (part->schema == &cluster_schema)
            template_line("gpus", "64", "GPUs that the job uses; default: all of the cluster", true, 1, out);
        template_rows(part->schema, part->said, trees, 1, out);
    }
    for (int k = 0; k < TEMPLATE_EXAMPLES; k++)
        json_decref(trees[k]);
    return diags->n_errors == before ? STATUS_OK : STATUS_BAD_INPUT;
}

static const struct part *part_of(const char *key)
{
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (strcmp(parts[i].name, key) == 0)
            return &parts[i];
    return NULL;
}

enum status experiment_template_write(FILE *out, struct diags *diags)
{
    enum status status = STATUS_OK;
    fputs("# An experiment: the model, the cluster, the job, its layout and its faults. `msim step` and other commands read "
          "it,\n# and --set job.seq_len=4096 changes any key. Keys in comments show the value of the base, the default or an\n# "
          "example.\n",
          out);
    for (size_t i = 0; i < experiment_schema.n_rows && status == STATUS_OK; i++) {
        const struct field *row = &experiment_schema.rows[i];
        const struct part *part = part_of(row->key);
        if (part)
            status = write_part(part, row->help, out, diags);
        else {
            fputc('\n', out);
            template_line(row->key, row->fallback ? row->fallback : "", row->help, true, 0, out);
        }
    }
    return status;
}
