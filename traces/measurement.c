#include "traces/measurement.h"

#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/memory.h"
#include "model/base/units.h"
#include "model/cost/work.h"
#include "model/spec/catalog.h"

/* Columns, with the widest range a value can sensibly have. */
enum { MAX_WIDTH = 1 << 24, MAX_GPUS = 1 << 24, MAX_BATCH = 1 << 28 };
#define COLUMNS(X)                                                                                                               \
    X(CASE, "case", true)                                                                                                        \
    X(MODEL, "model", false)                                                                                                     \
    X(LAYERS, "layers", true)                                                                                                    \
    X(HIDDEN, "hidden", true)                                                                                                    \
    X(FFN_HIDDEN, "ffn_hidden", false)                                                                                           \
    X(GATED_MLP, "gated_mlp", false)                                                                                             \
    X(HEADS, "heads", true)                                                                                                      \
    X(KV_HEADS, "kv_heads", false)                                                                                               \
    X(SEQ_LEN, "seq_len", true)                                                                                                  \
    X(VOCAB, "vocab", false)                                                                                                     \
    X(GPU, "gpu", true)                                                                                                          \
    X(GPUS, "gpus", true)                                                                                                        \
    X(GPUS_PER_NODE, "gpus_per_node", false)                                                                                     \
    X(NIC_GBPS, "nic_gbps", false)                                                                                               \
    X(TP, "tp", true)                                                                                                            \
    X(PP, "pp", true)                                                                                                            \
    X(VPP, "vpp", false)                                                                                                         \
    X(CP, "cp", false)                                                                                                           \
    X(DP, "dp", true)                                                                                                            \
    X(EP, "ep", false)                                                                                                           \
    X(ZERO, "zero", false)                                                                                                       \
    X(SEQUENCE_PARALLEL, "sequence_parallel", false)                                                                             \
    X(MICRO_BATCH, "micro_batch", true)                                                                                          \
    X(GLOBAL_BATCH, "global_batch", true)                                                                                        \
    X(RECOMPUTE, "recompute", true)                                                                                              \
    X(PRECISION, "precision", true)                                                                                              \
    X(SCHEDULE, "schedule", false)                                                                                               \
    X(FEATURES, "features", false)                                                                                               \
    X(OUTCOME, "outcome", false)                                                                                                 \
    X(STEP_TIME_S, "step_time_s", true)                                                                                          \
    X(MFU_PCT, "mfu_pct", false)                                                                                                 \
    X(ASSUMED, "assumed", false)                                                                                                 \
    X(SOURCE, "source", false)

enum column {
#define X(id, name, required) COLUMN_##id,
    COLUMNS(X)
#undef X
        N_COLUMNS
};

static const struct csv_column expected[] = {
#define X(id, name, required) {name, required},
    COLUMNS(X)
#undef X
};

/* A catalog entry asked for once: tables name few models and GPUs in many rows. */
struct known_model {
    const char *name;
    bool found;
    struct transformer model;
};
struct known_cluster {
    const char *gpu;
    int nodes, per_node;
    double nic_rate;
    bool found;
    struct cluster cluster;
    char why[256]; /* not found */
    bool told;     /* and said so: once a GPU is enough */
};

struct reading {
    const struct csv_table *csv;
    int columns[N_COLUMNS];
    size_t row;
    bool unusable; /* the current row, for a reason already given */
    size_t errors_before_row;
    struct known_model *models;
    size_t n_models, models_capacity;
    struct known_cluster *clusters;
    size_t n_clusters, clusters_capacity;
    const char **unknown_features; /* warned of */
    size_t n_unknown, unknown_capacity;
    struct diags *diags;
};

static const char *cell(const struct reading *reading, enum column column)
{
    return csv_cell(reading->csv, reading->row, reading->columns[column]);
}

static bool is_empty(const struct reading *reading, enum column column)
{
    return *cell(reading, column) == '\0';
}

static struct place cell_place(const struct reading *reading, enum column column)
{
    return csv_place(reading->csv, reading->row, reading->columns[column]);
}

/* A whole number, or `unknown` where the cell is empty. A bad cell is reported and reads as `unknown`. */
static int64_t whole(struct reading *reading, enum column column, int64_t low, int64_t high, int64_t unknown)
{
    int64_t value = unknown;
    if (!is_empty(reading, column) &&
        csv_cell_integer(reading->csv, reading->row, reading->columns[column], low, high, &value, reading->diags) != STATUS_OK)
        return unknown;
    return value;
}

