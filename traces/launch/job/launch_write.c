/* launch_write.c - writes a job as an experiment or as a row of a table. */
#include "traces/launch/job/launch_write.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/append.h"
#include "model/layout/dimension_value.h"
#include "model/spec/catalog.h"
#include "model/spec/schemas.h"
#include "traces/table/csv.h"
#include "traces/table/measurement.h"

/* --- the experiment --- */

enum { COMMENT_COLUMN = 36 };

static void write_line(FILE *out, int indent, const char *key, const char *value, const char *origin)
{
    int n = fprintf(out, "%*s%s: %s", indent, "", key, value);
    if (origin)
        fprintf(out, "%*s# %s", n < COMMENT_COLUMN ? COMMENT_COLUMN - n : 1, "", origin);
    fputc('\n', out);
}

/* A scalar or a list of words as YAML; texts that could be read otherwise stay in quotes. */
static void value_text(const json_t *value, char *text, size_t size)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.+-/";
    text[0] = '\0';
    if (json_is_array(value)) {
        size_t i;
        const json_t *item;
        json_array_foreach(value, i, item) text_append(text, size, "%s%s", i ? ", " : "[", json_string_value(item));
        text_append(text, size, "%s", i ? "]" : "[]");
        return;
    }
    const char *word = json_string_value(value);
    if (word && *word && strspn(word, plain) == strlen(word)) {
        text_append(text, size, "%s", word);
        return;
    }
    double number = json_real_value(value);
    if (json_is_real(value) && fabs(number) < 1e15 && !(number > floor(number))) {
        text_append(text, size, "%.0f", number);
        return;
    }
    char *dumped = json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(15) | JSON_ENSURE_ASCII);
    text_append(text, size, "%s", dumped ? dumped : "null");
    free(dumped);
}

static void write_members(const struct launch_description *d, const json_t *object, const char *path, int indent, FILE *out)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)object, key, value)
    {
        char whole[192], text[1024];
        snprintf(whole, sizeof whole, "%.90s.%.90s", path, key);
        if (json_is_object(value)) {
            fprintf(out, "%*s%s:\n", indent, "", key);
            write_members(d, value, whole, indent + 2, out);
        } else {
            value_text(value, text, sizeof text);
            write_line(out, indent, key, text, launch_origin_of(d, whole));
        }
    }
}

static void write_model(const struct launch_description *d, const char *catalog, FILE *out)
{
    const struct transformer *model = &d->job.model;
    struct transformer known;
    struct diags quiet = {0};
    fputs("model:\n", out);
    if (*catalog && catalog_model(catalog, &known, &quiet) == STATUS_OK) {
        const struct {
            const char *key, *path;
            int64_t ours, theirs;
        } others[] = {{"vocab", "model.vocab", model->vocab, known.vocab},
                      {"max_seq_len", "model.max_seq_len", model->max_seq_len, known.max_seq_len},
                      {"rope_theta", "model.rope_theta", (int64_t)model->rope_theta, (int64_t)known.rope_theta}};
        const char *named = launch_origin_of(d, "model");
        write_line(out, 2, "base", catalog, named ? named : "the catalog model with the shape of the arguments");
        for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
            char text[32];
            snprintf(text, sizeof text, "%lld", (long long)others[i].ours);
            if (others[i].ours > 0 && others[i].ours != others[i].theirs) /* 0: nothing says it */
                write_line(out, 2, others[i].key, text, launch_origin_of(d, others[i].path));
        }
    } else {
        struct transformer shape = *model;
        if (!shape.moe.experts)
            shape.moe = (struct mixture){0};
        json_t *object = schema_write(&transformer_schema, &shape);
        write_members(d, object, "model", 2, out);
        json_decref(object);
    }
    diags_free(&quiet);
}

/* A GPU and how many: a job's reader takes as many of its usual nodes as hold them. */
static bool is_gpu_alone(const struct launch_machine *machine, int gpus)
{
    const struct cluster *c = &machine->cluster;
    int per_node = c->gpu.gpus_per_node;
    return !machine->base[0] && c->gpus_per_node == per_node && c->nodes == (gpus + per_node - 1) / per_node;
}

