#include "model/spec/experiment_flags.h"

#include <stdio.h>
#include <string.h>

#include "model/spec/entry.h"
#include "model/spec/layout_request.h"
#include "model/spec/schemas.h"

/* One experiment that flags are laid over. */
struct overlay {
    struct arena *arena;
    struct diags *diags;
    bool counted; /* cluster.gpus is what the nodes of the cluster before had */
};

/* `key: NAME` as `key: {base: NAME}`: what an override lays over it then adds to it. */
static struct yaml_node *name_to_base(struct yaml_node *mapping, const char *key, struct arena *arena)
{
    const struct yaml_node *value = yaml_find(mapping, key);
    if (!value || value->kind != YAML_SCALAR || yaml_is_null(value))
        return mapping;
    struct yaml_node *entry = yaml_with(NULL, "base", value, arena);
    entry->at = value->at;
    return yaml_replace(mapping, key, entry, arena);
}

/* Short forms of the parts in their long forms. */
static struct yaml_node *long_forms(struct yaml_node *root, struct overlay *o)
{
    root = name_to_base(name_to_base(root, "model", o->arena), "cluster", o->arena);
    struct yaml_node *cluster = yaml_find(root, "cluster");
    if (cluster && cluster->kind == YAML_MAPPING)
        root = yaml_replace(root, "cluster", name_to_base(cluster, "gpu", o->arena), o->arena);
    const struct yaml_node *layout = yaml_find(root, "layout");
    if (layout)
        root = yaml_replace(root, "layout", layout_request_tree(layout, o->arena, o->diags), o->arena);
    const struct yaml_node *faults = yaml_find(root, "faults");
    if (faults && faults->kind == YAML_SCALAR && !yaml_is_null(faults)) {
        struct yaml_node *trace = yaml_with(NULL, "trace", faults, o->arena);
        trace->at = faults->at;
        root = yaml_replace(root, "faults", trace, o->arena);
    }
    return root;
}

/* The GPUs of a cluster whose nodes a file counts, as a node in their place; NULL, with a warning, where its entry does not say
 * how many those have. */
static const struct yaml_node *gpus_of_nodes(const struct yaml_node *cluster, const struct yaml_node *nodes, struct overlay *o)
{
    struct diags quiet = {0}; /* what is wrong with an entry that goes need not be said */
    struct cluster *counted = arena_new(o->arena, 1, sizeof *counted);
    bool known = entry_load(CATALOG_CLUSTERS, cluster, counted, o->arena, &quiet) == STATUS_OK;
    diags_free(&quiet);
    if (!known) {
        diag_warning(o->diags, nodes->at,
                     "nodes: msim does not know the GPUs of this cluster; the job uses all GPUs of the one that replaces it; "
                     "--gpus sets their number");
        return NULL;
    }
    char number[16];
    snprintf(number, sizeof number, "%d", cluster_gpus(counted));
    struct yaml_node *gpus = yaml_scalar("gpus", number, o->arena);
    gpus->at = nodes->at;
    return gpus;
}

/* Another cluster under the job: what the file says of the one before goes with it, but for the GPUs that the job uses, said as
 * such or as nodes. */
static struct yaml_node *with_cluster(struct yaml_node *root, const struct yaml_node *name, struct overlay *o)
{
    const struct yaml_node *before = yaml_find(root, "cluster"), *gpus = yaml_find(before, "gpus");
    const struct yaml_node *nodes = yaml_find(before, "nodes");
    if ((!gpus || yaml_is_null(gpus)) && nodes && !yaml_is_null(nodes)) {
        gpus = gpus_of_nodes(gpus ? yaml_without(before, "gpus", o->arena) : before, nodes, o);
        o->counted = gpus != NULL;
    }
    root = long_forms(yaml_replace(root, "cluster", name, o->arena), o);
    return gpus ? yaml_with(root, "cluster.gpus", gpus, o->arena) : root;
}

