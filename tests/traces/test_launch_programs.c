/* Programs that start others: how many nodes and GPUs a job has where its script leaves that to them, and the files it names. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/suite.h"
#include "tests/traces/frameworks_loaded.h"
#include "traces/launch/frameworks/framework_keys.h"
#include "traces/launch/launch_programs.h"
#include "traces/launch/launch_shell.h"
#include "traces/launch/megatron/megatron_translate.h"

struct heard {
    struct launch_words words;
    struct diags diags;
    struct launch_description d;
};

/* A script's job; `hosts`: what its hostfile has, or NULL. */
static struct heard hear(const char *script, const char *hosts)
{
    struct heard h = {0};
    struct megatron_arguments *arguments = memory_new(1, sizeof *arguments);
    ck_assert_msg(launch_shell_parse(frameworks_loaded(), "s", script, strlen(script), NULL, &h.words, &h.diags) == STATUS_OK,
                  "%s", script);
    if (hosts)
        launch_programs_hosts("hosts", hosts, strlen(hosts), &h.words, &h.diags);
    framework_take_overrides(frameworks_loaded(), &h.words);
    megatron_read(&h.words, frameworks_loaded()->ignored, true, arguments, &h.diags);
    megatron_translate(arguments, &(struct launch_known){0}, &h.d, &h.diags);
    free(arguments);
    return h;
}

static void heard_free(struct heard *h)
{
    launch_words_free(&h->words);
    diags_free(&h->diags);
}

#define GPT                                                                                                                      \
    "pretrain_gpt.py --num-layers 24 --hidden-size 1024 --num-attention-heads 16 --seq-length 2048 --micro-batch-size 1 "        \
    "--vocab-size 50257 --bf16"
#define HF                                                                                                                       \
    "train.py --model_name_or_path meta-llama/Meta-Llama-3-8B --per_device_train_batch_size 1 --max_seq_length 4096 --bf16 True"

/* Of what machines a script's job is, and why. */
struct machines {
    const char *script;
    int gpus, per_node; /* 0: nodes are not said */
    const char *origin;
};

static void assert_machines(const struct machines *cases, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct heard h = hear(cases[i].script, NULL);
        const char *origin = launch_origin_of(&h.d, "cluster.gpus");
        ck_assert_msg(h.diags.n_errors == 0 && h.d.n_missing == 0, "%s\n%s", cases[i].script,
                      h.d.n_missing ? h.d.missing[0] : h.diags.items[0].text);
        ck_assert_msg(h.d.job.gpus == cases[i].gpus && h.d.job.gpus_per_node == cases[i].per_node, "%s\n%d of %d",
                      cases[i].script, h.d.job.gpus, h.d.job.gpus_per_node);
        ck_assert_msg(origin && strstr(origin, cases[i].origin), "%s\n%s", cases[i].script, origin);
        heard_free(&h);
    }
}

START_TEST(launchers_take_one_node)
{
    static const struct machines cases[] = {
        {"torchrun --nproc_per_node 8 " GPT, 8, 8, "1 node of 8, torchrun's default number of nodes"},
        {"torchrun --nproc-per-node=4 --standalone " GPT, 4, 4, "1 node of 4"},
        {"/opt/bin/torchrun --nproc_per_node 8 " HF, 8, 8, "torchrun's default number of nodes"},
        {"torchrun " GPT, 1, 1, "1 node of 1, torchrun's default numbers"},
        {"torchrun --nnodes 2 " GPT, 2, 1, "2 nodes of 1, torchrun's default number of processes"},
        {"torchrun --nnodes 2:2 --nproc_per_node 8 " GPT, 16, 8, "2 nodes of 8"},
        {"PET_NNODES=4; torchrun --nproc_per_node 8 " GPT, 32, 8, "4 nodes of 8, as PET_NNODES says"},
        {"python -m torch.distributed.run --nproc_per_node 8 " GPT, 8, 8, "torch.distributed.run's default number of nodes"},
        {"python3 -u -m torch.distributed.launch --nproc_per_node=8 " GPT, 8, 8, "torch.distributed.launch's default"},
        {"deepspeed --num_gpus=4 " GPT, 4, 4, "1 node of 4, deepspeed's default number of nodes"},
        {"deepspeed --num_gpus 8 --num_nodes 2 --hostfile h " GPT, 16, 8, "2 nodes of 8"},
        {"deepspeed --include localhost:0,1,2,3 " HF, 4, 4, "1 node of 4"},
        {"deepspeed --include=a:0,1@b:2,3 " HF, 4, 2, "2 nodes of 2"},
        {"deepspeed --include=a:0,1@b:2 " HF, 3, 0, "--include"},
        {"A=1 deepspeed --include a:0@b:1 --a 1 --b 2 --c 3 --d 4 --e 5 --f 6 " HF, 2, 1, "2 nodes of 1"}, /* words move */
        {"accelerate launch --num_processes 8 " GPT, 8, 0, "--num_processes"},
        {"accelerate launch --num_processes=16 --num_machines=2 " HF, 16, 8, "num_processes"},
        {"composer -n 8 " GPT, 8, 8, "composer's default number of nodes"},
    };
    assert_machines(cases, sizeof cases / sizeof cases[0]);
}
END_TEST

