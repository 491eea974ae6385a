/* mixer_reference.c - the parts around the recurrence of a mixer with a state (mixers.h). */
#include <math.h>

#include "kernels/reference.h"

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

static double silu(double x)
{
    return x * sigmoid(x);
}

static double silu_slope(double x)
{
    double s = sigmoid(x);
    return s * (1 + x * (1 - s));
}

/* log(1 + exp(x)) without overflow. */
static double softplus(double x)
{
    return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
}

/* --- convolution */

/* What the activation reads at a token of its sequence, whose channel `c` begins at x. */
static double convolved(const struct convolution_call *call, const float *x, int64_t token, int64_t c)
{
    const float *w = call->w, *bias = call->bias;
    if (call->taps == 0)
        return x[token * call->x_row];
    double sum = bias ? bias[c] : 0;
    for (int64_t k = 0; k < call->taps; k++) {
        int64_t at = token - call->taps + 1 + k;
        if (at >= 0)
            sum += (double)w[c * call->taps + k] * x[at * call->x_row];
    }
    return sum;
}

void convolution_forward_reference(const struct convolution_call *call)
{
    for (int64_t row = 0; row < call->batch * call->seq_len; row++) {
        int64_t token = row % call->seq_len;
        const float *x = (const float *)call->x + (row - token) * call->x_row;
        for (int64_t c = 0; c < call->channels; c++)
            ((float *)call->y)[row * call->channels + c] = (float)silu(convolved(call, x + c, token, c));
    }
}

/* Of what a token's activation reads: to the inputs of the taps, and to their weights. */
static void spread(const struct convolution_call *call, const float *x, float *dx, int64_t token, int64_t c, double d)
{
    const float *w = call->w;
    for (int64_t k = 0; k < call->taps; k++) {
        int64_t at = token - call->taps + 1 + k;
        if (at < 0)
            continue;
        dx[at * call->x_row] += (float)(d * w[c * call->taps + k]);
        call->dw[c * call->taps + k] += (float)(d * x[at * call->x_row]);
    }
    if (call->dbias)
        call->dbias[c] += (float)d;
    if (call->taps == 0)
        dx[token * call->x_row] = (float)d;
}

void convolution_backward_reference(const struct convolution_call *call)
{
    for (int64_t row = 0; row < call->batch * call->seq_len; row++)
        for (int64_t c = 0; c < call->channels; c++)
            ((float *)call->dx)[row * call->x_row + c] = 0;
    for (int64_t row = 0; row < call->batch * call->seq_len; row++) {
        int64_t token = row % call->seq_len, begin = (row - token) * call->x_row;
        const float *x = (const float *)call->x + begin, *dy = (const float *)call->dy + row * call->channels;
        for (int64_t c = 0; c < call->channels; c++)
            spread(call, x + c, (float *)call->dx + begin + c, token, c, dy[c] * silu_slope(convolved(call, x + c, token, c)));
    }
}

/* --- gates */

void gates_forward_reference(const struct gates_call *call)
{
    const float *rates = call->rates, *bias = call->bias;
    for (int64_t row = 0; row < call->t; row++)
        for (int64_t h = 0; h < call->heads; h++) {
            const float *steps = (const float *)call->steps + row * call->steps_row;
            for (int64_t i = h * call->rows; i < (h + 1) * call->rows; i++) {
                double step = softplus((double)steps[i] + bias[i]);
                call->decay[row * call->heads * call->rows + i] = (float)(-exp(rates[h]) * step);
                if (call->by_step)
                    call->strength[row * call->heads + h] = (float)step;
            }
            if (!call->by_step)
                call->strength[row * call->heads + h] =
                    (float)sigmoid(((const float *)call->strengths)[row * call->strengths_row + h]);
        }
}

static void head_gates_backward(const struct gates_call *call, int64_t row, int64_t h)
{
    const float *rates = call->rates, *bias = call->bias, *steps = (const float *)call->steps + row * call->steps_row;
    float *dsteps = (float *)call->dsteps + row * call->steps_row;
    double dstrength = call->dstrength[row * call->heads + h], rate = exp(rates[h]);
    for (int64_t i = h * call->rows; i < (h + 1) * call->rows; i++) {
        double x = (double)steps[i] + bias[i], ddecay = call->ddecay[row * call->heads * call->rows + i];
        double d = (-rate * ddecay + (call->by_step ? dstrength : 0)) * sigmoid(x);
        call->drates[h] += (float)(-rate * softplus(x) * ddecay);
        call->dbias[i] += (float)d;
        dsteps[i] = (float)d;
    }
    if (call->by_step)
        return;
    double s = sigmoid(((const float *)call->strengths)[row * call->strengths_row + h]);
    ((float *)call->dstrengths)[row * call->strengths_row + h] = (float)(dstrength * s * (1 - s));
}

void gates_backward_reference(const struct gates_call *call)
{
    for (int64_t row = 0; row < call->t; row++)
        for (int64_t h = 0; h < call->heads; h++)
            head_gates_backward(call, row, h);
}

