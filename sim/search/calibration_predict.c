/* calibration_predict.c - the parameters that rows depend on, and the predicted times of rows. */
#include "sim/search/calibration_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/thread_pool.h"

enum { KEPT_OPS_MAX = 6 << 20 }; /* of runs that are prepared once: 0.8 GB; those beyond are prepared for every prediction */
#define CAST_BYTES_START 6.0     /* a bf16 operand read for its largest value, read again, written in 8 bits, and some */
#define CAST_FIXED_START 3e-6    /* a launch or two */

/* The struct that the schema's offsets count from. */
static const void *entry_of(const struct calibration *c, const struct cluster *cluster)
{
    return c->kind == CATALOG_CLUSTERS ? (const void *)cluster : &cluster->gpu;
}

/* --- choosing ------------------------------------------------------------------------------------------------------ */

/* Keys of a GPU as the entry has them. */
static const char *gpu_path(const struct calibration *c, const char *key, char *path, size_t size)
{
    snprintf(path, size, "%s%s", c->kind == CATALOG_CLUSTERS ? "gpu." : "", key);
    return path;
}

static void add_parameter(struct calibration *c, const struct entry_parameter *entry)
{
    for (size_t i = 0; i < c->n_parameters; i++)
        if (c->parameters[i].cast < 0 && c->parameters[i].entry.offset == entry->offset)
            return;
    if (c->n_parameters == CALIBRATION_PARAMETERS_MAX)
        return;
    double value = entry_parameter_get(entry, entry_of(c, &c->cluster));
    c->parameters[c->n_parameters++] =
        (struct calibration_parameter){.entry = *entry, .cast = -1, .before = value, .after = value};
}

/* The parameters that collectives between nodes determine together: where messages are long, where short, and between. */
static const char *const net_keys[] = {"net_fraction", "net_base", "net_fill", "net_fill_bytes"};

/* All parameters below a key; with `except` but for that one and for deeper groups. Whether there is one. */
static bool add_section(struct calibration *c, const char *section, const char *except, bool even_absent)
{
    size_t n, length = strlen(section);
    bool any = false;
    struct entry_parameter *all = entry_parameters(c->schema, &n);
    for (size_t i = 0; i < n; i++) {
        const char *key = all[i].path;
        bool below = strncmp(key, section, length) == 0 && (key[length] == '.' || key[length] == '\0');
        const char *rest = below && key[length] ? key + length + 1 : key;
        bool excepted = except && (strcmp(rest, except) == 0 || strchr(rest, '.'));
        /* what may be left out and is zero is not there: NVLS, say */
        bool unset =
            all[i].row->fallback && !*all[i].row->fallback && entry_parameter_get(&all[i], entry_of(c, &c->cluster)) <= 0;
        if (below && !excepted && (even_absent || !unset)) {
            add_parameter(c, &all[i]);
            any = true;
        }
    }
    free(all);
    return any;
}

static void add_gpu_section(struct calibration *c, const char *section, const char *except)
{
    char path[ENTRY_PATH_SIZE];
    add_section(c, gpu_path(c, section, path, sizeof path), except, false);
}

static void choose_for_row(struct calibration *c, const struct calibration_row *row)
{
    if (row->run) {
        static const char *const keys[] = {"sustained_clock", "host_launch", "memory.bandwidth_fraction", "clock_spread"};
        for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
            add_gpu_section(c, keys[i], NULL);
        if (c->kind == CATALOG_CLUSTERS)
            add_section(c, "net_fraction", NULL, false);
        return;
    }
    struct calibration_section about = calibration_kernels[row->kernel->op].about(row->kernel);
    if (!about.of_cluster)
        add_gpu_section(c, about.key, about.except);
}

/* As many of net_keys as the cases of collectives between nodes can determine: fewer than there are cases. */
static void choose_between_nodes(struct calibration *c)
{
    uint64_t cases[sizeof net_keys / sizeof *net_keys + 1];
    size_t n_keys = sizeof net_keys / sizeof *net_keys, n = 0;
    for (size_t i = 0; i < c->n_rows && n <= n_keys; i++) {
        const struct calibration_row *row = &c->rows[i];
        if (!row->kernel || row->held_out || !calibration_kernels[row->kernel->op].about(row->kernel).of_cluster)
            continue;
        uint64_t here = calibration_case(row);
        bool seen = false;
        for (size_t k = 0; k < n && !seen; k++)
            seen = cases[k] == here;
        if (!seen)
            cases[n++] = here;
    }
    for (size_t k = 0; k < n_keys && (k == 0 ? n > 0 : k + 1 < n); k++)
        add_section(c, net_keys[k], NULL, false);
}