/* Where the number of processes is not told. */
START_TEST(visible_devices_are_counted)
{
    static const struct machines cases[] = {
        {"CUDA_VISIBLE_DEVICES=0,1,2 torchrun --nproc_per_node gpu " GPT, 3, 3, "1 node of 3"},
        {"export CUDA_VISIBLE_DEVICES=0,1; deepspeed " HF, 2, 2, "1 node of 2"},
        {"CUDA_VISIBLE_DEVICES='0, 1' deepspeed " HF, 2, 2, "1 node of 2"},
        {"CUDA_VISIBLE_DEVICES=GPU-1b2c-3,MIG-4d/1/0 deepspeed " HF, 2, 2, "1 node of 2"},
        {"CUDA_VISIBLE_DEVICES=0-3 torchrun --nproc_per_node 4 " GPT, 4, 4, "1 node of 4"}, /* it is reported */
        {"CUDA_VISIBLE_DEVICES=0,1 accelerate launch " HF, 2, 2, "1 node of 2, accelerate's default number of nodes"},
    };
    assert_machines(cases, sizeof cases / sizeof cases[0]);
}
END_TEST

/* Slurm's and MPI's, of which a command may take a part. */
START_TEST(allocations_say_how_many)
{
    static const struct machines cases[] = {
        {"srun -N 4 torchrun --nproc_per_node 8 " GPT, 32, 8, "4 nodes of 8"},
        {"srun -N 4 torchrun --nnodes 2 --nproc_per_node 8 " GPT, 16, 8, "2 nodes of 8"},
        {"srun -N4 --label torchrun --nproc_per_node 8 " GPT, 32, 8, "4 nodes of 8"},
        {"srun -n 4 torchrun --nproc_per_node 8 " GPT, 32, 8, "4 tasks of torchrun with 8 each"},
        {"srun -n 32 python " GPT, 32, 0, "-n"},
        {"mpirun -np 16 -x A=1 python " GPT, 16, 0, "-np"},
        {"#SBATCH --nodes=2\ntorchrun --nproc_per_node 8 " GPT, 16, 8, "2 nodes of 8"},
        {"#SBATCH -G 16\nsrun python " GPT, 16, 0, "-G"},
        {"#SBATCH --gpus=h100:32\n#SBATCH -N 4\nsrun python " GPT, 32, 0, "--gpus"},
        {"#SBATCH --gpus=32\nsrun torchrun --nproc_per_node=8 " GPT, 32, 8, "--gpus"},
        {"#SBATCH --gpus=8\naccelerate launch " GPT, 8, 0, "--gpus"},
        /* a part of what is allocated */
        {"#SBATCH --gpus=32\n#SBATCH --nodes=4\nsrun -N 2 torchrun --nnodes=2 --nproc_per_node=8 " GPT, 16, 8, "2 nodes of 8"},
        {"#SBATCH --gpus=32\ntorchrun --nproc_per_node=8 " GPT, 8, 8, "1 node of 8"},
        {"#SBATCH --gpus=32\nsrun -n 16 python " GPT, 16, 0, "-n"},
        {"#SBATCH -N 4 --gpus-per-node=h100:8\nsrun python " GPT, 32, 8, "4 nodes of 8"},
    };
    assert_machines(cases, sizeof cases / sizeof cases[0]);
}
END_TEST

