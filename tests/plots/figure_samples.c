#include "tests/plots/figure_samples.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static const char timeline_csv[] = "rank,stage,stream,kind,pass,chunk,micro_batch,start_s,end_s\n"
                                   "0,0,compute,compute,forward,0,0,0.000,0.100\n"
                                   "0,0,send,send,forward,0,0,0.100,0.110\n"
                                   "0,0,compute,compute,backward,0,0,0.300,0.500\n"
                                   "0,0,dp,all_reduce,dp_comm,-1,-1,0.450,0.600\n"
                                   "0,0,compute,compute,optimizer,-1,-1,0.600,0.800\n"
                                   "8,1,compute,compute,forward,0,0,0.110,0.210\n"
                                   "8,1,compute,compute,backward,0,0,0.210,0.290\n";

static const char step_json[] = "{\"command\": \"step\", \"config\": {\"model\": {\"name\": \"tiny\"}}, \"step_time_s\": 4,"
                                " \"breakdown\": {\"gemm\": 3.0, \"attention\": 0.0, \"bubble\": 1.0}}";

static const char run_json[] =
    "{\"command\": \"run\", \"horizon_s\": 172800, \"goodput\": 0.75, \"ettr\": 0.75, \"mfu_pct\": 30.0, \"interruptions\": 1,"
    " \"breakdown\": {\"training\": 129600, \"checkpoint\": 0, \"lost\": 43200},"
    " \"incidents\": [{\"time_s\": 43200, \"interrupted\": true, \"lost_s\": 3600}, {\"time_s\": 50000, \"interrupted\": false,"
    " \"lost_s\": 0}],"
    " \"series\": [{\"start_s\": 0, \"length_s\": 86400, \"goodput\": 1.0, \"mfu_pct\": 40.0, \"breakdown\": {\"training\": "
    "86400,"
    " \"checkpoint\": 0, \"lost\": 0}},"
    " {\"start_s\": 86400, \"length_s\": 86400, \"goodput\": 0.5, \"mfu_pct\": 20.0, \"breakdown\": {\"training\": 43200,"
    " \"checkpoint\": 0, \"lost\": 43200}}]}";

static const char compare_json[] =
    "{\"command\": \"compare\", \"summary\": {\"n\": 2, \"mape_pct\": 15, \"macro_mape_pct\": 15},"
    " \"sources\": [{\"source\": \"dir/one.csv\", \"n\": 1, \"mape_pct\": 10, \"median_ape_pct\": 10, \"p90_ape_pct\": 10,"
    " \"bias_pct\": -10}, {\"source\": \"two.csv.gz\", \"n\": 1, \"mape_pct\": 20, \"median_ape_pct\": 20, \"p90_ape_pct\": 25,"
    " \"bias_pct\": 20}],"
    " \"rows\": [{\"source\": \"dir/one.csv\", \"measured_s\": 10, \"predicted_s\": 9}, {\"source\": \"two.csv.gz\","
    " \"measured_s\": 5, \"predicted_s\": 6}, {\"source\": \"two.csv.gz\", \"measured_s\": null, \"predicted_s\": null}]}";

static const char sweep_json[] =
    "{\"sweep\": {\"key\": \"restart\", \"unit\": \"s\", \"logarithmic\": false, \"replicas\": 8, \"points\": ["
    "{\"value\": 300, \"goodput\": 0.9, \"ci95_low\": 0.89, \"ci95_high\": 0.91, \"memoryless\": 0.905, "
    "\"breakdown\": {\"training\": 0.9, \"lost\": 0.04, \"restart\": 0.06, \"waiting\": 0}},"
    "{\"value\": 1800, \"goodput\": 0.8, \"ci95_low\": 0.79, \"ci95_high\": 0.81, \"memoryless\": 0.81, "
    "\"breakdown\": {\"training\": 0.8, \"lost\": 0.04, \"restart\": 0.16, \"waiting\": 0}}]}}";

static const char replicas_json[] =
    "{\"estimates\": {\"goodput_pct\": {\"mean\": 90, \"ci95_low\": 89, \"ci95_high\": 91, \"p05\": 88, \"p95\": 92}},"
    "\"outcomes\": [{\"goodput\": 0.88}, {\"goodput\": 0.9}, {\"goodput\": 0.92}]}";

static const char faults_json[] =
    "{\"failures\": 3, \"mtbf_s\": 3600, \"per_node_day\": 0.1, \"gaps\": {\"shape\": 0.8}, \"top_nodes\": [],"
    "\"causes\": [{\"detail\": \"GPU\", \"faults\": 2, \"mean_down_s\": 60}, {\"detail\": \"\", \"faults\": 1, \"mean_down_s\": "
    "0}]}";

