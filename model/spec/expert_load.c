#include "model/spec/expert_load.h"

#include <math.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>

#include <gsl/gsl_cdf.h>
#include <gsl/gsl_errno.h>
#include <gsl/gsl_fft_halfcomplex.h>
#include <gsl/gsl_fft_real.h>
#include <gsl/gsl_integration.h>
#include <gsl/gsl_math.h>
#include <gsl/gsl_roots.h>
#include <gsl/gsl_sf_gamma.h>
#include <gsl/gsl_sf_log.h>

#include "model/base/memory.h"

/* --- the largest of independent gamma variables */

/*
 * P(a, x), the regularised integral. GSL's does not converge for large a beyond a standard deviation from it; there the first
 * term of Temme's uniform expansion (SIAM J. Math. Anal. 10, 1979, section 4) is exact to some 1e-9: with h^2 / 2 = x/a - 1 -
 * ln(x/a),
 *
 *     P = erfc(-h sqrt(a / 2)) / 2 - exp(-a h^2 / 2) / sqrt(2 pi a) (-1/3 + h/12 - 2 h^2/135 + h^3/864 + ...)
 */
static double gamma_below(double shape, double x)
{
    static const double MANY = 1e5;
    if (shape < MANY)
        return gsl_cdf_gamma_P(x, shape, 1);
    double beyond = (x - shape) / shape, half = fmax(0, -gsl_sf_log_1plusx_mx(beyond));
    double h = beyond < 0 ? -sqrt(2 * half) : sqrt(2 * half);
    double first = -1.0 / 3 + h / 12 - 2 * h * h / 135 + h * h * h / 864;
    return erfc(-h * sqrt(shape / 2)) / 2 - exp(-shape * half) / sqrt(2 * M_PI * shape) * first;
}

struct largest {
    int n;
    double shape;
};

/* P^n at t standard deviations from the mean. */
static double all_below(double t, void *of)
{
    const struct largest *l = of;
    double x = l->shape + sqrt(l->shape) * t;
    return x > 0 ? pow(gamma_below(l->shape, x), l->n) : 0;
}

static double any_above(double t, void *of)
{
    return 1 - all_below(t, of);
}

/* GSL has one error handler for all threads: the first of them that begins switches it off, the last that ends restores it. */
static struct {
    pthread_mutex_t lock;
    int n_ignoring;
    gsl_error_handler_t *handler;
} errors = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void errors_ignore(void)
{
    pthread_mutex_lock(&errors.lock);
    if (errors.n_ignoring++ == 0)
        errors.handler = gsl_set_error_handler_off();
    pthread_mutex_unlock(&errors.lock);
}

static void errors_heed(void)
{
    pthread_mutex_lock(&errors.lock);
    if (--errors.n_ignoring == 0)
        gsl_set_error_handler(errors.handler);
    pthread_mutex_unlock(&errors.lock);
}

static double integral(double (*function)(double, void *), struct largest *of, double from, double to)
{
    enum { INTERVALS = 400 };
    gsl_integration_workspace *workspace = gsl_integration_workspace_alloc(INTERVALS);
    gsl_function f = {function, of};
    double value = 0, error;
    errors_ignore(); /* GSL would end the process over a tail that is nil */
    gsl_integration_qags(&f, from, to, 1e-11, 1e-10, INTERVALS, workspace, &value, &error);
    errors_heed();
    gsl_integration_workspace_free(workspace);
    return value;
}

/* The integrals end where any of n gamma variables lies beyond with a probability below exp(-NEVER), on the left and on the right
 * (sub-gamma: Boucheron, Lugosi, Massart, Concentration Inequalities, section 2.4). */
#define NEVER 36.0

double expert_load_maximum(int n, double shape)
{
    struct largest largest = {n, shape};
    double bound = NEVER + log(n), spread = sqrt(shape);
    if (n <= 1)
        return 1;
    double right = integral(any_above, &largest, 0, sqrt(2 * bound) + bound / spread);
    double left = integral(all_below, &largest, -fmin(spread, sqrt(2 * bound)), 0);
    return 1 + (right - left) / spread;
}

/* --- the shape */

struct wanted {
    int experts;
    double busiest;
};

static double excess(double log_shape, void *of)
{
    const struct wanted *w = of;
    return expert_load_maximum(w->experts, exp(log_shape)) - w->busiest;
}

/* A shape at which one expert has nearly everything; and one at which loads differ by a part in ten million. */
static const double SHAPE_LEAST = 1e-3, SHAPE_MOST = 1e14;

