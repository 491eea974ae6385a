/* Which layers have experts, and how many of them compute. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "model/spec/families/hf_internal.h"

/* Layers with experts, as a list says it; msim knows leading dense layers, then one mixture in n. */
struct feeds {
    bool experts[PATTERN_SIZE];
    int n;
    const struct yaml_node *from;
};

static bool is_dense(const char *word)
{
    return strcmp(word, "dense") == 0 || strcmp(word, "0") == 0 || strcmp(word, "mlp") == 0 || strcmp(word, "false") == 0;
}

static void feeds_of_list(const struct yaml_node *list, int layers, struct feeds *to)
{
    to->from = list;
    to->n = layers;
    int i = 0;
    for (const struct yaml_node *t = list->first; t && i < layers; t = t->next)
        to->experts[i++] = t->kind == YAML_SCALAR && !is_dense(t->text);
}

/* "4,5,6" or [4, 5, 6]: the layers with experts, or those without. */
static void feeds_of_numbers(const struct yaml_node *list, int layers, bool experts, struct feeds *to)
{
    to->from = list;
    to->n = layers;
    for (int i = 0; i < layers; i++)
        to->experts[i] = !experts;
    if (list->kind == YAML_SCALAR) {
        for (const char *p = list->text; *p;) {
            char *end;
            long at = strtol(p, &end, 10);
            if (end > p && at >= 0 && at < layers)
                to->experts[at] = experts;
            p = *end ? end + 1 : end;
        }
        return;
    }
    for (const struct yaml_node *t = list->first; t; t = t->next) {
        long at = t->kind == YAML_SCALAR ? strtol(t->text, NULL, 10) : -1;
        if (at >= 0 && at < layers)
            to->experts[at] = experts;
    }
}

/* "`dense` leading ones, then one in `every`, but for the last ones". */
struct rule {
    int dense, every, last;
};

/* How far a rule is from the list: the difference in the number of mixtures first, then layers of the other kind. */
static int distance(const struct feeds *feeds, struct rule rule, int *wrong)
{
    int more = 0;
    *wrong = 0;
    for (int i = 0; i < feeds->n; i++) {
        bool said = i >= rule.dense && i < feeds->n - rule.last && (i - rule.dense + 1) % rule.every == 0;
        more += said - feeds->experts[i];
        *wrong += said != feeds->experts[i];
    }
    return abs(more) * (feeds->n + 1) + *wrong;
}

static int last_dense(const struct feeds *feeds)
{
    int last = 0;
    while (last < feeds->n && !feeds->experts[feeds->n - 1 - last])
        last++;
    return last;
}

static struct rule rule_of(const struct feeds *feeds, int *wrong)
{
    int first = 0, last = last_dense(feeds), least = INT_MAX;
    struct rule best = {feeds->n, 1, 0};
    *wrong = 0;
    while (first < feeds->n && !feeds->experts[first])
        first++;
    for (int every = 1; every <= 8 && first < feeds->n; every++)
        for (int behind = 0; behind <= last; behind += last > 0 ? last : 1) {
            struct rule rule = {first - (every - 1) > 0 ? first - (every - 1) : 0, every, behind};
            int off, far = distance(feeds, rule, &off);
            if (far < least)
                least = far, best = rule, *wrong = off;
        }
    return best;
}

static void set_feeds(struct hf_reading *r, const struct feeds *feeds)
{
    int wrong;
    struct rule rule = rule_of(feeds, &wrong);
    if (wrong > 0)
        diag_warning(
            r->diags, feeds->from->at,
            "%s: %d of %d layers are of the other kind; msim knows leading dense layers (%d here), then one mixture in n "
            "(%d here)",
            hf_name(feeds->from), wrong, feeds->n, rule.dense, rule.every);
    hf_set_integer(r, "moe.first_dense_layers", rule.dense, feeds->from);
    hf_set_integer(r, "moe.every", rule.every, feeds->from);
    if (rule.last > 0)
        hf_set_integer(r, "moe.last_dense_layers", rule.last, feeds->from);
}

/* mlp_only_layers goes with a step between mixtures, which counts from the first layer of all. */
static void without_layers(struct hf_reading *r, const struct yaml_node *dense, int layers)
{
    struct feeds feeds = {0};
    int64_t step = hf_integer(r->entry, "moe.every");
    feeds_of_numbers(dense, layers, false, &feeds);
    for (int i = 0; i < layers && step > 1; i++)
        feeds.experts[i] = feeds.experts[i] && (i + 1) % step == 0;
    set_feeds(r, &feeds);
}

