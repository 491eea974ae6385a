/*
 * module_pattern.h - Python's regular expressions over names of modules, as peft has them (target_modules as one text, which is
 * to match all of a name: re.fullmatch).
 *
 * They become POSIX's extended ones: groups without numbers, \d \w \s \b, counts, flags of case, and repetitions that take
 * little, which is all the same where only whether a match exists is asked. In front, but for '^', may stand what is to follow or
 * not to follow ((?=...), (?!...)). Other looks around, references to groups and what has no like are refused, with the letter.
 */
#ifndef MSIM_TRACES_LAUNCH_MEGATRON_MODULE_PATTERN_H
#define MSIM_TRACES_LAUNCH_MEGATRON_MODULE_PATTERN_H

#include <regex.h>
#include <stdbool.h>
#include <stddef.h>

enum { MODULE_PATTERN_LENGTH = 1024, MODULE_PATTERN_LOOKS = 4 };

struct module_pattern {
    regex_t whole, looks[MODULE_PATTERN_LOOKS]; /* what stands in front */
    bool denied[MODULE_PATTERN_LOOKS];          /* not to follow */
    int n_looks;
};

/* false, with *why and nothing to free, where a text is no pattern or not one of these. */
bool module_pattern_read(const char *text, struct module_pattern *pattern, char *why, size_t size);
bool module_pattern_matches(const struct module_pattern *pattern, const char *name);
void module_pattern_free(struct module_pattern *pattern);

#endif
