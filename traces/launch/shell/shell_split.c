/* Command lines within one word: what xpk --command is given. */
#include <string.h>

#include "traces/launch/shell/shell_script.h"

/* What the quotes around a command line kept from one shell is expanded by the other: n bytes that stand so in the script. */
static bool is_kept(const struct shell_state *state, const char *text, size_t n, const char *source)
{
    const struct shell_text *around = shell_text_around(state, source);
    return around && (size_t)(around->end - source) >= n && memchr(text, '$', n) && memcmp(source, text, n) == 0;
}

/* A word of a command line within quotes; what is left of backslashes (--nnodes=\$N) is several segments. */
static void add_inner(struct shell_state *state, struct shell_fields *fields, const struct launch_field *word)
{
    size_t n = strlen(word->text);
    if (word->n_segments == 1 && !word->unknown && is_kept(state, word->text, n, word->segments[0].source)) {
        shell_expand(state, word->segments[0].source, n, fields);
        return;
    }
    struct launch_field whole = shell_slice(state, word, 0, 0);
    for (size_t i = 0; i < word->n_segments; i++) {
        const struct launch_segment *s = &word->segments[i];
        size_t length = (i + 1 < word->n_segments ? s[1].from : n) - s->from;
        struct launch_field part = !s->unknown && is_kept(state, word->text + s->from, length, s->source)
                                       ? shell_expand_one(state, s->source, length)
                                       : shell_slice(state, word, s->from, length);
        whole = shell_join(state, &whole, &part);
    }
    shell_fields_add(fields, word->n_segments > 1 ? &whole : word);
}

void shell_split(struct shell_state *state, struct shell_fields *fields, const struct launch_field *field)
{
    static const char blanks[] = " \t\r\n";
    bool sets = strstr(field->text, ".yml ") || strstr(field->text, ".yaml "); /* what xpk --command is given */
    bool is_line = sets || strstr(field->text, " --") || (strncmp(field->text, "--", 2) == 0 && strpbrk(field->text, blanks));
    if (!is_line) {
        shell_fields_add(fields, field);
        return;
    }
    for (const char *p = field->text; *(p += strspn(p, blanks));) {
        size_t n = strcspn(p, blanks);
        bool quoted = n > 2 && (*p == '\'' || *p == '"') && p[n - 1] == *p;
        struct launch_field part = shell_slice(state, field, (size_t)(p - field->text) + quoted, n - 2 * quoted);
        if (strcmp(part.text, "\\") != 0) /* at the end of a line */
            add_inner(state, fields, &part);
        p += n;
    }
}
