#!/bin/sh
# growth.sh [BUILD] [ROUTING] - how the time of a step on the flow network grows with the cluster: 1,024 to 131,072 GPUs, every rank
# simulated, the same work for each of them (a 22B model, tensor parallelism 8, 8 stages, 8 micro-batches per replica; only the
# number of replicas grows), on three-layer Clos fabrics of the same switches. Processor time (user and system, of the whole process)
# and memory of each size, best of RUNS (3; the two largest once), and the exponent of a least-squares line through the logarithms.
# Take a release build and an idle machine; GROWTH_MAX limits the largest size.
set -eu
build=${1:-build}
routing=${2:-ecmp}
runs=${RUNS:-3}
most=${GROWTH_MAX:-131072}
export OPENBLAS_NUM_THREADS=1 # the BLAS of the CPU backend would start threads that only wait
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
one="env"
command -v taskset >/dev/null && one="taskset -c 0"

gpus=1024
while [ "$gpus" -le "$most" ]; do
    fabric="clos hosts:$((gpus / 8)) gpus:8 nics:8x200G tors:8 tor:64x200G/32x400G agg:32x400G/32x400G core:128x400G nvlink:8x245GB/s"
    n=$runs
    [ "$gpus" -le 32768 ] || n=1
    while [ "$n" -gt 0 ]; do
        $one "$build/tests/bench/measure" -c -n 1 "$gpus" "$build/msim" step --model gpt-22b --cluster megascale-a100 --gpus "$gpus" \
            --set cluster.nodes="$((gpus / 8))" --global-batch "$((gpus / 8))" --layout tp=8,pp=8,mb=1,zero=1,sp=1 --network flow --fabric "$fabric" --routing "$routing" \
            --ranks all --format json --quiet >>"$work/times"
        n=$((n - 1))
    done
    gpus=$((2 * gpus))
done
awk -v routing="$routing" '
    !($1 in best) || $2 < best[$1] { best[$1] = $2; mib[$1] = $4; if (!($1 in seen)) { order[++n] = $1; seen[$1] = 1 } }
    END {
        printf "%10s %12s %10s %18s\n", "GPUs", "CPU [s]", "MiB", "us per rank"
        for (i = 1; i <= n; i++) {
            g = order[i]; t = best[g]
            printf "%10d %12.3f %10d %18.2f\n", g, t, mib[g], 1e6 * t / g
            x = log(g); y = log(t); sx += x; sy += y; sxx += x * x; sxy += x * y
        }
        printf "routing %s: time grows as GPUs^%.3f\n", routing, (n * sxy - sx * sy) / (n * sxx - sx * sx)
    }' "$work/times"
