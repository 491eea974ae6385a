/* What a script asks Slurm for. */
#include <string.h>

#include "traces/launch/shell/shell_state.h"

/* What Slurm tells a script of its own directives. */
static void set_variables(struct shell_state *state, const char *name, const char *value)
{
    static const struct {
        const char *flag, *variable;
    } told[] = {{"nodes", "SLURM_NNODES"},
                {"nodes", "SLURM_JOB_NUM_NODES"},
                {"ntasks-per-node", "SLURM_NTASKS_PER_NODE"},
                {"gpus-per-node", "SLURM_GPUS_PER_NODE"},
                {"gpus-per-node", "SLURM_GPUS_ON_NODE"},
                {"ntasks", "SLURM_NTASKS"},
                {"allocated-gpus", "SLURM_GPUS"}};
    for (size_t i = 0; i < sizeof told / sizeof told[0]; i++)
        if (strcmp(name, told[i].flag) == 0 && !shell_find(state, told[i].variable, strlen(told[i].variable)))
            shell_set_text(state, told[i].variable, strlen(told[i].variable), value);
}

/* What msim calls a directive; NULL: it says nothing of nodes and GPUs. Of --gres=gpu:h100:8,nvme:1 and --gpus=h100:32 the number
 * of GPUs goes to *value. */
static const char *name_of(const char *flag, char **value)
{
    static const char *const names[][2] = {{"-N", "nodes"},
                                           {"-n", "ntasks"},
                                           {"-G", "allocated-gpus"},
                                           {"--gpus", "allocated-gpus"},
                                           {"--gpus-per-node", "gpus-per-node"},
                                           {"--gres", "gpus-per-node"}};
    const char *name = strncmp(flag, "--", 2) == 0 ? flag + 2 : NULL;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        name = strcmp(flag, names[i][0]) == 0 ? names[i][1] : name;
    bool gres = strcmp(flag, "--gres") == 0;
    if (!name || (gres && strncmp(*value, "gpu:", 4) != 0))
        return NULL;
    if (gres)
        (*value)[strcspn(*value, ",(")] = '\0';
    bool gpus = strcmp(name, "allocated-gpus") == 0 || strcmp(name, "gpus-per-node") == 0;
    if (gpus && strchr(*value, ':') && !strchr(*value, ',')) /* of one kind */
        *value = strrchr(*value, ':') + 1;
    return name;
}

/* Does a directive say how many nodes, tasks or GPUs? */
static bool is_size(const char *name)
{
    static const char *const names[] = {"nodes", "ntasks", "ntasks-per-node", "gpus-per-node", "allocated-gpus"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

/* What stands behind an #SBATCH, which is changed: --nodes=64, -N 64, any number of them. */
static void read_directive(struct shell_state *state, char *text, struct place at)
{
    static const char blanks[] = " \t\r=";
    char *rest, *next = strtok_r(text, blanks, &rest);
    while (next && *next != '#') {
        char *name = next, *value = strtok_r(NULL, blanks, &rest);
        next = value;
        if (!value || *value == '-' || *value == '#')
            continue;
        next = strtok_r(NULL, blanks, &rest);
        const char *called = name_of(name, &value);
        if (called && is_size(called)) {
            launch_words_add(state->words, (struct launch_word){.name = called, .value = value, .spelling = name, .at = at});
            set_variables(state, called, value);
        }
    }
}

/* Lines that begin with #SBATCH. */
static void read_directives(struct shell_state *state)
{
    static const char mark[] = "#SBATCH";
    const char *end = state->texts[0].end;
    int line = 1;
    for (const char *p = state->texts[0].begin; p < end; line++) {
        const char *stop = memchr(p, '\n', (size_t)(end - p));
        stop = stop ? stop : end;
        size_t n = strlen(mark);
        if ((size_t)(stop - p) > n && memcmp(p, mark, n) == 0)
            read_directive(state, launch_text(state->words, p + n, (size_t)(stop - p) - n), (struct place){state->name, line, 1});
        p = stop < end ? stop + 1 : end;
    }
}

/* Tasks before GPUs, which tell more. */
static void order_directives(struct launch_words *words)
{
    for (size_t i = 1; i < words->n; i++)
        if (strcmp(words->items[i].name, "ntasks-per-node") == 0) {
            struct launch_word tasks = words->items[i];
            memmove(words->items + 1, words->items, i * sizeof *words->items);
            words->items[0] = tasks;
        }
}

void shell_slurm(struct shell_state *state)
{
    read_directives(state);
    order_directives(state->words);
}
