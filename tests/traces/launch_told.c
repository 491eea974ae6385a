#include "tests/traces/launch_told.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/file.h"
#include "tests/traces/frameworks_loaded.h"
#include "traces/launch/frameworks/framework_config.h"
#include "traces/launch/frameworks/framework_keys.h"
#include "traces/launch/launch_shell.h"

struct told tell(const char *config, const char *line, int gpus)
{
    return tell_as("c", config, line, gpus);
}

struct told tell_as(const char *path, const char *config, const char *line, int gpus)
{
    struct told t = {0};
    const struct framework *framework;
    struct megatron_arguments *arguments = memory_new(1, sizeof *arguments);
    if (config)
        ck_assert_int_eq(
            framework_config_parse(frameworks_loaded(), path, config, strlen(config), &t.words, &framework, &t.diags), STATUS_OK);
    if (line)
        ck_assert_int_eq(shell_words("--with", line, &t.words, &t.diags), STATUS_OK);
    framework_take_overrides(frameworks_loaded(), &t.words);
    megatron_read(&t.words, frameworks_loaded()->ignored, true, arguments, &t.diags);
    megatron_translate(arguments, &(struct launch_known){.gpus = gpus}, &t.d, &t.diags);
    free(arguments);
    return t;
}

void told_free(struct told *t)
{
    launch_words_free(&t->words);
    diags_free(&t->diags);
}

void expect_layout(const struct told *t, const char *layout, int64_t batch)
{
    char text[LAYOUT_TEXT];
    ck_assert_msg(t->diags.n_errors == 0 && t->d.n_missing == 0, "%s",
                  t->diags.n_items ? t->diags.items[0].text : t->d.missing[0]);
    ck_assert_str_eq(layout_format(&t->d.job.layout, text, sizeof text), layout);
    ck_assert_int_eq(t->d.job.job.global_batch, batch);
}

void expect_warning(const struct told *t, const char *words)
{
    bool found = false;
    for (size_t i = 0; i < t->diags.n_items; i++)
        found |= strstr(t->diags.items[i].text, words) != NULL;
    ck_assert_msg(found, "nothing says '%s'", words);
}

void expect_warning_at(const struct told *t, const char *words, int line, int column)
{
    bool found = false;
    for (size_t i = 0; i < t->diags.n_items; i++) {
        const struct diag *d = &t->diags.items[i];
        found |= strstr(d->text, words) && d->line == line && d->column == column;
    }
    ck_assert_msg(found, "nothing says '%s' of line %d, column %d", words, line, column);
}

void expect_quiet(const struct told *t, const char *words)
{
    for (size_t i = 0; i < t->diags.n_items; i++)
        ck_assert_msg(!strstr(t->diags.items[i].text, words), "%s", t->diags.items[i].text);
}

void expect_said(const struct told *t, const char *warning)
{
    if (warning)
        expect_warning(t, warning);
    else
        ck_assert_msg(t->diags.n_items == 0, "%s", t->diags.n_items ? t->diags.items[0].text : "");
}

struct told tell_file(const char *name, const char *line, int gpus)
{
    char path[512], *text;
    size_t n;
    struct diags diags = {0};
    snprintf(path, sizeof path, "%s/tests/traces/configurations/%s", MSIM_SOURCE_DIR, name);
    ck_assert_int_eq(file_read(path, 1 << 20, &text, &n, &diags), STATUS_OK);
    struct told told = tell(text, line, gpus);
    free(text);
    diags_free(&diags);
    return told;
}
