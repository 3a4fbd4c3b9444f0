// SPDX-License-Identifier: MIT
// Describes row-major GEMMs in the terms of a column-major library (cuBLASLt) without copying matrices, and manages the
// cache file of the fastest algorithms. This module does not call the library, so its tests run without cuBLASLt.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gswbench/format.h"
#include "gswbench/op.h"
#include "gswbench/status.h"

// Column-major matrix; leading: elements from one column to the next.
struct gemm_matrix {
    int64_t rows, columns, leading;
    bool    transposed;    // multiplied as its transpose
};

// A column-major library that reads a row-major matrix sees its transpose. So it computes C' = op(B)' op(A)' with B as
// the first operand, where ' is the transpose.
struct gemm_layout {
    struct gemm_matrix first;     // B
    struct gemm_matrix second;    // A
    struct gemm_matrix out;       // C, never transposed
};
struct gemm_layout gemm_layout_of(const struct gemm_shape *shape);

// The properties of a GEMM problem. Problems with equal properties share descriptors and an algorithm, even if
// shape.scale and shape.addend differ.
struct gemm_key {
    struct gemm_shape shape;
    enum format       a, b, c;
    bool              accumulates, sums_fast;    // sums_fast: FP8 with fast accumulation (enum fast_sums)
    int               alignment[3];              // of A, B and C in bytes: powers of two, at most 256
    int               bias_alignment;            // of the bias, which has the type of C; 0: no bias
    int               processors;                // SMs that the library may use; 0: all
};
bool gemm_key_is_equal(const struct gemm_key *one, const struct gemm_key *other);

// Fails if no device supports the GEMM. cuBLASLt must support the combination of types. FP8 and FP4 GEMMs need
// operands A [m, k] and B [n, k]. m, n and k must be multiples of 16; in FP4 and with MX blocks, of 32. At most one
// operand is E5M2, at most one has 128 x 128 blocks, and none has scales per row.
status gemm_check(const struct gemm_key *key);

// Returns the largest power of two, at most 256, that divides the address.
int gemm_alignment(const void *address);

// The chosen algorithm of a problem. Only the library can interpret its words, and only for the version and the device
// model in the problem's name.
enum { GEMM_ALGORITHM_WORDS = 8, GEMM_PROBLEM_BYTES = 256 };
// Where a choice comes from: read from the file, timed by this process, or received from another rank.
enum gemm_origin { GEMM_REMEMBERED, GEMM_TIMED, GEMM_TAKEN };
struct gemm_choice {
    char             problem[GEMM_PROBLEM_BYTES];
    uint64_t         algorithm[GEMM_ALGORITHM_WORDS];
    enum gemm_origin origin;
};

// Writes the name of a problem, such as "4096 x 6144 x 4096 nt bf16 bf16 f32 add, align 256 256 16, processors 0,
// cuBLASLt 13.1.0, NVIDIA H200".
void gemm_problem_name(const struct gemm_key *key, const char *library, const char *device,
                       char problem[GEMM_PROBLEM_BYTES]);

// The choices in the cache file, and new ones to add to it.
struct gemm_cache {
    char               *path;    // NULL: no file is used
    struct gemm_choice *choices;
    int                 count;
    bool                writes, is_changed;    // writes: this process may write the file
    char               *times;                 // lines for gemm_times.txt that are not written yet, or NULL
    char                note[224];             // why the file was not fully read or written (first reason), or ""
};

// Reads gemm.txt in this directory. NULL or "": the directory gswbench in the user's cache folder (XDG_CACHE_HOME,
// otherwise ~/.cache). A missing file is an empty cache. A file in another format, or one that another user could have
// written, is neither read nor replaced. Damaged lines are skipped. note says why a file or line was not read. writes:
// whether this process may write the file; set it on one rank of each host.
void gemm_cache_open(struct gemm_cache *cache, const char *directory, bool writes);
void gemm_cache_close(struct gemm_cache *cache);

// Measured seconds of each candidate algorithm of a problem; NaN: the library cannot run the candidate.
enum { GEMM_CANDIDATES = 32 };
struct gemm_times {
    int    count, chosen;
    double seconds[GEMM_CANDIDATES];
};

const struct gemm_choice *gemm_cache_find(const struct gemm_cache *cache, const char *problem);
// gemm_cache_add inserts a choice that this process timed. gemm_cache_take inserts the choice of another rank, or
// replaces the current one by it.
void gemm_cache_add(struct gemm_cache *cache, const struct gemm_choice *choice, const struct gemm_times *times);
void gemm_cache_take(struct gemm_cache *cache, const struct gemm_choice *choice);
// Adds the new choices to the file. Reads the file again to keep the choices of other processes, and rewrites it only
// if it changes. Appends the measured times to gemm_times.txt, a log that the program never reads. If writing fails,
// note has the reason. gemm_cache_close calls this function.
void gemm_cache_keep(struct gemm_cache *cache);
