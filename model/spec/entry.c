#include "model/spec/entry.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "model/base/append.h"
#include "model/base/utf8.h"
#include "model/spec/catalog_alias.h"
#include "model/spec/schemas.h"

enum { BASES_MAX = 8 };

static const struct {
    const char *folder, *one, *option;
} kinds[N_CATALOG_KINDS] = {
    [CATALOG_MODELS] = {"models", "model", "model"},
    [CATALOG_GPUS] = {"gpus", "GPU", "gpu"},
    [CATALOG_CLUSTERS] = {"clusters", "cluster", "cluster"},
};

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

bool entry_is_file_name(const char *name)
{
    return strcmp(name, "-") == 0 || strchr(name, '/') || ends_with(name, ".yaml") || ends_with(name, ".yml") ||
           ends_with(name, ".json") || ends_with(name, ".gz");
}

bool entry_is_repository(const char *name)
{
    const char *slash = strchr(name, '/');
    return slash && slash > name && *name != '.' && slash[1] && !strchr(slash + 1, '/') && !ends_with(name, ".yaml") &&
           !ends_with(name, ".yml") && !ends_with(name, ".json") && !ends_with(name, ".gz");
}

/* A file is named from the directory of the file that names it, or else from the working directory. */
static const char *file_beside(const struct yaml_node *value, struct arena *arena)
{
    const char *slash = value->at.line > 0 ? strrchr(value->at.file, '/') : NULL;
    if (!slash || value->text[0] == '/' || strcmp(value->text, "-") == 0)
        return value->text;
    size_t directory = (size_t)(slash - value->at.file) + 1;
    char *path = arena_new(arena, directory + strlen(value->text) + 1, 1);
    memcpy(path, value->at.file, directory);
    memcpy(path + directory, value->text, strlen(value->text) + 1);
    return access(path, F_OK) == 0 ? path : value->text;
}

char *entry_catalog_file(enum catalog_kind kind, const char *name)
{
    char relative[256];
    int n = snprintf(relative, sizeof relative, "catalog/%s/%s.yaml", kinds[kind].folder, name);
    return n > 0 && (size_t)n < sizeof relative ? data_path(relative) : NULL;
}

/* The kind of entry that has the name; N_CATALOG_KINDS: none. */
static enum catalog_kind kind_of(struct alias_table *table, const char *name)
{
    const char *entry;
    enum catalog_kind kind = 0;
    while (kind < N_CATALOG_KINDS && alias_table_find(table, kind, name, &entry) == ALIAS_NONE)
        kind++;
    return kind;
}

static void report_unknown(enum catalog_kind kind, const struct yaml_node *value, struct diags *diags)
{
    struct alias_table table;
    const char *entry = NULL, *near = NULL;
    enum catalog_kind other = N_CATALOG_KINDS;
    if (alias_table_load(&table, diags) == STATUS_OK) {
        other = kind_of(&table, value->text);
        near = alias_table_nearest(&table, kind, value->text, &entry);
    }
    if (other < N_CATALOG_KINDS)
        diag_error(diags, value->at, "unknown %s '%.60s'; it is a %s, so specify it with --%s%s", kinds[kind].one, value->text,
                   kinds[other].one, kinds[other].option,
                   kind == CATALOG_CLUSTERS && other == CATALOG_GPUS ? ", which uses its usual nodes" : "");
    else if (!near)
        diag_error(diags, value->at,
                   "unknown %s '%.60s'; `msim catalog` lists them, and the name of a file ends in .yaml or .json",
                   kinds[kind].one, value->text);
    else if (strcmp(near, entry) == 0)
        diag_error(diags, value->at, "unknown %s '%.60s'; did you mean '%s'?", kinds[kind].one, value->text, near);
    else
        diag_error(diags, value->at, "unknown %s '%.60s'; did you mean '%s' (%s)?", kinds[kind].one, value->text, near, entry);
    alias_table_free(&table);
}

