/* megatron_translate.c - translates arguments to a job: single values first, then those that depend on each other. */
#include "traces/launch/megatron/megatron_translate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "traces/launch/megatron/megatron_translate_internal.h"

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

static void store_choice(struct translation *m, enum argument argument, const char *text, void *member)
{
    const struct argument_row *row = &megatron_rows[argument];
    int value = choice_of(row, text);
    if (value < 0)
        diag_warning(m->diags, m->arguments->of[argument].at, "not modelled: --%s %.40s; msim assumes %s", row->flag, text,
                     row->choices[0]);
    value = value < 0 ? 0 : value;
    memcpy(member, &value, sizeof value);
}

static void store_number(struct translation *m, enum argument argument, void *member)
{
    const struct argument_row *row = &megatron_rows[argument];
    double number;
    if (!megatron_number(&m->arguments->of[argument], row, !row->or_zero, translate_largest(argument), &number, m->diags))
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

static void read_row(struct translation *m, enum argument argument)
{
    const struct argument_row *row = &megatron_rows[argument];
    const char *text = translate_text(m, argument);
    void *member = (char *)&m->description->job + row->offset;
    bool of_model = row->key && strncmp(row->key, "model.", 6) == 0;
    if (!text || (of_model && translate_names_model(m) && !translate_has(m, argument)))
        return;
    bool truth = translate_usual(m, argument) != (row->map == MAP_NOT);
    switch (row->map) {
    case MAP_APART: return;
    case MAP_BOOL:
    case MAP_NOT: memcpy(member, &truth, sizeof truth); break;
    case MAP_CHOICE: store_choice(m, argument, text, member); break;
    case MAP_NUMBER: store_number(m, argument, member); break;
    }
    translate_from(m, row->key, argument);
}

/* Is a text, possibly a list of one as in a log (['p2p']), the default of an argument? */
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

static void tell(struct translation *m, enum argument argument)
{
    const struct argument_row *row = &megatron_rows[argument];
    if (row->unmodelled && translate_has(m, argument) && !is_usual(m->arguments->of[argument].text, row->fallback))
        translate_not_modelled(m, argument, "%s", row->unmodelled);
}

/* Is an argument a number above this? What is none is reported where it is read. */
static bool exceeds(struct translation *m, enum argument argument, double limit)
{
    const char *text = translate_text(m, argument);
    return text && strtod(text, NULL) > limit;
}

static bool applies(struct translation *m, enum argument_when when)
{
    const struct transformer *model = &m->description->job.model; /* of a named one all is known already */
    if (when == WHEN_MIXTURE)
        return exceeds(m, ARGUMENT_EXPERTS, 0) || (translate_names_model(m) && model->moe.experts > 0);
    if (when == WHEN_HYBRID)
        return translate_text(m, ARGUMENT_PATTERN) != NULL;
    if (when == WHEN_ROTARY) { /* of other frameworks only what is said */
        bool rotary = translate_is(m, ARGUMENT_POSITION, "rope") || translate_true(m, ARGUMENT_ROTARY);
        return rotary && (translate_has(m, ARGUMENT_ROTARY_BASE) || !m->arguments->foreign);
    }
    if (when == WHEN_CONTEXT)
        return exceeds(m, ARGUMENT_CP, 1);
    return when == WHEN_ALWAYS || translate_true(m, ARGUMENT_LATENT) ||
           (translate_names_model(m) && model->attention == ATTENTION_LATENT);
}

static void read_rows(struct translation *m)
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
static void report_unknown(struct translation *m)
{
    for (int i = 0; i < N_ARGUMENTS; i++) {
        const struct argument_row *row = &megatron_rows[i];
        const struct megatron_value *value = &m->arguments->of[i];
        bool shadowed = (row->key && strncmp(row->key, "cluster.", 8) == 0 && m->known->gpus) || i == ARGUMENT_TRAIN_ITERS ||
                        i == ARGUMENT_TRAIN_SAMPLES || i == ARGUMENT_TRAIN_TOKENS || i == ARGUMENT_WORKERS ||
                        i == ARGUMENT_TOKENIZER || i == ARGUMENT_TOKENIZER_MODEL || /* whose words --vocab-size may say */
                        (i == ARGUMENT_OFFLOAD_LAYERS && translate_offloads_none(m));
        if (value->unknown && row->key && !shadowed)
            diag_error(m->diags, value->at, "%s: %s; --with \"--%s VALUE\" wins over it", value->spelling, value->unknown,
                       row->flag);
    }
}

/* A model by its name that wins over all that a file says of its shape, as MaxText has it: over what a command says, too, unless
 * the job lets that win. Arguments without these; NULL: the name does not win. */
static struct megatron_arguments *without_shape(struct translation *m)
{
    if (!translate_names_model(m) || !translate_has(m, ARGUMENT_MODEL_WINS))
        return NULL;
    struct megatron_arguments *kept = memory_new(1, sizeof *kept);
    bool always = translate_true(m, ARGUMENT_MODEL_WINS);
    *kept = *m->arguments;
    for (int i = 0; i < N_ARGUMENTS; i++) {
        const struct megatron_value *value = &m->arguments->of[i];
        bool shape = megatron_rows[i].key && strncmp(megatron_rows[i].key, "model.", 6) == 0;
        if (!value->text || !shape || value->by_flag || (value->commanded && !always))
            continue;
        if (value->commanded && i != ARGUMENT_MAX_POSITIONS)
            diag_warning(m->diags, value->at, "%s is left out: the model's own value counts, unless override_model_config=true",
                         value->spelling);
        kept->of[i] = (struct megatron_value){0};
    }
    return kept;
}

void megatron_translate(const struct megatron_arguments *arguments, const struct launch_known *known,
                        struct launch_description *description, struct diags *diags)
{
    struct translation m = {arguments, known, description, diags};
    size_t before = diags->n_errors;
    struct megatron_arguments *named = without_shape(&m);
    m.arguments = named ? named : arguments;
    description->job.job.memory_margin = MEMORY_MARGIN;
    report_unknown(&m);
    if (translate_names_model(&m))
        translate_named_model(&m);
    read_rows(&m);
    translate_model(&m);
    translate_layout(&m);
    translate_job(&m);
    translate_memory(&m);
    translate_adapter(&m);
    if (diags->n_errors == before)
        translate_stages(&m);
    free(named);
}
