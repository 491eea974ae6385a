/* measurement_layout.c - the job and the layout of a row. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "model/layout/layout.h"
#include "traces/table/measurement_internal.h"

/* Sequences a step, or what makes them: tokens a step, or the micro-batches of each replica. */
static int64_t read_batch(struct measurement_parser *parser, int64_t seq_len)
{
    int64_t batch = parser_whole(parser, COLUMN_GLOBAL_BATCH, 1, MAX_BATCH, 0);
    int64_t tokens = parser_whole(parser, COLUMN_BATCH_TOKENS, 1, (int64_t)1 << 40, 0);
    double said = (double)tokens, counted = (double)batch * (double)seq_len;
    if (batch && tokens && seq_len && (counted > 1.1 * said || said > 1.1 * counted))
        parser_warn_once(parser, COLUMN_BATCH_TOKENS, "global_batch",
                         "batch_tokens %lld contradicts global_batch %lld of %lld tokens; global_batch is taken",
                         (long long)tokens, (long long)batch, (long long)seq_len);
    if (batch || !tokens || !seq_len)
        return batch;
    batch = (tokens + seq_len / 2) / seq_len;
    return batch < 1 ? 1 : batch < MAX_BATCH ? batch : MAX_BATCH;
}

/* What gradients are reduced in. fp16 training reduces them in fp16; bf16 without sharding keeps fp32 main ones, sharded
 * optimizers reduce bf16. Where the stage is not said it is that of current training stacks, and so is this, as in a job that
 * names neither. */
static enum precision gradient_precision(enum precision precision, int zero, bool zero_is_said)
{
    if (precision == PRECISION_FP16)
        return PRECISION_FP16;
    bool wide = !zero_is_said || (precision == PRECISION_BF16 && zero == 0) || precision == PRECISION_FP32;
    return wide ? PRECISION_FP32 : PRECISION_BF16;
}

void parser_job(struct measurement_parser *parser, const struct measurement_shape *shape, int zero, struct job *job)
{
    bool zero_is_said = *parser_text(parser, COLUMN_ZERO) != '\0';
    int precision = parser_way(parser, COLUMN_PRECISION, precision_names, N_PRECISIONS);
    *job = (struct job){
        .global_batch = read_batch(parser, shape->seq_len),
        .seq_len = shape->seq_len,
        .precision = precision < 0 ? PRECISION_BF16 : (enum precision)precision,
        .optimizer = OPTIMIZER_ADAM,
        .features = parser_features(parser, FEATURES_USUAL),
    };
    static const char *const widths[] = {"fp32", "bf16", "fp16"}; /* by enum precision */
    int gradients = parser_way(parser, COLUMN_GRADIENT_PRECISION, widths, sizeof widths / sizeof *widths);
    enum precision unsaid = gradient_precision(job->precision, zero, zero_is_said);
    job->gradient_precision = gradients < 0 ? unsaid : (enum precision)gradients;
    parser->wide_gradients |= gradients < 0 && unsaid != gradient_precision(job->precision, zero, true);
    if (job->seq_len == 0)
        parser_skip(parser, COLUMN_SEQ_LEN, "no sequence length");
}

/* A cell in lower case. Returns buffer. */
static char *lowered(const struct measurement_parser *parser, enum column column, char *buffer, size_t size)
{
    snprintf(buffer, size, "%s", parser_text(parser, column));
    for (char *c = buffer; *c; c++)
        *c = (char)tolower((unsigned char)*c);
    return buffer;
}

/* "layernorm; moe_act" as "layernorm+moe_act": words of other columns are parted so. */
static void join_words(char *text)
{
    char *to = text;
    for (const char *from = text; *from;) {
        size_t n = strcspn(from, ";,"), word = n;
        while (word && from[word - 1] == ' ')
            word--;
        if (word && to > text)
            *to++ = '+';
        memmove(to, from, word);
        to += word;
        from += n;
        from += strspn(from, ";, ");
    }
    *to = '\0';
}

static struct recompute read_recompute(struct measurement_parser *parser)
{
    char text[2 * RECOMPUTE_TEXT], why[RECOMPUTE_WHY];
    struct recompute recompute = {.what = RECOMPUTE_NONE};
    const char *ours = words_ours(COLUMN_RECOMPUTE, parser_text(parser, COLUMN_RECOMPUTE));
    lowered(parser, COLUMN_RECOMPUTE, text, sizeof text);
    join_words(text);
    if (!recompute_parse(ours ? ours : text, &recompute, why, sizeof why) && *text)
        parser_skip(parser, COLUMN_RECOMPUTE, "recompute %s", why);
    return recompute;
}

