#include "model/spec/catalog_alias.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/units.h"
#include "model/spec/entry.h"

static const char *const kind_keys[N_CATALOG_KINDS] = {
    [CATALOG_MODELS] = "models", [CATALOG_GPUS] = "gpus", [CATALOG_CLUSTERS] = "clusters"};
static const char *const match_keys[] = {[ALIAS_ALSO] = "also", [ALIAS_USUAL] = "usual"};

enum { FOLDED_SIZE = 128, WORDS_MAX = 32 };

/* --- spellings ------------------------------------------------------------------------------------------------------------ */

/* Behind the first n characters of a word's folded text: 80gb is 80g, sxm4 and sxm5 are generations of one socket. */
static size_t without_variant(const char *folded, size_t n)
{
    if (n >= 3 && memcmp(folded + n - 2, "gb", 2) == 0 && isdigit((unsigned char)folded[n - 3]))
        return n - 1;
    if (n >= 4 && memcmp(folded + n - 4, "sxm", 3) == 0 && isdigit((unsigned char)folded[n - 1]))
        return n - 1;
    return n;
}

/* Letters and digits in lower case; of the punctuation only that it parts two numbers (qwen2-57b is not qwen2.5-7b). Empty when
 * the text is no name's length. */
static void fold(const char *text, size_t length, char folded[FOLDED_SIZE])
{
    size_t n = 0;
    bool parted = false;
    for (size_t i = 0; i < length && n + 2 < FOLDED_SIZE; i++) {
        unsigned char c = (unsigned char)text[i];
        if (isalnum(c)) {
            if (parted && n > 0 && isdigit(c) && isdigit((unsigned char)folded[n - 1]))
                folded[n++] = '-';
            folded[n++] = (char)tolower(c);
            if (i + 1 == length || !isalnum((unsigned char)text[i + 1]))
                n = without_variant(folded, n);
        }
        parted = !isalnum(c);
    }
    folded[n + 2 < FOLDED_SIZE ? n : 0] = '\0';
}

static bool spells(const char *text, const char *folded)
{
    char other[FOLDED_SIZE];
    fold(text, strlen(text), other);
    return *other && strcmp(other, folded) == 0;
}

static bool list_spells(const struct yaml_node *list, const char *folded)
{
    for (const struct yaml_node *item = list ? list->first : NULL; item; item = item->next)
        if (item->kind == YAML_SCALAR && spells(item->text, folded))
            return true;
    return false;
}

/* A word consists of letters, digits and the point of a version; any other character separates two words. */
struct words {
    const char *start[WORDS_MAX];
    size_t length[WORDS_MAX];
    size_t first, end; /* those that are left */
};

static void words_split(struct words *words, const char *text)
{
    *words = (struct words){0};
    while (*text && words->end < WORDS_MAX) {
        size_t n = 0;
        while (isalnum((unsigned char)text[n]) || text[n] == '.')
            n++;
        if (n > 0) {
            words->start[words->end] = text;
            words->length[words->end++] = n;
        }
        text += n + (text[n] != '\0');
    }
}

static bool word_is_around(const struct alias_table *table, enum catalog_kind kind, const struct words *words, size_t word)
{
    char folded[FOLDED_SIZE];
    fold(words->start[word], words->length[word], folded);
    for (size_t f = 0; f < table->n_files; f++)
        if (list_spells(yaml_find(yaml_find(table->files[f], "around"), kind_keys[kind]), folded))
            return true;
    return false;
}

/* The text without its organisation and the words around its name, folded. */
static void fold_core(const struct alias_table *table, enum catalog_kind kind, const char *text, char folded[FOLDED_SIZE])
{
    struct words words;
    const char *slash = strrchr(text, '/');
    words_split(&words, slash ? slash + 1 : text);
    while (words.first < words.end && word_is_around(table, kind, &words, words.first))
        words.first++;
    while (words.end > words.first && word_is_around(table, kind, &words, words.end - 1))
        words.end--;
    *folded = '\0';
    if (words.first < words.end)
        fold(words.start[words.first],
             (size_t)(words.start[words.end - 1] - words.start[words.first]) + words.length[words.end - 1], folded);
}

/* --- the table ------------------------------------------------------------------------------------------------------------ */

static bool list_is_sound(const struct yaml_node *list, struct diags *diags)
{
    bool sound = list->kind == YAML_SEQUENCE;
    for (const struct yaml_node *item = list->first; item && sound; item = item->next)
        sound = item->kind == YAML_SCALAR;
    if (!sound)
        diag_error(diags, list->at, "this must be a list of names, such as [h100, h100-80gb]");
    return sound;
}

/* `also` and `usual` of every entry are lists of spellings. */
static bool file_is_sound(const struct yaml_node *file, struct diags *diags)
{
    bool sound = true;
    for (int kind = 0; kind < N_CATALOG_KINDS; kind++) {
        const struct yaml_node *entries = yaml_find(file, kind_keys[kind]);
        for (const struct yaml_node *entry = entries ? entries->first : NULL; entry; entry = entry->next) {
            bool known = false;
            for (int match = ALIAS_ALSO; match <= ALIAS_USUAL; match++) {
                const struct yaml_node *list = yaml_find(entry, match_keys[match]);
                known = known || list;
                sound = (!list || list_is_sound(list, diags)) && sound;
            }
            if (!known)
                diag_error(diags, entry->at, "the other names of an entry must be lists: also: [...], usual: [...]");
            sound = sound && known;
        }
    }
    return sound;
}

