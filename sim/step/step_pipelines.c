#include "sim/step/step_pipelines.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/memory.h"
#include "sim/network/network_analytic.h"
#include "sim/step/op_kinds.h"
#include "sim/step/step_executor.h"

enum { Z_LOW = -4, Z_HIGH = 8, N_LEVELS = Z_HIGH - Z_LOW + 1 };

struct pipelines {
    struct program program; /* ranks are blocks: one for tp * cp that are alike */
    struct step_tables tables;
    struct op_kinds kinds;
    nanos *durations;    /* [N_LEVELS][kinds.n] */
    nanos *more, *less;  /* [kinds.n], for micro-batches of twice the pairs, and of none; NULL: all are alike */
    int32_t *first_draw; /* [program.n_ranks], of its replica's micro-batches */
    size_t n_draws;
    int32_t *team;          /* [ranks of the job] */
    int32_t *team_of_block; /* [program.n_ranks] */
    int32_t n_teams;
};

/* --- sets that are joined (union-find; the least member names a set) --- */

static int32_t set_of(int32_t *sets, int32_t i)
{
    while (sets[i] != i)
        i = sets[i] = sets[sets[i]];
    return i;
}

static void sets_join(int32_t *sets, int32_t a, int32_t b)
{
    a = set_of(sets, a);
    b = set_of(sets, b);
    if (a < b)
        sets[b] = a;
    else
        sets[a] = b;
}

static int32_t *sets_new(int32_t n)
{
    int32_t *sets = memory_new((size_t)n, sizeof *sets);
    for (int32_t i = 0; i < n; i++)
        sets[i] = i;
    return sets;
}

/* Numbers the sets in the order of their least members; returns their number. */
static int32_t sets_number(int32_t *sets, int32_t n)
{
    int32_t n_sets = 0, *number = memory_new((size_t)n, sizeof *number);
    for (int32_t i = 0; i < n; i++)
        number[i] = set_of(sets, i) == i ? n_sets++ : number[set_of(sets, i)];
    memcpy(sets, number, (size_t)n * sizeof *sets);
    free(number);
    return n_sets;
}

/* --- blocks: the ranks of one stage and replica --- */

static int32_t block_of(const struct layout *layout, bool every_rank, int rank)
{
    struct coordinates at = layout_coordinates(layout, rank);
    return every_rank ? rank : at.pp * layout->dp + at.dp;
}

/* The groups of one kind with blocks as members; groups that share a block are united. */
static void fold_groups(const struct program *whole, enum group_kind kind, const int32_t *blocks, struct program *folded)
{
    int32_t *sets = sets_new(folded->n_ranks), *group = memory_new((size_t)folded->n_ranks, sizeof *group);
    bool *is_member = memory_new((size_t)folded->n_ranks, sizeof *is_member);
    for (int32_t g = 0; g < whole->n_groups; g++) {
        const struct rank_group *of = &whole->groups[g];
        const int32_t *members = &whole->members[of->first_member];
        for (int32_t m = 0; of->kind == kind && m < of->n_members; m++) {
            sets_join(sets, blocks[members[0]], blocks[members[m]]);
            is_member[blocks[members[m]]] = true;
        }
    }
    for (int32_t b = 0; b < folded->n_ranks; b++)
        if (is_member[b] && set_of(sets, b) == b) {
            group[b] = folded->n_groups;
            folded->groups[folded->n_groups++] = (struct rank_group){.kind = kind};
        }
    for (int32_t b = 0; b < folded->n_ranks; b++)
        if (is_member[b]) {
            folded->ranks[b].groups[kind] = group[set_of(sets, b)];
            folded->groups[group[set_of(sets, b)]].n_members++;
        }
    free(is_member);
    free(group);
    free(sets);
}

static void list_members(struct program *folded)
{
    int32_t *next = memory_new((size_t)folded->n_groups, sizeof *next);
    for (int32_t g = 0; g < folded->n_groups; g++) {
        next[g] = folded->groups[g].first_member = folded->n_members;
        folded->n_members += folded->groups[g].n_members;
    }
    folded->members = memory_new((size_t)folded->n_members, sizeof *folded->members);
    for (int32_t b = 0; b < folded->n_ranks; b++)
        for (int kind = 0; kind < N_GROUP_KINDS; kind++)
            if (folded->ranks[b].groups[kind] >= 0)
                folded->members[next[folded->ranks[b].groups[kind]]++] = b;
    free(next);
}

