/* Python's assignments to fields: what each value is, where it stands, and what is left out because nobody runs the program. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/suite.h"
#include "traces/launch/frameworks/framework_keys.h"
#include "traces/launch/python/python_keys.h"

static struct yaml_node *parse(const char *text, struct arena *arena, struct diags *diags)
{
    *arena = (struct arena){0};
    *diags = (struct diags){0};
    return python_parse("recipe.py", text, strlen(text), arena, diags);
}

/* A field's value: a scalar's text, "null" of None, of a list the texts between blanks, "{}" of a mapping. */
static void describe(const struct yaml_node *node, char *text, size_t size)
{
    size_t n = 0;
    text[0] = '\0';
    if (!node)
        snprintf(text, size, "nothing");
    else if (node->kind == YAML_SCALAR)
        snprintf(text, size, "%s", node->text);
    else if (node->kind == YAML_MAPPING)
        snprintf(text, size, "{}");
    for (const struct yaml_node *item = node && node->kind == YAML_SEQUENCE ? node->first : NULL; item; item = item->next)
        n += (size_t)snprintf(text + n, size - n, "%s%s", n ? " " : "", item->kind == YAML_SCALAR ? item->text : "{}");
}

static const struct {
    const char *text, *path, *value;
} said[] = {
    {"cfg.model.tp = 8", "model.tp", "8"},
    {"cfg.model.tp=8 # eight\n", "model.tp", "8"},
    {"cfg.a = 8_192", "a", "8192"},
    {"cfg.a = -1.5e-4", "a", "-1.5e-4"},
    {"cfg.a = True", "a", "True"},
    {"cfg.a = None", "a", "null"},
    {"cfg.a = 'x = 1 # no comment'", "a", "x = 1 # no comment"},
    {"cfg.a = \"\"", "a", ""},
    {"cfg.a = torch.bfloat16", "a", "torch.bfloat16"},
    {"cfg.a = [\"core_attn\",  # first\n   'mlp',\n]\n", "a", "core_attn mlp"},
    {"cfg.a = []", "a", ""},
    {"cfg.a = [4, 2]", "a", "4 2"},
    {"cfg.a = [0]*3+[1]*29", "a", "[0]*3+[1]*29"},
    {"cfg.a = ([0]*3 + [1]*29)", "a", "([0]*3 + [1]*29)"},
    {"cfg.a = (4096, 0)", "a", "(4096, 0)"},
    {"cfg.a = Overlap(tp=True,\n    depth=2)", "a.depth", "2"},
    {"cfg.a = Overlap(tp=True)", "a._target_", "Overlap"},
    {"cfg.a = get_config(\"bf16_mixed\")", "a._args_", "bf16_mixed"},
    {"cfg.a = run.Config(Overlap, tp=True)", "a._target_", "Overlap"},
    {"cfg.a.append(run.Config(Overlap, tp=True))\ncfg.a.append(Other(pp=2))", "a.pp", "2"},
    {"cfg.a = Outer(inner=Inner(x=3))", "a.inner.x", "3"},
    {"cfg.a.b = 1\ncfg.a.b = 2", "a.b", "2"}, /* the last counts */
    {"cfg.a.b = 1\ncfg.a = None", "a", "null"},
    {"cfg.a = None\ncfg.a.b = 1", "a.b", "1"},
    {"def f():\n    cfg.a = 1\n", "a", "1"},
    {"if __name__ == '__main__':\n    cfg.a = 1\n", "a", "1"},
    {"if fast:\n    pass\ncfg.a = 1\n", "a", "1"},
    {"x = 1\nimport a.b\ncfg.f(a=3)\nassert cfg.a == 2\n", "a", "nothing"},
    {"\"\"\"\ncfg.a = 1\n\"\"\"\n", "a", "nothing"},
    {"# cfg.a = 1", "a", "nothing"},
    {"f(\ncfg.a\n= 1)\n", "a", "nothing"}, /* of a statement that goes on */
    {"cfg.a = \\\n    1\n", "a", "1"},
    /* statements */
    {"x = 1; cfg.a = 2; cfg.b = 3", "b", "3"},
    {"cfg.a = 'x;y'; cfg.b = 3 # ; cfg.b = 4\n", "b", "3"},
    {"cfg.a: int = 4", "a", "4"},
    {"cfg.a: Dict[str, int]\ncfg.b = 1", "a", "nothing"},
    {"if __name__ == '__main__': cfg.a = 4; cfg.b = 5\n", "b", "5"},
    {"def f(): cfg.a = 4\n", "a", "4"},
    {"cfg[\"a\"][\"b\"] = 4", "a.b", "4"},
    {"cfg['a'].b = 4", "a.b", "4"},
    {"cfg.a['b'] = 4", "a.b", "4"},
    {"setattr(cfg.a, \"b\", 4)", "a.b", "4"},
    {"setattr(cfg, 'b', [1,\n 2])", "b", "1 2"},
    {"cfg.a.x, cfg.a.y = 4, 2", "a.y", "2"},
    {"(cfg.a.x, cfg.a.y) = (4, 2)", "a.x", "4"},
    {"cfg.x, cfg.y = [1, 2], None", "x", "1 2"},
    {"cfg.x = 1; cfg.y = 2\ncfg.x, cfg.y = cfg.y, cfg.x", "x", "2"},
    {"cfg.x = cfg.y = 4", "x", "4"},
    {"cfg.x = y = cfg.z = 4", "z", "4"},
    {"match = 4\ncfg.x = match", "x", "4"},
    /* aliases */
    {"m = cfg.model\nm.layers = 4", "model.layers", "4"},
    {"m = cfg.model; c = m.config\nc['layers'] = 4", "model.config.layers", "4"},
    {"m = cfg['model']\nm.layers = 4", "model.layers", "4"},
    {"c = cfg\nc.a.b = 4", "a.b", "4"},
    {"m, n = cfg.model, (4)\nm.layers = n", "model.layers", "4"},
    {"(m, t) = (cfg.model, F(x=1))\nm.t = t; t.y = 2", "model.t.y", "2"},
    {"m = cfg.model if x else y\ncfg.a = 1", "a", "1"},
    {"def m(x):\n    return Provider(layers=4)\ncfg.model = m(2)\ncfg.model.width = 5", "model.layers", "4"},
    {"def f():\n    return Container(model=M(layers=4), train=T(mb=2))\n", "model.layers", "4"},
    {"def f():\n    return Container(model=M(layers=4), train=T(mb=2))\nc = f(); c.model.layers = 5\n", "model.layers", "5"},
    {"cfg.l = [X(a=1)]\nl = cfg.l\nl.append(Y(b=2))", "l", "{}"},
    {"m = Provider(layers=4)\ncfg.model = m\nm.width = 5", "model.width", "5"},
    {"m = Provider(layers=4)\nm.width = 5\ncfg = Container(model=m, train=Train(mb=2))\nm.width = 6", "model.width", "6"},
    {"def f():\n    r = g()\n    r.a.b = 1\n    return r\nq = f()\nq.a.c = 2", "a.c", "2"},
    /* dictionaries */
    {"cfg.a = {'b': 4, \"c\": {'d': 5}}", "a.c.d", "5"},
    {"cfg.a = dict(b=4)", "a.b", "4"},
    /* whole numbers */
    {"cfg.a = (2)", "a", "2"},
    {"cfg.a = 4 + 4", "a", "8"},
    {"cfg.a = 2 * 8", "a", "16"},
    {"cfg.a = 2 + 3 * (4 - 1)", "a", "11"},
    {"cfg.a = 2 ** 3 ** 2", "a", "512"},
    {"cfg.a = -7 // 2", "a", "-4"},
    {"cfg.a = -7 % 4", "a", "1"},
    {"cfg.a = (4 *\n  8)", "a", "32"},
    {"cfg.a = -(2 + 1)", "a", "-3"},
    {"cfg.a = [2 * 4, (3)]", "a", "8 3"},
    {"cfg.a = F(b=2 * 4)", "a.b", "8"},
    {"cfg.a = 1e-4", "a", "1e-4"},
    {"cfg.a = 8-4", "a", "4"},
    /* names */
    {"tp = 4\ncfg.a = tp", "a", "4"},
    {"tp, pp = 4, 2\ncfg.a = tp * pp", "a", "8"},
    {"tp: int = 4\ncfg.a = 2 * tp", "a", "8"},
    {"name = 'x'\ncfg.a = name", "a", "x"},
    {"parts = [1, 2]\ncfg.a = parts", "a", "1 2"},
    {"cfg.a.b = 8\ncfg.c = cfg.a.b", "c", "8"},
    {"cfg.a = AttnBackend.flash", "a", "AttnBackend.flash"},
    {"import enums as e\ncfg.a = e.flash", "a", "e.flash"},
    {"tp = 4\ndef f(tp):\n    pass\ncfg.a = tp", "a", "4"}, /* a parameter ends with its function */
    {"tp = 4\ndef f():\n    tp = 8\n    cfg.b = tp\ncfg.a = tp", "a", "4"},
    {"tp = 4\ndef f():\n    tp = 8\n    cfg.b = tp\ncfg.a = tp", "b", "8"},
    {"tp = 4\nclass A(B, x=2):\n    tp = 8\ncfg.a = tp", "a", "4"},
    {"def f():\n    return 4 if x else 2\n    cfg.b = 1\ncfg.a = 1", "b", "1"},
    {"from . import x\nfrom .y import (z)\ncfg.a = 1", "a", "1"},
    {"async def f():\n    cfg.a = 1", "a", "1"},
    {"import torch\ntorch.backends.cudnn.benchmark = x\n", "backends", "nothing"},
};

