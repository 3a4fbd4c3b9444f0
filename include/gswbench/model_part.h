// SPDX-License-Identifier: MIT
// The part of the model that an op works for, and the value that it makes for this part. The layer that appends an op
// sets both; the text of a tag is only for people.
#pragma once

enum model_part {
    PART_NONE,    // not an op of a plan
    PART_EMBEDDING,
    PART_ATTENTION_NORM,
    PART_QKV,
    PART_Q_DOWN,    // PART_Q_DOWN to PART_KV_UP: latent attention
    PART_Q_NORM,
    PART_Q_UP,
    PART_KV_DOWN,
    PART_KV_NORM,
    PART_KV_UP,
    PART_ROPE,
    PART_QUERIES,    // PART_QUERIES, PART_KEYS: moved between the ranks of cp, before or after core attention
    PART_KEYS,
    PART_CORE_ATTENTION,
    PART_PROJECTION,
    PART_MLP_NORM,
    PART_FC1,
    PART_ACTIVATION,
    PART_FC2,
    PART_ROUTER,
    PART_DISPATCH,
    PART_EXPERT_FC1,
    PART_EXPERT_ACTIVATION,
    PART_EXPERT_FC2,
    PART_COMBINE,
    PART_SHARED_FC1,
    PART_SHARED_ACTIVATION,
    PART_SHARED_FC2,
    PART_MTP_EMBEDDING,    // PART_MTP_EMBEDDING to PART_MTP_PROJECTION: the first sublayer of an MTP module
    PART_MTP_NORM,
    PART_MTP_PROJECTION,
    PART_FINAL_NORM,
    PART_HEAD,
    PART_LOSS,
    PART_RESIDUAL,     // the residual stream between pipeline stages
    PART_WEIGHTS,      // gathers of weights
    PART_GRADIENTS,    // reductions of gradients
    PART_STEP,         // once per step: loss, gradient norm, scales, optimizer
    MODEL_PARTS
};

// A linear y = W x computes its output y, the gradient of x from that of y, and the gradient of W. Its inputs may be
// gathered or cast first.
enum model_value {
    MAKES_OUTPUT,
    MAKES_INPUT_GRADIENT,
    MAKES_WEIGHT_GRADIENT,
    MAKES_INPUT,
    MAKES_WEIGHT,
    MAKES_OUTPUT_GRADIENT,
};
