// SPDX-License-Identifier: MIT
// Library for LD_PRELOAD that makes MPI report that it does not support MPI_THREAD_MULTIPLE, or with FAULTY_TESTALL=1
// that a message of an all-to-all with row counts got lost.
#include <mpi.h>
#include <stdlib.h>

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    int multiple = getenv("FAULTY_TESTALL") != NULL ? required : MPI_THREAD_SERIALIZED;
    return PMPI_Init_thread(argc, argv, multiple, provided);
}

// Only all-to-alls with row counts read the statuses. The first message fails, and the others are not complete yet.
int MPI_Testall(int count, MPI_Request *requests, int *is_done, MPI_Status *statuses)
{
    if (getenv("FAULTY_TESTALL") == NULL || statuses == MPI_STATUSES_IGNORE || count == 0) {
        return PMPI_Testall(count, requests, is_done, statuses);
    }
    for (int i = 0; i < count; i++) {
        statuses[i].MPI_ERROR = i == 0 ? MPI_ERR_OTHER : MPI_ERR_PENDING;
    }
    return MPI_ERR_IN_STATUS;
}