static void write_gpus(const struct launch_description *d, const struct launch_machine *machine, const char *from, FILE *out)
{
    char text[NAME_SIZE + 48], origin[2 * LAUNCH_ORIGIN + 8];
    const char *number = launch_origin_of(d, "cluster.gpus");
    snprintf(text, sizeof text, "{gpu: %s, gpus: %d}", machine->cluster.gpu.name, d->job.gpus);
    snprintf(origin, sizeof origin, "%s%s%s", from, number ? "; " : "", number ? number : "");
    write_line(out, 0, "cluster", text, origin);
}

static void write_cluster(const struct launch_description *d, const struct launch_machine *machine, FILE *out)
{
    char text[32];
    const char *from = launch_origin_of(d, "cluster.gpu");
    from = from ? from : "--gpu";
    if (is_gpu_alone(machine, d->job.gpus)) {
        write_gpus(d, machine, from, out);
        return;
    }
    fputs("cluster:\n", out);
    if (machine->base[0]) {
        write_line(out, 2, "base", machine->base, machine->by_gpu ? "the catalog's one cluster of such GPUs" : "--cluster");
        if (machine->gpu[0])
            write_line(out, 2, "gpu", machine->gpu, from);
        snprintf(text, sizeof text, "%d", machine->cluster.nodes);
        if (machine->resized)
            write_line(out, 2, "nodes", text, "the number that the job needs");
    } else {
        const struct cluster *c = &machine->cluster;
        fprintf(out, "  name: \"%s\"\n", c->name);
        fputs("  source: assumed, usual nodes of this GPU on a non-blocking fabric\n", out);
        write_line(out, 2, "gpu", c->gpu.name, from);
        snprintf(text, sizeof text, "%d", c->nodes);
        write_line(out, 2, "nodes", text, "the number that the job needs");
        snprintf(text, sizeof text, "%d", c->gpus_per_node);
        if (d->job.gpus_per_node)
            write_line(out, 2, "gpus_per_node", text, launch_origin_of(d, "cluster.gpus_per_node"));
        snprintf(text, sizeof text, "%d", c->fabric_layers);
        write_line(out, 2, "fabric_layers", text, "usual for this number of nodes");
    }
    snprintf(text, sizeof text, "%d", d->job.gpus);
    write_line(out, 2, "gpus", text, launch_origin_of(d, "cluster.gpus"));
}

/* Not given, or its default where that needs no line. */
static bool is_left_out(const struct layout *l, enum layout_dimension dimension)
{
    const struct layout_dimension_row *row = &layout_dimensions[dimension];
    if (row->type == DIMENSION_TYPE_NUMBER && row->least > 0 && dimension_number(l, dimension) == 0)
        return true;
    bool quiet = dimension == DIMENSION_CP || dimension == DIMENSION_VPP || dimension == DIMENSION_EP;
    return !dimension_is_shown(l, dimension) || (quiet && dimension_is_usual(l, dimension));
}

static void write_layout(const struct launch_description *d, FILE *out)
{
    static const enum layout_dimension first[] = {
        DIMENSION_TP,
        DIMENSION_CP,
        DIMENSION_PP,
        DIMENSION_VPP,
        DIMENSION_DP,
        DIMENSION_EP,
        DIMENSION_ETP,
        DIMENSION_ZERO,
        DIMENSION_SHARD,
        DIMENSION_MICRO_BATCH,
        DIMENSION_SEQUENCE_PARALLEL,
    };
    const struct layout *l = &d->job.layout;
    enum layout_dimension order[N_LAYOUT_DIMENSIONS];
    layout_dimension_order(first, sizeof first / sizeof first[0], order);
    fputs("layout:\n", out);
    for (int i = 0; i < N_LAYOUT_DIMENSIONS; i++) {
        char text[DIMENSION_TEXT], path[64];
        const char *key = layout_dimensions[order[i]].key;
        snprintf(path, sizeof path, "layout.%s", key);
        if (!is_left_out(l, order[i]))
            write_line(out, 2, key, dimension_text(l, order[i], text), launch_origin_of(d, path));
    }
}

void launch_write_experiment(const struct launch_description *description, const struct launch_machine *machine,
                             const char *catalog, const char *const *heading, int n_heading, FILE *out)
{
    for (int i = 0; i < n_heading; i++)
        fprintf(out, "# %s\n", heading[i]);
    write_model(description, catalog, out);
    write_cluster(description, machine, out);
    fputs("job:\n", out);
    json_t *job = schema_write(&job_schema, &description->job.job);
    json_object_del(job, "memory_margin"); /* no file of a framework specifies it: the default holds */
    if (!json_object_get(job, "features"))
        json_object_set_new(job, "features", json_array());
    write_members(description, job, "job", 2, out);
    json_decref(job);
    write_layout(description, out);
}

