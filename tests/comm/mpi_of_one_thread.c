// SPDX-License-Identifier: MIT
// Library for LD_PRELOAD that makes MPI report that it does not support MPI_THREAD_MULTIPLE.
#include <mpi.h>

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    (void)required;
    return PMPI_Init_thread(argc, argv, MPI_THREAD_SERIALIZED, provided);
}
