// SPDX-License-Identifier: MIT
// Declares sublayers and their kinds. A sublayer, such as attention or an MLP, normalises the residual stream and
// computes a branch to add to it. Its kind defines weights, forward and backward ops, and counts of parameters and
// FLOPs. Embedding, head, and the first and the last part of an MTP module are kinds as well.
#pragma once

#include "gswbench/builder.h"

// Tensor of the residual stream, and tensor of a branch that is not added to it yet (-1: none). The next norm adds it.
struct residual_stream {
    int32_t x, branch;
};

// Values are a sublayer's tensors for one microbatch; -1: does not exist now. Each kind numbers its own values, such as
// q, k and v, from VALUE_OWN on. shard_tokens: rows of the residual stream on this rank (tokens / tp with sequence
// parallelism).
enum {
    VALUE_X,             // residual stream after its branch is added: input of the norm [shard_tokens, hidden]
    VALUE_STATISTICS,    // mean and 1 / deviation of the norm [shard_tokens, 2]
    VALUE_N,             // normalised residual stream [shard_tokens, hidden]
    VALUE_OUT,           // branch to add to the residual stream [shard_tokens, hidden]
    VALUE_OWN,
    VALUES_MAX = 22
};
struct sublayer_values {
    int32_t tensor[VALUES_MAX];
    int32_t gradient;    // gradient of VALUE_OUT, during the backward pass of the sublayer
    void   *own;         // private data of the kind, in the builder's scratch arena
};
struct block_values {
    struct sublayer_values sublayer[BLOCK_SUBLAYERS];
};

// Indices of a sublayer's weights. Each kind numbers its own weights from WEIGHT_OWN on.
enum { WEIGHT_NORM, WEIGHT_NORM_BIAS, WEIGHT_OWN };

struct sublayer {
    struct builder          *builder;
    const struct layer_kind *kind;
    const int32_t           *weights;
    struct sublayer_values  *values;
    struct residual_stream   in;    // input of the norm
    bool is_first_trained;    // no earlier sublayer has a trained weight, so the gradient of VALUE_N is not needed
};

#define BIT(value) (1u << (value))

// A step of a sublayer's forward pass: one or a few ops after its norm. reads and makes are masks of BIT(VALUE_...). If
// the backward pass needs a value that was not kept, it repeats the steps that make the value (recompute).
struct forward_step {
    void (*append)(struct sublayer *sublayer);
    enum model_part part;    // part of the model that the ops count for, unless append sets another
    uint32_t        reads, makes;
    uint32_t        saved_as;    // 1 << enum block_output: values are kept if recompute_save has one of these
    uint32_t        modules;     // 1 << enum recompute_module: ops repeat if recompute_modules has one of these
};

// The two expert all-to-alls, dispatch and combine, split a forward pass in three parts, and a backward pass as well.
enum { BACKWARD_PARTS = 3 };

// Names of a norm's ops and weights, and of its exported tensors. No layer has two sublayers with the same norm.
struct norm_names {
    enum model_part part;
    const char     *forward, *backward, *weight, *bias;
    struct exported exported_weight, exported_bias;
};
// model_part: part of the model that the ops count for. role: name of the forward op. vector: name of the weight in the
// plan. exported: its name in a checkpoint, between "model." and ".weight". stream: random stream of initial values.
#define NORM_NAMES(model_part, role, vector, exported, stream)                                                         \
    {                                                                                                                  \
        model_part, role, role " gradient", vector, vector " bias", {"model." exported ".weight", stream},             \
        {                                                                                                              \
            "model." exported ".bias", stream + 1                                                                      \
        }                                                                                                              \
    }

// Counts of a sublayer, without vocabulary padding. active: parameters that one token uses.
struct layer_count {
    int64_t parameters, active;
    int64_t multiplied;    // weights that a token is multiplied with, as FLOPS_FULL and FLOPS_CAUSAL count them
    int64_t attended;      // multiply-adds per query-key pair, summed over the heads, in attention without a window
    int64_t windowed;      // like `attended`, in attention with a sliding window
    int64_t scanned;       // FLOPs of Mamba-2 scans per token in the forward pass
    int64_t linears;       // linears that can run in FP8
    int64_t adapters;      // parameters of adapters, which `parameters` and `active` include
};

