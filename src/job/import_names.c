// SPDX-License-Identifier: MIT
// Lists the names and values of options in Hugging Face, Megatron and torchtitan (struct import_name).
#include <string.h>

#include "internal.h"

#define YES_NO "true=yes false=no"
static const struct import_name import_names[] = {
    // Rows for the sizes of a model.
    {"num_layers num_hidden_layers n_layer n_layers", "model.layers", NULL},
    {"hidden_size n_embd d_model", "model.hidden", NULL},
    {"num_attention_heads n_head n_heads", "model.heads", NULL},
    {"num_query_groups num_key_value_heads n_kv_heads", "model.kv_heads", NULL},
    {"kv_channels head_dim qk_nope_head_dim qk_head_dim attention_head_dim", "model.head_dim", NULL},
    {"q_lora_rank", "model.q_rank", NULL},
    {"kv_lora_rank", "model.kv_rank", NULL},
    {"qk_rope_head_dim qk_pos_emb_head_dim", "model.rope_dim", NULL},
    {"v_head_dim", "model.value_dim", NULL},
    {"ffn_hidden_size intermediate_size", "model.ffn", NULL},
    {"vocab_size", "model.vocab", NULL},
    {"padded_vocab_size pad_vocab_size_to", NULL, NULL},
    {"make_vocab_size_divisible_by", "model.vocab_multiple", NULL},
    // Rows for the composition of a layer.
    {"hidden_act", "model.activation", "silu=swiglu gelu=gelu gelu_new=gelu gelu_pytorch_tanh=geglu relu2=relu2"},
    {"mlp_hidden_act", "model.activation", "relu2=relu2"},
    {"swiglu quick_geglu", "model.activation", "true=swiglu false="},
    {"squared_relu", "model.activation", "true=relu2 false="},
    {"normalization", "model.norm", "RMSNorm=rmsnorm LayerNorm=layernorm"},
    {"apply_layernorm_1p", NULL, "true= false="},
    {"norm_epsilon layernorm_epsilon rms_norm_eps layer_norm_epsilon", "model.norm_epsilon", NULL},
    {"init_method_std initializer_range", "model.init_deviation", NULL},
    {"position_embedding_type", "model.positions",
     "rope=rotary rotary=rotary yarn=rotary learned_absolute=learned alibi=alibi none=none"},
    {"use_rotary_position_embeddings enable_gpt_oss", "model.positions", "true=rotary false="},
    {"max_position_embeddings", NULL, NULL},
    {"rotary_base rope_theta", "model.rope_theta", NULL},
    {"rotary_percent partial_rotary_factor", "model.rope_fraction", NULL},
    {"untie_embeddings_and_output_weights", "model.tied", "true=no false=yes"},
    {"tie_word_embeddings", "model.tied", YES_NO},
    {"qk_layernorm", "model.qk_norm", YES_NO},
    {"add_qkv_bias attention_bias", "model.attention_bias", YES_NO},
    {"mlp_bias", "model.mlp_bias", YES_NO},
    {"mtp_num_layers num_nextn_predict_layers", "model.predicted_tokens", NULL},
    {"hybrid_override_pattern hybrid_layer_pattern", "model.pattern", NULL},
    {"mtp_use_repeated_layer", "model.repeat_prediction", YES_NO},
    {"softmax_type", "model.attention_sinks", "vanilla=no learnable=yes"},
    {"window_size window_attn_skip_freq layer_types layers_block_type mtp_layers_block_type "
     "mtp_hybrid_override_pattern",
     NULL, NULL},
    {"mamba_num_heads", "model.mamba_heads", NULL},
    {"mamba_head_dim", "model.mamba_head_dim", NULL},
    {"mamba_state_dim ssm_state_size", "model.mamba_state", NULL},
    {"mamba_num_groups n_groups", "model.mamba_groups", NULL},
    {"conv_kernel", "model.mamba_conv", NULL},
    {"chunk_size", "model.mamba_chunk", NULL},
    // Rows for experts.
    {"num_experts num_local_experts n_routed_experts", "model.experts", NULL},
    {"moe_router_topk num_experts_per_tok", "model.top_k", NULL},
    {"moe_ffn_hidden_size moe_intermediate_size", "model.expert_ffn", NULL},
    {"moe_latent_size", "model.expert_hidden", NULL},
    {"moe_shared_expert_intermediate_size", "model.shared_ffn", NULL},
    {"moe_router_score_function scoring_func", "model.router_score", "softmax=softmax sigmoid=sigmoid"},
    {"moe_apply_probs_on_input export_moe_apply_probs_on_input", "model.router_gates", "true=input false="},
    {"norm_topk_prob", "model.router_normalise", YES_NO},
    {"moe_router_num_groups n_group", "model.router_groups", NULL},
    {"moe_router_group_topk topk_group", "model.router_top_groups", NULL},
    {"moe_router_topk_scaling_factor routed_scaling_factor", "model.router_scale", NULL},
    {"moe_router_bias_update_rate", "model.router_bias_rate", NULL},
    {"moe_expert_capacity_factor", "model.capacity_factor", NULL},
    {"moe_aux_loss_coeff router_aux_loss_coef", "model.auxiliary_loss", NULL},
    {"moe_router_force_load_balancing", "train.routing", "true=balanced false="},
    // Rows for the parallel layout.
    {"tensor_model_parallel_size tensor_parallel_degree tensor_parallel_size tensor_parallel", "parallel.tp", NULL},
    {"pipeline_model_parallel_size pipeline_parallel_degree pipeline_parallel_size pipeline_parallel", "parallel.pp",
     NULL},
    {"virtual_pipeline_model_parallel_size virtual_pipeline_parallel num_virtual_stages_per_pipeline_rank",
     "parallel.vp", NULL},
    {"pipeline_parallel_schedule", "parallel.schedule", "1F1B=1f1b Interleaved1F1B=1f1b"},
    {"enable_zero_bubble", "parallel.schedule", "true=zero-bubble false=1f1b"},
    {"context_parallel_size context_parallel_degree context_parallel", "parallel.cp", NULL},
    {"cp_comm_type", "parallel.context", "p2p=ring a2a=exchange allgather=gather"},
    {"expert_model_parallel_size expert_parallel_degree expert_parallel", "parallel.ep", NULL},
    {"expert_tensor_parallel_size expert_tensor_parallel_degree", "parallel.etp", NULL},
    {"fsdp_reshard_after_forward", "parallel.reshard", "default= always=always never=never"},
    {"data_parallel_shard_degree", "parallel.fsdp", "-1=auto *"},
    {"data_parallel_replicate_degree data_parallel_size", "parallel.dp", NULL},
    {"context_parallel_rotate_method", "parallel.context", "allgather=gather alltoall=ring"},
    {"decoder_last_pipeline_num_layers", "parallel.last_chunk_layers", NULL},
    {"sequence_parallel", "parallel.sequence_parallel", YES_NO},
    {"use_distributed_optimizer", "parallel.zero", "true=1 false=0"},
    {"overlap_param_gather", "parallel.zero_gather", "true=forward false="},
    {"tp_comm_overlap enable_async_tensor_parallel", "parallel.tp_overlap", YES_NO},
    // Rows for batch, recompute and optimizer.
    {"seq_length seq_len encoder_seq_length sequence_length seq", "train.sequence", NULL},
    {"micro_batch_size local_batch_size training.batch_size mbs", "train.micro_batch", NULL},
    {"global_batch_size", "train.global_batch", "-1=auto *"},
    {"batch_size gbs", "train.global_batch", NULL},
    {"overlap_moe_expert_parallel_comm", "train.overlap_microbatches", "true=yes false="},
    {"delay_wgrad_compute", "train.delay_weight_gradients", "true=yes false="},
    {"checkpoint_activations", "train.recompute", "true=full false="},
    {"recompute_granularity", "train.recompute", "full=full selective=attention"},
    {"recompute_activations", "train.recompute", "true=attention false="},
    {"activation_checkpoint.mode", "train.recompute", "none=none full=full selective=selective"},
    {"learning_rate optimizer.lr lr", "train.learning_rate", NULL},
    {"optimizer.name", "train.optimizer", "Adam=adamw AdamW=adamw"},
    {"optimizer", "train.optimizer", "adam=adamw adamw=adamw muon=muon dist_muon=muon"},
    {"muon_momentum", "train.muon_momentum", NULL},
    {"muon_extra_scale_factor", "train.muon_scale", NULL},
    {"adam_beta1 optimizer.beta1", "train.beta1", NULL},
    {"adam_beta2 optimizer.beta2", "train.beta2", NULL},
    {"adam_eps optimizer.eps", "train.epsilon", NULL},
    {"weight_decay", "train.weight_decay", NULL},
    {"clip_grad max_norm", "train.clip", NULL},
    // Rows for precision.
    {"bf16", "precision.compute", "true=bf16 false="},
    {"main_grads_dtype megatron_fsdp_main_grads_dtype", "precision.gradients", "fp32=fp32 bf16=bf16 auto="},
    {"megatron_fsdp_grad_comm_dtype", "precision.reduce", "fp32=fp32 bf16=bf16 auto="},
    {"grad_reduce_in_bf16", "precision.gradients", "true=bf16 false="},
    {"fp8_format", "precision.fp8_format", "hybrid=hybrid e4m3=e4m3"},
    {"fp4_format", "precision.compute", "e2m1=fp4"},
    {"fp4_recipe", "precision.recipe", "nvfp4=nvfp4"},
    {"fp8_recipe", "precision.recipe", "delayed=delayed tensorwise=current blockwise=block mxfp8=mxfp8"},
    {"fp8_amax_history_len", "precision.fp8_history", NULL},
    {"no_fp8_wgrad disable_fp8_wgrad", "precision.fp8_weight_gradients", "true=no"},
    {"mixed_precision_param", NULL, "bfloat16="},
    {"mixed_precision_reduce", "precision.reduce", "float32=fp32 bfloat16=bf16"},
    {"attention_backend", "run.attention", "fused=cudnn auto=auto"},
    // Rows for settings that gswbench does not have. Only values that leave the step unchanged are accepted.
    {"fp16 zero_bubble_v_schedule enable_optimizer_post_validation apply_residual_connection_post_layernorm "
     "embed_layernorm attention_output_gate optimizer_cpu_offload cpu_offloading fine_grained_activation_offloading "
     "use_sliding_window mamba_proj_bias use_bias enable_cpu_offload",
     NULL, "false="},
    {"pipeline_model_parallel_layout decoder_first_pipeline_num_layers pipeline_parallel_layers_per_stage "
     "pipeline_parallel_split_points module_fqns_per_model_part experimental_attention_variant "
     "heterogeneous_layers_config_path encoder_num_layers vision_model_type mlp_only_layers",
     NULL, "="},
    {"decoder_sparse_step", NULL, "1="},
    {"use_conv_bias", NULL, "true="},
    {"training.dtype", NULL, "float32="},
};

// In these sections (torchtitan) and objects (Hugging Face), a name means the same as outside of sections. Names in
// other sections, such as validation or vision_config, are ignored, because they describe something else.
const struct import_name *import_find_name(const char *name)
{
    static const char sections[] = "training parallelism optimizer experimental compile rope_scaling";
    const char       *dot        = strrchr(name, '.');
    char              section[32];
    for (size_t i = 0; i < sizeof(import_names) / sizeof(import_names[0]); i++) {
        if (text_has_word(import_names[i].names, name)) {
            return &import_names[i];
        }
    }
    snprintf(section, sizeof(section), "%.*s", dot != NULL ? (int)(dot - name) : 0, name);
    return dot != NULL && text_has_word(sections, section) ? import_find_name(dot + 1) : NULL;
}

bool import_is_flag(const char *name)
{
    const struct import_name *row = import_find_name(name);
    return row != NULL && row->values != NULL &&
           (strncmp(row->values, "true=", 5) == 0 || strncmp(row->values, "false=", 6) == 0);
}

const char *import_find(const char *name)
{
    struct arena              arena = {0};
    const struct import_name *row   = import_find_name(import_normalise(&arena, name));
    arena_free(&arena);
    return row != NULL ? row->option : NULL;
}
