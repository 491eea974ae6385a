/* library.c - parts that the whole library shares: messages, memory, versions. */
#include <stdlib.h>

#include "model/base/memory.h"
#include "sim/library/library_internal.h"

_Static_assert((int)MSIM_OK == STATUS_OK && (int)MSIM_FAILED == STATUS_FAILED && (int)MSIM_USAGE == STATUS_USAGE &&
                   (int)MSIM_BAD_INPUT == STATUS_BAD_INPUT && (int)MSIM_MISSING == STATUS_MISSING &&
                   (int)MSIM_CHECK_FAILED == STATUS_CHECK,
               "the numbers of both tables are the same");
_Static_assert((int)MSIM_ERROR == SEVERITY_ERROR && (int)MSIM_WARNING == SEVERITY_WARNING && (int)MSIM_NOTE == SEVERITY_NOTE,
               "so are those of severities");

const char *msim_version(void)
{
    return MSIM_VERSION;
}

const char *msim_status_text(enum msim_status status)
{
    static const char *const texts[] = {
        "success", "failed while running", "wrong argument", "bad input", "a capability is missing", "a check did not hold",
    };
    return (size_t)status < sizeof texts / sizeof *texts ? texts[status] : "unknown status";
}

void msim_out_of_memory(void (*handler)(size_t bytes))
{
    memory_set_handler(handler);
}

void msim_free(char *text)
{
    free(text);
}

struct msim_messages *msim_messages_create(void)
{
    return memory_new(1, sizeof(struct msim_messages));
}

void msim_messages_destroy(struct msim_messages *messages)
{
    if (messages)
        diags_free(&messages->diags);
    free(messages);
}

void msim_messages_clear(struct msim_messages *messages)
{
    diags_free(&messages->diags);
    messages->diags = (struct diags){0};
}

size_t msim_messages_count(const struct msim_messages *messages)
{
    return messages->diags.n_items;
}

enum msim_status msim_messages_get(const struct msim_messages *messages, size_t i, struct msim_message *message)
{
    if (i >= messages->diags.n_items)
        return MSIM_USAGE;
    const struct diag *item = &messages->diags.items[i];
    *message = (struct msim_message){
        .severity = (enum msim_severity)item->severity,
        .file = item->file,
        .line = item->line,
        .column = item->column,
        .text = item->text,
    };
    return MSIM_OK;
}

struct diags *library_begin(struct library_call *call, struct msim_messages *messages)
{
    call->own = (struct diags){0};
    return messages ? &messages->diags : &call->own;
}

enum msim_status library_done(struct library_call *call, enum status status)
{
    diags_free(&call->own);
    return (enum msim_status)status;
}
