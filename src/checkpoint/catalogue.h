// SPDX-License-Identifier: MIT
// What the files of a checkpoint hold: every slice of every tensor, and where it lies.
#ifndef GSWBENCH_CHECKPOINT_CATALOGUE_H
#define GSWBENCH_CHECKPOINT_CATALOGUE_H

#include "manifest.h"
#include "slices.h"

// A slice in a file. In a folder of Hugging Face each is a whole tensor.
struct stored {
    struct safetensor entry;    // as the file's header has it
    int64_t           begin;    // of its data in the file
    struct rectangle  at;
    int32_t           file;
    char              tensor[SLICE_NAME_BYTES];
};

// All slices of one tensor, which tile it.
struct stored_tensor {
    const struct stored *slices;
    int64_t              count;
    int64_t              rows, columns;
};

struct catalogue {
    char            path[1024];
    bool            is_ours, verifies;
    bool            is_alone;    // no other rank reads what this one reads whole
    struct manifest manifest;    // of our own
    char (*files)[64];
    struct stored *slices;    // [count], by tensor and rectangle
    int64_t        count;
    int32_t        file_count;

    // What was read last.
    int32_t                 open_file;    // -1: none
    int64_t                *ends;    // [file_count], where the last slice of each ends; NULL until a file is opened
    int                     descriptor;
    int64_t                 ahead;        // of that file, the system was told to read up to there
    struct direct          *direct;       // of that file, where its slices are read whole; NULL: none
    bool                    is_direct;    // the present slice comes from there
    const struct stored    *last;
    void                   *data, *filled;    // filled: room for what a rank's tensor gets
    int64_t                 read_bytes;       // so far
    struct checkpoint_watch watch;            // of reading
};

// The folder of a checkpoint, or one that has checkpoints, of which the newest whole one is taken. Every header is
// read. Close it also where opening failed.
status catalogue_open(struct catalogue *catalogue, const char *path, bool verifies);
void   catalogue_close(struct catalogue *catalogue);

// What the first rank has opened, to all others: no file is opened for it. And whether this rank sees the folder.
void   catalogue_share(struct catalogue *catalogue, struct comm *comm);
status catalogue_is_seen(const struct catalogue *catalogue);

// By a tensor's name, with the prefix of its state; count 0: it has none.
struct stored_tensor catalogue_find(const struct catalogue *catalogue, enum state state, const char *name);

// The type that all of its weights can be had in as they were saved; fp32 where some only have masters.
enum format catalogue_weight_format(const struct catalogue *catalogue);

// Whether the checkpoint is of that model: each of its tensors and no other, of the right shape.
status catalogue_check(const struct catalogue *catalogue, const struct plan *plan);

// The data of a slice; valid until the next call. rows: those that are wanted of it, which is what is read where
// nothing is to be verified; the first of them is at the begin of data. is_part: others may want the rest of it.
status catalogue_read(struct catalogue *catalogue, const struct stored *stored, struct rectangle *rows, bool is_part,
                      const void **data);

// What is being filled: elements of a unit's range from first on.
struct filled {
    void       *data;
    enum format format;
    int64_t     first;
};

// Brings a slice of a tensor's state to its place in what is filled, rounded where that is narrower. A state that the
// checkpoint does not have follows from others as docs/checkpoint.md says.
status catalogue_fill(struct catalogue *catalogue, enum state state, const struct slice *wanted,
                      const struct filled *filled);

// The rectangle of a slice, row by row; all of it where it has to be verified.
status catalogue_read_into(struct catalogue *catalogue, const struct stored *stored, const struct rectangle *at,
                           void *data);

// load.c: the biases of all routers; zeros where a checkpoint has none.
status catalogue_read_biases(struct catalogue *catalogue, const struct plan *plan, float *values);

// Closes the file that is open, and gives back what reading took.
void catalogue_end_reading(struct catalogue *catalogue);

// "PATH: tensor 'NAME': PROBLEM"
status catalogue_refuse(const struct catalogue *catalogue, const char *tensor, const char *problem);

#endif
