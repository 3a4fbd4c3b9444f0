// SPDX-License-Identifier: MIT
// The safetensors file format: a writer that streams, a reader that trusts nothing.
#ifndef GSWBENCH_SAFETENSORS_H
#define GSWBENCH_SAFETENSORS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "gswbench/format.h"
#include "gswbench/output.h"
#include "gswbench/status.h"

enum { SAFETENSORS_NAME_BYTES = 128 };

struct safetensor {
    char        name[SAFETENSORS_NAME_BYTES];
    enum format format;
    int32_t     dims;
    int64_t     dim[4];
    int64_t     begin, bytes;    // in the data section
    uint64_t    checksum;        // XXH3 of the data
    bool        has_checksum;    // of a tensor that is read
    bool        is_half;         // likewise: format stands for F16 of IEEE 754, which nothing computes in
};

// A file that is being written. The tensors' data follow in the order given (the header keeps the format's order of
// offsets); begin, bytes and checksum are filled in. Finish writes the checksums into the header: until then the
// tensors stay where they are.
struct safetensors_writer {
    struct output        output;
    struct safetensor   *tensors;
    int32_t              count, current;    // current: whose data are next
    int64_t              expected_bytes, written_bytes, file_bytes;
    uint64_t             header_checksum;    // known when it is finished
    struct XXH3_state_s *hash;               // of the current one's data so far
};
status safetensors_create(struct safetensors_writer *writer, const char *path, struct safetensor *tensors,
                          int32_t count);
status safetensors_create_in(struct safetensors_writer *writer, const struct output_folder *folder, const char *name,
                             struct safetensor *tensors, int32_t count);
status safetensors_append(struct safetensors_writer *writer, const void *data, int64_t bytes);
status safetensors_finish(struct safetensors_writer *writer);
void   safetensors_abandon(struct safetensors_writer *writer);    // leaves no file; also where another call has failed

// Reads and checks the whole header: sizes, offsets, overlaps, names, its checksum; and with a tensor its own. A file
// without checksums is another program's. Data that are no finite numbers are refused as well. Errors are
// EXIT_CHECKPOINT with file and tensor.
struct safetensors_reader {
    FILE              *file;
    char               path[1024];
    struct safetensor *tensors;
    int32_t            count;
    int64_t            data_start, file_bytes;
    uint64_t           header_checksum;    // 0: the file has none
};
status safetensors_open(struct safetensors_reader *reader, const char *path);
status safetensors_read(struct safetensors_reader *reader, const char *name, void *data, int64_t bytes);
void   safetensors_close(struct safetensors_reader *reader);

#endif