START_TEST(values_are_what_they_say)
{
    for (size_t i = 0; i < sizeof said / sizeof said[0]; i++) {
        struct arena arena;
        struct diags diags;
        char text[160];
        const struct yaml_node *root = parse(said[i].text, &arena, &diags);
        describe(framework_find(root, said[i].path), text, sizeof text);
        ck_assert_msg(strcmp(text, said[i].value) == 0, "%s: %s is %s", said[i].text, said[i].path, text);
        ck_assert_msg(diags.n_items == 0, "%s: %s", said[i].text, diags.n_items ? diags.items[0].text : "");
        diags_free(&diags);
        arena_free(&arena);
    }
}
END_TEST

/* Each is reported once, at its place, and nothing else is lost. */
static const struct {
    const char *text, *told;
    int line, column;
} computed[] = {
    {"cfg.a = tp", "cfg.a is left out: the program computes its value", 1, 1},
    {"cfg.a = 9 / 3", "cfg.a is left out: the program computes its value", 1, 1}, /* 3.0 */
    {"cfg.a = 2 * 0.5", "cfg.a is left out: the program computes its value", 1, 1},
    {"cfg.a = 2 ** -1", "cfg.a is left out: the program computes its value", 1, 1},
    {"cfg.a = 1 // 0", "cfg.a is left out: the program computes its value", 1, 1},
    {"cfg.a = 10 ** 19", "cfg.a is left out: the program computes its value", 1, 1},
    {"cfg.a = 4 if x else 2", "cfg.a is left out: the program computes its value", 1, 1},
    {"cfg.a = args.gbs", "cfg.a is left out: the program computes its value", 1, 1},
    {"args = parse()\ncfg.a = args.gbs * 2", "cfg.a is left out: the program computes its value", 2, 1},
    {"cfg.a = FLAGS.gbs", "cfg.a is left out: the program computes its value", 1, 1},
    {"cfg.a = int(args.tp)", "cfg.a is left out: the program computes its value", 1, 1},
    {"cfg.a = max(4, 2)", "cfg.a is left out: the program computes its value", 1, 1},
    {"cfg.a = os.path.join('x', 'y')", "cfg.a is left out: the program computes its value", 1, 1},
    {"cfg.a = 4\ncfg.a = x", "cfg.a is left out: the program computes its value", 2, 1},
    {"tp = 4\ntp += 1\ncfg.a = tp", "cfg.a is left out: the program computes its value", 3, 1},
    {"tp = 4\nif x: tp = 8\ncfg.a = tp", "cfg.a is left out: the program computes its value", 3, 1},
    {"tp = 4\nfor tp in x:\n    pass\ncfg.a = tp", "cfg.a is left out: the program computes its value", 4, 1},
    {"tp = 4\nfrom x import tp\ncfg.a = tp", "cfg.a is left out: the program computes its value", 3, 1},
    {"tp = 4\ndef f():\n    global tp\n    tp = 8\ncfg.a = tp", "cfg.a is left out: the program computes its value", 5, 1},
    {"tp = 4\ndef f(x, tp=2):\n    cfg.a = tp\n", "cfg.a is left out: the program computes its value", 3, 5},
    {"x = 1; cfg.a = y; z = 2", "cfg.a is left out: the program computes its value", 1, 8},
    {"cfg.a: int = y", "cfg.a is left out: the program computes its value", 1, 1},
    {"cfg.a, *x = f()", "cfg.a is left out: the program computes its value", 1, 1},
    {"x, cfg.a = f()", "cfg.a is left out: the program computes its value", 1, 4},
    {"x, cfg.a = 1, 2, 3", "cfg.a is left out: the program computes its value", 1, 4},
    {"x, cfg.a = 1, y", "cfg.a is left out: the program computes its value", 1, 4},
    {"x = cfg.a = y", "cfg.a is left out: the program computes its value", 1, 5},
    {"setattr(cfg, 'a', f(x))", "cfg.a is left out: the program computes its value", 1, 9},
    {"cfg.c = dict(4)", "cfg.c is left out: the program computes its value", 1, 1},
    {"m = F(x=1)\nm.y = 2\nm.z = m\ncfg.c = 1", "m.z is left out: the program computes its value", 3, 1},
    {"m = F(x=1)\nm.y = G(z=[m])\n", "m.y is left out: the program computes its value", 2, 1},
    {"m = F(x=1)\ncfg.c = m\ncfg.d = m\n", "cfg.d is left out: the program computes its value", 3, 1},
    {"m = F(x=1)\nn = G(y=m)\nm.z = n\n", "m.z is left out: the program computes its value", 3, 1},
    {"setattr(cfg.c, key, 4)", "a field of cfg.c is left out: the program computes the name of the field", 1, 9},
    {"cfg.c[key] = 4", "cfg.c is left out: the program computes the name of the field", 1, 1},
    {"cfg.c.update({'x': 4})", "cfg.c is left out: msim does not read how this changes it", 1, 1},
    {"if fast: cfg.a = 1", "cfg.a is left out: it is not known whether the program reaches this", 1, 10},
    {"if fast: x(); cfg.a = 1", "cfg.a is left out: it is not known whether the program reaches this", 1, 15},
    {"else: cfg.a = 1", "cfg.a is left out: it is not known whether the program reaches this", 1, 7},
    {"\ncfg.a = [tp, 2]", "cfg.a is left out: the program computes its value", 2, 1},
    {"cfg.a = f'x{y}'", "cfg.a is left out: the program computes its value", 1, 1},
    {"cfg.a = 'x' 'y'", "cfg.a is left out: the program computes its value", 1, 1},
    {"cfg.a = \"\\n\"", "cfg.a is left out: the program computes its value", 1, 1},
    {"cfg.a = 'open\n", "cfg.a is left out: the program computes its value", 1, 1},
    {"cfg.c = Overlap(tp=x,\n    cfg=1,\n)", "cfg.c.tp is left out: the program computes its value", 1, 17},
    {"cfg.c = Overlap(cfg=1,\n  **more)", "**more of cfg.c is left out: the program computes its value", 2, 3},
    {"cfg.a = Overlap(x, tp=1)", "cfg.a is left out: the program computes its value", 1, 1},
    {"cfg.a += 1", "cfg.a is left out: the program computes its value", 1, 1},
    {"if fast:\n    cfg.a = 1\n", "cfg.a is left out: it is not known whether the program reaches this", 2, 5},
    {"if fast:\n    if x:\n        y()\n    cfg.a = 1\n", "cfg.a is left out: it is not known whether the program reaches this",
     4, 5},
    {"for i in x:\n    cfg.a = 1\n", "cfg.a is left out: it is not known whether the program reaches this", 2, 5},
    {"if x:\n  y()\nelse:\n  cfg.a = 1\n", "cfg.a is left out: it is not known whether the program reaches this", 4, 3},
};

