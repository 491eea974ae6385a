#include "traces/table/measurement.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/append.h"
#include "model/base/memory.h"
#include "model/base/units.h"
#include "model/cost/work/work.h"
#include "model/spec/catalog.h"
#include "traces/table/measurement_reading.h"
#include "traces/table/reconcile.h"

/* --- the job and the layout ---------------------------------------------------------------------------------------- */

/* A cell of which nobody knows what the run had. */
static void skip_features(struct measurement_reading *reading, const char *why)
{
    reading_skip(reading, COLUMN_FEATURES, "features '%.40s': %s", reading_text(reading, COLUMN_FEATURES), why);
    reading->bad_cell = true;
}

/* A feature by a name of its cell, or one to take away; behind a sign ('\0': there is none) it must be one. False where nobody
 * knows it. */
static bool read_feature(struct measurement_reading *reading, char sign, const char *name, feature_set *set)
{
    bool takes = sign == '-';
    const char *ours = words_ours(COLUMN_FEATURES, name);
    int feature = feature_parse(ours ? ours : name);
    bool none = strcmp(ours ? ours : name, "none") == 0, plain = !takes && strcmp(name, PLAIN_LOSS) == 0;
    if (sign && (none || !*name)) {
        skip_features(reading, "a name belongs behind a sign; write none alone where there is no feature");
        return true;
    }
    if (feature < 0) {
        reading->plain_loss |= plain;
        return plain || none;
    }
    feature_set bit = (feature_set)1 << feature;
    if (takes) {
        reading->absent |= bit & ~*set;
        reading->plain_loss |= bit == FEATURE_BIT(FUSED_LOSS);
        *set &= ~bit;
    } else {
        *set = reading->changes_usual ? features_with(*set, (enum feature)feature) : *set | bit;
    }
    return true;
}

static void warn_unknown_feature(struct measurement_reading *reading, char sign, const char *name)
{
    char hint[96];
    reading_tell_once(reading, COLUMN_FEATURES, name, "unknown feature '%s%.40s' left out%s", sign == '-' ? "-" : "", name,
                      reading_hint(name, feature_names, N_FEATURES, hint, sizeof hint));
}

/* An empty cell names no feature, nor does the word none; PLAIN_LOSS says that the loss is not fused. A table without the column
 * says nothing of them, as a job that names none; where a cell begins with a sign, +NAME and -NAME change what such a job has. A
 * name may be of several words ("flash attention 2"), and several names may have but blanks between them, or a +. */
static feature_set read_features(struct measurement_reading *reading, feature_set usual)
{
    const char *rest = reading_text(reading, COLUMN_FEATURES);
    rest += strspn(rest, ";, ");
    reading->plain_loss = false;
    reading->absent = 0;
    reading->changes_usual = *rest == '+' || *rest == '-';
    feature_set set = reading->changes_usual || reading->columns[COLUMN_FEATURES] < 0 ? usual : 0;
    if (!*rest && *reading_text(reading, COLUMN_FEATURES))
        skip_features(reading, "names are wanted; write none where there is no feature");
    while (*(rest += strspn(rest, ";, "))) {
        char name[64], sign = *rest == '+' || *rest == '-' ? *rest : '\0';
        rest += sign ? 1 + strspn(rest + 1, " ") : 0;
        size_t n = strcspn(rest, ";,+"), first = strcspn(rest, ";,+ ");
        snprintf(name, sizeof name, "%.*s", (int)n, rest);
        bool known = read_feature(reading, sign, name, &set);
        if (!known && first < n) {
            snprintf(name, sizeof name, "%.*s", (int)first, rest);
            known = read_feature(reading, sign, name, &set);
            n = known ? first : n;
            snprintf(name, sizeof name, "%.*s", (int)n, rest);
        }
        if (!known)
            warn_unknown_feature(reading, sign, name);
        rest += n;
    }
    return set;
}

/* Sequences a step, or what makes them: tokens a step, or the micro-batches of each replica. */
static int64_t read_batch(struct measurement_reading *reading, int64_t seq_len)
{
    int64_t batch = reading_whole(reading, COLUMN_GLOBAL_BATCH, 1, MAX_BATCH, 0);
    int64_t tokens = reading_whole(reading, COLUMN_BATCH_TOKENS, 1, (int64_t)1 << 40, 0);
    double said = (double)tokens, counted = (double)batch * (double)seq_len;
    if (batch && tokens && seq_len && (counted > 1.1 * said || said > 1.1 * counted))
        reading_tell_once(reading, COLUMN_BATCH_TOKENS, "global_batch",
                          "batch_tokens %lld contradicts global_batch %lld of %lld tokens; global_batch is taken",
                          (long long)tokens, (long long)batch, (long long)seq_len);
    if (batch || !tokens || !seq_len)
        return batch;
    batch = (tokens + seq_len / 2) / seq_len;
    return batch < 1 ? 1 : batch < MAX_BATCH ? batch : MAX_BATCH;
}