static double number(struct reading *reading, enum column column, double low, double high)
{
    double value = 0;
    if (!is_empty(reading, column) &&
        csv_cell_number(reading->csv, reading->row, reading->columns[column], low, high, &value, reading->diags) != STATUS_OK)
        return 0;
    return value;
}

/* One of n words by its index; -1 when the cell is empty or wrong (then reported). */
static int word(struct reading *reading, enum column column, const char *const *words, size_t n_words)
{
    const char *text = cell(reading, column);
    for (size_t i = 0; i < n_words; i++)
        if (strcmp(text, words[i]) == 0)
            return (int)i;
    if (*text) {
        const char *near = nearest_name(text, words, n_words);
        diag_error(reading->diags, cell_place(reading, column), "%s '%.40s' is unknown%s%s%s", expected[column].name, text,
                   near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
    }
    return -1;
}

/* The current row can be read but not be used. */
static void skip(struct reading *reading, enum column column, const char *format, ...) PRINTF_LIKE(3, 4);
static void skip(struct reading *reading, enum column column, const char *format, ...)
{
    char why[512];
    va_list args;
    va_start(args, format);
    vsnprintf(why, sizeof why, format, args);
    va_end(args);
    if (reading->diags->n_errors == reading->errors_before_row) /* otherwise the cause has been told */
        diag_warning(reading->diags, cell_place(reading, column), "row skipped: %s", why);
    reading->unusable = true;
}

/* --- the catalog -------------------------------------------------------------------------------------------------------------
 */

/* The catalog's model of the row's name, NULL when it has no name or one nobody knows. */
static const struct transformer *catalog_model_of_row(struct reading *reading)
{
    const char *name = cell(reading, COLUMN_MODEL);
    if (*name == '\0')
        return NULL;
    for (size_t i = 0; i < reading->n_models; i++)
        if (strcmp(reading->models[i].name, name) == 0)
            return reading->models[i].found ? &reading->models[i].model : NULL;
    struct known_model known = {.name = name};
    struct diags why = {0};
    known.found = catalog_model(name, &known.model, &why) == STATUS_OK;
    diags_free(&why);
    reading->models = memory_grow(reading->models, &reading->models_capacity, reading->n_models + 1, sizeof *reading->models);
    reading->models[reading->n_models++] = known;
    return known.found ? &reading->models[reading->n_models - 1].model : NULL;
}

/* --- the model ---------------------------------------------------------------------------------------------------------------
 */

/* The shape columns; 0 (gated -1) where a cell is empty. */
struct shape {
    int layers, heads, kv_heads, gated;
    int64_t hidden, ffn_hidden, seq_len, vocab;
};

static struct shape read_shape(struct reading *reading)
{
    return (struct shape){
        .layers = (int)whole(reading, COLUMN_LAYERS, 1, 100000, 0),
        .heads = (int)whole(reading, COLUMN_HEADS, 1, MAX_WIDTH, 0),
        .kv_heads = (int)whole(reading, COLUMN_KV_HEADS, 1, MAX_WIDTH, 0),
        .gated = (int)whole(reading, COLUMN_GATED_MLP, 0, 1, -1),
        .hidden = whole(reading, COLUMN_HIDDEN, 1, MAX_WIDTH, 0),
        .ffn_hidden = whole(reading, COLUMN_FFN_HIDDEN, 1, MAX_WIDTH, 0),
        .seq_len = whole(reading, COLUMN_SEQ_LEN, 1, INT_MAX, 0),
        .vocab = whole(reading, COLUMN_VOCAB, 1, INT_MAX, 0),
    };
}

/* What the columns say wins over the catalog. The widths of a mixture of experts are more than one number: they stay. */
static void model_override(struct transformer *model, const struct shape *shape)
{
    if (shape->layers)
        model->layers = shape->layers;
    if (shape->vocab)
        model->vocab = shape->vocab;
    if (model->moe.experts)
        return;
    bool same_heads = (!shape->hidden || shape->hidden == model->hidden) && (!shape->heads || shape->heads == model->heads);
    if (shape->hidden)
        model->hidden = shape->hidden;
    if (shape->ffn_hidden)
        model->ffn_hidden = shape->ffn_hidden;
    if (shape->gated >= 0)
        model->gated_mlp = shape->gated;
    if (shape->heads)
        model->heads = shape->heads;
    if (shape->kv_heads)
        model->kv_heads = shape->kv_heads;
    if (!same_heads)
        model->head_dim = (int)(model->hidden / model->heads);
}

static int64_t default_ffn(int64_t hidden, bool gated)
{
    enum { STEP = 256 };
    return gated ? (8 * hidden / 3 + STEP - 1) / STEP * STEP : 4 * hidden;
}

/* A dense model from its shape alone. */
static struct transformer model_of_shape(const struct shape *shape)
{
    enum { LEARNED_POSITIONS = 4096, VOCAB_LLAMA = 32000, VOCAB_GPT = 51200 };
    bool llama = shape->gated == 1 || (shape->kv_heads && shape->kv_heads < shape->heads);
    return (struct transformer){
        .layers = shape->layers,
        .hidden = shape->hidden,
        .ffn_hidden = shape->ffn_hidden ? shape->ffn_hidden : default_ffn(shape->hidden, shape->gated == 1),
        .gated_mlp = shape->gated == 1,
        .heads = shape->heads,
        .kv_heads = shape->kv_heads ? shape->kv_heads : shape->heads,
        .head_dim = (int)(shape->hidden / shape->heads),
        .vocab = shape->vocab ? shape->vocab
                 : llama      ? VOCAB_LLAMA
                              : VOCAB_GPT,
        .max_seq_len = shape->seq_len,
        .tied_embeddings = !llama,
        .linear_bias = !llama,
        .qkv_bias = !llama,
        .norm = llama ? NORM_RMS : NORM_LAYER,
        .position = llama                                ? POSITION_ROTARY
                    : shape->seq_len > LEARNED_POSITIONS ? POSITION_ALIBI
                                                         : POSITION_LEARNED,
        .attention = ATTENTION_GROUPED,
        .moe = {.every = 1},
    };
}

static void read_model(struct reading *reading, const struct shape *shape, struct transformer *model)
{
    const struct transformer *known = catalog_model_of_row(reading);
    const char *name = cell(reading, COLUMN_MODEL);
    if (known) {
        *model = *known;
        model_override(model, shape);
    } else if (shape->layers && shape->hidden && shape->heads) {
        *model = model_of_shape(shape);
        snprintf(model->name, sizeof model->name, "%s", *name ? name : cell(reading, COLUMN_CASE));
        snprintf(model->source, sizeof model->source, "%s", cell(reading, COLUMN_SOURCE));
    } else if (*name) {
        skip(reading, COLUMN_MODEL, "the catalog has no model '%.40s', and layers, hidden and heads do not say its shape", name);
        return;
    } else {
        skip(reading, COLUMN_LAYERS, "neither a model nor layers, hidden and heads");
        return;
    }
    if (model->heads <= 0 || (shape->hidden && shape->heads && !model->moe.experts && model->hidden % model->heads != 0))
        skip(reading, COLUMN_HEADS, "hidden %lld is not divisible by %d heads", (long long)model->hidden, model->heads);
    else if (model->kv_heads <= 0 || model->heads % model->kv_heads != 0)
        skip(reading, COLUMN_KV_HEADS, "%d heads are not divisible by %d key/value heads", model->heads, model->kv_heads);
}

/* --- the job and the layout --------------------------------------------------------------------------------------------------
 */

static void warn_unknown_feature(struct reading *reading, const char *name)
{
    const char *names[N_FEATURES];
    for (size_t i = 0; i < reading->n_unknown; i++)
        if (strcmp(reading->unknown_features[i], name) == 0)
            return;
    for (int i = 0; i < N_FEATURES; i++)
        names[i] = feature_name((enum feature)i);
    const char *near = nearest_name(name, names, N_FEATURES);
    diag_warning(reading->diags, cell_place(reading, COLUMN_FEATURES), "unknown feature '%.40s' left out%s%s%s", name,
                 near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
    reading->unknown_features = memory_grow(reading->unknown_features, &reading->unknown_capacity, reading->n_unknown + 1,
                                            sizeof *reading->unknown_features);
    reading->unknown_features[reading->n_unknown++] = memory_copy_text(name);
}

static feature_set read_features(struct reading *reading)
{
    feature_set set = 0;
    const char *p = cell(reading, COLUMN_FEATURES);
    while (*p) {
        char name[64];
        size_t n = strcspn(p, ";");
        while (n && *p == ' ')
            p++, n--;
        size_t length = n;
        while (length && p[length - 1] == ' ')
            length--;
        snprintf(name, sizeof name, "%.*s", (int)(length < sizeof name ? length : sizeof name - 1), p);
        int feature = *name ? feature_parse(name) : -1;
        if (feature >= 0)
            set |= (feature_set)1 << feature;
        else if (*name)
            warn_unknown_feature(reading, name);
        p += n + (p[n] == ';');
    }
    return set;
}

static int read_precision(struct reading *reading)
{
    const char *names[N_PRECISIONS];
    for (int i = 0; i < N_PRECISIONS; i++)
        names[i] = precision_name((enum precision)i);
    return word(reading, COLUMN_PRECISION, names, N_PRECISIONS);
}

static void read_job(struct reading *reading, const struct shape *shape, int zero, struct job *job)
{
    int precision = read_precision(reading);
    *job = (struct job){
        .global_batch = whole(reading, COLUMN_GLOBAL_BATCH, 1, MAX_BATCH, 0),
        .seq_len = shape->seq_len,
        .precision = precision < 0 ? PRECISION_BF16 : (enum precision)precision,
        .optimizer = OPTIMIZER_ADAM,
        .features = read_features(reading),
    };
    /* Without sharding Megatron keeps fp32 main gradients; sharded optimizers reduce them in bf16. */
    bool wide = (job->precision == PRECISION_BF16 && zero == 0) || job->precision == PRECISION_FP32;
    job->gradient_precision = wide ? PRECISION_FP32 : PRECISION_BF16;
    if (job->global_batch == 0)
        skip(reading, COLUMN_GLOBAL_BATCH, "no global batch");
    if (job->seq_len == 0)
        skip(reading, COLUMN_SEQ_LEN, "no sequence length");
}

static enum recompute read_recompute(struct reading *reading)
{
    const char *names[N_RECOMPUTES];
    for (int i = 0; i < N_RECOMPUTES; i++)
        names[i] = recompute_name((enum recompute)i);
    int value = word(reading, COLUMN_RECOMPUTE, names, N_RECOMPUTES);
    return value < 0 ? RECOMPUTE_NONE : (enum recompute)value;
}

static enum schedule read_schedule(struct reading *reading, int pp, int vpp)
{
    const char *names[N_SCHEDULES];
    for (int i = 0; i < N_SCHEDULES; i++)
        names[i] = schedule_name((enum schedule)i);
    int value = word(reading, COLUMN_SCHEDULE, names, N_SCHEDULES);
    if (value >= 0)
        return (enum schedule)value;
    return pp == 1 ? SCHEDULE_NONE : vpp == 1 ? SCHEDULE_1F1B : SCHEDULE_INTERLEAVED;
}

static int dimension(struct reading *reading, enum column column)
{
    return (int)whole(reading, column, 1, MAX_GPUS, 1);
}

/* dp and the number of GPUs follow from one another; when both are given they must agree. */
static void read_world(struct reading *reading, struct layout *layout, int *gpus)
{
    int64_t model_ranks = (int64_t)layout->tp * layout->pp * layout->cp;
    int64_t given = whole(reading, COLUMN_GPUS, 1, MAX_GPUS, 0), dp = whole(reading, COLUMN_DP, 1, MAX_GPUS, 0);
    if (!dp)
        dp = given && given % model_ranks == 0 ? given / model_ranks : 1;
    if (model_ranks * dp > MAX_GPUS || (given && given != model_ranks * dp)) {
        skip(reading, COLUMN_GPUS, "%lld gpus, but tp %d x pp %d x cp %d x dp %lld is %lld", (long long)given, layout->tp,
             layout->pp, layout->cp, (long long)dp, (long long)(model_ranks * dp));
        return;
    }
    layout->dp = (int)dp;
    *gpus = (int)(model_ranks * dp);
}

static void read_layout(struct reading *reading, feature_set features, struct layout *layout, int *gpus)
{
    *layout = (struct layout){
        .tp = dimension(reading, COLUMN_TP),
        .cp = dimension(reading, COLUMN_CP),
        .pp = dimension(reading, COLUMN_PP),
        .vpp = dimension(reading, COLUMN_VPP),
        .ep = dimension(reading, COLUMN_EP),
        .zero = (int)whole(reading, COLUMN_ZERO, 0, 3, 0),
        .sequence_parallel = whole(reading, COLUMN_SEQUENCE_PARALLEL, 0, 1, 0) == 1,
        .micro_batch = (int)whole(reading, COLUMN_MICRO_BATCH, 1, MAX_BATCH, 1),
        .recompute = read_recompute(reading),
        .features = features,
    };
    layout->schedule = read_schedule(reading, layout->pp, layout->vpp);
    read_world(reading, layout, gpus);
}

/* Where sliding windows were used and nobody published how wide. */
static void assume_window(struct measurement *row)
{
    bool sliding = row->job.features & FEATURE_BIT(SLIDING_WINDOW);
    if (sliding && row->model.window == 0)
        row->job.window = (int64_t)((double)row->job.seq_len * SLIDING_WINDOW_ASSUMED + 0.5);
}

/* --- rows and tables ---------------------------------------------------------------------------------------------------------
 */

static void read_outcome(struct reading *reading, struct measurement *row)
{
    static const char *const outcomes[] = {"ok", "oom"};
    row->oom = word(reading, COLUMN_OUTCOME, outcomes, 2) == 1;
    row->step_s = number(reading, COLUMN_STEP_TIME_S, 0, HUGE_VAL);
    row->mfu = number(reading, COLUMN_MFU_PCT, 0, 100) / 100;
    if (!row->oom && row->step_s <= 0)
        skip(reading, COLUMN_STEP_TIME_S, "no step time");
    if (row->oom)
        row->step_s = row->mfu = 0;
}

/* The cluster of the row's GPU and network, built once for all rows that have the same. */
static struct known_cluster *known_cluster(struct reading *reading, const char *gpu, int nodes, int per_node, double nic_rate)
{
    for (size_t i = 0; i < reading->n_clusters; i++) {
        struct known_cluster *k = &reading->clusters[i];
        bool same_network = !(k->nic_rate < nic_rate) && !(k->nic_rate > nic_rate);
        if (k->nodes == nodes && k->per_node == per_node && same_network && strcmp(k->gpu, gpu) == 0)
            return k;
    }
    reading->clusters =
        memory_grow(reading->clusters, &reading->clusters_capacity, reading->n_clusters + 1, sizeof *reading->clusters);
    struct known_cluster *k = &reading->clusters[reading->n_clusters++];
    *k = (struct known_cluster){.gpu = gpu, .nodes = nodes, .per_node = per_node, .nic_rate = nic_rate};
    struct diags why = {0}; /* the catalog's error becomes the row's warning */
    k->found = cluster_of_gpu(gpu, nodes, per_node, nic_rate, &k->cluster, &why) == STATUS_OK;
    if (!k->found)
        snprintf(k->why, sizeof k->why, "%s", why.n_items ? why.items[0].text : "not in the catalog");
    for (size_t i = 0; i + 1 < reading->n_clusters; i++)
        k->told |= !reading->clusters[i].found && strcmp(reading->clusters[i].gpu, gpu) == 0;
    diags_free(&why);
    return k;
}

static void read_cluster(struct reading *reading, struct measurement *row)
{
    enum { NODE_GPUS = 8 };
    int per_node = (int)whole(reading, COLUMN_GPUS_PER_NODE, 1, 1024, NODE_GPUS);
    double nic_gbps = number(reading, COLUMN_NIC_GBPS, 0, 1e6);
    const char *gpu = cell(reading, COLUMN_GPU);
    if (*gpu == '\0') {
        skip(reading, COLUMN_GPU, "no gpu is named");
    } else if (row->gpus) {
        int nodes = (row->gpus + per_node - 1) / per_node;
        struct known_cluster *known = known_cluster(reading, gpu, nodes, per_node, nic_gbps * 1e9 / 8);
        row->cluster = known->cluster;
        if (!known->found && !known->told)
            skip(reading, COLUMN_GPU, "%s (all rows of this GPU)", known->why);
        known->told = true;
        reading->unusable |= !known->found;
    }
}

/* One row; false when it cannot be used. */
static bool read_row(struct reading *reading, struct measurement *row)
{
    *row = (struct measurement){.at = csv_place(reading->csv, reading->row, -1),
                                .name = cell(reading, COLUMN_CASE),
                                .source = cell(reading, COLUMN_SOURCE),
                                .assumed = cell(reading, COLUMN_ASSUMED)};
    reading->unusable = false;
    reading->errors_before_row = reading->diags->n_errors;
    struct shape shape = read_shape(reading);
    int zero = (int)whole(reading, COLUMN_ZERO, 0, 3, 0);
    read_model(reading, &shape, &row->model);
    read_job(reading, &shape, zero, &row->job);
    assume_window(row);
    read_layout(reading, row->job.features, &row->layout, &row->gpus);
    read_cluster(reading, row);
    read_outcome(reading, row);
    return !reading->unusable;
}

/* What is assumed for empty cells must be said: in one line a table. */
static void note_defaults(const struct reading *reading)
{
    static const struct {
        enum column column;
        const char *taken;
    } defaults[] = {
        {COLUMN_VOCAB, "51,200 (32,000 when LLaMA-like)"},
        {COLUMN_GPUS_PER_NODE, "8"},
        {COLUMN_NIC_GBPS, "the GPU's usual"},
        {COLUMN_VPP, "1"},
        {COLUMN_CP, "1"},
        {COLUMN_ZERO, "0"},
        {COLUMN_SEQUENCE_PARALLEL, "0"},
        {COLUMN_MICRO_BATCH, "1"},
        {COLUMN_RECOMPUTE, "none"},
        {COLUMN_PRECISION, "bf16"},
    };
    char text[512] = "";
    size_t used = 0;
    for (size_t i = 0; i < sizeof defaults / sizeof *defaults && used < sizeof text; i++) {
        size_t n_empty = 0;
        for (size_t row = 0; row < reading->csv->n_rows; row++)
            n_empty += *csv_cell(reading->csv, row, reading->columns[defaults[i].column]) == '\0';
        if (n_empty)
            used += (size_t)snprintf(text + used, sizeof text - used, "%s%s %s", used ? ", " : "",
                                     expected[defaults[i].column].name, defaults[i].taken);
    }
    if (used)
        diag_note(reading->diags, (struct place){.file = reading->csv->name}, "assumed where cells are empty: %s", text);
}

static void reading_free(struct reading *reading)
{
    for (size_t i = 0; i < reading->n_unknown; i++)
        free((char *)reading->unknown_features[i]);
    free(reading->unknown_features);
    free(reading->models);
    free(reading->clusters);
}

enum status measurement_table_build(struct csv_table *csv, struct measurement_table *table, struct diags *diags)
{
    struct reading reading = {.csv = csv, .diags = diags};
    struct measurement_table built = {0};
    size_t errors_before = diags->n_errors, capacity = 0;
    if (csv_table_columns(csv, expected, N_COLUMNS, reading.columns, diags) == STATUS_OK) {
        csv_table_note_unknown_columns(csv, expected, N_COLUMNS, diags);
        for (reading.row = 0; reading.row < csv->n_rows; reading.row++) {
            built.items = memory_grow(built.items, &capacity, built.n_items + 1, sizeof *built.items);
            if (read_row(&reading, &built.items[built.n_items]))
                built.n_items++;
            else
                built.n_skipped++;
        }
        if (diags->n_errors == errors_before)
            note_defaults(&reading);
    }
    reading_free(&reading);
    built.csv = *csv;
    *csv = (struct csv_table){0};
    if (diags->n_errors > errors_before) {
        measurement_table_free(&built);
        return STATUS_BAD_INPUT;
    }
    *table = built;
    return STATUS_OK;
}

enum status measurement_table_read(const char *path, struct measurement_table *table, struct diags *diags)
{
    struct csv_table csv;
    enum status status = csv_table_read(path, &csv, diags);
    return status == STATUS_OK ? measurement_table_build(&csv, table, diags) : status;
}

void measurement_table_free(struct measurement_table *table)
{
    free(table->items);
    csv_table_free(&table->csv);
    *table = (struct measurement_table){0};
}

struct setting measurement_setting(const struct measurement *measurement)
{
    return (struct setting){
        .model = &measurement->model, .cluster = &measurement->cluster, .job = &measurement->job, .gpus = measurement->gpus};
}
