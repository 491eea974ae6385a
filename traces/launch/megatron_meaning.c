#include "traces/launch/megatron_meaning.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "traces/launch/megatron_reading.h"

/* The largest number that an argument can sensibly be: a product of two dimensions of a layout is an int. */
static double largest(enum argument argument)
{
    const char *key = megatron_rows[argument].key;
    return key && strncmp(key, "layout.", 7) == 0 ? 16384 : 1e9;
}

/* --- values --- */

bool meaning_has(struct meaning *m, enum argument argument)
{
    const struct megatron_value *value = &m->arguments->of[argument];
    return value->text && !value->unknown;
}

const char *meaning_text(struct meaning *m, enum argument argument)
{
    if (meaning_has(m, argument))
        return m->arguments->of[argument].text;
    return m->arguments->of[argument].unknown ? NULL : megatron_rows[argument].fallback;
}

bool meaning_is(struct meaning *m, enum argument argument, const char *text)
{
    const char *given = meaning_text(m, argument);
    return given && strcmp(given, text) == 0;
}

bool meaning_true(struct meaning *m, enum argument argument)
{
    if (m->arguments->logged && !m->arguments->of[argument].text)
        return false;
    return megatron_true(m->arguments, argument);
}

bool meaning_usual(struct meaning *m, enum argument argument)
{
    return megatron_true(m->arguments, argument);
}

int64_t meaning_int(struct meaning *m, enum argument argument, int64_t low, int64_t otherwise)
{
    const struct megatron_value *value = &m->arguments->of[argument];
    double number;
    if (value->unknown || (!value->text && !megatron_rows[argument].fallback))
        return otherwise;
    return megatron_number(value, &megatron_rows[argument], (double)low, largest(argument), &number, m->diags) ? (int64_t)number
                                                                                                               : otherwise;
}

/* --- where from --- */

static void place_text(struct place at, char *text, size_t size)
{
    const char *slash = at.file ? strrchr(at.file, '/') : NULL;
    text[0] = '\0';
    if (at.file && at.line)
        snprintf(text, size, ", %.60s:%d", slash ? slash + 1 : at.file, at.line);
    else if (at.file)
        snprintf(text, size, ", %.60s", slash ? slash + 1 : at.file);
}

void meaning_from(struct meaning *m, const char *key, enum argument argument)
{
    const struct megatron_value *value = &m->arguments->of[argument];
    char place[80];
    place_text(value->at, place, sizeof place);
    if (!value->text && m->arguments->foreign)
        launch_originate(m->description, key, "not said");
    else if (!value->text)
        launch_originate(m->description, key, "what --%s is when left out", megatron_rows[argument].flag);
    else
        launch_originate(m->description, key, "%.60s%s", value->said, place);
}

void meaning_missing(struct meaning *m, enum argument argument, const char *what)
{
    const struct megatron_value *value = &m->arguments->of[argument];
    if (!value->text && !value->unknown && m->description->n_missing < LAUNCH_MISSING)
        m->description->missing[m->description->n_missing++] = what;
}

void meaning_not_modelled(struct meaning *m, enum argument argument, const char *format, ...)
{
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    const struct megatron_value *value = &m->arguments->of[argument];
    const char *dashes = value->said ? "" : "--", *name = value->said ? value->said : megatron_rows[argument].flag;
    diag_warning(m->diags, value->at, "not modelled: %s%.60s (%s)", dashes, name, text);
}

/* --- arguments that mean one thing --- */

/* Megatron-Core's dist_muon is Muon; that it is divided among replicas says read_zero. Megatron-DeepSpeed's norms have no
 * capitals. */
static int choice_of(const struct argument_row *row, const char *text)
{
    static const char divided[] = "dist_";
    text += strncmp(text, divided, sizeof divided - 1) == 0 ? sizeof divided - 1 : 0;
    for (int i = 0; row->choices[i]; i++)
        if (*row->choices[i] && strcasecmp(row->choices[i], text) == 0)
            return i;
    return -1;
}

