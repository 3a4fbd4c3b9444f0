// SPDX-License-Identifier: MIT
// Declares the configuration of the model, precision and training, and the conventions of published FLOPs.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "gswbench/format.h"
#include "gswbench/json.h"
#include "gswbench/op_shape.h"
#include "gswbench/option.h"
#include "gswbench/status.h"

// Positional encoding: rotary embedding (RoPE), a trained table that is added to the embedding, ALiBi, or none.
enum positions { POSITIONS_ROTARY, POSITIONS_LEARNED, POSITIONS_ALIBI, POSITIONS_NONE, POSITIONS_COUNT };

// Whether the router's gates scale the outputs or the inputs of a token's experts.
enum router_gates { GATES_OUTPUT, GATES_INPUT };

enum linear_kind { LINEAR_KIND_QKV, LINEAR_KIND_PROJECTION, LINEAR_KIND_FC1, LINEAR_KIND_FC2, LINEAR_KINDS };
extern const char *const linear_kind_names[];

// Options of [adapters]: low-rank adapters (LoRA) of frozen matrices, y = W x + alpha / rank B A x. All other weights
// are frozen.
struct adapters_config {
    int64_t rank;    // 0: no adapters, and every weight is trained
    double  alpha;
    int64_t targets;    // mask of 1 << enum linear_kind
};
extern const struct option adapters_options[];

// Options of [model].
struct model_config {
    char    preset[112];     // configs/models/NAME.ini, read before this section
    char    family[32];      // naming of exported tensors: one of model_families, or gswbench
    char    pattern[128];    // kinds of layers in order: "3 x dense, 58 x experts"; empty: all layers are the same
    int64_t layers, hidden, heads, kv_heads, head_dim, ffn, vocab;
    int64_t q_rank, kv_rank, rope_dim, value_dim;    // sizes of latent attention (MLA); kv_rank 0: plain attention
    int64_t vocab_multiple;                          // the vocabulary is padded to a multiple of this times tp
    int64_t activation, norm;                        // enum activation, enum norm
    double  norm_epsilon, latent_norm_epsilon;       // the second is for norms of compressed queries, keys, values
    int64_t positions;                               // enum positions
    int64_t max_positions;                           // rows of the trained position table
    double  rope_theta, rope_fraction;
    double  rope_scaling;                        // Llama 3.1 frequency scaling; 1: none
    int64_t qk_norm;                             // RMS norm of each head of queries and keys
    int64_t window;                              // sliding window of window_attention, in positions; 0: no such layers
    int64_t attention_sinks;                     // each head has a trained logit that only adds to softmax denominators
    int64_t attention_bias, mlp_bias;            // linears have biases, also in experts
    int64_t router_offset;                       // the router's logits have a trained bias
    int64_t tied;                                // the head shares the embedding table
    double  embedding_scale, logit_scale;        // factors for rows of the embedding table and for logits
    int64_t predicted_tokens;                    // MTP depth: number of MTP modules; each predicts one more token
    int64_t repeat_prediction;                   // all MTP modules have the same weights
    int64_t experts, expert_ffn, top_k;          // experts of a layer; ffn width of an expert; experts per token
    int64_t shared_ffn;                          // total width of the shared experts; 0: none
    int64_t expert_hidden;                       // width that tokens are projected to before dispatch; 0: hidden
    int64_t router_score;                        // enum router_score
    int64_t router_gates;                        // enum router_gates
    int64_t router_normalise;                    // the gates of a token sum to router_scale
    int64_t router_groups, router_top_groups;    // a token uses its best router_top_groups groups; 0: no groups
    double  router_scale, router_bias_rate;      // router_bias_rate 0: no bias for load balancing
    double  capacity_factor, auxiliary_loss;
    int64_t mamba_heads, mamba_head_dim, mamba_state, mamba_groups;    // Mamba-2; mamba_heads 0: no such layers
    int64_t mamba_conv, mamba_chunk;    // width of the convolution; positions of a chunk of the scan
    double  init_deviation;

