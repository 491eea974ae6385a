/* Scripts, read and not run: the words of a job, and where each was written. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/suite.h"
#include "tests/traces/frameworks_loaded.h"
#include "traces/launch/launch_shell.h"

struct reading {
    struct launch_words words;
    struct diags diags;
    enum status status;
};

static struct reading read_script(const char *text, const struct launch_environment *environment)
{
    struct reading r = {0};
    r.status = launch_shell_parse(frameworks_loaded(), "s", text, strlen(text), environment, &r.words, &r.diags);
    return r;
}

static void reading_free(struct reading *r)
{
    launch_words_free(&r->words);
    diags_free(&r->diags);
}

static const struct launch_word *word_of(const struct reading *r, const char *name)
{
    for (size_t i = r->words.n; i-- > 0;)
        if (strcmp(r->words.items[i].name, name) == 0)
            return &r->words.items[i];
    return NULL;
}

static void expect_value(const char *script, const char *name, const char *value)
{
    struct reading r = read_script(script, NULL);
    const struct launch_word *word = word_of(&r, name);
    ck_assert_msg(r.status == STATUS_OK, "%s\n%s", script, r.diags.n_items ? r.diags.items[0].text : "");
    ck_assert_msg(word, "no --%s in\n%s", name, script);
    ck_assert_msg(!word->unknown, "%s\n%s", script, word->unknown);
    ck_assert_msg(strcmp(word->value ? word->value : "(none)", value) == 0, "%s\ngives '%s'", script, word->value);
    reading_free(&r);
}

/* What quotes keep from one shell is expanded by the one that it is a line of. */
START_TEST(lines_in_quotes_are_expanded)
{
    expect_value("N=8\nsrun bash -c 'torchrun p.py --num-layers $N --bf16'\n", "num-layers", "8");
    expect_value("N=8\nsrun bash -c \"torchrun p.py --num-layers \\$N --bf16\"\n", "num-layers", "8");
    expect_value("p.py --num-layers 8 --save /x/axolotl --bf16\n", "num-layers", "8");
    expect_value("axolotl train a.yaml --micro-batch-size 4 --sequence-len 8\n", "micro_batch_size", "4");
    expect_value("accelerate launch -m axolotl.cli.train a.yaml --micro-batch-size 4\n", "micro_batch_size", "4");
    expect_value("N=8\np.py --num-layers ${N:?not set} --bf16\n", "num-layers", "8");
    expect_value("N=8\np.py --num-layers ${N?} --bf16\n", "num-layers", "8");
    expect_value("p.py --parallelism.tensor-parallel-degree=4 --training.seq-len 8\n", "parallelism.tensor_parallel_degree", "4");
    expect_value("p.py --parallelism.tensor-parallel-degree=4 --training.seq-len 8\n", "training.seq_len", "8");
    expect_value("N=8\nsrun bash -c \"torchrun p.py --num-layers=\\$N --bf16\"\n", "num-layers", "8");
    expect_value("N=8 M=7\nsrun bash -c \"torchrun p.py --num-layers=$M\\${N}1 --bf16\"\n", "num-layers", "781");
    expect_value("#SBATCH --nodes=4\nsrun bash -c 'torchrun --nnodes $SLURM_NNODES --x p.py \\\n --num-layers 8 \\\n --bf16'\n",
                 "nnodes", "4");
    struct reading r = read_script("srun bash -c 'torchrun p.py --num-layers 8 --rank $SLURM_PROCID --seq-length $L'", NULL);
    ck_assert_msg(word_of(&r, "seq-length") && word_of(&r, "seq-length")->unknown, "nobody sets it");
    ck_assert_int_eq(word_of(&r, "seq-length")->at.column, 65);
    reading_free(&r);
}
END_TEST

