/* mixture_reference.c - routing, sorting and combining of experts' copies, in plain C. */
#include <math.h>
#include <string.h>

#include "kernels/reference.h"

/* --- the router */

static bool is_chosen(const int32_t *chosen, int n, int32_t expert)
{
    for (int i = 0; i < n; i++)
        if (chosen[i] == expert)
            return true;
    return false;
}

static float largest_of_group(const struct route_call *call, const float *logits, int group)
{
    int n = call->experts / call->groups;
    float largest = logits[group * n];
    for (int i = 1; i < n; i++)
        largest = logits[group * n + i] > largest ? logits[group * n + i] : largest;
    return largest;
}

/* Fewer than top_groups groups have a larger logit, or the same and a lower number. */
static bool is_open(const struct route_call *call, const float *logits, int expert)
{
    if (!call->groups || call->top_groups >= call->groups)
        return true;
    int group = expert / (call->experts / call->groups), before = 0;
    float own = largest_of_group(call, logits, group);
    for (int g = 0; g < call->groups; g++) {
        float other = largest_of_group(call, logits, g);
        before += other > own || (g < group && other == own);
    }
    return before < call->top_groups;
}

static int32_t best_of_rest(const struct route_call *call, const float *logits, const int32_t *chosen, int n)
{
    int32_t best = -1;
    for (int32_t e = 0; e < call->experts; e++)
        if (!is_chosen(chosen, n, e) && (best < 0 || logits[e] > logits[best]) && is_open(call, logits, e))
            best = e;
    return best;
}

void route_forward_reference(const struct route_call *call)
{
    for (int64_t row = 0; row < call->t; row++) {
        const float *logits = (const float *)call->logits + row * call->experts;
        int32_t *expert = call->expert + row * call->top_k;
        float *gate = call->gate + row * call->top_k;
        double sum = 0;
        for (int j = 0; j < call->top_k; j++) {
            expert[j] = best_of_rest(call, logits, expert, j);
            sum += exp((double)logits[expert[j]] - logits[expert[0]]);
        }
        for (int j = 0; j < call->top_k; j++)
            gate[j] = (float)(exp((double)logits[expert[j]] - logits[expert[0]]) / sum);
    }
}

/* dlogit_j = gate_j (dgate_j - sum of gate dgate). */
void route_backward_reference(const struct route_call *call)
{
    memset(call->dlogits, 0, (size_t)(call->t * call->experts) * sizeof(float));
    for (int64_t row = 0; row < call->t; row++) {
        const float *gate = call->gate + row * call->top_k, *dgate = call->dgate + row * call->top_k;
        double mean = 0;
        for (int j = 0; j < call->top_k; j++)
            mean += (double)gate[j] * dgate[j];
        for (int j = 0; j < call->top_k; j++)
            ((float *)call->dlogits)[row * call->experts + call->expert[row * call->top_k + j]] =
                (float)(gate[j] * (dgate[j] - mean));
    }
}

/* --- where copies stand */

/* The counts become where each expert's copies begin, then grow back to where they end; the counts of all below an expert. */
void expert_sort_reference(const struct expert_sort_call *call)
{
    memset(call->counts, 0, (size_t)call->experts * sizeof *call->counts);
    for (int64_t i = 0; i < call->n; i++)
        call->place[i] = call->counts[call->expert[i]]++;
    for (int64_t i = 0; i < call->n; i++)
        for (int32_t e = 0; e < call->expert[i]; e++)
            call->place[i] += call->counts[e];
}

static int32_t sum(const int32_t *counts, int n)
{
    int32_t total = 0;
    for (int i = 0; i < n; i++)
        total += counts[i];
    return total;
}

/* Rows of one expert from one source: where they arrived and where they belong. */
static void arrivals_order(const struct expert_arrivals_call *call, int source, int expert)
{
    int n = call->experts;
    int32_t from = sum(call->arrived, source * n + expert), to = call->offsets[expert];
    for (int s = 0; s < source; s++)
        to += call->arrived[s * n + expert];
    for (int32_t i = 0; i < call->arrived[source * n + expert]; i++)
        call->order[from + i] = to + i;
}