/* Replaces the ranks of a program by their blocks. */
static void fold_ranks(struct program *program, const int32_t *blocks)
{
    struct program folded = *program;
    folded.layout.tp = folded.layout.cp = 1;
    folded.n_ranks = program->layout.dp * program->layout.pp;
    folded.n_groups = folded.n_members = 0;
    folded.ranks = memory_new((size_t)folded.n_ranks, sizeof *folded.ranks);
    folded.groups = memory_new((size_t)folded.n_ranks * N_GROUP_KINDS, sizeof *folded.groups);
    for (int32_t r = program->n_ranks - 1; r >= 0; r--) {
        struct program_rank *block = &folded.ranks[blocks[r]];
        *block = program->ranks[r];
        for (int p = 0; p < N_PEERS; p++)
            block->peers[p] = block->peers[p] >= 0 ? blocks[block->peers[p]] : -1;
        for (int kind = 0; kind < N_GROUP_KINDS; kind++)
            block->groups[kind] = -1;
    }
    for (int kind = 0; kind < N_GROUP_KINDS; kind++)
        fold_groups(program, (enum group_kind)kind, blocks, &folded);
    list_members(&folded);
    free(program->ranks);
    free(program->groups);
    free(program->members);
    *program = folded;
}

/* --- teams --- */

static void find_teams(struct pipelines *p, const struct layout *layout, int n_ranks, const int32_t *blocks)
{
    static const enum group_kind inside[] = {GROUP_TP, GROUP_CP, GROUP_CP_HEADS, GROUP_EP};
    int *members = memory_new((size_t)n_ranks, sizeof *members);
    p->team = sets_new(n_ranks);
    for (size_t k = 0; k < sizeof inside / sizeof *inside; k++)
        for (int r = 0; layout_group_size(layout, inside[k]) > 1 && r < n_ranks; r++) {
            layout_group_members(layout, inside[k], r, members);
            sets_join(p->team, r, members[0]);
        }
    p->n_teams = sets_number(p->team, n_ranks);
    p->team_of_block = memory_new((size_t)p->program.n_ranks, sizeof *p->team_of_block);
    for (int r = 0; r < n_ranks; r++)
        p->team_of_block[blocks[r]] = p->team[r];
    free(members);
}

/* --- durations --- */

/* Durations of each kind on GPUs at this level, with this many more pairs in documents. */
static void find_costs(const struct pipelines *p, const struct machine *machine, double slower, double documents,
                       struct step_costs *costs)
{
    struct machine other = *machine;
    struct network network = network_analytic(&other);
    other.pace *= 1 + slower;
    other.documents = documents;
    op_kinds_cost(&p->kinds, &p->program, &other, &network, costs);
}

static enum status find_durations(struct pipelines *p, const struct machine *machine, double jitter, struct diags *diags)
{
    enum status status = STATUS_OK;
    op_kinds_find(&p->program, &p->kinds);
    p->durations = memory_new((size_t)N_LEVELS * p->kinds.n, sizeof *p->durations);
    for (int i = 0; i < N_LEVELS; i++) {
        struct step_costs costs;
        find_costs(p, machine, jitter * (Z_LOW + i), 0, &costs);
        memcpy(p->durations + (size_t)i * p->kinds.n, costs.ops, p->kinds.n * sizeof *costs.ops);
        if (Z_LOW + i == 0)
            status = op_kinds_time(&p->kinds, &p->program, machine, &costs, &p->tables, NULL, diags);
        step_costs_free(&costs);
    }
    return status;
}

/* --- documents --- */

/* Shares everything except the durations. */
static nanos *durations_of(const struct pipelines *p, const struct machine *machine, double documents)
{
    struct step_costs costs;
    find_costs(p, machine, 0, documents, &costs);
    nanos *durations = costs.ops;
    costs.ops = NULL;
    step_costs_free(&costs);
    return durations;
}

