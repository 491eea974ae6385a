#include "cli/options/overrides.h"

#include <stdlib.h>
#include <string.h>

#include "model/base/append.h"
#include "model/base/memory.h"
#include "model/spec/experiment.h"
#include "model/spec/yaml.h"

/* --- what is said --------------------------------------------------------------------------------------------------------- */

/* What an option or --set says of the experiment, and where on the command line it does. */
struct said {
    const struct option_row *row;
    const char *text;        /* the override */
    const char *key, *value; /* its parts; of a layout's keys the long name */
    int place;
    bool whole; /* a mapping; its keys stand behind it, each by itself */
    bool part;  /* such a key: no override */
};

struct all_said {
    struct said *items;
    size_t n, capacity;
};

/* "key=value", or "key=[a, b]" for a list; of a name as it stands "=key=value" (struct experiment_flags). */
static char *override_text(struct invocation *call, const struct option_value *value)
{
    size_t size = strlen(value->row->key) + sizeof "==[]";
    for (int i = 0; i < value->n_texts; i++)
        size += strlen(value->texts[i]) + 2;
    char *text = arena_new(call->texts, size, 1);
    bool list = value->row->type == OPTION_LIST;
    snprintf(text, size, "%s%s=%s", value->row->verbatim ? "=" : "", value->row->key, list ? "[" : "");
    for (int i = 0; i < value->n_texts; i++)
        text_append(text, size, "%s%s", i ? ", " : "", value->texts[i]);
    return list ? text_append(text, size, "]") : text;
}

/* "job.seq_len" of "job.seq_len=4096"; of a layout's keys the long name, "layout.micro_batch" of "layout.mb=1". */
static const char *key_of(struct invocation *call, const char *text)
{
    char *key = arena_copy_text(call->texts, text + (*text == '='));
    key[strcspn(key, "=")] = '\0';
    return experiment_key_long(key, call->texts);
}

static const char *value_of(const char *text)
{
    const char *equals = strchr(text + (*text == '='), '=');
    return equals ? equals + 1 : "";
}

static void say(struct all_said *all, struct said one)
{
    all->items = memory_grow(all->items, &all->capacity, all->n + 1, sizeof *all->items);
    size_t at = all->n++;
    for (; at > 0 && all->items[at - 1].place > one.place; at--)
        all->items[at] = all->items[at - 1];
    all->items[at] = one;
}

/* A value of a mapping, to be compared and shown. */
static const char *node_text(struct invocation *call, const struct yaml_node *node)
{
    if (node->kind == YAML_MAPPING)
        return "{...}";
    bool list = node->kind == YAML_SEQUENCE;
    size_t size = strlen(list ? "" : node->text) + sizeof "['']";
    for (const struct yaml_node *word = list ? node->first : NULL; word; word = word->next)
        size += strlen(word->kind == YAML_SCALAR ? word->text : "{...}") + 2;
    char *text = arena_new(call->texts, size, 1);
    const char *quote = node->quoted && !list ? "'" : "";
    snprintf(text, size, "%s%s%s", list ? "[" : quote, list ? "" : node->text, quote);
    for (const struct yaml_node *word = list ? node->first : NULL; word; word = word->next)
        text_append(text, size, "%s%s", word == node->first ? "" : ", ", word->kind == YAML_SCALAR ? word->text : "{...}");
    return list ? text_append(text, size, "]") : text;
}

/* The keys of a part of the experiment that --set gives at once; false: it gives none so. */
static bool say_parts(struct invocation *call, const struct said *whole, struct all_said *all)
{
    const char *value = whole->value + strspn(whole->value, " \t\n");
    if (*value != '{' || !experiment_key_counts_parts(whole->key))
        return false;
    struct diags quiet = {0}; /* errors are reported when the experiment is read */
    const struct yaml_node *mapping = yaml_value(whole->key, value, call->texts, &quiet);
    diags_free(&quiet);
    if (!mapping || mapping->kind != YAML_MAPPING)
        return false;
    for (const struct yaml_node *child = mapping->first; child; child = child->next) {
        const char *key = experiment_key_under(whole->key, child->key, call->texts);
        say(all, (struct said){whole->row, whole->text, key, node_text(call, child), whole->place, .part = true});
    }
    return true;
}

static void say_value(struct invocation *call, const struct option_row *row, const char *text, int place, struct all_said *all)
{
    struct said one = {row, text, key_of(call, text), value_of(text), place, .whole = false};
    one.whole = !row->key && say_parts(call, &one, all);
    say(all, one);
}

/* --- what that amounts to ------------------------------------------------------------------------------------------------- */