static void store_choice(struct meaning *m, enum argument argument, const char *text, void *member)
{
    const struct argument_row *row = &megatron_rows[argument];
    int value = choice_of(row, text);
    if (value < 0)
        diag_warning(m->diags, m->arguments->of[argument].at, "not modelled: --%s %.40s; %s is taken", row->flag, text,
                     row->choices[0]);
    value = value < 0 ? 0 : value;
    memcpy(member, &value, sizeof value);
}

static void store_number(struct meaning *m, enum argument argument, void *member)
{
    const struct argument_row *row = &megatron_rows[argument];
    double number;
    if (!megatron_number(&m->arguments->of[argument], row, !row->or_zero, largest(argument), &number, m->diags))
        return;
    int whole = (int)number;
    int64_t wide = (int64_t)number;
    if (row->type == ARGUMENT_REAL)
        memcpy(member, &number, sizeof number);
    else if (row->size == sizeof whole)
        memcpy(member, &whole, sizeof whole);
    else
        memcpy(member, &wide, sizeof wide);
}

static void read_row(struct meaning *m, enum argument argument)
{
    const struct argument_row *row = &megatron_rows[argument];
    const char *text = meaning_text(m, argument);
    void *member = (char *)&m->description->job + row->offset;
    bool of_model = row->key && strncmp(row->key, "model.", 6) == 0;
    if (!text || (of_model && meaning_names_model(m) && !meaning_has(m, argument)))
        return;
    bool truth = meaning_usual(m, argument) != (row->map == MAP_NOT);
    switch (row->map) {
    case MAP_APART: return;
    case MAP_BOOL:
    case MAP_NOT: memcpy(member, &truth, sizeof truth); break;
    case MAP_CHOICE: store_choice(m, argument, text, member); break;
    case MAP_NUMBER: store_number(m, argument, member); break;
    }
    meaning_from(m, row->key, argument);
}

/* Is a text, perhaps a list of one as a log has it (['p2p']), what an argument is when left out? */
static bool is_usual(const char *text, const char *usual)
{
    char *end, *usual_end, word[64];
    double number = strtod(text, &end), usual_number = usual ? strtod(usual, &usual_end) : 0;
    if (!usual)
        return !*text || strcmp(text, "[]") == 0;
    if (end != text && !*end && usual_end != usual)
        return !(number < usual_number) && !(number > usual_number);
    size_t n = strcspn(text + strspn(text, "['\""), "]'\"");
    snprintf(word, sizeof word, "%.*s", (int)(n < sizeof word ? n : sizeof word - 1), text + strspn(text, "['\""));
    bool wide = strcmp(word, "torch.float32") == 0 || strcmp(word, "float32") == 0;
    return strcmp(word, usual) == 0 || (strcmp(usual, "fp32") == 0 && wide);
}

static void tell(struct meaning *m, enum argument argument)
{
    const struct argument_row *row = &megatron_rows[argument];
    if (row->told && meaning_has(m, argument) && !is_usual(m->arguments->of[argument].text, row->fallback))
        meaning_not_modelled(m, argument, "%s", row->told);
}

/* Is an argument a number above this? What is none is reported where it is read. */
static bool exceeds(struct meaning *m, enum argument argument, double limit)
{
    const char *text = meaning_text(m, argument);
    return text && strtod(text, NULL) > limit;
}

static bool applies(struct meaning *m, enum argument_when when)
{
    const struct transformer *model = &m->description->job.model; /* of a named one all is known already */
    if (when == WHEN_MIXTURE)
        return exceeds(m, ARGUMENT_EXPERTS, 0) || (meaning_names_model(m) && model->moe.experts > 0);
    if (when == WHEN_HYBRID)
        return meaning_text(m, ARGUMENT_PATTERN) != NULL;
    if (when == WHEN_ROTARY) { /* of other frameworks only what is said */
        bool rotary = meaning_is(m, ARGUMENT_POSITION, "rope") || meaning_true(m, ARGUMENT_ROTARY);
        return rotary && (meaning_has(m, ARGUMENT_ROTARY_BASE) || !m->arguments->foreign);
    }
    if (when == WHEN_CONTEXT)
        return exceeds(m, ARGUMENT_CP, 1);
    return when == WHEN_ALWAYS || meaning_true(m, ARGUMENT_LATENT) ||
           (meaning_names_model(m) && model->attention == ATTENTION_LATENT);
}

