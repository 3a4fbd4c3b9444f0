// SPDX-License-Identifier: MIT
// Declares sublayers and their kinds. A sublayer, such as attention or an MLP, normalises the residual stream and
// computes a branch to add to it. Its kind defines weights, forward and backward ops, and counts of parameters and
// FLOPs. Embedding, head, and the first and the last part of an MTP module are kinds as well.
#pragma once

#include "gswbench/builder.h"

// Tensors of the residual stream, and of a branch that is not added to it yet (-1: none).
struct residual_stream {
    int32_t x, branch;
};

// Values: tensors of a sublayer for one microbatch; -1: does not exist now. Each kind numbers its own values, such as
// q, k and v, from VALUE_OWN on. S: rows of the residual stream on this rank.
enum {
    VALUE_X,             // residual stream including the pending branch, input of the norm [S, hidden]
    VALUE_STATISTICS,    // mean and 1 / deviation of the norm [S, 2]
    VALUE_N,             // normalised residual stream [S, hidden]
    VALUE_OUT,           // branch to add to the residual stream [S, hidden]
    VALUE_OWN,
    VALUES_MAX = 22
};
struct sublayer_values {
    int32_t tensor[VALUES_MAX];
    int32_t gradient;    // of VALUE_OUT, during the backward pass of the sublayer
    void   *own;         // private data of the kind, in the builder's scratch arena
};
struct block_values {
    struct sublayer_values sublayer[BLOCK_SUBLAYERS];
};

// Weights of a sublayer. Each kind numbers its own from WEIGHT_OWN on.
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

// One or a few forward ops of a sublayer after its norm, with the values they read and make as masks BIT(VALUE_...). If
// the backward pass needs a value that was not kept, it repeats the steps that make it (recompute).
struct forward_step {
    void (*append)(struct sublayer *sublayer);
    enum model_part part;    // part of the model that the ops count for, unless append sets another
    uint32_t        reads, makes;
    uint32_t        saved_as;    // 1 << enum block_output: any of these in recompute_save keeps the values
    uint32_t        modules;     // 1 << enum recompute_module: any of these in recompute_modules repeats the ops
};

// The expert all-to-alls, dispatch and combine, split a forward pass in three, and its backward pass as well.
enum { BACKWARD_PARTS = 3 };

// Names of a norm's ops and weights, and of its exported tensors. Kinds with the same norm are never in one layer.
struct norm_names {
    enum model_part part;
    const char     *forward, *backward, *weight, *bias;
    struct exported exported_weight, exported_bias;
};
// role: name of the forward op. vector: name of the weight. stream: random stream of the weight (struct exported); the
// bias has the next.
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
    int64_t multiplied;    // weights that a token is multiplied with, as the FLOP conventions count them
    int64_t attended;      // attention to all keys: elements of k plus elements of v per position, over all query heads
    int64_t windowed;      // the same for attention with a sliding window
    int64_t scanned;       // FLOPs of Mamba-2 scans per token in the forward pass
    int64_t linears;       // linears that can run in FP8
    int64_t adapters;      // parameters of adapters, which `parameters` and `active` include
};

struct layer_kind {
    const char              *name;
    const struct norm_names *norm;    // NULL: no norm
    // Declares the weights except the norm's.
    void (*declare)(struct declarations *declarations, int32_t *weights);
    const struct forward_step *steps;      // in order; terminated by append = NULL
    uint32_t                   needed;     // values (as BIT masks) that the backward pass reads
    uint32_t                   dropped;    // those of `needed` that are never kept, but always recomputed
    // Values that an all-to-all makes. With overlap_microbatches, ops of another microbatch follow and overlap with it.
    uint32_t travels;
    uint32_t inputs[LINEAR_KINDS];    // values that only the weight gradient of a linear of this kind reads
    uint32_t (*needed_also)(const struct model_config *model);    // backward also reads these, in some models; or NULL
    // Together these compute the gradient of VALUE_N from that of VALUE_OUT: each function gets the result of the one
    // before it. If sublayer->is_first_trained, the last result is not used.
    int32_t (*backward[BACKWARD_PARTS])(struct sublayer *sublayer, int32_t gradient);
    struct layer_count (*count)(const struct model_config *model);      // without the norm
    void (*check)(const struct model_config *model, status *errors);    // checks [model]; NULL: no checks
    bool has_experts;    // experts form a separate FSDP unit and have routing statistics
    bool begins;         // VALUE_OUT starts the residual stream, as in the embedding
    bool ends;           // computes a loss; the residual stream goes on (to MTP modules) as VALUE_N
};

// All kinds. The struct of a kind is NAME_kind, such as attention_kind.
#define LAYER_KINDS(row)                                                                                               \
    row(embedding) row(attention) row(window_attention) row(latent) row(mlp) row(experts) row(mamba) row(head)         \
        row(prediction) row(prediction_head)

#define LAYER_KIND_DECLARED(name) extern const struct layer_kind name##_kind;
LAYER_KINDS(LAYER_KIND_DECLARED)

// A residual addition fused with the norm after it, and the gradient of this pair.
struct norm_values {
    int32_t x, branch, weight, bias;    // inputs; branch -1: no addition
    int32_t sum, out, statistics;       // outputs; sum == x without a branch
    double  epsilon;                    // 0: [model] norm_epsilon
};
void norm_forward(struct builder *builder, const char *role, struct norm_values *norm);
// Returns the gradient of sum, with residual added if it is not -1.
int32_t norm_backward(struct builder *builder, const char *role, const struct norm_values *norm, int32_t gradient,
                      int32_t residual);
// Declares weight and bias of a norm of the residual stream, at WEIGHT_NORM and WEIGHT_NORM_BIAS of weights.
void declare_norm(struct declarations *declarations, const struct norm_names *norm, int32_t *weights);

// Names (op_tag.role) of the ops in the backward pass of a column-parallel linear: another gather of the input, data
// gradient, its reduction, weight gradient. For a row-parallel one: gather of the output gradient, and the gradients.
struct columns_roles {
    const char *again, *data, *reduced, *weight;
};
struct rows_roles {
    const char *gathered, *data, *weight;
};
// Append the backward pass of a column-parallel or row-parallel y = W x. Return the gradient of this rank's rows or
// columns of x. is_last: no weight before W is trained, so the gradient of x is not needed, and -1 is returned.
int32_t columns_backward(struct builder *builder, const struct columns_roles *roles, int32_t dy, int32_t x,
                         int32_t weight, bool is_last);
int32_t rows_backward(struct builder *builder, const struct rows_roles *roles, int32_t dy, int32_t x, int32_t weight,
                      bool is_last);

// Linears of an MLP or expert.
enum { MLP_FC1, MLP_FC2, MLP_LINEARS };
// With cp, a rank has two chunks of consecutive positions of each sequence: one from each half.
enum { HALVES = 2 };

// Appends the deferred weight gradients of the head (builder->deferred), of which there is at least one.
void head_append_deferred(struct builder *builder);

// Routing of the layers with experts.
struct routing_shape experts_routing(const struct builder *builder);
// Axes along which ranks have other tokens of the same sequences: cp, and tp with sequence parallelism.
uint32_t experts_row_axes(const struct builder *builder);
// After the last microbatch of a step: updates the router biases from the load of the experts, if the model has biases.
void experts_append_balance(struct builder *builder);
