/* Time to build and to verify the program of 175B on 12,288 ranks, folded and with every rank; run by hand. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "fixtures.h"

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void measure(const struct fixture *f, enum detail detail, bool folded)
{
    static const char *const names[] = {"chunk", "layer", "kernel"};
    struct diags diags = {0};
    double begin = seconds();
    struct program program = fixture_build(f, detail, folded);
    double built = seconds();
    enum status status = program_verify(&program, &diags);
    double verified = seconds(), ops = 0;
    for (int r = 0; r < program.n_ranks; r++)
        ops += program.scripts[program.ranks[r].script].n_ops;
    printf("%-6s %-6s ranks %6d  scripts %8u ops  all ranks %10.0f ops  build %8.2f ms  verify %8.2f ms  %s\n", names[detail],
           folded ? "folded" : "all", program.n_ranks, program.n_ops, ops, 1e3 * (built - begin), 1e3 * (verified - built),
           status == STATUS_OK ? "ok" : "WRONG");
    diags_print(&diags, stdout, false);
    diags_free(&diags);
    program_free(&program);
}

int main(void)
{
    struct fixture f = fixture_of(96, false);
    f.cluster.nodes = 1536;
    f.job.global_batch = 6144;
    f.layout = (struct layout){.tp = 8,
                               .cp = 1,
                               .pp = 8,
                               .vpp = 6,
                               .dp = 192,
                               .ep = 1,
                               .zero = 2,
                               .sequence_parallel = true,
                               .micro_batch = 1,
                               .schedule = SCHEDULE_INTERLEAVED,
                               .features = FEATURE_BIT(DP_OVERLAP) | FEATURE_BIT(PP_OVERLAP)};
    for (int detail = DETAIL_CHUNK; detail <= DETAIL_KERNEL; detail++)
        measure(&f, (enum detail)detail, true);
    measure(&f, DETAIL_CHUNK, false);
    measure(&f, DETAIL_LAYER, false);
    return EXIT_SUCCESS;
}
