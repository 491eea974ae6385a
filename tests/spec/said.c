#include "tests/spec/said.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "model/base/memory.h"

char *said(const struct diags *diags)
{
    char *text = NULL;
    size_t n;
    FILE *out = open_memstream(&text, &n);
    diags_print(diags, out, false);
    fclose(out);
    return text;
}

char *said_of_text(const char *text, enum status *status)
{
    struct diags diags = {0};
    struct experiment *experiment = memory_new(1, sizeof *experiment);
    *status = experiment_parse_text("t.yaml", text, strlen(text), experiment, &diags);
    char *words = said(&diags);
    diags_free(&diags);
    free(experiment);
    return words;
}

enum { TEMPORARY_MAX = 16 };
static char made[TEMPORARY_MAX][256];
static int n_made;

static void remove_made(void)
{
    for (int i = 0; i < n_made; i++) {
        unlink(made[i]);
        *strrchr(made[i], '/') = '\0';
        rmdir(made[i]);
    }
}

const char *temporary_file(const char *name, const char *bytes, size_t n)
{
    char folder[] = "/tmp/msim-spec-XXXXXX";
    ck_assert_ptr_nonnull(mkdtemp(folder));
    ck_assert_int_lt(n_made, TEMPORARY_MAX);
    if (n_made == 0)
        atexit(remove_made);
    char *path = made[n_made++];
    snprintf(path, sizeof made[0], "%s/%s", folder, name);
    FILE *out = fopen(path, "wb");
    ck_assert_ptr_nonnull(out);
    ck_assert_uint_eq(fwrite(bytes, 1, n, out), n);
    fclose(out);
    return path;
}
