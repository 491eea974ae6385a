#!/bin/bash
# accept.sh [MSIM] - take what MSIM (build/msim) predicts now as the record; the commit then shows which numbers moved.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
"$here/predictions.sh" "${1:-$here/../../build/msim}" > "$here/predictions.csv.new"
mv "$here/predictions.csv.new" "$here/predictions.csv"
