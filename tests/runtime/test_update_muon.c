/* Muon executed: against a plain reference in double precision, by singular values, against one rank, and that it trains. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <gsl/gsl_linalg.h>

#include "model/base/memory.h"
#include "model/cost/memory/stage_load.h"
#include "model/cost/work/muon.h"
#include "runtime/update/update_muon.h"
#include "tests/runtime/equivalence.h"

static void toy_laid_out(struct toy *toy, enum toy_model model, const char *layout)
{
    toy_make(toy, model);
    toy->job.optimizer = OPTIMIZER_MUON;
    toy->job.muon_tp = MUON_DUPLICATED; /* as without tensor parallelism */
    toy_lay_out(toy, layout, DP | PP);
}

static const char *const layouts[] = {
    "mb=1",
    "dp=4,ep=2,zero=0",
    "dp=2,ep=2,zero=1",
    "dp=4,zero=2",
    "dp=4,ep=2,zero=3",
    "tp=2,sp=1,dp=2,ep=2,zero=2",
    "tp=2,sp=1,dp=2,ep=2,etp=2,zero=1",
    "tp=4,sp=0,zero=0",
    "pp=2,schedule=1f1b,dp=2,zero=1",
    "pp=2,vpp=2,schedule=dualpipe,dp=2,ep=2,zero=1",
    "cp=2,ep=2,zero=2",
    "pp=2,schedule=zb-2p,tp=2,sp=1,zero=0",
    "pp=2,vpp=2,schedule=zb-v,dp=2,zero=2",
    "tp=2,sp=1,dp=4,ep=2,zero=3,shard=2",
    "cp=2,dp=2,ep=2,zero=2,shard=2",
    "tp=4,sp=1,dp=2,zero=1",
};

/* --- a plain reference */

struct plain {
    int64_t rows, cols;
    double *x; /* [rows, cols] */
};

static struct plain plain_new(int64_t rows, int64_t cols)
{
    return (struct plain){rows, cols, memory_new((size_t)(rows * cols), sizeof(double))};
}

/* alpha a b + beta c, of which c may be NULL. */
static struct plain plain_product(struct plain a, struct plain b, double alpha, const struct plain *c, double beta)
{
    struct plain y = plain_new(a.rows, b.cols);
    for (int64_t i = 0; i < a.rows; i++)
        for (int64_t j = 0; j < b.cols; j++) {
            double sum = 0;
            for (int64_t k = 0; k < a.cols; k++)
                sum += a.x[i * a.cols + k] * b.x[k * b.cols + j];
            y.x[i * b.cols + j] = alpha * sum + (c ? beta * c->x[i * b.cols + j] : 0);
        }
    return y;
}

static struct plain plain_transposed(struct plain a)
{
    struct plain y = plain_new(a.cols, a.rows);
    for (int64_t i = 0; i < a.rows; i++)
        for (int64_t j = 0; j < a.cols; j++)
            y.x[j * a.rows + i] = a.x[i * a.cols + j];
    return y;
}

static double plain_norm(struct plain a)
{
    double square = 0;
    for (int64_t i = 0; i < a.rows * a.cols; i++)
        square += a.x[i] * a.x[i];
    return sqrt(square);
}

/* x becomes NS(x); the way that is always [rows, rows], whatever the shape. */
static void plain_newton_schulz(struct plain *x)
{
    double norm = plain_norm(*x);
    for (int64_t i = 0; i < x->rows * x->cols; i++)
        x->x[i] /= norm + 1e-7;
    for (int i = 0; i < 5; i++) {
        struct plain t = plain_transposed(*x), a = plain_product(*x, t, 1, NULL, 0);
        struct plain b = plain_product(a, a, 2.0315, &a, -4.7750), y = plain_product(b, *x, 1, x, 3.4445);
        free(t.x), free(a.x), free(b.x), free(x->x);
        *x = y;
    }
}