START_TEST(what_is_computed_is_left_out)
{
    for (size_t i = 0; i < sizeof computed / sizeof computed[0]; i++) {
        struct arena arena;
        struct diags diags;
        char text[400], value[160];
        snprintf(text, sizeof text, "%s\ncfg.b = 7\n", computed[i].text);
        const struct yaml_node *root = parse(text, &arena, &diags);
        ck_assert_msg(diags.n_items == 1 && diags.n_errors == 0, "%s: %zu", text, diags.n_items);
        ck_assert_msg(strstr(diags.items[0].text, computed[i].told), "%s", diags.items[0].text);
        ck_assert_int_eq(diags.items[0].line, computed[i].line);
        ck_assert_int_eq(diags.items[0].column, computed[i].column);
        ck_assert_msg(!framework_find(root, "a"), "%s", text);
        describe(framework_find(root, "b"), value, sizeof value);
        ck_assert_msg(strcmp(value, "7") == 0, "%s: %s", text, value);
        diags_free(&diags);
        arena_free(&arena);
    }
}
END_TEST

/* Of several recipes one is taken, with nothing of the others; what is from outside is that one's where there is no other. */
static const struct {
    const char *text, *recipe, *fields; /* of a.x, a.y and b */
    const char *told[2];
    int lines[2];
} recipes[] = {
    {"a = x_pretrain_config()\nb = y_pretrain_config()\na.a.x = 1\nb.a.x = 2\nb.a.y = 3\n",
     "y_pretrain_config",
     "2 3 nothing",
     {"of 2 recipes msim takes this one, b,", "a is left out: of several recipes, msim takes that of line 2"},
     {2, 1}},
    {"def f():\n  r = x_pretrain_config()\n  r.a.x = 1\n  return r\ndef g():\n  r = y_pretrain_config()\n  r.a.y = 2\n",
     "x_pretrain_config",
     "1 nothing nothing",
     {"of 2 recipes msim takes this one, r,", "r is left out: of several recipes, msim takes that of line 2"},
     {2, 6}},
    {"r = x_pretrain_config()\nr.a.x = 1\nr = y_pretrain_config()\nr.b = 2\nr.a.y = 3\n",
     "y_pretrain_config",
     "nothing 3 2",
     {"of 2 recipes msim takes this one, r,", "r is left out: of several recipes, msim takes that of line 3"},
     {3, 1}},
    {"r = x_pretrain_config()\nq = y_pretrain_config()\ndef f(c):\n  c.b = 1\n",
     "x_pretrain_config",
     "nothing nothing nothing",
     {"c is left out: it is not known which of 2 recipes it changes", "q is left out"},
     {4, 2}},
    {"def f(n):\n  return x_pretrain_config(nodes=n)\nr = f(2)\nr.a.x = 1\ndef g(c):\n  c.a.y = 2\n  c.a.x = 3\n",
     "x_pretrain_config",
     "3 2 nothing",
     {"f.nodes is left out: the program computes its value"},
     {2}},
    {"if big: r = x_pretrain_config()\nelse: r = y_pretrain_config()\nr.b = 1\n",
     "nothing",
     "nothing nothing 1",
     {"r is left out: it is not known whether the program reaches this recipe", "reaches this recipe"},
     {1, 2}},
    {"r = get()\nq = get()\nr.a.x = 1\nq.a.x = 2\nq.b = 3\n",
     "nothing",
     "2 nothing 3",
     {"r is left out: of several recipes, msim takes that of line 4"},
     {3}},
    {"r = get()\nq = tweak(r)\nr.a.x = 1\nq.a.y = 2\n", "nothing", "1 2 nothing", {NULL}, {0}},
    {"a, b = x_pretrain_config(), y_pretrain_config(n=2)\nb.b = 1\n",
     "y_pretrain_config",
     "nothing nothing 1",
     {"of 2 recipes msim takes this one, b,", "a is left out"},
     {1, 1}},
    {"r = x_pretrain_config()\nr.b = 1\nq = run.Partial(f, model=run.Config(A, x=1), c=C(y=2))\n",
     "x_pretrain_config",
     "nothing nothing 1",
     {"q is left out: of several recipes, msim takes that of line 1"},
     {3}},
    {"q = run.Partial(f, a=run.Config(A, x=1), c=C(y=2), b=n)\nq.a.y = 2\n",
     "nothing",
     "1 2 nothing",
     {"q.b is left out: the program computes its value"},
     {1}},
    {"r = x_pretrain_config()\nif args.file: r = merge(r)\nr.b = 1\n",
     "x_pretrain_config",
     "nothing nothing 1",
     {"r is left out: it is not known whether the program reaches this"},
     {2}},
    {"r = x_pretrain_config()\nr.b = 1\nq = {'a': {'x': 1}, 'c': {'y': 2}}\n",
     "x_pretrain_config",
     "nothing nothing 1",
     {NULL},
     {0}},
    {"p = Parser(doc=text)\nr = x_pretrain_config(dir=where, name=text)\nr.b = 1\n",
     "x_pretrain_config",
     "nothing nothing 1",
     {NULL},
     {0}},
    {"m = Provider(x=size, y=2)\nr = x_pretrain_config()\nr.a = m\n",
     "x_pretrain_config",
     "nothing 2 nothing",
     {"m.x is left out: the program computes its value"},
     {1}},
    {"m = Provider()\nm.x = 2\nr = x_pretrain_config()\n",
     "x_pretrain_config",
     "nothing nothing nothing",
     {"m is left out: it is not part of a recipe"},
     {1}},
    {"from lib.llama3_8b import pretrain_config\nr = pretrain_config(f(x), nodes=2)\n",
     "lib.llama3_8b.pretrain_config",
     "nothing nothing nothing",
     {"f(x) of r is left out: the program computes its value"},
     {2}},
    {"from lib import (x,\n  llama_pretrain_config as make)\nr = make()\nresult = pretrain(r)\n",
     "lib.llama_pretrain_config",
     "nothing nothing nothing",
     {NULL},
     {0}},
};

