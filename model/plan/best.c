/* best.c - the best layouts of a setting, or the reasons why there are none. */
#include "model/plan/remedy.h"
#include "model/plan/search.h"

enum status plans_best(const struct setting *setting, const char *restrictions, const struct search_options *options,
                       struct search_result *result, struct diags *diags)
{
    struct space_limits limits = {0};
    struct space *space;
    enum status status = STATUS_OK;
    if (restrictions != NULL && restrictions[0] != '\0')
        status = space_restrict(&limits, restrictions, PLACE_NONE, diags);
    if (status == STATUS_OK)
        status = space_create(setting, &limits, &space, diags);
    if (status != STATUS_OK)
        return status;
    struct search_result found;
    search_run(space, options, &found);
    if (found.n_plans > 0) {
        *result = found;
    } else {
        remedies_report(space, &limits, options->threads, &found, diags);
        search_result_free(&found);
        status = STATUS_BAD_INPUT;
    }
    space_destroy(space);
    return status;
}