static enum cp_comm read_cp_comm(struct measurement_parser *parser)
{
    char text[2 * CP_COMM_TEXT], why[CP_COMM_WHY];
    const char *ours = words_ours(COLUMN_CP_COMM, parser_text(parser, COLUMN_CP_COMM));
    int found = cp_comm_parse(ours ? ours : lowered(parser, COLUMN_CP_COMM, text, sizeof text), why, sizeof why);
    if (found < 0 && *text)
        parser_skip(parser, COLUMN_CP_COMM, "cp_comm %s", why);
    return found < 0 ? CP_RING : (enum cp_comm)found;
}

/* An unknown schedule is reported, and pp and vpp decide. */
static enum schedule read_schedule(struct measurement_parser *parser, int pp, int vpp)
{
    char hint[96];
    const char *text = parser_text(parser, COLUMN_SCHEDULE);
    int value = parser_word(parser, COLUMN_SCHEDULE, schedule_names, N_SCHEDULES);
    enum schedule usual = pp == 1 ? SCHEDULE_NONE : vpp == 1 ? SCHEDULE_1F1B : SCHEDULE_INTERLEAVED;
    if (value < 0 && *text && pp > 1)
        parser_warn_once(parser, COLUMN_SCHEDULE, text, "schedule '%.40s' is unknown, %s is taken%s", text, schedule_name(usual),
                         parser_hint(text, schedule_names, N_SCHEDULES, hint, sizeof hint));
    return value >= 0 ? (enum schedule)value : usual;
}

static int dimension(struct measurement_parser *parser, enum column column)
{
    return (int)parser_whole(parser, column, 1, MAX_GPUS, 1);
}

/* dp and the number of GPUs follow from one another; when both are given they must agree. */
static void read_world(struct measurement_parser *parser, struct layout *layout, int *gpus)
{
    int64_t model_ranks; /* tp and pp are at most 2^24 each */
    if (__builtin_mul_overflow((int64_t)layout->tp * layout->pp, (int64_t)layout->cp, &model_ranks) || model_ranks > MAX_GPUS) {
        parser_skip(parser, COLUMN_GPUS, "tp %d x pp %d x cp %d are more than %d gpus", layout->tp, layout->pp, layout->cp,
                    MAX_GPUS);
        return;
    }
    int64_t given = parser_whole(parser, COLUMN_GPUS, 1, MAX_GPUS, 0), dp = parser_whole(parser, COLUMN_DP, 1, MAX_GPUS, 0);
    if (!dp && !given)
        parser_skip(parser, COLUMN_GPUS, "neither gpus nor dp says how many there are");
    if (!dp)
        dp = given && given % model_ranks == 0 ? given / model_ranks : 1;
    if (layout->cp > 1 && dp % layout->cp == 0 &&
        given == model_ranks / layout->cp * dp) { /* in others' words cp is part of it */
        parser_warn_once(parser, COLUMN_DP, measurement_columns[COLUMN_DP].name,
                         "dp %lld counts the ranks of cp %d too, by the number of GPUs: %lld is taken", (long long)dp, layout->cp,
                         (long long)(dp / layout->cp));
        dp /= layout->cp;
    }
    if (model_ranks * dp > MAX_GPUS || (given && given != model_ranks * dp)) {
        parser_skip(parser, COLUMN_GPUS, "%lld gpus, but tp %d x pp %d x cp %d x dp %lld is %lld", (long long)given, layout->tp,
                    layout->pp, layout->cp, (long long)dp, (long long)(model_ranks * dp));
        return;
    }
    layout->dp = (int)dp;
    *gpus = (int)(model_ranks * dp);
}

void parser_layout(struct measurement_parser *parser, int zero, feature_set features, struct layout *layout, int *gpus)
{
    *layout = (struct layout){
        .tp = dimension(parser, COLUMN_TP),
        .cp = dimension(parser, COLUMN_CP),
        .cp_comm = read_cp_comm(parser),
        .pp = dimension(parser, COLUMN_PP),
        .vpp = dimension(parser, COLUMN_VPP),
        .ep = dimension(parser, COLUMN_EP),
        .zero = zero,
        .shard = (int)parser_whole(parser, COLUMN_SHARD, 0, MAX_GPUS, 0),
        .micro_batch = (int)parser_whole(parser, COLUMN_MICRO_BATCH, 1, MAX_BATCH, 1),
        .recompute = read_recompute(parser),
        .features = features,
    };
    bool usual = layout_defaults.sequence_parallel && layout->tp > 1;
    layout->sequence_parallel = parser_whole(parser, COLUMN_SEQUENCE_PARALLEL, 0, 1, usual) == 1;
    layout->schedule = read_schedule(parser, layout->pp, layout->vpp);
    read_world(parser, layout, gpus);
    layout_settle_shard(layout);
    layout->cp_comm = cp_comm_settled(layout->cp_comm, layout->cp);
}

