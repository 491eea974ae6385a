/* Simple commands: what they set, tests that can be told, and what is started. */
#include <ctype.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "traces/launch/shell/shell_internal.h"

/* --- assignments --- */

/* The length of NAME in NAME=... or NAME+=...; 0 when it is no assignment. */
static size_t assigned_name(const struct shell_raw *word, bool *appends)
{
    size_t n = 0;
    while (n < word->n && (isalnum((unsigned char)word->start[n]) || word->start[n] == '_'))
        n++;
    *appends = n + 1 < word->n && word->start[n] == '+' && word->start[n + 1] == '=';
    bool assigns = n > 0 && n < word->n && !isdigit((unsigned char)word->start[0]) && (word->start[n] == '=' || *appends);
    return assigns ? n : 0;
}

static void mark_unsure(struct runner *r, struct launch_field *items, size_t n, int line)
{
    char why[96];
    snprintf(why, sizeof why, "line %d sets it under a condition that cannot be told", line);
    const char *text = launch_text(r->state.words, why, strlen(why));
    for (size_t i = 0; i < n; i++)
        items[i] = shell_doubt(&r->state, &items[i], text);
}

/* What was there and what comes, together: items of an array, or one text. */
static struct launch_field *joined(struct runner *r, const struct shell_variable *old, bool is_array,
                                   const struct shell_fields *more, size_t *n)
{
    size_t n_old = old ? old->n : 0;
    if (old && shell_is_full(&r->state, n_old * sizeof *old->items))
        n_old = 0;
    struct launch_field *items = arena_new(&r->state.words->arena, n_old + more->n + 1, sizeof *items);
    if (n_old)
        memcpy(items, old->items, n_old * sizeof *items);
    if (n_old && more->n && !is_array) {
        items[0] = shell_join(&r->state, &items[0], &more->items[0]);
        *n = n_old;
        return items;
    }
    if (more->n)
        memcpy(items + n_old, more->items, more->n * sizeof *items);
    *n = n_old + more->n;
    return items;
}

static void assign(struct runner *r, const struct shell_raw *word, size_t n_name, bool appends)
{
    size_t front = n_name + 1 + appends, n_value = word->n - front, n;
    const char *value = word->start + front;
    struct shell_fields fields = {0};
    bool is_array = n_value >= 2 && value[0] == '(' && value[n_value - 1] == ')';
    if (is_array) {
        shell_expand_all(&r->state, value + 1, n_value - 2, &fields);
    } else {
        struct launch_field one = shell_expand_one(&r->state, value, n_value);
        shell_fields_add(&fields, &one);
    }
    const struct shell_variable *old = appends ? shell_find(&r->state, word->start, n_name) : NULL;
    is_array = is_array || (old && old->is_array);
    struct launch_field *items = joined(r, old, is_array, &fields, &n);
    if (shell_certainty(r) == UNSURE)
        mark_unsure(r, items, n, word->at.line);
    shell_set(&r->state, word->start, n_name, items, n, is_array);
    shell_fields_free(&fields);
}

/* --- tests --- */

static int compare_numbers(const char *sign, const char *a, const char *b)
{
    char *end_a, *end_b;
    long long x = strtoll(a, &end_a, 10), y = strtoll(b, &end_b, 10);
    if (*end_a || *end_b || end_a == a || end_b == b)
        return -1;
    static const char *const signs[] = {"-eq", "-ne", "-lt", "-le", "-gt", "-ge"};
    const bool results[] = {x == y, x != y, x<y, x <= y, x> y, x >= y};
    for (int i = 0; i < 6; i++)
        if (strcmp(sign, signs[i]) == 0)
            return results[i];
    return -1;
}

bool shell_is_word(const struct shell_raw *word, const char *text)
{
    return word->n == strlen(text) && memcmp(word->start, text, word->n) == 0;
}

