# C source without comments, and with empty string and character literals; line numbers are kept.
{
    line = $0
    out = ""
    while (line != "") {
        if (comment) {
            end = index(line, "*/")
            if (!end) break
            line = substr(line, end + 2)
            comment = 0
        } else if (match(line, /^"([^"\\]|\\.)*"/) || match(line, /^'([^'\\]|\\.)*'/)) {
            out = out "\"\""
            line = substr(line, RLENGTH + 1)
        } else if (substr(line, 1, 2) == "//") {
            break
        } else if (substr(line, 1, 2) == "/*") {
            comment = 1
            line = substr(line, 3)
        } else {
            out = out substr(line, 1, 1)
            line = substr(line, 2)
        }
    }
    print out
}
