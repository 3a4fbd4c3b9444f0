// SPDX-License-Identifier: MIT
// Who computes attention on a device.
#ifndef GSWBENCH_BACKEND_ATTENTION_H
#define GSWBENCH_BACKEND_ATTENTION_H

// auto: cuDNN where it is there, takes the shape and runs it.
enum attention_choice { ATTENTION_AUTO, ATTENTION_CUDNN, ATTENTION_OWN };

// What was decided when ops were prepared. Plain text; "" where there is nothing to say.
struct backend_attention {
    char provider[24];    // "cudnn", "own", "cudnn and own"; "": there is no attention yet
    char library[32];     // "cuDNN 9.19.0", where it opened
    char engines[64];     // cuDNN's numbers: "forward 2, backward 6"
    char refusal[256];    // why own kernels do what cuDNN was first asked for
};

#endif
