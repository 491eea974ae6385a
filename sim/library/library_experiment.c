/* library_experiment.c - experiments, and their layouts. */
#include <stdlib.h>
#include <string.h>

#include "model/base/file.h"
#include "model/base/memory.h"
#include "model/spec/yaml.h"
#include "sim/library/library_internal.h"

/* Reads what the handle holds anew. Its experiment is written on success only. */
static enum status experiment_reload(struct msim_experiment *handle, struct diags *diags)
{
    const struct experiment_flags flags = {
        .name = handle->name,
        .text = handle->text,
        .n_text = handle->n_text,
        .overrides = (const char *const *)handle->overrides,
        .n_overrides = handle->n_overrides,
    };
    return experiment_load(&flags, &handle->experiment, diags);
}

static enum msim_status experiment_open(struct msim_experiment *handle, struct msim_messages *messages,
                                        struct msim_experiment **experiment)
{
    struct library_call call;
    enum status status = experiment_reload(handle, library_begin(&call, messages));
    *experiment = handle;
    if (status != STATUS_OK) {
        msim_experiment_destroy(handle);
        *experiment = NULL;
    }
    return library_done(&call, status);
}

enum msim_status msim_experiment_read(const char *path, struct msim_messages *messages, struct msim_experiment **experiment)
{
    struct msim_experiment *handle = memory_new(1, sizeof *handle);
    struct library_call call;
    /* Once, though each change reads the experiment anew: standard input and pipes have nothing left then. */
    enum status status = file_read(path, YAML_BYTES_MAX, &handle->text, &handle->n_text, library_begin(&call, messages));
    if (status != STATUS_OK) {
        msim_experiment_destroy(handle);
        *experiment = NULL;
        return library_done(&call, status);
    }
    handle->name = strcmp(path, "-") == 0 ? NULL : memory_copy_text(path);
    return experiment_open(handle, messages, experiment);
}

enum msim_status msim_experiment_parse(const char *name, const char *text, size_t n, struct msim_messages *messages,
                                       struct msim_experiment **experiment)
{
    struct msim_experiment *handle = memory_new(1, sizeof *handle);
    handle->name = memory_copy_text(name);
    handle->text = memory_new(n + 1, 1);
    if (n > 0)
        memcpy(handle->text, text, n);
    handle->n_text = n;
    return experiment_open(handle, messages, experiment);
}

enum msim_status msim_experiment_set(struct msim_experiment *experiment, const char *key_value, struct msim_messages *messages)
{
    struct library_call call;
    size_t n = (size_t)experiment->n_overrides;
    char **overrides = memory_new(n + 1, sizeof *overrides);
    if (n > 0)
        memcpy(overrides, experiment->overrides, n * sizeof *overrides);
    free(experiment->overrides);
    experiment->overrides = overrides;
    overrides[n] = memory_copy_text(key_value);
    experiment->n_overrides++;
    enum status status = experiment_reload(experiment, library_begin(&call, messages));
    if (status != STATUS_OK)
        free(overrides[--experiment->n_overrides]);
    return library_done(&call, status);
}

char *msim_experiment_json(const struct msim_experiment *experiment)
{
    return experiment_to_json(&experiment->experiment);
}

int msim_experiment_gpus(const struct msim_experiment *experiment)
{
    return experiment->experiment.gpus;
}

void msim_experiment_destroy(struct msim_experiment *experiment)
{
    if (!experiment)
        return;
    for (int i = 0; i < experiment->n_overrides; i++)
        free(experiment->overrides[i]);
    free(experiment->overrides);
    free(experiment->name);
    free(experiment->text);
    free(experiment);
}
