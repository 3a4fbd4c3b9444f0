// SPDX-License-Identifier: MIT
// Writes safetensors files piece by piece, and reads and validates their headers.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "gswbench/format.h"
#include "gswbench/output.h"
#include "gswbench/status.h"

enum { SAFETENSORS_NAME_BYTES = 128 };

// A tensor in a safetensors file.
struct safetensor {
    char        name[SAFETENSORS_NAME_BYTES];
    enum format format;
    int32_t     dims;
    int64_t     dim[4];
    int64_t     begin, bytes;    // offset in the data section, and size
    uint64_t    checksum;        // XXH3 hash of the data
    bool        has_checksum;    // for a tensor that was read: whether the file has its checksum
};

// Writes a file. safetensors_create sets begin and bytes of the tensors. safetensors_append adds data in the order of
// the tensors and sets the checksums, which safetensors_finish writes into the header. The tensors must stay valid
// until then.
struct safetensors_writer {
    struct output        output;
    struct safetensor   *tensors;
    int32_t              count, current;    // current: index of the tensor to which the next bytes belong
    int64_t              expected_bytes, written_bytes, file_bytes;
    uint64_t             header_checksum;    // valid after finish
    struct XXH3_state_s *hash;               // hash of the current tensor's data so far
};
status safetensors_create(struct safetensors_writer *writer, const char *path, struct safetensor *tensors,
                          int32_t count);
status safetensors_create_in(struct safetensors_writer *writer, const struct output_folder *folder, const char *name,
                             struct safetensor *tensors, int32_t count);
status safetensors_append(struct safetensors_writer *writer, const void *data, int64_t bytes);
status safetensors_finish(struct safetensors_writer *writer);
// Removes the unfinished file. May be called after any error.
void safetensors_abandon(struct safetensors_writer *writer);

// Reads the header of a file. safetensors_open validates it: sizes, offsets, overlaps, names and checksum. Errors are
// EXIT_CHECKPOINT, and name file and tensor.
struct safetensors_reader {
    FILE              *file;
    char               path[OUTPUT_PATH_BYTES + OUTPUT_NAME_BYTES];
    struct safetensor *tensors;
    int32_t            count;
    int64_t            data_start, file_bytes;
    uint64_t           header_checksum;    // 0: the file has none
};
status safetensors_open(struct safetensors_reader *reader, const char *path);
void   safetensors_close(struct safetensors_reader *reader);
