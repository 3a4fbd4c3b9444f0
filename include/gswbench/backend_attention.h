// SPDX-License-Identifier: MIT
// Attention implementation of a device backend.
#ifndef GSWBENCH_BACKEND_ATTENTION_H
#define GSWBENCH_BACKEND_ATTENTION_H

// auto: cuDNN if it is installed, supports the shape and its graph executes.
enum attention_choice { ATTENTION_AUTO, ATTENTION_CUDNN, ATTENTION_OWN };

// Attention implementation that prepare selected, as text for the result; "" if unknown.
struct backend_attention {
    char provider[24];    // "cudnn", "own", "cudnn and own"; "": no attention op prepared yet
    char library[32];     // "cuDNN 9.19.0" once it is loaded
    char engines[64];     // cuDNN engine numbers: "forward 2, backward 6"
    char refusal[256];    // why the built-in kernels replace cuDNN
};

#endif
