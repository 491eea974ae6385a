#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "traces/launch/shell/shell_state.h"

/* Behind a quoted text that begins at `p`; NULL when it never ends. */
static const char *quoted_end(const char *p, const char *end)
{
    char quote = *p++;
    for (; p < end && *p != quote; p++)
        if (*p == '\\' && quote == '"')
            p++;
    return p < end ? p + 1 : NULL;
}

/* Behind what an opening bracket, of which *p is the first, closes again; NULL when nothing does. */
static const char *bracket_end(const char *p, const char *end)
{
    char close = *p == '(' ? ')' : '}', open = *p;
    int depth = 0;
    while (p && p < end) {
        if (*p == '\'' || *p == '"') {
            p = quoted_end(p, end);
            continue;
        }
        if (*p == '\\')
            p++;
        else if (*p == open)
            depth++;
        else if (*p == close && --depth == 0)
            return p + 1;
        p++;
    }
    return NULL;
}

/* Behind the word that begins at p; NULL: a quotation or a bracket in it is not closed. */
static const char *word_end(const char *p, const char *end)
{
    while (p && p < end && !strchr(" \t\r\n;&|<>()", *p)) {
        if (*p == '\\')
            p += p + 1 < end ? 2 : 1;
        else if (*p == '\'' || *p == '"' || *p == '`')
            p = quoted_end(p, end);
        else if (*p == '$' && p + 1 < end && (p[1] == '(' || p[1] == '{'))
            p = bracket_end(p + 1, end);
        else
            p++;
    }
    return p;
}

static void count_lines(struct shell_lexer *l, const char *from, const char *to)
{
    for (; from < to; from++)
        if (*from == '\n') {
            l->line++;
            l->line_start = from + 1;
        }
}

/* Blanks, comments and continued lines. */
static void skip_space(struct shell_lexer *l)
{
    for (;;) {
        if (l->at < l->end && (*l->at == ' ' || *l->at == '\t' || *l->at == '\r')) {
            l->at++;
        } else if (l->at + 1 < l->end && l->at[0] == '\\' && (l->at[1] == '\n' || l->at[1] == '\r')) {
            const char *from = l->at;
            l->at += l->at[1] == '\r' && l->at + 2 < l->end && l->at[2] == '\n' ? 3 : 2;
            count_lines(l, from, l->at);
        } else if (l->at < l->end && *l->at == '#') {
            while (l->at < l->end && *l->at != '\n')
                l->at++;
        } else {
            return;
        }
    }
}

/* Lines of here-documents are skipped: up to the one that is their end. */
static void skip_heredocs(struct shell_lexer *l)
{
    for (int i = 0; i < l->n_heredocs; i++) {
        size_t n = strlen(l->heredocs[i]);
        bool ended = false;
        l->body = l->body_end = l->at;
        while (l->at < l->end && !ended) {
            const char *line = l->at, *stop = memchr(line, '\n', (size_t)(l->end - line));
            stop = stop ? stop : l->end;
            const char *body = line;
            while (body < stop && *body == '\t')
                body++;
            ended = (size_t)(stop - body) == n && memcmp(body, l->heredocs[i], n) == 0;
            l->at = stop < l->end ? stop + 1 : stop;
            l->body_end = ended ? line : l->at;
            count_lines(l, line, l->at);
        }
    }
    l->n_heredocs = 0;
}

/* < > >> 2> &> and where they lead; << keeps the word at which a here-document ends. */
static bool skip_redirection(struct shell_lexer *l)
{
    const char *p = l->at;
    while (p < l->end && isdigit((unsigned char)*p))
        p++;
    if (p < l->end && *p == '&' && p + 1 < l->end && p[1] == '>')
        p++;
    if (p >= l->end || (*p != '<' && *p != '>'))
        return false;
    const char *sign = p;
    while (p < l->end && strchr("<>&|-", *p))
        p++;
    bool here = p - sign >= 2 && sign[0] == '<' && sign[1] == '<' && !(p - sign >= 3 && sign[2] == '<');
    while (p < l->end && (*p == ' ' || *p == '\t'))
        p++;
    const char *stop = word_end(p, l->end);
    stop = stop ? stop : l->end;
    bool duplicates = memchr(sign, '&', (size_t)(p - sign)) != NULL, errors = sign > l->at && sign[-1] != '1' && sign[-1] != '&';
    if (*sign == '>' && !duplicates && !errors) {
        l->target = p;
        l->target_end = stop;
        l->appends = sign + 1 < l->end && sign[1] == '>';
    }
    if (here && l->n_heredocs < 4) {
        char *word = l->heredocs[l->n_heredocs++];
        size_t n = 0;
        l->body_bare = p - sign >= 3 && sign[2] == '-';
        l->body_kept = p < stop && strchr("\"'\\", *p);
        for (; p < stop && n + 1 < sizeof l->heredocs[0]; p++)
            if (!strchr("\"'\\", *p))
                word[n++] = *p;
        word[n] = '\0';
    }
    count_lines(l, l->at, stop);
    l->at = stop;
    return true;
}

static void take_operator(struct shell_lexer *l)
{
    l->kind = SHELL_OPERATOR;
    l->sign[0] = *l->at;
    bool twice = l->at + 1 < l->end && l->at[1] == l->at[0] && strchr("&|;", *l->at);
    l->sign[1] = twice ? *l->at : '\0';
    l->sign[2] = '\0';
    const char *from = l->at;
    l->at += twice ? 2 : 1;
    count_lines(l, from, l->at);
    if (*from == '\n' && l->n_heredocs)
        skip_heredocs(l);
}

/* NAME=( or NAME+=( : the word goes on to the parenthesis that closes it. */
static bool is_array(const char *start, const char *at)
{
    if (at - start < 2 || at[-1] != '=')
        return false;
    for (const char *p = start; p < at - 1; p++)
        if (!isalnum((unsigned char)*p) && *p != '_' && !(*p == '+' && p == at - 2))
            return false;
    return !isdigit((unsigned char)*start);
}

void shell_next(struct shell_lexer *l, struct diags *diags)
{
    do
        skip_space(l);
    while (l->at < l->end && skip_redirection(l));
    l->place = (struct place){l->name, l->line, (int)(l->at - l->line_start) + 1};
    l->kind = SHELL_END;
    if (l->bad || l->at >= l->end)
        return;
    if (strchr("\n;&|()", *l->at)) {
        take_operator(l);
        return;
    }
    l->kind = SHELL_WORD;
    l->start = l->at;
    const char *stop = word_end(l->at, l->end);
    if (stop && stop < l->end && *stop == '(' && is_array(l->start, stop))
        stop = bracket_end(stop, l->end);
    if (!stop || stop == l->at) {
        diag_error(diags, l->place, "a quote or bracket that begins here never ends");
        l->bad = true;
        l->kind = SHELL_END;
        return;
    }
    count_lines(l, l->at, stop);
    l->at = stop;
    l->length = (size_t)(stop - l->start);
}

bool shell_pattern(struct shell_lexer *l)
{
    do
        skip_space(l);
    while (l->at < l->end && *l->at == '\n' && (take_operator(l), true));
    l->start = l->at;
    l->place = (struct place){l->name, l->line, (int)(l->at - l->line_start) + 1};
    if (l->end - l->at >= 4 && memcmp(l->at, "esac", 4) == 0)
        return false;
    while (l->at < l->end && *l->at != ')' && *l->at != '\n')
        l->at++;
    l->length = (size_t)(l->at - l->start);
    if (l->at >= l->end || *l->at == '\n')
        return false;
    l->at++;
    return true;
}
