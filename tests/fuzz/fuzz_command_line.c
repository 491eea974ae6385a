/* Command lines: one argument per input line, the first is the command. */
#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/options/options.h"
#include "tests/fuzz/fuzz.h"

enum { ARGUMENTS_MAX = 64 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    char *argv[ARGUMENTS_MAX + 1];
    int argc = 0;
    char *rest = text;
    for (char *line; argc < ARGUMENTS_MAX && (line = strsep(&rest, "\n")) != NULL;)
        argv[argc++] = line;
    argv[argc] = NULL;
    const struct command *command = argc ? command_find(argv[0], NULL) : NULL;
    if (command) {
        struct invocation call;
        enum status status = invocation_parse(commands, command, argc, argv, &call);
        fuzz_expect((status == STATUS_OK) == (call.diags.n_errors == 0), "a refusal says why, and nothing else does");
        invocation_free(&call);
    }
    free(text);
    return 0;
}