static void read_rows(struct meaning *m)
{
    bool active[N_WHENS];
    for (int when = 0; when < N_WHENS; when++)
        active[when] = applies(m, (enum argument_when)when);
    for (int i = 0; i < N_ARGUMENTS; i++)
        if (active[megatron_rows[i].when]) {
            read_row(m, (enum argument)i);
            tell(m, (enum argument)i);
        }
}

/* What cannot be told is one mistake each, wherever it would be asked for. */
static void report_unknown(struct meaning *m)
{
    for (int i = 0; i < N_ARGUMENTS; i++) {
        const struct argument_row *row = &megatron_rows[i];
        const struct megatron_value *value = &m->arguments->of[i];
        bool shadowed = (row->key && strncmp(row->key, "cluster.", 8) == 0 && m->known->gpus) || i == ARGUMENT_TRAIN_ITERS ||
                        i == ARGUMENT_TRAIN_SAMPLES || i == ARGUMENT_TRAIN_TOKENS || i == ARGUMENT_WORKERS ||
                        i == ARGUMENT_TOKENIZER || i == ARGUMENT_TOKENIZER_MODEL || /* whose words --vocab-size may say */
                        (i == ARGUMENT_OFFLOAD_LAYERS && meaning_offloads_none(m));
        if (value->unknown && row->key && !shadowed)
            diag_error(m->diags, value->at, "%s: %s; --with \"--%s VALUE\" wins over it", value->said, value->unknown, row->flag);
    }
}

/* --- the layout --- */

/* An expert is split over tp unless told otherwise; etp 0 is what msim takes unasked: 1 with expert parallelism, tp without. */
static void read_expert_split(struct meaning *m)
{
    struct layout *l = &m->description->job.layout;
    if (!m->description->job.model.moe.experts || l->tp == 1)
        return;
    int etp = (int)meaning_int(m, ARGUMENT_ETP, 1, l->tp), unasked = l->ep == 1 ? l->tp : 1;
    if (etp == unasked)
        return;
    l->etp = etp;
    if (meaning_has(m, ARGUMENT_ETP))
        meaning_from(m, "layout.etp", ARGUMENT_ETP);
    else
        launch_originate(m->description, "layout.etp", "tp, as --expert-tensor-parallel-size is when left out");
}

#define LIST_SEPARATORS " ,'\"[]"

/* Two sizes, those who exchange heads first: "2 4", or as a log has them: [2, 4]. */
static enum cp_comm levels_of(struct meaning *m)
{
    const char *text = meaning_text(m, ARGUMENT_CP_LEVELS);
    long long sizes[2] = {0};
    int n = 0, cp = m->description->job.layout.cp;
    for (const char *p = text ? text : ""; *(p += strspn(p, LIST_SEPARATORS)); p += strcspn(p, LIST_SEPARATORS), n++)
        if (n < 2)
            sizes[n] = strtoll(p, NULL, 10);
    if (n == 2 && sizes[0] > 0 && sizes[0] <= cp && sizes[1] > 0 && sizes[1] <= cp && sizes[0] * sizes[1] == cp)
        return cp_comm_of((int)sizes[0], false);
    if (meaning_has(m, ARGUMENT_CP_LEVELS))
        meaning_not_modelled(m, ARGUMENT_CP_LEVELS, "two sizes whose product is cp are wanted; a ring is taken");
    else
        meaning_not_modelled(m, ARGUMENT_CP_COMM, "among how many heads go is not said; a ring is taken");
    return CP_RING;
}