/* [ A op B ], [[ ... ]], test ...: 1, 0, or -1 where it cannot be told. A variable that nobody sets is empty to -z and -n. */
static int test_value(struct runner *r, const struct shell_raw *words, size_t n)
{
    struct launch_field f[3];
    bool invert = n > 1 && shell_is_word(&words[0], "!");
    words += invert;
    n -= invert;
    bool bracket = n && (shell_is_word(&words[0], "[") || shell_is_word(&words[0], "[["));
    if (!n || (!bracket && !shell_is_word(&words[0], "test")) ||
        (bracket && !shell_is_word(&words[n - 1], "]") && !shell_is_word(&words[n - 1], "]]")))
        return -1;
    words++;
    n -= bracket ? 2 : 1;
    if (n && shell_is_word(&words[0], "!")) {
        invert = !invert;
        words++;
        n--;
    }
    if (n < 1 || n > 3)
        return -1;
    for (size_t i = 0; i < n; i++)
        f[i] = shell_expand_one(&r->state, words[i].start, words[i].n);
    int value = -1;
    bool known = !f[n - 1].unknown && !f[0].unknown;
    if (n == 1 && known)
        value = f[0].text[0] != '\0';
    else if (n == 2 && (strcmp(f[0].text, "-z") == 0 || strcmp(f[0].text, "-n") == 0))
        value = (f[1].text[0] == '\0' || strcmp(f[1].text, UNKNOWN_TEXT) == 0) == (f[0].text[1] == 'z');
    else if (n == 3 && known && (strcmp(f[1].text, "=") == 0 || strcmp(f[1].text, "==") == 0))
        value = fnmatch(f[2].text, f[0].text, 0) == 0;
    else if (n == 3 && known && strcmp(f[1].text, "!=") == 0)
        value = fnmatch(f[2].text, f[0].text, 0) != 0;
    else if (n == 3 && known)
        value = compare_numbers(f[1].text, f[0].text, f[2].text);
    return value < 0 ? value : value != invert;
}

/* --- commands --- */