/* What gradients are reduced in. fp16 training reduces them in fp16; bf16 without sharding keeps fp32 main ones, sharded
 * optimizers reduce bf16. Where the stage is not said it is that of current training stacks, and so is this, as in a job that
 * names neither. */
static enum precision gradient_precision(enum precision precision, int zero, bool zero_is_said)
{
    if (precision == PRECISION_FP16)
        return PRECISION_FP16;
    bool wide = !zero_is_said || (precision == PRECISION_BF16 && zero == 0) || precision == PRECISION_FP32;
    return wide ? PRECISION_FP32 : PRECISION_BF16;
}

static void read_job(struct measurement_reading *reading, const struct measurement_shape *shape, int zero, struct job *job)
{
    bool zero_is_said = *reading_text(reading, COLUMN_ZERO) != '\0';
    int precision = reading_way(reading, COLUMN_PRECISION, precision_names, N_PRECISIONS);
    *job = (struct job){
        .global_batch = read_batch(reading, shape->seq_len),
        .seq_len = shape->seq_len,
        .precision = precision < 0 ? PRECISION_BF16 : (enum precision)precision,
        .optimizer = OPTIMIZER_ADAM,
        .features = read_features(reading, FEATURES_USUAL),
    };
    static const char *const widths[] = {"fp32", "bf16", "fp16"}; /* by enum precision */
    int gradients = reading_way(reading, COLUMN_GRADIENT_PRECISION, widths, sizeof widths / sizeof *widths);
    enum precision unsaid = gradient_precision(job->precision, zero, zero_is_said);
    job->gradient_precision = gradients < 0 ? unsaid : (enum precision)gradients;
    reading->wide_gradients |= gradients < 0 && unsaid != gradient_precision(job->precision, zero, true);
    if (job->seq_len == 0)
        reading_skip(reading, COLUMN_SEQ_LEN, "no sequence length");
}

/* A cell in lower case. Returns buffer. */
static char *lowered(const struct measurement_reading *reading, enum column column, char *buffer, size_t size)
{
    snprintf(buffer, size, "%s", reading_text(reading, column));
    for (char *c = buffer; *c; c++)
        *c = (char)tolower((unsigned char)*c);
    return buffer;
}

/* "layernorm; moe_act" as "layernorm+moe_act": words of other columns are parted so. */
static void join_words(char *text)
{
    char *to = text;
    for (const char *from = text; *from;) {
        size_t n = strcspn(from, ";,"), word = n;
        while (word && from[word - 1] == ' ')
            word--;
        if (word && to > text)
            *to++ = '+';
        memmove(to, from, word);
        to += word;
        from += n;
        from += strspn(from, ";, ");
    }
    *to = '\0';
}

static struct recompute read_recompute(struct measurement_reading *reading)
{
    char text[2 * RECOMPUTE_TEXT], why[RECOMPUTE_WHY];
    struct recompute recompute = {.what = RECOMPUTE_NONE};
    const char *ours = words_ours(COLUMN_RECOMPUTE, reading_text(reading, COLUMN_RECOMPUTE));
    lowered(reading, COLUMN_RECOMPUTE, text, sizeof text);
    join_words(text);
    if (!recompute_parse(ours ? ours : text, &recompute, why, sizeof why) && *text)
        reading_skip(reading, COLUMN_RECOMPUTE, "recompute %s", why);
    return recompute;
}

static enum cp_comm read_cp_comm(struct measurement_reading *reading)
{
    char text[2 * CP_COMM_TEXT], why[CP_COMM_WHY];
    const char *ours = words_ours(COLUMN_CP_COMM, reading_text(reading, COLUMN_CP_COMM));
    int found = cp_comm_parse(ours ? ours : lowered(reading, COLUMN_CP_COMM, text, sizeof text), why, sizeof why);
    if (found < 0 && *text)
        reading_skip(reading, COLUMN_CP_COMM, "cp_comm %s", why);
    return found < 0 ? CP_RING : (enum cp_comm)found;
}

