/* The kernels of mixers with a state: every backward reference against central differences of its forward reference, over drawn
 * shapes; and the recurrence against cases that can be summed by hand. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/memory.h"
#include "tests/kernels/kernel_case.h"

enum { CASES = 10, SIZE = 7 };

static struct operand *find(struct kernel_case *c, const char *name)
{
    for (int i = 0; i < c->n_operands; i++)
        if (strcmp(c->operands[i].name, name) == 0)
            return &c->operands[i];
    return NULL;
}

/* A forward call on the backward one's inputs: sum of dy y. */
struct forward {
    struct kernel_call call;
    float *y;
    const float *dy;
    int64_t n;
    float *second; /* gates give two things */
    const float *d_second;
    int64_t n_second;
};

static double loss_of(const struct forward *f)
{
    double loss = 0;
    kernel_reference_run(&f->call);
    for (int64_t i = 0; i < f->n; i++)
        loss += (double)f->dy[i] * f->y[i];
    for (int64_t i = 0; i < f->n_second; i++)
        loss += (double)f->d_second[i] * f->second[i];
    return loss;
}

static struct forward forward_of(struct kernel_case *c)
{
    struct forward f = {.call = c->call};
    f.call.kernel = (enum kernel)(c->call.kernel - 1);
    bool gates = c->call.kernel == KERNEL_GATES_BACKWARD;
    struct operand *dy = find(c, gates ? "ddecay" : "dy");
    f.n = (int64_t)dy->count;
    f.dy = operand_data(dy);
    f.y = memory_new(dy->count, sizeof *f.y);
    switch (c->call.kernel) {
    case KERNEL_CONVOLUTION_BACKWARD: f.call.convolution.y = f.y; break;
    case KERNEL_UNIT_BACKWARD: f.call.unit.y = f.y; break;
    case KERNEL_SCAN_BACKWARD: f.call.scan.y = f.y; break;
    case KERNEL_GATED_NORM_BACKWARD: f.call.gated_norm.y = f.y; break;
    default:
        f.call.gates.decay = f.y;
        f.n_second = (int64_t)find(c, "dstrength")->count;
        f.second = f.call.gates.strength = memory_new((size_t)f.n_second, sizeof *f.second);
        f.d_second = operand_data(find(c, "dstrength"));
        break;
    }
    return f;
}

/* Gradients are added to what there is, or written; what lies between the rows of a tensor stays as it was. */
static void gradient_holds(struct kernel_case *c, const struct forward *f, const char *name, const float *before)
{
    char gradient_name[32];
    snprintf(gradient_name, sizeof gradient_name, "d%s", name);
    struct operand *input = find(c, name), *gradient = find(c, gradient_name);
    if (!input || !gradient)
        return;
    const bool added = gradient->type == OPERAND_FLOAT && gradient->role == ROLE_IN_OUT;
    const float *d = operand_data(gradient);
    float *x = operand_data(input);
    const float step = 1.0f / 256;
    for (size_t i = 0; i < input->count; i++) {
        float kept = x[i];
        x[i] = kept + step;
        double above = loss_of(f);
        x[i] = kept - step;
        double below = loss_of(f);
        x[i] = kept;
        double slope = (above - below) / (2 * (double)step), given = d[i] - (added ? before[i] : 0);
        if (gradient->role == ROLE_IN_OUT && !added && d[i] == before[i])
            given = 0; /* between two rows */
        ck_assert_msg(fabs(slope - given) < 4e-3 * (1 + fabs(slope)), "%s %s: %s[%zu]: backward says %g, differences say %g",
                      kernel_name(c->call.kernel), c->text, gradient_name, i, given, slope);
    }
}

static const enum kernel backward[] = {KERNEL_CONVOLUTION_BACKWARD, KERNEL_GATES_BACKWARD, KERNEL_UNIT_BACKWARD,
                                       KERNEL_SCAN_BACKWARD, KERNEL_GATED_NORM_BACKWARD};
enum { N_BACKWARD = sizeof backward / sizeof *backward };

