#include "traces/launch/launch_read.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/file.h"
#include "traces/launch/frameworks/framework_config.h"
#include "traces/launch/frameworks/framework_keys.h"
#include "traces/launch/launch_files.h"
#include "traces/launch/launch_programs.h"
#include "traces/launch/megatron/megatron_translate.h"

/* --- files --- */

static enum status read_configuration(struct launch_source *source, const struct launch_options *how, struct diags *diags)
{
    enum status status = framework_config_parse(how->frameworks, source->path, source->bytes, source->n, &source->words,
                                                &source->framework, diags);
    source->is_companion = source->framework && source->framework->companion;
    return status;
}

/* What a source has, once it is there. */
static enum status read_bytes(struct launch_source *source, const struct launch_options *how, struct diags *diags)
{
    source->n = launch_plain(source->bytes, source->n);
    source->is_log = launch_is_log(source->bytes, source->n);
    if (source->is_log) {
        megatron_log_parse(source->path, source->bytes, source->n, how->warm_up, &source->words, &source->log, diags);
        return STATUS_OK;
    }
    if (framework_is_config(source->path, source->bytes, source->n))
        return read_configuration(source, how, diags);
    if (source->n > SHELL_BYTES_MAX) {
        diag_error(diags, (struct place){.file = source->path}, "neither the log of a training job nor a script: %zu bytes",
                   source->n);
        return STATUS_BAD_INPUT;
    }
    enum status status =
        launch_shell_parse(how->frameworks, source->path, source->bytes, source->n, how->environment, &source->words, diags);
    /* key=value may be called as an argument is (num_experts=8 of MaxText's), and is none */
    source->is_override =
        megatron_count_flags(&source->words) == 0 && !framework_is_told_by_flags(how->frameworks, &source->words);
    source->framework = source->is_override ? framework_of_overrides(how->frameworks, &source->words) : NULL;
    source->is_companion = source->is_override;
    return status;
}

static enum status read_source(struct launch_source *source, const struct launch_options *how, struct diags *diags)
{
    enum status status = file_read(source->path, FILE_TEXT_MAX, &source->bytes, &source->n, diags);
    return status == STATUS_OK ? read_bytes(source, how, diags) : status;
}

/* --- files that a script writes --- */

/* Something in such a file that is not known, and where it stands. */
struct gap {
    const char *why; /* up to the UNKNOWN_TEXT that ends it */
    int line, column;
};

struct gaps {
    struct gap *items;
    size_t n, capacity;
};

/* The text of a file with `filler` where something is not known; each such place goes to gaps (NULL: to nobody). */
static void fill(struct launch_source *source, const char *text, const char *filler, struct gaps *gaps)
{
    FILE *out = open_memstream(&source->bytes, &source->n);
    int line = 1, column = 1;
    for (const char *p = text; *p; p++) {
        if (*p != *UNKNOWN_TEXT) {
            fputc(*p, out);
            column = *p == '\n' ? 1 : column + 1;
            line += *p == '\n';
            continue;
        }
        if (gaps) {
            gaps->items = memory_grow(gaps->items, &gaps->capacity, gaps->n + 1, sizeof *gaps->items);
            gaps->items[gaps->n++] = (struct gap){p + 1, line, column};
        }
        fputs(filler, out);
        column += (int)strlen(filler);
        p += 1 + strcspn(p + 1, UNKNOWN_TEXT);
        if (!*p)
            break;
    }
    fclose(out);
}

/* The gap in a word's line that stands in its value; NULL: none. */
static const struct gap *gap_of(const struct gaps *gaps, const struct launch_word *word)
{
    const struct gap *found = NULL;
    for (size_t i = 0; i < gaps->n; i++)
        if (gaps->items[i].line == word->at.line && (!found || found->column < word->at.column))
            found = &gaps->items[i];
    return found;
}

static bool has_word(const struct launch_words *words, const struct launch_word *word)
{
    for (size_t i = 0; i < words->n; i++) {
        const struct launch_word *w = &words->items[i];
        bool same = strcmp(w->name, word->name) == 0 && w->by_dest == word->by_dest && !w->value == !word->value;
        if (same && (!w->value || strcmp(w->value, word->value) == 0))
            return true;
    }
    return false;
}

