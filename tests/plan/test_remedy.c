/*
 * When nothing fits: the report says how far off the closest layout is, and every remedy it names has been tried.
 */
#include <check.h>
#include <string.h>

#include "model/cost/memory/footprint.h"
#include "model/plan/remedy.h"
#include "tests/plan/settings.h"
#include "tests/suite.h"

static struct space_limits limits_of(const char *text)
{
    struct space_limits limits = {0};
    struct diags diags = {0};
    if (text != NULL)
        ck_assert_int_eq(space_restrict(&limits, text, PLACE_NONE, &diags), STATUS_OK);
    return limits;
}

static const struct remedy *remedy_about(const struct remedy *remedies, int n, const char *what)
{
    for (int i = 0; i < n; i++)
        if (strstr(remedies[i].what, what) != NULL)
            return &remedies[i];
    return NULL;
}

/* 175 billion parameters in mixed precision are 2.8 TB of state: eight 80 GiB GPUs never hold them, enough GPUs do. */
START_TEST(more_gpus_are_found)
{
    struct job_case c;
    gpt_175b_case(&c, 8, 64);
    struct space_limits limits = limits_of(NULL);
    struct remedy remedies[REMEDIES_MAX];
    int n = remedies_find(&c.setting, &limits, 1, 1e15, remedies);
    const struct remedy *more = remedy_about(remedies, n, "GPUs");
    ck_assert_ptr_nonnull(more);
    ck_assert(more->fits);
    ck_assert_double_le(more->bytes, footprint_capacity(&c.cluster));
    int gpus = more->layout.tp * more->layout.cp * more->layout.pp * more->layout.dp;
    ck_assert_int_ge(gpus, 32);
    /* Half of that does not do, or the remedy would name it. */
    struct search_result best;
    const struct search_options options = {.keep = 1, .threads = 1};
    struct diags diags = {0};
    c.setting.gpus = gpus / 2;
    c.cluster.nodes = gpus / 2 / 8;
    ck_assert_int_eq(plans_best(&c.setting, NULL, &options, &best, &diags), STATUS_BAD_INPUT);
    diags_free(&diags);
}
END_TEST

/* More nodes than the groups of a dragonfly hold need more groups. */
START_TEST(more_groups_where_they_are_full)
{
    struct job_case c;
    gpt_175b_case(&c, 8, 64);
    c.cluster.topology = TOPOLOGY_DRAGONFLY;
    c.cluster.dragonfly = (struct dragonfly){.switches_per_group = 4,
                                             .endpoints_per_switch = c.cluster.nics_per_node,
                                             .local_links = 1,
                                             .global_links_per_switch = 4,
                                             .global_links = 1,
                                             .link_rate = c.cluster.nic_rate};
    struct space_limits limits = limits_of(NULL);
    for (int groups = 1; groups <= 17; groups += 16) { /* 4 switches with 4 ports each join up to 17 groups */
        struct remedy remedies[REMEDIES_MAX];
        c.cluster.dragonfly.groups = groups;
        int n = remedies_find(&c.setting, &limits, 1, 1e15, remedies);
        const struct remedy *more = remedy_about(remedies, n, "GPUs");
        ck_assert_ptr_nonnull(more);
        ck_assert_ptr_nonnull(strstr(more->option, " --set cluster.nodes="));
        ck_assert_int_eq(strstr(more->option, " --set cluster.groups=null") != NULL, groups == 1);
    }
}
END_TEST

/* More nodes are no remedy where a group has too few ports for more groups: two switches with a port each. */
START_TEST(no_more_groups_than_ports_reach)
{
    struct job_case c;
    gpt_175b_case(&c, 8, 64);
    c.cluster.topology = TOPOLOGY_DRAGONFLY;
    c.cluster.nodes = 8;
    c.cluster.dragonfly = (struct dragonfly){.groups = 1,
                                             .switches_per_group = 8,
                                             .endpoints_per_switch = c.cluster.nics_per_node,
                                             .local_links = 1,
                                             .global_links_per_switch = 1,
                                             .link_rate = c.cluster.nic_rate,
                                             .groups_follow = true,
                                             .cables_follow = true};
    struct space_limits limits = limits_of(NULL);
    struct remedy remedies[REMEDIES_MAX];
    int n = remedies_find(&c.setting, &limits, 1, 1e15, remedies);
    const struct remedy *more = remedy_about(remedies, n, "GPUs"); /* eight ports to other groups: 9 groups of 8 nodes */
    ck_assert_ptr_nonnull(more);
    ck_assert_ptr_null(strstr(more->option, "groups=null"));
    c.cluster.dragonfly.switches_per_group = 2;
    n = remedies_find(&c.setting, &limits, 1, 1e15, remedies); /* two ports: 3 groups of 2 nodes */
    ck_assert_ptr_null(remedy_about(remedies, n, "GPUs"));
}
END_TEST

/* Optimizer states in the host's memory are enough for 175 billion parameters on 32 GPUs, and that is what is named; not where
 * the host's memory is too small, nor where the job specifies what is offloaded. */