/* --- the matrices of a model, by their places in its list of numbers */

struct visit {
    const struct toy *toy;
    struct model_map map;
    const float *gradients, *before, *after;
    float rate;
    int visited;
};

typedef void visitor(struct visit *visit, const char *name, struct plain update, struct plain moved);

static void visit_matrix(struct visit *v, const struct parameter *p, int64_t block, int piece, visitor *see)
{
    struct plain update = plain_new(p->pieces[piece].count, p->cols), moved = plain_new(update.rows, update.cols);
    int64_t first = (block * p->block + p->pieces[piece].local) * p->cols;
    for (int64_t i = 0; i < update.rows * update.cols; i++) {
        int64_t at = model_map_index(&v->map, p, first + i);
        update.x[i] = 1.95 * v->gradients[at]; /* g + 0.95 (0.95 0 + g) */
        moved.x[i] = ((double)v->before[at] - v->after[at]) / v->rate;
    }
    see(v, model_map_tensor(&v->map, model_map_index(&v->map, p, first)).name, update, moved);
    v->visited++;
    free(update.x), free(moved.x);
}

/* As one rank has them. */
static void visit_matrices(struct visit *v, visitor *see)
{
    struct toy one = *v->toy;
    one.layout = toy_one_rank();
    one.setting = (struct setting){&one.model, &one.cluster, &one.job, 1};
    struct shape shape = shape_of(&one.layout, &one.setting, 0);
    struct stage_units units;
    struct stage_content content = {.range = {0, one.model.layers}, .embedding = true, .head = true};
    stage_units_build(&shape, &one.model, content, &units);
    for (int i = 0; i < units.n_items; i++)
        for (int k = 0; k < units.items[i].n_parameters; k++) {
            const struct parameter *p = &units.items[i].parameters[k];
            for (int64_t b = 0; muon_has(p->kind) && b < p->rows / p->block; b++)
                for (int piece = 0; piece < p->n_pieces; piece++)
                    visit_matrix(v, p, b, piece, see);
        }
    stage_units_free(&units);
}

/* One step from zero momentum. */
static void visit_step(const char *layout, enum toy_model model, visitor *see)
{
    struct toy toy;
    struct thread_run still, run;
    struct thread_run_options options = {.steps = 1, .seed = 3, .gradients = true};
    toy_laid_out(&toy, model, layout);
    toy_run(&toy, DETAIL_CHUNK, &options, &still, NULL);
    options.rate = 0.125f;
    toy_run(&toy, DETAIL_KERNEL, &options, &run, NULL);
    struct visit v = {&toy, model_map_of(&toy.setting), run.gradients, still.weights, run.weights, options.rate, 0};
    visit_matrices(&v, see);
    ck_assert_int_ge(v.visited, 6 * toy.model.layers);
    thread_run_free(&still);
    thread_run_free(&run);
}

/* By how much a matrix's step differs from 0.2 sqrt(max(rows, cols)) NS(update), of that. */
static void is_as_defined(struct visit *v, const char *name, struct plain update, struct plain moved)
{
    char text[TOY_TEXT_MAX];
    double scale = 0.2 * sqrt((double)(moved.rows > moved.cols ? moved.rows : moved.cols)), apart = 0;
    if (plain_norm(update) < 1e-12) { /* an expert without tokens */
        ck_assert_double_lt(plain_norm(moved), 1e-3 * scale);
        return;
    }
    struct plain x = plain_new(update.rows, update.cols);
    memcpy(x.x, update.x, (size_t)(x.rows * x.cols) * sizeof *x.x);
    plain_newton_schulz(&x);
    for (int64_t i = 0; i < x.rows * x.cols; i++) {
        double d = moved.x[i] - scale * x.x[i];
        apart += d * d;
    }
    apart = sqrt(apart) / (scale * plain_norm(x));
    ck_assert_msg(apart < 1e-4, "%s: %s is %g off", toy_text(v->toy, text, sizeof text), name, apart);
    free(x.x);
}

