/* launch_programs.c - programs that start others: their numbers of nodes and GPUs. */
#include "traces/launch/launch_programs.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "traces/launch/megatron/megatron_arguments.h"

static const struct launcher launchers[] = {
    {"torchrun", NULL, "1", "1", "PET_NNODES", "PET_NPROC_PER_NODE"},
    {"torch.distributed.run", NULL, "1", "1", "PET_NNODES", "PET_NPROC_PER_NODE"},
    {"torch.distributed.launch", NULL, "1", "1", NULL, NULL},
    {"deepspeed", NULL, "1", NULL, NULL, NULL},
    {"accelerate", "launch", "1", NULL, NULL, NULL},
    {"accelerate.commands.launch", NULL, "1", NULL, NULL, NULL},
    {"composer", NULL, "1", NULL, NULL, NULL},
    {"llamafactory-cli", "train", "1", NULL, "NNODES", "NPROC_PER_NODE"},
    {"run_train.sh", NULL, "1", "8", NULL, "NGPU"},
};

bool launch_may_be_value(const struct shell_fields *fields, size_t i)
{
    const char *before = i ? shell_text_at(fields, i - 1) : "";
    return strncmp(before, "--", 2) == 0 && !strchr(before, '=');
}

/* That of --launcher, or perhaps of another flag where the name is no launcher's alone. */
static bool is_value(const struct shell_fields *fields, size_t i, bool plain)
{
    return plain ? i && strcmp(shell_text_at(fields, i - 1), "--launcher") == 0 : launch_may_be_value(fields, i);
}

const struct launcher *launch_programs_find(const struct shell_fields *fields, size_t *at)
{
    for (size_t i = 0; i < fields->n; i++) {
        bool module = i && strcmp(shell_text_at(fields, i - 1), "-m") == 0;
        const char *name = module ? shell_text_at(fields, i) : launch_base(shell_text_at(fields, i));
        for (size_t k = 0; k < sizeof launchers / sizeof launchers[0]; k++) {
            const struct launcher *l = &launchers[k];
            bool follows = !l->behind || strcmp(shell_text_at(fields, i + 1), l->behind) == 0;
            if (strcmp(name, l->name) == 0 && follows && (module || !is_value(fields, i, k == 0))) {
                *at = i;
                return l;
            }
        }
    }
    return NULL;
}

/* A program that starts others on several machines; fields->n: none. */
static size_t find_starter(const struct shell_fields *fields)
{
    static const char *const names[] = {"srun",  "mpirun", "mpiexec", "mpiexec.hydra", "horovodrun", "pdsh", "clush", "ssh",
                                        "jsrun", "aprun",  "prun",    "flux",          "xpk",        "qsub", "bsub",  "sbatch"};
    for (size_t i = 0; i < fields->n; i++)
        for (size_t k = 0; k < sizeof names / sizeof names[0]; k++)
            if (strcmp(launch_base(shell_text_at(fields, i)), names[k]) == 0 && !launch_may_be_value(fields, i))
                return i;
    return fields->n;
}

/* --- words --- */

static void add(struct launch_words *words, const char *name, const char *value, const char *spelling, struct place at)
{
    launch_words_add(words, (struct launch_word){.name = name, .value = value, .spelling = spelling, .at = at});
}

static const char *number_text(struct launch_words *words, size_t n)
{
    char text[24];
    int length = snprintf(text, sizeof text, "%zu", n);
    return launch_text(words, text, (size_t)length);
}

/* GPUs as CUDA_VISIBLE_DEVICES names them, 0,1 or GPU-1b2c...,MIG-...; 0: it is no such list. */
static size_t count_visible(const char *text)
{
    size_t entries = 0;
    for (const char *p = text;; p++) {
        p += strspn(p, " ");
        size_t n = strcspn(p, ","), digits = strspn(p, "0123456789");
        bool named = n > 4 && (strncmp(p, "GPU-", 4) == 0 || strncmp(p, "MIG-", 4) == 0);
        if (n == 0 || (digits != n && !named))
            return 0;
        entries++;
        p += n;
        if (!*p)
            return entries;
    }
}

