/* Spellings: what tables and users write finds its entry, nothing else does, and the list of aliases holds together. */
#include <check.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "model/spec/catalog_alias.h"
#include "tests/spec/said.h"
#include "tests/suite.h"

static const struct {
    enum catalog_kind kind;
    const char *text, *name;
    enum alias_match match;
} spellings[] = {
    {CATALOG_GPUS, "H100_SXM", "h100-sxm", ALIAS_NAME},
    {CATALOG_GPUS, "NVIDIA H100 80GB HBM3", "h100-sxm", ALIAS_ALSO},
    {CATALOG_GPUS, "NVIDIA H100 PCIe", "h100-pcie", ALIAS_NAME},
    {CATALOG_GPUS, "h100", "h100-sxm", ALIAS_USUAL},
    {CATALOG_GPUS, "NVIDIA H100 Tensor Core GPU", "h100-sxm", ALIAS_USUAL},
    {CATALOG_GPUS, "A100-SXM4-80GB", "a100-80g-sxm", ALIAS_ALSO},
    {CATALOG_GPUS, "NVIDIA A100-PCIE-40GB", "a100-40g-pcie", ALIAS_ALSO},
    {CATALOG_GPUS, "a100", "a100-80g-sxm", ALIAS_USUAL},
    {CATALOG_GPUS, "b200-sxm", "b200", ALIAS_ALSO},
    {CATALOG_GPUS, "GB200 NVL72", "gb200", ALIAS_ALSO},
    {CATALOG_GPUS, "Tesla V100-SXM2-16GB", "v100-16g-sxm", ALIAS_ALSO},
    {CATALOG_GPUS, "NVIDIA GH200 480GB", "gh200", ALIAS_ALSO},
    {CATALOG_GPUS, "AMD Instinct MI300X", "mi300x", ALIAS_NAME},
    {CATALOG_GPUS, "NVIDIA GeForce RTX 4090", "rtx-4090", ALIAS_NAME},
    {CATALOG_CLUSTERS, "GB200 NVL72", "gb200-nvl72", ALIAS_NAME},
    {CATALOG_CLUSTERS, "B200_node", "b200-node", ALIAS_NAME},
    {CATALOG_MODELS, "Llama-3.1-405B", "llama3.1-405b", ALIAS_NAME},
    {CATALOG_MODELS, "meta-llama/Llama-2-70b-hf", "llama2-70b", ALIAS_NAME},
    {CATALOG_MODELS, "meta-llama/Meta-Llama-3-8B-Instruct", "llama3-8b", ALIAS_NAME},
    {CATALOG_MODELS, "gpt-3-175b", "gpt3-175b", ALIAS_NAME},
    {CATALOG_MODELS, "GPT-3", "gpt3-175b", ALIAS_USUAL},
    {CATALOG_MODELS, "deepseek_v3", "deepseek-v3", ALIAS_NAME},
    {CATALOG_MODELS, "deepseek-ai/DeepSeek-R1", "deepseek-v3", ALIAS_ALSO},
    {CATALOG_MODELS, "Qwen/Qwen3-30B-A3B", "qwen3-30b-a3b", ALIAS_NAME},
    {CATALOG_MODELS, "mistralai/Mixtral-8x7B-Instruct-v0.1", "mixtral-8x7b", ALIAS_NAME},
    {CATALOG_MODELS, "Qwen2-57B", "qwen2-57b-a14b", ALIAS_ALSO},
    {CATALOG_MODELS, "Qwen2.5 7B", "qwen2.5-7b", ALIAS_NAME},
    {CATALOG_MODELS, "qwen257b", NULL, ALIAS_NONE},
    {CATALOG_MODELS, "google/gemma-2-9b-it", "gemma2-9b", ALIAS_NAME},
    {CATALOG_MODELS, "moonshotai/Kimi-K2-Instruct", "kimi-k2", ALIAS_NAME},
    {CATALOG_MODELS, "meta-llama/Llama-4-Scout-17B-16E-Instruct", "llama4-scout", ALIAS_ALSO},
    {CATALOG_MODELS, "zai-org/GLM-4.5-Air", "glm-4.5-air", ALIAS_NAME},
    /* as nvidia-smi and rocm-smi print them, and as tools write them */
    {CATALOG_GPUS, "NVIDIA B300 SXM6 AC", "b300", ALIAS_ALSO},
    {CATALOG_GPUS, "B200-SXM-180GB", "b200", ALIAS_ALSO},
    {CATALOG_GPUS, "NVIDIA GB200", "gb200", ALIAS_NAME},
    {CATALOG_GPUS, "GB300 NVL72", "gb300", ALIAS_ALSO},
    {CATALOG_GPUS, "NVIDIA GH200 120GB", "gh200", ALIAS_ALSO},
    {CATALOG_GPUS, "NVIDIA H200 NVL", "h200-nvl", ALIAS_NAME},
    {CATALOG_GPUS, "H100-NVL", "h100-nvl", ALIAS_NAME},
    {CATALOG_GPUS, "H100 SXM5 80GB", "h100-sxm", ALIAS_ALSO},
    {CATALOG_GPUS, "H20-3e", "h20-3e", ALIAS_NAME},
    {CATALOG_GPUS, "NVIDIA A10G", "a10g", ALIAS_NAME},
    {CATALOG_GPUS, "NVIDIA A40", "a40", ALIAS_NAME},
    {CATALOG_GPUS, "NVIDIA L40", "l40", ALIAS_NAME},
    {CATALOG_GPUS, "NVIDIA RTX A6000", "rtx-a6000", ALIAS_NAME},
    {CATALOG_GPUS, "RTX 6000 Ada", "rtx-6000-ada", ALIAS_NAME},
    {CATALOG_GPUS, "NVIDIA RTX 6000 Ada Generation", "rtx-6000-ada", ALIAS_ALSO},
    {CATALOG_GPUS, "NVIDIA RTX PRO 6000 Blackwell", "rtx-pro-6000", ALIAS_USUAL},
    {CATALOG_GPUS, "NVIDIA RTX PRO 6000 Blackwell Server Edition", "rtx-pro-6000-server", ALIAS_ALSO},
    {CATALOG_GPUS, "AMD Instinct MI300X OAM", "mi300x", ALIAS_ALSO},
    {CATALOG_GPUS, "Tesla V100-SXM2-32GB", "v100-32g-sxm", ALIAS_ALSO},
    {CATALOG_GPUS, "h100-80g-pcie", "h100-pcie", ALIAS_ALSO},
    {CATALOG_GPUS, "h200-141g-sxm5", "h200-sxm", ALIAS_ALSO},
    {CATALOG_GPUS, "A100-40GB-SXM4", "a100-40g-sxm", ALIAS_NAME},
    {CATALOG_GPUS, "b200-180g", "b200", ALIAS_ALSO},
    {CATALOG_GPUS, "H100 96GB", "h100-96g-hbm2e", ALIAS_USUAL},
    {CATALOG_GPUS, "sxm5", NULL, ALIAS_NONE},
    {CATALOG_GPUS, "80gb", NULL, ALIAS_NONE},
    {CATALOG_GPUS, "wombat", NULL, ALIAS_NONE},
    {CATALOG_GPUS, "h1000", NULL, ALIAS_NONE},
    {CATALOG_GPUS, "NVIDIA", NULL, ALIAS_NONE}, /* nothing is left of it */
    {CATALOG_GPUS, "---", NULL, ALIAS_NONE},
    {CATALOG_GPUS, "", NULL, ALIAS_NONE},
    {CATALOG_MODELS, "h100", NULL, ALIAS_NONE},
    {CATALOG_MODELS, "meta-llama/", NULL, ALIAS_NONE},
};

