# Circles of object files inside a room, from 'nm -A -g': a line FILE FILE...: ROOM for each. Tarjan's strongly connected components.
function visit(v,    i, n, next_one, list)
{
    order[v] = low[v] = ++visited
    stack[++height] = v
    on_stack[v] = 1
    n = split(uses[v], list, " ")
    for (i = 1; i <= n; i++) {
        next_one = list[i]
        if (!(next_one in order)) {
            visit(next_one)
            if (low[next_one] < low[v]) low[v] = low[next_one]
        } else if (on_stack[next_one] && order[next_one] < low[v])
            low[v] = order[next_one]
    }
    if (low[v] == order[v]) close_circle(v)
}
function close_circle(v,    n, member, i, j, name, line, swap)
{
    do {
        name = stack[height--]
        on_stack[name] = 0
        member[++n] = name
        sub(/.*\//, "", member[n])
    } while (name != v)
    if (n < 2) return
    for (i = 2; i <= n; i++)
        for (j = i; j > 1 && member[j - 1] > member[j]; j--) {
            swap = member[j]
            member[j] = member[j - 1]
            member[j - 1] = swap
        }
    for (i = 1; i <= n; i++) line = line (i > 1 ? " " : "") member[i]
    print line ": form a circle in " room[v]
}
# The source of an object file; objects of files that moved or went lie about in old builds.
function source_of(object)
{
    if (!(object in source)) {
        source[object] = object
        sub(/CMakeFiles\/[^\/]*\.dir\//, "", source[object])
        sub(/\.o$/, "", source[object])
        if (system("test -f " source[object]) != 0) source[object] = ""
    }
    return source[object]
}
{
    at = index($0, ":")
    file = source_of(substr($0, 1, at - 1))
    if (file == "") next
    symbol = $NF
    type = $(NF - 1)
    if (!(file in room)) {
        room[file] = file
        sub(/\/[^\/]*$/, "", room[file])
        files[++n_files] = file
    }
    if (type == "U" || type == ":" ) wants[file] = wants[file] " " symbol
    else defines[symbol, room[file]] = file
}
END {
    for (i = 1; i <= n_files; i++) {
        file = files[i]
        n = split(wants[file], list, " ")
        for (j = 1; j <= n; j++) {
            other = defines[list[j], room[file]]
            if (other != "" && other != file && !known[file, other]++) uses[file] = uses[file] " " other
        }
    }
    for (i = 1; i <= n_files; i++) if (!(files[i] in order)) visit(files[i])
}