/* How many GPUs CUDA_VISIBLE_DEVICES lets a program see; 0: it does not say, or (*wrong) nothing that can be read. */
static size_t visible_gpus(struct shell_state *state, const char **wrong)
{
    const char *text = shell_variable_text(state, "CUDA_VISIBLE_DEVICES");
    size_t n = text && *text != '-' ? count_visible(text) : 0;
    char why[128];
    *wrong = NULL;
    if (text && *text != '-' && n == 0) {
        snprintf(why, sizeof why, "CUDA_VISIBLE_DEVICES=%.40s is no list of GPUs, such as 0,1,2,3", text);
        *wrong = launch_text(state->words, why, strlen(why));
    }
    return n;
}

/* --- short options --- */

static const struct {
    const char *program, *option, *name;
} options[] = {{"srun", "-N", "nnodes"},
               {"srun", "-n", "ntasks"},
               {"mpirun", "-np", "ntasks"},
               {"mpirun", "-n", "ntasks"},
               {"mpiexec", "-np", "ntasks"},
               {"mpiexec", "-n", "ntasks"},
               {"horovodrun", "-np", "ntasks"},
               {"composer", "-n", "nproc-per-node"},
               {"composer", "--nproc", "nproc-per-node"}};

/* Does a command say this itself? Then it is not asked what starts it. */
static bool says(const struct launch_words *words, const char *name)
{
    int row = megatron_find(name, false);
    for (size_t i = 0; i < words->n; i++)
        if (!words->items[i].by_dest && megatron_find(words->items[i].name, false) == row)
            return true;
    return false;
}

/* -N 4, -N4, up to where the next program stands. */
static void read_options(const struct shell_fields *fields, size_t first, struct launch_words *words)
{
    for (size_t i = first + 1; i < fields->n; i++) {
        const char *text = shell_text_at(fields, i), *dot = strrchr(text, '.');
        if ((*text != '-' && dot && strcmp(dot, ".py") == 0) || strcmp(text, "-m") == 0)
            return;
        for (size_t k = 0; k < sizeof options / sizeof options[0]; k++) {
            size_t n = strlen(options[k].option);
            if (strcmp(launch_base(shell_text_at(fields, first)), options[k].program) != 0 ||
                strncmp(text, options[k].option, n) != 0)
                continue;
            const struct launch_field *value = text[n] ? NULL : i + 1 < fields->n ? &fields->items[i + 1] : NULL;
            const char *number = value ? value->text : text + n + (text[n] == '=');
            if (((value && value->unknown) || isdigit((unsigned char)*number)) && !says(words, options[k].name))
                launch_words_add(words, (struct launch_word){.name = options[k].name,
                                                             .value = number,
                                                             .unknown = value ? value->unknown : NULL,
                                                             .spelling = options[k].option,
                                                             .at = fields->items[i].at});
            break;
        }
    }
}

/* --- nodes and GPUs --- */

/* --nproc_per_node gpu: all visible GPUs. */
static void settle_processes(struct shell_state *state, struct launch_word *word, struct launch_words *words)
{
    static const char *const all[] = {"gpu", "auto", "cpu", "xpu"};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        size_t n = word->first ? word->first : word->value ? strlen(word->value) : 0;
        if (n != strlen(all[i]) || memcmp(word->value, all[i], n) != 0)
            continue;
        const char *wrong;
        size_t visible = visible_gpus(state, &wrong);
        if (visible)
            word->value = number_text(words, visible);
        else
            word->unknown = wrong ? wrong : "it is as many processes as the machine has GPUs";
        word->first = 0;
    }
}

/* --nnodes 2:4 lets nodes come and go. */
static void settle_nodes(struct launch_word *word, struct launch_words *words)
{
    size_t n = word->first ? word->first : word->value ? strlen(word->value) : 0;
    const char *colon = n ? memchr(word->value, ':', n) : NULL;
    if (!colon)
        return;
    size_t low = (size_t)(colon - word->value), high = n - low - 1;
    if (low == high && memcmp(word->value, colon + 1, low) == 0) {
        word->value = launch_text(words, word->value, low);
    } else {
        char why[96];
        snprintf(why, sizeof why, "it is a range of nodes, %.40s, of which some may come later", word->value);
        word->unknown = launch_text(words, why, strlen(why));
    }
    word->first = 0;
}