/* Keys that a file sets to what is not known are those that it sets otherwise with another text there: these become unknown. */
static void tell_gaps(struct launch_source *source, const char *text, const struct launch_options *how)
{
    struct launch_source trial = {.path = source->path};
    struct gaps gaps = {0};
    struct diags quiet = {0};
    fill(&trial, text, "1", &gaps);
    enum status status = gaps.n ? read_bytes(&trial, how, &quiet) : STATUS_OK;
    for (size_t i = 0; i < trial.words.n && gaps.n && status == STATUS_OK && !trial.is_log; i++) {
        const struct launch_word *word = &trial.words.items[i];
        const struct gap *gap = has_word(&source->words, word) ? NULL : gap_of(&gaps, word);
        if (!gap || word->strange)
            continue;
        struct launch_word unknown = *word;
        unknown.name = launch_text(&source->words, word->name, strlen(word->name));
        unknown.spelling = word->spelling ? launch_text(&source->words, word->spelling, strlen(word->spelling)) : NULL;
        unknown.value = "";
        unknown.first = 0;
        unknown.unknown = launch_text(&source->words, gap->why, strcspn(gap->why, UNKNOWN_TEXT));
        launch_words_add(&source->words, unknown);
    }
    launch_words_free(&trial.words);
    free(trial.bytes);
    free(gaps.items);
    diags_free(&quiet);
}

/* The same of a file that a script writes: what is not known of it says nothing, but where a key matters the reason. */
static enum status read_written(struct launch_source *source, const char *text, const struct launch_options *how,
                                struct diags *diags)
{
    fill(source, text, "null", NULL);
    enum status status = read_bytes(source, how, diags);
    if (status == STATUS_OK && !source->is_log)
        tell_gaps(source, text, how);
    return status;
}

/* A file that is written and then changed. */
static void tell_doubts(const struct launch_words *words, const char *name, const char *shown, struct diags *diags)
{
    for (size_t i = 0; i < words->n; i++)
        if (strcmp(words->items[i].name, "doubted-file") == 0 && strcmp(words->items[i].spelling, name) == 0)
            diag_warning(diags, words->items[i].at,
                         "the script writes %.80s and changes it here with %.60s; msim does not follow the change", shown,
                         words->items[i].value);
}

/* --- files that files name --- */

/* What the script writes into a file of this name, of which the same may be unknown; NULL: it does not. */
static const char *written_text(const struct launch_words *words, const char *path, const char *unknown)
{
    for (size_t i = words->n; i-- > 0;) {
        const struct launch_word *file = &words->items[i];
        bool same = !file->unknown == !unknown && (!unknown || strcmp(file->unknown, unknown) == 0);
        if (same && strcmp(file->name, "written-file") == 0 && strcmp(file->spelling, path) == 0)
            return file->value;
    }
    return NULL;
}

/* The configuration that a word names, which says more of its job, without the program behind it; NULL: none. */
static const char *named_companion(struct launch_words *words, const struct launch_word *word)
{
    static const char *const names[] = {"deepspeed", "deepspeed_config", "deepspeed_config_file", "config_file",
                                        "configuration-file"};
    const char *path = !word->value ? "" : word->first ? launch_text(words, word->value, word->first) : word->value;
    const char *dot = strrchr(path, '.');
    bool config =
        dot && (strcmp(dot, ".json") == 0 || strcmp(dot, ".yaml") == 0 || strcmp(dot, ".yml") == 0 || strcmp(dot, ".toml") == 0);
    bool known = !word->unknown || written_text(words, path, word->unknown);
    for (size_t i = 0; i < sizeof names / sizeof names[0] && config && known; i++)
        if (strcmp(word->name, names[i]) == 0)
            return path;
    return NULL;
}

/* Is what a file says known without it: given besides, or one that its framework ships? */
static bool is_known(const struct launch_sources *sources, size_t job, const struct launch_word *word, const char *path)
{
    const struct launch_words *words = &sources->items[job].words;
    for (size_t i = 0; i < sources->n; i++)
        if (i != job && strcmp(launch_base(sources->items[i].path), launch_base(path)) == 0)
            return true;
    for (size_t i = 0; i < words->n; i++) {
        const struct launch_word *other = &words->items[i];
        if (other->spelling && word->spelling && strcmp(other->spelling, word->spelling) == 0 &&
            strcmp(other->name, "zero_stage") == 0)
            return true;
    }
    return false;
}