/* One word for all layers, or one for each. */
static enum cp_comm exchange_of(struct meaning *m)
{
    const char *text = meaning_text(m, ARGUMENT_CP_COMM);
    char first[CP_COMM_TEXT] = "";
    bool differ = false;
    for (const char *p = text ? text : ""; *(p += strspn(p, LIST_SEPARATORS));) {
        size_t n = strcspn(p, LIST_SEPARATORS);
        if (!*first)
            snprintf(first, sizeof first, "%.*s", (int)n, p);
        else
            differ |= strlen(first) != n || strncmp(first, p, n) != 0;
        p += n;
    }
    if (differ)
        meaning_not_modelled(m, ARGUMENT_CP_COMM, "layers that exchange in different ways; %s is taken for all", first);
    int found = cp_comm_parse(first, NULL, 0);
    if (strcmp(first, "a2a+p2p") == 0)
        return levels_of(m);
    if (found < 0)
        meaning_not_modelled(m, ARGUMENT_CP_COMM, "'%s' is none of p2p, all_gather, a2a, a2a+p2p; a ring is taken", first);
    return found < 0 ? CP_RING : (enum cp_comm)found;
}

/* DeepSpeed's sequence parallelism is context parallelism whose ranks exchange heads. */
static void read_context(struct meaning *m)
{
    struct layout *l = &m->description->job.layout;
    int ulysses = (int)meaning_int(m, ARGUMENT_ULYSSES, 1, 1);
    if (ulysses > 1 && l->cp == 1) {
        l->cp = ulysses;
        l->cp_comm = CP_A2A;
        meaning_from(m, "layout.cp", ARGUMENT_ULYSSES);
        meaning_from(m, "layout.cp_comm", ARGUMENT_ULYSSES);
        return;
    }
    if (ulysses > 1)
        meaning_not_modelled(m, ARGUMENT_ULYSSES, "beside --context-parallel-size; the latter is taken");
    if (l->cp == 1)
        return;
    l->cp_comm = cp_comm_settled(exchange_of(m), l->cp);
    meaning_from(m, "layout.cp_comm", ARGUMENT_CP_COMM);
}

/* Its _do_optimizer_sanity_check, from memory: sums are in fp32 unless their type is told, and the optimizer of bf16 weights and
 * fp32 sums shards states. Of sums in bf16 that is only so where its pipeline runs, as Megatron-DeepSpeed's does; else each rank
 * has all states, in fp32. */
bool meaning_deepspeed_alone(struct meaning *m)
{
    const char *sums = m->arguments->of[ARGUMENT_GRADIENTS_BF16].said;
    bool staged = meaning_has(m, ARGUMENT_ZERO_STAGE) && meaning_int(m, ARGUMENT_ZERO_STAGE, 0, 0) > 0;
    bool trainer = !meaning_true(m, ARGUMENT_DEEPSPEED) && meaning_true(m, ARGUMENT_BY_DEEPSPEED);
    bool narrow = meaning_true(m, ARGUMENT_GRADIENTS_BF16) && sums && strstr(sums, "grad_accum_dtype");
    return !staged && (trainer || meaning_true(m, ARGUMENT_DEEPSPEED)) && meaning_true(m, ARGUMENT_BF16) && !(trainer && narrow);
}

static void read_zero(struct meaning *m)
{
    struct layout *l = &m->description->job.layout;
    enum argument by = ARGUMENT_DISTRIBUTED_OPTIMIZER;
    bool fsdp = meaning_true(m, ARGUMENT_MEGATRON_FSDP) || meaning_true(m, ARGUMENT_CUSTOM_FSDP);
    if (meaning_torch_zero(m))
        return;
    if (meaning_has(m, ARGUMENT_ZERO_STAGE) && meaning_int(m, ARGUMENT_ZERO_STAGE, 0, 0) > 0) {
        by = ARGUMENT_ZERO_STAGE;
        l->zero = (int)meaning_int(m, by, 0, 0);
    } else if (meaning_true(m, ARGUMENT_FSDP2)) {
        by = ARGUMENT_FSDP2;
        l->zero = meaning_usual(m, ARGUMENT_FSDP2_KEEPS) ? 3 : 2;
    } else if (fsdp) {
        by = ARGUMENT_SHARDING;
        for (int i = 0; megatron_shardings[i]; i++)
            l->zero = meaning_is(m, by, megatron_shardings[i]) ? i : l->zero;
    } else if (meaning_is(m, ARGUMENT_OPTIMIZER, "dist_muon")) {
        by = ARGUMENT_OPTIMIZER;
        l->zero = 1;
        m->description->job.job.muon_shard = MUON_LAYER_WISE;
        meaning_from(m, "job.muon_shard", by);
    } else if (meaning_deepspeed_alone(m)) {
        l->zero = 1;
        launch_originate(m->description, "layout.zero", "without a stage DeepSpeed's optimizer of bf16 weights shards states");
        return;
    } else {
        l->zero = meaning_true(m, by);
    }
    meaning_from(m, "layout.zero", by);
}