START_TEST(spellings_find_their_entry)
{
    struct diags diags = {0};
    struct alias_table table;
    ck_assert_int_eq(alias_table_load(&table, &diags), STATUS_OK);
    for (size_t i = 0; i < sizeof spellings / sizeof spellings[0]; i++) {
        const char *name = NULL;
        enum alias_match match = alias_table_find(&table, spellings[i].kind, spellings[i].text, &name);
        ck_assert_msg(match == spellings[i].match, "'%s': match %d", spellings[i].text, match);
        ck_assert_pstr_eq(name, spellings[i].name);
    }
    alias_table_free(&table);
}
END_TEST

/* Repositories of hubs, product names, and what tables make of them. */
static const struct {
    enum catalog_kind kind;
    const char *text, *name;
} hub_names[] = {
    {CATALOG_MODELS, "meta-llama/Llama-3.1-8B-Instruct", "llama3-8b"},
    {CATALOG_MODELS, "Qwen/Qwen2.5-72B", "qwen2.5-72b"},
    {CATALOG_MODELS, "llama-3.1-8b", "llama3-8b"},
    {CATALOG_MODELS, "LLAMA2-70B", "llama2-70b"},
    {CATALOG_MODELS, "gpt3-13B", "gpt3-13b"},
    {CATALOG_MODELS, "GPT-3_13B", "gpt3-13b"},
    {CATALOG_MODELS, "gpt-13b", "gpt3-13b"},
    {CATALOG_MODELS, "allenai/OLMo-2-1124-13B", "olmo2-13b"},
    {CATALOG_MODELS, "allenai/OLMo-2-1124-7B-Instruct", "olmo2-7b"},
    {CATALOG_MODELS, "allenai/OLMo-2-0325-32B-Instruct", "olmo2-32b"},
    {CATALOG_MODELS, "allenai/OLMo-2-0425-1B", "olmo2-1b"},
    {CATALOG_MODELS, "allenai/OLMo-7B-0724-hf", "olmo-7b"},
    {CATALOG_MODELS, "allenai/OLMo-1B-hf", "olmo-1b"},
    {CATALOG_MODELS, "HuggingFaceTB/SmolLM2-1.7B-Instruct", "smollm2-1.7b"},
    {CATALOG_MODELS, "HuggingFaceTB/SmolLM-135M", "smollm2-135m"},
    {CATALOG_MODELS, "HuggingFaceTB/SmolLM3-3B-Base", "smollm3-3b"},
    {CATALOG_MODELS, "bigcode/starcoder", "starcoder-15b"},
    {CATALOG_MODELS, "bigcode/starcoderbase", "starcoder-15b"},
    {CATALOG_MODELS, "bigcode/starcoder2-15b-instruct-v0.1", "starcoder2-15b"},
    {CATALOG_MODELS, "bigcode/gpt_bigcode-santacoder", "santacoder-1.1b"},
    {CATALOG_MODELS, "ibm-granite/granite-3.0-8b-instruct", "granite3-8b"},
    {CATALOG_MODELS, "ibm-granite/granite-3.1-3b-a800m-base", "granite3-3b-a800m"},
    {CATALOG_MODELS, "internlm/internlm2-chat-7b", "internlm2-7b"},
    {CATALOG_MODELS, "internlm/internlm2_5-20b-chat", "internlm2-20b"},
    {CATALOG_MODELS, "baichuan-inc/Baichuan2-13B-Chat", "baichuan2-13b"},
    {CATALOG_MODELS, "baichuan-inc/Baichuan-7B", "baichuan-7b"},
    {CATALOG_MODELS, "THUDM/chatglm3-6b-base", "chatglm3-6b"},
    {CATALOG_MODELS, "THUDM/chatglm2-6b", "chatglm3-6b"},
    {CATALOG_MODELS, "THUDM/glm-4-9b-chat", "glm4-9b"},
    {CATALOG_MODELS, "zai-org/GLM-4-32B-0414", "glm4-32b"},
    {CATALOG_MODELS, "zai-org/GLM-4.6", "glm-4.5"},
    {CATALOG_MODELS, "zai-org/GLM-4.5-Air-Base", "glm-4.5-air"},
    {CATALOG_MODELS, "01-ai/Yi-1.5-34B-Chat", "yi-34b"},
    {CATALOG_MODELS, "01-ai/Yi-1.5-9B", "yi-9b"},
    {CATALOG_MODELS, "01-ai/Yi-9B", "yi-9b"},
    {CATALOG_MODELS, "tiiuae/falcon-7b-instruct", "falcon-7b"},
    {CATALOG_MODELS, "tiiuae/Falcon3-10B-Base", "falcon3-10b"},
    {CATALOG_MODELS, "microsoft/phi-2", "phi-2"},
    {CATALOG_MODELS, "microsoft/phi-1_5", "phi-1.5"},
    {CATALOG_MODELS, "microsoft/Phi-4-mini-instruct", "phi-4-mini"},
    {CATALOG_MODELS, "microsoft/Phi-3.5-mini-instruct", "phi-3-mini"},
    {CATALOG_MODELS, "microsoft/Phi-3-mini-128k-instruct", "phi-3-mini"},
    {CATALOG_MODELS, "microsoft/Phi-3-medium-128k-instruct", "phi-3-medium"},
    {CATALOG_MODELS, "microsoft/phi-4", "phi-4"},
    {CATALOG_MODELS, "microsoft/Phi-4-reasoning", "phi-4"},
    {CATALOG_MODELS, "swiss-ai/Apertus-8B-2509", "apertus-8b"},
    {CATALOG_MODELS, "swiss-ai/Apertus-70B-Instruct-2509", "apertus-70b"},
    {CATALOG_MODELS, "Qwen/Qwen1.5-110B-Chat", "qwen1.5-110b"},
    {CATALOG_MODELS, "Qwen/Qwen1.5-0.5B", "qwen1.5-0.5b"},
    {CATALOG_MODELS, "Qwen/Qwen1.5-MoE-A2.7B", "qwen1.5-moe-a2.7b"},
    {CATALOG_MODELS, "Qwen/Qwen2-1.5B-Instruct", "qwen2.5-1.5b"},
    {CATALOG_MODELS, "Qwen/Qwen2-72B", "qwen2.5-72b"},
    {CATALOG_MODELS, "Qwen/Qwen2.5-Coder-32B-Instruct", "qwen2.5-32b"},
    {CATALOG_MODELS, "Qwen/QwQ-32B-Preview", "qwen2.5-32b"},
    {CATALOG_MODELS, "Qwen/QwQ-32B", "qwen2.5-32b"},
    {CATALOG_MODELS, "Qwen/Qwen3-235B-A22B-Thinking-2507", "qwen3-235b-a22b"},
    {CATALOG_MODELS, "Qwen/Qwen3-Coder-30B-A3B-Instruct", "qwen3-30b-a3b"},
    {CATALOG_MODELS, "Qwen/Qwen3-Coder-480B-A35B-Instruct", "qwen3-coder-480b-a35b"},
    {CATALOG_MODELS, "Qwen3_8B", "qwen3-8b"},
    {CATALOG_MODELS, "deepseek-ai/DeepSeek-V3-Base", "deepseek-v3"},
    {CATALOG_MODELS, "deepseek-ai/DeepSeek-V3.1-Terminus", "deepseek-v3"},
    {CATALOG_MODELS, "deepseek-ai/DeepSeek-R1-0528", "deepseek-v3"},
    {CATALOG_MODELS, "deepseek-ai/DeepSeek-R1-Zero", "deepseek-v3"},
    {CATALOG_MODELS, "deepseek-ai/DeepSeek-R1-Distill-Llama-70B", "llama3-70b"},
    {CATALOG_MODELS, "deepseek-ai/DeepSeek-Coder-V2-Lite-Instruct", "deepseek-v2-lite"},
    {CATALOG_MODELS, "deepseek-ai/deepseek-coder-33b-base", "deepseek-coder-33b"},
    {CATALOG_MODELS, "deepseek-ai/deepseek-llm-7b-chat", "deepseek-7b"},
    {CATALOG_MODELS, "deepseek-ai/deepseek-llm-67b-base", "deepseek-67b"},
    {CATALOG_MODELS, "moonshotai/Kimi-K2-Instruct-0905", "kimi-k2"},
    {CATALOG_MODELS, "moonshotai/Kimi-K2-Thinking", "kimi-k2"},
    {CATALOG_MODELS, "mistralai/Mistral-7B-Instruct-v0.3", "mistral-7b"},
    {CATALOG_MODELS, "mistralai/Mistral-7B-v0.1", "mistral-7b"},
    {CATALOG_MODELS, "mistralai/Codestral-22B-v0.1", "codestral-22b"},
    {CATALOG_MODELS, "mistralai/Ministral-8B-Instruct-2410", "ministral-8b"},
    {CATALOG_MODELS, "mistralai/Mistral-Small-24B-Instruct-2501", "mistral-small-24b"},
    {CATALOG_MODELS, "mistralai/Mistral-Small-3.1-24B-Base-2503", "mistral-small-24b"},
    {CATALOG_MODELS, "mistralai/Mistral-Large-Instruct-2411", "mistral-large-123b"},
    {CATALOG_MODELS, "mistralai/Mixtral-8x22B-Instruct-v0.1", "mixtral-8x22b"},
    {CATALOG_MODELS, "mistralai/Mistral-Nemo-Instruct-2407", "mistral-nemo-12b"},
    {CATALOG_MODELS, "CohereForAI/c4ai-command-r-v01", "command-r-35b"},
    {CATALOG_MODELS, "CohereForAI/c4ai-command-r-plus", "command-r-plus-104b"},
    {CATALOG_MODELS, "CohereForAI/aya-23-8B", "aya-23-8b"},
    {CATALOG_MODELS, "google/gemma-3-270m-it", "gemma3-270m"},
    {CATALOG_MODELS, "google/gemma-3-27b-pt", "gemma3-27b"},
    {CATALOG_MODELS, "google/gemma-7b", "gemma-7b"},
    {CATALOG_MODELS, "upstage/SOLAR-10.7B-v1.0", "solar-10.7b"},
    {CATALOG_MODELS, "upstage/SOLAR-10.7B-Instruct-v1.0", "solar-10.7b"},
    {CATALOG_MODELS, "stabilityai/stablelm-3b-4e1t", "stablelm-3b"},
    {CATALOG_MODELS, "stabilityai/stablelm-2-1_6b", "stablelm2-1.6b"},
    {CATALOG_MODELS, "openlm-research/open_llama_7b", "llama-7b"},
    {CATALOG_MODELS, "openlm-research/open_llama_3b_v2", "open-llama-3b"},
    {CATALOG_MODELS, "ByteDance-Seed/Seed-OSS-36B-Instruct", "seed-oss-36b"},
    {CATALOG_MODELS, "LGAI-EXAONE/EXAONE-3.5-7.8B-Instruct", "exaone3.5-7.8b"},
    {CATALOG_MODELS, "utter-project/EuroLLM-9B-Instruct", "eurollm-9b"},
    {CATALOG_MODELS, "LumiOpen/Poro-34B", "poro-34b"},
    {CATALOG_MODELS, "tencent/Tencent-Hunyuan-Large", "hunyuan-large"},
    {CATALOG_MODELS, "tencent/Hunyuan-A13B-Instruct", "hunyuan-a13b"},
    {CATALOG_MODELS, "Snowflake/snowflake-arctic-instruct", "snowflake-arctic"},
    {CATALOG_MODELS, "inclusionAI/Ling-mini-2.0", "ling-mini-2.0"},
    {CATALOG_MODELS, "inclusionAI/Ring-1T-preview", "ling-1t"},
    {CATALOG_MODELS, "inclusionAI/Ling-flash-base-2.0", "ling-flash-2.0"},
    {CATALOG_MODELS, "baidu/ERNIE-4.5-21B-A3B-Base-PT", "ernie4.5-21b-a3b"},
    {CATALOG_MODELS, "baidu/ERNIE-4.5-300B-A47B-PT", "ernie4.5-300b-a47b"},
    {CATALOG_MODELS, "MiniMaxAI/MiniMax-M2", "minimax-m2"},
    {CATALOG_MODELS, "rednote-hilab/dots.llm1.base", "dots.llm1-143b"},
    {CATALOG_MODELS, "facebook/opt-66b", "opt-66b"},
    {CATALOG_MODELS, "EleutherAI/pythia-410m-deduped", "pythia-410m"},
    {CATALOG_MODELS, "EleutherAI/pythia-2.8b", "pythia-2.8b"},
    {CATALOG_MODELS, "bigscience/bloom-1b1", "bloom-1b1"},
    {CATALOG_MODELS, "bigscience/bloom-560m", "bloom-560m"},
    {CATALOG_MODELS, "bigscience/bloom", "bloom-176b"},
    {CATALOG_MODELS, "TinyLlama/TinyLlama-1.1B-Chat-v1.0", "tinyllama-1.1b"},
    {CATALOG_MODELS, "nvidia/Llama-3.1-Nemotron-70B-Instruct-HF", "llama3-70b"},
    {CATALOG_MODELS, "meta-llama/Llama-3.3-70B-Instruct", "llama3-70b"},
    {CATALOG_MODELS, "meta-llama/Meta-Llama-3.1-405B-FP8", "llama3.1-405b"},
    {CATALOG_MODELS, "meta-llama/Llama-3.2-3B-Instruct", "llama3.2-3b"},
    {CATALOG_MODELS, "openai-community/gpt2-xl", "gpt2-xl"},
    {CATALOG_MODELS, "openai/gpt-oss-120b", "gpt-oss-120b"},
    {CATALOG_MODELS, "EleutherAI/gpt-neox-20b", "gpt-neox-20b"},
    {CATALOG_MODELS, "databricks/dbrx-instruct", "dbrx"},
    {CATALOG_MODELS, "xai-org/grok-1", "grok1-314b"},
    {CATALOG_MODELS, "PaLM-540B", "palm-540b"},
    {CATALOG_MODELS, "T-NLG", "turing-nlg-17b"},
    {CATALOG_MODELS, "Turing-NLG", "turing-nlg-17b"},
    {CATALOG_MODELS, "Megatron-8.3B", "gpt-8.3b"},
    {CATALOG_MODELS, "GPT-18.4B", "gpt-18b"},
    {CATALOG_MODELS, "GPT-3-XL", "gpt3-1.3b"},
    {CATALOG_MODELS, "GPT_145.6B", "gpt-145b"},
    {CATALOG_MODELS, "GLM-130B", "glm-130b"},
    {CATALOG_MODELS, "allenai/OLMoE-1B-7B-0924-Instruct", "olmoe-1b-7b"},
    {CATALOG_MODELS, "llama-2-13b-chat", "llama2-13b"},
    {CATALOG_MODELS, "Llama3.1-70B", "llama3-70b"},
    {CATALOG_MODELS, "deepseek-v3-671b", "deepseek-v3"},
    {CATALOG_MODELS, "qwen2.5-math-7b", "qwen2.5-7b"},
    {CATALOG_GPUS, "TPU v4", "tpu-v4"},
    {CATALOG_GPUS, "tpu-v4", "tpu-v4"},
    {CATALOG_GPUS, "TPU v5 lite", "tpu-v5e"},
    {CATALOG_GPUS, "TPU v5e", "tpu-v5e"},
    {CATALOG_GPUS, "v5litepod", "tpu-v5e"},
    {CATALOG_GPUS, "TPU v5p", "tpu-v5p"},
    {CATALOG_GPUS, "v5p", "tpu-v5p"},
    {CATALOG_GPUS, "Cloud TPU v5p", "tpu-v5p"},
    {CATALOG_GPUS, "TPU v5", "tpu-v5p"},
    {CATALOG_GPUS, "TPU v6e", "tpu-v6e"},
    {CATALOG_GPUS, "TPU v6 lite", "tpu-v6e"},
    {CATALOG_GPUS, "Trillium", "tpu-v6e"},
    {CATALOG_GPUS, "Ironwood", "tpu-v7"},
    {CATALOG_GPUS, "TPU7x", "tpu-v7"},
    {CATALOG_GPUS, "TPU v7", "tpu-v7"},
    {CATALOG_GPUS, "HL-225", "gaudi2"},
    {CATALOG_GPUS, "HL-225H", "gaudi2"},
    {CATALOG_GPUS, "Intel Gaudi 2", "gaudi2"},
    {CATALOG_GPUS, "Intel Gaudi 2 AI accelerator", "gaudi2"},
    {CATALOG_GPUS, "Habana Gaudi2", "gaudi2"},
    {CATALOG_GPUS, "Gaudi3", "gaudi3"},
    {CATALOG_GPUS, "HL-325L", "gaudi3"},
    {CATALOG_GPUS, "trn1", "trainium1"},
    {CATALOG_GPUS, "AWS Trainium2", "trainium2"},
    {CATALOG_GPUS, "Trainium", "trainium1"},
    {CATALOG_GPUS, "Tesla V100-PCIE-16GB", "v100-16g-pcie"},
    {CATALOG_GPUS, "Tesla V100-PCIE-32GB", "v100-32g-pcie"},
    {CATALOG_GPUS, "Tesla V100S-PCIE-32GB", "v100s-pcie"},
    {CATALOG_GPUS, "NVIDIA A800 80GB PCIe", "a800-80g-pcie"},
    {CATALOG_GPUS, "NVIDIA A800-SXM4-80GB", "a800-80g-sxm"},
    {CATALOG_GPUS, "NVIDIA H800 PCIe", "h800-pcie"},
    {CATALOG_GPUS, "NVIDIA H800", "h800-sxm"},
    {CATALOG_GPUS, "NVIDIA GeForce RTX 3090", "rtx-3090"},
    {CATALOG_GPUS, "3090", "rtx-3090"},
    {CATALOG_GPUS, "RTX5090", "rtx-5090"},
    {CATALOG_GPUS, "NVIDIA GeForce RTX 5090", "rtx-5090"},
    {CATALOG_GPUS, "NVIDIA B100", "b100"},
    {CATALOG_GPUS, "AMD Instinct MI210", "mi210"},
    {CATALOG_GPUS, "MI100", "mi100"},
    {CATALOG_GPUS, "AMD Instinct MI350X", "mi350x"},
    {CATALOG_GPUS, "AMD Instinct MI250X", "mi250x"},
};