/* A batch that is said by how many micro-batches each replica takes, or a micro-batch by that and the batch. */
void parser_accumulation(struct measurement_parser *parser, struct layout *layout, struct job *job)
{
    int64_t times = parser_whole(parser, COLUMN_ACCUMULATION, 1, MAX_BATCH, 0), replica;
    if (times && job->global_batch && layout->dp > 0 && parser_left_open(parser, parser->row, COLUMN_MICRO_BATCH) &&
        job->global_batch % layout->dp == 0 && job->global_batch / layout->dp % times == 0)
        layout->micro_batch = (int)(job->global_batch / layout->dp / times);
    bool fits = !__builtin_mul_overflow(times * layout->micro_batch, (int64_t)layout->dp, &replica) && replica <= MAX_BATCH;
    if (job->global_batch && times && !parser->unusable && replica != job->global_batch)
        parser_warn_once(parser, COLUMN_ACCUMULATION, "global_batch",
                         "accumulation %lld x micro_batch %d x dp %d contradicts global_batch %lld, which is taken",
                         (long long)times, layout->micro_batch, layout->dp, (long long)job->global_batch);
    if (job->global_batch || parser->unusable)
        return;
    if (!times)
        parser_skip(parser, COLUMN_GLOBAL_BATCH, "no global batch");
    else if (!fits)
        parser_skip(parser, COLUMN_ACCUMULATION, "a global batch of more than %d", MAX_BATCH);
    else
        job->global_batch = replica;
}

/* --- what has one sensible meaning --- */

/* Tables of different people say the same run in different words. What has only one sensible meaning is taken so, with a warning;
 * everything else is left to layout_check, which says why a run cannot be predicted. */

static void adapted(struct measurement_parser *parser, enum column column, const char *given, const char *taken)
{
    diag_warning(parser->diags, parser_place(parser, column), "%s %s is taken as %s", measurement_columns[column].name, given,
                 taken);
}

/* A pipeline of one stage is none; Megatron calls 1F1B with several chunks per stage interleaved; the V-shaped schedules have two
 * chunks per stage whether or not the table counts them as vpp. */
static enum schedule schedule_meant(const struct layout *layout)
{
    bool either = layout->schedule == SCHEDULE_1F1B || layout->schedule == SCHEDULE_INTERLEAVED;
    if (layout->pp == 1)
        return SCHEDULE_NONE;
    if (either || layout->schedule == SCHEDULE_NONE)
        return layout->vpp > 1 ? SCHEDULE_INTERLEAVED : SCHEDULE_1F1B;
    return layout->schedule;
}

static int chunks_meant(const struct layout *layout, enum schedule schedule)
{
    switch (schedule) {
    case SCHEDULE_INTERLEAVED: return layout->vpp;
    case SCHEDULE_ZBV:
    case SCHEDULE_DUALPIPE:
    case SCHEDULE_DUALPIPEV: return 2;
    default: return 1;
    }
}

static void adapt_schedule(struct measurement_parser *parser, struct layout *layout)
{
    enum schedule schedule = schedule_meant(layout);
    int vpp = chunks_meant(layout, schedule);
    if (schedule != layout->schedule && layout->pp > 1)
        adapted(parser, COLUMN_SCHEDULE, schedule_name(layout->schedule), schedule_name(schedule));
    if (vpp != layout->vpp && layout->vpp > 1) {
        char given[16], taken[16];
        snprintf(given, sizeof given, "%d", layout->vpp);
        snprintf(taken, sizeof taken, "%d", vpp);
        adapted(parser, COLUMN_VPP, given, taken);
    }
    layout->schedule = schedule;
    layout->vpp = vpp;
}

/* Frameworks pad the last micro-batches, or drop them: the step is about as long as that of the next whole number. */
static void adapt_batch(struct measurement_parser *parser, const struct layout *layout, struct job *job)
{
    char given[32], taken[64];
    int64_t unit = (int64_t)layout->dp * layout->micro_batch;
    int64_t batch = (job->global_batch + unit - 1) / unit * unit;
    if (batch == job->global_batch)
        return;
    snprintf(given, sizeof given, "%lld", (long long)job->global_batch);
    snprintf(taken, sizeof taken, "%lld, a multiple of dp x micro_batch", (long long)batch);
    adapted(parser, COLUMN_GLOBAL_BATCH, given, taken);
    job->global_batch = batch;
}

void parser_adapt(struct measurement_parser *parser, struct layout *layout, struct job *job)
{
    if (parser->unusable || layout->dp < 1)
        return;
    adapt_schedule(parser, layout);
    adapt_batch(parser, layout, job);
    if (layout->zero == 3 && layout->pp > 1) { /* gathered once a step, weights stay: what Llama 3 calls FSDP with a pipeline */
        adapted(parser, COLUMN_ZERO, "3", "2 with a pipeline");
        layout->zero = 2;
    }
}
