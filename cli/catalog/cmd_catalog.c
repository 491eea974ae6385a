/*
 * msim catalog - list and show models, GPUs, clusters, fault models and recovery policies.
 */
#include <stdlib.h>
#include <string.h>

#include "cli/catalog/catalog_show.h"
#include "cli/catalog/catalog_table.h"
#include "cli/catalog/catalog_template.h"
#include "cli/catalog/experiment_template.h"
#include "cli/options/command.h"
#include "cli/output/result.h"

/* --- the command ---------------------------------------------------------------------------------------------------------- */

static enum status list_json(struct invocation *call, const struct alias_table *aliases, const bool *wanted)
{
    json_t *result = result_create(call, NULL);
    enum status status = STATUS_OK;
    for (int kind = 0; kind < N_LISTED_KINDS && status == STATUS_OK; kind++) {
        char **names = NULL;
        size_t n = 0;
        if (!wanted[kind])
            continue;
        if (kind < N_CATALOG_KINDS)
            status = catalog_names((enum catalog_kind)kind, &names, &n, &call->diags);
        else
            names = catalog_recovery_names(kind, &n);
        json_t *list = json_array();
        for (size_t i = 0; status == STATUS_OK && i < n; i++) {
            json_t *entry = catalog_entry_json(kind, names[i], aliases, &call->diags);
            if (entry)
                json_array_append_new(list, entry);
            else
                status = STATUS_BAD_INPUT;
        }
        json_object_set_new(result, catalog_kinds[kind].key, list);
        if (status == STATUS_OK)
            names_free(names);
    }
    if (status == STATUS_OK)
        return result_write(call, result);
    json_decref(result);
    return status;
}

static enum status list_tables(struct invocation *call, const struct alias_table *aliases, const bool *wanted)
{
    enum status status = STATUS_OK;
    bool first = true;
    for (int kind = 0; kind < N_LISTED_KINDS; kind++) {
        struct table table = {0};
        if (!wanted[kind])
            continue;
        enum status one = kind < N_CATALOG_KINDS ? catalog_table_fill(&table, (enum catalog_kind)kind, aliases, &call->diags)
                                                 : catalog_recovery_table(&table, kind, &call->diags);
        status = one == STATUS_OK ? status : one;
        if (call->format == FORMAT_TEXT)
            fprintf(call->out, "%s%s%s%s\n", first ? "" : "\n", tint_start(TINT_STRONG, call->colour), catalog_kinds[kind].title,
                    tint_end(TINT_STRONG, call->colour));
        table_write(&table, call);
        table_free(&table);
        first = false;
    }
    return status;
}

static enum status usage(struct invocation *call, const char *word)
{
    static const char *const words[] = {"models",     "gpus", "clusters", "fault-models", "policies",
                                        "experiment", "list", "show",     "template"};
    const char *near = nearest_name(word, words, sizeof words / sizeof *words);
    if (near && strcmp(near, "experiment") == 0)
        diag_error(&call->diags, PLACE_NONE,
                   "'%.60s' cannot be listed; 'msim catalog template experiment' writes an experiment to start from", word);
    else if (near)
        diag_error(&call->diags, PLACE_NONE, "'%.60s' cannot be listed; did you mean '%s', or 'msim catalog show %.60s'?", word,
                   near, word);
    else
        diag_error(
            &call->diags, PLACE_NONE,
            "'%.60s' cannot be listed (models, gpus, clusters, fault-models, policies); did you mean 'msim catalog show %.60s'?",
            word, word);
    return STATUS_USAGE;
}

static enum status write_template(struct invocation *call)
{
    const char *word = call->n_operands == 2 ? call->operands[1] : "";
    bool experiment = strcmp(word, "experiment") == 0;
    int kind = *word ? catalog_kind_of_word(word) : -1;
    if (kind < 0 && !experiment) {
        diag_error(&call->diags, PLACE_NONE,
                   "the kind of template is missing; write 'msim catalog template experiment', model, gpu, cluster, fault-model "
                   "or policy");
        return STATUS_USAGE;
    }
    if (call->format == FORMAT_TEXT)
        return experiment ? experiment_template_write(call->out, &call->diags)
                          : catalog_template_write(kind, call->out, &call->diags);
    diag_error(&call->diags, PLACE_NONE, "a template is always YAML; remove --format, or use 'msim catalog show NAME'");
    return STATUS_USAGE;
}

