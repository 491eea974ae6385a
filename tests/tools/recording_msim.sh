#!/bin/sh
# recording_msim.sh ARGUMENT... - stands in for msim while same_results.sh replays a transcript. It runs $RECORD_BINARY and keeps each
# result below $RECORD_TO, as the command asks for it or, where it would be text, as JSON and as CSV.
set -u
binary=$RECORD_BINARY
command=${1:-}
format=
output=
export=
take=
for argument; do
    [ "$take" != format ] || format=$argument
    [ "$take" != output ] || output=$argument
    take=
    case $argument in
    --format) take=format ;;
    --format=*) format=${argument#*=} ;;
    -o | --output) take=output ;;
    --output=*) output=${argument#*=} ;;
    -o?*) output=${argument#-o} ;;
    --export | --export=* | --script) export=yes ;;
    -h | --help | --usage | --version) command=help ;;
    esac
done
case $output in -) output= ;; /dev/*) exec "$binary" "$@" ;; esac

case ,$RECORD_ONLY, in
,all, | *,"$command",*) ;;
*) exec "$binary" "$@" ;;
esac
case $command in
plan | step | run | compare | fabric | faults | catalog | calibrate | import | validate | plot) ;;
*) exec "$binary" "$@" ;;
esac

# A folder of this run's own: the line of the transcript, the arguments, and how often they came before.
n=0
base=$RECORD_TO/$RECORD_LINE-$command-$(printf '%s ' "$@" | cksum | cut -d' ' -f1)
while ! mkdir "$base-$n" 2>/dev/null; do
    n=$((n + 1))
    [ $n -lt 1000 ] || exit 99
done
here=$base-$n

keep() { # keep STATUS KIND FILE NAME: a result without sentences
    {
        echo "msim $arguments"
        echo "status $1"
        awk -v KIND="$2" -f "$RECORD_TOOLS/without_sentences.awk" "$3"
    } >"$here/$4"
}

# Results of real runs have times; figures are kept as data, without the words in them.
kind_of() { # kind_of FILE
    case $command:$(head -c 1 "$1") in
    validate:*) echo measured ;;
    plot:*) echo figure ;;
    *:'{' | *:'[') echo json ;;
    *) [ "${format:-text}" = csv ] && echo csv || echo lines ;;
    esac
}

# One run of msim. Its messages pass through a file: nobody may close the pipe before it has ended.
run() { # run ARGUMENT...
    status=0
    "$binary" "$@" <"$here/.in" >"$here/.out" 2>"$here/.err" || status=$?
}

# As asked: the result goes where it would go, and is kept.
as_asked() {
    run "$@"
    cat "$here/.err" >&2
    cat "$here/.out"
    [ -z "$output" ] || [ ! -f "$output" ] || cp "$output" "$here/.out"
    case $output in
    *.png | *.svg | *.pdf | *.jpg | *.gz) : >"$here/.out" ;;
    esac
    keep $status "$(kind_of "$here/.out")" "$here/.out" result
}

# Instead of text: as JSON, and as CSV unless that fails (5: a check did, with a result), is nothing but times, or costs much.
as_data() {
    run "$@" --format json
    cat "$here/.err" >&2
    keep $status "$(kind_of "${output:-$here/.out}")" "${output:-$here/.out}" json
    first=$status
    case $command:$status in
    calibrate:* | validate:* | *:[!05]*) return ;;
    esac
    run "$@" --format csv
    keep $status csv "${output:-$here/.out}" csv
    status=$first
}

# Two runs may have to read one standard input.
for argument; do
    [ "$argument" != - ] || [ -f "$here/.in" ] || cat >"$here/.in"
done
[ -f "$here/.in" ] || : >"$here/.in"

arguments=$*
case $command${2:+-$2}:${format:-text}:$export:$output in
plot*)
    as_asked "$@"
    run "$@" --script -o -
    keep $status figure "$here/.out" script
    ;;
import*)
    as_asked "$@"
    first=$status
    run "$@" --format csv -o -
    keep $status csv "$here/.out" csv
    status=$first
    ;;
*:json:* | *:csv:* | *:yes:* | calibrate*:text::?* | faults-generate:* | faults-convert:* | catalog-template:*) as_asked "$@" ;;
*) as_data "$@" ;;
esac
rm -f "$here/.out" "$here/.in" "$here/.err"
exit $status