static void find_draws(struct pipelines *p, const struct machine *machine, const int32_t *blocks)
{
    const struct layout *layout = machine->layout;
    int64_t micro_batches = layout_micro_batches(layout, machine->job);
    const nanos *mean = p->durations + (size_t)-Z_LOW * p->kinds.n;
    p->n_draws = (size_t)micro_batches * (size_t)layout->dp;
    if (!job_masks_documents(machine->job))
        return;
    p->more = durations_of(p, machine, 1);
    p->less = durations_of(p, machine, -0.5);
    for (uint32_t k = 0; k < p->kinds.n; k++) {
        p->more[k] -= mean[k];
        p->less[k] = 2 * (mean[k] - p->less[k]);
    }
    p->first_draw = memory_new((size_t)p->program.n_ranks, sizeof *p->first_draw);
    for (int r = 0; r < layout->tp * layout->cp * layout->pp * layout->dp; r++)
        p->first_draw[blocks[r]] = (int32_t)(layout_coordinates(layout, r).dp * micro_batches);
}

/* --- the step --- */

enum status pipelines_create(const struct layout *layout, const struct setting *setting, double jitter, bool every_rank,
                             struct pipelines **pipelines, struct diags *diags)
{
    struct pipelines *made = memory_new(1, sizeof *made);
    struct cluster cluster = *setting->cluster;
    struct setting alike = *setting;
    cluster.gpu.clock_spread = 0;
    alike.cluster = &cluster;
    enum status status = program_build(layout, setting, DETAIL_CHUNK, false, &made->program, diags);
    if (status != STATUS_OK) {
        free(made);
        return status;
    }
    int n_ranks = made->program.n_ranks;
    int32_t *blocks = memory_new((size_t)n_ranks, sizeof *blocks);
    for (int r = 0; r < n_ranks; r++)
        blocks[r] = block_of(layout, every_rank, r);
    if (!every_rank)
        fold_ranks(&made->program, blocks);
    status = step_tables_create(&made->program, NULL, &made->tables, diags);
    if (status == STATUS_OK) {
        step_tables_slots(&made->tables, &made->program);
        find_teams(made, layout, n_ranks, blocks);
        struct machine machine = machine_of(layout, &alike);
        status = find_durations(made, &machine, jitter, diags);
        find_draws(made, &machine, blocks);
    }
    if (status == STATUS_OK)
        *pipelines = made;
    else
        pipelines_destroy(made);
    free(blocks);
    return status;
}

void pipelines_destroy(struct pipelines *pipelines)
{
    if (pipelines == NULL)
        return;
    step_tables_free(&pipelines->tables);
    program_free(&pipelines->program);
    op_kinds_free(&pipelines->kinds);
    free(pipelines->durations);
    free(pipelines->more);
    free(pipelines->less);
    free(pipelines->first_draw);
    free(pipelines->team);
    free(pipelines->team_of_block);
    free(pipelines);
}

int pipelines_teams(const struct pipelines *pipelines)
{
    return pipelines->n_teams;
}

int pipelines_team_of(const struct pipelines *pipelines, int rank)
{
    return pipelines->team[rank];
}

uint64_t pipelines_ops(const struct pipelines *pipelines)
{
    const struct program *program = &pipelines->program;
    uint64_t n = 0;
    for (int32_t r = 0; r < program->n_ranks; r++)
        n += program->scripts[program->ranks[r].script].n_ops;
    return n;
}

size_t pipelines_draws(const struct pipelines *pipelines)
{
    return pipelines->n_draws;
}

enum status pipelines_time(const struct pipelines *pipelines, const double *z, const double *draws, nanos *step,
                           struct diags *diags)
{
    const struct program *program = &pipelines->program;
    double *level = memory_new((size_t)program->n_ranks, sizeof *level);
    const struct step_paces paces = {.durations = pipelines->durations,
                                     .kind = pipelines->kinds.kind,
                                     .n_kinds = pipelines->kinds.n,
                                     .n_levels = N_LEVELS,
                                     .level_of_tables = -Z_LOW,
                                     .level = level,
                                     .more = pipelines->more,
                                     .less = pipelines->less,
                                     .draws = pipelines->more != NULL ? draws : NULL,
                                     .first_draw = pipelines->first_draw};
    struct execution execution;
    for (int32_t b = 0; b < program->n_ranks; b++)
        level[b] = fmax(z[pipelines->team_of_block[b]], Z_LOW) - Z_LOW;
    enum status status = program_execute_prepared(program, &pipelines->tables, &paces, EXECUTE_TOTALS, &execution, diags);
    free(level);
    if (status != STATUS_OK)
        return status;
    *step = execution.end;
    execution_free(&execution);
    return STATUS_OK;
}
