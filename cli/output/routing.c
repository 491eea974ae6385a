#include "cli/output/routing.h"

#include <math.h>

#include "model/base/units.h"
#include "model/cost/step/closed_form.h"

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

/* In per cent, of two digits where that many are known: a share below a ten-thousandth of one is not worth them. */
static const char *share_text(double share, char *buffer, size_t size)
{
    double percent = 100 * share;
    if (percent <= 0)
        return "none";
    if (percent < 1e-4)
        return "less than 0.0001 %";
    snprintf(buffer, size, percent < 9.95 ? "%.2g %%" : "%.0f %%", percent);
    return buffer;
}

void routing_write(const struct setting *setting, FILE *out)
{
    const struct expert_load *load = &setting->job->load;
    char share[32];
    if (!expert_load_given(load))
        return;
    fputs("experts  ", out);
    if (load->busiest > 1)
        fprintf(out, "the busiest is sent %.4g times the mean%s", load->busiest, load->capacity > 0 ? "; " : "");
    if (load->capacity > 0)
        fprintf(out, "each works on %s %.4g times the mean: %s of the tokens' copies are dropped",
                load->padded ? "exactly" : "at most", load->capacity, share_text(load->dropped, share, sizeof share));
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
    bool dropping = load->capacity > 0 && !load->padded;
    if (!expert_load_given(load) || layout->ep == 1 || is_even(load, layout))
        return;
    double waiting = waiting_seconds(setting, layout);
    fprintf(out, "of this %s is waiting for the busiest of %d ranks, whose experts work on %.3g times the mean%s\n\n",
            quantity_format(waiting, DIM_TIME, text, sizeof text), layout->ep,
            expert_load_rank(load, layout->ep) / expert_load_mean(load), dropping && load->dropped > 0 ? " of what is left" : "");
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
