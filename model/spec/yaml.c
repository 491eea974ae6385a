#include "model/spec/yaml.h"

#include <libfyaml.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/file.h"
#include "model/base/utf8.h"

/* A tree being built from events; `open` holds the containers not yet closed. */
struct builder {
    struct arena *arena;
    struct diags *diags;
    const char *name, *bytes;
    size_t n_bytes;
    struct yaml_node *root;
    struct {
        struct yaml_node *node, *last;
        const char *key; /* read, its value not yet */
        struct place key_at;
        bool has_key;
        int n_keys;
    } open[YAML_DEPTH_MAX];
    int depth;
    int documents;
};

static struct place place_of(const struct builder *b, struct fy_event *event)
{
    const struct fy_mark *mark = fy_event_start_mark(event);
    if (!mark)
        return (struct place){.file = b->name};
    return (struct place){.file = b->name, .line = mark->line + 1, .column = mark->column + 1};
}

static struct place before_mark(struct place at)
{
    at.column -= at.column > 1;
    return at;
}

/* A scalar's mark stands behind its opening quote; the user looks for the quote. */
static struct place scalar_place(const struct builder *b, struct fy_event *event, enum fy_scalar_style style)
{
    struct place at = place_of(b, event);
    return style == FYSS_SINGLE_QUOTED || style == FYSS_DOUBLE_QUOTED ? before_mark(at) : at;
}

static void attach(struct builder *b, struct yaml_node *node)
{
    if (b->depth == 0) {
        b->root = node;
        return;
    }
    int top = b->depth - 1;
    if (b->open[top].has_key) {
        node->key = b->open[top].key;
        node->key_at = b->open[top].key_at;
        b->open[top].has_key = false;
        if (node->at.line == 0)
            node->at = node->key_at;
    }
    if (b->open[top].last)
        b->open[top].last->next = node;
    else
        b->open[top].node->first = node;
    b->open[top].last = node;
}

static bool awaits_key(const struct builder *b)
{
    return b->depth > 0 && b->open[b->depth - 1].node->kind == YAML_MAPPING && !b->open[b->depth - 1].has_key;
}

static bool refuse(struct builder *b, struct place at, const char *what)
{
    diag_error(b->diags, at, "%s", what);
    return false;
}

/* Keys of one mapping differ. Quadratic, which YAML_KEYS_MAX bounds. */
static bool add_key(struct builder *b, const char *key, struct place at)
{
    int top = b->depth - 1;
    if (++b->open[top].n_keys > YAML_KEYS_MAX)
        return refuse(b, at, "one mapping has too many keys; is this the right file?");
    const struct yaml_node *first = yaml_find(b->open[top].node, key);
    if (first)
        diag_error(b->diags, at, "'%.60s' is given twice; first on line %d", key, first->key_at.line);
    b->open[top].key = key;
    b->open[top].key_at = at;
    b->open[top].has_key = true;
    return true;
}

static bool add_scalar(struct builder *b, struct fy_event *event)
{
    struct fy_token *token = event->scalar.value;
    enum fy_scalar_style style = token ? fy_scalar_token_get_style(token) : FYSS_PLAIN;
    struct place at = scalar_place(b, event, style);
    size_t n = 0;
    const char *text = token ? fy_token_get_text(token, &n) : "";
    if (!text || memchr(text, '\0', n))
        return refuse(b, at, "a value contains a NUL character");
    char *copy = arena_new(b->arena, n + 1, 1);
    memcpy(copy, text, n);
    if (awaits_key(b))
        return add_key(b, copy, at);
    struct yaml_node *node = arena_new(b->arena, 1, sizeof *node);
    *node = (struct yaml_node){.kind = YAML_SCALAR, .text = copy, .at = at};
    node->quoted = style != FYSS_PLAIN;
    attach(b, node);
    return true;
}

static bool open_container(struct builder *b, struct fy_event *event, enum yaml_kind kind)
{
    struct place at = place_of(b, event);
    if (awaits_key(b))
        return refuse(b, at, "a key must be a name, not a mapping or a sequence");
    if (b->depth == YAML_DEPTH_MAX)
        return refuse(b, at, "the nesting is too deep; is this the right file?");
    struct yaml_node *node = arena_new(b->arena, 1, sizeof *node);
    *node = (struct yaml_node){.kind = kind, .at = at};
    attach(b, node);
    b->open[b->depth].node = node;
    b->open[b->depth].last = NULL;
    b->open[b->depth].has_key = false;
    b->open[b->depth].n_keys = 0;
    b->depth++;
    return true;
}

static bool build(struct builder *b, struct fy_event *event)
{
    switch (event->type) {
    case FYET_SCALAR: return add_scalar(b, event);
    case FYET_MAPPING_START: return open_container(b, event, YAML_MAPPING);
    case FYET_SEQUENCE_START: return open_container(b, event, YAML_SEQUENCE);
    case FYET_MAPPING_END:
    case FYET_SEQUENCE_END: b->depth--; return true;
    case FYET_ALIAS:
        return refuse(b, before_mark(place_of(b, event)), "aliases (*name) are not supported; repeat the value, or use `base:`");
    case FYET_DOCUMENT_START:
        return b->documents++ == 0 ||
               refuse(b, place_of(b, event), "the file has a second document (`---`); it must hold only one");
    default: return true;
    }
}