/* Of a token's choices those that compute, on average: the router spreads them over experts and choices that compute nothing. */
static void zero_experts(struct hf_reading *r)
{
    const struct yaml_node *chosen = hf_find(r->entry, "moe.top_k");
    int64_t zero = hf_integer(r->entry, "moe.zero_experts"), experts = hf_integer(r->entry, "moe.experts");
    if (!chosen || chosen->kind != YAML_SCALAR || zero < 1 || experts < 1 || zero + experts > 1 << 20)
        return;
    int64_t all = (int64_t)hf_number(chosen), some = (2 * all * experts + experts + zero) / (2 * (experts + zero));
    diag_note(r->diags, chosen->at, "%s: %lld of %s computed on average, because %lld of %lld choices compute nothing",
              hf_name(chosen), (long long)some, chosen->text, (long long)zero, (long long)(experts + zero));
    hf_set_integer(r, "moe.top_k", some, chosen);
}

/* A mixture of no experts is its shared part, and one whose layers are all without experts a dense model, where their size is
 * known. */
static void dense_model(struct hf_reading *r)
{
    const struct yaml_node *experts = hf_find(r->entry, "moe.experts"), *shared = hf_find(r->entry, "moe.shared_ffn");
    const struct yaml_node *leading = hf_find(r->entry, "moe.first_dense_layers");
    int64_t layers = hf_integer(r->entry, "layers");
    const struct yaml_node *pattern = hf_find(r->entry, "layer_pattern");
    bool nowhere = pattern && pattern->kind == YAML_SCALAR && !strpbrk(pattern->text, "Eamp");
    if (nowhere) {
        hf_remove(r, "moe");
        return;
    }
    if (experts && !hf_is_neutral(experts)) {
        bool none = leading && layers > 0 && hf_integer(r->entry, "moe.first_dense_layers") >= layers;
        if (!none || !hf_find(r->entry, "ffn_hidden"))
            return;
        diag_note(r->diags, leading->at, "%s: no layer has experts; treated as a dense model", hf_name(leading));
    } else if (shared && !hf_is_neutral(shared) && !hf_find(r->entry, "ffn_hidden")) {
        hf_set(r, "ffn_hidden", shared, hf_name(shared));
    }
    hf_remove(r, "moe");
}

static void last_mixture(struct hf_reading *r, int layers)
{
    const struct yaml_node *last = hf_take(r, "@last_mixture");
    long at = last && last->kind == YAML_SCALAR ? strtol(last->text, NULL, 10) : -1;
    if (at >= 0 && at < layers - 1)
        diag_warning(r->diags, last->at, "%s: not modelled; layers behind %ld have experts too", hf_name(last), at);
}

static void shared_part(struct hf_reading *r)
{
    const struct yaml_node *used = hf_take(r, "@use_shared"), *experts = hf_take(r, "@use_experts");
    if (used && hf_is_neutral(used))
        hf_remove(r, "moe.shared_experts");
    if (experts && hf_is_neutral(experts))
        hf_remove(r, "moe.experts");
}

/* One group of experts is none. */
static void groups(struct hf_reading *r)
{
    if (hf_integer(r->entry, "moe.groups") > 1)
        return;
    hf_remove(r, "moe.groups");
    hf_remove(r, "moe.top_groups");
}

void hf_mixture(struct hf_reading *r)
{
    struct feeds feeds = {0};
    const struct yaml_node *list = hf_take(r, "@feeds"), *often = hf_take(r, "@moe_freq"), *at = hf_take(r, "@mixture_at"),
                           *dense = hf_take(r, "@dense_at");
    int layers = (int)hf_integer(r->entry, "layers");
    last_mixture(r, layers);
    shared_part(r);
    if (!hf_find(r->entry, "moe"))
        return;
    list = often && often->kind == YAML_SEQUENCE ? often : list;
    if (often && often->kind == YAML_SCALAR)
        hf_set(r, "moe.every", often, hf_name(often));
    if (layers < 1 || layers >= PATTERN_SIZE)
        return;
    if (list && list->first)
        feeds_of_list(list, layers, &feeds), set_feeds(r, &feeds);
    else if (at && (at->first || at->kind == YAML_SCALAR))
        feeds_of_numbers(at, layers, true, &feeds), set_feeds(r, &feeds);
    else if (dense && dense->first)
        without_layers(r, dense, layers);
    groups(r);
    zero_experts(r);
    dense_model(r);
}
