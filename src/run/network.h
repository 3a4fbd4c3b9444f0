// SPDX-License-Identifier: MIT
// What can be known of NCCL's way to other hosts without NCCL.
#ifndef GSWBENCH_RUN_NETWORK_H
#define GSWBENCH_RUN_NETWORK_H

#include <stddef.h>

// Why NCCL will use sockets on this host, though InfiniBand or RoCE is there or was asked for; "" where it will not, or
// where only NCCL knows. root stands before /sys and /dev; verbs is the library by which NCCL reaches InfiniBand.
void network_explain_sockets(char *text, size_t bytes, const char *root, const char *verbs);

#endif