START_TEST(names_of_hubs_and_makers)
{
    struct diags diags = {0};
    struct alias_table table;
    ck_assert_int_eq(alias_table_load(&table, &diags), STATUS_OK);
    for (size_t i = 0; i < sizeof hub_names / sizeof hub_names[0]; i++) {
        const char *name = NULL;
        ck_assert_msg(alias_table_find(&table, hub_names[i].kind, hub_names[i].text, &name) != ALIAS_NONE, "%s",
                      hub_names[i].text);
        ck_assert_str_eq(name, hub_names[i].name);
    }
    alias_table_free(&table);
}
END_TEST

/* Lower case; punctuation as '-' between digits and not at all elsewhere; 80gb as 80g, sxm5 as sxm. */
static void fold(const char *text, char *folded)
{
    const char *before = "", *begin = folded;
    for (const char *c = text; *c; c++) {
        if (!isalnum((unsigned char)*c))
            continue;
        if (*before && before + 1 < c && isdigit((unsigned char)*before) && isdigit((unsigned char)*c))
            *folded++ = '-';
        *folded++ = (char)tolower((unsigned char)*c);
        before = c;
        bool ends = !isalnum((unsigned char)c[1]);
        if (ends && folded - begin > 2 && folded[-1] == 'b' && folded[-2] == 'g' && isdigit((unsigned char)folded[-3]))
            folded--;
        if (ends && folded - begin > 3 && isdigit((unsigned char)folded[-1]) && strncmp(folded - 4, "sxm", 3) == 0)
            folded--;
    }
    *folded = '\0';
}