/* A place behind the end of a text without a last newline is that end. */
static struct place inside_text(struct place at, const char *bytes, size_t n)
{
    int line = 1;
    size_t start = 0;
    for (size_t i = 0; i < n; i++) {
        line += bytes[i] == '\n';
        start = bytes[i] == '\n' ? i + 1 : start;
    }
    if (at.line > line) {
        at.line = line;
        at.column = (int)(n - start) + 1;
    }
    return at;
}

/* libfyaml's own findings, in its words and at its places. */
static void report_syntax(const struct builder *b, struct fy_diag *errors)
{
    const char *name = b->name;
    struct diags *diags = b->diags;
    size_t before = diags->n_errors;
    void *iterator = NULL;
    const struct fy_diag_error *error;
    while ((error = fy_diag_errors_iterate(errors, &iterator)) && diags->n_errors < before + 8) {
        struct place at = {
            .file = name, .line = error->line > 0 ? error->line : 0, .column = error->column > 0 ? error->column : 0};
        if (error->type == FYET_ERROR)
            diag_error(diags, inside_text(at, b->bytes, b->n_bytes), "not valid YAML or JSON: %s",
                       error->msg ? error->msg : "syntax error");
    }
    if (diags->n_errors == before)
        diag_error(diags, (struct place){.file = name}, "not valid YAML or JSON");
}

static bool build_all(struct builder *b, struct fy_parser *parser, struct fy_diag *errors)
{
    bool good = true;
    struct fy_event *event;
    while (good && (event = fy_parser_parse(parser)) != NULL) {
        good = build(b, event);
        fy_parser_event_free(parser, event);
    }
    if (good && fy_parser_get_stream_error(parser)) {
        report_syntax(b, errors);
        good = false;
    }
    return good;
}

static bool check_text(const char *name, const char *bytes, size_t n, struct diags *diags)
{
    struct place at = {.file = name, .line = 1, .column = 1};
    bool blank = true;
    for (size_t i = 0, step; i < n; i += step) {
        step = utf8_length(bytes + i, n - i);
        if (step == 0) {
            diag_error(diags, at, "byte 0x%02x is not text; is this a binary file?", (unsigned char)bytes[i]);
            return false;
        }
        blank = blank && strchr(" \t\r\n", bytes[i]) != NULL;
        at.column = bytes[i] == '\n' ? 1 : at.column + 1;
        at.line += bytes[i] == '\n';
    }
    if (blank)
        diag_error(diags, (struct place){.file = name}, "the file is empty");
    return !blank;
}

struct yaml_node *yaml_parse(const char *name, const char *bytes, size_t n, struct arena *arena, struct diags *diags)
{
    if (n >= 3 && memcmp(bytes, "\xef\xbb\xbf", 3) == 0) { /* a byte-order mark says nothing in UTF-8 */
        bytes += 3;
        n -= 3;
    }
    if (n > YAML_BYTES_MAX) {
        diag_error(diags, (struct place){.file = name}, "larger than %d MiB; is this the right file?", YAML_BYTES_MAX >> 20);
        return NULL;
    }
    if (!check_text(name, bytes, n, diags))
        return NULL;
    struct builder b = {.arena = arena, .diags = diags, .name = arena_copy_text(arena, name), .bytes = bytes, .n_bytes = n};
    struct fy_diag_cfg diag_cfg = {.level = FYET_ERROR, .module_mask = ~0u};
    struct fy_diag *errors = fy_diag_create(&diag_cfg);
    if (errors)
        fy_diag_set_collect_errors(errors, true);
    struct fy_parse_cfg cfg = {.flags = FYPCF_QUIET | FYPCF_COLLECT_DIAG, .diag = errors};
    struct fy_parser *parser = errors ? fy_parser_create(&cfg) : NULL;
    bool good = parser && fy_parser_set_string(parser, bytes, n) == 0;
    if (!good)
        refuse(&b, (struct place){.file = b.name}, "the YAML parser did not start");
    good = good && build_all(&b, parser, errors);
    if (good && !b.root)
        good = refuse(&b, (struct place){.file = b.name}, "the file contains only comments");
    if (parser)
        fy_parser_destroy(parser);
    if (errors)
        fy_diag_destroy(errors);
    return good ? b.root : NULL;
}

/* Recursion follows the nesting, which is at most YAML_DEPTH_MAX. */
static void forget_positions(struct yaml_node *node)
{
    node->at.line = node->at.column = 0;
    node->key_at.line = node->key_at.column = 0;
    for (struct yaml_node *child = node->first; child; child = child->next)
        forget_positions(child);
}

struct yaml_node *yaml_value(const char *name, const char *text, struct arena *arena, struct diags *diags)
{
    if (!text[strspn(text, " \t\n")])
        return yaml_scalar(name, "", arena);
    size_t before = diags->n_items;
    struct yaml_node *value = yaml_parse(name, text, strlen(text), arena, diags);
    for (size_t i = before; i < diags->n_items; i++)
        diags->items[i].line = diags->items[i].column = 0;
    if (value)
        forget_positions(value);
    return value;
}

struct yaml_node *yaml_read(const char *path, struct arena *arena, struct diags *diags)
{
    char *bytes;
    size_t n;
    if (file_read(path, YAML_BYTES_MAX, &bytes, &n, diags) != STATUS_OK)
        return NULL;
    struct yaml_node *root = yaml_parse(strcmp(path, "-") == 0 ? "standard input" : path, bytes, n, arena, diags);
    free(bytes);
    return root;
}
