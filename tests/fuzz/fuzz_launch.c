/* Scripts, logs and configurations of jobs: whatever is taken is a job that can be written as arguments and read again. */
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"
#include "tests/traces/frameworks_loaded.h"
#include "traces/launch/frameworks/framework_config.h"
#include "traces/launch/frameworks/framework_export.h"
#include "traces/launch/frameworks/framework_keys.h"
#include "traces/launch/frameworks/framework_program.h"
#include "traces/launch/launch_shell.h"
#include "traces/launch/megatron/megatron_export.h"
#include "traces/launch/megatron/megatron_log.h"
#include "traces/launch/megatron/megatron_translate.h"
#include "traces/launch/python/python_keys.h"

static void check_log(const struct launch_log *log)
{
    fuzz_expect(log->n_taken + log->n_warm_up + log->n_ramp_up == log->n_iterations, "each iteration is taken or left out");
    fuzz_expect(log->n_iterations == 0 || log->n_taken > 0, "one iteration is taken where there are any");
    fuzz_expect(log->low_s <= log->step_s && log->step_s <= log->high_s, "the median lies between the quartiles");
}

static void check_job(const struct launch_job *job)
{
    char *script;
    size_t n;
    struct diags diags = {0};
    struct launch_words words = {0};
    FILE *out = open_memstream(&script, &n);
    megatron_write_script(job, NULL, 0, out, &diags);
    fclose(out);
    fuzz_expect(launch_shell_parse(frameworks_loaded(), "export", script, n, NULL, &words, &diags) == STATUS_OK,
                "what is written can be read");
    launch_words_free(&words);
    free(script);
    static const char *const names[] = {"NeMo", "nanotron", "torchtitan", "Megatron-Bridge", "NeMo 2"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        out = open_memstream(&script, &n);
        framework_write_config(frameworks_loaded(), names[i], job, NULL, 0, out, &diags);
        fclose(out);
        fuzz_expect(n > 0, "something is said of every job");
        free(script);
    }
    diags_free(&diags);
}

/* What words say, as a job where nothing is missing. */
static void check_words(struct launch_words *words, struct diags *diags)
{
    struct launch_description *d = calloc(1, sizeof *d);
    struct megatron_arguments *arguments = calloc(1, sizeof *arguments);
    if (!d || !arguments)
        abort();
    framework_take_overrides(frameworks_loaded(), words);
    megatron_read(words, frameworks_loaded()->ignored, true, arguments, diags);
    megatron_translate(arguments, &(struct launch_known){0}, d, diags);
    if (diags->n_errors == 0 && d->n_missing == 0)
        check_job(&d->job);
    free(arguments);
    free(d);
}

/* Of any text what a program would say. */
static void check_program(const char *text, size_t size)
{
    struct arena arena = {0};
    struct diags diags = {0};
    struct launch_words words = {0};
    const struct yaml_node *root = python_parse("input", text, size, &arena, &diags);
    fuzz_expect(root->kind == YAML_MAPPING, "a program says nothing, or fields");
    const struct framework *framework;
    if (root->first && framework_read_program(frameworks_loaded(), root, "input", &words, &framework, &diags) == STATUS_OK)
        check_words(&words, &diags);
    launch_words_free(&words);
    diags_free(&diags);
    arena_free(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct diags diags = {0};
    struct launch_words words = {0};
    char *text = malloc(size + 1);
    if (!text)
        abort();
    if (size)
        memcpy(text, data, size);
    size = launch_plain(text, size);
    text[size] = '\0';
    check_program(text, size);
    struct launch_log log;
    enum status status = STATUS_OK;
    if (launch_is_log(text, size)) {
        megatron_log_parse("input", text, size, -1, &words, &log, &diags);
        check_log(&log);
    } else if (framework_is_config("input", text, size)) {
        const struct framework *framework;
        status = framework_config_parse(frameworks_loaded(), "input", text, size, &words, &framework, &diags);
        fuzz_expect(status == STATUS_OK || diags.n_errors > 0, "a refusal says why");
    } else {
        status = launch_shell_parse(frameworks_loaded(), "input", text, size, NULL, &words, &diags);
        fuzz_expect((status == STATUS_OK) == (diags.n_errors == 0), "a refusal says why");
    }
    if (status == STATUS_OK)
        check_words(&words, &diags);
    launch_words_free(&words);
    diags_free(&diags);
    free(text);
    return 0;
}
