# mixtral-8x7b on 512 x h100-sxm (dgx-h100) with NeMo 2, by msim 0.1.0. Add data and tokenizer.
# layout tp=2,cp=1,pp=4,vpp=4,dp=64,ep=8,mb=1,zero=1,sp=1,recompute=none,schedule=interleaved
# predicted: 8.429 s a step
import nemo_run as run
from nemo.collections import llm
from nemo.lightning.pytorch.callbacks.megatron_comm_overlap import MegatronCommOverlapCallback

recipe = llm.mixtral_8x7b.pretrain_recipe(name="mixtral-8x7b", num_nodes=64, num_gpus_per_node=8)
recipe.data.global_batch_size = 512
recipe.data.micro_batch_size = 1
recipe.data.num_workers = 2
recipe.data.seq_length = 32768
recipe.model.config.add_bias_linear = False
recipe.model.config.add_qkv_bias = False
recipe.model.config.attention_dropout = 0
recipe.model.config.bias_activation_fusion = True
recipe.model.config.bias_dropout_fusion = True
recipe.model.config.cpu_offloading = False
recipe.model.config.cpu_offloading_num_layers = 0
recipe.model.config.cross_entropy_fusion_impl = "native"
recipe.model.config.cross_entropy_loss_fusion = True
recipe.model.config.enable_cuda_graph = False
recipe.model.config.ffn_hidden_size = 14336
recipe.model.config.gated_linear_unit = True
recipe.model.config.hidden_dropout = 0
recipe.model.config.hidden_size = 4096
recipe.model.config.kv_channels = None
recipe.model.config.make_vocab_size_divisible_by = 128
recipe.model.config.moe_expert_capacity_factor = None
recipe.model.config.moe_ffn_hidden_size = 14336
