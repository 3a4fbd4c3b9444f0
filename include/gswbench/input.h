// SPDX-License-Identifier: MIT
// Files that are read: a path is the user's, and whatever it names, opening it neither waits nor fails without a
// reason.
#ifndef GSWBENCH_INPUT_H
#define GSWBENCH_INPUT_H

#include <stddef.h>
#include <sys/stat.h>

#include "gswbench/status.h"

// Opens a regular file for reading; the caller closes the descriptor. Errors are EXIT_CONFIG and do not name the path:
// "is a pipe, not a file".
status input_open(const char *path, int *file, struct stat *about);

// All bytes of an opened file, which the caller frees; NULL with errno where they cannot be read.
char *input_read(int file, size_t bytes);

// Whether nobody but this user and root can have written the file; else why it is not to be believed.
status input_check_owner(const struct stat *about);

// "a pipe": what there is where a file was expected.
const char *input_kind(mode_t mode);

#endif
