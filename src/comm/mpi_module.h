// SPDX-License-Identifier: MIT
// Declares the interface of the shared library that is linked with MPI.
#pragma once

#include <stdbool.h>

#include "gswbench/comm.h"

status mpi_module_open(struct comm *comm);
bool   mpi_module_has_opened(void);
bool   mpi_module_asks_for_pmix(void);

struct mpi_link;

// Messages are divided into pieces of message_bytes, because MPI counts are int, and transports treat messages of more
// than 2 GiB differently.
enum { MPI_MESSAGE_BYTES = 1 << 28 };
struct mpi_state {
    struct mpi_link *links;
    int              message_bytes;
};
