#!/bin/bash
# kernels.sh MSIM - how well the models of single kernels and of collectives inside a node describe the measured ones in
# $MSIM_SHARED/measured/kernels: median and 90th percentile of the error of the rows fitted and of those held out, per GPU and kind.
# kernels.sh MSIM --check - compare with kernels.csv: no figure may be more than 0.2 points worse (exit 1), 77 without the tables.
set -euo pipefail
export LC_ALL=C
here=$(cd "$(dirname "$0")" && pwd)
tables=${MSIM_SHARED:-}/measured/kernels
[ -r "$tables/gemm.csv.gz" ] || { echo "skipped: MSIM_SHARED has no measured/kernels"; exit 77; }

scores() {
    echo gpu,rows,part,n,median_pct,p90_pct,bias_pct
    for gpu in a100-80g-sxm h100-sxm h200-sxm b200 gb200 b300; do
        "$1" calibrate "$tables"/*.csv.gz --base "$gpu" --with-cast --with-cache -q 2> /dev/null |
            sed -nE "s/^([a-z].*[^ ]) +(fitted|held out) +([0-9]+) +[0-9.]+ +([0-9.]+) +[0-9.]+ +([0-9.]+) +[-+0-9.]+ +([-+0-9.]+)\$/$gpu,\\1,\\2,\\3,\\4,\\5,\\6/p"
    done | sed 's/ *,/,/g'
}

if [ "${2-}" != --check ]; then
    scores "$1"
    exit
fi
scores "$1" | awk -F, '
    NR == FNR { median[$1, $2, $3] = $5; p90[$1, $2, $3] = $6; n++; next }
    FNR > 1 {
        seen++
        if (!(($1, $2, $3) in median) || $5 > median[$1, $2, $3] + 0.2 || $6 > p90[$1, $2, $3] + 0.2) {
            print "worse than the record: " $0
            worse = 1
        }
    }
    END { if (seen != n - 1) { print n - 1 " scores in the record, " seen + 0 " now"; worse = 1 } exit worse }
' "$here/kernels.csv" -
