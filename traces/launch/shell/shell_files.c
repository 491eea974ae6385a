/* Files that a script writes, for commands that name them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "traces/launch/shell/shell_internal.h"

/* --- files written so far --- */

static bool is_of_file(const struct launch_word *word, const char *kind, const char *name)
{
    return strcmp(word->name, kind) == 0 && strcmp(word->spelling, name) == 0;
}

/* The present text of a file; NULL: the script has not written it. */
static const char *text_of_file(const struct launch_words *words, const char *name)
{
    for (size_t i = words->n; i-- > 0;)
        if (is_of_file(&words->items[i], "written-file", name))
            return words->items[i].value;
    return NULL;
}

/* Notes that a file of the script may have changed. */
static void doubt_file(struct runner *r, const char *name, const char *by)
{
    const struct shell_raw *command = &r->command[0];
    if (text_of_file(r->state.words, name))
        launch_words_add(r->state.words, (struct launch_word){.name = "doubted-file",
                                                              .spelling = name,
                                                              .value = launch_text(r->state.words, by, strlen(by)),
                                                              .at = command->at});
}

/* Forgets the doubts about a file that is written again. */
static void end_doubts(struct launch_words *words, const char *name)
{
    size_t kept = 0;
    for (size_t i = 0; i < words->n; i++)
        if (!is_of_file(&words->items[i], "doubted-file", name))
            words->items[kept++] = words->items[i];
    words->n = kept;
}

/* A field as the text of a file; an unknown piece is its reason between two UNKNOWN_TEXTs. */
static const char *field_text(struct runner *r, const struct launch_field *field)
{
    char *text, *copy;
    size_t n;
    FILE *out = open_memstream(&text, &n);
    for (size_t i = 0; i < field->n_segments; i++) {
        const struct launch_segment *s = &field->segments[i];
        size_t end = i + 1 < field->n_segments ? s[1].from : strlen(field->text);
        const char *p = s->unknown ? s->unknown : field->text + s->from, *stop = s->unknown ? p + strlen(p) : field->text + end;
        if (s->unknown)
            fputc(*UNKNOWN_TEXT, out);
        for (; p < stop; p++)
            fputc(*p == *UNKNOWN_TEXT ? '?' : *p, out);
        if (s->unknown)
            fputc(*UNKNOWN_TEXT, out);
    }
    fclose(out);
    copy = shell_is_full(&r->state, n) ? "" : launch_text(r->state.words, text, n);
    free(text);
    return copy;
}

/* A here-document as a file's text. */
static const char *body_text(struct runner *r, const struct launch_field *body)
{
    const char *text = field_text(r, body);
    if (!r->lexer.body_bare)
        return text;
    char *bare = launch_text(r->state.words, text, strlen(text)), *end = bare;
    for (const char *p = text; *p;) {
        p += strspn(p, "\t");
        size_t n = strcspn(p, "\n") + (strchr(p, '\n') != NULL);
        memcpy(end, p, n);
        end += n;
        p += n;
    }
    *end = '\0';
    return bare;
}

static void write_text(struct runner *r, const struct launch_field *name, const char *text, bool appends)
{
    const char *front = appends ? text_of_file(r->state.words, name->text) : NULL;
    size_t n = front ? strlen(front) : 0, more = strlen(text);
    if (shell_is_full(&r->state, n + more))
        return;
    char *whole = arena_new(&r->state.words->arena, n + more + 1, 1);
    if (n)
        memcpy(whole, front, n);
    memcpy(whole + n, text, more);
    if (!appends)
        end_doubts(r->state.words, name->text);
    launch_words_add(
        r->state.words,
        (struct launch_word){
            .name = "written-file", .spelling = name->text, .value = whole, .unknown = name->unknown, .at = name->at});
}

/* --- outputs of commands --- */

/* The letter that a backslash and this letter mean; 0: none of these. */
static char escaped(char letter)
{
    return letter == 'n' ? '\n' : letter == 't' ? '\t' : letter == '\\' || letter == '"' || letter == '\'' ? letter : '\0';
}

/* printf's format once, with arguments from *next on; false: more is in it than %s, %%, \n, \t. */
static bool print_once(const char *format, const struct shell_fields *fields, size_t *next, struct runner *r, FILE *out)
{
    for (const char *p = format; *p; p++) {
        if (*p == '\\' && !escaped(p[1]))
            return false;
        if (*p == '\\') {
            fputc(escaped(*++p), out);
        } else if (*p == '%' && p[1] == 's') {
            if (*next < fields->n)
                fputs(field_text(r, &fields->items[(*next)++]), out);
            p++;
        } else if (*p == '%' && p[1] != '%') {
            return false;
        } else {
            fputc(*p, out);
            p += *p == '%';
        }
    }
    return true;
}