/* --- vectors of length 1 */

static double inverse_length(const struct unit_call *call, const float *x)
{
    double square = 0;
    for (int64_t i = 0; i < call->width; i++)
        square += (double)x[i] * x[i];
    return 1 / sqrt(square + call->epsilon);
}

void unit_forward_reference(const struct unit_call *call)
{
    for (int64_t i = 0; i < call->t * call->n; i++) {
        const float *x = (const float *)call->x + i / call->n * call->x_row + i % call->n * call->width;
        float *y = (float *)call->y + i * call->width;
        double inverse = inverse_length(call, x);
        for (int64_t j = 0; j < call->width; j++)
            y[j] = (float)(x[j] * inverse);
    }
}

/* dx = (dy - y (y . dy)) / |x|. */
void unit_backward_reference(const struct unit_call *call)
{
    for (int64_t i = 0; i < call->t * call->n; i++) {
        int64_t at = i / call->n * call->x_row + i % call->n * call->width;
        const float *x = (const float *)call->x + at, *dy = (const float *)call->dy + i * call->width;
        float *dx = (float *)call->dx + at;
        double inverse = inverse_length(call, x), along = 0;
        for (int64_t j = 0; j < call->width; j++)
            along += x[j] * inverse * dy[j];
        for (int64_t j = 0; j < call->width; j++)
            dx[j] = (float)(inverse * (dy[j] - x[j] * inverse * along));
    }
}

/* --- gate and norm */

/* A segment of a token: its elements, its gate's, their gain's first. */
struct gated {
    const float *x, *gate, *gain;
    int64_t at; /* of x; the gate's gradient stands at gate_at */
    int64_t gate_at, gain_at;
};

static struct gated gated_of(const struct gated_norm_call *call, int64_t i)
{
    int64_t row = i / call->n, segment = i % call->n;
    struct gated g = {.at = i * call->width,
                      .gate_at = row * call->gate_row + segment * call->width,
                      .gain_at = call->shared ? 0 : segment * call->width};
    g.x = (const float *)call->x + g.at;
    g.gate = (const float *)call->gate + g.gate_at;
    g.gain = call->gain ? (const float *)call->gain + g.gain_at : NULL;
    return g;
}

static double gate_value(const struct gated_norm_call *call, double z)
{
    return call->sigmoid ? sigmoid(z) : silu(z);
}

static double gate_slope(const struct gated_norm_call *call, double z)
{
    return call->sigmoid ? sigmoid(z) * (1 - sigmoid(z)) : silu_slope(z);
}

/* What is normed. */
static double normed(const struct gated_norm_call *call, const struct gated *g, int64_t j)
{
    return call->gate_first ? g->x[j] * gate_value(call, g->gate[j]) : (double)g->x[j];
}

static double rstd_of(const struct gated_norm_call *call, const struct gated *g)
{
    double square = 0;
    if (!g->gain)
        return 1;
    for (int64_t j = 0; j < call->width; j++)
        square += normed(call, g, j) * normed(call, g, j);
    return 1 / sqrt(square / (double)call->width + call->epsilon);
}

void gated_norm_forward_reference(const struct gated_norm_call *call)
{
    for (int64_t i = 0; i < call->t * call->n; i++) {
        struct gated g = gated_of(call, i);
        double rstd = rstd_of(call, &g);
        for (int64_t j = 0; j < call->width; j++) {
            double y = normed(call, &g, j) * rstd * (g.gain ? g.gain[j] : 1);
            ((float *)call->y)[g.at + j] = (float)(call->gate_first ? y : y * gate_value(call, g.gate[j]));
        }
    }
}

static void gated_backward(const struct gated_norm_call *call, const struct gated *g)
{
    const float *dy = (const float *)call->dy + g->at;
    double rstd = rstd_of(call, g), along = 0;
    for (int64_t j = 0; j < call->width && g->gain; j++) {
        double n = normed(call, g, j) * rstd, d = dy[j] * (call->gate_first ? 1 : gate_value(call, g->gate[j]));
        call->dgain[g->gain_at + j] += (float)(d * n);
        along += d * g->gain[j] * n / (double)call->width;
    }
    for (int64_t j = 0; j < call->width; j++) {
        double z = g->gate[j], n = normed(call, g, j) * rstd, gain = g->gain ? g->gain[j] : 1;
        double d = dy[j] * gain * (call->gate_first ? 1 : gate_value(call, z)), slope = gate_slope(call, z);
        double dn = rstd * (d - n * along);
        ((float *)call->dx)[g->at + j] = (float)(call->gate_first ? dn * gate_value(call, z) : dn);
        ((float *)call->dgate)[g->gate_at + j] = (float)(call->gate_first ? dn * g->x[j] * slope : dy[j] * gain * n * slope);
    }
}

void gated_norm_backward_reference(const struct gated_norm_call *call)
{
    for (int64_t i = 0; i < call->t * call->n; i++) {
        struct gated g = gated_of(call, i);
        gated_backward(call, &g);
    }
}
