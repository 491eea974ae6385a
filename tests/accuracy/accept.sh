#!/bin/bash
# accept.sh [MSIM] - take what MSIM (build/msim) predicts now as the record; the commit then shows which numbers moved. The rows of
# $MSIM_SHARED (../shared beside the project) where they are.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
msim=${1:-$here/../../build/msim}
export MSIM_SHARED=${MSIM_SHARED:-$here/../../../shared}
take() { # script file
    local status=0
    "$here/$1.sh" "$msim" > "$2.new" || status=$?
    if [ $status = 0 ]; then
        mv "$2.new" "$2"
    else
        rm "$2.new"
        [ $status = 77 ] || exit $status
    fi
}
take predictions "$here/predictions.csv"
take measured "$here/measured.csv"
take track_record "$here/../../model/cost/step/track_record.inc"