static double shape_of(int experts, double busiest)
{
    enum { STEPS = 100 };
    struct wanted wanted = {experts, busiest};
    gsl_function f = {excess, &wanted};
    double low = log(SHAPE_LEAST), high = log(SHAPE_MOST);
    if (excess(low, &wanted) <= 0)
        return SHAPE_LEAST;
    if (excess(high, &wanted) >= 0)
        return 0;
    gsl_root_fsolver *solver = gsl_root_fsolver_alloc(gsl_root_fsolver_brent);
    gsl_root_fsolver_set(solver, &f, low, high);
    for (int step = 0; step < STEPS && gsl_root_fsolver_iterate(solver) == GSL_SUCCESS; step++)
        if (gsl_root_test_interval(gsl_root_fsolver_x_lower(solver), gsl_root_fsolver_x_upper(solver), 1e-11, 0) == GSL_SUCCESS)
            break;
    double shape = exp(gsl_root_fsolver_root(solver));
    gsl_root_fsolver_free(solver);
    return shape;
}

/* --- capped loads */

/* E[max(0, X - c)] where X / E is a beta variable. */
static double share_beyond(double capacity, double shape, int experts)
{
    double at = capacity / experts, others = (experts - 1) * shape;
    if (at >= 1)
        return 0;
    return gsl_cdf_beta_Q(at, shape + 1, others) - capacity * gsl_cdf_beta_Q(at, shape, others);
}

/* E[max(0, x - G)] = x P(a, a x) - P(a + 1, a x), of which the second is the first less (a x)^a exp(-a x) / Gamma(a + 1). */
static double mean_below(double x, double shape)
{
    if (x <= 0)
        return 0;
    double p = gamma_below(shape, shape * x);
    return (x - 1) * p + exp(shape * log(shape * x) - shape * x - gsl_sf_lngamma(shape + 1));
}

/* On a lattice of `cells` steps up to the capacity: a load between two points is given to both, so that the mean stays. */
static void capped_distribution(double *p, size_t cells, double capacity, double shape)
{
    double step = capacity / (double)cells, before = 0, here = 0;
    for (size_t i = 0; i < cells; i++) {
        double next = mean_below((double)(i + 1) * step, shape);
        p[i] = (before - 2 * here + next) / step;
        before = here;
        here = next;
    }
    p[cells] = 1 - (here - before) / step;
}

/* The distribution of a sum of n such variables, in place. */
static void distribution_of_sum(double *p, size_t size, int n)
{
    gsl_fft_real_radix2_transform(p, 1, size);
    p[0] = pow(p[0], n); /* halfcomplex: re(0), re(1) ... re(size / 2), im(size / 2 - 1) ... im(1) */
    p[size / 2] = pow(fabs(p[size / 2]), n) * (p[size / 2] < 0 && n % 2 ? -1 : 1);
    for (size_t k = 1; k < size / 2; k++) {
        double size_n = pow(hypot(p[k], p[size - k]), n), angle = n * atan2(p[size - k], p[k]);
        p[k] = size_n * cos(angle);
        p[size - k] = size_n * sin(angle);
    }
    gsl_fft_halfcomplex_radix2_inverse(p, 1, size);
}

/* E[min(G, c)] and the standard deviation of min(G, c): E[G^2; G <= c] = (1 + 1/a) P(a + 2, a c). */
static double mean_capped(double capacity, double shape)
{
    return capacity - mean_below(capacity, shape);
}

static double deviation_capped(double capacity, double shape)
{
    double mean = mean_capped(capacity, shape), above = 1 - gamma_below(shape, shape * capacity);
    double squares = (1 + 1 / shape) * gamma_below(shape + 2, shape * capacity) + capacity * capacity * above;
    return sqrt(fmax(0, squares - mean * mean));
}

/* A window of 20 standard deviations around the mean of a sum of n capped loads, on `size` points; beyond them the lattice wraps
 * around. A cell is an eighth of a load's own deviation, or a quarter where n is large: rounding loads to points then adds up to
 * 1 % to their variance. Cells are no wider than those of a lattice that holds all of the sum, and no finer than a 1,024th of the
 * capacity unless those are. */
struct lattice {
    size_t size, cells; /* points; steps from 0 to the capacity */
    double begin;       /* of the window, in steps */
};

static struct lattice lattice_of(double capacity, double shape, int n)
{
    enum { LEAST = 8192, CELLS_MOST = 1024, WINDOW = 20, FINE = 8 };
    double deviation = fmax(deviation_capped(capacity, shape), 1e-9 * capacity), of_sum = deviation * sqrt(n);
    struct lattice l = {.size = LEAST};
    while ((double)l.size < 0.5 * WINDOW * FINE * sqrt(n)) /* cells of a quarter then */
        l.size *= 2;
    double fine = fmin(CELLS_MOST, fmin(FINE * capacity / deviation, capacity * (double)l.size / (WINDOW * of_sum)));
    double whole = floor((double)(l.size - 1) / n);
    l.cells = (size_t)fmax(1, fmax(whole, floor(fine)));
    if ((double)l.cells > whole)
        l.begin = fmax(0, floor((n * mean_capped(capacity, shape) - 0.5 * WINDOW * of_sum) / capacity * (double)l.cells));
    return l;
}

