# Rules about pages, data and history. check.sh reads this file.

# Numbers name their origin: every catalog entry has a source.
catalog() {
    [ -d model/spec/catalog ] || skip "no catalog in this tree"
    find model/spec/catalog -name '*.yaml' | sort | while read -r file; do
        grep -qE '^source: *[^ ]' "$file" || echo "$file: no source"
    done | report
    find traces/launch/frameworks -name '*.yaml' 2>/dev/null | sort | while read -r file; do
        grep -qE '^source: *[^ ]' "$file" || echo "$file: no source"
        grep -qE '^checked: *[^ ]' "$file" || echo "$file: does not say whether it was checked"
    done | report
}

# Nothing in the tree depends on the machine that it was written on.
paths() {
    files -name '*.[ch]' -o -name '*.md' -o -name '*.txt' -o -name '*.sh' -o -name '*.yaml' -o -name '*.json' -o -name setup |
        xargs grep -nE '(^|[^A-Za-z0-9_.])/(work|home|root)/[A-Za-z]' | report
}

pages() {
    files -name '*.md'
}

# Running text is at most 120 columns wide, a cell of a table at most 200 characters. README.md is the first screen: 150 lines of at
# most 100 columns. Code blocks and lines that are one long word are left alone.
prose() {
    pages | while read -r file; do
        LC_ALL=C awk -v file="${file#./}" '
            BEGIN { first = file == "README.md"; most = first ? 100 : 120 }
            { text = $0; gsub(/[\200-\277]/, "", text) }
            /^ *```/ { fenced = !fenced }
            fenced || (/^    / && !first) || text ~ /^[-*0-9.> ]*[^ ]+$/ { next }
            /^ *\|/ && !first {
                n = split(text, cell, "|")
                for (i = 1; i <= n; i++)
                    if (length(cell[i]) > 200) print file ":" FNR ": a cell of " length(cell[i]) " characters; at most 200"
                next
            }
            length(text) > most { print file ":" FNR ": " length(text) " columns; at most " most }
            END { if (first && FNR > 150) print file ": " FNR " lines; at most 150" }' "$file"
    done | except prose | report
}

# Plain English: no line of a page or of a source has a phrase of phrases.txt.
phrases() {
    list=$here/phrases.txt
    patterns=$(mktemp)
    trap 'rm -f "$patterns"' EXIT
    sed -e '/^#/d' -e '/^$/d' -e 's/ *\t.*//' "$list" >"$patterns"
    { sources && pages; } | grep -v -e '^\./tests/fuzz/corpus/' | xargs -r grep -lEf "$patterns" | while read -r file; do
        awk -v file="${file#./}" '
            FNR == NR {
                if ($0 !~ /^#/ && split($0, column, / *\t+ */) > 1) { pattern[++n] = column[1]; better[n] = column[2] }
                next
            }
            {
                for (i = 1; i <= n; i++)
                    if (match($0, pattern[i]))
                        print file ":" FNR ": \"" substr($0, RSTART, RLENGTH) "\"; better: " better[i]
            }' "$list" "$file"
    done | except phrases | report
}

# Links from page to page lead to files that exist. So do the paths that pages, scripts and sources name.
links() {
    {
        pages | while read -r file; do
            awk '
                /^ *```/ { fenced = !fenced }
                fenced || /^    / { next }
                {
                    while (match($0, /\]\([^() ]+\)/)) {
                        print FNR " " substr($0, RSTART + 2, RLENGTH - 3)
                        $0 = substr($0, RSTART + RLENGTH)
                    }
                }' "$file" | while read -r line target; do
                case $target in *://* | mailto:* | '#'*) continue ;; esac
                [ -e "$(dirname "$file")/${target%%#*}" ] || echo "${file#./}:$line: no file $target"
            done
        done
        {
            pages
            sources | grep -v '^\./tests/'
            files -name '*.sh' -o -name CMakeLists.txt -o -name setup | grep -v '/selftest\.sh$'
            find .ci -type f 2>/dev/null || :
        } | xargs -r grep -HnoE '[A-Za-z0-9_./-]*[A-Za-z0-9_-]/[A-Za-z0-9_./-]*\.(c|h|cu|cuh|inc|md|sh|awk|gp|yaml|txt)([^A-Za-z0-9_*{<]|$)' |
            sed -e 's|^\./||' -e 's|[^A-Za-z0-9_]$||' | awk -F: '
                {
                    path = $3
                    sub(/^.*\.\.\//, "", path)
                    beside = $1
                    sub(/[^\/]*$/, path, beside)
                    if (path ~ /^(cli|kernels|model|plots|runtime|sim|tests|traces)\// && !known[path]++ && system("test -e " path " -o -e " beside) != 0)
                        print $1 ":" $2 ": no file " path
                }'
    } | report
}

# A commit's subject is at most 72 characters and says where: "folder: what changed". exceptions/commits.txt names the
# last commit that does not count.
commits() {
    since=$(grep -v '^#' tests/architecture/exceptions/commits.txt 2>/dev/null) || skip "no commit to begin at"
    git rev-parse -q --verify "$since^{commit}" >/dev/null 2>&1 || skip "no history"
    git log --no-merges --format='%h %s' "$since..HEAD" | awk '
        {
            id = $1
            sub(/^[^ ]* /, "")
            if (length($0) > 72) print id ": a subject of " length($0) " characters; at most 72: " $0
            if ($0 !~ /^[A-Za-z0-9_.{}*][A-Za-z0-9_.\/{}*, -]*: [^ ]/) print id ": a subject has the form \"folder: what changed\": " $0
        }' | report
}
