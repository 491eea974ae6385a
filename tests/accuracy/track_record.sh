#!/bin/bash
# track_record.sh MSIM - how far MSIM's predictions are from the rows of $MSIM_SHARED/measured/*.csv, by kind of run, and
# what predictions of memory are worth: the text of
# model/cost/step/track_record.inc. track_record.sh MSIM --check - compare with it (exit 1 when it differs); 77 without the tables.
set -euo pipefail
export LC_ALL=C
here=$(cd "$(dirname "$0")" && pwd)
tables=${MSIM_SHARED:-}/measured
[ -r "$tables/vtrain_single.csv" ] || { echo "skipped: MSIM_SHARED has no measured tables"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

for by in kind all; do
    "$1" compare "$tables"/*.csv --format csv --by $by -q -o "$work/$by.csv"
done
{
    echo "/* Made by tests/accuracy/accept.sh. Of measured runs by kind, KIND(kind, runs, sources, measured over predicted step time: 10th,"
    echo " * 50th and 90th percentile with each source weighing the same, GPUs, outcomes); of all outcomes, OUTCOMES(runs, failed, sources,"
    echo " * median and scale of needed over predicted memory). */"
    awk -F, '
        FNR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
        $at["group"] == "all" {
            printf "OUTCOMES(%d, %d, %d, %.3f, %.4f)\n", $at["outcomes"], $at["outcomes_oom"], $at["outcome_sources"],
                $at["need_median"], $at["need_scale"]
            next
        }
        {
            printf "KIND(%s, %d, %d, %.3f, %.3f, %.3f, \"%s\", %d)\n", toupper($at["group"]), $at["timed"], $at["sources"],
                $at["ratio_p10"], $at["ratio_p50"], $at["ratio_p90"], $at["gpus"], $at["outcomes"]
        }' "$work/kind.csv" "$work/all.csv"
} > "$work/track_record.inc"

if [ "${2-}" != --check ]; then
    cat "$work/track_record.inc"
elif ! diff -U0 "$here/../../model/cost/step/track_record.inc" "$work/track_record.inc"; then
    echo "The errors have changed (- before, + now). If that is meant: tests/accuracy/accept.sh $1"
    exit 1
fi