/* The entry of a name that has no file of its own, by one of its other spellings; NULL when there is none. */
static const char *name_by_alias(enum catalog_kind kind, const struct yaml_node *value, const char *text, struct arena *arena,
                                 struct diags *diags)
{
    struct alias_table table;
    const char *name = NULL;
    enum alias_match match = ALIAS_NONE;
    if (alias_table_load(&table, diags) == STATUS_OK)
        match = alias_table_find(&table, kind, text, &name);
    name = name ? arena_copy_text(arena, name) : NULL;
    alias_table_free(&table);
    if (match == ALIAS_USUAL)
        diag_note(diags, value->at, "'%.60s' is ambiguous; msim uses %s, the usual %s of that name", text, name, kinds[kind].one);
    return name;
}

/* "a100-80g-sxm-node": one usual host of that GPU; NULL when there is no such GPU. */
static struct yaml_node *single_node(const struct yaml_node *value, const char *cluster, struct arena *arena, struct diags *diags)
{
    if (!ends_with(cluster, "-node"))
        return NULL;
    char *text = arena_copy_text(arena, cluster);
    text[strlen(text) - strlen("-node")] = '\0';
    char *path = entry_catalog_file(CATALOG_GPUS, text);
    const char *gpu = path ? text : name_by_alias(CATALOG_GPUS, value, text, arena, diags);
    free(path);
    if (!gpu)
        return NULL;
    char name[NAME_SIZE];
    snprintf(name, sizeof name, "%.50s-node", gpu);
    struct yaml_node *tree = yaml_with(NULL, "name", yaml_scalar(value->text, name, arena), arena);
    tree = yaml_with(tree, "source", yaml_scalar(value->text, "one usual node of this GPU", arena), arena);
    tree = yaml_with(tree, "gpu.base", yaml_scalar(value->text, gpu, arena), arena);
    return yaml_with(tree, "nodes", yaml_scalar(value->text, "1", arena), arena);
}

/* The file's name without folder and ending. */
static const char *stem(const char *path, struct arena *arena)
{
    const char *slash = strrchr(path, '/');
    char *name = arena_copy_text(arena, slash ? slash + 1 : path);
    char *dot = strrchr(name, '.');
    if (dot && dot > name)
        *dot = '\0';
    return entry_name(name, arena);
}

/* A cluster that changes another has that one's source, unless it names its own: "dgx-h100, changed in mine.yaml". NULL: it
 * changes none. */
static const char *source_of_base(const struct yaml_node *tree, const char *path, struct arena *arena)
{
    const struct yaml_node *base = yaml_find(tree, "base");
    char words[SOURCE_SIZE] = "";
    if (!base || base->kind != YAML_SCALAR || yaml_is_null(base))
        return NULL;
    const char *slash = strrchr(path, '/');
    text_append(words, sizeof words, "%.80s, changed in %.80s", base->text, slash ? slash + 1 : path);
    return arena_copy_text(arena, words);
}

/* What is in a file must be an entry with a source, or a model as Hugging Face describes it, which may be read `as` another
 * family. */
struct yaml_node *entry_of_tree(enum catalog_kind kind, struct yaml_node *tree, const char *path, const struct yaml_node *as,
                                struct arena *arena, struct diags *diags)
{
    if (tree->kind != YAML_MAPPING) {
        diag_error(diags, tree->at, "a %s must be a mapping of keys to values; this is %s%s", kinds[kind].one,
                   yaml_kind_name(tree->kind),
                   kind == CATALOG_CLUSTERS ? " (msim fabric import makes an entry of topologies of NCCL, Slurm and InfiniBand)"
                                            : "");
        return NULL;
    }
    if (kind == CATALOG_MODELS && huggingface_is(tree))
        return huggingface_entry(tree, as, path, arena, diags);
    if (as)
        diag_error(diags, as->at, "model_type: this key belongs to a Hugging Face config.json, and %.120s is none", path);
    struct yaml_node *source = yaml_find(tree, "source");
    const char *inherited = kind == CATALOG_CLUSTERS ? source_of_base(tree, path, arena) : NULL;
    if ((!source || yaml_is_null(source)) && inherited) {
        tree = yaml_with(tree, "source", yaml_scalar(path, inherited, arena), arena);
    } else if (!source || yaml_is_null(source)) {
        if (yaml_find(tree, "model") && yaml_find(tree, "cluster")) {
            diag_error(diags, tree->at, "this is an experiment, not a %s; give it to the command without an option",
                       kinds[kind].one);
            return NULL;
        }
        diag_error(diags, tree->at,
                   "'source' is missing; an entry must name the source of its numbers, for example `source: our data sheet`");
    }
    if (!yaml_find(tree, "name"))
        tree = yaml_with(tree, "name", yaml_scalar(path, stem(path, arena), arena), arena);
    return tree;
}

