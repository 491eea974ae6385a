/* Blocks and lists of commands, and which of them run. */
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "traces/launch/shell/shell_internal.h"

/* The next token; of a line that another shell is given, too, its place is where it was written. */
static void advance(struct runner *r)
{
    shell_next(&r->lexer, r->reading);
    if (r->state.line)
        r->lexer.place = shell_place(&r->state, r->lexer.kind == SHELL_WORD ? r->lexer.start : r->lexer.at);
}

static void begin_block(struct runner *r, enum block_kind kind, enum certainty now)
{
    enum certainty around = shell_certainty(r);
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

/* A bracket that opens: another shell with these variables, unless it is one of name() or ((sum)). */
static void open_bracket(struct runner *r)
{
    const char *at = r->lexer.at; /* behind it */
    bool sum = (at < r->lexer.end && *at == '(') || (at - r->lexer.text >= 2 && at[-2] == '(');
    int before = r->n_blocks;
    size_t n = r->state.n;
    begin_block(r, BLOCK_BRACKETS, shell_certainty(r));
    if (r->n_blocks == before || r->n_command || sum || shell_is_full(&r->state, n * sizeof *r->state.variables))
        return;
    struct block *b = &r->blocks[r->n_blocks - 1];
    b->n_kept = n;
    b->kept = memory_new(n + 1, sizeof *b->kept);
    if (n)
        memcpy(b->kept, r->state.variables, n * sizeof *b->kept);
}

static void close_bracket(struct runner *r)
{
    struct block *b = r->n_blocks ? &r->blocks[r->n_blocks - 1] : NULL;
    if (!b || b->kind != BLOCK_BRACKETS)
        return;
    if (b->kept) {
        if (b->n_kept)
            memcpy(r->state.variables, b->kept, b->n_kept * sizeof *b->kept); /* there is room: they never get fewer */
        r->state.n = b->n_kept;
        free(b->kept);
    }
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
    advance(r);
    if (l->kind != SHELL_WORD)
        return;
    struct launch_field value = shell_expand_one(&r->state, l->start, l->length);
    advance(r); /* in */
    begin_block(r, BLOCK_CASE, SKIPPED);
    if (r->n_blocks)
        r->blocks[r->n_blocks - 1].value = value;
    begin_pattern(r);
}

/* for NAME in ...: what NAME is changes. */
static void begin_loop(struct runner *r)
{
    advance(r);
    if (r->lexer.kind == SHELL_WORD) {
        struct launch_field *item = arena_new(&r->state.words->arena, 1, sizeof *item);
        *item = shell_field_of(&r->state, UNKNOWN_TEXT, "a loop sets it");
        shell_set(&r->state, r->lexer.start, r->lexer.length, item, 1, false);
    }
    begin_block(r, BLOCK_LOOP, UNSURE);
}

/* A word that a shell keeps for itself, at the beginning of a command; false when it is none. */
static bool keyword(struct runner *r, const struct shell_raw *word)
{
    static const char *const passed[] = {"{", "}", "do", "time", "exec", "nohup", "function", "then"};
    if (shell_is_word(word, "if")) {
        begin_block(r, BLOCK_IF, shell_certainty(r));
        r->in_condition = true;
        r->condition = -1;
    } else if (shell_is_word(word, "then") && r->in_condition) {
        r->in_condition = false;
        begin_branch(r, r->condition);
    } else if (shell_is_word(word, "elif")) {
        if (r->n_blocks)
            r->blocks[r->n_blocks - 1].now = r->blocks[r->n_blocks - 1].around;
        r->in_condition = true;
        r->condition = -1;
    } else if (shell_is_word(word, "else")) {
        begin_branch(r, 1);
    } else if (shell_is_word(word, "fi")) {
        end_block(r, BLOCK_IF);
    } else if (shell_is_word(word, "for") || shell_is_word(word, "select")) {
        begin_loop(r);
    } else if (shell_is_word(word, "while") || shell_is_word(word, "until")) {
        begin_block(r, BLOCK_LOOP, shell_certainty(r));
        r->in_condition = true;
        r->condition = -1;
        r->until = word->start[0] == 'u';
    } else if (shell_is_word(word, "do") && r->in_condition) {
        r->in_condition = false;
        begin_branch(r, r->condition == r->until ? 0 : -1); /* how often it runs cannot be told */
    } else if (shell_is_word(word, "done")) {
        end_block(r, BLOCK_LOOP);
    } else if (shell_is_word(word, "case")) {
        begin_case(r);
    } else if (shell_is_word(word, "esac")) {
        end_block(r, BLOCK_CASE);
    } else {
        for (size_t i = 0; i < sizeof passed / sizeof passed[0]; i++)
            if (shell_is_word(word, passed[i]))
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

void shell_run_script(struct runner *r)
{
    struct shell_lexer *l = &r->lexer;
    do {
        advance(r);
        struct shell_raw word = {l->start, l->length, l->place};
        if (l->kind == SHELL_WORD) {
            if ((r->n_command == 0 && keyword(r, &word)) || r->n_command == COMMAND_WORDS_MAX)
                continue;
            r->command = memory_grow(r->command, &r->capacity, r->n_command + 1, sizeof *r->command);
            r->command[r->n_command++] = word;
            continue;
        }
        int value = shell_certainty(r) == SKIPPED || !r->n_command ? -1 : shell_run_command(r);
        value = value == COMMAND_RAN ? (r->in_condition ? -1 : 1) : value; /* taken to succeed */
        bool bracket = l->kind == SHELL_OPERATOR && (*l->sign == '(' || *l->sign == ')');
        if (bracket && *l->sign == '(')
            open_bracket(r);
        follow(r, value);
        if (bracket && *l->sign == ')')
            close_bracket(r);
        r->n_command = 0;
        l->target = l->body = NULL;
    } while (l->kind != SHELL_END && !shell_is_full(&r->state, 0));
    for (int i = 0; i < r->n_blocks; i++) /* brackets that nothing closes */
        free(r->blocks[i].kept);
}