enum status alias_table_load(struct alias_table *table, struct diags *diags)
{
    *table = (struct alias_table){0};
    enum status status = STATUS_OK;
    for (int place = 0; place < N_DATA_PLACES && table->n_files < ALIAS_FILES_MAX; place++) {
        char *path = data_path_in((enum data_place)place, "catalog/aliases.yaml");
        const struct yaml_node *file = path ? yaml_read(path, &table->arena, diags) : NULL;
        if (file && file_is_sound(file, diags))
            table->files[table->n_files++] = file;
        else if (path)
            status = STATUS_BAD_INPUT;
        free(path);
        if (path && place != DATA_CHOSEN)
            break;
    }
    return status;
}

void alias_table_free(struct alias_table *table)
{
    for (int kind = 0; kind < N_CATALOG_KINDS; kind++)
        names_free(table->names[kind]);
    arena_free(&table->arena);
    *table = (struct alias_table){0};
}

/* --- questions ------------------------------------------------------------------------------------------------------------ */

static void load_names(struct alias_table *table, enum catalog_kind kind)
{
    struct diags quiet = {0}; /* a catalog that cannot be read is reported when an entry is looked for */
    if (!table->names[kind])
        (void)!catalog_names(kind, &table->names[kind], &table->n_names[kind], &quiet);
    diags_free(&quiet);
}

static const char *named(struct alias_table *table, enum catalog_kind kind, const char *folded)
{
    load_names(table, kind);
    for (size_t i = 0; i < table->n_names[kind]; i++)
        if (spells(table->names[kind][i], folded))
            return table->names[kind][i];
    return NULL;
}

static const char *listed(const struct alias_table *table, enum catalog_kind kind, enum alias_match match, const char *folded)
{
    for (size_t f = 0; f < table->n_files; f++) {
        const struct yaml_node *entries = yaml_find(table->files[f], kind_keys[kind]);
        for (const struct yaml_node *entry = entries ? entries->first : NULL; entry; entry = entry->next)
            if (list_spells(yaml_find(entry, match_keys[match]), folded))
                return entry->key;
    }
    return NULL;
}

static enum alias_match find_folded(struct alias_table *table, enum catalog_kind kind, const char *folded, const char **name)
{
    const char *found = *folded ? named(table, kind, folded) : NULL;
    enum alias_match match = ALIAS_NAME;
    while (*folded && !found && ++match < ALIAS_NONE)
        found = listed(table, kind, match, folded);
    if (!found)
        return ALIAS_NONE;
    *name = found;
    return match;
}

enum alias_match alias_table_find(struct alias_table *table, enum catalog_kind kind, const char *text, const char **name)
{
    char folded[FOLDED_SIZE];
    fold(text, strlen(text), folded);
    enum alias_match match = find_folded(table, kind, folded, name);
    if (match != ALIAS_NONE)
        return match;
    fold_core(table, kind, text, folded);
    return find_folded(table, kind, folded, name);
}

/* All spellings of a kind, with the entry that each stands for. */
struct spellings {
    const char **texts, **entries;
    size_t n, capacity, entries_capacity;
};

static void add_spelling(struct spellings *all, const char *text, const char *entry)
{
    all->texts = memory_grow(all->texts, &all->capacity, all->n + 1, sizeof *all->texts);
    all->entries = memory_grow(all->entries, &all->entries_capacity, all->n + 1, sizeof *all->entries);
    all->texts[all->n] = text;
    all->entries[all->n++] = entry;
}

static void add_spellings(struct spellings *all, const struct yaml_node *entry)
{
    for (int match = ALIAS_ALSO; match <= ALIAS_USUAL; match++) {
        const struct yaml_node *list = yaml_find(entry, match_keys[match]);
        for (const struct yaml_node *item = list ? list->first : NULL; item; item = item->next)
            add_spelling(all, item->text, entry->key);
    }
}

const char *alias_table_nearest(struct alias_table *table, enum catalog_kind kind, const char *text, const char **entry)
{
    struct spellings all = {0};
    load_names(table, kind);
    for (size_t i = 0; i < table->n_names[kind]; i++)
        add_spelling(&all, table->names[kind][i], table->names[kind][i]);
    for (size_t f = 0; f < table->n_files; f++) {
        const struct yaml_node *entries = yaml_find(table->files[f], kind_keys[kind]);
        for (const struct yaml_node *e = entries ? entries->first : NULL; e; e = e->next)
            add_spellings(&all, e);
    }
    const char *near = nearest_name(text, all.texts, all.n);
    for (size_t i = 0; near && i < all.n; i++)
        if (all.texts[i] == near)
            *entry = all.entries[i];
    free(all.texts);
    free(all.entries);
    return near;
}

size_t alias_table_of(const struct alias_table *table, enum catalog_kind kind, const char *name, const char **spellings,
                      size_t max)
{
    size_t n = 0;
    for (int match = ALIAS_USUAL; match >= ALIAS_ALSO; match--)
        for (size_t f = 0; f < table->n_files; f++) {
            const struct yaml_node *entry = yaml_find(yaml_find(table->files[f], kind_keys[kind]), name);
            const struct yaml_node *list = yaml_find(entry, match_keys[match]);
            for (const struct yaml_node *item = list ? list->first : NULL; item; item = item->next, n++)
                if (n < max)
                    spellings[n] = item->text;
        }
    return n;
}
