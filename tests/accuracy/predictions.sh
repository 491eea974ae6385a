#!/bin/bash
# predictions.sh MSIM - what MSIM predicts for every row of traces/published/*.csv, to four digits: the text of predictions.csv.
# predictions.sh MSIM --check - compare with predictions.csv and show the difference (exit 1 when there is one).
set -euo pipefail
export LC_ALL=C
here=$(cd "$(dirname "$0")" && pwd)
msim=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cd "$here/../.."
"$msim" compare traces/published/*.csv --format csv -q -o "$work/rows.csv"
awk -F, -v OFS=, '
    NR > 1 {
        sub(".*/", "", $2)
        for (i = 3; i <= NF; i++)
            if ($i ~ /^-?[0-9]+[.][0-9]*(e[-+]?[0-9]+)?$/)
                $i = sprintf("%.4g", $i)
    }
    { print }' "$work/rows.csv" > "$work/predictions.csv"

if [ "${2-}" != --check ]; then
    cat "$work/predictions.csv"
elif ! diff -U0 "$here/predictions.csv" "$work/predictions.csv"; then
    echo "The predictions have changed (- before, + now). If that is meant: tests/accuracy/accept.sh $1"
    exit 1
fi
