#include "sim/fabric/dcqcn.h"

struct dcqcn dcqcn_start(double line)
{
    return (struct dcqcn){
        .line = line, .current = line, .target = line, .alpha = 1, .alpha_at = DCQCN_NEVER, .rate_at = DCQCN_NEVER};
}

static void alpha_advance(struct dcqcn *s, const struct dcqcn_parameters *with, nanos now)
{
    for (; s->alpha_at <= now; s->alpha_at += with->alpha_timer)
        s->alpha *= 1 - with->gain;
}

/* One round of increase. */
static void rate_increase(struct dcqcn *s, const struct dcqcn_parameters *with)
{
    int32_t most = s->timed > s->counted ? s->timed : s->counted, fewest = s->timed < s->counted ? s->timed : s->counted;
    double scale = s->line / DCQCN_REFERENCE_RATE;

    if (fewest > with->fast_rounds)
        s->target += with->hyper * scale;
    else if (most >= with->fast_rounds)
        s->target += with->additive * scale;
    if (s->target > s->line)
        s->target = s->line;
    s->current = (s->target + s->current) / 2;
    if (s->line - s->current < 1) {
        s->current = s->target = s->line;
        s->rate_at = DCQCN_NEVER;
    }
}

/* Counters only matter up to one beyond F. */
static void round_count(int32_t *rounds, const struct dcqcn_parameters *with)
{
    if (*rounds <= with->fast_rounds)
        ++*rounds;
}

void dcqcn_advance(struct dcqcn *s, const struct dcqcn_parameters *with, nanos now)
{
    alpha_advance(s, with, now);
    while (s->rate_at <= now) {
        s->rate_at += with->rate_timer;
        rate_increase(s, with);
        round_count(&s->timed, with);
    }
}

void dcqcn_notify(struct dcqcn *s, const struct dcqcn_parameters *with, nanos now)
{
    dcqcn_advance(s, with, now);
    s->target = s->current;
    s->current *= 1 - s->alpha / 2;
    if (s->current < with->least)
        s->current = with->least < s->line ? with->least : s->line;
    s->alpha = (1 - with->gain) * s->alpha + with->gain;
    s->alpha_at = now + with->alpha_timer;
    s->rate_at = now + with->rate_timer;
    s->unsent = with->byte_counter;
    s->timed = s->counted = 0;
}

void dcqcn_sent(struct dcqcn *s, const struct dcqcn_parameters *with, double bytes, nanos now)
{
    dcqcn_advance(s, with, now);
    if (s->rate_at == DCQCN_NEVER)
        return;
    s->unsent -= bytes;
    while (s->unsent <= 0 && s->rate_at != DCQCN_NEVER) {
        s->unsent += with->byte_counter;
        rate_increase(s, with);
        round_count(&s->counted, with);
    }
}