START_TEST(steps_are_as_defined)
{
    visit_step(layouts[_i], TOY_MIXTURE, is_as_defined);
}
END_TEST

START_TEST(steps_of_other_models_are_as_defined)
{
    static const enum toy_model models[] = {TOY_GPT, TOY_LLAMA, TOY_LATENT, TOY_OSS, TOY_PREDICTION};
    visit_step("mb=1", models[_i], is_as_defined);
    visit_step(models[_i] == TOY_GPT || models[_i] == TOY_LLAMA ? "tp=2,sp=1,dp=2,zero=1" : "tp=2,sp=1,dp=2,ep=2,zero=1",
               models[_i], is_as_defined);
}
END_TEST

/* Singular values s of update / |update| become p(p(p(p(p(s))))), p(s) = 3.4445 s - 4.775 s^3 + 2.0315 s^5: none above 1.21, and
 * those from 0.01 on between 0.68 and 1.21 (Jordan 2024). */
static void has_singular_values_near_one(struct visit *v, const char *name, struct plain update, struct plain moved)
{
    double scale = 0.2 * sqrt((double)(moved.rows > moved.cols ? moved.rows : moved.cols));
    int64_t rows = moved.rows > moved.cols ? moved.rows : moved.cols, cols = moved.rows > moved.cols ? moved.cols : moved.rows;
    (void)v;
    double norm = plain_norm(update);
    if (norm < 1e-12)
        return;
    gsl_matrix *both[2];
    gsl_vector *values[2], *work = gsl_vector_alloc((size_t)cols);
    gsl_matrix *right = gsl_matrix_alloc((size_t)cols, (size_t)cols);
    for (int k = 0; k < 2; k++) {
        both[k] = gsl_matrix_alloc((size_t)rows, (size_t)cols);
        values[k] = gsl_vector_alloc((size_t)cols);
        for (int64_t i = 0; i < moved.rows; i++)
            for (int64_t j = 0; j < moved.cols; j++) {
                double x = k ? moved.x[i * moved.cols + j] / scale : update.x[i * moved.cols + j] / norm;
                gsl_matrix_set(both[k], (size_t)(moved.rows > moved.cols ? i : j), (size_t)(moved.rows > moved.cols ? j : i), x);
            }
        gsl_linalg_SV_decomp(both[k], right, values[k], work);
    }
    int above = 0;
    for (int64_t i = 0; i < cols; i++)
        above += gsl_vector_get(values[0], (size_t)i) >= 0.01;
    for (int64_t i = 0; i < cols; i++) {
        double s = gsl_vector_get(values[1], (size_t)i);
        ck_assert_msg(s < 1.21 && (i >= above || s > 0.68 - 0.01), "%s: singular value %lld is %g", name, (long long)i, s);
    }
    for (int k = 0; k < 2; k++) {
        gsl_matrix_free(both[k]);
        gsl_vector_free(values[k]);
    }
    gsl_matrix_free(right);
    gsl_vector_free(work);
}

START_TEST(updates_are_nearly_orthogonal)
{
    static const enum toy_model models[] = {TOY_GPT, TOY_MIXTURE, TOY_LATENT};
    visit_step("tp=2,sp=1,dp=2,zero=1", models[_i], has_singular_values_near_one);
}
END_TEST

/* --- what ranks hold */

struct held {
    double dense, experts, muon;
};

/* In the whole model, of rank `r` of a tensor-parallel group. */
static struct held held_by(const struct toy *toy, int r)
{
    struct shape shape = shape_of(&toy->layout, &toy->setting, r);
    struct stage_units units;
    struct stage_content content = {.range = {0, toy->model.layers}, .embedding = true, .head = true};
    struct held held = {0};
    stage_units_build(&shape, &toy->model, content, &units);
    for (int i = 0; i < units.n_items; i++)
        for (int k = 0; k < units.items[i].n_parameters; k++) {
            const struct parameter *p = &units.items[i].parameters[k];
            double n = (double)(p->rows * p->cols);
            *(units.items[i].is_experts ? &held.experts : &held.dense) += n;
            held.muon += muon_has(p->kind) ? n : 0;
        }
    stage_units_free(&units);
    return held;
}

