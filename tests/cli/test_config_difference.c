/* What two experiments do not have in common: keys in order, names before what is called so, sources never. */
#include <check.h>
#include <jansson.h>

#include "cli/step/config_difference.h"
#include "tests/suite.h"

static const struct {
    const char *a, *b, *differences;
} cases[] = {
    {"{}", "{}", "[]"},
    {"{\"job\": {\"batch\": 8, \"source\": \"x\"}}", "{\"job\": {\"batch\": 8, \"source\": \"y\"}}", "[]"},
    {"{\"job\": {\"batch\": 8}}", "{\"job\": {\"batch\": 9}}", "[{\"key\": \"job.batch\", \"a\": 8, \"b\": 9}]"},
    /* What one does not have is null, on either side, behind what it has. */
    {"{\"job\": {\"x\": 1}}", "{\"job\": {\"y\": [2]}}",
     "[{\"key\": \"job.x\", \"a\": 1, \"b\": null}, {\"key\": \"job.y\", \"a\": null, \"b\": [2]}]"},
    /* The same GPU in other clusters is no difference, another GPU is one by its name, one that was changed by the key. */
    {"{\"cluster\": {\"name\": \"p\", \"nic\": 1, \"gpu\": {\"name\": \"g\", \"peak\": {\"bf16\": 1}}}}",
     "{\"cluster\": {\"name\": \"q\", \"nic\": 2, \"gpu\": {\"name\": \"g\", \"peak\": {\"bf16\": 1}}}}",
     "[{\"key\": \"cluster.name\", \"a\": \"p\", \"b\": \"q\"}]"},
    {"{\"cluster\": {\"name\": \"p\", \"nic\": 1, \"gpu\": {\"name\": \"g\", \"peak\": {\"bf16\": 1}}}}",
     "{\"cluster\": {\"name\": \"p\", \"nic\": 1, \"gpu\": {\"name\": \"h\", \"peak\": {\"bf16\": 2}}}}",
     "[{\"key\": \"cluster.gpu.name\", \"a\": \"g\", \"b\": \"h\"}]"},
    {"{\"cluster\": {\"name\": \"p\", \"gpu\": {\"name\": \"g\", \"peak\": {\"bf16\": 1}}}}",
     "{\"cluster\": {\"name\": \"q\", \"gpu\": {\"name\": \"g\", \"peak\": {\"bf16\": 2}}}}",
     "[{\"key\": \"cluster.name\", \"a\": \"p\", \"b\": \"q\"}, {\"key\": \"cluster.gpu.peak.bf16\", \"a\": 1, \"b\": 2}]"},
    /* A changed model differs by what is changed. */
    {"{\"model\": {\"name\": \"m\", \"layers\": 32}}", "{\"model\": {\"name\": \"m (changed)\", \"layers\": 16}}",
     "[{\"key\": \"model.layers\", \"a\": 32, \"b\": 16}]"},
    {"{\"model\": {\"name\": \"m (changed)\", \"layers\": 32}}", "{\"model\": {\"name\": \"n (changed)\", \"layers\": 16}}",
     "[{\"key\": \"model.name\", \"a\": \"m (changed)\", \"b\": \"n (changed)\"}]"},
    /* The experiment's own name hides nothing. */
    {"{\"name\": \"one\", \"seed\": 1}", "{\"name\": \"two\", \"seed\": 2}",
     "[{\"key\": \"name\", \"a\": \"one\", \"b\": \"two\"}, {\"key\": \"seed\", \"a\": 1, \"b\": 2}]"},
};

START_TEST(by_hand)
{
    json_t *a = json_loads(cases[_i].a, 0, NULL), *b = json_loads(cases[_i].b, 0, NULL);
    json_t *expected = json_loads(cases[_i].differences, 0, NULL), *found = config_differences(a, b);
    ck_assert_ptr_nonnull(expected);
    ck_assert_msg(json_equal(found, expected), "%s", json_dumps(found, 0));
    json_decref(a);
    json_decref(b);
    json_decref(expected);
    json_decref(found);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("config_difference");
    TCase *all = tcase_create("all");
    tcase_add_loop_test(all, by_hand, 0, (int)(sizeof cases / sizeof cases[0]));
    suite_add_tcase(suite, all);
    return suite_run(suite);
}
