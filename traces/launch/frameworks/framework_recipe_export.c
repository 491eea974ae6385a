/* framework_recipe_export.c - a job as a Python program that changes a recipe of Megatron-Bridge or NeMo 2.
 *
 * The model determines the recipe (from memory, as are the fields and the names of modules). The program also sets all fields
 * that describe the model, so for a model without a recipe another model's recipe works. */
#include <string.h>

#include "model/spec/catalog.h"
#include "traces/launch/frameworks/framework_export_internal.h"
#include "traces/launch/frameworks/framework_program.h"
#include "traces/launch/job/launch_write.h"

static bool is_of(const struct recipe *recipe, const struct transformer *model)
{
    struct transformer known;
    struct diags quiet = {0};
    bool there = catalog_model(recipe->model, &known, &quiet) == STATUS_OK;
    diags_free(&quiet);
    return there && launch_same_shape(&known, model);
}

/* The model's own; else one whose attention is of the same kind. */
static const struct recipe *recipe_of(const struct recipe *recipes, const struct transformer *model, bool *own)
{
    const struct recipe *recipe = recipes;
    while (recipe->model && !is_of(recipe, model))
        recipe++;
    *own = recipe->model != NULL;
    return *own ? recipe : &recipes[model->attention == ATTENTION_LATENT];
}

/* --- fields --- */

static void cover(struct config *c, enum argument argument)
{
    c->covered[argument] = true;
}

/* A field of the object that has the model's, or the overlap's. */
static const char *field_of(struct config *c, const char *object, const char *name)
{
    size_t size = strlen(object) + strlen(name) + 2;
    char *path = arena_new(&c->exported.arena, size, 1);
    snprintf(path, size, "%s.%s", object, name);
    return path;
}

/* What Python has other words for: tuples, and sums of lists. */
static void write_expressions(struct config *c, const char *object)
{
    const struct transformer *model = &c->job->model;
    const char *freq = c->exported.arguments.of[ARGUMENT_MIXTURE_FREQ].text;
    if (freq && strchr(freq, '[')) {
        framework_lines_add(&c->lines, field_of(c, object, "moe_layer_freq"), "")->verbatim = freq;
        cover(c, ARGUMENT_MIXTURE_FREQ);
    }
    if (model->window) {
        enum { TUPLE_SIZE = 40 };
        char *text = arena_new(&c->exported.arena, TUPLE_SIZE, 1);
        snprintf(text, TUPLE_SIZE, "(%lld, 0)", (long long)model->window);
        framework_lines_add(&c->lines, field_of(c, object, "window_size"), "")->verbatim = text;
        cover(c, ARGUMENT_WINDOW);
    }
}

/* By a recipe of its own, whose name is enough where gradients are as that has them. */
static void write_bridge_precision(struct config *c)
{
    static const struct {
        enum precision precision;
        const char *name, *call;
    } recipes[] = {
        {PRECISION_BF16, "bf16_mixed", "get_mixed_precision_config(\"bf16_mixed\")"},
        {PRECISION_FP8, "bf16_with_fp8_delayed_scaling_mixed",
         "get_mixed_precision_config(\"bf16_with_fp8_delayed_scaling_mixed\")"},
        {PRECISION_MXFP8, "bf16_with_mxfp8_mixed", "get_mixed_precision_config(\"bf16_with_mxfp8_mixed\")"},
        {PRECISION_FP16, "fp16_mixed", NULL},
    };
    static const enum argument spelling[] = {ARGUMENT_BF16, ARGUMENT_FP16, ARGUMENT_FP8, ARGUMENT_FP8_RECIPE};
    const struct job *job = &c->job->job;
    for (size_t i = 0; i < sizeof recipes / sizeof recipes[0]; i++) {
        if (recipes[i].precision != job->precision)
            continue;
        bool narrow = job->gradient_precision == PRECISION_BF16 && recipes[i].call;
        framework_lines_add(&c->lines, "mixed_precision", recipes[i].name)->verbatim = narrow ? recipes[i].call : NULL;
        if (narrow)
            framework_lines_add(&c->lines, "mixed_precision.grad_reduce_in_fp32", "False");
        for (size_t k = 0; k < sizeof spelling / sizeof spelling[0]; k++)
            cover(c, spelling[k]);
    }
}