/* Names and aliases of a kind, folded, all differ; every alias belongs to an entry that exists and leads to it. */
START_TEST(no_spelling_means_two_entries)
{
    enum { MAX = 1024 };
    static char seen[MAX][128];
    struct diags diags = {0};
    struct alias_table table;
    char **names;
    size_t n_names, n = 0, n_listed = 0, n_reached = 0;
    enum catalog_kind kind = (enum catalog_kind)_i;
    ck_assert_int_eq(alias_table_load(&table, &diags), STATUS_OK);
    ck_assert_int_eq(catalog_names(kind, &names, &n_names, &diags), STATUS_OK);
    for (size_t i = 0; i < n_names; i++) {
        const char *spelled[64];
        size_t n_spelled = alias_table_of(&table, kind, names[i], spelled, 64);
        ck_assert_uint_le(n_spelled, 64);
        fold(names[i], seen[n++]);
        for (size_t k = 0; k < n_spelled; k++, n_reached++) {
            const char *name = NULL;
            ck_assert_int_ne(alias_table_find(&table, kind, spelled[k], &name), ALIAS_NONE);
            ck_assert_msg(strcmp(name, names[i]) == 0, "%s means %s and %s", spelled[k], names[i], name);
            fold(spelled[k], seen[n++]);
        }
    }
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < i; j++)
            ck_assert_msg(strcmp(seen[i], seen[j]) != 0, "%s stands in two places", seen[i]);
    static const char *const keys[] = {"models", "gpus", "clusters"};
    for (const struct yaml_node *e = yaml_find(table.files[0], keys[kind])->first; e; e = e->next)
        for (const struct yaml_node *list = e->first; list; list = list->next)
            for (const struct yaml_node *item = list->first; item; item = item->next)
                n_listed++;
    ck_assert_uint_eq(n_listed, n_reached);
    names_free(names);
    alias_table_free(&table);
}
END_TEST

