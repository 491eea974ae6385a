/* supported.c - the jobs and layouts that the runtime refuses; each message says what the runtime would execute instead. */
#include <stdarg.h>
#include <stdio.h>

#include "runtime/base/steps.h"

static enum status lacks(struct diags *diags, const char *format, ...) PRINTF_LIKE(2, 3);
static enum status lacks(struct diags *diags, const char *format, ...)
{
    char why[320];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(why, sizeof why, format, arguments);
    va_end(arguments);
    diag_error(diags, PLACE_NONE, "%s", why);
    return STATUS_MISSING;
}

/* A shape of attention or layers that the runtime has no kernels for; NULL: none. */
static const char *foreign_shape(const struct transformer *m)
{
    const struct windowed_heads *own = &m->windowed;
    const struct {
        bool has;
        const char *what;
    } shapes[] = {
        {own->heads || own->kv_heads || own->head_dim || own->value_dim, "heads of windowed layers (windowed)"},
        {m->value_dim && m->value_dim != m->head_dim, "values of another width than keys (value_dim)"},
        {m->query_rank > 0, "queries by a product of low rank (query_rank)"},
        {m->values_are_keys || m->shared_kv_layers > 0, "shared keys and values (values_are_keys, shared_kv_layers)"},
        {m->indexer.heads > 0, "sparse attention (indexer)"},
        {m->layer_embedding > 0, "vectors of tokens for each layer (layer_embedding)"},
        {m->moe.zero_experts > 0, "experts that compute nothing (zero_experts)"},
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        if (shapes[i].has)
            return shapes[i].what;
    return NULL;
}

enum status runtime_supports_layout(const struct layout *layout, const struct setting *setting, struct diags *diags)
{
    double offloaded = offload_share(&layout->offload, OFFLOAD_OPTIMIZER);
    if (setting->model->mixer.heads && layout->cp > 1)
        return lacks(diags, "the runtime keeps whole sequences on a rank where mixers have a state: set cp to 1, instead of %d",
                     layout->cp);
    if (setting->job->optimizer == OPTIMIZER_LAMB && layout_offloads(layout, OFFLOAD_OPTIMIZER) && offloaded < 1)
        return lacks(diags,
                     "lamb measures a step against the whole tensor, and the runtime has no sum over what the device and the "
                     "host have of it: offload all of the optimizer or none, or set job.optimizer to adam or sgd");
    return STATUS_OK;
}

enum status runtime_supports(const struct setting *setting, struct diags *diags)
{
    enum precision precision = setting->job->precision;
    const struct transformer *m = setting->model;
    const struct job *job = setting->job;
    if (job_adapts(job))
        return lacks(diags, "the runtime trains all weights of a model, not adapters: leave out job.adapter");
    if (job_masks_documents(job))
        return lacks(diags, "the runtime attends to whole sequences, not documents apart: leave out job.documents");
    if (job->moment_precision != PRECISION_FP32)
        return lacks(diags, "the runtime keeps the optimizer's moments in fp32: leave out job.moment_precision");
    const char *foreign = foreign_shape(m);
    if (foreign)
        return lacks(diags, "the runtime has no kernels for %s of %s: remove these keys from the model", foreign, m->name);
    if (m->output_gate)
        return lacks(diags, "the runtime has no kernels for attention's output gate of %s: it executes ungated attention",
                     m->name);
    if (m->mixer.heads && job->optimizer == OPTIMIZER_MUON)
        return lacks(diags, "the runtime's Muon does not know the matrices of mixers with a state: set job.optimizer to adam");
    if (expert_load_given(&job->load))
        return lacks(diags, "the runtime routes as its router decides, and drops nothing: leave out job.expert_load and "
                            "job.capacity_factor");
    if (job->optimizer == OPTIMIZER_MUON && job->muon_shard == MUON_LAYER_WISE)
        return lacks(diags, "the runtime's Muon divides states by elements, and has no owners of whole parameters: set "
                            "job.muon_shard to elements");
    if (m->mixer.heads && precision_is_narrow(precision))
        return lacks(diags,
                     "the runtime multiplies operands of 16 bits and more where mixers have a state, whose decays' gradients "
                     "8 bits do not keep: set job.precision to bf16");
    if (m->position == POSITION_LEARNED && job->seq_len > m->max_seq_len)
        return lacks(diags,
                     "the model has learned %lld positions, and the runtime no row for more: sequences of %lld are too long; set "
                     "model.max_seq_len to as many",
                     (long long)m->max_seq_len, (long long)job->seq_len);
    if (precision_is_narrow(precision) && precision != PRECISION_FP8 && precision != PRECISION_MXFP8)
        return lacks(diags,
                     "the runtime multiplies operands of 8 bits (fp8, mxfp8) and more, not in %s; set job.precision to bf16",
                     precision_name(precision));
    return STATUS_OK;
}