START_TEST(offloading_is_found)
{
    struct job_case c;
    gpt_175b_case(&c, 32, 64);
    struct space_limits limits = limits_of("tp=8"), told = limits_of("tp=8,offload=none");
    struct remedy remedies[REMEDIES_MAX];
    c.cluster.host_memory = 2e12;
    int n = remedies_find(&c.setting, &limits, 1, 1e15, remedies);
    const struct remedy *there = remedy_about(remedies, n, "offload=optimizer");
    ck_assert(there && there->fits && offload_equal(&there->layout.offload, &offload_wholes[1]));
    ck_assert_str_eq(there->option, "--set layout.offload=optimizer");
    struct space_limits none = {0};
    n = remedies_find(&c.setting, &none, 1, 1e15, remedies);
    there = remedy_about(remedies, n, "offload=");
    ck_assert(there && strncmp(there->option, "--layout auto,offload=", 22) == 0);
    c.cluster.host_memory = 1e11;
    n = remedies_find(&c.setting, &limits, 1, 1e15, remedies);
    there = remedy_about(remedies, n, "offload=optimizer");
    ck_assert(!there || !there->fits);
    c.cluster.host_memory = 2e12;
    n = remedies_find(&c.setting, &told, 1, 1e15, remedies); /* then lifting that is a remedy */
    there = remedy_about(remedies, n, "offload=");
    ck_assert(!there || there->option[0] == 0);
}
END_TEST

/* The restriction is what keeps it out; lifting it is the remedy, and the other restriction is kept. */
START_TEST(a_lifted_restriction_is_found)
{
    struct job_case c;
    gpt_175b_case(&c, 256, 256);
    struct space_limits limits = limits_of("tp=1,pp=1..8");
    struct remedy remedies[REMEDIES_MAX];
    int n = remedies_find(&c.setting, &limits, 1, 1e15, remedies);
    const struct remedy *tp = remedy_about(remedies, n, "tp=");
    ck_assert_ptr_nonnull(tp);
    ck_assert(tp->fits);
    ck_assert_int_gt(tp->layout.tp, 1);
    char named[32];
    snprintf(named, sizeof named, "tp=%d", tp->layout.tp);
    ck_assert_str_eq(tp->what, named);
    ck_assert_int_le(tp->layout.pp, 8);
}
END_TEST

/* 64 GPUs hold the model, but not in a tenth of their memory. */
START_TEST(a_margin_that_leaves_too_little_is_named)
{
    struct job_case c;
    gpt_175b_case(&c, 64, 64);
    struct space_limits limits = limits_of(NULL);
    struct remedy remedies[REMEDIES_MAX];
    int n = remedies_find(&c.setting, &limits, 1, 1e15, remedies);
    ck_assert_ptr_null(remedy_about(remedies, n, "margin"));
    c.job.memory_margin = 0.9;
    n = remedies_find(&c.setting, &limits, 1, 1e15, remedies);
    const struct remedy *none = remedy_about(remedies, n, "margin");
    ck_assert_ptr_nonnull(none);
    ck_assert(none->fits);
    ck_assert_str_eq(none->option, "--memory-margin 0");
    ck_assert_double_gt(none->bytes, 0.1 * footprint_capacity(&c.cluster));
}
END_TEST

START_TEST(the_report_says_how_far_off)
{
    struct job_case c;
    gpt_175b_case(&c, 8, 64);
    struct search_result best;
    const struct search_options options = {.keep = 1, .threads = 1};
    struct diags diags = {0};
    ck_assert_int_eq(plans_best(&c.setting, NULL, &options, &best, &diags), STATUS_BAD_INPUT);
    ck_assert_uint_eq(diags.n_errors, 1);
    const char *text = diags.items[0].text;
    ck_assert_ptr_nonnull(strstr(text, "GiB too few"));
    ck_assert_ptr_nonnull(strstr(text, "the closest, tp="));
    bool says_gpus = false, says_capacity = false;
    for (size_t i = 1; i < diags.n_items; i++) {
        ck_assert_int_eq(diags.items[i].severity, SEVERITY_NOTE);
        says_gpus |= strstr(diags.items[i].text, " GPUs it fits (--gpus ") != NULL;
        says_capacity |= strstr(diags.items[i].text, "GPUs with at least") != NULL;
    }
    ck_assert(says_gpus);
    ck_assert(says_capacity);
    diags_free(&diags);
}
END_TEST

START_TEST(the_report_says_why_nothing_is_legal)
{
    struct job_case c;
    dense_case(&c, 4, 16, 7); /* 7 sequences are not shared among 16 replicas */
    struct search_result best;
    const struct search_options options = {.keep = 1, .threads = 1};
    struct diags diags = {0};
    ck_assert_int_eq(plans_best(&c.setting, "dp=16", &options, &best, &diags), STATUS_BAD_INPUT);
    ck_assert_ptr_nonnull(strstr(diags.items[0].text, "is legal"));
    ck_assert_uint_ge(diags.n_items, 2);
    ck_assert_ptr_nonnull(strstr(diags.items[1].text, layout_reason_text(LAYOUT_BATCH)));
    diags_free(&diags);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("plan remedies");
    TCase *cases = tcase_create("remedies");
    tcase_add_test(cases, more_gpus_are_found);
    tcase_add_test(cases, more_groups_where_they_are_full);
    tcase_add_test(cases, no_more_groups_than_ports_reach);
    tcase_add_test(cases, offloading_is_found);
    tcase_add_test(cases, a_lifted_restriction_is_found);
    tcase_add_test(cases, a_margin_that_leaves_too_little_is_named);
    tcase_add_test(cases, the_report_says_how_far_off);
    tcase_add_test(cases, the_report_says_why_nothing_is_legal);
    suite_add_tcase(suite, cases);
    return suite_run(suite);
}
