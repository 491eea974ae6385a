# Who may see whom: between rooms, inside a room, and what stays private. check.sh reads this file.

# #include "..." names a file from the root, in a room that rooms.txt lets this file's room see. Tests may also name what lies beside them.
includes() {
    sources | while read -r file; do
        awk -v file="${file#./}" '
            function room_of(path,    r, best) {
                for (r in sees)
                    if (index(path, r "/") == 1 && length(r) > length(best)) best = r
                return best
            }
            # A folder of rooms stands for those listed above the room that names it.
            function may_see(from, to,    n, i, word) {
                n = split(sees[from], word, " ")
                for (i = 1; i <= n; i++)
                    if (word[i] == to || (index(to, word[i] "/") == 1 && line[to] < line[from])) return 1
                return 0
            }
            FNR == NR { if ($0 !~ /^#/ && NF) { sees[$1] = $0; line[$1] = FNR }; next }
            /^[ \t]*#[ \t]*include[ \t]*"/ {
                split($0, part, "\"")
                from = room_of(file); to = room_of(part[2])
                beside = file
                sub(/[^\/]*$/, part[2], beside)
                if (from == "tests" && system("test -f " beside) == 0)
                    next
                if (from == "")
                    print file ": is in no room of rooms.txt"
                else if (to == "" || system("test -f " part[2]) != 0)
                    print file ":" FNR ": \"" part[2] "\" is not a file named from the root"
                else if (!may_see(from, to))
                    print file ":" FNR ": " from " must not see " to " (" part[2] ")"
            }' "$rooms" "$file"
    done | report
}

# rooms.txt has no circle: a room sees only rooms above it. Every folder with sources is a room; one with more than 25 needs sub-rooms.
# Two folders may be larger: they have no natural division yet.
rooms() {
    {
        awk '
            /^#/ || !NF { next }
            {
                for (i = 2; i <= NF; i++) {
                    found = 0
                    for (r in above) if (r == $i || index(r, $i "/") == 1) found = 1
                    if (!found) print $1 ": sees " $i ", which is not listed above it"
                }
                if ($1 in above) print $1 ": is listed twice"
                above[$1] = 1
            }' "$rooms"
        sources | grep -v '^\./tests/' | sed -e 's|/[^/]*$||' -e 's|^\./||' | sort -u | while read -r folder; do
            grep -qE "^$folder( |\$)" "$rooms" || echo "$folder: has sources and no line of its own in rooms.txt"
            n=$(find "$folder" -maxdepth 1 -name '*.c' -o -maxdepth 1 -name '*.cu' | wc -l)
            case $folder in
            kernels | model/spec) ;;
            *) [ "$n" -le 25 ] || echo "$folder: has $n sources; at most 25, or sub-rooms" ;;
            esac
        done
    } | except rooms | report
}

# The command line parses, asks and prints. It computes nothing: no GSL, no random numbers, no internals of the simulator.
computes() {
    files -path './cli/*.[ch]' | xargs -r grep -HnE '^[ \t]*#[ \t]*include[ \t]*["<]' | sed 's|^\./||' | awk -F: '
        /["<]gsl\// { why = "GSL" }
        /"model\/base\/random\.h"/ { why = "random numbers" }
        /"sim\/.*(\/step_tables|\/step_costs|\/network_analytic|_internal)\.h"/ { why = "internals of the simulator" }
        why { print $1 ":" $2 ": cli computes nothing, but this includes " why; why = "" }' | except computes | report
}

# A private header is called STEM_internal.h. Only its own folder and tests of the same part (sim, runtime, cost) include it.
private() {
    {
        files -name '*_parts.h' -o -name '*_reading.h' -o -name '*_exporting.h' -o -name '*_builder.h' -o -name '*_question.h' \
            -o -name calibrating.h -o -name validating.h | sed -e 's|^\./||' -e 's|$|: a private header is called STEM_internal.h|'
        sources | xargs -r grep -HnE '^[ \t]*#[ \t]*include[ \t]*".*_internal\.h"' | sed 's|^\./||' | awk '
            {
                split($0, quoted, "\"")
                split($0, part, ":")
                from = part[1]; sub(/\/[^\/]*$/, "", from)
                to = quoted[2]; sub(/\/[^\/]*$/, "", to)
                part_of = to; sub(/^model\//, "", part_of); sub(/\/.*/, "", part_of)
                tests = index(from "/", "tests/" part_of "/") == 1
                if (from != to && !tests) print part[1] ":" part[2] ": " quoted[2] " is private to " to
            }'
    } | except private | report
}

# Object files of a room use each other without a circle: a reader can begin with the file that needs no other. Needs a build. A listed
# circle whose files a build leaves out (CUDA) still counts.
circles() {
    [ -n "$build" ] || skip "no build folder given"
    command -v nm >/dev/null || skip "no nm"
    objects=$(find "$build" -path "$build/tests" -prune -o -name '*.o' -print)
    [ -n "$objects" ] || skip "no object files"
    {
        echo "$objects" | xargs nm -A -g 2>/dev/null | sed "s|^$build/||" | awk -f "$here/checks/circles.awk"
        grep -v '^#' "tests/architecture/exceptions/circles.txt" 2>/dev/null | while read -r circle; do
            for file in $circle; do
                echo "$objects" | grep -qF "/$file.o" && continue
                [ -z "$(files -name "$file")" ] || echo "$circle: not all in this build"
                break
            done
        done
    } | sort | except circles | report
}
