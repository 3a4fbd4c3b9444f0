// SPDX-License-Identifier: MIT
// An MPI that lets only one thread communicate at a time, for LD_PRELOAD.
#include <mpi.h>

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    (void)required;
    return PMPI_Init_thread(argc, argv, MPI_THREAD_SERIALIZED, provided);
}
