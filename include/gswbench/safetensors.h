// SPDX-License-Identifier: MIT
// Streaming writer and validating reader of safetensors files.
#pragma once

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
    int64_t     begin, bytes;    // offset in the data section, and size
    uint64_t    checksum;        // XXH3 of the data
    bool        has_checksum;    // when reading: the file has a checksum of this tensor
};

// Writes a file. Data are appended in the order of tensors. Create fills begin and bytes, append the checksums, and
// finish writes those into the header: tensors must stay valid until then.
struct safetensors_writer {
    struct output        output;
    struct safetensor   *tensors;
    int32_t              count, current;    // current: the tensor that the next bytes belong to
    int64_t              expected_bytes, written_bytes, file_bytes;
    uint64_t             header_checksum;    // valid after finish
    struct XXH3_state_s *hash;               // of the current tensor's data so far
};
status safetensors_create(struct safetensors_writer *writer, const char *path, struct safetensor *tensors,
                          int32_t count);
status safetensors_create_in(struct safetensors_writer *writer, const struct output_folder *folder, const char *name,
                             struct safetensor *tensors, int32_t count);
status safetensors_append(struct safetensors_writer *writer, const void *data, int64_t bytes);
status safetensors_finish(struct safetensors_writer *writer);
void   safetensors_abandon(struct safetensors_writer *writer);    // removes the partial file; also safe after an error

// Reads a file. Open validates the header: sizes, offsets, overlaps, names, checksum. Read verifies a tensor's
// checksum, if present, and rejects NaN and infinities. Errors are EXIT_CHECKPOINT with file and tensor.
struct safetensors_reader {
    FILE              *file;
    char               path[OUTPUT_PATH_BYTES + OUTPUT_NAME_BYTES];
    struct safetensor *tensors;
    int32_t            count;
    int64_t            data_start, file_bytes;
    uint64_t           header_checksum;    // 0: the file has none
};
status safetensors_open(struct safetensors_reader *reader, const char *path);
status safetensors_read(struct safetensors_reader *reader, const char *name, void *data, int64_t bytes);
void   safetensors_close(struct safetensors_reader *reader);
