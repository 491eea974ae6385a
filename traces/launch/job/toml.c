/* toml.c - parses TOML. */
#include "traces/launch/job/toml.h"

#include <ctype.h>
#include <stddef.h>
#include <string.h>

#define BYTE_ORDER_MARK "\xef\xbb\xbf" /* before the text, by editors of Windows */

enum { KEY_PARTS_MAX = YAML_DEPTH_MAX };

/* What a mapping is, beside its keys. Kept in `alias`, which only readers of YAML use; cleared in the end. */
static const char TABLE[] = "table", IMPLIED[] = "implied", CLOSED[] = "closed", TABLES[] = "tables";

struct reader {
    const char *name, *at, *end, *line_start;
    int line;
    int keys; /* so far */
    struct arena *arena;
    struct diags *diags;
    bool failed;
};

static struct place here(const struct reader *r)
{
    return (struct place){r->name, r->line, (int)(r->at - r->line_start) + 1};
}

/* Only the first mistake is reported: later ones may follow from it. */
static void fail(struct reader *r, struct place at, const char *what)
{
    if (!r->failed)
        diag_error(r->diags, at, "%s", what);
    r->failed = true;
}

static char peek(const struct reader *r)
{
    return r->at < r->end ? *r->at : '\0';
}

static bool begins(const struct reader *r, const char *text)
{
    size_t n = strlen(text);
    return (size_t)(r->end - r->at) >= n && memcmp(r->at, text, n) == 0;
}

static void skip_blanks(struct reader *r)
{
    while (r->at < r->end && (*r->at == ' ' || *r->at == '\t'))
        r->at++;
}

static void next_line(struct reader *r)
{
    r->at++;
    r->line++;
    r->line_start = r->at;
}

/* A comment and the line's end. */
static void skip_comment(struct reader *r)
{
    skip_blanks(r);
    if (peek(r) == '#')
        while (r->at < r->end && *r->at != '\n')
            r->at++;
    if (peek(r) == '\r' && r->at + 1 < r->end && r->at[1] == '\n')
        r->at++;
}

static void skip_lines(struct reader *r)
{
    for (skip_comment(r); peek(r) == '\n'; skip_comment(r))
        next_line(r);
}

static void end_line(struct reader *r)
{
    skip_comment(r);
    if (r->at < r->end && *r->at != '\n')
        fail(r, here(r), "this stands behind the value of its line; one key a line");
}

/* --- the tree --- */

static struct yaml_node *node_new(struct reader *r, enum yaml_kind kind, struct place at)
{
    struct yaml_node *node = arena_new(r->arena, 1, sizeof *node);
    *node = (struct yaml_node){.kind = kind, .at = at, .key_at = at};
    return node;
}

static struct yaml_node *find(const struct yaml_node *parent, const char *key)
{
    return (struct yaml_node *)yaml_find(parent, key);
}

static bool may_add(struct reader *r, struct place at)
{
    if (r->keys++ < YAML_KEYS_MAX)
        return true;
    fail(r, at, "too many keys for a configuration");
    return false;
}

struct key {
    const char *parts[KEY_PARTS_MAX];
    int n;
    struct place at;
};

/* The mapping in which a key of this one's name is, made where it is not there. Of an array of tables the last one. */
static struct yaml_node *descend(struct reader *r, struct yaml_node *parent, const char *part, struct place at, const char *made)
{
    struct yaml_node *child = find(parent, part);
    if (!child) {
        if (!may_add(r, at))
            return NULL;
        child = node_new(r, YAML_MAPPING, at);
        child->key = part;
        child->alias = made;
        yaml_append(parent, NULL, child);
        return child;
    }
    if (child->kind == YAML_SEQUENCE && child->alias == TABLES) {
        child = child->first;
        while (child->next)
            child = child->next;
    }
    if (child->kind != YAML_MAPPING || child->alias == CLOSED) {
        fail(r, at, "this key has a value already, and is no table");
        return NULL;
    }
    return child;
}

/* --- strings --- */

static bool is_hex(const char *p, int n)
{
    for (int i = 0; i < n; i++)
        if (!isxdigit((unsigned char)p[i]))
            return false;
    return true;
}

static size_t put_utf8(char *to, unsigned long code)
{
    if (code < 0x80) {
        to[0] = (char)code;
        return 1;
    }
    int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    static const unsigned char lead[] = {0, 0xc0, 0xe0, 0xf0};
    to[0] = (char)(lead[more] | code >> (6 * more));
    for (int i = 1; i <= more; i++)
        to[i] = (char)(0x80 | ((code >> (6 * (more - i))) & 0x3f));
    return (size_t)more + 1;
}