static struct yaml_node *load_file(enum catalog_kind kind, const char *path, const struct yaml_node *as, struct arena *arena,
                                   struct diags *diags)
{
    struct yaml_node *tree = yaml_read(path, arena, diags);
    return tree ? entry_of_tree(kind, tree, path, as, arena, diags) : NULL;
}

bool entry_is_stream(const char *name)
{
    struct stat what;
    return strcmp(name, "-") == 0 || (stat(name, &what) == 0 && !S_ISREG(what.st_mode) && !S_ISDIR(what.st_mode));
}

/* The config.json of a model's folder, as hubs keep it; NULL: it is no such folder. */
static const char *config_of_folder(enum catalog_kind kind, const char *folder, struct arena *arena)
{
    static const char file[] = "/config.json";
    size_t n = strlen(folder), size = n + sizeof file;
    char *path = arena_new(arena, size, 1);
    while (n > 1 && folder[n - 1] == '/')
        n--;
    snprintf(path, size, "%.*s%s", (int)n, folder, file);
    return kind == CATALOG_MODELS && access(path, F_OK) == 0 ? path : NULL;
}

bool entry_is_folder(const char *path)
{
    struct stat what;
    return stat(path, &what) == 0 && S_ISDIR(what.st_mode);
}

/* A folder that no entry can be read from. */
static void report_folder(enum catalog_kind kind, const struct yaml_node *value, struct diags *diags)
{
    if (kind == CATALOG_MODELS)
        diag_error(diags, value->at, "'%s' is a folder without a config.json, and not a model of the catalog", value->text);
    else
        diag_error(diags, value->at, "'%s' is a folder; a %s must be a file", value->text, kinds[kind].one);
}

/* A catalog entry by its name or one of its other spellings; else a folder beside who asks. */
static struct yaml_node *load_catalog(enum catalog_kind kind, const struct yaml_node *value, const struct yaml_node *as,
                                      struct arena *arena, struct diags *diags)
{
    char *path = entry_catalog_file(kind, value->text);
    struct yaml_node *tree = NULL;
    const char *name = NULL, *config = NULL;
    if (!path && kind == CATALOG_CLUSTERS && (tree = single_node(value, value->text, arena, diags)) != NULL)
        return tree;
    if (!path && (name = name_by_alias(kind, value, value->text, arena, diags)) != NULL)
        path = entry_catalog_file(kind, name);
    if (path)
        tree = load_file(kind, path, as, arena, diags);
    else if (name && kind == CATALOG_CLUSTERS)
        tree = single_node(value, name, arena, diags);
    else if ((config = config_of_folder(kind, file_beside(value, arena), arena)) != NULL)
        tree = load_file(kind, config, as, arena, diags);
    else if (kind == CATALOG_MODELS && entry_is_folder(file_beside(value, arena)))
        report_folder(kind, value, diags);
    else
        report_unknown(kind, value, diags);
    free(path);
    return tree;
}

static struct yaml_node *load_named(enum catalog_kind kind, const struct yaml_node *value, const struct yaml_node *as,
                                    struct arena *arena, struct diags *diags)
{
    if (yaml_is_null(value) || !*value->text) {
        diag_error(diags, value->at, "the name of the %s is missing", kinds[kind].one);
        return NULL;
    }
    if (!entry_is_file_name(value->text))
        return load_catalog(kind, value, as, arena, diags);
    const char *path = file_beside(value, arena), *config = config_of_folder(kind, path, arena);
    path = config ? config : path;
    if (!config && entry_is_folder(path)) {
        report_folder(kind, value, diags);
        return NULL;
    }
    if (strcmp(path, "-") == 0 || access(path, F_OK) == 0)
        return load_file(kind, path, as, arena, diags);
    const char *name = entry_is_repository(value->text) ? name_by_alias(kind, value, value->text, arena, diags) : NULL;
    char *known = name ? entry_catalog_file(kind, name) : NULL;
    struct yaml_node *tree = NULL;
    if (known)
        tree = load_file(kind, known, as, arena, diags);
    else
        diag_error(diags, value->at, "there is no file '%s'%s", value->text, /* say who asked for it */
                   entry_is_repository(value->text) ? ", and the catalog has no entry of this name" : "");
    free(known);
    return tree;
}

