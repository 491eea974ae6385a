# A result without what may differ between two versions of msim: the version, wall times, comments, and the sentences under
# assumptions, notes, detail, source, origins (where an imported value is from), why (a message) and (in CSV) meaning. KIND is json,
# csv, lines (YAML, scripts), figure (for gnuplot: only its data) or measured (JSON of a real run: only its losses and counts).
# Options of a command are echoed in the order of its help, which may change; here they are sorted.
function cut_csv(line,    n, i, c, field, quoted, out)
{
    out = ""
    field = ""
    n = 1
    for (i = 1; i <= length(line) + 1; i++) {
        c = substr(line, i, 1)
        if (c == "\"") quoted = !quoted
        if ((c == "," && !quoted) || i > length(line)) {
            if (FNR == 1 || !seen_header) if (field ~ /^"?(assumptions|notes|detail|source|meaning|seconds|[a-z]+_seconds)"?$/) free[n] = 1
            out = out (n > 1 ? "," : "") (free[n] && seen_header ? "" : field)
            field = ""
            n++
        } else
            field = field c
    }
    return out
}
function print_sorted(    i, j, swap)
{
    for (i = 2; i <= n_options; i++)
        for (j = i; j > 1 && option[j - 1] > option[j]; j--) {
            swap = option[j]
            option[j] = option[j - 1]
            option[j - 1] = swap
        }
    for (i = 1; i <= n_options; i++) print option[i]
    n_options = 0
}
KIND == "csv" && !seen_header && /^[a-z_0-9,"]+$/ {
    print cut_csv($0)
    seen_header = 1
    next
}
KIND == "csv" && /^source,/ {
    print "source,"
    next
}
KIND == "csv" {
    print length(free) && seen_header ? cut_csv($0) : $0
    next
}
KIND == "lines" {
    if ($0 ~ /^[ \t]*(#|\/\/)/) next
    sub(/[ \t]+#[ \t].*$/, "")
    if ($0 ~ /^ *"?(source|notes|detail|assumptions)"?:/) sub(/:.*$/, ":")
    print
    next
}
KIND == "figure" {
    if ($0 == "EOD") data = 0
    if (data) print
    if ($0 ~ /<< *EOD$/) data = 1
    next
}
KIND == "measured" {
    if ($0 ~ /"(loss|gradient_norm|max_rel_error|gradients|operations|rank|held|worst|allowed|memory_bytes)": /) print
    next
}
# JSON as msim writes it: a key on each line.
depth { # inside a list or an object of sentences
    if ($0 ~ /[\[{]$/) depth++
    else if ($0 ~ /^ *[\]}],?$/) depth--
    next
}
options && /^  }/ {
    print_sorted()
    options = 0
}
options && /^    "/ {
    sub(/,$/, "")
    option[++n_options] = $0
    next
}
options { # a list goes on
    sub(/,$/, "")
    option[n_options] = option[n_options] "\n" $0
    next
}
/^  "options": {$/ { options = 1 }
/^ *"msim": "/ || /^ *"([a-z]+_)?seconds": / { next }
/^ *"(assumptions|notes|detail|source|origins)": [\[{]$/ {
    print
    depth = 1
    next
}
/^ *"(assumptions|notes|detail|source|why)": / {
    sub(/:.*$/, ":")
    print
    next
}
{ print }
