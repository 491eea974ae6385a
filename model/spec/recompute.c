#include "model/spec/recompute.h"

#include <stdio.h>
#include <string.h>

#include "model/base/append.h"
#include "model/base/units.h"

#define FIRST_MODULE_BIT 2
#define ALL_MODULES      (((1 << N_RECOMPUTE_MODULES) - 1) << FIRST_MODULE_BIT)

const char *const recompute_words[N_RECOMPUTES + N_RECOMPUTE_MODULES + 1] = {
    "none", "selective", "full", "core_attn", "layernorm", "mla_up_proj", "mlp_act", "moe_act", "mlp", "shared_experts", "moe"};
/* By module; both activations are one. */
static const char *const BRIEF[N_RECOMPUTE_MODULES] = {"attn", "norm", "mla", "act", "act", "mlp", "shared", "moe"};

bool recompute_is_known(int recompute)
{
    return recompute >= 0 && (recompute < N_RECOMPUTES || (recompute & ~ALL_MODULES) == 0);
}

/* The number of the word of `length` characters; -1: none. */
static int word_of(const char *text, size_t length)
{
    for (int i = 0; recompute_words[i]; i++)
        if (strlen(recompute_words[i]) == length && memcmp(recompute_words[i], text, length) == 0)
            return i;
    return -1;
}

/* "'act' is short for mlp_act, moe_act": tables print such words; false when it is none of them. */
static bool explain_brief(const char *item, char *why, size_t size)
{
    bool known = false;
    for (int i = 0; i < N_RECOMPUTE_MODULES; i++) {
        if (strcmp(item, BRIEF[i]) != 0)
            continue;
        if (!known)
            snprintf(why, size, "'%s' is short for ", item);
        text_append(why, size, "%s%s", known ? ", " : "", recompute_words[N_RECOMPUTES + i]);
        known = true;
    }
    return known;
}

/* Of the first `length` characters of a text, which are none of the modules. */
static void explain(const char *text, size_t length, char *why, size_t size)
{
    char item[48], hint[160];
    snprintf(item, sizeof item, "%.*s", (int)(length < sizeof item ? length : sizeof item - 1), text);
    if (word_of(text, length) >= 0) {
        snprintf(why, size, "'%s' stands alone", item);
        return;
    }
    if (explain_brief(item, why, size))
        return;
    snprintf(why, size, "'%s' is unknown; %s", item,
             name_hint(item, recompute_words, N_RECOMPUTES + N_RECOMPUTE_MODULES,
                       "known are none, selective, full, and joined by '+' core_attn, layernorm, mla_up_proj, mlp_act, moe_act, "
                       "mlp, shared_experts, moe",
                       hint, sizeof hint));
}

int recompute_parse(const char *text, char *why, size_t size)
{
    static const char prefix[] = "selective:";
    bool listed = strncmp(text, prefix, sizeof prefix - 1) == 0;
    const char *item = listed ? text + sizeof prefix - 1 : text;
    int word = word_of(item, strlen(item)), modules = 0;
    if (!listed && word >= 0 && word < N_RECOMPUTES)
        return word;
    for (;;) {
        size_t length = strcspn(item, "+");
        word = word_of(item, length);
        if (word < N_RECOMPUTES) {
            if (why)
                explain(item, length, why, size);
            return -1;
        }
        modules |= 1 << (word - N_RECOMPUTES + FIRST_MODULE_BIT);
        if (item[length] == '\0')
            return modules;
        item += length + 1;
    }
}

char *recompute_format(enum recompute recompute, char *buffer, size_t size)
{
    snprintf(buffer, size, "%s", (int)recompute < N_RECOMPUTES ? recompute_words[recompute] : "");
    for (int i = 0; i < N_RECOMPUTE_MODULES; i++)
        if ((int)recompute >= N_RECOMPUTES && (int)recompute & 1 << (i + FIRST_MODULE_BIT))
            text_append(buffer, size, "%s%s", *buffer ? "+" : "", recompute_words[N_RECOMPUTES + i]);
    return buffer;
}

char *recompute_brief(enum recompute recompute, char *buffer, size_t size)
{
    if ((int)recompute < N_RECOMPUTES)
        return recompute_format(recompute, buffer, size);
    const char *last = "";
    *buffer = '\0';
    for (int i = 0; i < N_RECOMPUTE_MODULES; i++)
        if ((int)recompute & 1 << (i + FIRST_MODULE_BIT) && strcmp(last, BRIEF[i]) != 0) {
            last = BRIEF[i];
            text_append(buffer, size, "%s%s", *buffer ? "+" : "", last);
        }
    return buffer;
}
