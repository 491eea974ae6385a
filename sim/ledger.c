#include "sim/ledger.h"

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
}

void ledger_close(struct ledger *ledger)
{
    free(ledger->bins);
    *ledger = (struct ledger){0};
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
    bin->pending_work += work;
    bin->pending_slow += slow;
    move(ledger, work + slow);
}

void ledger_train_intervals(struct ledger *ledger, nanos n, nanos work, nanos block)
{
    struct ledger_bin *bin = &ledger->bins[ledger->bin];
    bin->use[USE_TRAINING] += n * work;
    bin->use[USE_CHECKPOINT] += n * block;
    move(ledger, n * (work + block));
    ledger->pending_bin = ledger->bin;
}

void ledger_commit(struct ledger *ledger)
{
    for (size_t i = ledger->pending_bin; i <= ledger->bin; i++) {
        struct ledger_bin *bin = &ledger->bins[i];
        bin->use[USE_TRAINING] += bin->pending_work;
        bin->use[USE_DEGRADED] += bin->pending_slow;
        bin->pending_work = bin->pending_slow = 0;
    }
    ledger->pending_bin = ledger->bin;
}

nanos ledger_lose(struct ledger *ledger)
{
    nanos lost = 0;
    for (size_t i = ledger->pending_bin; i <= ledger->bin; i++) {
        struct ledger_bin *bin = &ledger->bins[i];
        nanos pending = bin->pending_work + bin->pending_slow;
        bin->use[USE_LOST] += pending;
        lost += pending;
        bin->pending_work = bin->pending_slow = 0;
    }
    ledger->pending_bin = ledger->bin;
    return lost;
}

nanos ledger_total(const struct ledger *ledger, enum time_use use)
{
    nanos total = 0;
    for (size_t i = 0; i < ledger->n_bins; i++)
        total += ledger->bins[i].use[use];
    return total;
}