START_TEST(recipes_are_not_mixed)
{
    for (size_t i = 0; i < sizeof recipes / sizeof recipes[0]; i++) {
        static const char *const paths[] = {"_recipe_._target_", "a.x", "a.y", "b"};
        struct arena arena;
        struct diags diags;
        char texts[4][80], fields[256];
        size_t n_told = 0;
        const struct yaml_node *root = parse(recipes[i].text, &arena, &diags);
        for (int k = 0; k < 4; k++)
            describe(framework_find(root, paths[k]), texts[k], sizeof texts[k]);
        snprintf(fields, sizeof fields, "%s %s %s", texts[1], texts[2], texts[3]);
        ck_assert_msg(strcmp(texts[0], recipes[i].recipe) == 0, "%zu: %s", i, texts[0]);
        ck_assert_msg(strcmp(fields, recipes[i].fields) == 0, "%zu: %s", i, fields);
        for (; n_told < 2 && recipes[i].told[n_told]; n_told++) {
            bool found = false;
            for (size_t k = 0; k < diags.n_items; k++)
                found |= strstr(diags.items[k].text, recipes[i].told[n_told]) && diags.items[k].line == recipes[i].lines[n_told];
            ck_assert_msg(found, "%zu: nothing says '%s'", i, recipes[i].told[n_told]);
        }
        ck_assert_msg(n_told > 0 || diags.n_items == 0, "%zu: %s", i, diags.n_items ? diags.items[0].text : "");
        diags_free(&diags);
        arena_free(&arena);
    }
}
END_TEST

