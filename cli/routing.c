#include "cli/routing.h"

#include <math.h>

#include "model/base/units.h"
#include "model/cost/closed_form.h"

static double step_seconds(const struct setting *setting, const struct layout *layout)
{
    struct closed_form *form = closed_form_create(setting);
    struct step_estimate estimate;
    closed_form_estimate(form, layout, &estimate);
    closed_form_destroy(form);
    return estimate.step_s;
}

/* What the step would be shorter if the same copies of tokens were spread evenly, as the closed form has it. */
static double waiting_seconds(const struct setting *setting, const struct layout *layout)
{
    struct job even = *setting->job;
    struct setting spread = *setting;
    expert_load_spread(&even.load);
    spread.job = &even;
    return fmax(0, step_seconds(setting, layout) - step_seconds(&spread, layout));
}

void routing_write(const struct setting *setting, FILE *out)
{
    const struct expert_load *load = &setting->job->load;
    if (!expert_load_given(load))
        return;
    fputs("experts  ", out);
    if (load->busiest > 1)
        fprintf(out, "the busiest is sent %.4g times the mean%s", load->busiest, load->capacity > 0 ? "; " : "");
    if (load->capacity > 0)
        fprintf(out, "each works on %s %.4g times the mean: %.2g %% of the tokens' copies are dropped",
                load->padded ? "exactly" : "at most", load->capacity, 100 * load->dropped);
    fputc('\n', out);
}

static bool is_even(const struct expert_load *load, const struct layout *layout)
{
    return !(expert_load_rank(load, layout->ep) > expert_load_mean(load)) &&
           !(expert_load_largest(load, layout->ep) > expert_load_mean(load));
}

void routing_write_waiting(const struct setting *setting, const struct layout *layout, FILE *out)
{
    const struct expert_load *load = &setting->job->load;
    char text[32];
    if (!expert_load_given(load) || is_even(load, layout))
        return;
    double waiting = waiting_seconds(setting, layout);
    fprintf(out, "of this %s is waiting for the busiest of %d ranks, whose experts work on %.3g times the mean\n\n",
            quantity_format(waiting, DIM_TIME, text, sizeof text), layout->ep,
            expert_load_rank(load, layout->ep) / expert_load_mean(load));
}

void routing_json(const struct setting *setting, const struct layout *layout, json_t *object)
{
    const struct expert_load *load = &setting->job->load;
    if (!expert_load_given(load))
        return;
    double waiting = is_even(load, layout) ? 0 : waiting_seconds(setting, layout);
    json_object_set_new(object, "experts",
                        json_pack("{s:f,s:f,s:f,s:f,s:f}", "busiest_expert", fmax(1, load->busiest), "busiest_rank",
                                  expert_load_rank(load, layout->ep), "mean_rank", expert_load_mean(load), "dropped_pct",
                                  100 * load->dropped, "waiting_s", waiting));
}