/* "[a, b]" and "a,b" say the same thing, and so do 'a' and a. */
static bool same_words(const char *a, const char *b)
{
    for (;;) {
        a += strspn(a, "[], '");
        b += strspn(b, "[], '");
        if (*a != *b)
            return false;
        if (!*a)
            return true;
        a++;
        b++;
    }
}

/* null takes back what another says. */
static bool says_null(const struct said *said)
{
    static const char blank[] = " \t\n";
    const char *value = said->value + strspn(said->value, blank);
    size_t length = strlen(value);
    while (length > 0 && strchr(blank, value[length - 1]))
        length--;
    bool null = length == 0 || (length == 4 && strncmp(value, "null", 4) == 0) || (length == 1 && *value == '~');
    return null && !said->row->verbatim;
}

/* "+NAME, -NAME": more of a list is beside what was said before. */
static bool is_change(const struct said *said)
{
    char sign = said->value[strspn(said->value, "[ ,")];
    bool changes = said->row->key ? said->row->changes : strcmp(said->key, "job.features") == 0;
    return changes && (sign == '+' || sign == '-');
}

static const char *name_of(struct invocation *call, const struct said *said)
{
    const char *key = said->row->key ? said->row->name : said->key;
    size_t size = strlen(key) + sizeof "--set ";
    char *name = arena_new(call->texts, size, 1);
    snprintf(name, size, "--%s%s", said->row->key ? "" : "set ", key);
    return name;
}

static bool same_key(const struct said *a, const struct said *b)
{
    return !a->whole && !b->whole && strcmp(a->key, b->key) == 0;
}

/* Is it what its key is in the end, changes apart? */
static bool counts(const struct all_said *all, size_t at)
{
    bool last = !all->items[at].whole && !is_change(&all->items[at]);
    for (size_t i = at + 1; i < all->n && last; i++)
        last = !same_key(&all->items[i], &all->items[at]) || is_change(&all->items[i]);
    return last;
}

/* What counts, against what was said before and does not: the option, if there is one, or else the last of these. */
static void tell_of_others(struct invocation *call, const struct all_said *all, size_t at)
{
    const struct said *last = &all->items[at], *other = NULL;
    int times = 1;
    for (size_t i = at; i-- > 0;) {
        const struct said *before = &all->items[i];
        if (!same_key(before, last))
            continue;
        times++;
        if (!same_words(before->value, last->value) && (!other || before->row->key))
            other = before;
    }
    if (!other)
        return;
    const struct said *option = other->row->key ? other : last, *set = other->row->key ? last : other;
    char often[32] = "twice";
    if (times > 2)
        snprintf(often, sizeof often, "%d times", times);
    if (option->row->key)
        diag_note(&call->diags, PLACE_NONE, "--%s and --set %.40s=%.60s set the same key; msim uses the last one, --%s",
                  option->row->name, set->key, set->value, last->row->name);
    else
        diag_note(&call->diags, PLACE_NONE, "--set %s is given %s; msim uses the last value, %.60s, not %.60s", last->key, often,
                  last->value, other->value);
}

/* Two keys for one thing: which is meant? */
static void refuse_both(struct invocation *call, const struct all_said *all, size_t at)
{
    const struct said *last = &all->items[at];
    const char *both, *key = experiment_key_instead(last->key, &both);
    for (size_t i = 0; i < at && key && !says_null(last); i++) {
        const struct said *first = &all->items[i];
        if (strcmp(first->key, key) == 0 && counts(all, i) && !says_null(first))
            diag_error(&call->diags, PLACE_NONE, "%s and %s %s; keep one", name_of(call, first), name_of(call, last), both);
    }
}

void overrides_collect(struct invocation *call)
{
    struct all_said all = {0};
    for (int i = 0; i < call->n_values; i++) {
        const struct option_value *value = &call->values[i];
        if (value->given && value->n_texts && value->row->key)
            say_value(call, value->row, override_text(call, value), value->places[value->n_texts - 1], &all);
        for (int k = 0; strcmp(value->row->name, "set") == 0 && k < value->n_texts; k++)
            say_value(call, value->row, value->texts[k], value->places[k], &all);
    }
    call->overrides = arena_new(call->texts, all.n + 1, sizeof *call->overrides);
    call->n_overrides = 0;
    for (size_t i = 0; i < all.n; i++) {
        if (!all.items[i].part)
            call->overrides[call->n_overrides++] = all.items[i].text;
        if (!counts(&all, i))
            continue;
        tell_of_others(call, &all, i);
        refuse_both(call, &all, i);
    }
    free(all.items);
}