/* One that nobody here knows is told, and what its pp and vpp mean is taken. */
static enum schedule read_schedule(struct measurement_reading *reading, int pp, int vpp)
{
    char hint[96];
    const char *text = reading_text(reading, COLUMN_SCHEDULE);
    int value = reading_word(reading, COLUMN_SCHEDULE, schedule_names, N_SCHEDULES);
    enum schedule usual = pp == 1 ? SCHEDULE_NONE : vpp == 1 ? SCHEDULE_1F1B : SCHEDULE_INTERLEAVED;
    if (value < 0 && *text && pp > 1)
        reading_tell_once(reading, COLUMN_SCHEDULE, text, "schedule '%.40s' is unknown, %s is taken%s", text,
                          schedule_name(usual), reading_hint(text, schedule_names, N_SCHEDULES, hint, sizeof hint));
    return value >= 0 ? (enum schedule)value : usual;
}

static int dimension(struct measurement_reading *reading, enum column column)
{
    return (int)reading_whole(reading, column, 1, MAX_GPUS, 1);
}

/* dp and the number of GPUs follow from one another; when both are given they must agree. */
static void read_world(struct measurement_reading *reading, struct layout *layout, int *gpus)
{
    int64_t model_ranks; /* tp and pp are at most 2^24 each */
    if (__builtin_mul_overflow((int64_t)layout->tp * layout->pp, (int64_t)layout->cp, &model_ranks) || model_ranks > MAX_GPUS) {
        reading_skip(reading, COLUMN_GPUS, "tp %d x pp %d x cp %d are more than %d gpus", layout->tp, layout->pp, layout->cp,
                     MAX_GPUS);
        return;
    }
    int64_t given = reading_whole(reading, COLUMN_GPUS, 1, MAX_GPUS, 0), dp = reading_whole(reading, COLUMN_DP, 1, MAX_GPUS, 0);
    if (!dp && !given)
        reading_skip(reading, COLUMN_GPUS, "neither gpus nor dp says how many there are");
    if (!dp)
        dp = given && given % model_ranks == 0 ? given / model_ranks : 1;
    if (layout->cp > 1 && dp % layout->cp == 0 &&
        given == model_ranks / layout->cp * dp) { /* in others' words cp is part of it */
        reading_tell_once(reading, COLUMN_DP, measurement_columns[COLUMN_DP].name,
                          "dp %lld counts the ranks of cp %d too, by the number of GPUs: %lld is taken", (long long)dp,
                          layout->cp, (long long)(dp / layout->cp));
        dp /= layout->cp;
    }
    if (model_ranks * dp > MAX_GPUS || (given && given != model_ranks * dp)) {
        reading_skip(reading, COLUMN_GPUS, "%lld gpus, but tp %d x pp %d x cp %d x dp %lld is %lld", (long long)given, layout->tp,
                     layout->pp, layout->cp, (long long)dp, (long long)(model_ranks * dp));
        return;
    }
    layout->dp = (int)dp;
    *gpus = (int)(model_ranks * dp);
}

static void read_layout(struct measurement_reading *reading, int zero, feature_set features, struct layout *layout, int *gpus)
{
    *layout = (struct layout){
        .tp = dimension(reading, COLUMN_TP),
        .cp = dimension(reading, COLUMN_CP),
        .cp_comm = read_cp_comm(reading),
        .pp = dimension(reading, COLUMN_PP),
        .vpp = dimension(reading, COLUMN_VPP),
        .ep = dimension(reading, COLUMN_EP),
        .zero = zero,
        .shard = (int)reading_whole(reading, COLUMN_SHARD, 0, MAX_GPUS, 0),
        .micro_batch = (int)reading_whole(reading, COLUMN_MICRO_BATCH, 1, MAX_BATCH, 1),
        .recompute = read_recompute(reading),
        .features = features,
    };
    bool usual = layout_unasked.sequence_parallel && layout->tp > 1;
    layout->sequence_parallel = reading_whole(reading, COLUMN_SEQUENCE_PARALLEL, 0, 1, usual) == 1;
    layout->schedule = read_schedule(reading, layout->pp, layout->vpp);
    read_world(reading, layout, gpus);
    layout_settle_shard(layout);
    layout->cp_comm = cp_comm_settled(layout->cp_comm, layout->cp);
}

