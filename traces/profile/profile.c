/* profile.c - reads a profile and recognises its format. */
#include "traces/profile/profile.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/file.h"
#include "traces/profile/profile_internal.h"

static const struct {
    const char *name, *text;
} kinds[N_PROFILE_KINDS] = {
#define X(id, name_, text_) [PROFILE_##id] = {(name_), (text_)},
    PROFILE_KINDS(X)
#undef X
};

const char *profile_kind_name(enum profile_kind kind)
{
    return kinds[kind].name;
}

const char *profile_kind_text(enum profile_kind kind)
{
    return kinds[kind].text;
}

enum status profile_parse(const char *text, size_t n, const char *path, const struct layout *layout, const struct watch *watch,
                          struct profile *profile, struct diags *diags)
{
    struct profile_builder b = {.layout = layout, .watch = watch, .profile = {.rank = -1, .steps_each = 1}};
    size_t first = n >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0; /* byte-order mark */
    while (first < n && isspace((unsigned char)text[first]))
        first++;
    bool json = first == n || text[first] == '{' || text[first] == '[';
    enum status status = (json ? profile_from_torch : profile_from_table)(text, n, path, &b, diags);
    if (status == STATUS_OK)
        return profile_finish(&b, path, profile, diags);
    profile_give_up(&b);
    return status;
}

enum status profile_read(const char *path, size_t limit, const struct layout *layout, const struct profile_watch *watch,
                         struct profile *profile, struct diags *diags)
{
    char *text;
    size_t n;
    enum status status =
        file_read_watched(path, limit, "--profile-limit reads more", watch ? &watch->file : NULL, &text, &n, diags);
    if (status != STATUS_OK)
        return status;
    status = profile_parse(text, n, path, layout, watch ? &watch->text : NULL, profile, diags);
    free(text);
    return status;
}