struct layer_kind {
    const char              *name;
    const struct norm_names *norm;    // NULL: no norm
    // Declares the weights of the sublayer, except the weights of its norm.
    void (*declare)(struct declarations *declarations, int32_t *weights);
    const struct forward_step *steps;      // in order; terminated by append = NULL
    uint32_t                   needed;     // mask of values that the backward pass reads
    uint32_t                   dropped;    // values in `needed` that are never kept, but always recomputed
    // Values that an expert all-to-all makes. With overlap_microbatches, the all-to-all overlaps with ops of another
    // microbatch.
    uint32_t exchanged;
    uint32_t inputs[LINEAR_KINDS];    // per kind of linear: values that only its weight gradient reads
    // Returns further values that the backward pass reads in some models; or NULL.
    uint32_t (*needed_also)(const struct model_config *model);
    // Together these functions compute the gradient of VALUE_N from the gradient of VALUE_OUT. Each function gets the
    // result of the one before it. If sublayer->is_first_trained, the last result is not used.
    int32_t (*backward[BACKWARD_PARTS])(struct sublayer *sublayer, int32_t gradient);
    struct layer_count (*count)(const struct model_config *model);      // counts of the sublayer without its norm
    void (*check)(const struct model_config *model, status *errors);    // checks [model]; NULL: no checks
    bool has_experts;    // experts form a separate FSDP unit and have routing statistics
    bool begins;         // VALUE_OUT starts the residual stream, as in the embedding
    bool ends;           // computes a loss; the MTP modules then take VALUE_N as their residual stream
};

// All kinds of sublayers. The struct of a kind is NAME_kind, such as attention_kind.
#define LAYER_KINDS(row)                                                                                               \
    row(embedding) row(attention) row(window_attention) row(latent) row(mlp) row(experts) row(mamba) row(head)         \
        row(prediction) row(prediction_head)

#define LAYER_KIND_DECLARED(name) extern const struct layer_kind name##_kind;
LAYER_KINDS(LAYER_KIND_DECLARED)

// Tensors of a residual addition fused with the norm after it. norm_forward appends both.
struct norm_values {
    int32_t x, branch, weight, bias;    // inputs; branch = -1: no addition
    int32_t sum, out, statistics;       // outputs; without a branch, sum is x
    double  epsilon;                    // 0: [model] norm_epsilon
};
void norm_forward(struct builder *builder, const char *role, struct norm_values *norm);
// Appends the backward pass of the norm. Returns the gradient of `sum`, plus the tensor `residual` if it is not -1.
int32_t norm_backward(struct builder *builder, const char *role, const struct norm_values *norm, int32_t gradient,
                      int32_t residual);
// Declares weight and bias of a sublayer's norm. Stores their indices in weights[WEIGHT_NORM] and
// weights[WEIGHT_NORM_BIAS].
void declare_norm(struct declarations *declarations, const struct norm_names *norm, int32_t *weights);

// Names of the ops in the backward pass of a column-parallel linear: another all-gather of the input, data gradient,
// reduction of the data gradient, weight gradient. For a row-parallel linear: all-gather of the output gradient, data
// gradient, weight gradient.
struct columns_roles {
    const char *again, *data, *reduced, *weight;
};
struct rows_roles {
    const char *gathered, *data, *weight;
};
// Append the backward pass of a column-parallel or row-parallel y = W x. Return the gradient of this rank's rows or
// columns of x. is_first_trained: no weight before W is trained, so the gradient of x is not needed, and -1 is
// returned.
int32_t columns_backward(struct builder *builder, const struct columns_roles *roles, int32_t dy, int32_t x,
                         int32_t weight, bool is_first_trained);
int32_t rows_backward(struct builder *builder, const struct rows_roles *roles, int32_t dy, int32_t x, int32_t weight,
                      bool is_first_trained);

// The linears of an MLP or expert.
enum { MLP_FC1, MLP_FC2, MLP_LINEARS };
// With cp, a rank has two chunks of consecutive positions of each sequence: one from each half of the sequence.
enum { HALVES = 2 };

// Appends the deferred weight gradients of the head (builder->deferred). There must be at least one.
void head_append_deferred(struct builder *builder);

// Returns the shape of the routing ops, which is the same in all layers with experts.
struct routing_shape experts_routing(const struct builder *builder);
// Returns the axes along which ranks have different tokens of the same sequences: cp, and tp with sequence parallelism.
uint32_t experts_row_axes(const struct builder *builder);
// Appends the update of the router biases from the load of the experts, if the model has such biases. Call after the
// last microbatch of a step.
void experts_append_balance(struct builder *builder);