static bool starts_assignments(const struct shell_raw *word)
{
    static const char *const words[] = {"export", "declare", "local", "readonly", "typeset"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (shell_is_word(word, words[i]))
            return true;
    return false;
}

/* Commands that only show what others would run. */
static bool is_talk(const char *command)
{
    return strcmp(command, "echo") == 0 || strcmp(command, "printf") == 0 || strcmp(command, "cat") == 0;
}

static bool is_shell(const char *text)
{
    static const char *const shells[] = {"bash", "sh", "zsh", "dash", "ksh"};
    const char *slash = strrchr(text, '/'), *base = slash ? slash + 1 : text;
    for (size_t i = 0; i < sizeof shells / sizeof shells[0]; i++)
        if (strcmp(base, shells[i]) == 0)
            return true;
    return false;
}

/* Where among a command's fields the line stands that a shell is given: bash -c LINE, sh -lc LINE, bash -o pipefail -c LINE; n:
 * nowhere. *shell is the shell itself. */
static size_t line_for_shell(const struct shell_fields *fields, size_t *shell)
{
    for (size_t i = 0; i < fields->n; i++) {
        if (!is_shell(fields->items[i].text))
            continue;
        for (size_t k = i + 1; k + 1 < fields->n; k++) {
            const char *option = fields->items[k].text;
            const char *before = fields->items[k - 1].text;
            bool named = *before == '-' && before[strlen(before) - 1] == 'o'; /* -euo pipefail */
            if (*option == '-' && option[1] != '-' && strchr(option, 'c')) {
                *shell = i;
                return k + 1;
            }
            if (*option != '-' && !named)
                break;
        }
    }
    return fields->n;
}

/* n fields of a command, behind what starts the shell that it is given to. */
static void put_around(const struct runner *r, const struct shell_fields *fields, size_t n, struct shell_fields *all)
{
    for (size_t i = 0; r->around && i < r->around->n; i++)
        shell_fields_add(all, &r->around->items[i]);
    for (size_t i = 0; i < n; i++)
        shell_fields_add(all, &fields->items[i]);
}

/* A command with expanded words. The commands of a line for another shell run; the fields before it belong to each. */
static void run_expanded(struct runner *r, const struct shell_fields *fields, struct place at)
{
    size_t shell = 0, line = r->depth < SHELLS_MAX ? line_for_shell(fields, &shell) : fields->n;
    struct shell_fields all = {0};
    put_around(r, fields, line < fields->n ? shell : fields->n, &all);
    if (line < fields->n) { /* "... ${ARRAY[@]} ..." is likely to mean all of it */
        struct launch_field whole = shell_join_all(&r->state, &fields->items[line], fields->n - line);
        r->run_line(r, &whole, &all);
    } else {
        r->listener->command(r->listener->context, &r->state, &all, r->around ? r->around->n : 0, at);
    }
    shell_fields_free(&all);
}

/* What a command is given to read, and where it writes it; true where it is a shell, which runs it. */
static bool take_body(struct runner *r, const struct shell_fields *fields)
{
    const struct shell_lexer *l = &r->lexer;
    struct launch_field body = {0};
    if (l->body && l->body_kept)
        body = shell_expand_kept(&r->state, l->body, l->body_end);
    else if (l->body)
        body = shell_expand_body(&r->state, l->body, l->body_end);
    const char *last = fields->n ? shell_text_at(fields, fields->n - 1) : "";
    bool shell = l->body && r->depth < SHELLS_MAX && (is_shell(last) || (fields->n > 1 && strcmp(last, "-s") == 0));
    if (shell) {
        struct shell_fields around = {0};
        put_around(r, fields, fields->n - 1, &around);
        r->run_line(r, &body, &around);
        shell_fields_free(&around);
    } else {
        shell_write_files(r, fields, l->body ? &body : NULL);
    }
    return shell;
}

/* source FILE, . FILE. Where it is not read, what it would set is unknown. */
static void source_file(struct runner *r, const struct shell_fields *fields, struct place at)
{
    struct shell_text text;
    const char *why = NULL;
    bool room = r->depth < SHELLS_MAX && r->state.n_texts < SHELL_TEXTS_MAX;
    if (fields->n < 2 || !r->listener->source)
        return;
    if (room && r->listener->source(r->listener->context, &r->state, &fields->items[1], &text, &why))
        r->run_file(r, &text, at);
    else if (!room || why)
        r->state.unread = why ? why : "a file is not read, because files source one another too deep";
}

/* Commands that run a text in this shell; false: it is none of them. */
static bool run_in_this_shell(struct runner *r, const struct shell_fields *fields, struct place at)
{
    const char *name = shell_text_at(fields, 0);
    if (strcmp(name, "source") == 0 || strcmp(name, ".") == 0) {
        source_file(r, fields, at);
        return true;
    }
    if (strcmp(name, "eval") != 0 || fields->n < 2 || r->depth >= SHELLS_MAX)
        return false;
    struct launch_field line = shell_join_all(&r->state, fields->items + 1, fields->n - 1);
    r->run_here(r, &line);
    return true;
}

static void run_fields(struct runner *r, size_t from)
{
    struct shell_fields fields = {0};
    for (size_t i = from; i < r->n_command; i++)
        shell_expand(&r->state, r->command[i].start, r->command[i].n, &fields);
    if (run_in_this_shell(r, &fields, r->command[from].at) || take_body(r, &fields)) {
        shell_fields_free(&fields);
        return;
    }
    if (fields.n && strncmp(fields.items[0].text, "--", 2) == 0) {
        for (size_t i = 0; i < fields.n; i++)
            shell_split(&r->state, &r->loose, &fields.items[i]);
    } else if (fields.n && !is_talk(fields.items[0].text)) {
        run_expanded(r, &fields, r->command[from].at);
    }
    shell_fields_free(&fields);
}

/* Assignments from word `from` on, up to what is none; among what export and its kind name it does not matter. */
static size_t assign_all(struct runner *r, size_t from, bool declares)
{
    bool appends;
    size_t i = from;
    for (; i < r->n_command; i++) {
        size_t n = assigned_name(&r->command[i], &appends);
        if (n)
            assign(r, &r->command[i], n, appends);
        else if (!declares)
            break;
    }
    return i;
}

/* NAME=V command: what is set for this command alone. */
static void run_with_settings(struct runner *r, size_t n_settings)
{
    struct shell_variable *old = memory_new(n_settings + 1, sizeof *old);
    bool appends;
    for (size_t i = 0; i < n_settings; i++) {
        const struct shell_variable *v = shell_find(&r->state, r->command[i].start, assigned_name(&r->command[i], &appends));
        old[i] = v ? *v : (struct shell_variable){0};
    }
    assign_all(r, 0, false);
    run_fields(r, n_settings);
    for (size_t i = n_settings; i-- > 0;) /* the last first: one name may be set twice */
        shell_restore(&r->state, r->command[i].start, assigned_name(&r->command[i], &appends), &old[i]);
    free(old);
}

int shell_run_command(struct runner *r)
{
    size_t i = 0, settings = 0;
    bool appends, declares = r->n_command && starts_assignments(&r->command[0]);
    if (declares)
        for (i = 1; i < r->n_command && r->command[i].start[0] == '-';)
            i++;
    while (settings < r->n_command && assigned_name(&r->command[settings], &appends))
        settings++;
    if (settings && settings < r->n_command) {
        run_with_settings(r, settings);
        return COMMAND_RAN;
    }
    i = assign_all(r, i, declares);
    if (i == r->n_command)
        return 1;
    bool is_test = r->command[i].start[0] == '[' || shell_is_word(&r->command[i], "test") || shell_is_word(&r->command[i], "!");
    if (is_test)
        return test_value(r, r->command + i, r->n_command - i);
    run_fields(r, i);
    return COMMAND_RAN;
}
