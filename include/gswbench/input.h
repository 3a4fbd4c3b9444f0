// SPDX-License-Identifier: MIT
// Reads files named by the user. Opening never blocks, even on a named pipe; errors give the reason.
#pragma once

#include <stddef.h>
#include <stdio.h>
#include <sys/stat.h>

#include "gswbench/status.h"

// Opens a regular file; the caller closes it. Errors are EXIT_CONFIG, without the path: "is a pipe, not a file".
status input_open(const char *path, int *file, struct stat *about);

// Opens a regular file like input_open, as a stream for reading.
status input_open_stream(const char *path, FILE **stream, struct stat *about);

// Opens and reads a whole file; the caller frees the text. Reads as many bytes as the file has when it is opened, and
// fails if these are more than bytes_max. After an error the text is NULL.
status input_load(const char *path, size_t bytes_max, char **text, size_t *bytes);

// Fails unless only this user and root can write the file.
status input_check_owner(const struct stat *about);

// Describes a file type that is not a regular file: "a pipe".
const char *input_kind(mode_t mode);