static void read_layout(struct meaning *m)
{
    struct launch_job *job = &m->description->job;
    struct layout *l = &job->layout;
    int *const dimensions[] = {&l->tp, &l->pp, &l->cp, &l->ep};
    if (meaning_has_mesh(m))
        meaning_mesh(m);
    for (size_t i = 0; i < sizeof dimensions / sizeof dimensions[0]; i++)
        *dimensions[i] = *dimensions[i] < 1 ? 1 : *dimensions[i];
    read_context(m);
    meaning_chunks(m);
    meaning_schedule(m);
    read_expert_split(m);
    read_zero(m);
    if (l->tp == 1 && l->sequence_parallel) {
        l->sequence_parallel = false;
        launch_originate(m->description, "layout.sequence_parallel", "nothing to divide with tp 1");
    }
    meaning_gpus(m);
    meaning_torch_shards(m);
    meaning_shards_within(m);
    if (meaning_has_mesh(m))
        meaning_mesh_shards(m);
    meaning_torch_batches(m);
    meaning_device_batch(m);
    if (!l->micro_batch)
        meaning_missing(m, ARGUMENT_MICRO_BATCH, "the micro-batch (--micro-batch-size)");
    if (!job->job.global_batch && l->micro_batch && l->dp && !m->arguments->of[ARGUMENT_GLOBAL_BATCH].unknown) {
        job->job.global_batch = (int64_t)l->micro_batch * l->dp;
        launch_originate(m->description, "job.global_batch", "micro-batch x dp, as --global-batch-size is when left out");
    }
}

/* A model by its name that wins over all that a file says of its shape, as MaxText has it: over what a command says, too, unless
 * the job lets that win. Arguments without these; NULL: the name does not win. */
static struct megatron_arguments *without_shape(struct meaning *m)
{
    if (!meaning_names_model(m) || !meaning_has(m, ARGUMENT_MODEL_WINS))
        return NULL;
    struct megatron_arguments *kept = memory_new(1, sizeof *kept);
    bool always = meaning_true(m, ARGUMENT_MODEL_WINS);
    *kept = *m->arguments;
    for (int i = 0; i < N_ARGUMENTS; i++) {
        const struct megatron_value *value = &m->arguments->of[i];
        bool shape = megatron_rows[i].key && strncmp(megatron_rows[i].key, "model.", 6) == 0;
        if (!value->text || !shape || value->by_flag || (value->commanded && !always))
            continue;
        if (value->commanded && i != ARGUMENT_MAX_POSITIONS)
            diag_warning(m->diags, value->at, "%s is left out: the model's own is taken, unless override_model_config=true",
                         value->said);
        kept->of[i] = (struct megatron_value){0};
    }
    return kept;
}

void megatron_mean(const struct megatron_arguments *arguments, const struct launch_known *known,
                   struct launch_description *description, struct diags *diags)
{
    struct meaning m = {arguments, known, description, diags};
    size_t before = diags->n_errors;
    struct megatron_arguments *named = without_shape(&m);
    m.arguments = named ? named : arguments;
    report_unknown(&m);
    if (meaning_names_model(&m))
        meaning_named_model(&m);
    read_rows(&m);
    meaning_model(&m);
    read_layout(&m);
    meaning_job(&m);
    meaning_memory(&m);
    meaning_adapter(&m);
    if (diags->n_errors == before)
        meaning_stages(&m);
    free(named);
}
