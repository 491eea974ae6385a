/* Python's regular expressions over names of modules: what matches, by Python's own re.fullmatch. */
#include <check.h>
#include <string.h>

#include "tests/suite.h"
#include "traces/launch/megatron/module_pattern.h"

static const char *const names[] = {"model.layers.0.self_attn.q_proj",
                                    "model.layers.3.self_attn.v_proj",
                                    "model.layers.11.self_attn.o_proj",
                                    "model.layers.12.mlp.gate_proj",
                                    "model.layers.31.mlp.up_proj",
                                    "model.layers.5.mlp.down_proj",
                                    "visual.layers.3.attn.q_proj",
                                    "lm_head",
                                    "model.embed_tokens"};
enum { NAMES = sizeof names / sizeof names[0] };

/* Computed with Python 3.11: 1 where re.fullmatch(pattern, name) is a match. */
static const struct {
    const char *pattern, *matches;
} known[] = {
    {".*\\.(q|v)_proj", "110000100"},
    {".*\\.(q|k|v|o)_proj$", "111000100"},
    {"^model\\.layers\\.\\d+\\.self_attn\\.q_proj", "100000000"},
    {"model\\.layers\\.(1[0-9]|2\\d)\\.mlp\\.(gate|up)_proj", "000100000"},
    {".*(self_attn|mlp).*", "111111000"},
    {"(?:.*?(?:self_attn|mlp).*?(?:q_proj|up_proj))", "100010000"},
    {"^(?!.*visual).*(?:q_proj|v_proj).*", "110000000"},
    {"(?=.*self_attn)(?!.*o_proj).*proj", "110000000"},
    {"q_proj", "000000000"},
    {".*[qk]_proj", "100000100"},
    {"model.layers.[\\d]+.(mlp|cross_attn|self_attn).(up|down|gate|q|k|v|o)_proj", "111111000"},
    {".*\\blayers\\.3\\b.*", "010000100"},
    {".*layers\\.\\d{1,}\\.mlp\\..*", "000111000"},
    {".*layers\\.\\d{2}\\.mlp\\..*", "000110000"},
    {"(?P<x>model|other)\\.layers\\..*q_proj", "100000000"},
    {"(?i).*Q_PROJ", "100000100"},
    {".*[^a-z]proj", "111111100"},
    {".*_pro?j", "111111100"},
    {".*_pro??j", "111111100"},
    {"\\w+(\\.\\w+)+", "111111101"},
    {".*[\\w.]_proj", "111111100"},
    {".*\\.(q_proj|v_proj)|lm_head", "110000110"},
    {".*self_attn\\.[^.]+", "111000000"},
    {"model\\.layers\\.(?:[0-9]|1[0-1])\\.self_attn\\.(q|k)_proj", "100000000"},
    {".*\\Z", "111111111"},
    {"[^l].*proj", "111111100"},
    {".*attn.*(_proj){1,2}", "111000100"},
    {".*layers\\.[0-3]\\..*", "110000100"},
    {"a|b|.*down_proj", "000001000"},
    {"(?!model)lm.*", "000000010"},
    {".*\\-x|lm_head", "000000010"},
    {".*(q_proj|k_proj|)", "111111111"},
    {".*[.]q_proj", "100000100"},
    {".*[]x]_proj", "000000000"},
};

START_TEST(patterns_match_as_pythons_do)
{
    struct module_pattern pattern;
    char why[160] = "", found[NAMES + 1] = "";
    ck_assert_msg(module_pattern_read(known[_i].pattern, &pattern, why, sizeof why), "%s: %s", known[_i].pattern, why);
    for (int i = 0; i < NAMES; i++)
        found[i] = module_pattern_matches(&pattern, names[i]) ? '1' : '0';
    ck_assert_msg(strcmp(found, known[_i].matches) == 0, "%s: %s, not %s", known[_i].pattern, found, known[_i].matches);
    module_pattern_free(&pattern);
}
END_TEST

START_TEST(what_cannot_be_followed_is_refused)
{
    static const struct {
        const char *pattern, *why;
    } cases[] = {
        {".*(?<=self_attn\\.)q_proj", "look ahead or behind, or a flag, which msim does not follow here, at letter 3"},
        {".*(?!x)q_proj", "which msim does not follow here, at letter 3"},
        {"x(?i)y", "or a flag, which msim does not follow here, at letter 2"},
        {"(?!x)a|b", "a look ahead that msim does not follow, at letter 1"},
        {"(?!x", "a look ahead that msim does not follow, at letter 1"},
        {"(a)\\1", "a backslash before what is not known, at letter 4"},
        {".*\\y", "at letter 3"},
        {"a\\", "a backslash before what is not known, at letter 2"},
        {".*+q", "a repetition that gives nothing back, at letter 3"},
        {".*{q", "a brace that counts nothing, at letter 3"},
        {"q{2", "a brace that counts nothing, at letter 2"},
        {".*[q", "a bracket that never closes, at letter 3"},
        {".*[\\]]q", "what brackets hold is not known, at letter 4"},
        {".*q{2000}", "it repeats too often, at letter 4"},
        {"((.{30}){30}){30}", "it repeats too often, at letter"},
        {"(.*q", "it is no pattern"},
        {"*q", "it is no pattern"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct module_pattern pattern;
        char why[160] = "";
        ck_assert_msg(!module_pattern_read(cases[i].pattern, &pattern, why, sizeof why), "%s", cases[i].pattern);
        ck_assert_msg(strstr(why, cases[i].why), "%s: %s", cases[i].pattern, why);
    }
    char text[1100], why[160];
    struct module_pattern pattern;
    memset(text, 'a', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    ck_assert(!module_pattern_read(text, &pattern, why, sizeof why) && strstr(why, "longer than 1024 letters"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("module_pattern");
    TCase *all = tcase_create("all");
    tcase_add_loop_test(all, patterns_match_as_pythons_do, 0, sizeof known / sizeof known[0]);
    tcase_add_test(all, what_cannot_be_followed_is_refused);
    suite_add_tcase(suite, all);
    return suite_run(suite);
}
