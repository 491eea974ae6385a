#include <string.h>

#include "cli/options/experiment_options.h"
#include "cli/options/help.h"
#include "cli/options/options.h"

/* A text in man(7): backslashes and leading dots escaped, dashes kept as typed. */
static void write_roff(FILE *out, const char *text)
{
    bool start = true;
    for (const char *p = text; *p; p++) {
        if (start && (*p == '.' || *p == '\''))
            fputs("\\&", out);
        if (strncmp(p, "\n\n", 2) == 0) {
            fputs("\n.PP", out);
            continue;
        }
        if (*p == '\\')
            fputs("\\e", out);
        else if (*p == '-')
            fputs("\\-", out);
        else
            fputc(*p, out);
        start = *p == '\n';
    }
}

static void write_row(FILE *out, const struct option_row *row)
{
    char note[512];
    fputs(".TP\n\\fB", out);
    if (row->letter)
        fprintf(out, "\\-%c\\fR, \\fB", row->letter);
    fputs("\\-\\-", out);
    write_roff(out, row->name);
    fputs("\\fR", out);
    if (row->argument) {
        fputs(" \\fI", out);
        write_roff(out, row->argument);
        fputs("\\fR", out);
    }
    fputc('\n', out);
    write_roff(out, row->help);
    help_row_note(row, note, sizeof note);
    write_roff(out, note);
    for (size_t i = 0; row->meanings && row->choices[i]; i++) {
        fputs("\n.br\n", out);
        write_roff(out, row->choices[i]);
        fputs(": ", out);
        write_roff(out, row->meanings[i]);
    }
    fputc('\n', out);
}

static void write_rows(FILE *out, const struct option_row *rows)
{
    for (; rows && rows->name; rows++)
        write_row(out, rows);
}

static void write_notes(FILE *out, const struct command *command)
{
    for (const struct command_note *note = command->notes; note && note->title; note++) {
        fputs(".TP\n.B ", out);
        write_roff(out, note->title);
        fputc('\n', out);
        write_roff(out, note->text);
        fputc('\n', out);
    }
}

static void write_command(FILE *out, const struct command *command)
{
    fprintf(out, ".SS msim %s %s [OPTION...]\n", command->name,
            command->operands     ? command->operands
            : command->experiment ? "[EXPERIMENT.yaml]"
                                  : "");
    write_roff(out, command->description);
    fputc('\n', out);
    write_rows(out, command->options);
    if (command->experiment)
        fputs(".PP\nThe experiment options and the options of every command, below, also apply.\n", out);
    fputs(".PP\nExamples:\n", out);
    for (const struct example *example = command->examples; example && example->line; example++) {
        fputs(".TP\n.B ", out);
        write_roff(out, example->line);
        fputc('\n', out);
        write_roff(out, example->what);
        fputc('\n', out);
    }
    write_notes(out, command);
}

static const char exit_codes[] = ".SH EXIT STATUS\n"
                                 ".TP\n0\nSuccess.\n"
                                 ".TP\n1\nFailed while running: input or output, memory or a device.\n"
                                 ".TP\n2\nWrong usage: a mistake in the command line.\n"
                                 ".TP\n3\nBad input: each mistake is reported with file, line and column. Also: no plan fits.\n"
                                 ".TP\n4\nMissing capability: this machine or build lacks it.\n"
                                 ".TP\n5\nA check failed: --tolerance, --within, or a comparison of numbers.\n";

static const char environment[] =
    ".SH ENVIRONMENT\n"
    ".TP\n.B MSIM_DATA\nA folder with catalog/ and traces/, which msim searches before the build tree and the installed data.\n"
    ".TP\n.B NO_COLOR\nDisables colour if set and not empty.\n";

