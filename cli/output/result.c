#include "cli/output/result.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/options/experiment_options.h"
#include "cli/options/options.h"
#include "model/base/file.h"
#include "model/base/memory.h"
#include "model/spec/json_text.h"

struct outputs {
    struct file_output files[MAX_OUTPUTS];
    int n_files;
};

static const int ending_signals[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};
enum { N_ENDING_SIGNALS = sizeof ending_signals / sizeof ending_signals[0] };

/*
 * A signal handler has no argument, so the names of unfinished files are the one piece of process-wide state: written by the main
 * thread while the signals are held back, read by the handler, which runs in that thread.
 */
static char *volatile unfinished[MAX_OUTPUTS];
static pthread_t main_thread;

/* Libraries have threads of their own (OpenBLAS from the moment it is loaded), to which a signal to the process may go although
 * the main thread holds it back: it gets it from them. */
static void remove_unfinished(int signal_number)
{
    if (!pthread_equal(pthread_self(), main_thread)) {
        pthread_kill(main_thread, signal_number);
        return;
    }
    for (int i = 0; i < MAX_OUTPUTS; i++) {
        if (unfinished[i])
            unlink(unfinished[i]);
    }
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

void outputs_guard(void)
{
    main_thread = pthread_self();
    for (int i = 0; i < N_ENDING_SIGNALS; i++) {
        struct sigaction action = {.sa_handler = remove_unfinished};
        sigemptyset(&action.sa_mask);
        sigaction(ending_signals[i], &action, NULL);
    }
}

/* Hold the signals back while files come and go; *before is what signals_release restores. */
static void signals_hold(sigset_t *before)
{
    sigset_t set;
    sigemptyset(&set);
    for (int i = 0; i < N_ENDING_SIGNALS; i++)
        sigaddset(&set, ending_signals[i]);
    pthread_sigmask(SIG_BLOCK, &set, before);
}

static void signals_release(const sigset_t *before)
{
    pthread_sigmask(SIG_SETMASK, before, NULL);
}

/* Of two results with one name the second would silently replace the first. */
static bool is_taken(const struct outputs *outputs, const char *path)
{
    bool standard = strcmp(path, "-") == 0;
    for (int i = 0; i < outputs->n_files; i++) {
        const char *other = outputs->files[i].path;
        if (other ? !standard && file_is_same_target(other, path) : standard)
            return true;
    }
    return false;
}

/* Does an option name this file? NAME=FILE, too (--set cluster=mine.yaml). */
static bool option_names(const struct option_value *value, const char *path)
{
    for (int i = 0; i < value->n_texts; i++) {
        const char *equals = strrchr(value->texts[i], '=');
        if (file_is_same(path, value->texts[i]) || (equals && file_is_same(path, equals + 1)))
            return true;
    }
    return false;
}

/* A result must not overwrite what it was made from: operands and files that options name, but for the results among them. */
static bool is_read(const struct invocation *call, const char *path)
{
    bool read = false;
    if (strcmp(path, "-") == 0)
        return false;
    for (int i = 0; i < call->n_operands && !read; i++)
        read = file_is_same(path, call->operands[i]);
    for (int i = 0; i < call->n_values && !read; i++) {
        const struct option_value *value = &call->values[i];
        read = value->given && !value->row->written && option_names(value, path);
    }
    return read;
}

FILE *output_open(struct invocation *call, const char *path)
{
    struct outputs *outputs = call->outputs;
    if (is_read(call, path)) {
        diag_error(&call->diags, (struct place){.file = path}, "this file is an input; choose another name for the result");
        return NULL;
    }
    if (outputs->n_files == MAX_OUTPUTS) {
        diag_error(&call->diags, (struct place){.file = path}, "too many output files");
        return NULL;
    }
    if (is_taken(outputs, path)) {
        diag_error(&call->diags, (struct place){.file = strcmp(path, "-") == 0 ? "standard output" : path},
                   "two results would be written to this file; choose another name for one");
        return NULL;
    }
    struct file_output *file = &outputs->files[outputs->n_files];
    sigset_t before;
    signals_hold(&before);
    enum status status = file_output_open(file, path, &call->diags);
    if (status == STATUS_OK)
        unfinished[outputs->n_files++] = file->aside;
    signals_release(&before);
    return status == STATUS_OK ? file->stream : NULL;
}

enum status output_option(struct invocation *call, const char *name, FILE **file)
{
    const char *path = option_text(call, name);
    *file = path ? output_open(call, path) : NULL;
    return path && !*file ? STATUS_FAILED : STATUS_OK;
}

enum status outputs_open(struct invocation *call, const char *path)
{
    call->outputs = memory_new(1, sizeof *call->outputs);
    call->out = output_open(call, path);
    return call->out ? STATUS_OK : STATUS_FAILED;
}

enum status outputs_close(struct invocation *call, bool commit)
{
    enum status status = STATUS_OK;
    sigset_t before;
    signals_hold(&before);
    for (int i = call->outputs->n_files - 1; i >= 0; i--) {
        struct file_output *file = &call->outputs->files[i];
        if (!commit || status != STATUS_OK)
            file_output_abandon(file);
        else
            status = file_output_commit(file, &call->diags);
        unfinished[i] = NULL;
    }
    signals_release(&before);
    free(call->outputs);
    call->outputs = NULL;
    call->out = NULL;
    return status;
}

static bool stands_in(const struct option_row *table, const struct option_row *row)
{
    while (table->name && table != row)
        table++;
    return table->name;
}

/* The result depends on it, and neither the envelope nor the effective experiment says it. */
static bool is_told(const struct invocation *call, const struct option_value *value)
{
    bool elsewhere =
        stands_in(common_options, value->row) || (call->command->experiment && stands_in(experiment_options, value->row));
    return value->given && !value->row->aside && !elsewhere;
}

static json_t *json_texts(const char *const *texts, int n)
{
    json_t *array = json_array();
    for (int i = 0; i < n; i++)
        json_array_append_new(array, json_text(texts[i]));
    return array;
}

/* As a user wrote it: true for a flag, texts for what can have several. */
static json_t *json_option(const struct option_value *value)
{
    enum option_type type = value->row->type;
    if (type == OPTION_FLAG)
        return json_true();
    return type == OPTION_LIST || type == OPTION_REPEAT ? json_texts(value->texts, value->n_texts) : json_text(value->texts[0]);
}

static json_t *json_options(const struct invocation *call)
{
    json_t *options = json_object();
    for (int i = 0; i < call->n_values; i++)
        if (is_told(call, &call->values[i]))
            json_object_set_new(options, call->values[i].row->name, json_option(&call->values[i]));
    return options;
}

json_t *result_create(const struct invocation *call, const char *config)
{
    json_t *result = json_object();
    json_object_set_new(result, "msim", json_string(MSIM_VERSION));
    json_object_set_new(result, "command", json_string(call->command->name));
    json_object_set_new(result, "seed", json_integer((json_int_t)call->seed));
    if (config) {
        json_t *object = json_loads(config, 0, NULL);
        json_object_set_new(result, "config", object ? object : json_null());
    }
    json_object_set_new(result, "options", json_options(call));
    if (!call->command->experiment)
        json_object_set_new(result, "operands", json_texts(call->operands, call->n_operands));
    return result;
}

enum status result_write(struct invocation *call, json_t *result)
{
    int failed = json_dumpf(result, call->out, JSON_INDENT(2) | JSON_REAL_PRECISION(12));
    json_decref(result);
    if (!failed && fputc('\n', call->out) != EOF && fflush(call->out) == 0)
        return STATUS_OK;
    diag_error(&call->diags, PLACE_NONE, "cannot write the result: %s", strerror(errno ? errno : EIO));
    return STATUS_FAILED;
}
