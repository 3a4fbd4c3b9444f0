// SPDX-License-Identifier: MIT
// Index of a checkpoint: every slice of every tensor, with its file and its offset in the file. A slice is a rectangle
// of a tensor that one rank has saved.
#pragma once

#include "gswbench/output.h"
#include "manifest.h"
#include "slices.h"

// A slice in a file. In Hugging Face's layout a slice is a whole tensor.
struct stored {
    struct safetensor entry;    // its entry in the file's header
    int64_t           begin;    // offset of its data in the file
    struct rectangle  at;
    int32_t           file;
    char              tensor[SLICE_NAME_BYTES];
};

// All slices of one tensor. They cover it without overlap.
struct stored_tensor {
    const struct stored *slices;
    int64_t              count;
    int64_t              rows, columns;
};

struct catalogue {
    char            path[OUTPUT_PATH_BYTES + OUTPUT_NAME_BYTES];    // folder of the checkpoint
    bool            is_ours, verifies;    // a gswbench checkpoint with a manifest; reads verify checksums
    struct manifest manifest;             // empty in Hugging Face's layout
    char (*files)[64];
    struct stored *slices;    // [count]: sorted by tensor, then row, then column
    int64_t        count;
    int32_t        file_count;

    // State of catalogue_read and catalogue_read_into.
    int32_t              open_file;    // index of the open file; -1: none
    int64_t             *ends;         // [file_count]: end of the last slice in each file; NULL before a file is opened
    int                  descriptor;
    int64_t              ahead;    // end of the region that the kernel was asked to load into the page cache
    const struct stored *last;
    // data: buffer of catalogue_read, which has all of the slice `last`, or a part of a slice if `last` is NULL.
    // destination: buffer for a tensor of this rank before it is copied to the device.
    void                   *data, *destination;
    int64_t                 read_bytes;    // bytes read so far
    struct checkpoint_watch watch;         // tells the watchdog about progress
};

// Writes the path "FOLDER/NAME" of a file of the checkpoint.
enum { CATALOGUE_PATH_BYTES = OUTPUT_PATH_BYTES + 2 * OUTPUT_NAME_BYTES };
const char *catalogue_join(const char *folder, const char *name, char path[CATALOGUE_PATH_BYTES]);

// Parses a JSON file of the checkpoint. found: its size and checksum, as in a manifest. The caller releases *json.
status catalogue_load_json(const struct catalogue *catalogue, const char *name, json_t **json,
                           struct manifest_file *found);

// Opens a checkpoint, or the newest complete one in a folder of checkpoints, and reads all headers. Close it even after
// an error.
status catalogue_open(struct catalogue *catalogue, const char *path, bool verifies);
void   catalogue_close(struct catalogue *catalogue);

// Finds the stored tensor with a state (weight, master weight or moment) of the weight `name`. If the checkpoint has
// none, count is 0.
struct stored_tensor catalogue_find(const struct catalogue *catalogue, enum state state, const char *name);

// Returns the type of exported weights: fp32 if the checkpoint has no masters, or has a weight only as master; else
// bf16.
enum format catalogue_weight_format(const struct catalogue *catalogue);

// catalogue_has returns whether there are weights or masters of this name. catalogue_check fails unless the checkpoint
// has exactly the model's tensors with the right shapes. LoRA adapters, FP8 scales and router biases may be missing.
bool   catalogue_has(const struct catalogue *catalogue, const char *name);
status catalogue_check(const struct catalogue *catalogue, const struct plan *plan);

// Reads data of a slice, which stay valid until the next call. at: before the call, the rectangle to read; after it,
// the rectangle that was read. If data are verified, this is the whole slice, because the checksum covers all of it.
status catalogue_read(struct catalogue *catalogue, const struct stored *stored, struct rectangle *at,
                      const void **data);

// A buffer with consecutive elements of an FSDP unit or a slice. first: index in the unit or slice of data[0].
struct elements {
    void       *data;
    enum format format;
    int64_t     first;
};

// Reads a slice of a state (weights, masters or moments) into the destination, and rounds it if the destination has
// fewer bits. docs/checkpoint.md describes how a missing state is derived.
status catalogue_fill(struct catalogue *catalogue, enum state state, const struct slice *wanted,
                      const struct elements *destination);

// Reads the rectangle `at` of a slice. If data are verified, the rectangle must be the whole slice.
status catalogue_read_into(struct catalogue *catalogue, const struct stored *stored, const struct rectangle *at,
                           void *data);

// load.c: reads the router biases of every layer; zeros if the checkpoint has none.
status catalogue_read_biases(struct catalogue *catalogue, const struct plan *plan, float *values);

// Closes the open file and frees the buffers for reading.
void catalogue_end_reading(struct catalogue *catalogue);

// Returns the error "PATH: tensor 'NAME': PROBLEM".
status catalogue_refuse(const struct catalogue *catalogue, const char *tensor, const char *problem);

// Checks that slices cover their tensor without overlap. The slices must be sorted by row and column. wrong: a slice
// that overlaps an earlier one. Takes O(n log n) for n slices.
enum tiling { TILING_WHOLE, TILING_OVERLAP, TILING_HOLE };
enum tiling tiling_find(const struct stored_tensor *tensor, const struct stored **wrong);