static void add_cast(struct calibration *c, enum precision precision, enum cast_part part)
{
    static const struct field rows[] = {
        [CAST_BYTES] = {.key = "bytes", .type = FIELD_QUANTITY, .dimension = DIM_BYTES, .min = 0.1, .max = 60},
        [CAST_FIXED] = {.key = "fixed", .type = FIELD_QUANTITY, .dimension = DIM_TIME, .min = 0, .max = 1e-3},
        [CAST_PADDING] = {.key = "padding", .type = FIELD_QUANTITY, .dimension = DIM_TIME, .min = 0, .max = 1e-3},
    };
    if (c->n_parameters == CALIBRATION_PARAMETERS_MAX)
        return;
    struct calibration_parameter *p = &c->parameters[c->n_parameters++];
    static const double starts[] = {[CAST_BYTES] = CAST_BYTES_START, [CAST_FIXED] = CAST_FIXED_START, [CAST_PADDING] = 0};
    double start = starts[part];
    *p = (struct calibration_parameter){.cast = (int)precision, .part = part, .before = start, .after = start};
    p->entry.row = &rows[part];
    snprintf(p->entry.path, sizeof p->entry.path, "(cast.%s.%s)", precision_name(precision), rows[part].key);
}

/* The tables' GEMMs in a narrow precision include the cast of A, which the entry does not. */
static void add_casts(struct calibration *c)
{
    bool seen[N_PRECISIONS] = {false};
    for (size_t i = 0; i < c->n_rows; i++)
        if (c->rows[i].kernel && c->rows[i].kernel->op == MEASURED_GEMM)
            seen[c->rows[i].kernel->gemm.precision] = true;
    for (int p = PRECISION_FP8; p < N_PRECISIONS; p++) {
        for (int part = 0; part < N_CAST_PARTS && seen[p]; part++)
            add_cast(c, (enum precision)p, (enum cast_part)part);
    }
}

/* bf16 and fp16 run on the same units: where an entry has them equal and the tables have only one, they stay equal. */
static void tie_twins(struct calibration *c)
{
    const struct gemm_parameters *gemm = c->cluster.gpu.gemm;
    bool seen[N_PRECISIONS] = {false};
    for (size_t i = 0; i < c->n_rows; i++)
        if (c->rows[i].kernel && c->rows[i].kernel->op == MEASURED_GEMM)
            seen[c->rows[i].kernel->gemm.precision] = true;
    if ((seen[PRECISION_BF16] && seen[PRECISION_FP16]) || memcmp(&gemm[PRECISION_BF16], &gemm[PRECISION_FP16], sizeof *gemm) != 0)
        return;
    for (size_t i = 0; i < c->n_parameters; i++) {
        struct entry_parameter *entry = &c->parameters[i].entry;
        char *key = c->parameters[i].cast < 0 ? strstr(entry->path, "gemm.") : NULL;
        if (!key || (strncmp(key, "gemm.bf16.", 10) != 0 && strncmp(key, "gemm.fp16.", 10) != 0))
            continue;
        bool wide = key[5] == 'b';
        c->parameters[i].twin = *entry;
        memcpy(c->parameters[i].twin.path + (key + 5 - entry->path), wide ? "fp" : "bf", 2);
        ptrdiff_t between = (ptrdiff_t)sizeof *gemm * (PRECISION_FP16 - PRECISION_BF16);
        c->parameters[i].twin.offset = (size_t)((ptrdiff_t)entry->offset + (wide ? between : -between));
    }
}

enum status calibration_choose(struct calibration *c, const char *const *names, int n_names, struct diags *diags)
{
    size_t before = diags->n_errors;
    c->chosen = n_names > 0;
    if (c->casts) /* first, so that what cannot be told from a cast is held and not the cast */
        add_casts(c);
    for (int i = 0; i < n_names; i++) {
        struct entry_parameter entry;
        if (!add_section(c, names[i], NULL, true))
            (void)!entry_parameter_find(c->schema, names[i], &entry, diags); /* says what is wrong */
    }
    for (size_t i = 0; i < c->n_rows && !c->chosen; i++)
        choose_for_row(c, &c->rows[i]);
    if (!c->chosen)
        choose_between_nodes(c);
    tie_twins(c);
    if (c->n_parameters == CALIBRATION_PARAMETERS_MAX)
        diag_error(diags, PLACE_NONE, "more than %d parameters in one fit; name fewer", CALIBRATION_PARAMETERS_MAX - 1);
    return diags->n_errors == before ? STATUS_OK : STATUS_BAD_INPUT;
}

/* --- predicting ---------------------------------------------------------------------------------------------------- */

/* The base under other values; bytes of casts beside. */
static struct cluster apply(const struct calibration *c, const double *values, double casts[N_PRECISIONS][N_CAST_PARTS])
{
    struct cluster cluster = c->cluster;
    void *entry = c->kind == CATALOG_CLUSTERS ? (void *)&cluster : &cluster.gpu;
    memset(casts, 0, N_PRECISIONS * sizeof *casts);
    for (size_t i = 0; i < c->n_parameters; i++) {
        const struct calibration_parameter *parameter = &c->parameters[i];
        if (parameter->cast >= 0) {
            casts[parameter->cast][parameter->part] = values[i];
            continue;
        }
        entry_parameter_set(&parameter->entry, entry, values[i]);
        if (parameter->twin.row)
            entry_parameter_set(&parameter->twin, entry, values[i]);
    }
    return cluster;
}