/* Only a short name that parts share is worth a note; the entry says its own name. */
START_TEST(the_usual_part_is_said)
{
    struct diags diags = {0};
    struct gpu gpu;
    struct cluster cluster;
    ck_assert_int_eq(catalog_gpu("NVIDIA H100 80GB HBM3", &gpu, &diags), STATUS_OK);
    ck_assert_str_eq(gpu.name, "h100-sxm");
    ck_assert_uint_eq(diags.n_items, 0);
    ck_assert_int_eq(catalog_cluster("a100-node", &cluster, &diags), STATUS_OK);
    ck_assert_str_eq(cluster.name, "a100-80g-sxm-node");
    char *words = said(&diags);
    ck_assert_str_eq(words, "note: 'a100' is ambiguous; msim uses a100-80g-sxm, the usual GPU of that name\n");
    free(words);
    diags_free(&diags);
}
END_TEST

/* A slip is nearest to a spelling that need not be the entry's own name. */
START_TEST(slips_in_other_spellings)
{
    static const struct {
        enum catalog_kind kind;
        const char *text, *near, *entry;
    } slips[] = {
        {CATALOG_GPUS, "H1000", "h100", "h100-sxm"},
        {CATALOG_GPUS, "h200-sxn", "h200-sxm", "h200-sxm"},
        {CATALOG_GPUS, "MI30O", "mi300", "mi300x"},
        {CATALOG_MODELS, "lama2-70b", "llama2-70b", "llama2-70b"},
        {CATALOG_MODELS, "nothing like any model", NULL, NULL},
    };
    struct alias_table table;
    struct diags diags = {0};
    ck_assert_int_eq(alias_table_load(&table, &diags), STATUS_OK);
    for (size_t i = 0; i < sizeof slips / sizeof slips[0]; i++) {
        const char *entry = NULL, *near = alias_table_nearest(&table, slips[i].kind, slips[i].text, &entry);
        ck_assert_msg(!near == !slips[i].near, "%s: %s", slips[i].text, near ? near : "nothing");
        ck_assert_pstr_eq(near, slips[i].near);
        ck_assert_pstr_eq(entry, slips[i].entry);
    }
    alias_table_free(&table);
    diags_free(&diags);
}
END_TEST

