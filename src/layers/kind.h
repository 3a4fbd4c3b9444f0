// SPDX-License-Identifier: MIT
// What layers are made of. A sublayer normalises the residual stream and makes what is added to it; what it makes, from
// which weights, and how gradients go back through it, is its kind. The embedding and the head are kinds, too: one
// begins the stream, the other ends it. So do those around a layer that predicts a further token.
#ifndef GSWBENCH_LAYERS_KIND_H
#define GSWBENCH_LAYERS_KIND_H

#include "builder.h"
#include "declaration.h"

// The residual stream: what it holds, and what is still to be added to it, or -1.
struct stream {
    int32_t x, branch;
};

// The values of a sublayer for one microbatch; -1: it does not exist now. A kind's own follow.
enum {
    VALUE_X,             // residual stream that the norm reads, with the branch before it added [S, hidden]
    VALUE_STATISTICS,    // of the norm [S, 2]
    VALUE_N,             // the stream, normalised [S, hidden]
    VALUE_OUT,           // what is to be added to the stream [S, hidden]
    VALUE_OWN,
    VALUES_MAX = 20
};
struct sublayer_values {
    int32_t tensor[VALUES_MAX];
    int32_t gradient;    // of VALUE_OUT, while the backward pass goes through the sublayer
    void   *own;         // what else a kind keeps, in the builder's scratch memory
};
struct block_values {
    struct sublayer_values sublayer[BLOCK_SUBLAYERS];
};

// The weights of a sublayer; a kind's own follow.
enum { WEIGHT_NORM, WEIGHT_NORM_BIAS, WEIGHT_OWN };

struct sublayer {
    struct builder          *builder;
    const struct layer_kind *kind;
    const int32_t           *weights;
    struct sublayer_values  *values;
    struct stream            in;    // what the norm reads
};

#define BIT(value) (1u << (value))

// One forward op or a few of a sublayer, after its norm: the values that they read and make.
struct forward_step {
    void (*append)(struct sublayer *sublayer);
    uint32_t reads, makes;
    uint32_t saved_as;    // 1 << enum block_output of the names of recompute_save that keep what it makes
    uint32_t modules;     // 1 << enum recompute_module of those that compute it again
};

// A backward pass has as many parts as a forward pass.
enum { BACKWARD_PARTS = 3 };

// Names of a norm: of its ops, its weights, and those as they are exported. Kinds with the same norm take the same
// place in a layer, which has one of them.
struct norm_names {
    const char     *forward, *backward, *weight, *bias;
    struct exported exported_weight, exported_bias;
};

// What a sublayer has, without vocabulary padding; active: what one token uses of it.
struct layer_count {
    int64_t parameters, active;
    int64_t multiplied;    // weights that a token is multiplied by, as the FLOP conventions count them
    int64_t attended;      // width of the queries that meet every key, and of what every value adds to
    int64_t windowed;      // ... that meet those of a window
    int64_t linears;       // that FP8 may compute
};

struct layer_kind {
    const char              *name;
    const struct norm_names *norm;    // NULL: it has none
    // Adds the sublayer's weights, but for those of the norm.
    void (*declare)(struct declarations *declarations, int32_t *weights);
    const struct forward_step *steps;      // in order; the last has no append
    uint32_t                   needed;     // values that the backward pass reads
    uint32_t                   travels;    // ... on the way to other ranks when they are made: here
                                           // another microbatch may take its turn
    uint32_t (*needed_also)(const struct model_config *model);    // ... of some models; NULL: of none
    // From the gradient of VALUE_OUT to that of VALUE_N; each part takes what the one before it returned.
    int32_t (*backward[BACKWARD_PARTS])(struct sublayer *sublayer, int32_t gradient);
    struct layer_count (*count)(const struct model_config *model);      // but for the norm
    void (*check)(const struct model_config *model, status *errors);    // rules of [model]; NULL: none
    bool has_experts;     // which are a unit of their own, and whose use is counted
    bool begins, ends;    // the stream: it is what this makes; it ends in a loss, and the norm of it is passed on
};

// Every kind: NAME_kind, in a file of its own.
#define LAYER_KINDS(row)                                                                                               \
    row(embedding) row(attention) row(window_attention) row(latent) row(mlp) row(experts) row(head) row(prediction)    \
        row(prediction_head)

#define LAYER_KIND_DECLARED(name) extern const struct layer_kind name##_kind;
LAYER_KINDS(LAYER_KIND_DECLARED)

#endif
