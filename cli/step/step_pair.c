#include "cli/step/step_pair.h"

#include <stdlib.h>
#include <string.h>

#include "cli/fabric/fabric_packets.h"
#include "cli/options/fabric_options.h"
#include "cli/options/shared_options.h"
#include "model/base/memory.h"

static enum status check_options(struct invocation *call)
{
    static const char *const of_one_step[] = {"explain",  "trace",       "timeline", "profile", "profile-steps", "export",
                                              "link-map", "trace-ranks", "replicas", "jitter",  "threads"};
    size_t before = call->diags.n_errors;
    for (size_t i = 0; i < sizeof of_one_step / sizeof *of_one_step; i++)
        if (option_given(call, of_one_step[i]))
            diag_error(&call->diags, PLACE_NONE, "--%s applies to one experiment; remove '%s'", of_one_step[i],
                       call->operands[1]);
    fabric_packets_note_idle(call);
    if (option_choice(call, "network") == NETWORK_ANALYTIC)
        fabric_options_note_idle(call, "network", "flow or packet");
    else
        diag_error(&call->diags, PLACE_NONE, "two experiments are compared on the analytic network only; remove --network");
    if (strcmp(call->operands[0], "-") == 0 && strcmp(call->operands[1], "-") == 0)
        diag_error(&call->diags, PLACE_NONE, "standard input can be read only once; make one of the two experiments a file");
    return call->diags.n_errors > before ? STATUS_USAGE : STATUS_OK;
}

/* What is said of both, as of a GPU that --gpu names, is said once. */
static void add_new(struct diags *all, const struct diags *said)
{
    for (size_t i = 0; i < said->n_items; i++) {
        const struct diag *item = &said->items[i];
        const struct place at = {item->file, item->line, item->column};
        bool known = false;
        for (size_t k = 0; k < all->n_items && !known; k++)
            known = all->items[k].severity == item->severity && strcmp(all->items[k].text, item->text) == 0;
        if (known)
            continue;
        if (item->severity == SEVERITY_ERROR)
            diag_error(all, at, "%s", item->text);
        else if (item->severity == SEVERITY_WARNING)
            diag_warning(all, at, "%s", item->text);
        else
            diag_note(all, at, "%s", item->text);
    }
}

/* One of the two files, as if the call had no other. */
static enum status load_side(struct invocation *call, int i, struct step_side *side)
{
    struct invocation alone = *call;
    side->file = call->operands[i];
    alone.operands = call->operands + i;
    alone.n_operands = 1;
    alone.diags = (struct diags){0};
    enum status status = job_setup_load(&alone, &side->setup);
    add_new(&call->diags, &alone.diags);
    diags_free(&alone.diags);
    return status;
}

/* Of each its own GPU's price; one without has no cost. */
static enum status take_prices(struct invocation *call, struct step_pair *pair)
{
    const char *const gpus[] = {pair->sides[0].setup.experiment.cluster.gpu.name,
                                pair->sides[1].setup.experiment.cluster.gpu.name};
    struct gpu_prices prices;
    bool budgeted = false;
    enum status status = gpu_prices_read(call, &prices);
    if (status == STATUS_OK)
        status = gpu_prices_check(call, &prices, gpus, 2);
    if (status != STATUS_OK)
        return status;
    for (int i = 0; i < 2; i++) {
        pair->sides[i].setup.gpu_price = gpu_prices_of(&prices, gpus[i]);
        budgeted |= pair->sides[i].setup.experiment.job.tokens > 0;
    }
    if (budgeted || !option_given(call, "gpu-price"))
        return STATUS_OK;
    diag_error(&call->diags, PLACE_NONE, "--gpu-price needs the training budget; add --tokens, such as --tokens 300B");
    return STATUS_USAGE;
}

static enum status simulate_side(struct invocation *call, struct step_side *side)
{
    bool all = strcmp(option_text(call, "ranks"), "all") == 0;
    const struct step_options how = {.all_ranks = all, .detail = (enum detail)option_choice(call, "detail"), .verify = !all};
    enum status status = step_simulate(&side->setup.layout, &side->setup.setting, &how, &side->result, NULL, NULL, &call->diags);
    side->record = step_record_of(&side->setup, &side->result);
    side->record.timing = option_flag(call, "timing");
    return status;
}

static void count_power(struct step_pair *pair)
{
    bool nodes = true;
    for (int i = 0; i < 2; i++) {
        const struct experiment *e = &pair->sides[i].setup.experiment;
        nodes = nodes && power_bound_of(&e->cluster, e->gpus, POWER_NODES).count != POWER_UNKNOWN;
    }
    for (int i = 0; i < 2; i++)
        pair->sides[i].counted = nodes ? POWER_NODES : POWER_BOARDS;
}

static enum status report(struct invocation *call, struct step_pair *pair)
{
    count_power(pair);
    enum status status = step_pair_report(pair, call);
    for (int i = 0; i < 2; i++)
        if (step_check_fit(&pair->sides[i].record, pair->sides[i].file, call) != STATUS_OK && status == STATUS_OK)
            status = STATUS_CHECK;
    return status;
}

enum status step_pair(struct invocation *call)
{
    struct step_pair *pair = memory_new(1, sizeof *pair);
    enum status status = check_options(call);
    for (int i = 0; i < 2 && status == STATUS_OK; i++)
        status = load_side(call, i, &pair->sides[i]);
    if (status == STATUS_OK)
        status = take_prices(call, pair);
    for (int i = 0; i < 2 && status == STATUS_OK; i++)
        status = simulate_side(call, &pair->sides[i]);
    if (status == STATUS_OK)
        status = report(call, pair);
    free(pair);
    return status;
}
