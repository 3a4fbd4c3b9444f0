// SPDX-License-Identifier: MIT
// Declares an arena allocator: all allocations are freed together. A failed allocation ends the job.
#pragma once

#include <stddef.h>

struct arena_block;

struct arena {
    struct arena_block *blocks;
    size_t              allocated_bytes;    // requested from the system
};

// A zeroed arena is ready for use. Memory is zeroed and 16-byte aligned.
void *arena_allocate(struct arena *arena, size_t bytes);
char *arena_format(struct arena *arena, const char *format, ...) __attribute__((format(printf, 2, 3)));
void  arena_free(struct arena *arena);

// malloc of zeroed memory, and realloc. A failure ends the job. The caller frees the memory.
void *memory_allocate(size_t bytes);
void *memory_resize(void *memory, size_t bytes);

// Grows an array from memory_resize by one element, and returns the element's address. LIST_APPEND also assigns the
// element.
#define LIST_ADD(list, count)                                                                                          \
    ((list) = memory_resize(list, ((size_t)(count) + 1) * sizeof(*(list))), &(list)[(count)++])
// Like LIST_ADD, for large arrays: doubles the array when `count` is a power of two. The macro derives the capacity
// from `count` alone, so it must add all elements of the array.
#define LIST_ADD_DOUBLING(list, count)                                                                                 \
    (((size_t)(count) & ((size_t)(count)-1)) == 0                                                                      \
         ? (void)((list) = memory_resize(list, ((count) > 0 ? 2 * (size_t)(count) : 1) * sizeof(*(list))))             \
         : (void)0,                                                                                                    \
     &(list)[(count)++])
#define LIST_APPEND(list, count, ...)                                                                                  \
    do {                                                                                                               \
        *LIST_ADD(list, count) = __VA_ARGS__;                                                                          \
    } while (0)
