/* What --gpu-price takes, and what it does not. */
#include <check.h>
#include <string.h>

#include "cli/options/gpu_prices.h"
#include "tests/suite.h"

static const struct {
    const char *text, *why; /* NULL: it can be read */
} cases[] = {
    {"2.5", NULL},
    {"1e3", NULL},
    {"h200=3", NULL},
    {"h200=3,b200=5.5,mi300x=2.4", NULL},
    {"NVIDIA H100 80GB HBM3=2", NULL},
    {"", "is not a price"},
    {"0", "is not a price"},
    {"-1", "is not a price"},
    {"nan", "is not a price"},
    {"inf", "is not a price"},
    {"2.5,3", "is not a price"},
    {"1e6", "is not a price"},
    {"h200=", "is not a price"},
    {"h200=0", "is not a price"},
    {"h200=3x", "is not a price"},
    {"h200=nan,b200=2", "is not a price"},
    {"=3", "is not GPU=PRICE"},
    {"h200=3,", "is not GPU=PRICE"},
    {",h200=3", "is not GPU=PRICE"},
    {"h200=3,5.5", "is not GPU=PRICE"},
    {"a234567890123456789012345678901234567890123456789012345678901234=1", "is not GPU=PRICE"},
};

START_TEST(texts)
{
    char why[256] = "";
    enum status status = check_prices(cases[_i].text, why, sizeof why);
    ck_assert_msg((status == STATUS_OK) == (cases[_i].why == NULL), "%s: %s", cases[_i].text, why);
    ck_assert_msg(!cases[_i].why || strstr(why, cases[_i].why), "%s: %s", cases[_i].text, why);
}
END_TEST

START_TEST(one_for_all_or_one_each)
{
    const struct gpu_prices all = {.all = 2.5};
    const struct gpu_prices each = {.items = {{"h200-sxm", true, 3}, {"mine", false, 4}}, .n_items = 2};
    ck_assert(gpu_prices_of(&all, "h200-sxm") == 2.5);
    ck_assert(gpu_prices_of(&each, "h200-sxm") == 3);
    ck_assert(gpu_prices_of(&each, "mine") == 4);
    ck_assert(gpu_prices_of(&each, "h200") == 0);
    ck_assert(gpu_prices_of(&(struct gpu_prices){0}, "h200") == 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("gpu_prices");
    TCase *all = tcase_create("all");
    tcase_add_loop_test(all, texts, 0, (int)(sizeof cases / sizeof cases[0]));
    tcase_add_test(all, one_for_all_or_one_each);
    suite_add_tcase(suite, all);
    return suite_run(suite);
}
