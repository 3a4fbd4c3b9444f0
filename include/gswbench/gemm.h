// SPDX-License-Identifier: MIT
// GEMMs by a column-major library: how a row-major GEMM is put to it without copies, and the file that
// remembers which of its algorithms was the fastest. Knows no library, so that it is tested without one.
#ifndef GSWBENCH_GEMM_H
#define GSWBENCH_GEMM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gswbench/format.h"
#include "gswbench/op.h"
#include "gswbench/status.h"

// A matrix as it is stored, column by column; leading: elements from one column to the next.
struct gemm_matrix {
    int64_t rows, columns, leading;
    bool    transposed;    // its transpose is a factor
};

// A row-major matrix read column by column is its transpose. So the library computes C' = op(B)' op(A)': B comes first.
struct gemm_layout {
    struct gemm_matrix first;     // B
    struct gemm_matrix second;    // A
    struct gemm_matrix out;       // C, never transposed
};
struct gemm_layout gemm_layout_of(const struct gemm_shape *shape);

// Everything that makes two GEMMs different problems for the library.
struct gemm_key {
    struct gemm_shape shape;
    enum format       a, b, c;
    bool              accumulates, sums_fast;
    bool              adds_bias;       // of C's type
    int               alignment[3];    // of A, B and C in bytes: powers of two, 256 at most
    int               processors;      // that the library may use; 0: all
};
bool gemm_key_is_equal(const struct gemm_key *one, const struct gemm_key *other);

// Fails for what cuBLASLt supports on no device: FP8 in other sizes than multiples of 16 or not row by row (A [m, k],
// B [n, k]), two factors in E5M2 or two scaled by squares, other mixed types.
status gemm_check(const struct gemm_key *key);

// Largest power of two, up to 256, that divides the address.
int gemm_alignment(const void *address);

// Which algorithm a GEMM uses with one version of the library on one kind of device. The words mean something to the
// library only.
enum { GEMM_ALGORITHM_WORDS = 8, GEMM_PROBLEM_BYTES = 256 };
enum gemm_origin { GEMM_REMEMBERED, GEMM_TIMED, GEMM_TAKEN };    // of the file; here; from another rank
struct gemm_choice {
    char             problem[GEMM_PROBLEM_BYTES];
    uint64_t         algorithm[GEMM_ALGORITHM_WORDS];
    enum gemm_origin origin;
};

// "4096 x 6144 x 4096 nt bf16 bf16 f32 add, align 256 256 16, processors 0, cuBLASLt 130100, NVIDIA H200" into problem.
void gemm_problem_name(const struct gemm_key *key, const char *library, const char *device,
                       char problem[GEMM_PROBLEM_BYTES]);

// The choices of one file, and those that are to be added to it.
struct gemm_cache {
    char               *path;    // NULL: nothing is kept
    struct gemm_choice *choices;
    int                 count;
    bool                writes, is_changed;
    char               *times;        // lines for gemm_times.txt, of choices that are not yet kept; NULL: none
    char                note[224];    // why not all is read or kept, the first reason of several; else ""
};

// Reads DIRECTORY/gemm.txt; NULL or "" stands for gswbench in the user's cache directory (XDG_CACHE_HOME, else
// ~/.cache). No file: no choices. What is no file of ours, or could have been written by another user, is neither read
// nor written, and a damaged line is left out; the note says so. writes: whether choices that are added are kept for
// later runs, which is one rank's of a host.
void gemm_cache_open(struct gemm_cache *cache, const char *directory, bool writes);
void gemm_cache_close(struct gemm_cache *cache);

// What timing the candidates of a problem found; NaN: the library does not run it.
enum { GEMM_CANDIDATES = 32 };
struct gemm_times {
    int    count, chosen;
    double seconds[GEMM_CANDIDATES];
};

const struct gemm_choice *gemm_cache_find(const struct gemm_cache *cache, const char *problem);
// Adds a choice that was timed here, or takes another rank's in the place of what is there.
void gemm_cache_add(struct gemm_cache *cache, const struct gemm_choice *choice, const struct gemm_times *times);
void gemm_cache_take(struct gemm_cache *cache, const struct gemm_choice *choice);
// Writes what was added since: the file is read again, so that what others have kept meanwhile stays, and replaced as a
// whole, unless it has all. The times go to the end of gemm_times.txt beside it, which nothing reads: it says how close
// the others came. Where it cannot be written, choices live as long as the process, and the note says so. Closing does
// so, too.
void gemm_cache_keep(struct gemm_cache *cache);

#endif