static const struct launch_word *find_word(const struct launch_words *words, const char *name)
{
    for (size_t i = words->n; i-- > 0;)
        if (strcmp(words->items[i].name, name) == 0)
            return &words->items[i];
    return NULL;
}

/* A file as its namer calls it, or from where the namer, or the program that it starts, stands. *kind says why there is none: of
 * several reasons the one that says most. NULL: it is not read. */
static const char *find_companion(struct launch_source *namer, const char *path, const struct launch_options *how,
                                  enum named_file *kind)
{
    const struct launch_word *program = find_word(&namer->words, "configuration-folder");
    const char *behind = program ? program->value : "";
    int folder = (int)(launch_base(namer->path) - namer->path);
    const struct {
        int folder;
        const char *middle, *path;
    } tries[] = {{0, "", path}, {0, behind, path}, {folder, "", path}, {folder, behind, path}, {folder, "", launch_base(path)}};
    char text[PATH_MAX];
    *kind = NAMED_ABSENT;
    for (size_t i = 0; i < sizeof tries / sizeof tries[0]; i++) {
        int n = snprintf(text, sizeof text, "%.*s%s%s", tries[i].folder, namer->path, tries[i].middle, tries[i].path);
        if (n <= 0 || (size_t)n >= sizeof text || file_is_same(text, namer->path))
            continue;
        enum named_file here = launch_file_at(namer->path, text, how->environment && how->environment->follow);
        if (here == NAMED_HERE)
            return launch_text(&namer->words, text, (size_t)n);
        *kind = here > *kind ? here : *kind;
    }
    return NULL;
}

static size_t count(const struct launch_sources *sources, bool logs)
{
    size_t n = 0;
    for (size_t i = 0; i < sources->n; i++)
        n += !sources->items[i].is_companion && sources->items[i].is_log == logs;
    return n;
}

/* Is a file that a job of its own names a configuration that msim knows? Others are for the program alone. */
static bool is_known_configuration(const char *path, const char *written, const struct launch_options *how)
{
    struct launch_source trial = {.path = path};
    struct diags quiet = {0};
    enum status status = written ? read_written(&trial, written, how, &quiet) : read_source(&trial, how, &quiet);
    bool known = status == STATUS_OK && !trial.is_log && !trial.is_override;
    launch_words_free(&trial.words);
    free(trial.bytes);
    diags_free(&quiet);
    return known;
}

/* A file that is not read: without the one that a command sets keys of there is no job. */
static enum status ask_for_companion(const struct launch_word *word, const char *name, enum named_file kind, bool needed,
                                     struct diags *diags)
{
    needed |= kind == NAMED_SPECIAL;
    if (!needed)
        diag_warning(diags, word->at, "'%.80s' %s, so its part of the job is missing; give this file, too", name,
                     launch_file_refusal(kind));
    else
        diag_error(diags, word->at, "'%.80s', the job's configuration, %s; give this file, too", name, launch_file_refusal(kind));
    return needed ? STATUS_BAD_INPUT : STATUS_OK;
}

/* A name, what is not known of which shows as a question mark. */
static const char *printable(struct launch_words *words, const char *name)
{
    char *text = launch_text(words, name, strlen(name));
    for (char *p = text; *p; p++)
        *p = *p == *UNKNOWN_TEXT ? '?' : *p;
    return text;
}

