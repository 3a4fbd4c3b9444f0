// SPDX-License-Identifier: MIT
// Declares sublayers and their kinds. A sublayer normalises the residual stream and computes a branch to add to it. Its
// kind defines weights, forward and backward ops, and counts. Embedding and head, which start and end the residual
// stream, are kinds as well, and so are the ends of an MTP module.
#pragma once

#include "gswbench/builder.h"

// The residual stream, and a branch that is not added to it yet, or -1.
struct residual_stream {
    int32_t x, branch;
};

// Tensors of a sublayer for one microbatch; -1: does not exist now. A kind's own follow VALUE_OWN.
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

// Weights of a sublayer. A kind's own follow WEIGHT_OWN.
enum { WEIGHT_NORM, WEIGHT_NORM_BIAS, WEIGHT_OWN };

struct sublayer {
    struct builder          *builder;
    const struct layer_kind *kind;
    const int32_t           *weights;
    struct sublayer_values  *values;
    struct residual_stream   in;    // input of the norm
    bool is_first_trained;          // no earlier weight is trained, so the gradient of VALUE_N is not needed
};

#define BIT(value) (1u << (value))

// One or a few forward ops of a sublayer after its norm, with the values they read and make.
struct forward_step {
    void (*append)(struct sublayer *sublayer);
    enum model_part part;    // of these ops; append sets others
    uint32_t        reads, makes;
    uint32_t        saved_as;    // 1 << enum block_output: recompute_save names that keep these values
    uint32_t        modules;     // 1 << enum recompute_module: recompute modules that include these ops
};

// As many parts as a forward pass, which is split at the expert all-to-alls.
enum { BACKWARD_PARTS = 3 };

// Names of a norm's ops and weights, and exported names. Kinds with the same norm exclude each other in a layer.
struct norm_names {
    enum model_part part;
    const char     *forward, *backward, *weight, *bias;
    struct exported exported_weight, exported_bias;
};
// role: of the forward op; vector: the weight; stream: of the weight, followed by the bias's.
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
    int64_t multiplied;    // weights in matrix multiplications per token, by the FLOP conventions
    int64_t attended;      // width of q k^T plus width of p v, with all keys
    int64_t windowed;      // the same with a sliding window
    int64_t scanned;       // FLOPs of scans per token in the forward pass
    int64_t linears;       // linears that can run in FP8
    int64_t adapters;      // parameters of adapters, included in the first two
};

struct layer_kind {
    const char              *name;
    const struct norm_names *norm;    // NULL: no norm
    // Declares the weights except the norm's.
    void (*declare)(struct declarations *declarations, int32_t *weights);
    const struct forward_step *steps;      // in order; terminated by append = NULL
    uint32_t                   needed;     // values that the backward pass reads
    uint32_t                   dropped;    // of these, values that are always recomputed
    // Values that an all-to-all brings. With overlap_microbatches, ops of another microbatch follow the steps that make
    // them, to overlap with the all-to-all.
    uint32_t travels;
    uint32_t inputs[LINEAR_KINDS];    // values that only the weight gradients of these linears read
    uint32_t (*needed_also)(const struct model_config *model);    // backward also reads these, in some models; or NULL
    // Turn the gradient of VALUE_OUT into the gradient of VALUE_N. Each function gets the result of the one before it.
    // If the sublayer is the first trained one, the last result is not used.
    int32_t (*backward[BACKWARD_PARTS])(struct sublayer *sublayer, int32_t gradient);
    struct layer_count (*count)(const struct model_config *model);      // without the norm
    void (*check)(const struct model_config *model, status *errors);    // checks [model]; NULL: no checks
    bool has_experts;     // experts form a separate FSDP unit and have routing statistics
    bool begins, ends;    // starts the residual stream with VALUE_OUT; ends it in a loss and passes on VALUE_N
};

// The kinds; each is NAME_kind.
#define LAYER_KINDS(row)                                                                                               \
    row(embedding) row(attention) row(window_attention) row(latent) row(mlp) row(experts) row(mamba) row(head)         \
        row(prediction) row(prediction_head)

#define LAYER_KIND_DECLARED(name) extern const struct layer_kind name##_kind;
LAYER_KINDS(LAYER_KIND_DECLARED)

// Residual addition with the following norm, and the gradient of both.
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

// Names (op_tag.role) of the ops in the backward pass of a column-parallel and of a row-parallel linear: the gather of
// the input or the output gradient, the data gradient and its reduction, and the weight gradient.
struct columns_roles {
    const char *again, *data, *reduced, *weight;
};
struct rows_roles {
    const char *gathered, *data, *weight;
};
// Append the backward pass of a column-parallel or row-parallel y = W x. Return the gradient of this rank's rows or
// columns of x, or -1 with is_last: no weight before it is trained, so the gradient of x is not needed.
int32_t columns_backward(struct builder *builder, const struct columns_roles *roles, int32_t dy, int32_t x,
                         int32_t weight, bool is_last);
int32_t rows_backward(struct builder *builder, const struct rows_roles *roles, int32_t dy, int32_t x, int32_t weight,
                      bool is_last);

// Linears of an MLP or expert.
enum { MLP_FC1, MLP_FC2, MLP_LINEARS };
// Under cp, a rank's queries form runs of positions: per sequence, one chunk from each half.
enum { HALVES = 2 };

void head_append_deferred(struct builder *builder);    // call only if deferred_count > 0

// Routing of the layers with experts.
struct routing_shape experts_routing(const struct builder *builder);
// Axes whose ranks have other rows of the same sequences.
uint32_t experts_row_axes(const struct builder *builder);
// After the last microbatch of a step: updates the router biases from the load of the experts, if the model has them.
void experts_append_balance(struct builder *builder);