/* Behind a backslash. Returns how many bytes were put; they are never more than were read. */
static size_t read_escape(struct reader *r, char *to)
{
    static const char plain[] = "btnfr\"\\", meant[] = "\b\t\n\f\r\"\\";
    char c = peek(r);
    const char *known = c ? strchr(plain, c) : NULL;
    int digits = c == 'u' ? 4 : c == 'U' ? 8 : 0;
    if (known) {
        r->at++;
        *to = meant[known - plain];
        return 1;
    }
    if (digits && r->end - r->at > digits && is_hex(r->at + 1, digits)) {
        unsigned long code = 0;
        for (int i = 1; i <= digits; i++) {
            int digit = tolower((unsigned char)r->at[i]);
            code = code * 16 + (unsigned long)(isdigit(digit) ? digit - '0' : digit - 'a' + 10);
        }
        r->at += digits + 1;
        if (code > 0 && code < 0x110000 && (code < 0xd800 || code > 0xdfff))
            return put_utf8(to, code);
    }
    fail(r, here(r), "no such character behind a backslash; known are b t n f r \" \\ uXXXX UXXXXXXXX");
    return 0;
}

/* A backslash at the end of a line of a long string joins it with what follows. */
static bool join_lines(struct reader *r)
{
    const char *p = r->at;
    while (p < r->end && (*p == ' ' || *p == '\t' || *p == '\r'))
        p++;
    if (p == r->end || *p != '\n')
        return false;
    while (r->at < r->end && isspace((unsigned char)*r->at))
        if (*r->at == '\n')
            next_line(r);
        else
            r->at++;
    return true;
}

/* Room for the text up to the closing quotes, at its largest. */
static size_t string_room(const struct reader *r, const char *closing, bool escapes)
{
    enum { QUOTES_IN_FRONT = 2 };
    size_t n = strlen(closing);
    const char *p = r->at;
    while (r->end - p >= (ptrdiff_t)n && memcmp(p, closing, n) != 0)
        p += escapes && *p == '\\' ? 2 : 1;
    return (size_t)((p < r->end ? p : r->end) - r->at) + QUOTES_IN_FRONT + 1;
}

/* A string whose opening quotes are at `at`; `long_` of three quotes, over lines. */
static const char *read_string(struct reader *r, bool long_)
{
    struct place at = here(r);
    char quote = *r->at;
    r->at += long_ ? 3 : 1;
    if (long_ && begins(r, "\r\n"))
        r->at++;
    if (long_ && peek(r) == '\n')
        next_line(r);
    const char closing[] = {quote, long_ ? quote : '\0', quote, '\0'};
    char *text = arena_new(r->arena, string_room(r, closing, quote == '"'), 1), *to = text;
    while (r->at < r->end && !r->failed) {
        char c = *r->at;
        if (begins(r, closing)) {
            r->at += long_ ? 3 : 1;
            for (int more = 0; long_ && more < 2 && peek(r) == quote; more++) { /* quotes in front of the closing ones */
                *to++ = quote;
                r->at++;
            }
            *to = '\0';
            return text;
        }
        if (c == '\0' || (c == '\n' && !long_))
            break;
        if (c == '\n') {
            *to++ = c;
            next_line(r);
        } else if (c == '\\' && quote == '"') {
            r->at++;
            if (!long_ || !join_lines(r))
                to += read_escape(r, to);
        } else {
            *to++ = c;
            r->at++;
        }
    }
    fail(r, at, "this string never ends");
    return NULL;
}

/* --- keys --- */

static bool is_bare(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '-';
}

static const char *read_part(struct reader *r)
{
    if (peek(r) == '"' || peek(r) == '\'')
        return read_string(r, false);
    const char *start = r->at;
    while (r->at < r->end && is_bare(*r->at))
        r->at++;
    size_t n = (size_t)(r->at - start);
    if (n == 0) {
        fail(r, here(r), "a key is wanted here, such as seq_len = 8192, or a table's name in brackets");
        return NULL;
    }
    char *part = arena_new(r->arena, n + 1, 1);
    memcpy(part, start, n);
    return part;
}

