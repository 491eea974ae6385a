#include "sim/weeks/ledger.h"

#include <stdlib.h>

#include "model/base/memory.h"

static const char *const names[] = {
#define X(id, name, what) name,
    TIME_USES(X)
#undef X
};

static const char *const meanings[] = {
#define X(id, name, what) what,
    TIME_USES(X)
#undef X
};

const char *time_use_name(enum time_use use)
{
    return names[use];
}

const char *time_use_meaning(enum time_use use)
{
    return meanings[use];
}

void ledger_open(struct ledger *ledger, nanos horizon, nanos width)
{
    size_t n_bins = (size_t)((horizon - 1) / width + 1);
    *ledger = (struct ledger){
        .horizon = horizon,
        .width = width,
        .bins = memory_new(n_bins, sizeof *ledger->bins),
        .n_bins = n_bins,
    };
    for (int level = 0; level < N_LEVELS; level++)
        ledger->first[level] = LEDGER_NONE;
}

nanos ledger_edge(const struct ledger *ledger)
{
    if (ledger->bin + 1 >= ledger->n_bins)
        return ledger->horizon;
    return (nanos)(ledger->bin + 1) * ledger->width;
}

static void move(struct ledger *ledger, nanos duration)
{
    ledger->now += duration;
    if (ledger->now == ledger_edge(ledger) && ledger->bin + 1 < ledger->n_bins)
        ledger->bin++;
}

void ledger_book(struct ledger *ledger, enum time_use use, nanos duration)
{
    ledger->bins[ledger->bin].use[use] += duration;
    move(ledger, duration);
}

void ledger_train(struct ledger *ledger, nanos work, nanos slow)
{
    struct ledger_bin *bin = &ledger->bins[ledger->bin];
    bin->work[LEVEL_FRESH] += work;
    bin->slow[LEVEL_FRESH] += slow;
    if (ledger->first[LEVEL_FRESH] == LEDGER_NONE)
        ledger->first[LEVEL_FRESH] = ledger->bin;
    ledger->work += work;
    move(ledger, work + slow);
}

void ledger_train_intervals(struct ledger *ledger, nanos n, nanos work, nanos block)
{
    struct ledger_bin *bin = &ledger->bins[ledger->bin];
    bin->use[USE_TRAINING] += n * work;
    bin->use[USE_CHECKPOINT] += n * block;
    ledger->work += n * work;
    move(ledger, n * (work + block));
}

void ledger_promote(struct ledger *ledger, enum ledger_level from, enum ledger_level to)
{
    if (ledger->first[from] == LEDGER_NONE)
        return;
    for (size_t i = ledger->first[from]; i <= ledger->bin; i++) {
        struct ledger_bin *bin = &ledger->bins[i];
        bin->work[to] += bin->work[from];
        bin->slow[to] += bin->slow[from];
        bin->work[from] = bin->slow[from] = 0;
    }
    if (ledger->first[from] < ledger->first[to]) /* LEDGER_NONE is the largest value */
        ledger->first[to] = ledger->first[from];
    ledger->first[from] = LEDGER_NONE;
}

void ledger_commit_level(struct ledger *ledger, enum ledger_level level)
{
    if (ledger->first[level] == LEDGER_NONE)
        return;
    for (size_t i = ledger->first[level]; i <= ledger->bin; i++) {
        struct ledger_bin *bin = &ledger->bins[i];
        bin->use[USE_TRAINING] += bin->work[level];
        bin->use[USE_DEGRADED] += bin->slow[level];
        bin->work[level] = bin->slow[level] = 0;
    }
    ledger->first[level] = LEDGER_NONE;
}

nanos ledger_lose_level(struct ledger *ledger, enum ledger_level level)
{
    nanos lost = 0;
    if (ledger->first[level] == LEDGER_NONE)
        return 0;
    for (size_t i = ledger->first[level]; i <= ledger->bin; i++) {
        struct ledger_bin *bin = &ledger->bins[i];
        nanos pending = bin->work[level] + bin->slow[level];
        bin->use[USE_LOST] += pending;
        ledger->work -= bin->work[level];
        lost += pending;
        bin->work[level] = bin->slow[level] = 0;
    }
    ledger->first[level] = LEDGER_NONE;
    return lost;
}

/* Loses up to `amount` of one kind of fresh pending time in a bin; returns how much. */
static nanos lose_of(struct ledger_bin *bin, nanos *pending, nanos amount)
{
    nanos taken = amount < *pending ? amount : *pending;
    *pending -= taken;
    bin->use[USE_LOST] += taken;
    return taken;
}

nanos ledger_lose_recent(struct ledger *ledger, nanos work, nanos slow)
{
    nanos asked = work + slow, asked_work = work;
    for (size_t i = ledger->bin + 1; i-- > 0 && work + slow > 0 && ledger->first[LEVEL_FRESH] <= i;) {
        struct ledger_bin *bin = &ledger->bins[i];
        work -= lose_of(bin, &bin->work[LEVEL_FRESH], work);
        slow -= lose_of(bin, &bin->slow[LEVEL_FRESH], slow);
    }
    ledger->work -= asked_work - work;
    return asked - work - slow;
}

void ledger_commit(struct ledger *ledger)
{
    for (int level = 0; level < N_LEVELS; level++)
        ledger_commit_level(ledger, (enum ledger_level)level);
}

nanos ledger_lose(struct ledger *ledger)
{
    nanos lost = 0;
    for (int level = 0; level < N_LEVELS; level++)
        lost += ledger_lose_level(ledger, (enum ledger_level)level);
    return lost;
}

void ledger_close(struct ledger *ledger)
{
    nanos begun = (nanos)ledger->bin * ledger->width;
    ledger->horizon = ledger->now;
    ledger->n_bins = ledger->bin + (begun < ledger->now);
}

nanos ledger_total(const struct ledger *ledger, enum time_use use)
{
    nanos total = 0;
    for (size_t i = 0; i < ledger->n_bins; i++)
        total += ledger->bins[i].use[use];
    return total;
}
