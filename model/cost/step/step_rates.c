/*
 * step_rates.c - a step time as the rates that papers and frameworks report.
 */
#include "model/cost/step/step_rates.h"

#include "model/cost/work/work.h"

struct step_rates step_rates_of(const struct layout *layout, const struct setting *setting, double step_s)
{
    const struct job *job = setting->job;
    double peak = setting->cluster->gpu.peak_flops[job->precision], gpu_s = step_s * setting->gpus;
    double full = model_flops_per_step(setting, layout->features, FLOPS_FULL) / gpu_s;
    double causal = model_flops_per_step(setting, layout->features, FLOPS_CAUSAL) / gpu_s;
    double tokens_per_s = (double)job->global_batch * (double)job->seq_len / step_s, seconds = job->tokens / tokens_per_s;

    return (struct step_rates){.mfu = full / peak,
                               .mfu_causal = causal / peak,
                               .tflops = full / 1e12,
                               .tflops_causal = causal / 1e12,
                               .tokens_per_s = tokens_per_s,
                               .tokens_per_gpu = tokens_per_s / setting->gpus,
                               .days = seconds / 86400,
                               .gpu_hours = seconds / 3600 * setting->gpus};
}