/* Whether the catalog says what the shape columns of a row leave open. */
static bool is_of_catalog(const struct measurement_reading *reading, size_t row)
{
    const char *name = csv_cell(reading->csv, row, reading->columns[COLUMN_MODEL]);
    for (size_t i = 0; i < reading->n_models; i++)
        if (strcmp(reading->models[i].name, name) == 0)
            return reading->models[i].found;
    return false;
}

/* Does a row leave a column's value to us? Of the vocabulary none of a model that the catalog has. */
static bool is_left_open(const struct measurement_reading *reading, size_t row, enum column column)
{
    const char *text = csv_cell(reading->csv, row, reading->columns[column]);
    return (*text == '\0' || words_say_nothing(text)) && !(column == COLUMN_VOCAB && is_of_catalog(reading, row));
}

/* A batch that is said by how many micro-batches each replica takes, or a micro-batch by that and the batch. */
static void read_accumulation(struct measurement_reading *reading, struct layout *layout, struct job *job)
{
    int64_t times = reading_whole(reading, COLUMN_ACCUMULATION, 1, MAX_BATCH, 0), replica;
    if (times && job->global_batch && layout->dp > 0 && is_left_open(reading, reading->row, COLUMN_MICRO_BATCH) &&
        job->global_batch % layout->dp == 0 && job->global_batch / layout->dp % times == 0)
        layout->micro_batch = (int)(job->global_batch / layout->dp / times);
    bool fits = !__builtin_mul_overflow(times * layout->micro_batch, (int64_t)layout->dp, &replica) && replica <= MAX_BATCH;
    if (job->global_batch && times && !reading->unusable && replica != job->global_batch)
        reading_tell_once(reading, COLUMN_ACCUMULATION, "global_batch",
                          "accumulation %lld x micro_batch %d x dp %d contradicts global_batch %lld, which is taken",
                          (long long)times, layout->micro_batch, layout->dp, (long long)job->global_batch);
    if (job->global_batch || reading->unusable)
        return;
    if (!times)
        reading_skip(reading, COLUMN_GLOBAL_BATCH, "no global batch");
    else if (!fits)
        reading_skip(reading, COLUMN_ACCUMULATION, "a global batch of more than %d", MAX_BATCH);
    else
        job->global_batch = replica;
}

/* Usual features are those of the row's GPU, which is known now. */
static void assume_features(struct measurement_reading *reading, struct measurement *row)
{
    char names[FEATURES_TEXT], others[FEATURES_TEXT];
    feature_set assumed = row->job.features & ~read_features(reading, FEATURES_USUAL);
    if (reading->columns[COLUMN_FEATURES] < 0 || reading->changes_usual)
        row->job.features = row->layout.features = read_features(reading, features_usual(&row->cluster.gpu)) | assumed;
    reading->n_changes += reading->changes_usual;
    if (reading->absent)
        reading_tell_once(reading, COLUMN_FEATURES, features_text(reading->absent, ", -", names, sizeof names),
                          "features: -%s without effect; the run has %s", names,
                          row->job.features ? features_text(row->job.features, ", ", others, sizeof others) : "none");
}

/* A generation of FlashAttention that has no kernels for the row's GPU gives way to the newest that has. */
static void adapt_attention(struct measurement_reading *reading, struct measurement *row)
{
    static const feature_set generations[] = {FEATURE_BIT(FLASH_ATTENTION), FEATURE_BIT(FLASH_ATTENTION2),
                                              FEATURE_BIT(FLASH_ATTENTION3)};
    const int newest = gpu_flash_attention(&row->cluster.gpu);
    feature_set said = row->job.features & FEATURES_FLASH, there = 0;
    char names[FEATURES_TEXT], taken[FEATURES_TEXT];
    for (int i = 0; i < newest; i++)
        there |= generations[i];
    if (reading->unusable || !(said & ~there) || newest < 1)
        return;
    reading_tell_once(reading, COLUMN_FEATURES, row->cluster.gpu.name, "%s: no kernels for the %s, whose newest is taken: %s",
                      features_text(said & ~there, ", ", names, sizeof names), row->cluster.gpu.name,
                      features_text(generations[newest - 1], ", ", taken, sizeof taken));
    row->job.features = row->layout.features = (row->job.features & ~said) | generations[newest - 1];
}

/* Where sliding windows were used and nobody published how wide. */
static void assume_window(struct measurement *row)
{
    bool sliding = row->job.features & FEATURE_BIT(SLIDING_WINDOW);
    if (sliding && row->model.window == 0)
        row->job.window = (int64_t)((double)row->job.seq_len * SLIDING_WINDOW_ASSUMED + 0.5);
}