    struct adapters_config adapters;    // the section [adapters]
};
extern const struct option model_options[];
extern const char *const   model_activation_names[];
extern const char *const   model_norm_names[];
extern const char *const   model_position_names[];
extern const char *const   model_router_score_names[];
extern const char *const   model_router_gates_names[];

void    model_set_defaults(struct model_config *model);    // sets the options of [model] and [adapters]
bool    model_is_gated(const struct model_config *model);
bool    model_norm_has_bias(const struct model_config *model);
int64_t model_query_width(const struct model_config *model);     // heads * head_dim
int64_t model_kv_width(const struct model_config *model);        // kv_heads * head_dim, for keys only
int64_t model_key_dim(const struct model_config *model);         // elements of a head of queries and keys in attention
int64_t model_value_dim(const struct model_config *model);       // elements of a head of values
int64_t model_rotary_width(const struct model_config *model);    // rotated elements of a head: even, or 0
int64_t model_expert_ffn(const struct model_config *model);
int64_t model_expert_hidden(const struct model_config *model);
int64_t model_mamba_inner(const struct model_config *model);    // width of x and z in Mamba-2
int64_t model_all_layers(const struct model_config *model);     // number of layers and MTP modules
int64_t model_padded_vocab(const struct model_config *model, int64_t tp);
bool    model_is_frozen(const struct model_config *model);    // whether only adapters are trained
bool    model_adapts(const struct model_config *model, enum linear_kind kind);
// Returns the parameters of the adapter of a matrix with these inputs and outputs; 0: it has no adapter.
int64_t model_adapter(const struct model_config *model, enum linear_kind kind, int64_t in, int64_t out);

// A model family whose tensors and config.json follow a Hugging Face class. All its layers are the same, except with
// latent attention: then the first ones are dense and the others have experts, as in DeepSeek-V3.
struct model_family {
    const char *name;            // value of [model] family, and of model_type in config.json; NULL ends the list
    const char *architecture;    // the class name
    bool        has_experts, has_qk_norm, has_latent_attention;
};
extern const struct model_family model_families[];
const struct model_family       *model_family_of(const struct model_config *model);    // NULL: gswbench's tensor names

// FLOP conventions; docs/method.md has the formulas.
enum flop_convention {
    FLOPS_PUBLISHED,    // the convention of the published result, [published] convention
    FLOPS_FULL,         // attention counts all pairs of positions, as without a causal mask
    FLOPS_CAUSAL,       // attention counts half of the pairs
    FLOPS_6N,           // per token: 6 * active parameters, plus the attention FLOPs of FLOPS_FULL (torchtitan)
    FLOPS_HARDWARE,     // FLOPs that the ops of the step execute; they are known only from a plan
    FLOPS_COUNT
};
extern const char *const       model_flop_names[];
extern const struct json_field model_flop_fields[];    // fields of an array indexed by convention

// Whether a published memory figure counts allocated or reserved memory of the caching allocator.
enum published_memory { MEMORY_ALLOCATED, MEMORY_RESERVED };

// Options of [published]: a published result, and how the publication counts FLOPs.
struct published_config {
    char    source[128];
    char    device[64];          // the measured device; "": the device of the file's [hardware] profile
    char    variant[40];         // selects one of several published results of the file; "": it has one
    int64_t convention;          // FLOPS_FULL, FLOPS_CAUSAL or FLOPS_6N; 0: none published
    int64_t flop_kv_heads;       // KV heads in the published FLOP count; 0: the model's kv_heads
    int64_t flop_digits;         // significant digits of the published FLOPs per sequence; 0: exact
    int64_t count_embedding;     // FLOPS_6N: the parameters include the input embedding
    double  peak[RATE_COUNT];    // "peak_fp32", ...: FLOP/s that the published MFU refers to; 0: none
    double  step_seconds;        // 0: not published
    double  mfu_percent;         // 0: not published
    double  memory_gib;          // maximum over ranks; 0: not published
    int64_t memory;              // enum published_memory
    int64_t fitted;              // whether values of the cost model were fitted to this step time
};
extern const struct option published_options[];

// The options of [precision], and the format of each kind of tensor in a step, which precision_init derives from them.

