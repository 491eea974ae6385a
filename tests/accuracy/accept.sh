#!/bin/bash
# accept.sh [MSIM] - take what MSIM (build/msim) predicts now as the record; the commit then shows which numbers moved. The rows of
# $MSIM_SHARED (../shared beside the project) where they are.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
msim=${1:-$here/../../build/msim}
export MSIM_SHARED=${MSIM_SHARED:-$here/../../../shared}
for record in predictions measured; do
    status=0
    "$here/$record.sh" "$msim" > "$here/$record.csv.new" || status=$?
    if [ $status = 0 ]; then
        mv "$here/$record.csv.new" "$here/$record.csv"
    else
        rm "$here/$record.csv.new"
        [ $status = 77 ] || exit $status
    fi
done
