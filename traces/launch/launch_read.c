#include "traces/launch/launch_read.h"

#include <stdlib.h>
#include <string.h>

#include "model/base/file.h"
#include "traces/launch/framework_config.h"
#include "traces/launch/framework_keys.h"
#include "traces/launch/megatron_meaning.h"

/* --- files --- */

/* A program that builds its configuration is none. */
static enum status refuse_program(const char *path, struct diags *diags)
{
    size_t n = strlen(path);
    if (n < 4 || strcmp(path + n - 3, ".py") != 0)
        return STATUS_OK;
    diag_error(
        diags, (struct place){.file = path},
        "a Python program is not run; give the configuration that it makes as YAML or JSON (Megatron-Bridge: run_config.yaml "
        "beside the checkpoints), or a log of it");
    return STATUS_BAD_INPUT;
}

static enum status read_source(struct launch_source *source, const struct launch_reading *how, struct diags *diags)
{
    enum status status = refuse_program(source->path, diags);
    if (status != STATUS_OK)
        return status;
    status = file_read(source->path, LOG_BYTES_MAX, &source->bytes, &source->n, diags);
    if (status != STATUS_OK)
        return status;
    source->n = launch_plain(source->bytes, source->n);
    source->is_log = launch_is_log(source->bytes, source->n);
    if (source->is_log) {
        megatron_log_parse(source->path, source->bytes, source->n, how->warm_up, &source->words, &source->log, diags);
        return STATUS_OK;
    }
    if (framework_is_config(source->path, source->bytes, source->n))
        return framework_config_parse(source->path, source->bytes, source->n, &source->words, &source->is_companion, diags);
    if (source->n > SHELL_BYTES_MAX) {
        diag_error(diags, (struct place){.file = source->path}, "neither the log of a training job nor a script: %zu bytes",
                   source->n);
        return STATUS_BAD_INPUT;
    }
    status = launch_shell_parse(source->path, source->bytes, source->n, how->environment, &source->words, diags);
    source->is_override = megatron_count(&source->words) == 0 && !framework_is_told_by_flags(&source->words);
    source->is_companion = source->is_override;
    return status;
}

static size_t count(const struct launch_sources *sources, bool logs)
{
    size_t n = 0;
    for (size_t i = 0; i < sources->n; i++)
        n += !sources->items[i].is_companion && sources->items[i].is_log == logs;
    return n;
}

static enum status check_together(const struct launch_sources *sources, struct diags *diags)
{
    size_t logs = count(sources, true), others = count(sources, false);
    enum status status = STATUS_OK;
    if (logs && others > 1) {
        diag_error(diags, (struct place){0}, "%zu descriptions of jobs beside logs: which one is the logs'? Give one of them",
                   others);
        return STATUS_BAD_INPUT;
    }
    if (!logs && !others) {
        diag_error(diags, (struct place){.file = sources->items[0].path},
                   "this only says more about a job; give its script or log, too");
        return STATUS_BAD_INPUT;
    }
    for (size_t i = 0; i < sources->n; i++) {
        const struct launch_source *s = &sources->items[i];
        if (s->is_log && !s->log.has_arguments && !others) {
            diag_error(diags, (struct place){.file = s->path},
                       "this log has no argument block, so it does not say what ran; give the job's script, too");
            status = STATUS_BAD_INPUT;
        }
    }
    return status;
}

enum status launch_sources_read(const char *const *paths, size_t n, const struct launch_reading *how,
                                struct launch_sources *sources, struct diags *diags)
{
    struct launch_sources read = {.items = memory_new(n, sizeof *read.items), .n = n};
    enum status worst = STATUS_OK;
    for (size_t i = 0; i < n; i++) {
        read.items[i].path = paths[i];
        enum status status = read_source(&read.items[i], how, diags);
        worst = status == STATUS_OK ? worst : status;
    }
    if (worst == STATUS_OK)
        worst = check_together(&read, diags);
    if (worst != STATUS_OK) {
        launch_sources_free(&read);
        return worst;
    }
    *sources = read;
    return STATUS_OK;
}

void launch_sources_free(struct launch_sources *sources)
{
    for (size_t i = 0; i < sources->n; i++) {
        free(sources->items[i].bytes);
        launch_words_free(&sources->items[i].words);
    }
    free(sources->items);
    *sources = (struct launch_sources){0};
}

bool launch_is_job(const struct launch_sources *sources, size_t i)
{
    const struct launch_source *s = &sources->items[i];
    return !s->is_companion && (s->is_log || count(sources, true) == 0);
}

/* --- jobs --- */

static void add_all(struct launch_words *words, const struct launch_words *more)
{
    for (size_t i = 0; i < more->n; i++)
        launch_words_add(words, more->items[i]);
}

void launch_describe(const struct launch_sources *sources, size_t i, const struct launch_reading *how,
                     struct launch_description *description, struct diags *diags)
{
    struct launch_words words = {0};
    const struct launch_source *job = &sources->items[i];
    for (size_t k = 0; k < sources->n; k++)
        if (k != i && !sources->items[k].is_log && !sources->items[k].is_override &&
            (sources->items[k].is_companion || job->is_log))
            add_all(&words, &sources->items[k].words);
    add_all(&words, &job->words);
    for (size_t k = 0; k < sources->n; k++)
        if (sources->items[k].is_override)
            add_all(&words, &sources->items[k].words);
    *description = (struct launch_description){0};
    if (!how->with || launch_shell_words("--with", how->with, &words, diags) == STATUS_OK) {
        struct megatron_arguments *arguments = memory_new(1, sizeof *arguments);
        framework_take_overrides(&words);
        megatron_read(&words, how->all, arguments, diags);
        megatron_mean(arguments, &(struct launch_known){.gpus = how->gpus}, description, diags);
        free(arguments);
    }
    launch_words_free(&words);
}