/* Matrices that tensor parallelism divides, that it repeats, and vectors: exact, where it divides the words. */
START_TEST(ranks_hold_what_is_counted)
{
    static const char *const of_tp[] = {"mb=1", "tp=2,sp=1", "tp=4,sp=1", "tp=2,sp=1,ep=2,dp=2"};
    for (int model = 0; model < N_TOY_MODELS; model++) {
        struct toy toy;
        char text[TOY_TEXT_MAX];
        toy_laid_out(&toy, (enum toy_model)model, of_tp[_i]);
        if (toy.layout.ep > 1 && !toy.model.moe.experts)
            continue;
        toy.model.vocab = 64;
        struct muon_matrices matrices = {.n = 0};
        struct layer_range all = {0, toy.model.layers};
        struct stage_parameters p = work_stage_parameters(&toy.layout, &toy.setting, all, true, true);
        muon_matrices_add(&matrices, &toy.layout, &toy.setting, all, true);
        struct stage_parameters muon = muon_parameters(&matrices);
        struct held held = held_by(&toy, toy.layout.tp - 1);
        ck_assert_msg(fabs(p.dense - held.dense) < 1e-6 && fabs(p.experts - held.experts) < 1e-6,
                      "%s: %.0f and %.0f parameters, counted %.1f and %.1f", toy_text(&toy, text, sizeof text), held.dense,
                      held.experts, p.dense, p.experts);
        /* of mixers with a state none is executed */
        ck_assert_msg(toy.model.mixer.heads || fabs(muon.dense + muon.experts - held.muon) < 1e-6,
                      "%s: %.0f parameters of matrices, counted %.1f", toy_text(&toy, text, sizeof text), held.muon,
                      muon.dense + muon.experts);
    }
}
END_TEST

/* --- memory */

static double fullest(const struct thread_run *run)
{
    double most = 0;
    for (int r = 0; r < run->n_ranks; r++)
        most = fmax(most, (double)run->memory_peak[r]);
    return most;
}

/* A matrix has one moment less than with Adam, and owners need what muon_executed_scratch_bytes says. */
START_TEST(memory_is_as_predicted)
{
    const struct thread_run_options options = {.steps = 1, .seed = 5, .rate = 1e-3f};
    char text[TOY_TEXT_MAX];
    struct toy toy;
    struct thread_run muon, adam;
    toy_laid_out(&toy, _i % 2 ? TOY_MIXTURE : TOY_LLAMA, layouts[_i / 2]);
    if (toy.model.moe.experts == 0 && toy.layout.ep > 1)
        return;
    toy.layout.schedule = toy.layout.pp > 1 ? toy.layout.schedule : SCHEDULE_NONE;
    toy_run(&toy, DETAIL_CHUNK, &options, &muon, NULL);
    toy.job.optimizer = OPTIMIZER_ADAM;
    toy_complete(&toy);
    toy_run(&toy, DETAIL_CHUNK, &options, &adam, NULL);
    toy.job.optimizer = OPTIMIZER_MUON;
    toy_complete(&toy);
    double expected = -INFINITY;
    for (int stage = 0; stage < toy.layout.pp; stage++) {
        struct stage_load load = {0};
        stage_load_fill(&load, &toy.layout, &toy.setting, stage);
        expected = fmax(expected, muon_executed_scratch_bytes(&load.matrices, &toy.layout, &toy.setting) -
                                      4 * work_own_parameters(&toy.layout, muon_parameters(&load.matrices)));
        stage_load_free(&load);
    }
    double measured = fullest(&muon) - fullest(&adam);
    ck_assert_msg(fabs(measured - expected) < 0.03 * fullest(&muon), "%s: %g bytes more than with Adam, predicted %g, of %g",
                  toy_text(&toy, text, sizeof text), measured, expected, fullest(&muon));
    thread_run_free(&muon);
    thread_run_free(&adam);
}
END_TEST