void expert_arrivals_reference(const struct expert_arrivals_call *call)
{
    int n = call->experts, sources = call->tp * call->ep;
    for (int i = 0; i < call->ep; i++) {
        call->sent[i] = sum(call->counts + i * n, n);
        call->received[i] = sum(call->arrived + (call->me * call->ep + i) * n, n);
    }
    for (int i = 0; i < call->tp; i++)
        call->members[i] = sum(call->arrived + i * call->ep * n, call->ep * n);
    call->offsets[0] = 0;
    for (int e = 0; e < n; e++) {
        call->offsets[e + 1] = call->offsets[e];
        for (int s = 0; s < sources; s++)
            call->offsets[e + 1] += call->arrived[s * n + e];
    }
    for (int s = 0; s < sources; s++)
        for (int e = 0; e < n; e++)
            arrivals_order(call, s, e);
}

/* --- copies back to tokens */

void combine_forward_reference(const struct combine_call *call)
{
    for (int64_t row = 0; row < call->t; row++)
        for (int64_t i = 0; i < call->h; i++) {
            double y = 0;
            for (int j = 0; j < call->top_k; j++) {
                int64_t copy = row * call->top_k + j;
                y += (call->gate ? call->gate[copy] : 1.0) * ((const float *)call->rows)[call->place[copy] * call->h + i];
            }
            ((float *)call->y)[row * call->h + i] = (float)y;
        }
}

void combine_backward_reference(const struct combine_call *call)
{
    for (int64_t copy = 0; copy < call->t * call->top_k; copy++) {
        const float *dy = (const float *)call->dy + copy / call->top_k * call->h;
        const float *row = (const float *)call->rows + call->place[copy] * call->h;
        float *drow = (float *)call->drows + call->place[copy] * call->h;
        double dgate = 0;
        for (int64_t i = 0; i < call->h; i++) {
            dgate += (double)dy[i] * row[i];
            drow[i] = call->gate[copy] * dy[i];
        }
        call->dgate[copy] = (float)dgate;
    }
}

/* --- experts */

struct group {
    int64_t first, n, in, out;
    const float *w, *bias;
};

static struct group group_of(const struct grouped_call *call, int g)
{
    int64_t first = call->offsets[g];
    return (struct group){.first = first,
                          .n = call->offsets[g + 1] - first,
                          .in = call->in,
                          .out = call->out,
                          .w = call->w ? (const float *)call->w + g * call->out * call->in : NULL,
                          .bias = call->bias ? (const float *)call->bias + g * call->out : NULL};
}

static struct linear_call linear_of(const struct grouped_call *call, int g)
{
    struct group group = group_of(call, g);
    return (struct linear_call){.t = group.n,
                                .in = call->in,
                                .out = call->out,
                                .x = call->x ? (const float *)call->x + group.first * call->in : NULL,
                                .w = group.w,
                                .bias = group.bias,
                                .y = call->y ? (float *)call->y + group.first * call->out : NULL,
                                .dy = call->dy ? (const float *)call->dy + group.first * call->out : NULL,
                                .dx = call->dx ? (float *)call->dx + group.first * call->in : NULL,
                                .dw = call->dw ? call->dw + g * call->out * call->in : NULL,
                                .dbias = call->dbias ? call->dbias + g * call->out : NULL,
                                .overwrite = call->overwrite};
}

/* Operands of 8 bits are widened together. */
static struct grouped_call widened(const struct grouped_call *call)
{
    struct grouped_call wide = *call;
    int64_t rows = call->offsets[call->groups];
    float *scratch = call->scratch;
    wide.x = narrow_widened(call->x, &call->x_as, rows, call->in, &scratch);
    wide.dy = narrow_widened(call->dy, &call->dy_as, rows, call->out, &scratch);
    wide.w = narrow_widened(call->w, &call->w_as, call->groups * call->out, call->in, &scratch);
    return wide;
}

static void each_group(const struct grouped_call *call, void (*linear)(const struct linear_call *call))
{
    struct grouped_call wide = widened(call);
    for (int g = 0; g < call->groups; g++) {
        struct linear_call part = linear_of(&wide, g);
        if (part.t > 0)
            linear(&part);
        else if (part.dw && part.overwrite)
            memset(part.dw, 0, (size_t)(part.out * part.in) * sizeof *part.dw);
    }
}

void grouped_forward_reference(const struct grouped_call *call)
{
    each_group(call, linear_forward_reference);
}

void grouped_backward_input_reference(const struct grouped_call *call)
{
    each_group(call, linear_backward_input_reference);
}

void grouped_backward_weight_reference(const struct grouped_call *call)
{
    each_group(call, linear_backward_weight_reference);
}
