/* Python's assignments to fields: what each value is, where it stands, and what is left out because nobody runs the program. */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "tests/suite.h"
#include "traces/launch/framework_keys.h"
#include "traces/launch/python_keys.h"

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

START_TEST(values_are_what_they_say)
{
    static const struct {
        const char *text, *path, *value;
    } cases[] = {
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
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct arena arena;
        struct diags diags;
        char text[160];
        const struct yaml_node *root = parse(cases[i].text, &arena, &diags);
        describe(framework_find(root, cases[i].path), text, sizeof text);
        ck_assert_msg(strcmp(text, cases[i].value) == 0, "%s: %s is %s", cases[i].text, cases[i].path, text);
        ck_assert_msg(diags.n_items == 0, "%s: %s", cases[i].text, diags.n_items ? diags.items[0].text : "");
        diags_free(&diags);
        arena_free(&arena);
    }
}
END_TEST

/* Each is told once, where it stands, and nothing else is lost for it. */
START_TEST(what_is_computed_is_left_out)
{
    static const struct {
        const char *text, *told;
        int line, column;
    } cases[] = {
        {"cfg.a = tp", "cfg.a is left out: the program computes its value", 1, 1},
        {"cfg.a = 2 * 4", "cfg.a is left out: the program computes its value", 1, 1},
        {"\ncfg.a = [tp, 2]", "cfg.a is left out: the program computes its value", 2, 1},
        {"cfg.a = f'x{y}'", "cfg.a is left out: the program computes its value", 1, 1},
        {"cfg.a = 'x' 'y'", "cfg.a is left out: the program computes its value", 1, 1},
        {"cfg.a = \"\\n\"", "cfg.a is left out: the program computes its value", 1, 1},
        {"cfg.a = 'open\n", "cfg.a is left out: the program computes its value", 1, 1},
        {"cfg.a = Overlap(tp=x,\n    cfg=1,\n)", "cfg.a is left out: the program computes its value", 1, 1},
        {"cfg.a += 1", "cfg.a is left out: the program computes its value", 1, 1},
        {"if fast:\n    cfg.a = 1\n", "cfg.a is left out: whether the program gets there is not known", 2, 5},
        {"if fast:\n    if x:\n        y()\n    cfg.a = 1\n", "cfg.a is left out: whether the program gets there", 4, 5},
        {"for i in x:\n    cfg.a = 1\n", "cfg.a is left out: whether the program gets there is not known", 2, 5},
        {"if x:\n  y()\nelse:\n  cfg.a = 1\n", "cfg.a is left out: whether the program gets there is not known", 4, 3},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct arena arena;
        struct diags diags;
        char text[400], value[160];
        snprintf(text, sizeof text, "%s\ncfg.b = 7\n", cases[i].text);
        const struct yaml_node *root = parse(text, &arena, &diags);
        ck_assert_msg(diags.n_items == 1 && diags.n_errors == 0, "%s: %zu", text, diags.n_items);
        ck_assert_msg(strstr(diags.items[0].text, cases[i].told), "%s", diags.items[0].text);
        ck_assert_int_eq(diags.items[0].line, cases[i].line);
        ck_assert_int_eq(diags.items[0].column, cases[i].column);
        ck_assert_msg(!framework_find(root, "a"), "%s", text);
        describe(framework_find(root, "b"), value, sizeof value);
        ck_assert_msg(strcmp(value, "7") == 0, "%s: %s", text, value);
        diags_free(&diags);
        arena_free(&arena);
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
        "'''doc'''\ncfg.a = Outer(x=[1, 'two', (3, 0)], y=run.Config(B, c=None))\ncfg.l.append(X(\n  a=1,\n))\n"
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
    tcase_add_test(all, values_know_their_place);
    tcase_add_test(all, what_is_cut_off_ends);
    suite_add_tcase(suite, all);
    return suite_run(suite);
}