/* A repository's name is a model where there is no such file, and a missing file where there is no such model. */
START_TEST(a_hub_name_is_a_model)
{
    struct diags diags = {0};
    struct transformer model;
    static struct catalog_entry entry;
    ck_assert_int_eq(catalog_model("meta-llama/Llama-2-70b-hf", &model, &diags), STATUS_OK);
    ck_assert_str_eq(model.name, "llama2-70b");
    ck_assert_int_eq(catalog_entry("Qwen/Qwen3-30B-A3B", &entry, &diags), STATUS_OK);
    ck_assert_str_eq(entry.model.name, "qwen3-30b-a3b");
    ck_assert_uint_eq(diags.n_items, 0);
    ck_assert_int_eq(catalog_model("meta-llama/Llama-9", &model, &diags), STATUS_BAD_INPUT);
    ck_assert_int_eq(catalog_model("./meta-llama/Llama-2-70b-hf", &model, &diags), STATUS_BAD_INPUT);
    char *words = said(&diags);
    ck_assert_ptr_nonnull(strstr(words, "there is no file 'meta-llama/Llama-9', and the catalog has no entry of this name\n"));
    ck_assert_ptr_nonnull(strstr(words, "there is no file './meta-llama/Llama-2-70b-hf'\n"));
    free(words);
    diags_free(&diags);
}
END_TEST