static const struct launch_word *flag_of(const struct launch_words *words, const char *name)
{
    for (size_t i = words->n; i-- > 0;)
        if (!words->items[i].by_dest && strcmp(words->items[i].name, name) == 0)
            return &words->items[i];
    return NULL;
}

/* accelerate's --num_processes is of all machines. */
static void tell_processes(struct launch_words *words)
{
    const struct launch_word *spelling = flag_of(words, "num_processes");
    struct launch_word world = {.name = "world-size"};
    spelling = spelling ? spelling : flag_of(words, "num-processes");
    if (!spelling || !spelling->value)
        return;
    world.value = spelling->value;
    world.first = spelling->first;
    world.unknown = spelling->unknown;
    world.spelling = spelling->spelling;
    world.at = spelling->at;
    launch_words_add(words, world);
}

/* Does deepspeed ask a file for its hosts, or leave some of them out? -H FILE becomes a word, as --hostfile FILE is one. */
static bool has_hosts(const struct shell_fields *fields, struct launch_words *words)
{
    for (size_t i = 0; i + 1 < fields->n && !flag_of(words, "hostfile"); i++)
        if (strcmp(shell_text_at(fields, i), "-H") == 0)
            launch_words_add(words, (struct launch_word){.name = "hostfile",
                                                         .value = fields->items[i + 1].text,
                                                         .unknown = fields->items[i + 1].unknown,
                                                         .spelling = "-H",
                                                         .at = fields->items[i].at});
    return flag_of(words, "hostfile") || flag_of(words, "exclude");
}

/* The defaults of a launcher, if nothing else names the machines. */
static void tell_launcher(struct shell_state *state, const struct shell_fields *fields, const struct launcher *launcher,
                          struct place at, struct launch_words *words)
{
    const char *nodes = shell_variable_text(state, launcher->nodes_variable);
    const char *gpus = shell_variable_text(state, launcher->gpus_variable);
    bool deepspeed = strcmp(launcher->name, "deepspeed") == 0;
    const char *wrong;
    size_t visible = visible_gpus(state, &wrong);
    add(words, "launched-by", launcher->name, launcher->name, at);
    if (strncmp(launcher->name, "accelerate", strlen("accelerate")) == 0)
        tell_processes(words);
    bool hosts = deepspeed && has_hosts(fields, words);
    const struct launch_word *include = flag_of(words, "include");
    if (deepspeed && include && include->value && !include->unknown) {
        launch_hosts_included(*include, words); /* a copy: words may move */
        return;
    }
    if (hosts)
        return;
    if (gpus)
        add(words, "launched-gpus", gpus, launcher->gpus_variable, at);
    else if (launcher->gpus)
        add(words, "launched-gpus", launcher->gpus, launcher->name, at);
    else if (visible)
        add(words, "launched-gpus", number_text(words, visible), "CUDA_VISIBLE_DEVICES", at);
    else if (wrong)
        launch_words_add(
            words, (struct launch_word){
                       .name = "launched-gpus", .value = "", .unknown = wrong, .spelling = "CUDA_VISIBLE_DEVICES", .at = at});
    if (nodes)
        add(words, "launched-nodes", nodes, launcher->nodes_variable, at);
    else if (find_starter(fields) == fields->n)
        add(words, "launched-nodes", launcher->nodes, launcher->name, at);
}

void launch_programs_tell(struct shell_state *state, const struct shell_fields *fields, struct launch_words *words)
{
    size_t at = 0, starter = find_starter(fields);
    const struct launcher *launcher = launch_programs_find(fields, &at);
    if (starter < fields->n)
        read_options(fields, starter, words);
    if (launcher)
        read_options(fields, at, words);
    for (size_t i = 0; launcher && i < words->n; i++) {
        int row = words->items[i].by_dest ? -1 : megatron_find(words->items[i].name, false);
        if (row == ARGUMENT_NODE_GPUS)
            settle_processes(state, &words->items[i], words);
        else if (row == ARGUMENT_NODES)
            settle_nodes(&words->items[i], words);
    }
    if (launcher)
        tell_launcher(state, fields, launcher, fields->items[at].at, words);
}