/* --- rows of a measurement table --- */

/* Columns before, between and after those of the layout's numbers. */
static const char *const shape_columns[] = {"case",     "model",   "layers", "hidden", "ffn_hidden", "gated_mlp",    "heads",
                                            "kv_heads", "seq_len", "vocab",  "gpu",    "gpus",       "gpus_per_node"};
static const enum layout_dimension number_columns[] = {
    DIMENSION_TP,          DIMENSION_PP,    DIMENSION_VPP,
    DIMENSION_CP,          DIMENSION_DP,    DIMENSION_EP,
    DIMENSION_ZERO,        DIMENSION_SHARD, DIMENSION_SEQUENCE_PARALLEL,
    DIMENSION_MICRO_BATCH,
};
static const char *const job_columns[] = {"global_batch", "recompute", "precision", "gradient_precision", "schedule",
                                          "cp_comm",      "features",  "outcome",   "step_time_s",        "source"};
enum {
    N_SHAPE_COLUMNS = sizeof shape_columns / sizeof shape_columns[0],
    N_NUMBER_COLUMNS = sizeof number_columns / sizeof number_columns[0],
    N_JOB_COLUMNS = sizeof job_columns / sizeof job_columns[0],
};

void launch_write_header(FILE *out)
{
    const char *columns[N_SHAPE_COLUMNS + N_NUMBER_COLUMNS + N_JOB_COLUMNS];
    size_t n = 0;
    for (size_t i = 0; i < N_SHAPE_COLUMNS; i++)
        columns[n++] = shape_columns[i];
    for (size_t i = 0; i < N_NUMBER_COLUMNS; i++)
        columns[n++] = layout_dimensions[number_columns[i]].key;
    for (size_t i = 0; i < N_JOB_COLUMNS; i++)
        columns[n++] = job_columns[i];
    csv_write_row(out, columns, n);
}

/* A job says of its loss what it is, which tables leave open. */
static void write_features(FILE *out, feature_set features)
{
    char text[FEATURES_TEXT] = "";
    if (features)
        features_text(features, ";", text, sizeof text);
    if (!(features & (FEATURES_LOSS | FEATURE_BIT(COMPILE))))
        text_append(text, sizeof text, "%s" PLAIN_LOSS, features ? ";" : "");
    csv_write_cell(out, false, text);
}

void launch_write_row(const struct launch_run *run, FILE *out)
{
    const struct transformer *m = &run->job->model;
    const struct layout *l = &run->job->layout;
    const struct job *j = &run->job->job;
    char text[FEATURES_TEXT];
    csv_write_cell(out, true, run->name);
    csv_write_cell(out, false, run->catalog);
    const int64_t shape[] = {m->layers, m->hidden, m->ffn_hidden, m->gated_mlp, m->heads, m->kv_heads, j->seq_len, m->vocab};
    for (size_t i = 0; i < sizeof shape / sizeof shape[0]; i++)
        csv_write_integer(out, false, shape[i]);
    csv_write_cell(out, false, run->machine->cluster.gpu.name);
    csv_write_integer(out, false, run->job->gpus);
    csv_write_integer(out, false, run->machine->cluster.gpus_per_node);
    for (size_t i = 0; i < N_NUMBER_COLUMNS; i++)
        csv_write_integer(out, false, dimension_number(l, number_columns[i]));
    csv_write_integer(out, false, j->global_batch);
    csv_write_cell(out, false, recompute_format(l->recompute, text, sizeof text));
    csv_write_cell(out, false, precision_name(j->precision));
    csv_write_cell(out, false, precision_name(j->gradient_precision));
    csv_write_cell(out, false, schedule_name(l->schedule));
    csv_write_cell(out, false, l->cp > 1 ? cp_comm_format(l->cp_comm, text, sizeof text) : "");
    write_features(out, j->features);
    bool timed = run->step_s > 0 && !run->oom;
    csv_write_cell(out, false, run->oom ? "oom" : timed ? "ok" : "");
    if (timed)
        csv_write_number(out, false, run->step_s);
    else
        csv_write_cell(out, false, "");
    csv_write_cell(out, false, run->source);
    fputc('\n', out);
}