/* One table row of each spelling: the same cluster of the catalog. */
START_TEST(a_machine_by_any_name)
{
    struct diags diags = {0};
    struct cluster exact, other;
    ck_assert_int_eq(cluster_of_gpu("h100-sxm", 16, 8, 50e9, &exact, &diags), STATUS_OK);
    ck_assert_int_eq(cluster_of_gpu("NVIDIA H100 80GB HBM3", 16, 8, 50e9, &other, &diags), STATUS_OK);
    ck_assert_str_eq(exact.name, other.name);
    ck_assert_str_eq(exact.gpu.name, other.gpu.name);
    diags_free(&diags);
}
END_TEST

static void write_aliases(const char *folder, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "%s/catalog", folder);
    mkdir(path, 0777);
    snprintf(path, sizeof path, "%s/catalog/aliases.yaml", folder);
    FILE *out = fopen(path, "w");
    ck_assert_ptr_nonnull(out);
    fputs(text, out);
    fclose(out);
}

/* The user's aliases come first and add to the program's; mistakes in them are placed. */
START_TEST(aliases_of_msim_data)
{
    char folder[] = "/tmp/msim-aliases-XXXXXX", path[256];
    struct diags diags = {0};
    struct gpu gpu;
    ck_assert_ptr_nonnull(mkdtemp(folder));
    setenv("MSIM_DATA", folder, 1);
    write_aliases(folder, "gpus:\n  b200: {also: [our-node]}\n  h100-pcie: {usual: [h100]}\n");
    ck_assert_int_eq(catalog_gpu("Our_Node", &gpu, &diags), STATUS_OK);
    ck_assert_str_eq(gpu.name, "b200");
    ck_assert_int_eq(catalog_gpu("h100", &gpu, &diags), STATUS_OK);
    ck_assert_str_eq(gpu.name, "h100-pcie");
    ck_assert_int_eq(catalog_gpu("a100-sxm4-40gb", &gpu, &diags), STATUS_OK);
    ck_assert_str_eq(gpu.name, "a100-40g-sxm");
    write_aliases(folder, "gpus:\n  b200: {also: ours}\n  b300: [ours]\n");
    ck_assert_int_eq(catalog_gpu("ours", &gpu, &diags), STATUS_BAD_INPUT);
    char *words = said(&diags);
    ck_assert_ptr_nonnull(strstr(words, "aliases.yaml:2:16: error: this must be a list of names"));
    ck_assert_ptr_nonnull(strstr(words, "aliases.yaml:3:9: error: the other names of an entry must be lists"));
    free(words);
    snprintf(path, sizeof path, "%s/catalog/aliases.yaml", folder);
    unlink(path);
    snprintf(path, sizeof path, "%s/catalog", folder);
    rmdir(path);
    rmdir(folder);
    unsetenv("MSIM_DATA");
    diags_free(&diags);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("catalog_alias");
    TCase *tests = tcase_create("all");
    tcase_add_test(tests, spellings_find_their_entry);
    tcase_add_test(tests, names_of_hubs_and_makers);
    tcase_add_loop_test(tests, no_spelling_means_two_entries, 0, N_CATALOG_KINDS);
    tcase_add_test(tests, the_usual_part_is_said);
    tcase_add_test(tests, slips_in_other_spellings);
    tcase_add_test(tests, a_hub_name_is_a_model);
    tcase_add_test(tests, a_machine_by_any_name);
    tcase_add_test(tests, aliases_of_msim_data);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