/* a."b".c */
static bool read_key(struct reader *r, struct key *key)
{
    *key = (struct key){.at = here(r)};
    for (;;) {
        if (key->n == KEY_PARTS_MAX) {
            fail(r, here(r), "a key of too many parts");
            return false;
        }
        skip_blanks(r);
        const char *part = read_part(r);
        if (!part)
            return false;
        key->parts[key->n++] = part;
        skip_blanks(r);
        if (peek(r) != '.')
            return true;
        r->at++;
    }
}

/* --- values --- */

static struct yaml_node *read_value(struct reader *r, int depth);

/* key = value, in a table. */
static void read_pair(struct reader *r, struct yaml_node *table, int depth)
{
    struct key key;
    if (!read_key(r, &key))
        return;
    if (peek(r) != '=') {
        fail(r, here(r), "an equals sign is wanted behind the key");
        return;
    }
    r->at++;
    skip_blanks(r);
    for (int i = 0; i + 1 < key.n && table; i++)
        table = descend(r, table, key.parts[i], key.at, TABLE);
    const char *last = key.parts[key.n - 1];
    if (table && find(table, last))
        fail(r, key.at, "this key is said twice");
    struct yaml_node *value = table && !r->failed && may_add(r, key.at) ? read_value(r, depth + key.n) : NULL;
    if (!value)
        return;
    value->key = last;
    value->key_at = key.at;
    yaml_append(table, NULL, value);
}

static struct yaml_node *read_array(struct reader *r, int depth)
{
    struct yaml_node *array = node_new(r, YAML_SEQUENCE, here(r)), **last = &array->first;
    struct place at = here(r);
    r->at++;
    for (skip_lines(r); !r->failed && r->at < r->end; skip_lines(r)) {
        if (peek(r) == ']') {
            r->at++;
            return array;
        }
        struct yaml_node *item = may_add(r, here(r)) ? read_value(r, depth) : NULL;
        if (!item)
            return NULL;
        *last = item;
        last = &item->next;
        skip_lines(r);
        if (peek(r) == ',')
            r->at++;
        else if (peek(r) != ']' && r->at < r->end)
            fail(r, here(r), "a comma or the array's end is wanted here");
    }
    fail(r, at, "this array never ends");
    return NULL;
}

static struct yaml_node *read_inline(struct reader *r, int depth)
{
    struct yaml_node *table = node_new(r, YAML_MAPPING, here(r));
    struct place at = here(r);
    r->at++;
    skip_blanks(r);
    bool more = peek(r) != '}';
    while (more && !r->failed) {
        skip_blanks(r);
        read_pair(r, table, depth);
        skip_blanks(r);
        more = peek(r) == ',';
        r->at += more;
    }
    if (peek(r) != '}' || r->failed) {
        fail(r, at, "this inline table never ends; it stands in one line");
        return NULL;
    }
    r->at++;
    table->alias = CLOSED;
    return table;
}

/* Numbers, truths, dates: what begins and goes on like one. */
static bool is_plain(const char *text, size_t n)
{
    static const char *const words[] = {"true", "false", "inf", "nan", "+inf", "-inf", "+nan", "-nan"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strlen(words[i]) == n && memcmp(text, words[i], n) == 0)
            return true;
    size_t sign = n > 0 && (*text == '+' || *text == '-');
    bool based = n > 2 && *text == '0' && strchr("xob", text[1]);
    const char *letters = !based ? "0123456789_.eE+-:TtZz" : text[1] == 'x' ? "0123456789abcdefABCDEF_" : "01234567_";
    if (n == sign || !isdigit((unsigned char)text[sign]))
        return false;
    for (size_t i = based ? 2 : sign; i < n; i++)
        if (!text[i] || !strchr(letters, text[i]))
            return false;
    return true;
}

static struct yaml_node *read_plain(struct reader *r)
{
    struct yaml_node *node = node_new(r, YAML_SCALAR, here(r));
    const char *start = r->at;
    while (r->at < r->end && !strchr(" \t\r\n,]}#=", *r->at))
        r->at++;
    size_t n = (size_t)(r->at - start);
    if (!is_plain(start, n)) {
        fail(r, node->at, "no value: a number, true or false, a text in quotes, an array or a table is wanted here");
        return NULL;
    }
    char *text = arena_new(r->arena, n + 1, 1);
    memcpy(text, start, n);
    node->text = text;
    return node;
}

static struct yaml_node *read_value(struct reader *r, int depth)
{
    char c = peek(r);
    if (depth > YAML_DEPTH_MAX) {
        fail(r, here(r), "too deep for a configuration");
        return NULL;
    }
    if (c == '[')
        return read_array(r, depth + 1);
    if (c == '{')
        return read_inline(r, depth + 1);
    if (c != '"' && c != '\'')
        return read_plain(r);
    struct yaml_node *node = node_new(r, YAML_SCALAR, here(r));
    node->quoted = true;
    node->text = read_string(r, begins(r, "\"\"\"") || begins(r, "'''"));
    return node->text ? node : NULL;
}

