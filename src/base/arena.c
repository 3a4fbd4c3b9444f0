// SPDX-License-Identifier: MIT
// Implements the arena allocator. Allocations are cut from the newest block of a list. If one does not fit into this
// block, a new block is added.
#include "gswbench/arena.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "gswbench/fatal.h"
#include "gswbench/status.h"

enum { ALIGNMENT = 16, BLOCK_BYTES = 1 << 16 };

struct arena_block {
    struct arena_block *next;
    size_t              used, bytes;
    _Alignas(ALIGNMENT) unsigned char data[];
};

void *memory_allocate(size_t bytes)
{
    void *memory = calloc(1, bytes > 0 ? bytes : 1);
    if (memory == NULL) {
        FATAL(EXIT_MEMORY, "out of host memory: %zu bytes", bytes);
    }
    return memory;
}

void *memory_resize(void *memory, size_t bytes)
{
    void *resized = realloc(memory, bytes > 0 ? bytes : 1);
    if (resized == NULL) {
        FATAL(EXIT_MEMORY, "out of host memory: %zu bytes", bytes);
    }
    return resized;
}

void *arena_allocate(struct arena *arena, size_t bytes)
{
    size_t rounded = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    if (arena->blocks == NULL || arena->blocks->bytes - arena->blocks->used < rounded) {
        size_t              capacity = rounded > BLOCK_BYTES ? rounded : BLOCK_BYTES;
        struct arena_block *block    = memory_allocate(sizeof(*block) + capacity);
        *block                       = (struct arena_block){.next = arena->blocks, .bytes = capacity};
        arena->blocks                = block;
        arena->allocated_bytes += sizeof(*block) + capacity;
    }
    void *piece = arena->blocks->data + arena->blocks->used;
    arena->blocks->used += rounded;
    return piece;
}

char *arena_format(struct arena *arena, const char *format, ...)
{
    // Most strings fit into the newest block, so the first attempt formats in place.
    struct arena_block *block = arena->blocks;
    size_t              room  = block == NULL ? 0 : block->bytes - block->used;
    va_list             arguments;
    va_start(arguments, format);
    size_t length = (size_t)vsnprintf(room == 0 ? NULL : (char *)block->data + block->used, room, format, arguments);
    va_end(arguments);
    char *text = arena_allocate(arena, length + 1);
    if (length >= room) {
        va_start(arguments, format);
        vsnprintf(text, length + 1, format, arguments);
        va_end(arguments);
    }
    return text;
}

void arena_free(struct arena *arena)
{
    while (arena->blocks != NULL) {
        struct arena_block *block = arena->blocks;
        arena->blocks             = block->next;
        free(block);
    }
    arena->allocated_bytes = 0;
}
