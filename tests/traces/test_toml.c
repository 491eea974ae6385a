/* TOML: what the standard's own words mean, and where mistakes stand. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/suite.h"
#include "traces/launch/job/toml.h"

/* A tree in one line: {a: 1, b: "text", c: [1, 2]}. */
static void write_tree(const struct yaml_node *node, FILE *out)
{
    if (node->kind == YAML_SCALAR) {
        fprintf(out, node->quoted ? "\"%s\"" : "%s", node->text);
        return;
    }
    bool mapping = node->kind == YAML_MAPPING;
    fputc(mapping ? '{' : '[', out);
    for (const struct yaml_node *child = node->first; child; child = child->next) {
        fprintf(out, "%s%s%s", child == node->first ? "" : ", ", mapping ? child->key : "", mapping ? ": " : "");
        write_tree(child, out);
    }
    fputc(mapping ? '}' : ']', out);
}

START_TEST(texts_and_their_trees)
{
    static const struct {
        const char *toml, *tree;
    } cases[] = {
        {"", "{}"},
        {"# nothing\n\n \t\r\n# more", "{}"},
        {"a = 1", "{a: 1}"},
        {"\xef\xbb\xbf"
         "a = 1",
         "{a: 1}"},
        {"a = 1\nb = true # so\r\nc = -1.5e-4\nd = 1_000\ne = 0xff\nf = +inf\n",
         "{a: 1, b: true, c: -1.5e-4, d: 1_000, e: 0xff, f: +inf}"},
        {"when = 2025-09-01T10:00:00Z", "{when: 2025-09-01T10:00:00Z}"},
        {"a = \"x\\ty\\\"z\\u00e9\"\nb = 'C:\\n'", "{a: \"x\ty\"z\xc3\xa9\", b: \"C:\\n\"}"},
        {"a = \"\"\"\nline\ntwo \\\n   joined\"\"\"", "{a: \"line\ntwo joined\"}"},
        {"a = \"\"\"\"quoted\"\"\"\"", "{a: \"\"quoted\"\"}"},
        {"a = '''\\x'''", "{a: \"\\x\"}"},
        {"a = [1, 2, # three\n  3,\n]\nb = []", "{a: [1, 2, 3], b: []}"},
        {"a = [[\"x\"], [\"y\", 'z']]", "{a: [[\"x\"], [\"y\", \"z\"]]}"},
        {"a = {b = 1, c.d = 2}\ne = {}", "{a: {b: 1, c: {d: 2}}, e: {}}"},
        {"a.b.c = 1\na.b.d = 2\n\"a\".'e f' = 3", "{a: {b: {c: 1, d: 2}, e f: 3}}"},
        {"[t]\na = 1\n[t.u]\nb = 2\n[v]", "{t: {a: 1, u: {b: 2}}, v: {}}"},
        {"[t.u]\nb = 2\n[t]\na = 1", "{t: {u: {b: 2}, a: 1}}"},
        {"[ t . \"u\" ]\n a = 1", "{t: {u: {a: 1}}}"},
        {"[[p]]\na = 1\n[p.q]\nb = 2\n[[p]]\na = 3", "{p: [{a: 1, q: {b: 2}}, {a: 3}]}"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct arena arena = {0};
        struct diags diags = {0};
        char *text;
        size_t n;
        const struct yaml_node *root = toml_parse("t.toml", cases[i].toml, strlen(cases[i].toml), &arena, &diags);
        ck_assert_msg(root, "%s: %s", cases[i].toml, diags.n_items ? diags.items[0].text : "");
        FILE *out = open_memstream(&text, &n);
        write_tree(root, out);
        fclose(out);
        ck_assert_str_eq(text, cases[i].tree);
        free(text);
        arena_free(&arena);
        diags_free(&diags);
    }
}
END_TEST

START_TEST(mistakes_and_their_places)
{
    static const struct {
        const char *toml;
        int line, column;
        const char *says;
    } cases[] = {
        {"a = 1\nb", 2, 2, "equals"},
        {"a = 1 b = 2", 1, 7, "behind the value"},
        {"a = 1\na = 2", 2, 1, "twice"},
        {"a = one", 1, 5, "no value"},
        {"a = ", 1, 5, "no value"},
        {"a = 8B", 1, 5, "no value"},
        {"a = 0xfg", 1, 5, "no value"},
        {"a = \"x\ny\"", 1, 5, "never ends"},
        {"a = '''x", 1, 5, "never ends"},
        {"a = [1, 2\nb = 3", 2, 1, "a comma"},
        {"a = [1, 2", 1, 5, "never ends"},
        {"a = {b = 1", 1, 5, "never ends"},
        {"a = {b = 1,\n c = 2}", 1, 12, "a key is wanted"},
        {"a = \"\\q\"", 1, 7, "backslash"},
        {"a = \"\\ud800\"", 1, 12, "backslash"},
        {"[t\na = 1", 1, 3, "bracket"},
        {"[t]\n[t]", 2, 2, "twice"},
        {"[t]\na = 1\n[t.a]", 3, 2, "twice"},
        {"t = 1\n[t.u]", 2, 2, "a value already"},
        {"t = {a = 1}\n[t.u]", 2, 2, "a value already"},
        {"t = {a = 1}\nt.b = 2", 2, 1, "a value already"},
        {"t = [1]\n[[t]]", 2, 3, "no array of tables"},
        {"= 1", 1, 1, "a key is wanted"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct arena arena = {0};
        struct diags diags = {0};
        ck_assert_ptr_null(toml_parse("t.toml", cases[i].toml, strlen(cases[i].toml), &arena, &diags));
        ck_assert_uint_eq(diags.n_errors, 1);
        ck_assert_msg(strstr(diags.items[0].text, cases[i].says), "%s: %s", cases[i].toml, diags.items[0].text);
        ck_assert_msg(diags.items[0].line == cases[i].line && diags.items[0].column == cases[i].column, "%s: %d:%d",
                      cases[i].toml, diags.items[0].line, diags.items[0].column);
        arena_free(&arena);
        diags_free(&diags);
    }
}
END_TEST

START_TEST(how_it_begins)
{
    static const struct {
        const char *text;
        bool toml;
    } cases[] = {{"# c\n\n[model]\nname = 1", true},
                 {"a = 1", true},
                 {"[[a.b]]", true},
                 {"[ -f x ] && y", false},
                 {"A=1", false},
                 {"model: {a: 1}", false},
                 {"", false},
                 {"#", false},
                 {"[1, 2]", false},
                 {"#!/bin/bash\nx", false},
                 {"srun = 1 not", true}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        ck_assert_msg(toml_begins(cases[i].text, strlen(cases[i].text)) == cases[i].toml, "%s", cases[i].text);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("toml");
    TCase *tests = tcase_create("toml");
    tcase_add_test(tests, texts_and_their_trees);
    tcase_add_test(tests, mistakes_and_their_places);
    tcase_add_test(tests, how_it_begins);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