START_TEST(gradients)
{
    static const char *const inputs[] = {"x", "w", "bias",  "steps",    "strengths", "rates", "v",
                                         "k", "q", "decay", "strength", "skip",      "gate",  "gain"};
    for (uint64_t seed = 0; seed < CASES; seed++) {
        struct random_stream random = random_stream_named(seed, 3, (uint64_t)_i);
        struct kernel_case c;
        float *before[MAX_OPERANDS];
        kernel_case_draw(&c, backward[_i], &random, SIZE);
        for (int i = 0; i < c.n_operands; i++) {
            size_t bytes = c.operands[i].count * operand_element_bytes(&c.operands[i], false);
            before[i] = memory_new(1, bytes + 1);
            memcpy(before[i], operand_data(&c.operands[i]), bytes);
        }
        kernel_case_reference(&c);
        struct forward f = forward_of(&c);
        for (size_t k = 0; k < sizeof inputs / sizeof *inputs; k++) {
            char name[32];
            snprintf(name, sizeof name, "d%s", inputs[k]);
            struct operand *gradient = find(&c, name);
            gradient_holds(&c, &f, inputs[k], gradient ? before[gradient - c.operands] : NULL);
        }
        for (int i = 0; i < c.n_operands; i++)
            free(before[i]);
        free(f.y);
        free(f.second);
        kernel_case_free(&c);
    }
}
END_TEST

/* Without decay and with one row the state is the sum of keys times values. */
START_TEST(scan_without_decay_sums)
{
    enum { T = 5 };
    const float v[T] = {1, 2, 3, 4, 5}, k[T] = {1, 1, 2, 1, 1}, q[T] = {1, 2, 1, 1, 3}, decay[1] = {0};
    const float expected[T] = {1, 6, 9, 13, 54};
    float y[T], workspace[2];
    struct scan_call call = {.batch = 1,
                             .seq_len = T,
                             .chunk = 2,
                             .heads = 1,
                             .groups = 1,
                             .state = 1,
                             .head_dim = 1,
                             .rows = 1,
                             .scale = 1,
                             .v_row = 1,
                             .k_row = 1,
                             .v = v,
                             .k = k,
                             .q = q,
                             .decay = decay,
                             .y = y,
                             .workspace = workspace};
    kernel_reference_run(&(struct kernel_call){.kernel = KERNEL_SCAN_FORWARD, .scan = call});
    for (int t = 0; t < T; t++)
        ck_assert_float_eq_tol(y[t], expected[t], 1e-5f);
}
END_TEST

/* By the delta rule with strength 1 and a key of length 1, a query that is the key reads the value that was written last for it,
 * whatever was there. */
START_TEST(delta_rule_replaces)
{
    enum { T = 4, N = 2, P = 3 };
    const float k[T * N] = {0.6f, 0.8f, 1, 0, 0.6f, 0.8f, 0, 1}, decay[1] = {-0.3f};
    const float v[T * P] = {1, 2, 3, -4, 5, 6, 7, -8, 9, 10, 11, -12};
    float y[T * P], workspace[N * P + P];
    struct scan_call call = {.batch = 1,
                             .seq_len = T,
                             .chunk = 64,
                             .heads = 1,
                             .groups = 1,
                             .state = N,
                             .head_dim = P,
                             .rows = 1,
                             .delta = true,
                             .scale = 1,
                             .v_row = P,
                             .k_row = N,
                             .v = v,
                             .k = k,
                             .q = k,
                             .decay = decay,
                             .y = y,
                             .workspace = workspace};
    kernel_reference_run(&(struct kernel_call){.kernel = KERNEL_SCAN_FORWARD, .scan = call});
    for (int i = 0; i < T * P; i++)
        ck_assert_float_eq_tol(y[i], v[i], 1e-4f);
}
END_TEST

/* States are kept at other places, and nothing else changes. */
START_TEST(chunks_change_nothing)
{
    for (uint64_t seed = 0; seed < CASES; seed++) {
        struct kernel_case a, b;
        struct random_stream one = random_stream_named(seed, 4, 0), other = one;
        kernel_case_draw(&a, KERNEL_SCAN_BACKWARD, &one, 30);
        kernel_case_draw(&b, KERNEL_SCAN_BACKWARD, &other, 30);
        b.call.scan.chunk = 1 + (a.call.scan.chunk + 5) % 11;
        void *workspace = memory_new(1, scan_reference_workspace(&b.call.scan, true));
        b.call.scan.workspace = workspace;
        kernel_case_reference(&a);
        kernel_case_reference(&b);
        for (int i = 0; i < a.n_operands; i++)
            if (a.operands[i].type != OPERAND_SCRATCH)
                ck_assert_msg(memcmp(operand_data(&a.operands[i]), operand_data(&b.operands[i]),
                                     a.operands[i].count * operand_element_bytes(&a.operands[i], false)) == 0,
                              "%s: %s", a.text, a.operands[i].name);
        free(workspace);
        kernel_case_free(&a);
        kernel_case_free(&b);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("kernels of mixers with a state");
    TCase *tcase = tcase_create("gradients");
    tcase_add_loop_test(tcase, gradients, 0, N_BACKWARD);
    tcase_add_test(tcase, scan_without_decay_sums);
    tcase_add_test(tcase, delta_rule_replaces);
    tcase_add_test(tcase, chunks_change_nothing);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
