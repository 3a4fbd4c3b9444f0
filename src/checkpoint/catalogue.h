// SPDX-License-Identifier: MIT
// Index of a checkpoint: every slice of every tensor, with its file and offset.
#pragma once

#include "gswbench/output.h"
#include "manifest.h"
#include "slices.h"

// A slice in a file. In Hugging Face's layout it is a full tensor.
struct stored {
    struct safetensor entry;    // as in the file's header
    int64_t           begin;    // offset of its data in the file
    struct rectangle  at;
    int32_t           file;
    char              tensor[SLICE_NAME_BYTES];
};

// All slices of one tensor; they tile it.
struct stored_tensor {
    const struct stored *slices;
    int64_t              count;
    int64_t              rows, columns;
};

struct catalogue {
    char            path[OUTPUT_PATH_BYTES + OUTPUT_NAME_BYTES];    // a path above PATH_MAX does not open
    bool            is_ours, verifies;
    struct manifest manifest;    // empty for Hugging Face's layout
    char (*files)[64];
    struct stored *slices;    // [count], sorted by tensor and rectangle
    int64_t        count;
    int32_t        file_count;

    // State of reading.
    int32_t              open_file;    // -1: none
    int64_t             *ends;    // [file_count], offset after the last slice of each file; NULL until a file is opened
    int                  descriptor;
    int64_t              ahead;    // end of the region requested from the page cache
    const struct stored *last;
    void                *data, *filled;    // filled: staging buffer for a tensor of this rank
    int64_t              read_bytes;       // total so far
    struct checkpoint_watch watch;         // progress callbacks
};

// "FOLDER/NAME", for a file of the checkpoint.
enum { CATALOGUE_PATH_BYTES = OUTPUT_PATH_BYTES + 2 * OUTPUT_NAME_BYTES };
const char *catalogue_join(const char *folder, const char *name, char path[CATALOGUE_PATH_BYTES]);

// Parses a JSON file of the checkpoint, and describes the file as a manifest does. The caller owns the reference.
status catalogue_load_json(const struct catalogue *catalogue, const char *name, json_t **json,
                           struct manifest_file *found);

// Opens a checkpoint, or the newest complete one in a folder, and reads every header. Close it even after an error.
status catalogue_open(struct catalogue *catalogue, const char *path, bool verifies);
void   catalogue_close(struct catalogue *catalogue);

// Looks up a tensor by state and name; count is 0 if it is missing.
struct stored_tensor catalogue_find(const struct catalogue *catalogue, enum state state, const char *name);

// Type of exported weights: fp32 if some exist only as master weights.
enum format catalogue_weight_format(const struct catalogue *catalogue);

// Checks that the checkpoint has exactly the model's tensors, with the right shapes.
bool   catalogue_has(const struct catalogue *catalogue, const char *name);    // weights or masters of that name
status catalogue_check(const struct catalogue *catalogue, const struct plan *plan);

// Returns the data of a slice, valid until the next call. rows: the requested rectangle, replaced by the one
// that was read: if data is verified, the full slice, because the checksum covers all of it.
status catalogue_read(struct catalogue *catalogue, const struct stored *stored, struct rectangle *rows,
                      const void **data);

// Destination buffer: elements of a unit's range, starting at element first.
struct filled {
    void       *data;
    enum format format;
    int64_t     first;
};

// Copies a slice of a tensor's state into the destination, rounded if the tensor has fewer bits. docs/checkpoint.md
// describes how a missing state is derived.
status catalogue_fill(struct catalogue *catalogue, enum state state, const struct slice *wanted,
                      const struct filled *filled);

// Reads a rectangle of a slice, row by row; it must be the full slice if verified.
status catalogue_read_into(struct catalogue *catalogue, const struct stored *stored, const struct rectangle *at,
                           void *data);

// load.c: router biases of every layer; zeros if the checkpoint has none.
status catalogue_read_biases(struct catalogue *catalogue, const struct plan *plan, float *values);

// Closes the open file and frees the buffers for reading.
void catalogue_end_reading(struct catalogue *catalogue);

// "PATH: tensor 'NAME': PROBLEM"
status catalogue_refuse(const struct catalogue *catalogue, const char *tensor, const char *problem);

// Checks that slices tile their tensor. Slices are sorted by row and column. wrong: a slice that overlaps an
// earlier one. O(n log n).
enum tiling { TILING_WHOLE, TILING_OVERLAP, TILING_HOLE };
enum tiling tiling_find(const struct stored_tensor *tensor, const struct stored **wrong);
