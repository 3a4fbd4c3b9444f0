// SPDX-License-Identifier: MIT
// Writes output files atomically: data goes to a temporary file in the same folder, which is synced and renamed. A file
// under its final name is complete, and after a failure the older file is unchanged. An existing link, folder, pipe or
// device is neither followed nor replaced. Errors are EXIT_OUTPUT with path and reason.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gswbench/status.h"
#include "gswbench/text.h"

enum { OUTPUT_PATH_BYTES = 4096, OUTPUT_NAME_BYTES = 256 };

// Returns the error "cannot ACTION PATH: REASON". REASON is the text of errno.
status output_cannot(const char *action, const char *path);

// An open folder. Files are created relative to its descriptor, so renaming the path does not redirect them. Zeroed:
// closed.
struct output_folder {
    bool is_open;
    int  descriptor;
    char path[OUTPUT_PATH_BYTES];    // for messages
};

// Creates missing folders of the path.
status output_create_folders(const char *path);

// output_open_folder opens an existing folder. output_claim_folder creates the folder; if it exists, it must be empty
// and not a link.
status output_open_folder(struct output_folder *folder, const char *path);
status output_claim_folder(struct output_folder *folder, const char *path);
void   output_close_folder(struct output_folder *folder);

// output_make_folder creates a subfolder if it does not exist. output_enter_folder replaces the open folder by a
// subfolder. Neither follows links.
status output_make_folder(const struct output_folder *folder, const char *name, bool *is_new);
status output_enter_folder(struct output_folder *folder, const char *name);

// Creates or replaces the symbolic link NAME in the folder at path. Fails if NAME exists and is not a link.
status output_link(const char *path, const char *name, const char *target);

// A file that is being written. output_finish completes it and output_abandon discards it. Neither is needed after an
// error, or for a zeroed struct.
struct output {
    bool    is_open, replaces;                              // replaces: may replace an existing file
    int     folder, file;                                   // descriptors
    int64_t appended, sent;                                 // bytes appended; bytes whose writeback has started
    char    path[OUTPUT_PATH_BYTES + OUTPUT_NAME_BYTES];    // for messages
    char    name[OUTPUT_NAME_BYTES], temporary[OUTPUT_NAME_BYTES];
};
status output_begin(struct output *output, const char *path);    // replaces an older file
status output_begin_in(struct output *output, const struct output_folder *folder, const char *name);    // a new file
status output_append(struct output *output, const void *data, size_t bytes);
status output_rewrite(struct output *output, const void *data, size_t bytes,
                      int64_t offset);    // overwrites existing bytes
status output_finish(struct output *output);
void   output_abandon(struct output *output);

// Write a complete file. If the file exists, output_replace and output_replace_in replace it, and the others fail.
status output_write(const struct output_folder *folder, const char *name, const void *data, size_t bytes);
status output_replace_in(const struct output_folder *folder, const char *name, const void *data, size_t bytes);
status output_create(const char *path, const void *data, size_t bytes);
status output_replace(const char *path, const void *data, size_t bytes);

// Closes the stream, replaces the file at the path by its text, and frees the text.
status output_save(struct text_stream *stream, const char *path, ...) __attribute__((format(printf, 2, 3)));

// Fails if the file system has no room for `bytes`, or a file of `largest_bytes` exceeds ulimit -f. path is for
// messages.
status output_check_space(int folder, const char *path, int64_t bytes, int64_t largest_bytes);

// Creates an append-only log; the caller closes the descriptor.
status output_open_log(const struct output_folder *folder, const char *name, int *file);

// Appends to a log file, in one write if possible.
status output_extend(const char *path, const void *data, size_t bytes);

// Writes all bytes. If that fails, returns false with the reason in errno.
bool output_put(int file, const void *data, size_t bytes);

// Returns whether a write to standard output would wait, as to a full pipe that nobody reads.
bool output_is_blocked(void);