/* Made anew, with all that it has: a recipe may have none, and what it is not told it finds by itself. */
static void write_overlap(struct config *c, const char *object)
{
    static const struct {
        enum argument argument;
        const char *name;
    } fields[] = {{ARGUMENT_TP_OVERLAP, "tp_comm_overlap"},
                  {ARGUMENT_GRADIENT_OVERLAP, "overlap_grad_reduce"},
                  {ARGUMENT_PARAMETER_OVERLAP, "overlap_param_gather"},
                  {ARGUMENT_NO_PP_OVERLAP, "overlap_p2p_comm"}};
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        enum argument a = fields[i].argument;
        if (a == ARGUMENT_NO_PP_OVERLAP && c->job->layout.schedule != SCHEDULE_INTERLEAVED)
            continue; /* the others have none, and refuse to be told so */
        framework_lines_add(&c->lines, field_of(c, object, fields[i].name),
                            megatron_true(&c->exported.arguments, a) ? "True" : "False");
        cover(c, a);
    }
}

/* A model has the length of its sequences, and learns one position per token. */
static void write_positions(struct config *c, const char *object)
{
    const struct launch_job *job = c->job;
    char text[24];
    snprintf(text, sizeof text, "%lld", (long long)job->job.seq_len);
    framework_lines_add(&c->lines, field_of(c, object, "seq_length"), text);
    cover(c, ARGUMENT_MAX_POSITIONS);
    if (job->model.position == POSITION_LEARNED && job->model.max_seq_len != job->job.seq_len)
        megatron_export_lose(&c->exported, "%lld learned positions: %s has one per token of a sequence",
                             (long long)job->model.max_seq_len, c->framework->name);
}

/* Of torch's types; Megatron-Core has unsigned bytes where moments are in 8 bits. */
static void write_moments(struct config *c, const char *optimizer)
{
    static const char *const types[N_PRECISIONS] = {
        [PRECISION_BF16] = "torch.bfloat16", [PRECISION_FP16] = "torch.float16", [PRECISION_FP8] = "torch.uint8"};
    const char *type = types[c->job->job.moment_precision];
    if (!c->exported.arguments.of[ARGUMENT_MOMENT].text || !type)
        return;
    framework_lines_add(&c->lines, field_of(c, optimizer, "exp_avg_dtype"), "")->verbatim = type;
    framework_lines_add(&c->lines, field_of(c, optimizer, "exp_avg_sq_dtype"), "")->verbatim = type;
    cover(c, ARGUMENT_MOMENT);
    cover(c, ARGUMENT_MOMENT2);
}

/* Writes what both kinds of recipe have in common. The fields of the model, of overlapped exchanges and of the optimizer's states
 * go into the objects that `model`, `overlap` and `optimizer` name. */
static void complete_recipe(struct config *c, const char *model, const char *overlap, const char *optimizer)
{
    write_moments(c, optimizer);
    write_expressions(c, model);
    write_overlap(c, overlap);
    write_positions(c, model);
    if (c->job->model.attention != ATTENTION_LATENT)
        config_set(c, ARGUMENT_HEAD_DIM, "%d", c->job->model.head_dim);
    else if (!c->job->model.moe.experts) /* of which the recipe that stands in has some */
        framework_lines_add(&c->lines, field_of(c, model, "num_moe_experts"), "None");
    if (c->job->model.moe.experts)
        config_set(c, ARGUMENT_ETP, "%d", layout_expert_tp(&c->job->layout));
    cover(c, ARGUMENT_NODES);
    cover(c, ARGUMENT_NODE_GPUS);
}

void bridge_complete(struct config *c)
{
    const struct layout *l = &c->job->layout;
    complete_recipe(c, "model", "comm_overlap", "optimizer");
    write_bridge_precision(c);
    framework_lines_add(&c->lines, "model.should_pad_vocab", "True");
    if (c->job->model.moe.experts) {
        bool hides = megatron_true(&c->exported.arguments, ARGUMENT_EP_OVERLAP);
        framework_lines_add(&c->lines, "comm_overlap.overlap_moe_expert_parallel_comm", hides ? "True" : "False");
        cover(c, ARGUMENT_EP_OVERLAP);
    }
    if (l->vpp > 1 && c->exported.arguments.of[ARGUMENT_STAGE_LAYOUT].text)
        config_set(c, ARGUMENT_CHUNKS_LOGGED, "%d", l->vpp);
}