/* A number of nodes, GPUs or another cluster that comes after a cluster's name replaces the number that the file specified. */
static struct yaml_node *without_counted(struct yaml_node *root, const char *path, struct overlay *o)
{
    bool nodes = strcmp(path, "cluster.nodes") == 0;
    if (!o->counted || !(nodes || strcmp(path, "cluster.gpus") == 0 || strcmp(path, "cluster") == 0))
        return root;
    o->counted = false;
    return nodes ? yaml_replace(root, "cluster", yaml_without(yaml_find(root, "cluster"), "gpus", o->arena), o->arena) : root;
}

static struct yaml_node *name_scalar(const char *flag, const char *text, struct overlay *o)
{
    struct yaml_node *value = yaml_scalar(flag, text, o->arena);
    value->quoted = true;
    return value;
}

static struct yaml_node *with_flag(struct yaml_node *root, const char *flag, const char *path, const char *text,
                                   struct overlay *o)
{
    return long_forms(yaml_with(root, path, name_scalar(flag, text, o), o->arena), o);
}

/* What is said in one of two ways takes the place of the other one. */
static struct yaml_node *without_other(struct yaml_node *root, const char *path, struct arena *arena)
{
    char part[64];
    const char *other = experiment_key_instead(path, NULL);
    size_t length = other ? strcspn(other, ".") : 0;
    snprintf(part, sizeof part, "%.*s", (int)length, other ? other : "");
    const struct yaml_node *mapping = other ? yaml_find(root, part) : NULL;
    bool there = mapping && mapping->kind == YAML_MAPPING && yaml_find(mapping, other + length + 1);
    return there ? yaml_replace(root, part, yaml_without(mapping, other + length + 1, arena), arena) : root;
}

static void add_words(struct yaml_node *sequence, const struct yaml_node *value, struct arena *arena)
{
    struct yaml_node **end = &sequence->first;
    while (*end)
        end = &(*end)->next;
    const struct yaml_node *word = value->kind == YAML_SEQUENCE ? value->first : value;
    for (; word; word = value->kind == YAML_SEQUENCE ? word->next : NULL, end = &(*end)->next) {
        *end = arena_new(arena, 1, sizeof **end);
        **end = *word;
        (*end)->next = NULL;
        (*end)->key = NULL;
    }
}

/* Changes of features behind those that were said before, of which they are then; where nothing was, alone. */
static struct yaml_node *changed_features(const struct yaml_node *before, struct yaml_node *changes, struct arena *arena)
{
    if (!before || before->kind == YAML_MAPPING || yaml_is_null(before))
        return changes;
    struct yaml_node *sequence = arena_new(arena, 1, sizeof *sequence);
    *sequence = (struct yaml_node){.kind = YAML_SEQUENCE, .at = changes->at};
    if (!job_features_change(before))
        add_words(sequence, yaml_scalar("features", "none", arena), arena); /* [] says that there are none, not the usual ones */
    add_words(sequence, before, arena);
    add_words(sequence, changes, arena);
    return sequence;
}

/* A value, or null, at a path of the experiment. */
static struct yaml_node *with_value(struct yaml_node *root, const char *path, struct yaml_node *value, struct overlay *o)
{
    if (strcmp(path, "job.features") == 0 && job_features_change(value))
        value = changed_features(yaml_find(yaml_find(root, "job"), "features"), value, o->arena);
    root = without_counted(root, path, o);
    if (strcmp(path, "cluster") == 0 && value->kind == YAML_SCALAR && !yaml_is_null(value))
        return with_cluster(root, value, o);
    return long_forms(yaml_with(root, path, value, o->arena), o);
}

/* Keys that are said at once take each the place of what was said in another way before, not of one another. */
static struct yaml_node *with_values(struct yaml_node *root, const char *part, const struct yaml_node *mapping, struct overlay *o)
{
    for (struct yaml_node *child = mapping->first; child; child = child->next)
        if (!yaml_is_null(child))
            root = without_other(root, experiment_key_under(part, child->key, o->arena), o->arena);
    for (struct yaml_node *child = mapping->first; child; child = child->next)
        root = with_value(root, experiment_key_under(part, child->key, o->arena), child, o);
    return root;
}

/* "a.b=value", where the value may be any YAML: a number with its unit, a name, [a, list] or {a: mapping}; "=a.b=text" as it is.
 */
