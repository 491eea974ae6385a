/* Maps of what links carried, of Clos fabrics and of dragonflies. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "tests/plots/figure_samples.h"
#include "tests/suite.h"

/* A script that draws the table holds all these parts. */
static void assert_links_drawn(const char *csv, const char *const *parts, size_t n)
{
    struct diags diags = {0};
    struct figure_input input = input_of("x.csv", csv);
    ck_assert_int_eq(figure_kind_of(&input, &diags), FIGURE_LINKS);
    char *text = script_of(&(struct figure_options){.kind = FIGURE_LINKS}, &input, 1);
    for (size_t i = 0; i < n; i++)
        ck_assert_msg(strstr(text, parts[i]), "%s", text);
    free(text);
    figure_input_free(&input);
}

/* The second NIC of the second host is across 1, down 1; what goes down has the place of what goes up. */
START_TEST(links)
{
    static const char *const parts[] = {"$layers << EOD\n0\t21.875\t50\t4\tnic_up\n1\t50\t50\t1\tnic_down\nEOD\n",
                                        "$map1 << EOD\n0\t0\t50\n1\t0\t25\n0\t1\t0\n1\t1\t12.5\nEOD\nlinks1 = 4\nports1 = "
                                        "2\nunits1 = 2\nmean1 = 21.875\nmost1 = 50\n",
                                        "$map2 << EOD\nEOD\nlinks2 = 0\n",
                                        "$map4 << EOD\n0\t0\t50\nEOD\nlinks4 = 1\nports4 = 2\nunits4 = 1\n",
                                        "place1 = 0\nplace2 = 1\nplace3 = 1\nn_columns = 1\n"};
    assert_links_drawn(figure_samples[FIGURE_LINKS], parts, sizeof parts / sizeof *parts);
}
END_TEST

static const char dragonfly_csv[] = "layer,link,utilisation,contended_s,most_transfers,name\n"
                                    "nic_up,0,0.5,0,1,host 0 nic 0 port 0 -> group 0 switch 0\n"
                                    "local_out,0,0.25,0,1,group 0 switch 0 port 1 -> group 0 switch 1\n"
                                    "local_out,1,0.75,0,1,group 1 switch 0 port 1 -> group 1 switch 1\n"
                                    "global_out,0,0.25,0,1,group 0 switch 0 port 2 -> group 1 switch 0\n"
                                    "global_out,1,0.75,0,1,group 0 switch 1 port 2 -> group 1 switch 1\n"
                                    "global_in,0,1,0,1,group 1 switch 0 -> group 0 switch 0 port 2\n"
                                    "global_in,1,1,0,1,group 1 switch 1 -> group 0 switch 1 port 2\n";

/* Local cables across, groups down; between groups the mean of the parallel cables each way. */
START_TEST(links_of_a_dragonfly)
{
    static const char *const parts[] = {
        "dragonfly = 1\n", "$map2 << EOD\n0\t0\t25\n0\t1\t75\nEOD\nlinks2 = 2\nports2 = 1\nunits2 = 2\nmean2 = 50\nmost2 = 75\n",
        "$map3 << EOD\n0\t0\t0\n1\t0\t50\n0\t1\t100\n1\t1\t0\nEOD\nlinks3 = 4\nports3 = 2\nunits3 = 2\nmean3 = 75\nmost3 = 100\n",
        "$map6 << EOD\nEOD\nlinks6 = 0\n", "place1 = 0\nplace2 = 1\nplace3 = 2\nn_columns = 3\n"};
    assert_links_drawn(dragonfly_csv, parts, sizeof parts / sizeof *parts);
}
END_TEST

/* Groups of one switch have no local cables. */
START_TEST(links_of_a_dragonfly_of_single_switches)
{
    static const char csv[] = "layer,link,utilisation,contended_s,most_transfers,name\n"
                              "nic_up,0,0.5,0,1,host 0 nic 0 port 0 -> group 0 switch 0\n"
                              "global_out,0,0.25,0,1,group 0 switch 0 port 1 -> group 1 switch 0\n"
                              "global_in,0,1,0,1,group 1 switch 0 -> group 0 switch 0 port 1\n";
    static const char *const parts[] = {"dragonfly = 1\n", "$map2 << EOD\nEOD\nlinks2 = 0\n",
                                        "$map3 << EOD\n0\t0\t0\n1\t0\t25\n0\t1\t100\n1\t1\t0\nEOD\n",
                                        "place1 = 0\nplace2 = 1\nplace3 = 1\nn_columns = 2\n"};
    assert_links_drawn(csv, parts, sizeof parts / sizeof *parts);
}
END_TEST

/* A map has room for groups 0 to 1,023; links of others are left out of it, which is said. */
START_TEST(links_of_too_many_groups)
{
    static const char csv[] = "layer,link,utilisation,contended_s,most_transfers,name\n"
                              "global_out,0,0.25,0,1,group 0 switch 0 port 1 -> group 1 switch 0\n"
                              "global_out,1,0.5,0,1,group 0 switch 0 port 2 -> group %d switch 0\n"
                              "global_in,1,0.5,0,1,group %d switch 0 -> group 0 switch 0 port 2\n";
    for (int groups = 1024; groups <= 1025; groups++) {
        struct diags diags = {0};
        char text[512], *script = NULL;
        snprintf(text, sizeof text, csv, groups - 1, groups - 1);
        struct figure_input input = input_of("x.csv", text);
        ck_assert_int_eq(script_written(&(struct figure_options){.kind = FIGURE_LINKS}, &input, 1, &script, &diags), STATUS_OK);
        ck_assert_ptr_nonnull(strstr(script, groups == 1024 ? "links3 = 3\nports3 = 1024\n" : "links3 = 1\nports3 = 2\n"));
        ck_assert_uint_eq(diags.n_items, groups == 1024 ? 0 : 1);
        if (groups > 1024)
            ck_assert_str_eq(
                diags.items[0].text,
                "the map between groups has room for 1024: 2 links of groups from number 1024 on are left out of it");
        free(script);
        figure_input_free(&input);
        diags_free(&diags);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("plots_links");
    TCase *data = tcase_create("data");
    tcase_add_test(data, links);
    tcase_add_test(data, links_of_a_dragonfly);
    tcase_add_test(data, links_of_a_dragonfly_of_single_switches);
    tcase_add_test(data, links_of_too_many_groups);
    suite_add_tcase(suite, data);
    return suite_run(suite);
}