/* `gpu: NAME` becomes `gpu: {base: NAME}`, so that what is laid over it adds to that GPU instead of replacing it. */
static struct yaml_node *name_as_base(struct yaml_node *mapping, const char *key, struct arena *arena)
{
    const struct yaml_node *child = yaml_find(mapping, key);
    if (!child || child->kind != YAML_SCALAR || yaml_is_null(child))
        return mapping;
    struct yaml_node *tree = yaml_with(NULL, "base", child, arena);
    tree->at = child->at;
    return yaml_replace(mapping, key, tree, arena);
}

static struct yaml_node *resolve_gpu(struct yaml_node *cluster, struct arena *arena, struct diags *diags)
{
    const struct yaml_node *gpu = yaml_find(cluster, "gpu");
    if (!gpu)
        return cluster; /* reported when read */
    struct yaml_node *tree = entry_resolve(CATALOG_GPUS, gpu, arena, diags);
    return tree ? yaml_replace(cluster, "gpu", tree, arena) : NULL;
}

static bool rate_of(const struct yaml_node *node, double *rate)
{
    char why[128];
    return node->kind == YAML_SCALAR && quantity_parse(node->text, DIM_RATE, rate, why, sizeof why) == STATUS_OK && *rate > 0;
}

/*
 * Collectives inside an NVLink domain run at the fitted rates of `nccl`, which are of the links they were measured over. A GPU
 * that takes them from its base but has links of its own gets the same share of those.
 */
static struct yaml_node *rates_follow_links(const struct yaml_node *under, struct yaml_node *over, struct arena *arena,
                                            struct diags *diags)
{
    static const char *const rates[] = {"rate", "nvls_rate"};
    const struct yaml_node *was = yaml_find(under, "nvlink_rate"), *is = yaml_find(over, "nvlink_rate");
    const struct yaml_node *fitted = yaml_find(under, "nccl");
    double before, now, rate;
    char text[64];
    if (!was || !is || !fitted || yaml_find(yaml_find(over, "nccl"), "rate") || !rate_of(was, &before) || !rate_of(is, &now) ||
        before == now)
        return over;
    const char *place = is->at.file;
    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++) {
        const struct yaml_node *node = yaml_find(fitted, rates[i]);
        char path[32];
        if (!node || !rate_of(node, &rate))
            continue;
        snprintf(text, sizeof text, "%.4gGB/s", rate * now / before / 1e9);
        snprintf(path, sizeof path, "nccl.%s", rates[i]);
        over = yaml_with(over, path, yaml_scalar(place, text, arena), arena);
    }
    const struct yaml_node *source = yaml_find(fitted, "source");
    char words[SOURCE_SIZE];
    snprintf(words, sizeof words, "%.*s; rates scaled with nvlink_rate", SOURCE_SIZE - 48, source ? source->text : "of the base");
    over = yaml_with(over, "nccl.source", yaml_scalar(place, words, arena), arena);
    diag_note(diags, is->at, "nvlink_rate: the fitted rates of collectives (nccl) are scaled with it, to %.3g of the base",
              now / before);
    return over;
}

static bool says_another(const struct yaml_node *under, const struct yaml_node *over, const char *key)
{
    const struct yaml_node *was = yaml_find(under, key), *is = yaml_find(over, key);
    return was && is && was->kind == YAML_SCALAR && is->kind == YAML_SCALAR && strcmp(was->text, is->text) != 0;
}

/* A node's power is that of its GPUs, too: with others, or more or fewer of them, nobody has published it. */
static struct yaml_node *without_node_power(struct yaml_node *under, const struct yaml_node *over, struct arena *arena,
                                            struct diags *diags)
{
    const struct yaml_node *power = yaml_find(under, "node_power");
    bool another = says_another(yaml_find(under, "gpu"), yaml_find(over, "gpu"), "base");
    if (!power || yaml_is_null(power) || yaml_find(over, "node_power") ||
        !(another || says_another(under, over, "gpus_per_node")))
        return under;
    diag_note(diags, over->at, "node_power: %s is that of the base, not of a node with %s", power->text,
              another ? "another GPU" : "this number of GPUs");
    return yaml_without(under, "node_power", arena);
}