/* GPT-like models of FSDP stacks are of MPT's line (assumption): ALiBi, no biases, tied tables. */
static void assume_line(const struct measurement_reading *reading, struct measurement *row)
{
    bool named = *reading_text(reading, COLUMN_MODEL) != '\0', gpt = row->model.norm == NORM_LAYER && !row->model.gated_mlp;
    if (named || !gpt || row->layout.zero < 3 || row->layout.features & FEATURES_FUSING)
        return;
    row->model.position = POSITION_ALIBI;
    row->model.linear_bias = row->model.qkv_bias = false;
}

/* Megatron-LM (since 2021) and DeepSpeed cut what a stage sends among its tensor-parallel ranks unasked; tables rarely say so. */
static void assume_messages(struct measurement *row)
{
    const feature_set cut = FEATURE_BIT(SCATTER_GATHER_P2P);
    if (row->layout.tp == 1 || row->layout.pp == 1 || !(row->layout.features & FEATURE_BIT(FUSED_OPS)))
        return;
    row->layout.features |= cut;
    row->job.features |= cut;
}

/* A fused loss came years after fused layers: stacks of the age of overlapped exchanges have it (assumption); tables rarely say.
 */
static void assume_loss(struct measurement *row)
{
    const feature_set ways = FEATURE_BIT(TP_OVERLAP) | FEATURE_BIT(ASYNC_TP);
    feature_set used = row->layout.features;
    if ((used & FEATURES_LOSS) || !(used & FEATURE_BIT(FUSED_OPS)) || !(used & ways))
        return;
    row->layout.features |= FEATURE_BIT(FUSED_LOSS);
    row->job.features |= FEATURE_BIT(FUSED_LOSS);
    row->loss_assumed = true;
}

/* --- rows and tables ----------------------------------------------------------------------------------------------- */

/* Is a column among those that the source does not state, between semicolons? */
static bool is_named(const char *columns, const char *column)
{
    size_t length = strlen(column);
    for (const char *at = columns; (at = strstr(at, column)) != NULL; at += length) {
        bool begins = at == columns || at[-1] == ';', ends = at[length] == '\0' || at[length] == ';';
        if (begins && ends)
            return true;
    }
    return false;
}

static unsigned read_open(const struct measurement_reading *reading, const char *assumed)
{
    static const struct {
        enum column column;
        enum measurement_open bit;
    } columns[] = {{COLUMN_VOCAB, OPEN_VOCAB}, {COLUMN_MICRO_BATCH, OPEN_MICRO_BATCH}, {COLUMN_RECOMPUTE, OPEN_RECOMPUTE}};
    unsigned open = 0;
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
        if (is_named(assumed, measurement_columns[columns[i].column].name) ||
            is_left_open(reading, reading->row, columns[i].column))
            open |= columns[i].bit;
    bool counted = *reading_text(reading, COLUMN_ACCUMULATION) && !is_left_open(reading, reading->row, COLUMN_ACCUMULATION);
    return counted ? open & ~(unsigned)OPEN_MICRO_BATCH : open; /* so many micro-batches there are */
}

/* One row; false when it cannot be used. */
static bool read_row(struct measurement_reading *reading, struct measurement *row)
{
    *row = (struct measurement){.at = csv_place(reading->csv, reading->row, -1),
                                .name = reading_text(reading, COLUMN_CASE),
                                .source = reading_text(reading, COLUMN_SOURCE),
                                .assumed = reading_text(reading, COLUMN_ASSUMED)};
    reading->unusable = reading->bad_cell = false;
    struct measurement_shape shape = reading_shape(reading);
    int zero = (int)reading_whole(reading, COLUMN_ZERO, 0, 3, layout_unasked.zero);
    reading_model(reading, &shape, &row->model);
    row->named = *row->name;
    row->name = *row->name ? row->name : reading_text(reading, COLUMN_MODEL);
    read_job(reading, &shape, zero, &row->job);
    assume_window(row);
    read_layout(reading, zero, row->job.features, &row->layout, &row->gpus);
    read_accumulation(reading, &row->layout, &row->job);
    if (row->model.moe.experts && row->gpus > 1 && *reading_text(reading, COLUMN_EP) == '\0')
        reading_tell_once(reading, COLUMN_EP, measurement_columns[COLUMN_EP].name,
                          "ep is not said of a mixture of experts: 1 is taken, all experts on every rank");
    assume_line(reading, row);
    assume_messages(row);
    if (!reading->plain_loss)
        assume_loss(row);
    reading_adapt(reading, &row->layout, &row->job);
    reading_cluster(reading, row);
    assume_features(reading, row);
    adapt_attention(reading, row);
    row->open = read_open(reading, row->assumed);
    reading_outcome(reading, row);
    return !reading->unusable;
}

