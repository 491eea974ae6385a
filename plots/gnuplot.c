/* gnuplot.c - starts gnuplot without a shell and collects its output. */
#include "plots/gnuplot.h"

#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "model/base/memory.h"

extern char **environ;

/* The files that one run of gnuplot reads and writes. */
struct pipes {
    FILE *script, *picture, *complaints;
};

static enum status system_failed(const char *doing, int code, struct diags *diags)
{
    diag_error(diags, PLACE_NONE, "cannot %s: %s", doing, strerror(code));
    return STATUS_FAILED;
}

static enum status pipes_open(struct pipes *pipes, const char *script, size_t n_script, struct diags *diags)
{
    errno = 0;
    *pipes = (struct pipes){tmpfile(), tmpfile(), tmpfile()};
    bool ready = pipes->script && pipes->picture && pipes->complaints && fwrite(script, 1, n_script, pipes->script) == n_script &&
                 fflush(pipes->script) == 0;
    if (!ready)
        return system_failed("make a temporary file for gnuplot", errno ? errno : EIO, diags);
    rewind(pipes->script);
    return STATUS_OK;
}

static void pipes_close(struct pipes *pipes)
{
    FILE *files[] = {pipes->script, pipes->picture, pipes->complaints};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (files[i])
            fclose(files[i]);
}

static enum status start(const struct pipes *pipes, pid_t *child, struct diags *diags)
{
    char program[] = "gnuplot";
    char *const arguments[] = {program, NULL};
    posix_spawn_file_actions_t actions;
    int code = posix_spawn_file_actions_init(&actions);
    if (code)
        return system_failed("start gnuplot", code, diags);
    code = posix_spawn_file_actions_adddup2(&actions, fileno(pipes->script), STDIN_FILENO);
    if (!code)
        code = posix_spawn_file_actions_adddup2(&actions, fileno(pipes->picture), STDOUT_FILENO);
    if (!code)
        code = posix_spawn_file_actions_adddup2(&actions, fileno(pipes->complaints), STDERR_FILENO);
    if (!code)
        code = posix_spawnp(child, program, &actions, NULL, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (code == ENOENT) {
        diag_error(diags, PLACE_NONE, "gnuplot is not installed (Debian: apt install gnuplot-nox); figures need it");
        return STATUS_MISSING;
    }
    return code ? system_failed("start gnuplot", code, diags) : STATUS_OK;
}

/* The whole of a temporary file, with a NUL behind it. */
static char *contents(FILE *file, size_t *n)
{
    char *bytes = NULL;
    size_t capacity = 0, got;
    *n = 0;
    rewind(file);
    do {
        bytes = memory_grow(bytes, &capacity, *n + 65536 + 1, 1);
        got = fread(bytes + *n, 1, 65536, file);
        *n += got;
    } while (got > 0);
    bytes[*n] = '\0';
    return bytes;
}

/* The first line that says something: gnuplot prints the offending line and a caret before its message. */
static void report(FILE *complaints, int wait_status, struct diags *diags)
{
    size_t n;
    char *text = contents(complaints, &n), *rest = text, *line, *last = NULL;
    while ((line = strsep(&rest, "\n")) != NULL)
        if (strspn(line, " \t^") < strlen(line))
            last = line;
    if (last)
        diag_error(diags, PLACE_NONE, "gnuplot: %.300s", last + strspn(last, " \t"));
    else if (WIFSIGNALED(wait_status))
        diag_error(diags, PLACE_NONE, "gnuplot was ended by signal %d", WTERMSIG(wait_status));
    else
        diag_error(diags, PLACE_NONE, "gnuplot drew nothing");
    free(text);
}

static enum status finish(const struct pipes *pipes, pid_t child, char **picture, size_t *n_picture, struct diags *diags)
{
    int wait_status = 0;
    while (waitpid(child, &wait_status, 0) < 0)
        if (errno != EINTR)
            return system_failed("wait for gnuplot", errno, diags);
    char *drawn = contents(pipes->picture, n_picture);
    if (!WIFEXITED(wait_status) || WEXITSTATUS(wait_status) != 0 || *n_picture == 0) {
        report(pipes->complaints, wait_status, diags);
        free(drawn);
        return STATUS_FAILED;
    }
    *picture = drawn;
    return STATUS_OK;
}

enum status gnuplot_run(const char *script, size_t n_script, char **picture, size_t *n_picture, struct diags *diags)
{
    struct pipes pipes;
    pid_t child;
    size_t n = 0;
    enum status status = pipes_open(&pipes, script, n_script, diags);
    if (status == STATUS_OK)
        status = start(&pipes, &child, diags);
    if (status == STATUS_OK)
        status = finish(&pipes, child, picture, &n, diags);
    if (status == STATUS_OK)
        *n_picture = n;
    pipes_close(&pipes);
    return status;
}