/* The keys of a model that may change times, with their values. NULL: this is no model. */
static json_t *model_values(const struct yaml_node *tree)
{
    static const char *const untimed[] = {"name", "source", "published_parameters", "published_active", "rope_theta"};
    struct transformer model;
    struct diags quiet = {0}; /* the final reading reports them */
    json_t *values =
        entry_read(CATALOG_MODELS, tree, &model, &quiet) == STATUS_OK ? schema_write(&transformer_schema, &model) : NULL;
    for (size_t i = 0; values && i < sizeof untimed / sizeof untimed[0]; i++)
        json_object_del(values, untimed[i]);
    diags_free(&quiet);
    return values;
}

/* Do two trees say the same model, in whatever spelling? */
static bool same_model(const struct yaml_node *a, const struct yaml_node *b)
{
    json_t *x = model_values(a), *y = model_values(b);
    bool same = x && y && json_equal(x, y);
    json_decref(x);
    json_decref(y);
    return same;
}

/* A model that is changed is not the one whose name it would have: reports and results say so. */
static struct yaml_node *with_changed_name(struct yaml_node *tree, struct arena *arena)
{
    const struct yaml_node *name = yaml_find(tree, "name");
    char text[NAME_SIZE] = "";
    if (!name || name->kind != YAML_SCALAR || yaml_is_null(name))
        return tree;
    text_append(text, sizeof text - (sizeof MODEL_CHANGED - 1), "%.*s", (int)model_name_length(name->text), name->text);
    text_append(text, sizeof text, "%s", MODEL_CHANGED);
    struct yaml_node *changed = yaml_scalar(name->at.file, text, arena);
    changed->quoted = true;
    changed->at = name->at;
    return yaml_replace(tree, "name", changed, arena);
}

struct yaml_node *entry_changed_model(const struct yaml_node *before, struct yaml_node *after, struct arena *arena)
{
    const struct yaml_node *name = yaml_find(before, "name"), *now = yaml_find(after, "name");
    bool kept = name && now && name->at.line == now->at.line && strcmp(name->at.file, now->at.file) == 0;
    if (!kept)
        return after;
    struct diags quiet = {0}; /* the final reading reports them */
    const struct yaml_node *was = entry_resolve(CATALOG_MODELS, before, arena, &quiet);
    const struct yaml_node *is = entry_resolve(CATALOG_MODELS, after, arena, &quiet);
    diags_free(&quiet);
    return was && is && !same_model(was, is) ? with_changed_name(after, arena) : after;
}

struct yaml_node *entry_resolve(enum catalog_kind kind, const struct yaml_node *value, struct arena *arena, struct diags *diags)
{
    struct yaml_node *layers[BASES_MAX];
    const struct yaml_node *as = NULL; /* the family that a configuration below is to be read as */
    int n = 0;
    while (value) {
        if (value->kind == YAML_SCALAR)
            value = load_named(kind, value, as, arena, diags);
        if (!value)
            return NULL;
        if (value->kind != YAML_MAPPING || n == BASES_MAX) {
            diag_error(diags, value->at,
                       value->kind == YAML_MAPPING ? "too many entries refer to each other (does `base` form a loop?)"
                                                   : "this must be a name, a file or a mapping");
            return NULL;
        }
        layers[n] = yaml_without(value, "base", arena);
        if (kind == CATALOG_MODELS && yaml_find(value, "base") && yaml_find(value, "model_type")) {
            as = as ? as : yaml_find(value, "model_type");
            layers[n] = yaml_without(layers[n], "model_type", arena);
        }
        if (kind == CATALOG_CLUSTERS)
            layers[n] = name_as_base(layers[n], "gpu", arena);
        n++;
        value = yaml_find(value, "base");
        if (value && value->kind != YAML_SCALAR) {
            diag_error(diags, value->at, "base is %s; it must be a name or a file", yaml_kind_name(value->kind));
            return NULL;
        }
    }
    struct yaml_node *tree = layers[n - 1];
    const struct yaml_node *named = NULL; /* what is changed since, under no name of its own */
    for (int i = n - 2; i >= 0; i--) {
        if (kind == CATALOG_GPUS)
            layers[i] = rates_follow_links(tree, layers[i], arena, diags);
        if (kind == CATALOG_CLUSTERS)
            tree = without_node_power(tree, layers[i], arena, diags);
        named = yaml_find(layers[i], "name") ? NULL : named ? named : tree;
        tree = yaml_overlay(tree, layers[i], arena);
    }
    if (kind == CATALOG_MODELS && named && !same_model(named, tree))
        tree = with_changed_name(tree, arena);
    return kind == CATALOG_CLUSTERS ? resolve_gpu(tree, arena, diags) : tree;
}