enum compute_precision { COMPUTE_FP32, COMPUTE_BF16, COMPUTE_FP8, COMPUTE_FP4 };
// How scales of low-precision tensors are chosen. RECIPE_AUTO is the option's default, which selects the usual recipe
// of the compute precision.
enum scaling_recipe {
    RECIPE_DELAYED,
    RECIPE_CURRENT,
    RECIPE_BLOCK,
    RECIPE_MXFP8,
    RECIPE_ROWS,
    RECIPE_NVFP4,
    RECIPE_AUTO
};
enum fp8_format { FP8_HYBRID, FP8_E4M3 };    // hybrid: gradients in E5M2, everything else in E4M3
// Which FP8 GEMMs may keep partial sums in the tensor cores' accumulators, which have fewer bits than fp32.
enum fast_sums { FAST_SUMS_FORWARD, FAST_SUMS_ALL, FAST_SUMS_NONE };
// The role of an operand in a linear layer's GEMMs: input, weight or output gradient.
enum linear_role { ROLE_INPUT, ROLE_WEIGHT, ROLE_GRADIENT, LINEAR_ROLES };

// Options of [precision].
struct precision_config {
    int64_t compute;      // enum compute_precision
    int64_t gradients;    // enum format in which gradients are accumulated
    int64_t reduce;       // enum format of gradient reductions
    int64_t master;       // fp32 master weights in addition to bf16 weights
    int64_t moments;      // enum format of the Adam moments m and v
    int64_t recipe;       // enum scaling_recipe
    int64_t fp8_history, fp8_margin, fp8_format, fp8_gemms, fp8_weight_gradients, fp8_fast_accumulation, fp8_weights,
        fp8_fused;
    int64_t fp4_square_weights, fp4_stochastic_rounding, fp4_transform;
    int64_t bf16_last_layers, bf16_prediction;
};
extern const struct option precision_options[];
extern const char *const   precision_compute_names[];

// Returns the rate class of most GEMMs with this compute precision. MFU uses the peak of this class.
enum rate precision_rate(int64_t compute);

// The formats of a training step, derived from [precision].
struct precision {
    enum compute_precision compute;
    enum format            weight;    // format in which BF16 or FP32 GEMMs read weights
    enum format            activation;
    enum format            gradient;
    enum format            reduce;
    enum format            moment;
    bool                   has_master;    // separate fp32 master weights exist
    // The following fields describe linear layers with low-precision GEMM operands.
    uint32_t            low_precision_linears;    // linears with low-precision operands: mask of 1 << enum linear_kind
    enum scaling_recipe recipe;
    enum format         low_precision_format[LINEAR_ROLES];
    float               low_precision_target[LINEAR_ROLES];    // value that the amax maps to under delayed scaling
    int64_t             magnitude_history;                     // length of the amax history in steps
    bool                has_low_precision_weight_gradients;
    bool           has_low_precision_weights;    // weights are stored and all-gathered in the format of ROLE_WEIGHT
    bool           fuses_copies;                 // ops that make a tensor also quantize it, if a fused kernel exists
    enum fast_sums fast_sums;
    int64_t        last_layers;         // number of layers at the end of the model whose linears stay in BF16
    bool           keeps_prediction;    // the linears of MTP modules stay in BF16
    bool           scales_squares;      // NVFP4: weights have blocks of 16 x 16
    bool           rounds_gradients_stochastically;
    bool           transforms;    // NVFP4: operands of weight gradients get a Hadamard transform before quantization
};
status precision_init(struct precision *precision, const struct precision_config *config);
// Fails if [precision] stores trained weights in FP8, but the recipe does not have one scale per tensor.
status precision_check_weights(const struct precision *precision, bool is_frozen);

// Returns whether the linears of a layer have low-precision operands. layers: number of layers; MTP modules have higher
// indices. Embedding and head (layer -1) have no such linears, so the result means nothing for them.
bool precision_covers(const struct precision *precision, int64_t layers, int64_t layer);

// Returns a mask of the rate classes (1 << enum rate) that the GEMMs of a step use.
uint32_t precision_rates(const struct precision *precision);