/* --- training */

static double distance(const float *a, const float *b, int64_t n)
{
    double square = 0;
    for (int64_t i = 0; i < n; i++)
        square += ((double)a[i] - b[i]) * ((double)a[i] - b[i]);
    return sqrt(square);
}

/* Iterations take a singular value that is next to nothing up to 485 times, so rounding counts for more than with SGD. */
START_TEST(layouts_follow_one_rank)
{
    struct toy one, many;
    struct thread_run still, a, b;
    struct thread_run_options options = {.steps = 1, .seed = 5, .gradients = true};
    char text[TOY_TEXT_MAX];
    toy_laid_out(&one, TOY_MIXTURE, "mb=1");
    toy_laid_out(&many, TOY_MIXTURE, layouts[_i]);
    one.job.clip = many.job.clip = 1;
    toy_run(&one, DETAIL_CHUNK, &options, &still, NULL);
    options.steps = 3, options.rate = 1e-3f;
    toy_run(&one, DETAIL_KERNEL, &options, &a, NULL);
    toy_run(&many, DETAIL_LAYER, &options, &b, NULL);
    for (int s = 0; s < options.steps; s++)
        ck_assert_double_eq_tol(a.steps[s].loss, b.steps[s].loss, 1e-5 * a.steps[s].loss);
    double moved = distance(a.weights, still.weights, a.n_gradients), apart = distance(a.weights, b.weights, a.n_gradients);
    ck_assert_msg(apart <= 1e-2 * moved, "%s: weights are %g apart after moving by %g", toy_text(&many, text, sizeof text), apart,
                  moved);
    thread_run_free(&still);
    thread_run_free(&a);
    thread_run_free(&b);
}
END_TEST

static const unsigned char verse[] =
    "\1\7\3\22\5\31\2\6\11\4\17\23\30\12\13\14\1\7\3\22\5\31\2\6\11\4\17\23\30\12\13\14\1\7\3\22";

/* On a text that repeats itself, in blocks as well as whole; twice the same bits. */
START_TEST(the_loss_falls)
{
    struct toy toy;
    struct thread_run first, again;
    struct thread_run_options options = {.steps = 12, .seed = 5, .rate = 3e-3f, .gradients = true};
    options.text = verse, options.n_text = sizeof verse - 1;
    toy_laid_out(&toy, TOY_LLAMA, _i % 2 ? "tp=2,sp=1,dp=2,zero=1" : "mb=1");
    toy.job.muon_tp = _i < 2 ? MUON_DUPLICATED : MUON_BLOCKWISE;
    toy_run(&toy, DETAIL_CHUNK, &options, &first, NULL);
    toy_run(&toy, DETAIL_CHUNK, &options, &again, NULL);
    ck_assert_double_lt(first.steps[11].loss, 0.9 * first.steps[0].loss);
    ck_assert_mem_eq(first.weights, again.weights, (size_t)first.n_gradients * sizeof *first.weights);
    thread_run_free(&first);
    thread_run_free(&again);
}
END_TEST

int main(void)
{
    const struct toy_test tests[] = {
        {steps_are_as_defined, COUNT(layouts)},
        {steps_of_other_models_are_as_defined, 5},
        {updates_are_nearly_orthogonal, 3},
        {ranks_hold_what_is_counted, 4},
        {memory_is_as_predicted, 2 * COUNT(layouts)},
        {layouts_follow_one_rank, COUNT(layouts)},
        {the_loss_falls, 4},
    };
    return toy_suite("runtime muon", tests, COUNT(tests));
}
