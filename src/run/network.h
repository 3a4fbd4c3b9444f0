// SPDX-License-Identifier: MIT
// Predicts NCCL's network transport between hosts without NCCL.
#ifndef GSWBENCH_RUN_NETWORK_H
#define GSWBENCH_RUN_NETWORK_H

#include <stddef.h>

// Explains why NCCL will use sockets although InfiniBand or RoCE is present or requested; "" if it will not or if only
// NCCL knows. root: prefix of /sys and /dev; verbs: the library that NCCL loads.
void network_explain_sockets(char *text, size_t bytes, const char *root, const char *verbs);

#endif
