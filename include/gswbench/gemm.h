// SPDX-License-Identifier: MIT
// Describes row-major GEMMs to a column-major library (cuBLASLt) without copying matrices, and keeps the cache file of
// its fastest algorithms. This module does not call the library, so tests run without it.
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

// A library that reads a row-major matrix in column-major order sees its transpose. So it computes C' = op(B)' op(A)',
// with B as the first operand.
struct gemm_layout {
    struct gemm_matrix first;     // B
    struct gemm_matrix second;    // A
    struct gemm_matrix out;       // C, never transposed
};
struct gemm_layout gemm_layout_of(const struct gemm_shape *shape);

// All properties that distinguish two GEMM problems of the library.
struct gemm_key {
    struct gemm_shape shape;
    enum format       a, b, c;
    bool              accumulates, sums_fast;
    bool              adds_bias;       // the bias has the type of C
    int               alignment[3];    // of A, B and C in bytes: powers of two, at most 256
    int               processors;      // SMs that the library may use; 0: all
};
bool gemm_key_is_equal(const struct gemm_key *one, const struct gemm_key *other);

// Fails if no device supports the GEMM. Combinations of types must be cuBLASLt's. FP8 and FP4 GEMMs also need operands
// A [m, k] and B [n, k], sizes that are multiples of 16 (32 with MX blocks and in FP4), at most one E5M2 operand, at
// most one operand with 128 x 128 blocks, and no scales per row.
status gemm_check(const struct gemm_key *key);

// Largest power of two, at most 256, that divides the address.
int gemm_alignment(const void *address);

// The chosen algorithm of a GEMM problem. Only the library interprets the words, and only in the version and on the
// device model that the problem's name contains.
enum { GEMM_ALGORITHM_WORDS = 8, GEMM_PROBLEM_BYTES = 256 };
// Where a choice comes from: read from the file, timed by this process, or received from another rank.
enum gemm_origin { GEMM_REMEMBERED, GEMM_TIMED, GEMM_TAKEN };
struct gemm_choice {
    char             problem[GEMM_PROBLEM_BYTES];
    uint64_t         algorithm[GEMM_ALGORITHM_WORDS];
    enum gemm_origin origin;
};

// Writes the name of a problem: "4096 x 6144 x 4096 nt bf16 bf16 f32 add, align 256 256 16, processors 0, cuBLASLt
// 13.1.0, NVIDIA H200".
void gemm_problem_name(const struct gemm_key *key, const char *library, const char *device,
                       char problem[GEMM_PROBLEM_BYTES]);

// Choices read from one file, and choices to add to it.
struct gemm_cache {
    char               *path;    // NULL: no file is used
    struct gemm_choice *choices;
    int                 count;
    bool                writes, is_changed;    // writes: this process may write the file
    char               *times;                 // lines for gemm_times.txt that are not written yet, or NULL
    char                note[224];             // why the file was not fully read or written (first reason), or ""
};

// Reads DIRECTORY/gemm.txt. NULL or "" selects gswbench in the user's cache folder (XDG_CACHE_HOME, otherwise
// ~/.cache). A missing file is an empty cache. A file in another format, or one that another user could have written,
// is neither read nor replaced; damaged lines are skipped. In both cases note holds the reason. writes: this process
// writes the file; set it on one rank of each host.
void gemm_cache_open(struct gemm_cache *cache, const char *directory, bool writes);
void gemm_cache_close(struct gemm_cache *cache);

// Measured seconds of the candidates of one problem; NaN: the candidate does not run.
enum { GEMM_CANDIDATES = 32 };
struct gemm_times {
    int    count, chosen;
    double seconds[GEMM_CANDIDATES];
};

const struct gemm_choice *gemm_cache_find(const struct gemm_cache *cache, const char *problem);
// gemm_cache_add inserts a choice that this process timed. gemm_cache_take inserts or replaces with another rank's.
void gemm_cache_add(struct gemm_cache *cache, const struct gemm_choice *choice, const struct gemm_times *times);
void gemm_cache_take(struct gemm_cache *cache, const struct gemm_choice *choice);
// Merges the choices that were timed or taken into the file: reads it again to keep those of other processes, and
// rewrites it only if that adds or changes one. Appends the measured times to gemm_times.txt, a log that the program
// never reads. If writing fails, note has the reason. gemm_cache_close calls this function.
void gemm_cache_keep(struct gemm_cache *cache);