/* --- tables --- */

/* [a.b]: once at the most, though others may have named a table inside before. */
static struct yaml_node *open_table(struct reader *r, struct yaml_node *root, const struct key *key)
{
    struct yaml_node *table = root;
    for (int i = 0; i < key->n && table; i++) {
        struct yaml_node *inside = find(table, key->parts[i]);
        bool last = i + 1 == key->n, again = last && inside && (inside->kind != YAML_MAPPING || inside->alias != IMPLIED);
        if (again) {
            fail(r, key->at, "this table is said twice");
            return NULL;
        }
        table = descend(r, table, key->parts[i], key->at, IMPLIED);
    }
    if (table)
        table->alias = TABLE;
    return table;
}

/* [[a.b]]: one more of an array of tables. */
static struct yaml_node *open_item(struct reader *r, struct yaml_node *root, const struct key *key)
{
    struct yaml_node *parent = root;
    for (int i = 0; i + 1 < key->n && parent; i++)
        parent = descend(r, parent, key->parts[i], key->at, IMPLIED);
    const char *last = key->parts[key->n - 1];
    struct yaml_node *list = parent ? find(parent, last) : NULL;
    if (!parent || !may_add(r, key->at))
        return NULL;
    if (list && list->alias != TABLES) {
        fail(r, key->at, "this key has a value already, and is no array of tables");
        return NULL;
    }
    if (!list) {
        list = node_new(r, YAML_SEQUENCE, key->at);
        list->key = last;
        list->alias = TABLES;
        yaml_append(parent, NULL, list);
    }
    struct yaml_node *item = node_new(r, YAML_MAPPING, key->at);
    item->alias = TABLE;
    yaml_append(list, NULL, item);
    return item;
}

static struct yaml_node *read_heading(struct reader *r, struct yaml_node *root)
{
    struct key key;
    bool item = begins(r, "[[");
    r->at += item ? 2 : 1;
    if (!read_key(r, &key))
        return NULL;
    if (!begins(r, item ? "]]" : "]")) {
        fail(r, here(r), "a table's name ends with its bracket");
        return NULL;
    }
    r->at += item ? 2 : 1;
    return item ? open_item(r, root, &key) : open_table(r, root, &key);
}

/* Takes the marks out again. No deeper than values may be; tables as their keys have parts. */
static void clear_marks(struct yaml_node *node)
{
    node->alias = NULL;
    for (struct yaml_node *child = node->first; child; child = child->next)
        clear_marks(child);
}

struct yaml_node *toml_parse(const char *name, const char *bytes, size_t n, struct arena *arena, struct diags *diags)
{
    struct reader r = {
        .name = name, .at = bytes, .end = bytes + n, .line_start = bytes, .line = 1, .arena = arena, .diags = diags};
    struct yaml_node *root = node_new(&r, YAML_MAPPING, here(&r)), *table = root;
    if (n > YAML_BYTES_MAX) {
        diag_error(diags, (struct place){.file = name}, "too long for a configuration: %zu bytes", n);
        return NULL;
    }
    if (begins(&r, BYTE_ORDER_MARK))
        r.line_start = r.at += strlen(BYTE_ORDER_MARK);
    for (skip_lines(&r); r.at < r.end && !r.failed; skip_lines(&r)) {
        if (*r.at == '[')
            table = read_heading(&r, root);
        else
            read_pair(&r, table, 0);
        if (!r.failed)
            end_line(&r);
    }
    clear_marks(root);
    return r.failed ? NULL : root;
}

bool toml_begins(const char *bytes, size_t n)
{
    const char *p = bytes, *end = bytes + n;
    while (p < end && (isspace((unsigned char)*p) || *p == '#')) {
        const char *stop = *p == '#' ? memchr(p, '\n', (size_t)(end - p)) : p;
        p = stop ? stop + 1 : end;
    }
    bool heading = p < end && *p == '[';
    const char *name = p += heading + (heading && p + 1 < end && p[1] == '[');
    while (p < end && (is_bare(*p) || (heading && *p == '.')))
        p++;
    if (p == name || p == end)
        return false;
    return heading ? *p == ']' : end - p > 2 && memcmp(p, " = ", 3) == 0;
}
