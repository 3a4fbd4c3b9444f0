// SPDX-License-Identifier: MIT
// Loads shared libraries on demand, so the program starts without them.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "gswbench/status.h"

struct library_symbol {
    const char *name;
    void       *place;          // address of the function pointer to fill
    bool        is_optional;    // a missing symbol is no error: the pointer becomes NULL
};

// LIST(LIBRARY_MEMBER) declares a function pointer for each function of a list. LIST(LIBRARY_SYMBOL) makes the
// library_symbols that fill them; it needs a pointer `library` to that struct.
#define LIBRARY_MEMBER(function) __typeof__(function) *function;
#define LIBRARY_SYMBOL(function) {#function, &library->function, false},

// Opens a library by file name or absolute path and resolves its symbols. Fails (EXIT_LAUNCH) on a relative path, or if
// the library or a required symbol is missing. Libraries stay loaded, because they cannot be loaded a second time.
status library_open(const char *name, const struct library_symbol *symbols, size_t count);

// Writes the path of a file that is installed with the program. path: relative to the parent of the program's folder,
// such as "lib/gswbench/mpi.so".
void library_beside_program(char *text, size_t bytes, const char *path);