START_TEST(one_task_on_a_node_is_the_launcher)
{
    static const struct machines cases[] = {
        {"srun --nodes 2 --ntasks-per-node=1 accelerate launch --num_processes 16 --num_machines 2 " HF, 16, 8, "num_processes"},
        {"#SBATCH --nodes=2 --ntasks-per-node=1 --gpus-per-node=8\nsrun --ntasks-per-node=1 bash -c 'accelerate launch "
         "--num_processes 16 " HF "'",
         16, 8, "num_processes"},
        {"#SBATCH --nodes=2\n#SBATCH --gres=gpu:8\n#SBATCH --ntasks-per-node=1\nsrun --ntasks-per-node 1 composer " GPT, 16, 8,
         "2 nodes of 8"},
        {"srun --nodes 2 --ntasks-per-node=1 python " GPT, 2, 1, "2 nodes of 1"},
        {"srun --nodes=2 bash -c 'torchrun --nproc_per_node 8 " GPT "'", 16, 8, "2 nodes of 8"},
    };
    assert_machines(cases, sizeof cases / sizeof cases[0]);
}
END_TEST

/* What nobody can know is asked for, or told why. */
START_TEST(machines_that_nothing_names_are_asked_for)
{
    static const struct {
        const char *script, *why; /* of an error; NULL: the number of GPUs is missing */
    } cases[] = {
        {"srun torchrun --nproc_per_node 8 " GPT, NULL},
        {"mpirun --hostfile h torchrun --nproc_per_node 8 " GPT, NULL},
        {"srun bash -c 'torchrun --nproc_per_node 8 " GPT "'", NULL},
        {"deepspeed " HF, NULL},
        {"deepspeed --hostfile h --num_gpus 8 " HF, NULL},
        {"deepspeed --include a@b:0 " HF, NULL},
        {"deepspeed --include= " HF, NULL},
        {"accelerate launch " HF, NULL},
        {"python " GPT, NULL},
        {"axolotl --launcher torchrun " GPT, NULL},
        {"torchrun --nnodes 1:4 --nproc_per_node 8 " GPT, "it is a range of nodes, 1:4"},
        {"torchrun --nproc_per_node=gpu " GPT, "as many processes as the machine has GPUs"},
        {"torchrun --nnodes $N --nproc_per_node 8 " GPT, "$N is set nowhere"},
        {"deepspeed --include localhost:0-3 " HF, "'localhost:0-3' is no list of hosts and GPUs"},
        {"deepspeed --include localhost:0,1, " HF, "is no list of hosts and GPUs"},
        {"deepspeed --include localhost: " HF, "is no list of hosts and GPUs"},
        {"export CUDA_VISIBLE_DEVICES=0-3; deepspeed " HF, "CUDA_VISIBLE_DEVICES=0-3 is no list of GPUs"},
        {"export CUDA_VISIBLE_DEVICES=0,1,; deepspeed " HF, "CUDA_VISIBLE_DEVICES=0,1, is no list of GPUs"},
        {"CUDA_VISIBLE_DEVICES=0, torchrun --nproc_per_node=gpu " GPT, "CUDA_VISIBLE_DEVICES=0, is no list of GPUs"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct heard h = hear(cases[i].script, NULL);
        if (cases[i].why)
            ck_assert_msg(h.diags.n_errors == 1 && strstr(h.diags.items[0].text, cases[i].why), "%s", cases[i].script);
        else
            ck_assert_msg(h.d.n_missing == 1 && strstr(h.d.missing[0], "how many GPUs"), "%s\n%d", cases[i].script, h.d.job.gpus);
        heard_free(&h);
    }
}
END_TEST

START_TEST(hosts_of_a_file)
{
    static const struct {
        const char *hosts;
        int gpus; /* 0: not known */
        const char *warning;
    } cases[] = {
        {"worker-1 slots=8\nworker-2 slots=8 # the second\n\n# none\n", 16, NULL},
        {"worker-1 slots=4\nworker-2 slots=8\n", 0, "different numbers of slots, 12 in all"},
        {"\n# nothing\n", 0, "names no host"},
        {"a\nb\n", 0, NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct heard h = hear("deepspeed --hostfile hosts " HF, cases[i].hosts);
        ck_assert_int_eq(h.d.job.gpus, cases[i].gpus);
        ck_assert_int_eq(h.diags.n_items, cases[i].warning != NULL);
        ck_assert(!cases[i].warning || strstr(h.diags.items[0].text, cases[i].warning));
        ck_assert(!cases[i].gpus || strstr(launch_origin_of(&h.d, "cluster.gpus"), "2 nodes of 8, as hosts says"));
        heard_free(&h);
    }
}
END_TEST

/* --include and --exclude choose among the hosts of a file. */
START_TEST(hosts_are_chosen)
{
    static const struct {
        const char *flag;
        int gpus, per_node;
        const char *origin;
    } cases[] = {
        {"--include=w0:0,1", 2, 2, "1 node of 2, as --include says"},
        {"--include w0:0,1,2,3@w1:0,1,2,3", 8, 4, "2 nodes of 4, as --include says"},
        {"--include=w0@w1:1", 9, 0, "--include"},
        {"--include=w0", 8, 8, "1 node of 8, as --include says"},
        {"--include=w0@w1", 16, 8, "2 nodes of 8, as --include says"},
        {"--exclude=w1", 8, 8, "1 node of 8, as --exclude says"},
        {"--exclude=w1:0,7", 14, 0, "--exclude"},
        {"--exclude=w0:0@w1:1", 14, 7, "2 nodes of 7, as --exclude says"},
        {"--exclude=w1:0,1,2,3,4,5,6,7", 8, 8, "1 node of 8, as --exclude says"},
        {"--exclude=other", 16, 8, "2 nodes of 8, as --exclude says"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char script[512];
        snprintf(script, sizeof script, "deepspeed --hostfile hosts %s " HF, cases[i].flag);
        struct heard h = hear(script, "w0 slots=8\nw1 slots=8\n# w2 slots=8\n");
        const char *origin = launch_origin_of(&h.d, "cluster.gpus");
        ck_assert_msg(h.d.job.gpus == cases[i].gpus && h.d.job.gpus_per_node == cases[i].per_node, "%s\n%d of %d", cases[i].flag,
                      h.d.job.gpus, h.d.job.gpus_per_node);
        ck_assert_msg(origin && strstr(origin, cases[i].origin), "%s\n%s", cases[i].flag, origin);
        ck_assert_int_eq(h.diags.n_items, 0);
        heard_free(&h);
    }
    struct heard h = hear("deepspeed -H hosts " HF, "w0 slots=8\nw1 slots=8\n");
    ck_assert_int_eq(h.d.job.gpus, 16);
    heard_free(&h);
    h = hear("deepspeed --hostfile hosts --exclude=w0 " HF, "w0 slots=8\n");
    ck_assert(h.d.job.gpus == 0 && h.diags.n_items == 1);
    ck_assert_str_eq(h.diags.items[0].text, "hosts: --exclude leaves no host");
    heard_free(&h);
}
END_TEST

static const char *file_of(const struct launch_words *words)
{
    for (size_t i = 0; i < words->n; i++)
        if (strcmp(words->items[i].name, "configuration-file") == 0)
            return words->items[i].value;
    return "";
}

/* Which file a command reads its job from. */
START_TEST(commands_name_their_configuration)
{
    static const struct {
        const char *script, *file;
    } cases[] = {
        {"litgpt pretrain --config x.yaml --devices 8", "x.yaml"},
        {"litgpt finetune_lora model --config=c/x.yaml", "c/x.yaml"},
        {"axolotl train x.yml", "x.yml"},
        {"F=x.yaml; axolotl train $F --micro-batch-size 2", "x.yaml"},
        {"axolotl preprocess p.yml; axolotl train x.yml", "x.yml"},
        {"accelerate launch -m axolotl.cli.train x.yaml", "x.yaml"},
        {"accelerate launch --config_file acc.yaml src/sft.py --config x.yaml", "x.yaml"},
        {"llamafactory-cli train x.yaml lora_rank=4", "x.yaml"},
        /* what is not known of a name is the same where the script writes the file */
        {"echo a: 1 > $U/x.yaml\naxolotl train $U/x.yaml", UNKNOWN_TEXT "/x.yaml"},
        {"echo a: 1 > x$$.yaml\ntorchrun train.py --config x$$.yaml", "x" UNKNOWN_TEXT ".yaml"},
        {"echo a: 1 > $U/x.yaml\naxolotl train $V/x.yaml --micro_batch_size 1", ""},
        {"torchrun --nproc_per_node=8 -m torchtitan.train --job.config_file x.toml", "x.toml"},
        {"torchrun --nproc_per_node=8 train.py --job.config-file=x.toml --training.steps 5", "x.toml"},
        {"CONFIG_FILE=\"./x.toml\" NGPU=4 ./run_train.sh", "./x.toml"},
        {"torchrun --nproc_per_node=8 scripts/train.py configs/x.yaml --model.d_model=64", "configs/x.yaml"},
        {"composer train/train.py train/yamls/x.yaml max_duration=1ba", "train/yamls/x.yaml"},
        {"python3 -m maxtext.train src/base.yml steps=5", "src/base.yml"},
        {"torchrun run_train.py --config-file x.yaml", "x.yaml"},
        {"python examples/pretraining.py --config-path=conf/y --config-name=x trainer.devices=4", "conf/y/x.yaml"},
        {"python pretraining.py --config-name x.yaml trainer.devices=4", "conf/x.yaml"},
        {"trl sft --config x.yaml --learning_rate 1e-5", "x.yaml"},
        {"olmo train x.yaml --model.d_model=64", "x.yaml"},
        {"bash -c 'F=x.yaml; axolotl train $F'", "x.yaml"},
        /* no file, or none that is given */
        {"torchrun train.py --config_name gpt2 --num-layers 8", ""},
        {"torchrun train.py $F --num-layers 8", ""},
        {"torchrun train.py --num-layers 8 --tokenizer x.json", ""},
        {"p --num-layers 8 --config x.yaml", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct launch_words words = {0};
        struct diags diags = {0};
        ck_assert_int_eq(
            launch_shell_parse(frameworks_loaded(), "s", cases[i].script, strlen(cases[i].script), NULL, &words, &diags),
            STATUS_OK);
        ck_assert_msg(strcmp(file_of(&words), cases[i].file) == 0, "%s\nnames '%s'", cases[i].script, file_of(&words));
        launch_words_free(&words);
        diags_free(&diags);
    }
}
END_TEST

/* NeMo's recipes train in mixed precision with a divided optimizer; their layouts are asked for. */
START_TEST(recipes_of_nemo)
{
    struct heard h = hear("nemo llm pretrain --factory llama3_8b trainer.num_nodes=2 trainer.devices=8 data.micro_batch_size=1 "
                          "data.seq_length=8192 trainer.strategy.tensor_model_parallel_size=4",
                          NULL);
    ck_assert_int_eq(h.d.job.job.precision, PRECISION_BF16);
    ck_assert_int_eq(h.d.job.job.gradient_precision, PRECISION_FP32);
    ck_assert_int_eq(h.d.job.layout.zero, 1);
    ck_assert_int_eq(h.d.job.layout.tp, 4);
    ck_assert_int_eq(h.d.job.gpus, 16);
    ck_assert(h.diags.n_items == 1 && strstr(h.diags.items[0].text, "the recipe's own layout and batch"));
    heard_free(&h);
    h = hear("nemo llm pretrain --factory=llama3_8b trainer.plugins.precision=16-mixed", NULL);
    ck_assert_int_eq(h.d.job.job.precision, PRECISION_FP16);
    heard_free(&h);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("launch_programs");
    TCase *all = tcase_create("all");
    tcase_add_test(all, launchers_take_one_node);
    tcase_add_test(all, visible_devices_are_counted);
    tcase_add_test(all, allocations_say_how_many);
    tcase_add_test(all, one_task_on_a_node_is_the_launcher);
    tcase_add_test(all, machines_that_nothing_names_are_asked_for);
    tcase_add_test(all, hosts_of_a_file);
    tcase_add_test(all, hosts_are_chosen);
    tcase_add_test(all, commands_name_their_configuration);
    tcase_add_test(all, recipes_of_nemo);
    suite_add_tcase(suite, all);
    return suite_run(suite);
}