static struct yaml_node *with_override(struct yaml_node *root, const char *text, struct overlay *o)
{
    enum { PARTS_MAX = 8 };
    const char *whole_text = text;
    bool verbatim = *text == '=';
    text += verbatim;
    size_t length = strcspn(text, "=");
    char *path = arena_copy_text(o->arena, text);
    path[length] = '\0';
    int n_parts = 1;
    for (const char *p = path; *p; p++)
        n_parts += *p == '.';
    bool bad = !*path || path[0] == '.' || path[length - 1] == '.' || strstr(path, "..") || n_parts > PARTS_MAX;
    if (!text[length] || bad) {
        diag_error(o->diags, PLACE_NONE, "'%.60s' is not KEY=VALUE; write for example job.global_batch=6144", whole_text);
        return root;
    }
    const char *value_text = text + length + 1;
    struct yaml_node *value = verbatim ? name_scalar(path, value_text, o) : yaml_value(path, value_text, o->arena, o->diags);
    if (!value)
        return root;
    const char *key = experiment_key_long(path, o->arena);
    if (value->kind == YAML_MAPPING && experiment_key_counts_parts(key))
        return with_values(root, key, value, o);
    if (!yaml_is_null(value))
        root = without_other(root, key, o->arena);
    return with_value(root, key, value, o);
}

/* Takes the place of the file's layout, but where that leaves to the search what it does not name, this does too. */
static struct yaml_node *with_layout(struct yaml_node *root, const char *text, struct overlay *o)
{
    bool searches = layout_request_searches(yaml_find(root, "layout"));
    root = with_flag(yaml_without(root, "layout", o->arena), "--layout", "layout", text, o);
    return searches ? with_flag(root, "--layout", "layout.auto", "true", o) : root;
}

/* A pipe can be read once, but its text is needed several times, so it is read here. *model, the model before overrides, follows.
 * NULL: it cannot be read. */
static struct yaml_node *without_streams(struct yaml_node *root, const struct experiment_flags *flags,
                                         const struct yaml_node **model, struct overlay *o)
{
    static const struct {
        const char *key;
        enum catalog_kind kind;
    } parts[] = {{"model", CATALOG_MODELS}, {"cluster", CATALOG_CLUSTERS}};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        struct yaml_node *value = yaml_find(root, parts[i].key);
        const char *text = parts[i].kind == CATALOG_MODELS ? flags->model_text : NULL;
        struct yaml_node *read =
            value ? entry_without_stream(parts[i].kind, value, text, flags->n_model_text, o->arena, o->diags) : NULL;
        if (value && !read)
            return NULL;
        if (read == value)
            continue;
        root = yaml_replace(root, parts[i].key, read, o->arena);
        if (parts[i].kind == CATALOG_MODELS)
            *model = NULL; /* whose name the stream gives */
    }
    return root;
}

struct yaml_node *experiment_with_flags(struct yaml_node *root, const struct experiment_flags *flags, struct arena *arena,
                                        struct diags *diags)
{
    struct overlay overlay = {.arena = arena, .diags = diags}, *o = &overlay;
    root = long_forms(root, o);
    if (flags->model)
        root = with_flag(yaml_without(root, "model", o->arena), "--model", "model", flags->model, o);
    if (flags->cluster)
        root = with_cluster(root, name_scalar("--cluster", flags->cluster, o), o);
    if (flags->gpu)
        root = with_flag(root, "--gpu", "cluster.gpu.base", flags->gpu, o);
    if (flags->layout)
        root = with_layout(root, flags->layout, o);
    const struct yaml_node *model = yaml_find(root, "model");
    for (int i = 0; i < flags->n_overrides; i++)
        root = with_override(root, flags->overrides[i], o);
    root = without_streams(root, flags, &model, o);
    if (!root)
        return NULL;
    struct yaml_node *now = yaml_find(root, "model");
    struct yaml_node *called = model && now ? entry_changed_model(model, now, o->arena) : now;
    return called == now ? root : yaml_replace(root, "model", called, o->arena);
}