/* The output of echo or printf; NULL: unknown. */
static const char *printed_text(struct runner *r, const struct shell_fields *fields)
{
    bool echoes = strcmp(shell_text_at(fields, 0), "echo") == 0, known = true;
    size_t first = 1, n;
    bool line = true, escapes = !echoes;
    for (; echoes && first < fields->n && *fields->items[first].text == '-'; first++) {
        const char *option = fields->items[first].text + 1;
        if (!*option || option[strspn(option, "neE")])
            break;
        line = line && !strchr(option, 'n');
        escapes = escapes || strchr(option, 'e');
    }
    char *text;
    FILE *out = open_memstream(&text, &n);
    if (echoes) {
        struct launch_field all = shell_join_all(&r->state, fields->items + first, first < fields->n ? fields->n - first : 0);
        const char *given = field_text(r, &all);
        known = !escapes || !strchr(given, '%');
        size_t none = 0;
        if (escapes)
            known = known && print_once(given, &(struct shell_fields){0}, &none, r, out);
        else
            fputs(given, out);
        if (line)
            fputc('\n', out);
    } else {
        const char *format = fields->n > 1 ? field_text(r, &fields->items[1]) : "-";
        size_t next = 2, before;
        known = *format != '-';
        do {
            before = next;
            known = known && print_once(format, fields, &next, r, out);
        } while (known && next > before && next < fields->n);
    }
    fclose(out);
    char *copy = known && !shell_is_full(&r->state, n) ? launch_text(r->state.words, text, n) : NULL;
    free(text);
    return copy;
}

/* --- commands --- */

/* The file that a command changes in place, in a way that is not followed; NULL: none. */
static const char *changed_in_place(const struct shell_fields *fields, const struct launch_words *words)
{
    static const char *const editors[] = {"sed", "perl", "yq", "awk", "gawk", "ruby"};
    static const char *const others[] = {"cp", "mv", "install", "ln", "patch", "sponge", "crudini", "truncate", "ex", "ed"};
    const char *slash = strrchr(shell_text_at(fields, 0), '/'), *base = slash ? slash + 1 : shell_text_at(fields, 0);
    bool changes = false, in_place = false;
    for (size_t i = 1; i < fields->n; i++)
        in_place |= strncmp(fields->items[i].text, "-i", 2) == 0 || strncmp(fields->items[i].text, "--in", 4) == 0 ||
                    strncmp(fields->items[i].text, "-pi", 3) == 0;
    for (size_t i = 0; i < sizeof editors / sizeof editors[0]; i++)
        changes |= in_place && strcmp(base, editors[i]) == 0;
    for (size_t i = fields->n; i-- > 1 && changes;)
        if (text_of_file(words, fields->items[i].text))
            return fields->items[i].text;
    for (size_t i = 0; i < sizeof others / sizeof others[0] && fields->n > 1; i++)
        if (strcmp(base, others[i]) == 0)
            return fields->items[fields->n - 1].text;
    return NULL;
}

/* The output of a command, or of a pipe; NULL: unknown. */
static const char *output_of(struct runner *r, const struct shell_fields *fields, const struct launch_field *body)
{
    const char *command = shell_text_at(fields, 0), *piped = r->joint == '|' ? r->piped : NULL;
    if (body && ((strcmp(command, "cat") == 0 && fields->n == 1) || strcmp(command, "tee") == 0))
        return body_text(r, body);
    if (!body && (strcmp(command, "echo") == 0 || strcmp(command, "printf") == 0))
        return printed_text(r, fields);
    bool passes = strcmp(command, "tee") == 0 || (strcmp(command, "cat") == 0 && fields->n == 1);
    return passes ? piped : NULL;
}

/* Notes a file that is written, or whose text is not known any more. */
static void write_or_doubt(struct runner *r, const struct launch_field *name, const char *text, bool appends, const char *by)
{
    if (shell_certainty(r) != RUNS)
        doubt_file(r, name->text, "a command under a condition that cannot be told");
    else if (text)
        write_text(r, name, text, appends);
    else
        doubt_file(r, name->text, by);
}

void shell_write_files(struct runner *r, const struct shell_fields *fields, const struct launch_field *body)
{
    const struct shell_lexer *l = &r->lexer;
    const char *command = shell_text_at(fields, 0), *text = output_of(r, fields, body);
    bool tees = strcmp(command, "tee") == 0, appends = false;
    for (size_t i = 1; i < fields->n && tees; i++)
        if (*fields->items[i].text == '-')
            appends |= strcmp(fields->items[i].text, "-a") == 0 || strcmp(fields->items[i].text, "--append") == 0;
    for (size_t i = 1; i < fields->n && tees; i++)
        if (*fields->items[i].text != '-')
            write_or_doubt(r, &fields->items[i], text, appends, command);
    const char *changed = changed_in_place(fields, r->state.words);
    if (changed)
        doubt_file(r, changed, command);
    if (l->target && !tees) {
        struct launch_field name = shell_expand_one(&r->state, l->target, (size_t)(l->target_end - l->target));
        write_or_doubt(r, &name, text, l->appends, command);
    }
    bool hands_on = l->kind == SHELL_OPERATOR && strcmp(l->sign, "|") == 0 && !l->target;
    r->piped = hands_on ? text : NULL;
}