/* Rows that are being predicted. */
struct predicting {
    struct calibration *c;
    const size_t *rows;
    size_t n_rows, block; /* rows that a thread takes at a time */
    double *seconds;      /* [n_rows] */
    bool near;
    struct cluster cluster, alone; /* under fit; with a GPU to itself */
    double casts[N_PRECISIONS][N_CAST_PARTS];
};

/* The run on the cluster under fit, which is made as large as the run needs, in `place`; of a GPU only that is replaced. */
static struct setting setting_of(const struct calibration *c, const struct measurement *run, const struct cluster *cluster,
                                 struct cluster *place)
{
    *place = run->cluster;
    place->gpu = cluster->gpu;
    if (c->kind == CATALOG_CLUSTERS) {
        *place = *cluster;
        place->nodes = (run->gpus + place->gpus_per_node - 1) / place->gpus_per_node;
    }
    return (struct setting){.model = &run->model, .cluster = place, .job = &run->job, .gpus = run->gpus};
}

/* NULL where there is no such step: it is then not predicted. */
static struct prepared_step *prepare(const struct calibration_row *row, const struct setting *setting)
{
    struct prepared_step *step = NULL;
    struct diags diags = {0};
    if (prepared_step_create(&row->run->layout, setting, &step, &diags) != STATUS_OK)
        step = NULL;
    diags_free(&diags);
    return step;
}

void calibration_prepare(struct calibration *c)
{
    size_t left = KEPT_OPS_MAX;
    for (size_t i = 0; i < c->n_rows; i++) {
        struct calibration_row *row = &c->rows[i];
        struct cluster place;
        if (!row->run)
            continue;
        struct setting setting = setting_of(c, row->run, &c->cluster, &place);
        struct prepared_step *step = prepare(row, &setting);
        if (step && prepared_step_ops(step) <= left) {
            left -= prepared_step_ops(step);
            row->prepared = step;
        } else {
            prepared_step_destroy(step);
        }
    }
}

static double run_seconds(const struct predicting *p, const struct calibration_row *row)
{
    struct cluster place;
    struct setting setting = setting_of(p->c, row->run, &p->cluster, &place);
    struct prepared_step *step = row->prepared ? row->prepared : prepare(row, &setting);
    struct diags diags = {0};
    double seconds = NAN;
    if (step && (p->near ? prepared_step_time_near : prepared_step_time)(step, &setting, &seconds, &diags) != STATUS_OK)
        seconds = NAN;
    if (step != row->prepared)
        prepared_step_destroy(step);
    diags_free(&diags);
    return seconds;
}

bool calibration_can_be_near(const struct calibration *c)
{
    for (size_t i = 0; i < c->n_rows; i++)
        if (c->rows[i].prepared && prepared_step_loses(c->rows[i].prepared))
            return true;
    return false;
}

static enum status predict_block(void *context, int64_t block, struct diags *diags)
{
    struct predicting *p = context;
    size_t first = (size_t)block * p->block, end = first + p->block < p->n_rows ? first + p->block : p->n_rows;
    (void)diags;
    for (size_t i = first; i < end; i++) {
        const struct calibration_row *row = &p->c->rows[p->rows[i]];
        p->seconds[i] = row->kernel ? calibration_kernels[row->kernel->op].seconds(p->c, &p->alone, p->casts, row->kernel)
                                    : run_seconds(p, row);
    }
    return STATUS_OK;
}

static bool tell_watch(void *context, int64_t block)
{
    const struct predicting *p = context;
    (void)block;
    p->c->n_predicted += p->block;
    watch_tell(&p->c->watch, (double)p->c->n_predicted, 0);
    return true;
}

/* A kernel takes a microsecond, a run a thousand times as long or more. */
static void predict(struct calibration *c, const double *values, const size_t *rows, size_t n_rows, bool near, double *seconds)
{
    enum { KERNELS = 256 };
    struct predicting p = {.c = c, .rows = rows, .n_rows = n_rows, .block = KERNELS, .seconds = seconds, .near = near};
    struct diags none = {0};
    for (size_t i = 0; i < n_rows; i++)
        p.block = c->rows[rows[i]].run ? 1 : p.block;
    p.cluster = p.alone = apply(c, values, p.casts);
    p.alone.gpu.sustained_clock = 1; /* kernels are timed alone, at full clock */
    const struct parallel_task task = {.n = (int64_t)((n_rows + p.block - 1) / p.block),
                                       .threads = c->threads,
                                       .work = predict_block,
                                       .finished = tell_watch,
                                       .context = &p};
    (void)!parallel_for(&task, &none); /* what cannot be predicted is NAN */
}

void calibration_predict(void *context, const double *values, const size_t *rows, size_t n_rows, double *seconds)
{
    predict(context, values, rows, n_rows, false, seconds);
}

void calibration_predict_near(void *context, const double *values, const size_t *rows, size_t n_rows, double *seconds)
{
    predict(context, values, rows, n_rows, true, seconds);
}