// The options of [train]: batch sizes, gradient accumulation, recompute, expert routing and optimizer.

enum recompute {
    RECOMPUTE_NONE,
    RECOMPUTE_ATTENTION,      // core attention is recomputed
    RECOMPUTE_FULL,           // every layer is recomputed; only its input is kept
    RECOMPUTE_BLOCK_EVERY,    // every recompute_every-th layer is recomputed; only its input is kept
    RECOMPUTE_SELECTIVE,      // everything is recomputed except the outputs in recompute_save
    RECOMPUTE_MODULES,        // only the modules in recompute_modules are recomputed
};

// Modules of a layer in [train] recompute_modules, with Megatron's names.
enum recompute_module {
    MODULE_CORE_ATTENTION,
    MODULE_UP_PROJECTIONS,    // up projections of latent attention, and RoPE
    MODULE_MLP,               // dense MLPs
    MODULE_EXPERTS,           // router, routed and shared experts, with their communication
    MODULE_EXPERT_ACTIVATION,
    MODULE_SHARED_EXPERTS,
    MODULE_NORMS,
    MODULE_COUNT
};

// Outputs of a layer's forward pass that [train] recompute_save can name.
enum block_output {
    OUTPUT_NORM,    // outputs of both norms of a layer
    OUTPUT_QKV,     // q, k and v after RoPE
    OUTPUT_ATTENTION,
    OUTPUT_PROJECTION,    // output of attention's output projection
    OUTPUT_FC1,           // output of the MLP's input projections, gate and up
    OUTPUT_ACTIVATION,
    OUTPUT_FC2,         // output of the MLP, which the backward pass needs only in experts
    OUTPUT_DISPATCH,    // tokens that experts received, and the router's outputs
    OUTPUT_LATENT,      // compressed queries, keys and values
    OUTPUT_COUNT
};

// How tokens are routed to experts, and which tokens compete for the capacity of an expert.
enum routing { ROUTING_TOP_K, ROUTING_BALANCED, ROUTING_SKEWED };
enum capacity_scope {
    CAPACITY_RANK,        // tokens of a microbatch on one rank: results depend on the layout
    CAPACITY_SEQUENCE,    // tokens of one sequence on all ranks: results do not depend on the layout
};

// The optimizer of the matrices in layers. AdamW updates everything else.
enum optimizer { OPTIMIZER_ADAMW, OPTIMIZER_MUON };
// Matrices that Muon orthogonalizes separately. MUON_SPLIT_ALL: each exported matrix. MUON_SPLIT_QKV, as in Megatron:
// queries, keys and values separately; in other linears all matrices of the linear together.
enum muon_split { MUON_SPLIT_ALL, MUON_SPLIT_QKV };

// Options of [train].
struct train_config {
    int64_t sequence;
    // micro_batch and global_batch are in sequences, accumulation in microbatches per step. If one of them is 0, it is
    // derived from the other two.
    int64_t micro_batch, global_batch, accumulation;
    int64_t overlap_microbatches;      // forward of one microbatch overlaps with backward of another
    int64_t delay_weight_gradients;    // weight gradients of experts are computed after all input gradients
    int64_t recompute, recompute_every, recompute_save, recompute_modules;
    int64_t recompute_layers;           // only the first n layers of each pipeline chunk recompute; 0: all layers
    int64_t routing, capacity_scope;    // enum routing, enum capacity_scope
    double  prediction_weight;          // weight of the MTP loss relative to the loss of the next token
    double  routing_skew;               // skewed routing: load of the first top_k experts / mean load
    double  learning_rate, beta1, beta2, epsilon, weight_decay, clip;
    int64_t optimizer, muon_split;    // enum optimizer, enum muon_split
    double  muon_momentum, muon_scale;
};
extern const struct option train_options[];
extern const char *const   train_recompute_names[];

// Resolves the batch sizes. replicas: number of ranks with different sequences, dp * fsdp. On success, global_batch =
// micro_batch * replicas * accumulation.
status train_resolve(struct train_config *train, int64_t replicas);
