// SPDX-License-Identifier: MIT
// Loads the shared library with the mpi communicator if a launcher or the configuration asks for it. So the program
// starts without MPI.
#include "mpi_module.h"

#ifdef GSWBENCH_MPI

#include "gswbench/library.h"

static struct {
    __typeof__(mpi_module_open)          *open;
    __typeof__(mpi_module_has_opened)    *has_opened;    // NULL: not loaded
    __typeof__(mpi_module_asks_for_pmix) *asks_for_pmix;
} module;

static status open_module(void)
{
    const struct library_symbol symbols[] = {{"mpi_module_open", &module.open, false},
                                             {"mpi_module_has_opened", &module.has_opened, false},
                                             {"mpi_module_asks_for_pmix", &module.asks_for_pmix, false}};
    char                        path[1024];
    library_beside_program(path, sizeof(path), "lib/gswbench/mpi.so");
    status opened = library_open(path, symbols, sizeof(symbols) / sizeof(symbols[0]));
    return failed(&opened) ? fail_as(EXIT_LAUNCH, "MPI cannot be loaded: %.900s", opened.text) : OK;
}

status comm_open_mpi(struct comm *comm)
{
    TRY(open_module());
    return module.open(comm);
}

bool comm_mpi_asks_for_pmix(void)
{
    status opened = open_module();
    return !failed(&opened) && module.asks_for_pmix();
}

bool comm_has_opened_mpi(void)
{
    return module.has_opened != NULL && module.has_opened();
}

#else

status comm_open_mpi(struct comm *comm)
{
    (void)comm;
    return fail_as(EXIT_LAUNCH, "this gswbench was built without MPI: install Open MPI (libopenmpi-dev) or set "
                                "MPI_HOME, and build again; or use run.communicator = local");
}

bool comm_mpi_asks_for_pmix(void)
{
    return false;
}

bool comm_has_opened_mpi(void)
{
    return false;
}

#endif
