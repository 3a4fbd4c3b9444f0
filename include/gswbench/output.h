// SPDX-License-Identifier: MIT
// Files that are written, all of them here: a file under its final name is whole. It grows under another name in the
// same folder, and takes the final one when its bytes are on the disk; whatever fails before leaves an older file as it
// is, and nothing half written. A final name that is a link, a folder, a pipe or a device is neither followed nor
// replaced. Errors are EXIT_OUTPUT and name path and reason.
#ifndef GSWBENCH_OUTPUT_H
#define GSWBENCH_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gswbench/status.h"

enum { OUTPUT_PATH_BYTES = 2048, OUTPUT_NAME_BYTES = 256 };

// A folder that is held: what is written into it goes there, whatever its path comes to name. A zeroed one is closed.
struct output_folder {
    bool is_open;
    int  descriptor;
    char path[OUTPUT_PATH_BYTES];    // for people
};

// Creates every folder of the path that is missing.
status output_create_folders(const char *path);

// The second one creates the folder, or finds it empty; a link it is not.
status output_open_folder(struct output_folder *folder, const char *path);
status output_claim_folder(struct output_folder *folder, const char *path);
void   output_close_folder(struct output_folder *folder);

// Creates a folder in the open one, unless there is one; and goes on to it. A link is never followed.
status output_make_folder(const struct output_folder *folder, const char *name, bool *is_new);
status output_enter_folder(struct output_folder *folder, const char *name);

// Lets NAME in the folder at that path be a link to the target, in place of an older link. What is no link stays.
status output_link(const char *path, const char *name, const char *target);

// A file on its way to its name. Finish or abandon it; a failed begin, append or finish has abandoned it, and a zeroed
// one needs neither.
struct output {
    bool    is_open, replaces;                              // replaces: an older file may bear the name
    int     folder, file;                                   // descriptors
    int64_t appended, sent;                                 // bytes; sent: on their way to the disk
    char    path[OUTPUT_PATH_BYTES + OUTPUT_NAME_BYTES];    // for people
    char    name[OUTPUT_NAME_BYTES], temporary[OUTPUT_NAME_BYTES];
};
status output_begin(struct output *output, const char *path);    // replaces an older file
status output_begin_in(struct output *output, const struct output_folder *folder, const char *name);    // a new file
status output_append(struct output *output, const void *data, size_t bytes);
status output_rewrite(struct output *output, const void *data, size_t bytes, int64_t offset);    // over what is there
status output_finish(struct output *output);
void   output_abandon(struct output *output);

// A whole new file, in a folder and by its path; one that replaces an older one.
status output_write(const struct output_folder *folder, const char *name, const void *data, size_t bytes);
status output_create(const char *path, const void *data, size_t bytes);
status output_replace(const char *path, const void *data, size_t bytes);

// Fails when what is written to a path, into an open folder, has no room on its file system, or its largest file none
// under the limit on the size of one.
status output_check_space(int folder, const char *path, int64_t bytes, int64_t largest_bytes);

// A new file that grows line by line, for as long as the process lives; close the descriptor.
status output_open_log(const struct output_folder *folder, const char *name, int *file);

// Adds to the end of a file, in one piece if the system can: a log, which need not be whole.
status output_extend(const char *path, const void *data, size_t bytes);

// Writes to a descriptor all of it or fails with errno: stdio forgets the reason of a buffered write.
bool output_put(int file, const void *data, size_t bytes);

#endif
