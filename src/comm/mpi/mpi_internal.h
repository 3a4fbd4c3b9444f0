// SPDX-License-Identifier: MIT
// Shared by the files of the MPI communicator.
#ifndef GSWBENCH_COMM_MPI_INTERNAL_H
#define GSWBENCH_COMM_MPI_INTERNAL_H

#include <mpi.h>

#include "../internal.h"
#include "../mpi_module.h"

#define MPI_CHECK(call) mpi_check((call), #call, __FILE__, __LINE__)

// Ends the job unless error is MPI_SUCCESS.
void mpi_check(int error, const char *call, const char *file, int line);

// Polls with yields, then with sleeps, so that other streams and ranks get the core.
void mpi_wait_all(MPI_Request *requests, int count);

// The same, but returns the error; statuses are set if it is MPI_ERR_IN_STATUS.
int                mpi_test_all(MPI_Request *requests, int count, MPI_Status *statuses);
struct comm_group *mpi_group_open(struct comm *comm, const int64_t *members, int64_t size, int lane, int processors);
void               mpi_group_close(struct comm_group *group);
void mpi_run(struct comm_group *group, const struct op *op, const void *in, void *out, enum format format);

#endif
