/* Every kind of mistake in an experiment file: where it is and what is said about it, word for word. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/memory.h"
#include "tests/spec/said.h"
#include "tests/suite.h"

#define GOOD "model: tiny-gpt\ncluster: a100-80g-sxm-node\n"

static const struct {
    const char *text, *said;
} mistakes[] = {
    {"modle: tiny-gpt\nmodel: tiny-gpt\ncluster: a100-80g-sxm-node\njob: {global_batch: 8}\n",
     "t.yaml:1:1: error: unknown key 'modle' in experiment; did you mean 'model'?\n"},
    {GOOD "job: {global_batch: 8, glubal_batch: 8}\n",
     "t.yaml:3:24: error: unknown key 'glubal_batch' in job; did you mean 'global_batch'?\n"},
    {GOOD "job: {global_batch: 8}\nlayout: {tp: 2, pq: 4}\n",
     "t.yaml:4:17: error: unknown key 'pq' in layout; did you mean 'pp'?\n"},
    {"model: tiny-gtp\ncluster: a100-80g-sxm-node\njob: {global_batch: 8}\n",
     "t.yaml:1:8: error: unknown model 'tiny-gtp'; did you mean 'tiny-gpt'?\n"},
    {"model: tiny-gpt\ncluster: megascale-a10\njob: {global_batch: 8}\n",
     "t.yaml:2:10: error: unknown cluster 'megascale-a10'; did you mean 'megascale-a100'?\n"},
    {"model: tiny-gpt\ncluster: {base: a100-80g-sxm-node, gpu: a100-80g-smx}\njob: {global_batch: 8}\n",
     "t.yaml:2:41: error: unknown GPU 'a100-80g-smx'; did you mean 'a100-80g-sxm'?\n"},
    {"model: {base: tiny-gpt, layers: -3}\ncluster: a100-80g-sxm-node\njob: {global_batch: 8}\n",
     "t.yaml:1:33: error: layers: -3 is too small; it must be at least 1\n"},
    {"model: {base: tiny-gpt, layers: 1e6}\ncluster: a100-80g-sxm-node\njob: {global_batch: 8}\n",
     "t.yaml:1:33: error: layers: 1e6 is too large; it must be at most 10k\n"},
    {"model: {base: tiny-gpt, heads: 3}\ncluster: a100-80g-sxm-node\njob: {global_batch: 8}\n",
     "t.yaml:1:32: error: heads: hidden 256 is not a multiple of 3 heads; change one, or specify head_dim\n"},
    {"model: {base: tiny-gpt, kv_heads: 3}\ncluster: a100-80g-sxm-node\njob: {global_batch: 8}\n",
     "t.yaml:1:35: error: kv_heads: 8 heads cannot share 3 key/value heads evenly\n"},
    {"model: {layers: 2, hidden: 8, heads: 2}\ncluster: a100-80g-sxm-node\njob: {global_batch: 8}\n",
     "t.yaml:1:8: error: model: 'vocab' is missing (rows of the embedding table)\n"
     "t.yaml:1:8: error: model: 'max_seq_len' is missing (default sequence length; rows of a learned position table)\n"},
    {"model: {base: mixtral-8x7b, moe: {top_k: 9}}\ncluster: megascale-a100\njob: {global_batch: 8}\n",
     "t.yaml:1:42: error: top_k: 9 experts per token exceed the 8 experts\n"},
    {"model: {base: nemotron-h-8b, layer_pattern: M-x}\ncluster: megascale-a100\njob: {global_batch: 8}\n",
     "t.yaml:1:45: error: layer_pattern: letter 3 is 'x'; it must be a, m, p (a mixer and a feed-forward part), or *, M, -, E "
     "(one of them alone)\n"},
    {"model: {base: nemotron-h-8b, layer_pattern: M-E}\ncluster: megascale-a100\njob: {global_batch: 8}\n",
     "t.yaml:1:45: error: layer_pattern: letter 3 is 'E', which needs the group 'moe'\n"},
    {"model: {base: nemotron-h-8b, layer_pattern: M-*}\ncluster: megascale-a100\njob: {global_batch: 8}\n",
     "t.yaml:1:45: error: layer_pattern: 3 letters, repeated, do not add up to 52 layers\n"},
    {"model: {base: nemotron-h-8b, moe: {experts: 8, top_k: 2, expert_ffn: 64}}\ncluster: megascale-a100\njob: "
     "{global_batch: 8}\n",
     "t.yaml:1:35: error: no layer is a mixture: the model has 52 layers by the pattern "
     "M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M-, the first 0 stay dense, then one in 1\n"},
    {"model: {base: nemotron-h-8b, mixer: {groups: 7}}\ncluster: megascale-a100\njob: {global_batch: 8}\n",
     "t.yaml:1:46: error: groups: 128 heads cannot be divided into 7 equal groups\n"},
    {"model: {base: tiny-gpt, mixer: {kind: mamba2, heads: 4, state: 8, head_dim: 8}}\ncluster: megascale-a100\njob: "
     "{global_batch: "
     "8}\n",
     "t.yaml:1:32: error: mixer: no layer uses it; add `layer_pattern`, such as mmma\n"},
    {"model: {base: tiny-gpt, experts: 8}\ncluster: a100-80g-sxm-node\njob: {global_batch: 8}\n",
     "t.yaml:1:25: error: unknown key 'experts' in model; it belongs to the group 'moe': `moe: {experts: ...}`\n"},
    {"model: {base: tiny-gpt, num_experts: 8, position: ropey}\ncluster: a100-80g-sxm-node\njob: {global_batch: 8}\n",
     "t.yaml:1:51: error: position: unknown 'ropey'; one of learned, rotary, alibi or none\n"
     "t.yaml:1:25: error: unknown key 'num_experts' in model; of a mixture write `moe: {experts: ..., top_k: ..., expert_ffn: "
     "...}`\n"},
    {"model: tiny-gpt\ncluster: {base: a100-80g-sxm-node, nodes: 8, spine_oversubscription: 2}\njob: {global_batch: 8}\n",
     "t.yaml:2:46: error: unknown key 'spine_oversubscription' in cluster; between leaf and spine, of two layers, it is "
     "`leaf_oversubscription`, down : up of a leaf\n"},
    {"model: tiny-gpt\ncluster: {base: a100-80g-sxm-node, nodes: 4096, spine_oversubscription: 2}\njob: {global_batch: 8}\n",
     "t.yaml:2:49: error: unknown key 'spine_oversubscription' in cluster; between aggregation and core, of three layers, it is "
     "`pod_oversubscription`; `leaf_oversubscription` is below\n"},
    {"model: tiny-gpt\ncluster: {base: a100-80g-sxm-node, nodes: 8, fabric_layers: 3, core_oversubscription: 2, rails: "
     "maybe}\njob: {global_batch: 8}\n",
     "t.yaml:2:64: error: unknown key 'core_oversubscription' in cluster; between aggregation and core, of three layers, it is "
     "`pod_oversubscription`; `leaf_oversubscription` is below\n"
     "t.yaml:2:97: error: rails: unknown 'maybe'; one of auto, no or yes\n"},
    {"model: tiny-gpt\ncluster: {base: frontier, taper: 2}\njob: {global_batch: 8}\n",
     "t.yaml:2:27: error: unknown key 'taper' in cluster; of a dragonfly it follows from `endpoints_per_switch`, "
     "`global_links_per_switch` and `link_rate`\n"},
    {"model: tiny-gpt\ncluster: {base: a100-80g-sxm-node, gpu: {nvlink_rate: 900G}}\njob: {global_batch: 8}\n",
     "t.yaml:2:55: error: nvlink_rate: '900G' could be bits or bytes; write 900Gbps or 900GB/s\n"},
    {"model: tiny-gpt\ncluster: {base: a100-80g-sxm-node, topology: torus}\njob: {global_batch: 8}\n",
     "t.yaml:2:46: error: topology: unknown 'torus'; one of clos or dragonfly\n"},
    {"model: tiny-gpt\ncluster: {base: a100-80g-sxm-node, groups: 4, global_links: 2}\njob: {global_batch: 8}\n",
     "t.yaml:2:44: error: groups: this key needs `topology: dragonfly`; null removes it\nt.yaml:2:61: error: global_links: this "
     "key needs `topology: dragonfly`; null removes it\n"},
    {"model: tiny-gpt\ncluster: {base: a100-80g-sxm-node, topology: dragonfly, leaf_nodes: 4, planes: 2}\njob: {global_batch: "
     "8}\n",
     "t.yaml:2:69: error: leaf_nodes: this key belongs to a Clos fabric, not to a dragonfly (switches_per_group, "
     "endpoints_per_switch, global_links); null removes it\nt.yaml:2:80: error: planes: this key belongs to a Clos fabric, not "
     "to a dragonfly (switches_per_group, endpoints_per_switch, global_links); null removes it\n"},
    {"model: tiny-gpt\ncluster: {base: a100-80g-sxm-node, nodes: 5000, topology: dragonfly, groups: 9}\njob: {global_batch: 8}\n",
     "t.yaml:2:78: error: groups: 5000 nodes fill 79 groups, not 9; null computes their number\n"},
    {"model: tiny-gpt\ncluster: {base: a100-80g-sxm-node, nodes: 50000, topology: dragonfly, global_links_per_switch: 2}\njob: "
     "{global_batch: 8}\n",
     "t.yaml:2:96: error: global_links_per_switch: 32 switches with 2 each have 64, too few to reach 781 other groups\n"},
    {"model: tiny-gpt\ncluster: {base: a100-80g-sxm-node, nodes: 1000, topology: dragonfly, global_links: 9, "
     "global_links_per_switch: 4}\njob: {global_batch: 8}\n",
     "t.yaml:2:84: error: global_links: 9 to each of 15 other groups exceed the 128 that 32 switches with 4 each have\n"},
    {"model: tiny-gpt\ncluster: {base: a100-80g-sxm-node, topology: dragonfly, rails: yes, switches_per_group: 12}\njob: "
     "{global_batch: 8}\n",
     "t.yaml:2:89: error: switches_per_group: 12 is not a multiple of the 8 switches that the NIC ports of a node connect to "
     "(`rails: no`: one)\n"},
    {"model: tiny-gpt\ncluster: {base: a100-80g-sxm-node, topology: dragonfly, rails: no, endpoints_per_switch: 12}\njob: "
     "{global_batch: 8}\n",
     "t.yaml:2:90: error: endpoints_per_switch: 12 NIC ports are not a multiple of the 8 that each node uses; or set `rails: "
     "yes`, one switch for each\n"},
    {"model: tiny-gpt\ncluster: {base: a100-80g-sxm-node, nic_rate: 200}\njob: {global_batch: 8}\n",
     "t.yaml:2:46: error: nic_rate: '200' has no unit; write a data rate such as 200Gbps or 900GB/s\n"},
    {"model: tiny-gpt\ncluster: {base: a100-80g-sxm-node, nic_rate: 200s}\njob: {global_batch: 8}\n",
     "t.yaml:2:46: error: nic_rate: 's' is not a unit of a data rate; write for example 200Gbps or 900GB/s\n"},
    {"model: tiny-gpt\ncluster: {base: megascale-a100, gpus: 12289}\njob: {global_batch: 8}\n",
     "t.yaml:2:39: error: gpus: 12289 exceed the 12288 of the cluster (1536 nodes of 8); --gpus 12288 uses all of it, --set "
     "cluster.nodes=1537 makes it large enough\n"},
    {"model: tiny-gpt\ncluster: {base: alps, groups: 21, gpus: 12289}\njob: {global_batch: 8}\n",
     "t.yaml:2:41: error: gpus: 12289 exceed the 10752 of the cluster (2688 nodes of 4); --gpus 10752 uses all of it, --set "
     "cluster.nodes=3073 --set cluster.groups=null makes it large enough\n"},
    {"model: tiny-gpt\ncluster: {base: megascale-a100, gpus: 100}\njob: {global_batch: 8}\n",
     "t.yaml:2:39: error: gpus: 100 do not fill nodes of 8; use 96 or 104\n"},
    {"model: tiny-gpt\ncluster: {base: megascale-a100, gpus: 3}\njob: {global_batch: 8}\n",
     "t.yaml:2:39: error: gpus: a node of 8 GPUs cannot be shared evenly by jobs of 3; use a divisor of 8\n"},
    {"model: tiny-gpt\ncluster: {base: megascale-a100, gpus: 0}\njob: {global_batch: 8}\n",
     "t.yaml:2:39: error: gpus: 0 is too small; it must be at least 1\n"},
    {GOOD "job: {global_batch: -6144}\n", "t.yaml:3:21: error: global_batch: -6144 is too small; it must be at least 1\n"},
    {GOOD "job: {global_batch: 2.5}\n", "t.yaml:3:21: error: global_batch: 2.5 is not a whole number\n"},
    {GOOD "job: {global_batch: 8, precision: bf61}\n",
     "t.yaml:3:35: error: precision: unknown 'bf61'; did you mean 'bf16'? (fp32, bf16, fp16, fp8, mxfp8 or nvfp4)\n"},
    {GOOD "job: {global_batch: 8, precision: fp8}\n",
     "t.yaml:3:35: error: precision: a100-80g-sxm has no fp8; `msim catalog show a100-80g-sxm` lists its peaks\n"},
    {GOOD "job: {global_batch: 8, gradient_precision: fp8}\n",
     "t.yaml:3:44: error: gradient_precision: unknown 'fp8'; one of fp32, bf16 or fp16\n"},
    {GOOD "job: {global_batch: 8, features: [flash_atention2]}\n",
     "t.yaml:3:35: error: features: unknown 'flash_atention2'; did you mean 'flash_attention2'?\n"},
    {GOOD "job: {global_batch: 8, features: {a: b}}\n",
     "t.yaml:3:34: error: features is a mapping; it must be a list of names\n"},
    {GOOD "job: {global_batch: 8, optimizer: [adam]}\n",
     "t.yaml:3:35: error: optimizer is a sequence; it must be a single value\n"},
    {GOOD "job: [global_batch]\n", "t.yaml:3:6: error: job is a sequence; it must be a mapping of keys to values\n"},
    {GOOD "job: {global_batch: 8}\njob: {global_batch: 9}\n", "t.yaml:4:1: error: 'job' is given twice; first on line 3\n"},
    {GOOD "job:\n  global_batch: 8\n  global_batch: 9\n", "t.yaml:5:3: error: 'global_batch' is given twice; first on line 4\n"},
    {GOOD "job: {global_batch: 8}\nlayout: tp=8,pp=x\n",
     "t.yaml:4:17: error: pp: 'x' is not a number; write for example 6144 or 300B\n"},
    {GOOD "job: {global_batch: 8}\nlayout: tp=8, qq\n",
     "t.yaml:4:15: error: layout: 'qq' is neither key=value nor a short form of one; write for example tp=8,pp=8,vpp=6,mb=1, or "
     "tp8 pp8 vpp6 mb1, or auto, or auto,pp=2\n"},
    {GOOD "job: {global_batch: 8}\nlayout: tp8 z1/0x pp=2\n",
     "t.yaml:4:13: error: layout: 'z1/0x' is neither key=value nor a short form of one; write for example tp=8,pp=8,vpp=6,mb=1, "
     "or tp8 pp8 vpp6 mb1, or auto, or auto,pp=2\n"},
    {GOOD "job: {global_batch: 8}\nlayout: tp8 pp2,\n", "t.yaml:4:17: error: layout: 'tp8 pp2,' ends with a comma\n"},
    {GOOD "job: {global_batch: 8}\nlayout: tp8  ppp2\n", "t.yaml:4:14: error: unknown key 'ppp' in layout; did you mean 'pp'?\n"},
    {GOOD "job: {global_batch: 8}\nlayout: tp8 mb0\n",
     "t.yaml:4:15: error: micro_batch: 0 is too small; it must be at least 1\n"},
    {GOOD "job: {global_batch: 8}\nlayout: {mb: 1, micro_batch: 1}\n",
     "t.yaml:4:17: error: layout: 'micro_batch' is given twice\n"},
    {GOOD "job: {global_batch: 8}\nlayout: tp=1,tp=2\n", "t.yaml:4:14: error: layout: 'tp' is given twice\n"},
    {GOOD "job: {global_batch: 8}\nlayout: {tp: 0}\n", "t.yaml:4:14: error: tp: 0 is too small; it must be at least 1\n"},
    {GOOD "job: {global_batch: 8}\nlayout: {schedule: interleave}\n",
     "t.yaml:4:20: error: schedule: unknown 'interleave'; did you mean 'interleaved'? (none, gpipe, 1f1b, interleaved, zb-1p, "
     "zb-2p, "
     "zb-v, dualpipe or dualpipe-v)\n"},
    {GOOD "job: {global_batch: 8}\nfaults: {horizon: 54}\n",
     "t.yaml:4:19: error: horizon: '54' has no unit; write a time such as 30min, 900s or 14d\n"},
    {GOOD "job: {global_batch: 8}\nfaults: {checkpoint_interval: 30min, checkpoint_steps: 100}\n",
     "t.yaml:4:56: error: checkpoint_steps: checkpoint_interval already sets the interval; keep one\n"},
    {"cluster: a100-80g-sxm-node\njob: {global_batch: 8}\n",
     "t.yaml:1:1: error: experiment: 'model' is missing (set with --model NAME or `model:` in the file)\n"},
    {"model:\ncluster: a100-80g-sxm-node\njob: {global_batch: 8}\n",
     "t.yaml:1:1: error: 'model' has no value (set with --model NAME or `model:` in the file)\n"},
    {"model: tiny-gpt\ncluster: {base: a100-80g-sxm-node, base: x}\njob: {global_batch: 8}\n",
     "t.yaml:2:36: error: 'base' is given twice; first on line 2\n"},
    {GOOD "job: {global_batch: 8}\nfaults:\n  horizon:\n    '54'\n",
     "t.yaml:6:5: error: horizon: '54' has no unit; write a time such as 30min, 900s or 14d\n"},
    {"model: tiny-gpt\ncluster: ~\njob: {global_batch: 8}\n",
     "t.yaml:2:10: error: 'cluster' has no value (set with --cluster NAME, --gpu NAME or `cluster:` in the file)\n"},
    {"[1, 2]\n",
     "t.yaml:1:1: error: an experiment must be a mapping with the keys model, cluster, job, layout; this is a sequence\n"},
    {"model_type: llama\n",
     "t.yaml:1:1: error: this is a model (a Hugging Face config.json), not an experiment; specify it with --model\n"},
    {"model: &m tiny-gpt\ncluster: *m\n",
     "t.yaml:2:10: error: aliases (*name) are not supported; repeat the value, or use `base:`\n"},
    {"model: tiny-gpt\n---\nmodel: tiny-gpt\n",
     "t.yaml:2:1: error: the file has a second document (`---`); it must hold only one\n"},
    {"? [a, b]\n: c\n", "t.yaml:1:3: error: a key must be a name, not a mapping or a sequence\n"},
    {"model: {a: [b\n", "t.yaml:2:1: error: not valid YAML or JSON: flow sequence without a closing bracket\n"},
    {"\n  \n", "t.yaml: error: the file is empty\n"},
    {"# nothing\n", "t.yaml: error: the file contains only comments\n"},
    {"model: tiny\x01gpt\n", "t.yaml:1:12: error: byte 0x01 is not text; is this a binary file?\n"},
    {"model: caf\xe9\n", "t.yaml:1:11: error: byte 0xe9 is not text; is this a binary file?\n"},
    {"model: \"a\\0b\"\n", "t.yaml:1:8: error: a value contains a NUL character\n"},
};

START_TEST(a_mistake_is_located_and_explained)
{
    enum status status;
    char *words = said_of_text(mistakes[_i].text, &status);
    ck_assert_str_eq(words, mistakes[_i].said);
    ck_assert_int_eq(status, STATUS_BAD_INPUT);
    free(words);
}
END_TEST

/* Words that mean one thing only are taken: of ports, of truth, of papers and configurations. */
START_TEST(words_of_one_meaning)
{
    static const struct {
        const char *written, *usual;
    } same[] = {{"cluster: {base: dgx-h100, nic_rate: 200G}", "cluster: {base: dgx-h100, nic_rate: 200Gbps}"},
                {"cluster: {base: dgx-h100, nic_rate: 0.2T}", "cluster: {base: dgx-h100, nic_rate: 25GB/s}"},
                {"cluster: {base: dgx-h100, nic_rate: 200Gbit/s}", "cluster: {base: dgx-h100, nic_rate: 200Gbps}"},
                {"cluster: {base: llama3-h100, rails: true}", "cluster: {base: llama3-h100, rails: yes}"},
                {"cluster: {base: dgx-h100, rails: off}", "cluster: {base: dgx-h100, rails: no}"},
                {"cluster: dgx-h100\nmodel: {base: tiny-gpt, position: rope}",
                 "cluster: dgx-h100\nmodel: {base: tiny-gpt, position: rotary}"},
                {"cluster: dgx-h100\nmodel: {base: tiny-gpt, norm: rmsnorm, gated_mlp: yes}",
                 "cluster: dgx-h100\nmodel: {base: tiny-gpt, norm: rms, gated_mlp: true}"}};
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        char *written[2];
        for (int k = 0; k < 2; k++) {
            char text[256];
            struct experiment e;
            struct diags diags = {0};
            const char *cluster = k ? same[i].usual : same[i].written;
            snprintf(text, sizeof text, "%s%s\njob: {global_batch: 8}\n", strstr(cluster, "model:") ? "" : "model: tiny-gpt\n",
                     cluster);
            enum status status = experiment_parse_text("t.yaml", text, strlen(text), &e, &diags);
            char *words = said(&diags);
            ck_assert_msg(status == STATUS_OK && !*words, "%s: %s", text, words);
            written[k] = experiment_to_json(&e);
            free(words);
            diags_free(&diags);
        }
        ck_assert_str_eq(written[0], written[1]);
        free(written[0]);
        free(written[1]);
    }
}
END_TEST