/* A line that another shell is given is a script: what it sets it has, and is gone behind it. */
START_TEST(lines_for_another_shell_are_read)
{
    static const struct {
        const char *script, *value; /* of --num-layers */
    } cases[] = {
        {"srun bash -c 'N=8; torchrun p.py --num-layers $N --bf16'", "8"},
        {"srun bash -c 'export N=8 && cd x && torchrun p.py --num-layers $N --bf16'", "8"},
        {"N=4; srun bash -lc \"N=8; torchrun p.py --num-layers \\$N --bf16\"", "8"},
        {"N=4; srun bash -lc \"N=8; torchrun p.py --num-layers $N --bf16\"", "4"}, /* told before that shell begins */
        {"docker run --rm image /bin/sh -c 'if [ -z \"$X\" ]; then N=8; fi\ntorchrun p.py --num-layers ${N:-3}'", "8"},
        {"bash -euo pipefail -c 'A=(--num-layers 8); p \"${A[@]}\"'", "8"},
        {"bash -c 'bash -c \"N=8; p --num-layers \\$N\"'", "8"},
        {"N=8; bash -c 'N=9'; p --num-layers $N", "8"},
        {"C='N=8; p --num-layers $N'; bash -c \"$C\"", "8"},
        {"bash -c 'echo p --num-layers 9 --bf16; p --num-layers 8'", "8"},
        {"bash run.sh -c 'p --num-layers 9'; p --num-layers 8 --bf16", "8"},
        {"X=1; [ $X = 1 ] && bash -c 'p --num-layers 8 --bf16' || p --num-layers 9 --bf16", "8"},
        {"X=2; if [ $X = 1 ]; then bash -c 'p --num-layers 9 --bf16'; fi; p --num-layers 8", "8"},
        {"bash -c 'p --num-layers 8\n--bf16'", "8"},
        {"A=(--x 1 --num-layers 8 --bf16); bash -c \"cd x && \\\n p ${A[*]} --swiglu\"", "8"},
        {"A=(--x 1 --num-layers 8 --bf16); bash -c \"cd x && \\\n p ${A[@]} --swiglu\"", "8"},
        {"A=(\"--num-layers 8\" --bf16); p \"${A[*]}\"", "8"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        expect_value(cases[i].script, "num-layers", cases[i].value);
    expect_value("srun --nodes 4 bash -c 'N=8; torchrun p.py --num-layers $N --bf16'", "nodes", "4");
    expect_value("srun --nodes=4 bash -c 'srun --label bash -c \"p --num-layers 8\"'", "nodes", "4");
}
END_TEST

/* Places are those of the letters in the script, and doubts stay. */
START_TEST(lines_for_another_shell_keep_places)
{
    struct reading r =
        read_script("X=1\nsrun bash -c \"A=8\n torchrun p.py --num-layers \\$A --seq-length $L --bf16 \\$M\"", NULL);
    const struct launch_word *layers = word_of(&r, "num-layers"), *length = word_of(&r, "seq-length");
    ck_assert(layers && length && r.diags.n_items == 0);
    ck_assert_str_eq(layers->value, "8");
    ck_assert_int_eq(layers->at.line, 3);
    ck_assert_int_eq(layers->at.column, 16);
    ck_assert_int_eq(length->at.column, 33);
    ck_assert(length->unknown && strstr(length->unknown, "$L is set nowhere"));
    reading_free(&r);
    r = read_script("p --num-layers 8\nbash -c 'echo \"8'", NULL);
    ck_assert_int_eq(r.status, STATUS_OK);
    ck_assert(r.diags.n_items == 1 && strstr(r.diags.items[0].text, "line for another shell") && r.diags.items[0].line == 2);
    reading_free(&r);
}
END_TEST

/* A here-document is a shell's script, or a file that the script writes. */
START_TEST(here_documents)
{
    expect_value("bash <<E\nN=8\np --num-layers \\$N --bf16\nE\n", "num-layers", "8");
    expect_value("N=7\nsrun --nodes=2 bash -s <<'E'\nN=8\np --num-layers $N --bf16\nE\n", "num-layers", "8");
    expect_value("N=7\nsrun --nodes=2 bash -s <<'E'\nN=8\np --num-layers $N --bf16\nE\n", "nodes", "2");
    expect_value("cat <<E\np --num-layers 9 --bf16 --swiglu\nE\np --num-layers 8\n", "num-layers", "8");
    static const struct {
        const char *script, *name, *text; /* NULL: no file is written */
    } cases[] = {
        {"S=3\ncat >ds.json <<E\n{\"stage\": $S, \"x\": \"\\$\"}\nE\n", "ds.json", "{\"stage\": 3, \"x\": \"$\"}\n"},
        {"S=3\ncat <<'E' > $S.json\n{\"stage\": $S}\nE\n", "3.json", "{\"stage\": $S}\n"},
        {"cat <<-E > a.json\n\t{}\n\tE\n", "a.json", "{}\n"},
        {"cat <<-E > a.json\n\t{\n\t\t1}\n}\n\tE\n", "a.json", "{\n1}\n}\n"},
        {"cat <<E > a.json\n\t{}\nE\n", "a.json", "\t{}\n"},
        {"tee a.json > /dev/null <<E\n{}\nE\n", "a.json", "{}\n"},
        {"echo '{\"stage\": 3}' > a.json\n", "a.json", "{\"stage\": 3}\n"},
        {"echo a: 1 > a.yaml\necho b: 2 >> a.yaml\necho b: 3 >> b.yaml\necho c: 4 >>a.yaml\n", "a.yaml", "a: 1\nb: 2\nc: 4\n"},
        {"echo a: 1 > a.yaml\necho b: 2 > a.yaml\n", "a.yaml", "b: 2\n"},
        {"cat > $X.json <<E\n{\"stage\": $Y}\nE\n", UNKNOWN_TEXT ".json",
         "{\"stage\": " UNKNOWN_TEXT "$Y is set nowhere in the script; --env gives it a value" UNKNOWN_TEXT "}\n"},
        {"echo a: 1 > a.yaml\necho b: 2 | tee -a a.yaml\n", "a.yaml", "a: 1\nb: 2\n"},
        {"echo a: 1 > a.yaml\necho b: 2 | tee a.yaml >/dev/null\n", "a.yaml", "b: 2\n"},
        {"echo a: 1 > a.yaml\necho b: 2 || tee -a a.yaml\n", "a.yaml", "a: 1\n"},
        {"echo a: 1 | cat > a.yaml\n", "a.yaml", "a: 1\n"},
        {"printf 'a: 1\\n\\tb: 2%%\\n' > a.yaml\n", "a.yaml", "a: 1\n\tb: 2%\n"},
        {"printf '%s: %s\\n' a 1 b 2 > a.yaml\n", "a.yaml", "a: 1\nb: 2\n"},
        {"printf '%d' 1 > a.yaml\n", NULL, NULL},
        {"echo -e 'a: 1\\nb: 2' > a.yaml\n", "a.yaml", "a: 1\nb: 2\n"},
        {"echo -n a: > a.yaml\necho ' 1' >> a.yaml\n", "a.yaml", "a: 1\n"},
        {"cat <<E\n{}\nE\n", NULL, NULL},
        {"echo x 2> a.json\n", NULL, NULL},
        {"echo x >&2\n", NULL, NULL},
        {"if grep -q x y; then echo x >a.json; fi\n", NULL, NULL},
        {"echo x\n", NULL, NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char script[256];
        snprintf(script, sizeof script, "%sp --num-layers 8\n", cases[i].script);
        struct reading r = read_script(script, NULL);
        const struct launch_word *file = word_of(&r, "written-file");
        ck_assert_msg((file != NULL) == (cases[i].name != NULL), "%s", script);
        ck_assert_msg(!file || (strcmp(file->spelling, cases[i].name) == 0 && strcmp(file->value, cases[i].text) == 0),
                      "%s: %s: %s", script, file->spelling, file->value);
        reading_free(&r);
    }
}
END_TEST

/* Shells that start each other without end are followed some shells deep. */
START_TEST(settings_of_one_command_and_of_brackets_end)
{
    expect_value("N=8\nN=4 ./other.sh\np.py --num-layers $N --bf16\n", "num-layers", "8");
    expect_value("N=8\nN=4 N=2 M=1 ./other.sh\np.py --num-layers $N${M:-7} --bf16\n", "num-layers", "87");
    expect_value("N=4 ./other.sh\np.py --num-layers ${N:-8} --bf16\n", "num-layers", "8");
    expect_value("N=4 M=3 ./other.sh; L=6\np.py --num-layers ${N:-8}${M:-9}$L --bf16\n", "num-layers", "896");
    expect_value("N=4\nN=8 bash -c 'p.py --num-layers $N --bf16'\n", "num-layers", "8");
    expect_value("N=4\nexport N=8\np.py --num-layers $N --bf16\n", "num-layers", "8");
    expect_value("N=4\nN=8\np.py --num-layers $N --bf16\n", "num-layers", "8");
    expect_value("N=8\n(N=4; echo $N)\np.py --num-layers $N --bf16\n", "num-layers", "8");
    expect_value("N=8\n(N=4; (N=3; M=2); O=1)\np.py --num-layers $N${M:-5}${O:-6} --bf16\n", "num-layers", "856");
    expect_value("N=4\n(N=8; p.py --num-layers $N --bf16)\n", "num-layers", "8");
    expect_value("f() {\nN=8\n}\nf\np.py --num-layers $N --bf16\n", "num-layers", "8");
    expect_value("N=8\n[ a = b ] && (p.py --num-layers 4 --bf16 --swiglu)\np.py --num-layers $N\n", "num-layers", "8");
    expect_value("N=4\nif ((1 > 2)); then N=3; fi; (N=2\ncase a in (a) N=1 ;; esac)\nN=8\np.py --num-layers $N\n", "num-layers",
                 "8");
}
END_TEST

/* What is not followed of changes to a file that is written is kept in mind; written anew, it is known. */
START_TEST(changed_files_are_doubted)
{
    static const struct {
        const char *script, *by; /* NULL: nothing is doubted */
    } cases[] = {
        {"sed -i s/1/2/ a.yaml\n", "sed"},
        {"/usr/bin/perl -pi -e s/1/2/ a.yaml\n", "/usr/bin/perl"},
        {"yq -i '.a = 4' a.yaml\n", "yq"},
        {"mv b.yaml a.yaml\n", "mv"},
        {"date >> a.yaml\n", "date"},
        {"date | tee -a a.yaml\n", "tee"},
        {"printf '%d' 1 >> a.yaml\n", "printf"},
        {"if [ $(hostname) = x ]; then echo b: 2 >> a.yaml; fi\n", "a command under a condition that cannot be told"},
        {"for i in 1 2; do echo b: $i >> a.yaml; done\n", "a command under a condition that cannot be told"},
        {"if [ a = x ]; then echo b: 2 >> a.yaml; fi\n", NULL},
        {"sed s/1/2/ a.yaml\n", NULL},
        {"cat a.yaml | sed s/1/2/ > b.yaml\n", NULL},
        {"cp a.yaml b.yaml\n", NULL},
        {"sed -i s/1/2/ a.yaml\necho a: 1 > a.yaml\n", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char script[256];
        snprintf(script, sizeof script, "echo a: 1 > a.yaml\n%sp --num-layers 8\n", cases[i].script);
        struct reading r = read_script(script, NULL);
        const struct launch_word *doubt = word_of(&r, "doubted-file");
        ck_assert_msg(!doubt == !cases[i].by, "%s", script);
        ck_assert_msg(!doubt || (strcmp(doubt->spelling, "a.yaml") == 0 && strcmp(doubt->value, cases[i].by) == 0), "%s", script);
        ck_assert_int_eq(doubt ? doubt->at.line : 2, 2);
        reading_free(&r);
    }
}
END_TEST

START_TEST(second_configurations_are_told)
{
    struct reading r = read_script("axolotl train a.yaml\nllamafactory-cli train b.yaml\n", NULL);
    ck_assert_str_eq(word_of(&r, "configuration-file")->value, "a.yaml");
    ck_assert_int_eq(r.diags.n_items, 1);
    ck_assert_str_eq(r.diags.items[0].text, "2 commands name configurations; msim takes the first");
    reading_free(&r);
    r = read_script("axolotl train a.yaml\npython merge.py --config b.yaml\n", NULL);
    ck_assert_int_eq(r.diags.n_items, 0);
    reading_free(&r);
}
END_TEST

START_TEST(shells_within_shells_end)
{
    struct reading r = read_script("A='bash -c \"$B\"'; B='N=7; p --num-layers $N; bash -c \"$A\"'; bash -c \"$A\"", NULL);
    ck_assert_int_eq(r.status, STATUS_OK);
    ck_assert_str_eq(word_of(&r, "num-layers")->value, "7");
    reading_free(&r);
}
END_TEST

/* Each line: a script, and what it gives --num-layers. */
START_TEST(words_are_expanded_as_a_shell_would)
{
    static const struct {
        const char *script, *value;
    } cases[] = {
        {"p --num-layers 8", "8"},
        {"p --num-layers=8", "8"},
        {"p \\\n  --num-layers \\\n 8\n", "8"},
        {"p --num-layers '8' # --num-layers 9", "8"},
        {"N=8; p --num-layers $N", "8"},
        {"N=8\np --num-layers ${N}0", "80"},
        {"p --num-layers ${N:-12}", "12"},
        {"N=; p --num-layers ${N:-12}", "12"},
        {"N=3; p --num-layers ${N:+7}", "7"},
        {": ${N:=5}; p --num-layers $N", "5"},
        {"N=3; p --num-layers $((N * (2 + 2)))", "12"},
        {"N=3; p --num-layers $(( ${N}*$N - 1 ))", "8"},
        {"export N=8 M=2; p --num-layers $N", "8"},
        {"A=(--num-layers 8 --bf16); p ${A[@]}", "8"},
        {"A=(\n --num-layers 8 # eight\n --bf16\n)\np \"${A[@]}\"", "8"},
        {"A=(--bf16); A+=(--num-layers 8); p ${A[*]}", "8"},
        {"A='--num-layers 8'; p $A", "8"},
        {"A='--bf16'; A+=' --num-layers 8'; p $A", "8"},
        {"A=\"--bf16 \\\n --num-layers 8\"; srun sh -c \"p $A\"", "8"},
        {"A=\"--num-layers 8\"; C=\"python p.py $A\"; eval $C", "8"},
        {"--num-layers 8\n--hidden-size 16\n", "8"},
        {"p --recompute-modules mlp moe_act --num-layers 8 $@", "8"},
        {"cat <<E >x\np --num-layers 1 --hidden-size 2\nE\np --num-layers 8", "8"},
        {"p --num-layers 8 2>&1 | tee log", "8"},
        {"if [ -z \"$X\" ]; then N=8; else N=9; fi; p --num-layers $N", "8"},
        {"X=a; if [[ $X == b ]]; then N=1; elif [[ $X == a* ]]; then N=8; else N=9; fi; p --num-layers $N", "8"},
        {"X=3; if [ $X -gt 2 ]; then\n N=8\nfi; p --num-layers $N", "8"},
        {"X=1; [ $X = 1 ] && N=8 || N=9; p --num-layers $N", "8"},
        {"X=2; [ $X = 1 ] && N=9; N=${N:-8}; p --num-layers $N", "8"},
        {"X=b; case $X in\n a) N=1;;\n b|c) N=8 ;;\n *) N=9;;\nesac\np --num-layers $N", "8"},
        {"X=z; case \"$X\" in a) N=1;; *) N=8;; esac; p --num-layers $N", "8"},
        {"N=8; while [[ $# -gt 0 ]]; do case $1 in -n) N=$2; shift 2;; esac; done; p --num-layers $N", "8"},
        {"N=8; until [ $# = 0 ]; do N=9; done; p --num-layers $N", "8"},
        {"p --num-layers 8 \"$@\"", "8"},
        {"run() {\n  p --num-layers 8\n}\nrun", "8"},
        {"N=8 p --num-layers $N", "8"},
        {"X=a; if [ $X = a ] || [ $X = b ] || [ -z $X ]; then N=8; else N=9; fi; p --num-layers $N", "8"},
        {"X=a; if [ $X = a ] && [ $X = b ] || [ $X = c ]; then N=9; else N=8; fi; p --num-layers $N", "8"},
        {"if grep -q x y || true && [ a = b ]; then N=9; else N=8; fi; p --num-layers $N", "8"},
        {"mkdir -p x && N=8; cd y || N=9; p --num-layers $N", "8"},
        {"A=\"--num-layers '8'\"; bash -c \"p $A\"; echo p --num-layers 1 --bf16 --swiglu", "8"},
        {"p --num-layers 1\nq --num-layers 8 --hidden-size 2 --bf16", "8"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        expect_value(cases[i].script, "num-layers", cases[i].value);
}
END_TEST

START_TEST(what_cannot_be_told_is_unknown_with_a_reason)
{
    static const struct {
        const char *script, *reason;
    } cases[] = {
        {"p --num-layers $N", "$N is set nowhere"},
        {"p --num-layers ${1}", "$1 is set nowhere"},
        {"N=$(nproc); p --num-layers $N", "what a command says: $(nproc)"},
        {"N=`nproc`; p --num-layers $N", "what a command says"},
        {"N=ab; p --num-layers ${N%b}", "msim does not expand"},
        {"p --num-layers $((2 ** 3))", "$((2 ** 3)) cannot be worked out"},
        {"p --num-layers $((1 / 0))", "cannot be worked out"},
        {"if grep -q x y; then N=1; fi\np --num-layers $N", "line 1 sets it under a condition"},
        {"N=1; while read x; do N=2; done <f; p --num-layers $N", "line 1 sets it under a condition"},
        {"for N in 1 2; do p --num-layers $N; done", "a loop sets it"},
        {"X=$(hostname); case $X in a) N=1;; esac; p --num-layers $N", "under a condition"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct reading r = read_script(cases[i].script, NULL);
        const struct launch_word *word = word_of(&r, "num-layers");
        ck_assert_int_eq(r.status, STATUS_OK);
        ck_assert_msg(word && word->unknown && strstr(word->unknown, cases[i].reason), "%s\n%s", cases[i].script,
                      word && word->unknown ? word->unknown : "known");
        reading_free(&r);
    }
}
END_TEST

START_TEST(directives_of_slurm)
{
    static const char *const cases[][3] = {
        {"#SBATCH --nodes=16", "nodes", "16"},
        {"#SBATCH -N 16 -n 128 # both", "nodes", "16"},
        {"#SBATCH -N 16 -n 128 # both", "ntasks", "128"},
        {"#SBATCH --exclusive --nodes 16\r", "nodes", "16"},
        {"#SBATCH --mem=0 --gres=gpu:h100:8,nvme:1", "gpus-per-node", "8"},
        {"#SBATCH --gres=gpu:4(S:0-1)", "gpus-per-node", "4"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char script[128];
        snprintf(script, sizeof script, "#!/bin/bash\n%s\np --num-layers 8\n", cases[i][0]);
        struct reading r = read_script(script, NULL);
        const struct launch_word *word = word_of(&r, cases[i][1]);
        ck_assert_msg(word && strcmp(word->value, cases[i][2]) == 0 && word->at.line == 2, "%s", cases[i][0]);
        reading_free(&r);
    }
    struct reading none =
        read_script("##SBATCH --nodes=16\n#SBATCH --nodes # 16\n#SBATCH --nodes\n#SBATCH\np --num-layers 8 # --nodes 2\n", NULL);
    ck_assert_ptr_null(word_of(&none, "nodes"));
    reading_free(&none);
}
END_TEST

/* Behind a value, or a flag without one, any arguments may come from where nothing is known of. */
START_TEST(arguments_that_cannot_be_told_are_told_of)
{
    static const struct {
        const char *script;
        size_t n;
    } cases[] = {
        {"p --num-layers 8 $MORE $EVEN_MORE", 2},
        {"p --num-layers 8 $@", 0},
        {"p --num-layers 8 ${MORE:-}", 0},
        {"p --num-layers 8 ${MORE:+--bf16}", 0},
        {"p --num-layers 8 $(echo --bf16) --fp16", 1},
        {"p --data-path $DATA --num-layers 8", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct reading r = read_script(cases[i].script, NULL);
        size_t n = 0;
        for (size_t k = 0; k < r.words.n; k++)
            n += !*r.words.items[k].name && r.words.items[k].unknown;
        ck_assert_msg(n == cases[i].n, "%s", cases[i].script);
        reading_free(&r);
    }
}
END_TEST

/* key=value sets a key behind a program and its configuration. In front it is a variable or another program's, and Megatron-LM's
 * parser takes none. */
START_TEST(settings_stand_behind_their_program)
{
    static const struct {
        const char *script, *steps; /* NULL: nobody's key */
    } cases[] = {
        {"python3 -m MaxText.train base.yml per_device_batch_size=4 steps=5", "5"},
        {"python3 -m MaxText.train per_device_batch_size=4 steps=5", "5"},
        {"python3 train.py base.yml per_device_batch_size=4 steps=5 2>&1 | tee out.json", "5"},
        {"python3 train.py base.yml per_device_batch_size=4 steps=5 --log out.json", "5"},
        {"python3 MaxText/train.py MaxText/configs/base.yml per_device_batch_size=4 steps=5", "5"},
        {"steps=1 env steps=2 python3 train.py base.yml per_device_batch_size=4 steps=5", "5"},
        {"steps=1 env steps=2 python3 train.py base.yml per_device_batch_size=4", NULL},
        {"env steps=2 srun --mpi=pmix x=1 python3 train.py base.yml per_device_batch_size=4", NULL},
        {"docker run -e steps=2 image python3 train.py base.yml per_device_batch_size=4", NULL},
        {"xpk workload create --command \"python3 train.py base.yml per_device_batch_size=4 steps=5\"", "5"},
        {"torchrun pretrain_gpt.py --num-layers 8 --hidden-size 64", NULL},
        {"env steps=5 torchrun pretrain_gpt.py --num-layers 8 --hidden-size 64", NULL},
        {"torchrun pretrain_gpt.py steps=5 --num-layers 8 --hidden-size 64", NULL},
        {"torchrun pretrain_gpt.py --num-layers 8 --hidden-size 64 | tee log bs=1 steps=5", NULL},
        {"torchrun wrap.py steps=5 pretrain_gpt.py --num-layers 8 --hidden-size 64", NULL},
        {"torchrun nemo.py trainer.max_steps=5 model.num_layers=8 --num-layers 8 --trainer.x=1", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct reading r = read_script(cases[i].script, NULL);
        const struct launch_word *word = word_of(&r, "steps");
        ck_assert_msg(r.status == STATUS_OK, "%s", cases[i].script);
        ck_assert_msg((word != NULL) == (cases[i].steps != NULL), "%s", cases[i].script);
        ck_assert_msg(!word || strcmp(word->value, cases[i].steps) == 0, "%s", cases[i].script);
        reading_free(&r);
    }
    struct reading r = read_script("torchrun nemo.py model.num_layers=8 --num-layers 8", NULL);
    ck_assert_msg(word_of(&r, "model.num_layers"), "a path is nothing else");
    reading_free(&r);
}
END_TEST

/* Only the word that depends on it is unknown, and places are those of the letters, through any number of variables. */
START_TEST(words_keep_where_they_were_written)
{
    const char *script = "A=\"--num-layers 8 \\\n"
                         "   --hidden-size $H\"\n"
                         "B=(--bf16\n"
                         "  --seq-length 4)\n"
                         "C=\"p $A ${B[*]}\"\n"
                         "srun bash -c \"$C\"\n";
    static const struct {
        const char *name;
        int line, column;
    } places[] = {{"num-layers", 1, 4}, {"hidden-size", 2, 4}, {"bf16", 3, 4}, {"seq-length", 4, 3}};
    struct reading r = read_script(script, NULL);
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        const struct launch_word *word = word_of(&r, places[i].name);
        ck_assert_msg(word, "%s", places[i].name);
        ck_assert_int_eq(word->at.line, places[i].line);
        ck_assert_int_eq(word->at.column, places[i].column);
        ck_assert_int_eq(word->unknown != NULL, strcmp(places[i].name, "hidden-size") == 0);
    }
    reading_free(&r);
}
END_TEST

START_TEST(variables_come_from_outside_and_from_slurm)
{
    static const char *const settings[] = {"N=64", "1=70b"};
    const struct launch_environment environment = {.settings = settings, .n = 2};
    struct reading r = read_script("#!/bin/bash\n#SBATCH --nodes=16\n#SBATCH --gres=gpu:h100:8\n#SBATCH --ntasks-per-node=1\n"
                                   "[ $1 = 70b ] && L=80\np --num-layers $L --hidden-size $N --world-size $SLURM_NNODES",
                                   &environment);
    ck_assert_str_eq(word_of(&r, "num-layers")->value, "80");
    ck_assert_str_eq(word_of(&r, "hidden-size")->value, "64");
    ck_assert_str_eq(word_of(&r, "world-size")->value, "16");
    ck_assert_str_eq(word_of(&r, "nodes")->value, "16");
    ck_assert_str_eq(word_of(&r, "gpus-per-node")->value, "8");
    ck_assert_str_eq(r.words.items[0].name, "ntasks-per-node");
    reading_free(&r);
    static const char *const many[] = {"1=8", "2=b", "3=c", "4=d", "5=e", "6=f", "7=g", "8=h", "9=i", "10=16"};
    const struct launch_environment arguments = {.settings = many, .n = 10};
    r = read_script("p --num-layers ${10} --hidden-size $10 --seq-length ${11:-4}", &arguments);
    ck_assert_str_eq(word_of(&r, "num-layers")->value, "16");
    ck_assert_str_eq(word_of(&r, "hidden-size")->value, "80"); /* $1 and a digit */
    ck_assert_str_eq(word_of(&r, "seq-length")->value, "4");
    reading_free(&r);
    r = read_script("p $@ --bf16 --hidden-size $#", &environment);
    ck_assert_str_eq(word_of(&r, "hidden-size")->value, "1");
    reading_free(&r);
}
END_TEST

/* A model that is no decoder is reported. */
START_TEST(other_programs_are_told)
{
    struct reading r = read_script("N=8\ntorchrun x/pretrain_bert.py --num-layers $N --bf16", NULL);
    ck_assert_int_eq(r.status, STATUS_OK);
    ck_assert_uint_eq(r.diags.n_items, 1);
    ck_assert(strstr(r.diags.items[0].text, "pretrain_bert.py (no decoder") && r.diags.items[0].line == 2);
    reading_free(&r);
    r = read_script("torchrun x/pretrain_gpt.py --num-layers 8 --bf16", NULL);
    ck_assert_uint_eq(r.diags.n_items, 0);
    reading_free(&r);
}
END_TEST

START_TEST(what_is_no_script_is_refused)
{
    static const char *const scripts[] = {"p \"--num-layers 8", "echo hello\n", "", "A=(1 2", "p ${A"};
    for (size_t i = 0; i < sizeof scripts / sizeof scripts[0]; i++) {
        struct reading r = read_script(scripts[i], NULL);
        ck_assert_msg(r.status == STATUS_BAD_INPUT, "%s", scripts[i]);
        ck_assert_int_gt(r.diags.n_errors, 0);
        reading_free(&r);
    }
}
END_TEST

/* Sixty lines that double what is there, or twenty thousand that each copy all of it. */
START_TEST(what_grows_without_end_is_refused)
{
    static const struct {
        const char *first, *more, *last;
        int n;
    } cases[] = {
        {"A=aaaaaaaa\n", "A=$A$A\n", "p --num-layers 8 $A\n", 60},
        {"A=(1 '')\n", "A=(\"${A[@]}\" \"${A[@]}\")\n", "p --num-layers 8 ${A[@]}\n", 60},
        {"A=a\n", "A=$A$A\n", "p --num-layers 8 $A\n", 20}, /* pieces of text are held, too */
        {"A=()\n", "A+=(--x)\n", "p --num-layers 8 ${A[@]}\n", 20000},
        {"A=''\n", "A+=' --x'\n", "p --num-layers 8 $A\n", 20000},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char *script;
        size_t n;
        FILE *out = open_memstream(&script, &n);
        fputs(cases[i].first, out);
        for (int k = 0; k < cases[i].n; k++)
            fputs(cases[i].more, out);
        fputs(cases[i].last, out);
        fclose(out);
        struct reading r = read_script(script, NULL);
        ck_assert_int_eq(r.status, STATUS_BAD_INPUT);
        ck_assert_msg(r.diags.n_errors == 1 && strstr(r.diags.items[0].text, "grow out of themselves"), "%s", cases[i].more);
        reading_free(&r);
        free(script);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("launch_shell");
    TCase *all = tcase_create("all");
    tcase_add_test(all, words_are_expanded_as_a_shell_would);
    tcase_add_test(all, what_cannot_be_told_is_unknown_with_a_reason);
    tcase_add_test(all, directives_of_slurm);
    tcase_add_test(all, arguments_that_cannot_be_told_are_told_of);
    tcase_add_test(all, lines_in_quotes_are_expanded);
    tcase_add_test(all, lines_for_another_shell_are_read);
    tcase_add_test(all, lines_for_another_shell_keep_places);
    tcase_add_test(all, settings_of_one_command_and_of_brackets_end);
    tcase_add_test(all, changed_files_are_doubted);
    tcase_add_test(all, second_configurations_are_told);
    tcase_add_test(all, shells_within_shells_end);
    tcase_add_test(all, here_documents);
    tcase_add_test(all, settings_stand_behind_their_program);
    tcase_add_test(all, words_keep_where_they_were_written);
    tcase_add_test(all, variables_come_from_outside_and_from_slurm);
    tcase_add_test(all, other_programs_are_told);
    tcase_add_test(all, what_is_no_script_is_refused);
    tcase_add_test(all, what_grows_without_end_is_refused);
    suite_add_tcase(suite, all);
    return suite_run(suite);
}
