// SPDX-License-Identifier: MIT
// Shared libraries that are opened when they are needed, so that the program starts where they are missing.
#ifndef GSWBENCH_LIBRARY_H
#define GSWBENCH_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

#include "gswbench/status.h"

struct library_symbol {
    const char *name;
    void       *place;          // address of the function pointer that receives it
    bool        is_optional;    // where the library lacks it, place receives NULL
};

// Opens the library of that file name, or absolute path, and fills all symbols. Fails (EXIT_LAUNCH) for a path from the
// current folder, when the loader does not find it, or it lacks a symbol that is not optional. It stays open: libraries
// of this kind cannot be closed and opened again.
status library_open(const char *name, const struct library_symbol *symbols, size_t count);

// Into text: where this file is that comes with the program and lies beside its folder, "lib/gswbench/mpi.so".
void library_beside_program(char *text, size_t bytes, const char *path);

#endif