/* Oversubscription of a layer that is not there does nothing, which is said; of one that is there, nothing is. */
START_TEST(oversubscription_of_no_layer)
{
    static const struct {
        const char *keys, *told;
    } cases[] = {
        {"fabric_layers: 2, pod_oversubscription: 7",
         "t.yaml:2:86: warning: pod_oversubscription: no effect in a fabric of 2 layers; use `leaf_oversubscription` between "
         "leaf and spine, or set `fabric_layers: 3` for a core\n"},
        {"fabric_layers: 1, leaf_oversubscription: 2",
         "t.yaml:2:87: warning: leaf_oversubscription: no effect, because all nodes are under one layer of switches; for spines, "
         "set `fabric_layers: 2`\n"},
        {"fabric_layers: 2, leaf_oversubscription: 2", ""},
        {"fabric_layers: 3, pod_oversubscription: 7, leaf_oversubscription: 2", ""},
        {"fabric_layers: 1, leaf_oversubscription: 1", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[256];
        enum status status;
        snprintf(text, sizeof text, "model: tiny-gpt\ncluster: {base: a100-80g-sxm-node, nodes: 8, %s}\njob: {global_batch: 8}\n",
                 cases[i].keys);
        char *words = said_of_text(text, &status);
        ck_assert_int_eq(status, STATUS_OK);
        ck_assert_str_eq(words, cases[i].told);
        free(words);
    }
}
END_TEST

/* One run shows them all, in the order of the parts. */
START_TEST(several_mistakes_at_once)
{
    enum status status;
    char *words = said_of_text("model: {base: tiny-gpt, layers: 0}\n"
                               "cluster: {base: a100-80g-sxm-node, fabrik: roce, gpu: {hbm_rate: 3}}\n"
                               "job: {global_batch: 8s, precision: fp9, features: [a, tp_overlap, b]}\n"
                               "layout: {tp: 3.5}\n",
                               &status);
    int lines = 0;
    for (const char *p = words; *p; p++)
        lines += *p == '\n';
    ck_assert_int_eq(lines, 8);
    ck_assert_ptr_nonnull(strstr(words, "t.yaml:2:66: error: hbm_rate: '3' has no unit"));
    ck_assert_int_eq(status, STATUS_BAD_INPUT);
    free(words);
}
END_TEST

/* On failure the result keeps what it held. */
START_TEST(nothing_is_written_on_failure)
{
    struct diags diags = {0};
    struct experiment *experiment = memory_new(1, sizeof *experiment);
    const char *text = GOOD "job: {global_batch: x}\n";
    experiment->gpus = 77;
    ck_assert_int_eq(experiment_parse_text("t", text, strlen(text), experiment, &diags), STATUS_BAD_INPUT);
    ck_assert_int_eq(experiment->gpus, 77);
    ck_assert_int_eq(experiment->job.global_batch, 0);
    diags_free(&diags);
    free(experiment);
}
END_TEST

static char *repeat(const char *text, size_t times)
{
    size_t n = strlen(text);
    char *all = memory_new(n * times + 1, 1);
    for (size_t i = 0; i < times; i++)
        memcpy(all + n * i, text, n);
    return all;
}

/* Floods end quickly with a sentence, not with a crash. */
START_TEST(floods_are_refused)
{
    static const struct {
        const char *unit, *said;
        size_t times;
    } floods[] = {
        {"[", "the nesting is too deep", 100000},    {"{a: ", "the nesting is too deep", 100000},
        {"- ", "the nesting is too deep", 50000},    {"b: 1\n", " more)", 2000},
        {"0123456789", "larger than 2 MiB", 500000},
    };
    enum status status;
    char *text = repeat(floods[_i].unit, floods[_i].times);
    char *words = said_of_text(text, &status);
    ck_assert_ptr_nonnull(strstr(words, floods[_i].said));
    ck_assert_int_eq(status, STATUS_BAD_INPUT);
    free(words);
    free(text);
}
END_TEST

START_TEST(a_mapping_has_an_end)
{
    char *text = NULL;
    size_t n;
    enum status status;
    FILE *out = open_memstream(&text, &n);
    for (int i = 0; i < 3000; i++)
        fprintf(out, "k%d: 1\n", i);
    fclose(out);
    char *words = said_of_text(text, &status);
    ck_assert_str_eq(words, "t.yaml:2049:1: error: one mapping has too many keys; is this the right file?\n");
    free(words);
    free(text);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("diagnostics");
    TCase *tests = tcase_create("all");
    tcase_add_loop_test(tests, a_mistake_is_located_and_explained, 0, (int)(sizeof mistakes / sizeof mistakes[0]));
    tcase_add_test(tests, several_mistakes_at_once);
    tcase_add_test(tests, words_of_one_meaning);
    tcase_add_test(tests, oversubscription_of_no_layer);
    tcase_add_test(tests, nothing_is_written_on_failure);
    tcase_add_loop_test(tests, floods_are_refused, 0, 5);
    tcase_add_test(tests, a_mapping_has_an_end);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
