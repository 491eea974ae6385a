#!/bin/bash
# jitter.sh TRACE.csv.gz [DP,PP] - how much equal passes differ in a trace of operations (columns as in operation_trace.h), the rank
# DP,PP left out. Natural logarithms of durations, centred by pipeline stage, are divided into
#   rank       mean of a rank over the whole trace: persistent differences between GPUs
#   batch      mean over the stages of one replica of one micro-batch of one step: work that differs, and what slows all of a replica
#   residual   the rest: jitter of one pass on one rank, scaled by sqrt(p / (p - 1)) for the p stages the mean was taken over
# Standard deviations and the residual's tail, in percent.
set -euo pipefail
export LC_ALL=C
zcat "$1" | awk -F, -v out="${2-}" '
    function report(op,    k, n, key, p, r) {
        p = stages
        for (k = 1; k <= count; k++) {
            if (kind[k] != op) continue
            key = op SUBSEP pp[k]; sum[key] += x[k]; num[key]++
        }
        for (k = 1; k <= count; k++) {
            if (kind[k] != op) continue
            x[k] -= sum[op, pp[k]] / num[op, pp[k]]
            total += x[k] ^ 2; n++
            rsum[op, rank[k]] += x[k]; rnum[op, rank[k]]++
        }
        for (k = 1; k <= count; k++) {
            if (kind[k] != op) continue
            x[k] -= rsum[op, rank[k]] / rnum[op, rank[k]]
            bsum[op, batch[k]] += x[k]; bnum[op, batch[k]]++
        }
        var_rank = var_batch = var = 0; ranks = 0
        for (key in rsum) { split(key, at, SUBSEP); if (at[1] == op) { var_rank += (rsum[key] / rnum[key]) ^ 2; ranks++ } }
        for (k = 1; k <= count; k++) {
            if (kind[k] != op) continue
            b = bsum[op, batch[k]] / bnum[op, batch[k]]
            var_batch += b ^ 2
            r = (x[k] - b) * sqrt(p / (p - 1)); var += r ^ 2
            tail[++tails] = r
        }
        printf "%-17s %6d passes, %d ranks: total %.2f  rank %.2f  batch %.2f  residual %.2f", op, n, ranks, 100 * sqrt(total / n),
               100 * sqrt(var_rank / ranks), 100 * sqrt(var_batch / n), 100 * sqrt(var / n)
        for (level = 1; level <= 4; level++) { bound = level / 100; above = 0; for (k = 1; k <= tails; k++) above += tail[k] > bound
            printf "  >%d%%: %.4f", level, above / tails }
        printf "\n"
        total = 0; tails = 0
    }
    NR > 1 && ($4 == "forward-compute" || $4 == "backward-compute") && $2 "," $3 != out {
        count++
        kind[count] = $4; pp[count] = $3; rank[count] = $2 "," $3; batch[count] = $1 "," $2 "," $5; x[count] = log($7)
        if ($3 + 1 > stages) stages = $3 + 1
    }
    END { report("forward-compute"); report("backward-compute") }'
