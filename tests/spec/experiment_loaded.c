#include "tests/spec/experiment_loaded.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

struct experiment e;

void load(const struct experiment_flags *flags)
{
    struct diags diags = {0};
    memset(&e, 0, sizeof e);
    enum status status = experiment_load(flags, &e, &diags);
    char *words = said(&diags);
    ck_assert_msg(status == STATUS_OK, "%s", words);
    free(words);
    diags_free(&diags);
}

void load_with(struct experiment_flags flags, const char *override)
{
    flags.overrides = &override;
    flags.n_overrides = override != NULL;
    load(&flags);
}

char *said_of(struct experiment_flags flags, const char *override)
{
    struct diags diags = {0};
    flags.overrides = &override;
    flags.n_overrides = override != NULL;
    ck_assert_int_eq(experiment_load(&flags, &e, &diags), STATUS_BAD_INPUT);
    char *words = said(&diags);
    diags_free(&diags);
    return words;
}

const struct experiment_flags the_file = {.file = TEST_DATA "/megascale.yaml"};
const struct experiment_flags two_names = {.model = "gpt-175b-megascale", .cluster = "megascale-a100"};