void help_manual(const struct command *const *commands, FILE *out)
{
    fprintf(out, ".TH MSIM 1 \"\" \"msim %s\" \"User Commands\"\n", MSIM_VERSION);
    fputs(".SH NAME\nmsim \\- predict how a large training job runs on a GPU cluster\n", out);
    fputs(".SH SYNOPSIS\n.B msim\n\\fICOMMAND\\fR [\\fIARGUMENT\\fR...]\n.SH COMMANDS\n", out);
    for (const struct command *const *c = commands; *c; c++)
        write_command(out, *c);
    fputs(".SH EXPERIMENT OPTIONS\n", out);
    write_rows(out, experiment_options);
    fputs(".SH OPTIONS OF EVERY COMMAND\n", out);
    write_rows(out, common_options);
    fputs(exit_codes, out);
    fputs(environment, out);
}

/* What may stand behind an option: its choices, or names of the catalog. */
static void write_values(FILE *out, const struct option_row *row)
{
    static const char *const kinds[][2] = {
        {"model", "models"},        {"cluster", "clusters"}, {"gpu", "gpus"}, {"fault-model", "fault-models"},
        {"preset", "fault-models"}, {"policy", "policies"}};
    const char *names = NULL;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(row->name, kinds[i][0]) == 0 && strcmp(row->argument, "NAME|FILE") == 0)
            names = kinds[i][1];
    if (!row->choices && !names)
        return;
    fprintf(out, "        --%s) values=\"", row->name);
    for (size_t i = 0; row->choices && row->choices[i]; i++)
        fprintf(out, "%s%s", i ? " " : "", row->choices[i]);
    if (names)
        fprintf(out, "$(msim catalog %s --format csv 2>/dev/null | sed -e 1d -e 's/,.*//')", names);
    fprintf(out, "\"%s%s ;;\n", row->type == OPTION_LIST ? " listed=1" : "", row->changes ? " signed=1" : "");
}

static void complete_command(FILE *out, const struct command *command)
{
    const struct option_row *rows[MAX_OPTIONS];
    int n = command_rows(command, rows);
    fprintf(out, "    %s)\n        words=\"", command->name);
    for (int i = 0; i < n; i++)
        fprintf(out, "%s--%s", i ? " " : "", rows[i]->name);
    fputs("\"\n        case $before in\n", out);
    for (int i = 0; i < n; i++)
        write_values(out, rows[i]);
    fputs("        esac ;;\n", out);
}

void help_completion(const struct command *const *commands, FILE *out)
{
    fputs("# bash completion for msim; made from its option tables\n_msim()\n{\n", out);
    fputs("    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} words= values= listed= signed=\n", out);
    fputs("    local last=$word sign=\n", out);
    fputs("    case ${COMP_WORDS[1]} in\n", out);
    for (const struct command *const *c = commands; *c; c++)
        complete_command(out, *c);
    fputs("    esac\n    if [ \"$COMP_CWORD\" = 1 ]; then\n        words=\"help --version --help", out);
    for (const struct command *const *c = commands; *c; c++)
        fprintf(out, " %s", (*c)->name);
    fputs("\"\n        COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n", out);
    fputs("    elif [ -n \"$values\" ]; then\n", out);
    fputs("        [ -z \"$listed\" ] || last=${word##*,}\n", out); /* of names between commas the one that is being written */
    fputs("        [ -z \"$signed\" ] || case $last in [+-]*) sign=${last:0:1} ;; esac\n", out);
    fputs("        COMPREPLY=($(compgen -P \"${word%\"$last\"}$sign\" -W \"$values\" -- \"${last#\"$sign\"}\"))\n", out);
    fputs("    elif [ \"${word#-}\" != \"$word\" ]; then\n        COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n", out);
    fputs("    else\n        COMPREPLY=($(compgen -f -- \"$word\"))\n    fi\n}\ncomplete -F _msim msim\n", out);
}

static void write_words(FILE *out, const struct option_row *rows)
{
    for (; rows && rows->name; rows++) {
        fprintf(out, "\"--%s\"\n", rows->name);
        for (size_t i = 0; rows->choices && rows->choices[i]; i++)
            fprintf(out, "\"%s\"\n", rows->choices[i]);
    }
}

void help_dictionary(const struct command *const *commands, FILE *out)
{
    for (const struct command *const *c = commands; *c; c++) {
        fprintf(out, "\"%s\"\n", (*c)->name);
        write_words(out, (*c)->options);
    }
    write_words(out, experiment_options);
    write_words(out, common_options);
}
