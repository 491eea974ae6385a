/*
 * plan_job.c - a program outside msim's tree: plans a job, simulates its step and reads both, through an installed libmsim.
 *
 * Prints one line and returns 0 when everything agrees with everything else; otherwise it names the first thing that does not.
 */
#define _POSIX_C_SOURCE 200809L /* pipe, dup2 */
#include <math.h>
#include <msim.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int run_flows(void); /* run_flows.c */

static const char experiment_text[] = "model: gpt-175b-megascale\n"
                                      "cluster: {base: megascale-a100, gpus: 1024}\n"
                                      "job: {global_batch: 768}\n"
                                      "layout: auto\n";

static int failed(const char *what, const struct msim_messages *messages)
{
    struct msim_message message;
    fprintf(stderr, "consumer: %s\n", what);
    for (size_t i = 0; msim_messages_get(messages, i, &message) == MSIM_OK; i++)
        fprintf(stderr, "  %s:%d:%d: %s\n", message.file ? message.file : "-", message.line, message.column, message.text);
    return 1;
}

/* A mistake has a place and a hint, and changes nothing. */
static int check_mistakes(struct msim_experiment *experiment, struct msim_messages *messages)
{
    static const char wrong[] = "model: no-such-model\n";
    struct msim_experiment *none;
    struct msim_message message;
    if (msim_experiment_parse("wrong.yaml", wrong, strlen(wrong), messages, &none) != MSIM_BAD_INPUT || none)
        return failed("an unknown model is accepted", messages);
    if (msim_messages_get(messages, 0, &message) != MSIM_OK || strcmp(message.file, "wrong.yaml") != 0 || message.line != 1)
        return failed("the message has no place", messages);
    msim_messages_clear(messages);
    if (msim_experiment_set(experiment, "job.global_batch=0", messages) != MSIM_BAD_INPUT ||
        msim_experiment_gpus(experiment) != 1024)
        return failed("a batch of 0 is accepted", messages);
    msim_messages_clear(messages);
    return 0;
}

/* Standard input is read once, and an experiment from it can be changed. */
static int check_pipe(struct msim_messages *messages)
{
    int ends[2];
    struct msim_experiment *experiment;
    size_t n = strlen(experiment_text);
    if (pipe(ends) != 0 || write(ends[1], experiment_text, n) != (ssize_t)n || close(ends[1]) != 0 ||
        dup2(ends[0], STDIN_FILENO) < 0)
        return failed("no pipe", messages);
    if (msim_experiment_read("-", messages, &experiment) != MSIM_OK)
        return failed("standard input cannot be read", messages);
    int status = 0;
    if (msim_experiment_set(experiment, "cluster.gpus=512", messages) != MSIM_OK || msim_experiment_gpus(experiment) != 512)
        status = failed("an experiment from standard input cannot be changed", messages);
    msim_experiment_destroy(experiment);
    return status;
}

static int check_program(const struct msim_experiment *experiment, const char *layout, struct msim_messages *messages)
{
    struct msim_program *program;
    struct msim_op op;
    size_t sends = 0, receives = 0;
    if (msim_program_build(experiment, layout, MSIM_CHUNK, 0, messages, &program) != MSIM_OK ||
        msim_program_verify(program, messages) != MSIM_OK)
        return failed("the program does not verify", messages);
    for (size_t rank = 0; rank < msim_program_ranks(program); rank++)
        for (size_t i = 0; msim_program_op(program, rank, i, &op) == MSIM_OK; i++) {
            sends += op.kind == MSIM_SEND;
            receives += op.kind == MSIM_RECEIVE;
        }
    msim_program_destroy(program);
    return sends == receives ? 0 : failed("messages that nobody receives", messages);
}

/* Classes add up to the step, and the timeline ends with it. */
static int check_step(const struct msim_experiment *experiment, const struct msim_plan *plan, struct msim_messages *messages)
{
    const struct msim_step_options options = {.timeline = 1};
    struct msim_step *step;
    struct msim_step_result result;
    struct msim_span span;
    double sum = 0;
    int64_t end = 0;
    if (msim_step_simulate(experiment, plan->layout, &options, messages, &step) != MSIM_OK)
        return failed("the step is not simulated", messages);
    msim_step_get(step, &result);
    for (size_t i = 0; i < msim_step_classes(); i++)
        sum += msim_step_class_s(step, i);
    for (size_t i = 0; msim_step_span(step, i, &span) == MSIM_OK; i++)
        end = span.end_ns > end ? span.end_ns : end;
    msim_step_destroy(step);
    if (fabs(sum - result.step_s) > 1e-9 * sum)
        return failed("classes do not add up to the step", messages);
    if (fabs((double)end * 1e-9 - result.step_s) > 1e-6 * result.step_s)
        return failed("the timeline does not end with the step", messages);
    return fabs(result.step_s - plan->step_s) <= 1e-9 ? 0 : failed("the step differs from its plan", messages);
}

static int plan_job(struct msim_messages *messages)
{
    struct msim_experiment *experiment;
    struct msim_plans *plans;
    struct msim_plan first, plan;
    if (msim_experiment_parse("job.yaml", experiment_text, strlen(experiment_text), messages, &experiment) != MSIM_OK)
        return failed("the experiment cannot be read", messages);
    int status = check_mistakes(experiment, messages);
    if (status != 0 || msim_plans_search(experiment, NULL, messages, &plans) != MSIM_OK)
        return failed("no plan is found", messages);
    msim_plans_get(plans, 0, &first);
    for (size_t i = 0; msim_plans_get(plans, i, &plan) == MSIM_OK && plan.simulated; i++)
        if (1.005 * plan.step_s < first.step_s ||
            plan.memory_share > 1) /* of equal plans the one with the least memory is first */
            status = failed("plans are out of order, or do not fit", messages);
    if (status == 0)
        status = check_program(experiment, first.layout, messages);
    if (status == 0)
        status = check_step(experiment, &first, messages);
    if (status == 0)
        printf("msim %s: %s takes %.4f s\n", msim_version(), first.layout, first.step_s);
    msim_plans_destroy(plans);
    msim_experiment_destroy(experiment);
    return status;
}

int main(void)
{
    struct msim_messages *messages = msim_messages_create();
    int status = plan_job(messages);
    status = status != 0 ? status : check_pipe(messages);
    msim_messages_destroy(messages);
    return status != 0 ? status : run_flows();
}