struct yaml_node *entry_without_stream(enum catalog_kind kind, struct yaml_node *value, const char *text, size_t n,
                                       struct arena *arena, struct diags *diags)
{
    const struct yaml_node *base = value && value->kind == YAML_MAPPING ? yaml_find(value, "base") : value;
    const struct yaml_node *as = kind == CATALOG_MODELS && value != base ? yaml_find(value, "model_type") : NULL;
    if (!base || base->kind != YAML_SCALAR || yaml_is_null(base) || !entry_is_stream(base->text))
        return value;
    struct yaml_node *tree = text ? yaml_parse(base->text, text, n, arena, diags) : yaml_read(base->text, arena, diags);
    tree = tree ? entry_of_tree(kind, tree, base->text, as, arena, diags) : NULL;
    if (!tree || value == base)
        return tree;
    value = yaml_without(value, "base", arena);
    return yaml_overlay(tree, as ? yaml_without(value, "model_type", arena) : value, arena);
}

static enum status read_transformer(const struct yaml_node *tree, struct transformer *object, struct diags *diags)
{
    struct transformer model = {0};
    size_t before = diags->n_errors;
    schema_read(&transformer_schema, tree, &model, diags);
    if (diags->n_errors == before)
        transformer_complete(&model, tree, diags);
    if (diags->n_errors > before)
        return STATUS_BAD_INPUT;
    *object = model;
    return STATUS_OK;
}

/* Nobody writes a GPU's fitted groups from nothing. */
static void hint_at_base(const struct yaml_node *gpu, struct diags *diags)
{
    if (gpu && gpu->kind == YAML_MAPPING && !(yaml_find(gpu, "gemm") && yaml_find(gpu, "attention") && yaml_find(gpu, "nccl")))
        diag_note(diags, gpu->at, "`base: NAME` takes missing keys from another GPU, such as h100-sxm");
}

static enum status read_gpu(const struct yaml_node *tree, struct gpu *object, struct diags *diags)
{
    struct gpu gpu = {0};
    size_t before = diags->n_errors;
    schema_read(&gpu_schema, tree, &gpu, diags);
    if (diags->n_errors == before)
        gpu_complete(&gpu, tree, diags);
    else
        hint_at_base(tree, diags);
    if (diags->n_errors > before)
        return STATUS_BAD_INPUT;
    *object = gpu;
    return STATUS_OK;
}

static enum status read_cluster(const struct yaml_node *tree, struct cluster *object, struct diags *diags)
{
    struct cluster cluster = {0};
    size_t before = diags->n_errors;
    schema_read(&cluster_schema, tree, &cluster, diags);
    if (diags->n_errors > before)
        hint_at_base(yaml_find(tree, "gpu"), diags);
    if (diags->n_errors == before)
        gpu_complete(&cluster.gpu, yaml_find(tree, "gpu"), diags);
    if (diags->n_errors == before)
        cluster_complete(&cluster, tree, diags);
    if (diags->n_errors > before)
        return STATUS_BAD_INPUT;
    *object = cluster;
    return STATUS_OK;
}

enum status entry_read(enum catalog_kind kind, const struct yaml_node *tree, void *object, struct diags *diags)
{
    switch (kind) {
    case CATALOG_MODELS: return read_transformer(tree, object, diags);
    case CATALOG_GPUS: return read_gpu(tree, object, diags);
    default: return read_cluster(tree, object, diags);
    }
}

enum status entry_load(enum catalog_kind kind, const struct yaml_node *value, void *object, struct arena *arena,
                       struct diags *diags)
{
    struct yaml_node *tree = value ? entry_resolve(kind, value, arena, diags) : NULL;
    return tree ? entry_read(kind, tree, object, diags) : STATUS_BAD_INPUT;
}