/* What one of these names and nobody gave is read, too, where it is there, and asked for where it is not. */
static enum status read_companions(struct launch_sources *sources, size_t *capacity, size_t namer,
                                   const struct launch_options *how, struct diags *diags)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; i < sources->items[namer].words.n && status == STATUS_OK; i++) {
        struct launch_source *s = &sources->items[namer];
        const struct launch_word *word = &s->words.items[i];
        const char *name = named_companion(&s->words, word);
        bool configuration = name && strcmp(word->name, "configuration-file") == 0, sets = s->is_override;
        bool given = configuration && sets && count(sources, false) > 0; /* another in its place */
        if (!name || given || is_known(sources, namer, word, name))
            continue;
        enum named_file kind = NAMED_ABSENT;
        const char *written = written_text(&s->words, name, word->unknown);
        const char *path = written ? name : find_companion(s, name, how, &kind);
        if (!path) {
            status = ask_for_companion(word, name, kind, configuration && sets && count(sources, true) == 0, diags);
            continue;
        }
        if ((configuration || written) && !sets && !is_known_configuration(path, written, how)) {
            if (written && !configuration)
                diag_warning(diags, word->at, "msim cannot read the configuration that the script writes; it is left out");
            continue;
        }
        if (written) {
            path = printable(&s->words, name);
            tell_doubts(&s->words, name, path, diags);
        }
        diag_note(diags, word->at, "%.80s is read, too%s", path, written ? ", as the script writes it" : "");
        sources->items = memory_grow(sources->items, capacity, sources->n + 1, sizeof *sources->items);
        struct launch_source *more = &sources->items[sources->n++]; /* `s` may have moved */
        *more = (struct launch_source){.path = path};
        status = written ? read_written(more, written, how, diags) : read_source(more, how, diags);
        more->is_companion |= configuration && !sets;
    }
    return status;
}

/* The nodes of a hostfile that deepspeed is given. */
static void read_hosts(struct launch_source *source, const struct launch_options *how, struct diags *diags)
{
    const struct launch_word *file = find_word(&source->words, "hostfile"), *by = find_word(&source->words, "launched-by");
    if (!file || !file->value || file->unknown || !by || strcmp(by->value, "deepspeed") != 0)
        return;
    const char *name = file->first ? launch_text(&source->words, file->value, file->first) : file->value;
    enum named_file kind = NAMED_ABSENT;
    const char *written = written_text(&source->words, name, NULL);
    const char *path = written ? NULL : find_companion(source, name, how, &kind);
    char *bytes;
    size_t n;
    bool told = find_word(&source->words, "num_nodes") || find_word(&source->words, "launched-gpus") ||
                find_word(&source->words, "world-size"); /* --include names GPUs */
    const struct launch_word *include = find_word(&source->words, "launched-gpus");
    if (include && include->unknown) /* no list */
        return;
    if (written) {
        tell_doubts(&source->words, name, name, diags);
        launch_programs_hosts(name, written, strlen(written), &source->words, diags);
    } else if (path && file_read(path, SHELL_BYTES_MAX, &bytes, &n, diags) == STATUS_OK) {
        launch_programs_hosts(path, bytes, n, &source->words, diags);
        free(bytes);
    } else if (!told && !path) {
        diag_warning(diags, file->at, "'%.80s' %s, so the number of nodes is unknown; set the number of GPUs with --gpus", name,
                     launch_file_refusal(kind));
    }
}

static size_t count_overrides(const struct launch_sources *sources)
{
    size_t n = 0;
    for (size_t i = 0; i < sources->n; i++)
        n += sources->items[i].is_override;
    return n;
}

/* Is there one job, or one command whose configuration is the job? */
static bool is_alone(const struct launch_sources *sources)
{
    size_t jobs = count(sources, false);
    return jobs == 1 || (jobs == 0 && count_overrides(sources) == 1);
}

/* What only says more about a job is no job. */
static void ask_for_job(const struct launch_source *source, struct diags *diags)
{
    const struct framework *framework = source->is_override ? source->framework : NULL;
    struct place at = {.file = source->path};
    if (framework && framework->base)
        diag_error(diags, at, "this only sets some keys of %s; also name its %s, which has the others", framework->name,
                   framework->base);
    else if (framework)
        diag_error(diags, at, "this only sets some keys of %s; also name the configuration with the other keys", framework->name);
    else
        diag_error(diags, at, "this describes only a part of a job; also name its launch script or log");
}

