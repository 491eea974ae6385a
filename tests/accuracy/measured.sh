#!/bin/bash
# measured.sh MSIM - what MSIM predicts for every row of $MSIM_SHARED/measured/*.csv, to four digits: the text of measured.csv.
# measured.sh MSIM --check - compare with measured.csv and show the difference (exit 1 when there is one); 77 without the tables.
set -euo pipefail
export LC_ALL=C
here=$(cd "$(dirname "$0")" && pwd)
tables=${MSIM_SHARED:-}/measured
[ -r "$tables/vtrain_single.csv" ] || { echo "skipped: MSIM_SHARED has no measured tables"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$1" compare "$tables"/*.csv --format csv -q -o "$work/rows.csv"
awk -F, -v OFS=, '
    NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; print "case", "outcome", "predicted_outcome", "predicted_s", "error_pct", "memory_gib" }
    NR > 1 {
        print $at["case"], $at["outcome"], $at["predicted_outcome"], sprintf("%.4g", $at["predicted_s"]),
              $at["error_pct"] == "" ? "" : sprintf("%.1f", $at["error_pct"]), sprintf("%.4g", $at["memory_gib"])
    }' "$work/rows.csv" > "$work/measured.csv"

if [ "${2-}" != --check ]; then
    cat "$work/measured.csv"
elif ! diff -U0 "$here/measured.csv" "$work/measured.csv"; then
    echo "The predictions have changed (- before, + now). If that is meant: tests/accuracy/accept.sh $1"
    exit 1
fi
