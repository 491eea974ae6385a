#!/bin/sh
# bench_simgrid.sh [BUILD] - the flow network beside SimGrid, in one run on one core: the same 12,288 hosts, the same patterns. Needs
# MSIM_SHARED with bench/simgrid_bench.cpp and SimGrid's headers (Debian: libsimgrid-dev); says so and ends well where they are not.
# SimGrid runs its CM02 model without cross-traffic, its fastest; its fat tree routes by destination. Its times here leave out
# building the platform, as ours leave out reading the fabric.
set -eu
build=${1:-build}
source=${MSIM_SHARED:-}/bench/simgrid_bench.cpp
[ -f "$source" ] || { echo "skipped: MSIM_SHARED has no bench/simgrid_bench.cpp"; exit 0; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
${CXX:-c++} -O2 -o "$work/simgrid" "$source" -lsimgrid 2>/dev/null || { echo "skipped: no SimGrid (libsimgrid-dev)"; exit 0; }
one="env"
command -v taskset >/dev/null && one="taskset -c 0"
simgrid() {
    $one "$work/simgrid" "$@" --cfg=network/model:CM02 --cfg=network/crosstraffic:0 2>/dev/null | grep -oE '(flows|sim_s|run_s|rss_mib)=[^ ]*' |
        tr '\n' ' '
    echo
}
for pattern in permutation jittered rings; do
    echo "== $pattern"
    case $pattern in
    permutation) simgrid perm ;;
    jittered) simgrid perm --jitter=0.1 ;;
    rings) simgrid gsteps --steps=126 --bytes=1e6 ;;
    esac
    $one "$build/tests/bench/bench_fabric" $pattern static | tail -n +2
    $one "$build/tests/bench/bench_fabric" $pattern ecmp | tail -n +2
done
