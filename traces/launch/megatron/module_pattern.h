/*
 * module_pattern.h - Python's regular expressions over names of modules, as in peft's target_modules (re.fullmatch).
 *
 *     model\.layers\.\d+\.self_attn\.(q|v)_proj          the queries and values of every layer
 *     (?!.*lm_head).*proj                                all projections except the head
 *
 * They become POSIX extended expressions: groups without numbers, \d \w \s \b, counts, flags for case, and lazy repetitions,
 * which match the same names. Lookaheads, (?=...) and (?!...), may stand at the beginning, after '^'. Other lookarounds, back
 * references and constructs without a POSIX equivalent are refused, with the letter.
 */
#ifndef MSIM_TRACES_LAUNCH_MEGATRON_MODULE_PATTERN_H
#define MSIM_TRACES_LAUNCH_MEGATRON_MODULE_PATTERN_H

#include <regex.h>
#include <stdbool.h>
#include <stddef.h>

enum { MODULE_PATTERN_LENGTH = 1024, MODULE_PATTERN_LOOKS = 4 };

struct module_pattern {
    regex_t whole, looks[MODULE_PATTERN_LOOKS]; /* the lookaheads at the beginning */
    bool denied[MODULE_PATTERN_LOOKS];          /* negative ones */
    int n_looks;
};

/* false, with *why and nothing to free, if the text is no pattern or an unsupported one. */
bool module_pattern_read(const char *text, struct module_pattern *pattern, char *why, size_t size);
bool module_pattern_matches(const struct module_pattern *pattern, const char *name);
void module_pattern_free(struct module_pattern *pattern);

#endif