static enum status check_together(const struct launch_sources *sources, struct diags *diags)
{
    size_t logs = count(sources, true), others = count(sources, false);
    enum status status = STATUS_OK;
    if (logs && others > 1) {
        diag_error(diags, PLACE_NONE, "%zu descriptions of jobs together with logs; give only the one that the logs belong to",
                   others);
        return STATUS_BAD_INPUT;
    }
    if (!logs && !others && count_overrides(sources) > 1) {
        diag_error(diags, PLACE_NONE, "%zu commands that set keys of configurations; import one at a time",
                   count_overrides(sources));
        return STATUS_BAD_INPUT;
    }
    if (!logs && !others) {
        ask_for_job(&sources->items[0], diags);
        return STATUS_BAD_INPUT;
    }
    for (size_t i = 0; i < sources->n; i++) {
        const struct launch_source *s = &sources->items[i];
        if (s->is_log && !s->log.has_arguments && !others) {
            diag_error(diags, (struct place){.file = s->path},
                       "this log has no argument block, so it does not say what ran; give the job's script, too");
            status = STATUS_BAD_INPUT;
        }
    }
    return status;
}

/* Tables that nobody compared with the program: each once. */
static void note_unchecked(const struct launch_sources *sources, struct diags *diags)
{
    for (size_t i = 0; i < sources->n; i++) {
        const struct framework *framework = sources->items[i].framework;
        bool first = framework && !framework->checked;
        for (size_t k = 0; k < i; k++)
            first &= sources->items[k].framework != framework;
        if (first)
            diag_note(diags, (struct place){.file = sources->items[i].path},
                      "the keys of %s were not checked against the program (source: %s)", framework->name, framework->source);
    }
}

enum status launch_sources_read(const char *const *paths, size_t n, const struct launch_options *how,
                                struct launch_sources *sources, struct diags *diags)
{
    struct launch_sources read = {.items = memory_new(n, sizeof *read.items), .n = n};
    size_t capacity = n;
    enum status worst = STATUS_OK;
    for (size_t i = 0; i < n; i++) {
        read.items[i].path = paths[i];
        enum status status = read_source(&read.items[i], how, diags);
        worst = status == STATUS_OK ? worst : status;
    }
    /* of one job only; what a companion names, too (accelerate's file DeepSpeed's) */
    for (size_t i = 0; i < read.n && worst == STATUS_OK && is_alone(&read); i++)
        if (!read.items[i].is_log) {
            read_hosts(&read.items[i], how, diags);
            worst = read_companions(&read, &capacity, i, how, diags);
        }
    if (worst == STATUS_OK)
        worst = check_together(&read, diags);
    if (worst != STATUS_OK) {
        launch_sources_free(&read);
        return worst;
    }
    note_unchecked(&read, diags);
    *sources = read;
    return STATUS_OK;
}

void launch_sources_free(struct launch_sources *sources)
{
    for (size_t i = 0; i < sources->n; i++) {
        free(sources->items[i].bytes);
        launch_words_free(&sources->items[i].words);
    }
    free(sources->items);
    *sources = (struct launch_sources){0};
}

bool launch_is_job(const struct launch_sources *sources, size_t i)
{
    const struct launch_source *s = &sources->items[i];
    return !s->is_companion && (s->is_log || count(sources, true) == 0);
}

/* --- jobs --- */

static void add_all(struct launch_words *words, const struct launch_words *more)
{
    for (size_t i = 0; i < more->n; i++)
        launch_words_add(words, more->items[i]);
}

void launch_describe(const struct launch_sources *sources, size_t i, const struct launch_options *how,
                     struct launch_description *description, struct diags *diags)
{
    struct launch_words words = {0};
    const struct launch_source *job = &sources->items[i];
    for (size_t k = 0; k < sources->n; k++)
        if (k != i && !sources->items[k].is_log && !sources->items[k].is_override &&
            (sources->items[k].is_companion || job->is_log))
            add_all(&words, &sources->items[k].words);
    add_all(&words, &job->words);
    for (size_t k = 0; k < sources->n; k++)
        if (sources->items[k].is_override)
            add_all(&words, &sources->items[k].words);
    *description = (struct launch_description){0};
    enum status status = STATUS_OK;
    for (int k = 0; k < how->n_with && status == STATUS_OK; k++)
        status = shell_words("--with", how->with[k], &words, diags);
    if (status == STATUS_OK) {
        struct megatron_arguments *arguments = memory_new(1, sizeof *arguments);
        framework_take_overrides(how->frameworks, &words);
        megatron_read(&words, how->frameworks->ignored, how->all, arguments, diags);
        megatron_translate(arguments, &(struct launch_known){.gpus = how->gpus}, description, diags);
        free(arguments);
    }
    launch_words_free(&words);
}