static const char links_csv[] = "layer,link,utilisation,contended_s,most_transfers,name\n"
                                "nic_up,0,0.5,0,1,host 0 nic 0 port 0 -> tor 0\n"
                                "nic_up,1,0.25,0,1,host 0 nic 1 port 0 -> tor 0\n"
                                "nic_up,2,0,0,1,host 1 nic 0 port 0 -> tor 0\n"
                                "nic_up,3,0.125,0,1,host 1 nic 1 port 0 -> tor 0\n"
                                "nic_down,0,0.5,0,1,tor 0 -> host 0 nic 0 port 0\n";

/* The second GPU count is missing in fp8: its line begins at 512. */
static const char scaling_json[] =
    "{\"scaling\": {\"axes\": [{\"keys\": [\"gpus\", \"global-batch\"], \"values\": 2}, {\"keys\": [\"precision\"], "
    "\"values\": 2}], \"points\": ["
    "{\"values\": {\"gpus\": \"256\", \"precision\": \"bf16\"}, \"gpus\": 256, \"fits\": true, \"tokens_per_s\": 1000, "
    "\"plan\": {\"mfu_pct\": 50}},"
    "{\"values\": {\"gpus\": \"512\", \"precision\": \"bf16\"}, \"gpus\": 512, \"fits\": true, \"tokens_per_s\": 1900, "
    "\"plan\": {\"mfu_pct\": 47.5}},"
    "{\"values\": {\"gpus\": \"256\", \"precision\": \"fp8\"}, \"gpus\": 256, \"fits\": false},"
    "{\"values\": {\"gpus\": \"512\", \"precision\": \"fp8\"}, \"gpus\": 512, \"fits\": true, \"tokens_per_s\": 3000, "
    "\"plan\": {\"mfu_pct\": 40}}]}}";

/* One of three has not ended: the 95th percentile is not known. */
static const char end_json[] =
    "{\"config\": {\"job\": {\"tokens\": 3e11}}, \"reached\": 2, \"fault_free_s\": 864000, \"likely\": {\"end_low_s\": 1022112, "
    "\"end_high_s\": "
    "1224288}, \"estimates\": {\"goodput_pct\": "
    "{\"mean\": 90}, \"end_s\": "
    "{\"mean\": null, \"ci95_low\": null, \"ci95_high\": null, \"p05\": 1036800, \"median\": 1123200, \"p95\": null}},"
    "\"outcomes\": [{\"end_s\": 1123200}, {\"end_s\": null}, {\"end_s\": 1036800}]}";

const char *const figure_samples[N_FIGURE_KINDS] = {
    [FIGURE_TIMELINE] = timeline_csv,  [FIGURE_BREAKDOWN] = step_json, [FIGURE_RUN] = run_json,
    [FIGURE_SCATTER] = compare_json,   [FIGURE_ERRORS] = compare_json, [FIGURE_SWEEP] = sweep_json,
    [FIGURE_REPLICAS] = replicas_json, [FIGURE_FAULTS] = faults_json,  [FIGURE_LINKS] = links_csv,
    [FIGURE_SCALING] = scaling_json,   [FIGURE_END] = end_json};

struct figure_input input_of(const char *name, const char *text)
{
    struct figure_input input = {.name = name};
    struct diags diags = {0};
    if (*text == '{')
        input.result = json_loads(text, 0, NULL);
    else
        ck_assert_int_eq(csv_table_parse(name, text, strlen(text), &input.csv, &diags), STATUS_OK);
    ck_assert(input.result || input.csv.n_rows);
    return input;
}

enum status script_written(const struct figure_options *options, const struct figure_input *inputs, size_t n, char **script,
                           struct diags *diags)
{
    size_t size = 0;
    FILE *out = open_memstream(script, &size);
    enum status status = figure_script(options, inputs, n, out, diags);
    fclose(out);
    return status;
}

char *script_of(const struct figure_options *options, const struct figure_input *inputs, size_t n)
{
    char *script = NULL;
    struct diags diags = {0};
    enum status status = script_written(options, inputs, n, &script, &diags);
    diags_print(&diags, stdout, false);
    ck_assert_int_eq(status, STATUS_OK);
    return script;
}

void expect_script(const struct figure_options *options, const char *name, const char *text, const char *const *parts)
{
    struct figure_input input = input_of(name, text);
    char *script = script_of(options, &input, 1);
    for (; *parts; parts++)
        ck_assert_msg(strstr(script, *parts) != NULL, "the script has no\n%s\nbut is\n%s", *parts, script);
    free(script);
    figure_input_free(&input);
}