static bool any_empty(const struct measurement_reading *reading, enum column column)
{
    for (size_t row = 0; row < reading->csv->n_rows; row++)
        if (is_left_open(reading, row, column))
            return true;
    return false;
}

/* What is assumed for empty cells must be said: in one line a table. */
static void note_defaults(const struct measurement_reading *reading)
{
    static const struct {
        enum column column;
        const char *taken;
    } defaults[] = {
        {COLUMN_VOCAB, "51,200 (32,000 when LLaMA-like)"},
        {COLUMN_GPUS_PER_NODE, "the GPU's usual"},
        {COLUMN_NIC_GBPS, "the GPU's usual"},
        {COLUMN_TP, "1"},
        {COLUMN_PP, "1"},
        {COLUMN_VPP, "1"},
        {COLUMN_CP, "1"},
        {COLUMN_ZERO, "1"},
        {COLUMN_SEQUENCE_PARALLEL, "1 where tp > 1"},
        {COLUMN_MICRO_BATCH, "1 or what is likely"},
        {COLUMN_RECOMPUTE, "none where it fits"},
        {COLUMN_PRECISION, "bf16"},
        {COLUMN_FEATURES, "none (eager code)"},
    };
    char text[512] = "";
    bool usual_features = reading->columns[COLUMN_FEATURES] < 0; /* no column is not a column of empty cells */
    for (size_t i = 0; i < sizeof defaults / sizeof *defaults; i++) {
        if (defaults[i].column == COLUMN_FEATURES && usual_features)
            continue;
        if (any_empty(reading, defaults[i].column))
            text_append(text, sizeof text, "%s%s %s%s", *text ? ", " : "", measurement_columns[defaults[i].column].name,
                        defaults[i].taken,
                        defaults[i].column == COLUMN_ZERO && reading->wide_gradients
                            ? " with gradients in fp32 (bf16 where the cell says 1)"
                            : "");
    }
    struct place table = {.file = reading->csv->name};
    if (*text)
        diag_note(reading->diags, table, "assumed where cells are empty: %s", text);
    if (reading->n_changes)
        diag_note(reading->diags, table,
                  "features of %zu row%s, which begin with a sign, change those of current training stacks", reading->n_changes,
                  reading->n_changes == 1 ? "" : "s");
    if (usual_features)
        diag_note(reading->diags, table, "there is no column 'features': those of current training stacks are assumed");
}

static void reading_free(struct measurement_reading *reading)
{
    for (size_t i = 0; i < reading->n_told; i++)
        free(reading->told[i].text);
    free(reading->told);
    free(reading->models);
    free(reading->clusters);
}

/* Where there is a column of models, the catalog can stand for the columns of their shape. */
static enum status find_columns(struct measurement_reading *reading)
{
    struct csv_column expected[N_COLUMNS];
    memcpy(expected, measurement_columns, sizeof expected);
    if (csv_table_column(reading->csv, measurement_columns[COLUMN_MODEL].name) >= 0)
        expected[COLUMN_LAYERS].required = expected[COLUMN_HIDDEN].required = expected[COLUMN_HEADS].required = false;
    return csv_table_columns(reading->csv, expected, N_COLUMNS, reading->columns, reading->diags);
}

enum status measurement_table_build(struct csv_table *csv, struct measurement_table *table, struct diags *diags)
{
    struct measurement_reading reading = {.csv = csv, .diags = diags};
    struct measurement_table built = {0};
    size_t errors_before = diags->n_errors, capacity = 0;
    words_rename_columns(&reading, csv);
    if (find_columns(&reading) == STATUS_OK) {
        csv_table_note_unknown_columns(csv, measurement_columns, N_COLUMNS, diags);
        cells_find_point(&reading);
        for (reading.row = 0; reading.row < csv->n_rows; reading.row++) {
            built.items = memory_grow(built.items, &capacity, built.n_items + 1, sizeof *built.items);
            if (read_row(&reading, &built.items[built.n_items]))
                built.n_items++;
            else
                built.n_skipped++;
        }
        if (diags->n_errors == errors_before) {
            note_defaults(&reading);
            measurement_reconcile(&built, diags);
        }
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