/* The expected largest of `ranks` sums of n capped loads, over the mean of a sum. */
static double largest_capped(double capacity, double shape, int n, int ranks)
{
    struct lattice l = lattice_of(capacity, shape, n);
    double *p = memory_new(l.size, sizeof *p), below = 0, points = l.begin, mean = l.begin;
    capped_distribution(p, l.cells, capacity, shape);
    distribution_of_sum(p, l.size, n);
    for (size_t i = 0; i < l.size; i++) {
        below = fmin(1, fmax(0, below + p[((size_t)l.begin + i) % l.size]));
        points += 1 - pow(below, ranks);
        mean += 1 - below;
    }
    free(p);
    return points / mean;
}

/* The load of the busiest rank after tokens were dropped; the header has the formula. */
static double rank_capped(const struct expert_load *load, int experts, const struct expert_ranks *by)
{
    double spread =
        load->shape > 0 && by->ranks > 1 ? largest_capped(load->capacity, load->shape, experts / by->ranks, by->ranks) : 1;
    double least = by->rank - by->ranks * load->dropped;
    return fmin(load->capacity, fmin(by->rank, fmax(least, (1 - load->dropped) * spread)));
}

/* `most`: times the mean, what an expert has that gets every token. */
static double share_dropped(double capacity, double shape, int experts, double most)
{
    if (shape <= 0)
        return fmax(0, 1 - capacity);
    double nobodys = share_beyond(most, shape, experts);
    return fmax(fmax(0, 1 - capacity), (share_beyond(capacity, shape, experts) - nobodys) / (1 - nobodys));
}

static void complete_capped(struct expert_load *load, int experts, double most)
{
    double c = load->capacity;
    load->dropped = share_dropped(c, load->shape, experts, most);
    for (int i = 0; i < load->n && !load->padded; i++) {
        struct expert_ranks *by = &load->by[i];
        by->rank = rank_capped(load, experts, by);
        by->largest = fmin(c, fmax(by->rank, by->largest));
    }
}

/* --- all of it */

bool expert_load_given(const struct expert_load *load)
{
    return load->busiest > 1 || load->capacity > 0;
}

static void complete_ranks(struct expert_load *load, int experts)
{
    for (int ranks = 1; ranks <= experts && load->n < EXPERT_DIVISORS_MAX; ranks++) {
        if (experts % ranks)
            continue;
        struct expert_ranks *by = &load->by[load->n++];
        by->ranks = ranks;
        by->rank = by->largest = 1;
        if (load->shape <= 0)
            continue;
        int each = experts / ranks;
        if (ranks > 1)
            by->rank = ranks < experts ? expert_load_maximum(ranks, load->shape * each) : load->busiest;
        by->largest = ranks > 1 ? by->rank * expert_load_maximum(each, load->shape) : load->busiest;
    }
}

void expert_load_complete(struct expert_load *load, int experts, int top_k)
{
    load->shape = load->dropped = 0;
    load->n = 0;
    if (!expert_load_given(load))
        return;
    errors_ignore();
    if (load->busiest > 1 && experts > 1)
        load->shape = shape_of(experts, load->busiest);
    complete_ranks(load, experts);
    if (load->capacity > 0 && load->capacity * top_k < experts) /* no expert gets more than every token */
        complete_capped(load, experts, (double)experts / top_k);
    errors_heed();
}

static const struct expert_ranks *ranks_of(const struct expert_load *load, int ranks)
{
    int i = 0;
    while (i < load->n - 1 && load->by[i].ranks < ranks)
        i++;
    return &load->by[i];
}

static bool is_padded(const struct expert_load *load)
{
    return load->padded && load->capacity > 0;
}

double expert_load_rank(const struct expert_load *load, int ranks)
{
    if (!expert_load_given(load))
        return 1;
    return is_padded(load) ? load->capacity : ranks_of(load, ranks)->rank;
}

double expert_load_largest(const struct expert_load *load, int ranks)
{
    if (!expert_load_given(load))
        return 1;
    return is_padded(load) ? load->capacity : ranks_of(load, ranks)->largest;
}

double expert_load_mean(const struct expert_load *load)
{
    if (!expert_load_given(load))
        return 1;
    return is_padded(load) ? load->capacity : 1 - load->dropped;
}

void expert_load_spread(struct expert_load *load)
{
    for (int i = 0; i < load->n; i++)
        load->by[i].rank = load->by[i].largest = expert_load_mean(load);
}
