#include "traces/launch/launch_shell.h"

#include <ctype.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "traces/launch/launch_command.h"
#include "traces/launch/shell_state.h"

/* Whether commands are run. */
enum certainty { SKIPPED, UNSURE, RUNS };

enum block_kind { BLOCK_IF, BLOCK_CASE, BLOCK_LOOP, BLOCK_SHELL };
enum { BLOCKS_MAX = 64, COMMAND_WORDS_MAX = 4096, COMMAND_RAN = 2, SHELLS_MAX = 4 };

struct block {
    enum block_kind kind;
    enum certainty now, around;
    bool taken, perhaps;       /* a branch that runs, or may run, was met */
    struct launch_field value; /* of a case */
};

struct raw_word {
    const char *start;
    size_t n;
    struct place at;
};

struct runner {
    struct shell_lexer lexer;
    struct shell_state state;
    struct block blocks[BLOCKS_MAX];
    int n_blocks;
    bool in_condition, until; /* of an if or a loop; of a loop that goes on while it is false */
    int condition;            /* 1 true, 0 false, -1 cannot be told */
    enum certainty chain;     /* what a && or || before this command leaves */
    int last;                 /* value of the list so far: 1, 0, -1 */
    char joint;               /* the operator before this command */
    struct raw_word *command;
    size_t n_command, capacity;
    struct shell_fields loose; /* lines that begin with a flag */
    struct launch_choice best;
    const struct shell_fields *around; /* of a command line that another shell is given (srun bash -c): what is in front of it */
    int depth;                         /* of shells within shells */
    struct diags *reading;             /* what cannot be read of the script or line */
};

static enum certainty certainty_of(const struct runner *r)
{
    enum certainty now = r->n_blocks ? r->blocks[r->n_blocks - 1].now : RUNS;
    return now < r->chain ? now : r->chain;
}

/* The next token; of a line that another shell is given, too, its place is where it was written. */
static void next(struct runner *r)
{
    shell_next(&r->lexer, r->reading);
    if (r->state.line)
        r->lexer.place = shell_place(&r->state, r->lexer.kind == SHELL_WORD ? r->lexer.start : r->lexer.at);
}

/* --- assignments --- */

/* The length of NAME in NAME=... or NAME+=...; 0 when it is no assignment. */
static size_t assigned_name(const struct raw_word *word, bool *appends)
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

static void assign(struct runner *r, const struct raw_word *word, size_t n_name, bool appends)
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
    if (certainty_of(r) == UNSURE)
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

static bool is_word(const struct raw_word *word, const char *text)
{
    return word->n == strlen(text) && memcmp(word->start, text, word->n) == 0;
}