/* A list that grows line by line: were each line to walk it, these would be 5e9 steps, which no suite has time for. */
START_TEST(lists_grow_at_their_end)
{
    enum { LINES = 100000 };
    static const char line[] = "cfg.l.append(1)\n";
    size_t length = sizeof line - 1;
    char *text = memory_new(LINES, length);
    struct arena arena = {0};
    struct diags diags = {0};
    for (size_t i = 0; i < LINES; i++)
        memcpy(text + i * length, line, length);
    const struct yaml_node *list = framework_find(python_parse("recipe.py", text, LINES * length, &arena, &diags), "l");
    size_t n = 0;
    for (const struct yaml_node *item = list->first; item; item = item->next)
        n++;
    ck_assert_uint_eq(n, LINES);
    diags_free(&diags);
    arena_free(&arena);
    free(text);
}
END_TEST

/* More than is kept is an error, and what is behind it not read as if nothing had been. */
START_TEST(programs_too_long_are_refused)
{
    static const char *const formats[] = {"x%05d = 1\n", "x%05d.a = 1\n", "cfg.x%05d = 1\n"};
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        char *text;
        size_t n;
        struct arena arena = {0};
        struct diags diags = {0};
        FILE *out = open_memstream(&text, &n);
        for (int k = 0; k < 5000; k++)
            fprintf(out, formats[i], k);
        fclose(out);
        python_parse("recipe.py", text, n, &arena, &diags);
        ck_assert_uint_ge(diags.n_errors, 1);
        diags_free(&diags);
        arena_free(&arena);
        free(text);
    }
}
END_TEST