static enum status list_or_show(struct invocation *call, const struct alias_table *aliases)
{
    bool wanted[N_LISTED_KINDS] = {false}, any = false;
    int first = call->n_operands && strcmp(call->operands[0], "list") == 0;
    if (call->n_operands && strcmp(call->operands[0], "show") == 0) {
        if (call->n_operands > 1)
            return catalog_show(call, aliases);
        diag_error(&call->diags, PLACE_NONE, "the name is missing; for example: msim catalog show gpt-175b-megascale");
        return STATUS_USAGE;
    }
    if (call->n_operands && strcmp(call->operands[0], "template") == 0)
        return write_template(call);
    for (int i = first; i < call->n_operands; i++) {
        int kind = 0;
        while (kind < N_LISTED_KINDS && strcmp(call->operands[i], catalog_kinds[kind].many) != 0)
            kind++;
        if (kind == N_LISTED_KINDS)
            return usage(call, call->operands[i]);
        wanted[kind] = any = true;
    }
    int n_wanted = 0;
    for (int kind = 0; kind < N_LISTED_KINDS; kind++)
        n_wanted += wanted[kind] |= !any;
    if (call->format == FORMAT_CSV && n_wanted > 1) {
        diag_error(&call->diags, PLACE_NONE,
                   "a CSV file holds one table; specify models, gpus, clusters, fault-models or policies");
        return STATUS_USAGE;
    }
    return call->format == FORMAT_JSON ? list_json(call, aliases, wanted) : list_tables(call, aliases, wanted);
}

static enum status run(struct invocation *call)
{
    struct alias_table aliases;
    enum status status = alias_table_load(&aliases, &call->diags);
    if (status == STATUS_OK)
        status = list_or_show(call, &aliases);
    alias_table_free(&aliases);
    return status;
}

static const struct example examples[] = {
    {"msim catalog", "list everything"},
    {"msim catalog gpus --format csv", "write one table for a program"},
    {"msim catalog show gpt-175b-megascale", "show a model with its parameter count and its source"},
    {"msim catalog show h100-sxm --format json", "show a GPU with the fitted parameters of its kernels"},
    {"msim catalog show 'NVIDIA H100 80GB HBM3'", "accept another spelling"},
    {"msim catalog show ./config.json", "show a downloaded Hugging Face model; its folder works too"},
    {"msim catalog show llama3", "show a fault model: failure rates and repair times"},
    {"msim catalog show policy megascale", "select the kind, where several have the name"},
    {"msim catalog template experiment -o job.yaml", "write an experiment with every key, for msim step job.yaml"},
    {"msim catalog template cluster -o ours.yaml", "write a cluster to fill in, for --cluster ours.yaml"},
    {0},
};

static const struct command_note notes[] = {
    {"show", "Prints an entry with the meaning of each key and the source of its numbers, and the parameter counts of a "
             "model. It accepts catalog names, msim files (.yaml, .json), and Hugging Face configurations or their "
             "folders. Case and punctuation of a name do not matter, and names that drivers, hubs and tables use are "
             "accepted too (the column 'also'); fault models and policies have no other names. If several kinds have "
             "the name, msim shows the first and names the others; 'show policy NAME' selects. A KIND is model, gpu, "
             "cluster, fault-model or policy."},
    {"template", "Writes a complete file for an entry (a model, GPU, cluster, fault model or policy) or an experiment, with "
                 "the meaning of every key. Lines that are not comments hold the most common values."},
    {"Names and files", "'<gpu>-node' is a cluster too: one usual node of that GPU. Entries are YAML files in the program's "
                        "folders; MSIM_DATA sets another place."},
    {0},
};

const struct command command_catalog = {
    .name = "catalog",
    .summary = "list known models, GPUs, clusters, fault models and policies, or show one",
    .description = "Lists the catalog, shows an entry or a file completely (show), or writes a file to start from (template).\n"
                   "\n"
                   "Without operands, or with 'list', prints models with their parameter counts, GPUs with their data-sheet "
                   "numbers, clusters with their networks, fault models (for --fault-model and --preset) and recovery "
                   "policies (for --policy). 'models', 'gpus', 'clusters', 'fault-models' and 'policies' select a part.",
    .operands =
        "[list] [models|gpus|clusters|fault-models|policies]... | show [KIND] NAME|FILE|FOLDER... | template experiment|KIND",
    .max_operands = -1,
    .notes = notes,
    .examples = examples,
    .run = run,
};