/* Recipes have bf16, and 8 bits beside it. */
static void write_nemo2_precision(struct config *c)
{
    const struct job *job = &c->job->job;
    bool eight = job->precision == PRECISION_FP8 || job->precision == PRECISION_MXFP8;
    if (job->precision != PRECISION_BF16 && !eight)
        megatron_export_lose(&c->exported, "precision %s: recipes of NeMo 2 have bf16", precision_name(job->precision));
    cover(c, ARGUMENT_BF16);
    cover(c, ARGUMENT_FP16);
    cover(c, ARGUMENT_FP8);
    cover(c, ARGUMENT_FP8_RECIPE);
    framework_lines_add(&c->lines, "trainer.plugins.precision", "bf16-mixed");
    framework_lines_add(&c->lines, "trainer.plugins.fp8",
                        job->precision == PRECISION_FP8     ? "hybrid"
                        : job->precision == PRECISION_MXFP8 ? "e4m3"
                                                            : "None");
    if (eight)
        framework_lines_add(&c->lines, "trainer.plugins.fp8_recipe", job->precision == PRECISION_FP8 ? "delayed" : "mxfp8");
}

void nemo2_complete(struct config *c)
{
    complete_recipe(c, "model.config", "trainer.callbacks", "optim.config");
    write_nemo2_precision(c);
    if (c->exported.arguments.of[ARGUMENT_GRAPHS].text)
        framework_lines_add(&c->lines, "model.config.enable_cuda_graph", "True");
    cover(c, ARGUMENT_GRAPHS);
}

/* --- the program --- */

static void write_stand_in(const struct config *c, bool own, FILE *out)
{
    if (!own)
        fprintf(out, "# A recipe of another model, of which these fields make %s.\n",
                *c->job->model.name ? c->job->model.name : "this one");
}

static void write_imports(const struct config *c, const char *typed, FILE *out)
{
    if (framework_lines_have(&c->lines, typed))
        fputs("import torch\n", out);
}

void bridge_open(const struct config *c, FILE *out)
{
    bool own;
    const struct recipe *recipe = recipe_of(bridge_recipes, &c->job->model, &own);
    config_write_command(c, "THIS_FILE", out);
    write_stand_in(c, own, out);
    write_imports(c, "optimizer.exp_avg_dtype", out);
    fprintf(out, "from megatron.bridge.recipes.%s import %s_pretrain_config\n", recipe->family, recipe->name);
    fputs("from megatron.bridge.training.comm_overlap import CommOverlapConfig\n"
          "from megatron.bridge.training.gpt_step import forward_step\n",
          out);
    if (framework_lines_have(&c->lines, "mixed_precision.grad_reduce_in_fp32"))
        fputs("from megatron.bridge.training.mixed_precision import get_mixed_precision_config\n", out);
    fprintf(out, "from megatron.bridge.training.pretrain import pretrain\n\ncfg = %s_pretrain_config()\n", recipe->name);
}

void bridge_close(const struct config *c, FILE *out)
{
    (void)c;
    fputs("\nif __name__ == \"__main__\":\n    pretrain(cfg, forward_step)\n", out);
}

/* A name that is one in Python's quotes, too. */
static bool is_plain(const char *name)
{
    return *name && strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") == strlen(name);
}

void nemo2_open(const struct config *c, FILE *out)
{
    bool own;
    const struct recipe *recipe = recipe_of(nemo2_recipes, &c->job->model, &own);
    int per_node = config_node_gpus(c);
    write_stand_in(c, own, out);
    write_imports(c, "optim.config.exp_avg_dtype", out);
    fputs("import nemo_run as run\nfrom nemo.collections import llm\n"
          "from nemo.lightning.pytorch.callbacks.megatron_comm_overlap import MegatronCommOverlapCallback\n\n",
          out);
    fprintf(out, "recipe = llm.%s.pretrain_recipe(name=\"%s\", num_nodes=%d, num_gpus_per_node=%d)\n", recipe->name,
            is_plain(c->job->model.name) ? c->job->model.name : "msim", per_node ? c->job->gpus / per_node : 0, per_node);
}

void nemo2_close(const struct config *c, FILE *out)
{
    int per_node = config_node_gpus(c);
    fputs("\nif __name__ == \"__main__\":\n", out);
    if (c->job->gpus > per_node)
        fprintf(out, "    # for %d nodes an executor that starts them, such as run.SlurmExecutor\n", c->job->gpus / per_node);
    fprintf(out, "    run.run(recipe, executor=run.LocalExecutor(ntasks_per_node=%d, launcher=\"torchrun\"))\n", per_node);
}