/* A value knows its line and column, also behind brackets over several lines. */
START_TEST(values_know_their_place)
{
    struct arena arena;
    struct diags diags;
    const struct yaml_node *root = parse("'''\n'''\ncfg.a = [1,\n  2]\n  \ncfg.b.c =  3\n", &arena, &diags);
    const struct yaml_node *c = framework_find(root, "b.c"), *a = framework_find(root, "a");
    ck_assert(a->at.line == 3 && a->at.column == 9);
    ck_assert(c->at.line == 6 && c->at.column == 12);
    ck_assert_str_eq(c->at.file, "recipe.py");
    diags_free(&diags);
    arena_free(&arena);
}
END_TEST

/* Any beginning of a program is read to its end. */
START_TEST(what_is_cut_off_ends)
{
    static const char whole[] =
        "'''doc'''\nfrom a import (b as c)\ndef f(x: int = 4, *y):\n    return x_pretrain_config(n=2, *z)\n"
        "a.x, (b['y'].z) = 4 * (2 + x), {'k': -1 ** 2}; setattr(a.b, 'c', [0] * 3)\nm: T = a.b\nm[0] = q = a.b = 4\n"
        "cfg.a = Outer(x=[1, 'two', (3, 0)], y=run.Config(B, c=None))\ncfg.l.append(X(\n  a=1,\n))\n"
        "if x:\n    cfg.b = \"\\\\\"\nelse:\n    cfg.c = -1\\\n";
    for (size_t n = 0; n < sizeof whole; n++) {
        struct arena arena = {0};
        struct diags diags = {0};
        ck_assert_int_eq(python_parse("recipe.py", whole, n, &arena, &diags)->kind, YAML_MAPPING);
        diags_free(&diags);
        arena_free(&arena);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("python_keys");
    TCase *all = tcase_create("all");
    tcase_add_test(all, values_are_what_they_say);
    tcase_add_test(all, what_is_computed_is_left_out);
    tcase_add_test(all, recipes_are_not_mixed);
    tcase_add_test(all, lists_grow_at_their_end);
    tcase_add_test(all, programs_too_long_are_refused);
    tcase_add_test(all, values_know_their_place);
    tcase_add_test(all, what_is_cut_off_ends);
    suite_add_tcase(suite, all);
    return suite_run(suite);
}