/* [ A op B ], [[ ... ]], test ...: 1, 0, or -1 where it cannot be told. A variable that nobody sets is empty to -z and -n. */
static int test_value(struct runner *r, const struct raw_word *words, size_t n)
{
    struct launch_field f[3];
    bool invert = n > 1 && is_word(&words[0], "!");
    words += invert;
    n -= invert;
    bool bracket = n && (is_word(&words[0], "[") || is_word(&words[0], "[["));
    if (!n || (!bracket && !is_word(&words[0], "test")) ||
        (bracket && !is_word(&words[n - 1], "]") && !is_word(&words[n - 1], "]]")))
        return -1;
    words++;
    n -= bracket ? 2 : 1;
    if (n && is_word(&words[0], "!")) {
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

static bool starts_assignments(const struct raw_word *word)
{
    static const char *const words[] = {"export", "declare", "local", "readonly", "typeset"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (is_word(word, words[i]))
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

static void run_line(struct runner *r, const struct launch_field *line, const struct shell_fields *around);

/* A command whose words are known: of a line for another shell the commands are run, all that stands in front belonging to each.
 */
static void run_expanded(struct runner *r, const struct shell_fields *fields, struct place at)
{
    size_t shell = 0, line = r->depth < SHELLS_MAX ? line_for_shell(fields, &shell) : fields->n;
    struct shell_fields all = {0};
    for (size_t i = 0; r->around && i < r->around->n; i++)
        shell_fields_add(&all, &r->around->items[i]);
    size_t n_around = all.n;
    for (size_t i = 0; i < (line < fields->n ? shell : fields->n); i++)
        shell_fields_add(&all, &fields->items[i]);
    if (line < fields->n)
        run_line(r, &fields->items[line], &all);
    else
        launch_command_try(&r->state, &all, n_around, at, &r->best);
    shell_fields_free(&all);
}

static void run_fields(struct runner *r, size_t from)
{
    struct shell_fields fields = {0};
    for (size_t i = from; i < r->n_command; i++)
        shell_expand(&r->state, r->command[i].start, r->command[i].n, &fields);
    if (fields.n && strncmp(fields.items[0].text, "--", 2) == 0) {
        for (size_t i = 0; i < fields.n; i++)
            launch_command_split(&r->state, &r->loose, &fields.items[i]);
    } else if (fields.n && !is_talk(fields.items[0].text)) {
        run_expanded(r, &fields, r->command[from].at);
    }
    shell_fields_free(&fields);
}

/* A simple command: assignments, then perhaps something to run. What it gives as a test; COMMAND_RAN where it is none. */
static int run_command(struct runner *r)
{
    size_t i = 0;
    bool appends, declares = r->n_command && starts_assignments(&r->command[0]);
    if (declares)
        for (i = 1; i < r->n_command && r->command[i].start[0] == '-';)
            i++;
    for (; i < r->n_command; i++) {
        size_t n = assigned_name(&r->command[i], &appends);
        if (n)
            assign(r, &r->command[i], n, appends);
        else if (!declares)
            break;
    }
    if (i == r->n_command)
        return 1;
    bool is_test = r->command[i].start[0] == '[' || is_word(&r->command[i], "test") || is_word(&r->command[i], "!");
    if (is_test)
        return test_value(r, r->command + i, r->n_command - i);
    run_fields(r, i);
    return COMMAND_RAN;
}

/* --- blocks --- */

static void begin_block(struct runner *r, enum block_kind kind, enum certainty now)
{
    enum certainty around = certainty_of(r);
    if (r->n_blocks == BLOCKS_MAX) {
        diag_error(r->state.diags, r->lexer.place, "blocks are nested deeper than %d", BLOCKS_MAX);
        r->lexer.bad = true;
        return;
    }
    r->blocks[r->n_blocks++] = (struct block){.kind = kind, .around = around, .now = now < around ? now : around};
}

static void end_block(struct runner *r, enum block_kind kind)
{
    if (r->n_blocks && r->blocks[r->n_blocks - 1].kind == kind)
        r->n_blocks--;
}

/* A branch whose condition is true (1), false (0) or unknown (-1). */
static void begin_branch(struct runner *r, int condition)
{
    if (!r->n_blocks)
        return;
    struct block *b = &r->blocks[r->n_blocks - 1];
    enum certainty now = b->taken || condition == 0 ? SKIPPED : condition < 0 || b->perhaps ? UNSURE : RUNS;
    b->perhaps |= condition < 0;
    b->taken |= condition == 1;
    b->now = now < b->around ? now : b->around;
}

/* The next pattern of a case, and whether it is met. */
static void begin_pattern(struct runner *r)
{
    struct shell_lexer *l = &r->lexer;
    if (!r->n_blocks || r->blocks[r->n_blocks - 1].kind != BLOCK_CASE || !shell_pattern(l))
        return;
    struct block *b = &r->blocks[r->n_blocks - 1];
    int met = b->value.unknown ? -1 : 0;
    for (const char *p = l->start, *end = p + l->length; p < end && met >= 0 && !met; p++) {
        size_t n = 0;
        while (p + n < end && p[n] != '|')
            n++;
        struct launch_field f = shell_expand_one(&r->state, p, n);
        char pattern[128];
        const char *text = f.text + strspn(f.text, " (");
        snprintf(pattern, sizeof pattern, "%.*s", (int)strcspn(text, " "), text);
        met = f.unknown ? -1 : fnmatch(pattern, b->value.text, 0) == 0;
        p += n;
    }
    begin_branch(r, met);
}

static void begin_case(struct runner *r)
{
    struct shell_lexer *l = &r->lexer;
    next(r);
    if (l->kind != SHELL_WORD)
        return;
    struct launch_field value = shell_expand_one(&r->state, l->start, l->length);
    next(r); /* in */
    begin_block(r, BLOCK_CASE, SKIPPED);
    if (r->n_blocks)
        r->blocks[r->n_blocks - 1].value = value;
    begin_pattern(r);
}

/* for NAME in ...: what NAME is changes. */
static void begin_loop(struct runner *r)
{
    next(r);
    if (r->lexer.kind == SHELL_WORD) {
        struct launch_field *item = arena_new(&r->state.words->arena, 1, sizeof *item);
        *item = shell_field_of(&r->state, UNKNOWN_TEXT, "a loop sets it");
        shell_set(&r->state, r->lexer.start, r->lexer.length, item, 1, false);
    }
    begin_block(r, BLOCK_LOOP, UNSURE);
}

/* A word that a shell keeps for itself, at the beginning of a command; false when it is none. */
static bool keyword(struct runner *r, const struct raw_word *word)
{
    static const char *const passed[] = {"{", "}", "do", "time", "exec", "nohup", "function", "eval", "then"};
    if (is_word(word, "if")) {
        begin_block(r, BLOCK_IF, certainty_of(r));
        r->in_condition = true;
        r->condition = -1;
    } else if (is_word(word, "then") && r->in_condition) {
        r->in_condition = false;
        begin_branch(r, r->condition);
    } else if (is_word(word, "elif")) {
        if (r->n_blocks)
            r->blocks[r->n_blocks - 1].now = r->blocks[r->n_blocks - 1].around;
        r->in_condition = true;
        r->condition = -1;
    } else if (is_word(word, "else")) {
        begin_branch(r, 1);
    } else if (is_word(word, "fi")) {
        end_block(r, BLOCK_IF);
    } else if (is_word(word, "for") || is_word(word, "select")) {
        begin_loop(r);
    } else if (is_word(word, "while") || is_word(word, "until")) {
        begin_block(r, BLOCK_LOOP, certainty_of(r));
        r->in_condition = true;
        r->condition = -1;
        r->until = word->start[0] == 'u';
    } else if (is_word(word, "do") && r->in_condition) {
        r->in_condition = false;
        begin_branch(r, r->condition == r->until ? 0 : -1); /* how often it runs cannot be told */
    } else if (is_word(word, "done")) {
        end_block(r, BLOCK_LOOP);
    } else if (is_word(word, "case")) {
        begin_case(r);
    } else if (is_word(word, "esac")) {
        end_block(r, BLOCK_CASE);
    } else {
        for (size_t i = 0; i < sizeof passed / sizeof passed[0]; i++)
            if (is_word(word, passed[i]))
                return true;
        return false;
    }
    return true;
}

/* A command's value joins those before it in a list of && and ||: of what was passed over nothing changes. */
static void join(struct runner *r, int value)
{
    if (r->chain == RUNS)
        r->last = value;
    else if (r->chain == UNSURE)
        r->last = value == (r->joint == '|') ? value : -1;
}

/* What the operator behind a command makes of the next one. */
static void follow(struct runner *r, int value)
{
    const char *op = r->lexer.kind == SHELL_OPERATOR ? r->lexer.sign : "\n";
    if (r->n_command)
        join(r, value);
    bool both = strcmp(op, "&&") == 0, either = strcmp(op, "||") == 0;
    if (r->n_command && r->in_condition)
        r->condition = r->last;
    if (!both && !either)
        r->chain = RUNS;
    else if (r->n_command)
        r->chain = r->last < 0 ? UNSURE : (r->last == 1) == both ? RUNS : SKIPPED;
    r->joint = *op;
    if (strcmp(op, ";;") == 0)
        begin_pattern(r);
}

static void run_script(struct runner *r)
{
    struct shell_lexer *l = &r->lexer;
    do {
        next(r);
        struct raw_word word = {l->start, l->length, l->place};
        if (l->kind == SHELL_WORD) {
            if ((r->n_command == 0 && keyword(r, &word)) || r->n_command == COMMAND_WORDS_MAX)
                continue;
            r->command = memory_grow(r->command, &r->capacity, r->n_command + 1, sizeof *r->command);
            r->command[r->n_command++] = word;
            continue;
        }
        int value = certainty_of(r) == SKIPPED || !r->n_command ? -1 : run_command(r);
        value = value == COMMAND_RAN ? (r->in_condition ? -1 : 1) : value; /* taken to succeed */
        follow(r, value);
        r->n_command = 0;
    } while (l->kind != SHELL_END && !shell_is_full(&r->state, 0));
}

/* Lines that begin with a flag, as one command. */
static void run_loose(struct runner *r)
{
    if (r->loose.n)
        launch_command_try(&r->state, &r->loose, 0, r->loose.items[0].at, &r->best);
    shell_fields_free(&r->loose);
}

/* A line that another shell is given: it has this one's variables, and what it sets is gone behind it. */
static void run_line(struct runner *r, const struct launch_field *line, const struct shell_fields *around)
{
    struct runner *inner = memory_new(1, sizeof *inner);
    enum certainty now = certainty_of(r);
    size_t n = r->state.n;
    struct shell_variable *kept = memory_new(n + 1, sizeof *kept);
    if (n)
        memcpy(kept, r->state.variables, n * sizeof *kept);
    *inner = (struct runner){
        .lexer = {.name = r->state.name,
                  .text = line->text,
                  .at = line->text,
                  .end = line->text + strlen(line->text),
                  .line = 1,
                  .line_start = line->text},
        .state = r->state,
        .blocks = {{.kind = BLOCK_SHELL, .now = now, .around = now}},
        .n_blocks = 1,
        .chain = RUNS,
        .best = r->best,
        .around = around,
        .depth = r->depth + 1,
    };
    struct diags quiet = {0};
    inner->state.line = line;
    inner->state.line_end = inner->lexer.end;
    inner->reading = &quiet;
    run_script(inner);
    if (quiet.n_errors)
        diag_warning(r->state.diags, line->at, "not all of this line for another shell can be read: %s", quiet.items[0].text);
    diags_free(&quiet);
    run_loose(inner);
    inner->state.line = r->state.line;
    inner->state.line_end = r->state.line_end;
    r->best = inner->best;
    r->state = inner->state;
    if (n)
        memcpy(r->state.variables, kept, n * sizeof *kept);
    r->state.n = n;
    free(kept);
    free(inner->command);
    free(inner);
}

/* --- what surrounds the commands --- */

static void set_environment(struct runner *r, const struct launch_environment *environment)
{
    for (int i = 0; environment && i < environment->n; i++) {
        const char *setting = environment->settings[i], *equals = strchr(setting, '=');
        if (equals)
            shell_set_text(&r->state, setting, (size_t)(equals - setting), equals + 1);
    }
}

/* $#, $@ and $*: the arguments 1, 2, ... as far as they are given. */
static void set_positional(struct runner *r)
{
    enum { POSITIONAL_MAX = 99 };
    struct launch_field *items = arena_new(&r->state.words->arena, POSITIONAL_MAX, sizeof *items);
    size_t n = 0;
    char text[8];
    for (const struct shell_variable *v; n < POSITIONAL_MAX; items[n++] = v->items[0]) {
        snprintf(text, sizeof text, "%zu", n + 1);
        v = shell_find(&r->state, text, strlen(text));
        if (!v)
            break;
    }
    snprintf(text, sizeof text, "%zu", n);
    shell_set_text(&r->state, "#", 1, text);
    shell_set(&r->state, "@", 1, items, n, true);
    shell_set(&r->state, "*", 1, items, n, true);
}

static void run(struct runner *r, const struct launch_environment *environment, struct launch_words *words)
{
    set_environment(r, environment);
    set_positional(r);
    shell_slurm(&r->state);
    run_script(r);
    run_loose(r);
    for (size_t i = 0; i < r->best.words.n; i++)
        launch_words_add(words, r->best.words.items[i]);
}

enum status launch_shell_parse(const char *name, const char *bytes, size_t n, const struct launch_environment *environment,
                               struct launch_words *words, struct diags *diags)
{
    struct runner *r = memory_new(1, sizeof *r);
    size_t before = diags->n_errors;
    *r = (struct runner){
        .lexer = {.name = name, .text = bytes, .at = bytes, .end = bytes + n, .line = 1, .line_start = bytes},
        .state = {.words = words, .name = name, .script = bytes, .script_end = bytes + n, .diags = diags},
        .chain = RUNS,
        .reading = diags,
    };
    run(r, environment, words);
    if (diags->n_errors == before && r->best.count == 0)
        diag_error(diags, (struct place){.file = name},
                   "no command here has Megatron-LM's arguments, such as --num-layers, or sets keys of a configuration");
    else if (r->best.rivals > 1)
        diag_warning(diags, r->best.at, "of %zu commands with such arguments this one is taken, which has the most",
                     r->best.rivals);
    if (r->best.program)
        diag_warning(diags, r->best.at,
                     "not modelled: %s (no decoder; a decoder of this shape is taken, each token of which sees "
                     "those before it)",
                     r->best.program);
    free(r->state.variables);
    free(r->state.lines);
    free(r->command);
    free(r->best.words.items);
    free(r);
    return diags->n_errors > before ? STATUS_BAD_INPUT : STATUS_OK;
}

enum status launch_shell_words(const char *name, const char *text, struct launch_words *words, struct diags *diags)
{
    struct shell_state state = {.words = words, .name = name, .diags = diags};
    struct shell_fields fields = {0};
    struct shell_lexer l = {.name = name, .text = text, .at = text, .end = text + strlen(text), .line = 0, .line_start = text};
    size_t before = diags->n_errors;
    for (shell_next(&l, diags); l.kind != SHELL_END; shell_next(&l, diags))
        if (l.kind == SHELL_WORD)
            shell_expand(&state, l.start, l.length, &fields);
    launch_words_of_fields(words, fields.items, fields.n);
    shell_fields_free(&fields);
    free(state.variables);
    return diags->n_errors > before ? STATUS_BAD_INPUT : STATUS_OK;
}
