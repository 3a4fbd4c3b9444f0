// SPDX-License-Identifier: MIT
// Checks a tiling by a sweep over the rows. An edge is a range of columns and the row up to which it is covered.
// Without holes, the next slice starts on the first edge: lowest row, then leftmost column.
#include "catalogue.h"

#include <stdlib.h>

#include "gswbench/arena.h"

struct edge {
    int64_t row, column, columns;
};

// Binary heap; the first edge is at index 0.
struct edges {
    struct edge *items;
    int64_t      count;
};

static bool is_before(const struct edge *a, const struct edge *b)
{
    return a->row < b->row || (a->row == b->row && a->column < b->column);
}

static void exchange(struct edge *a, struct edge *b)
{
    struct edge kept = *a;
    *a               = *b;
    *b               = kept;
}

static void add(struct edges *edges, struct edge edge)
{
    int64_t at       = edges->count++;
    edges->items[at] = edge;
    while (at > 0 && is_before(&edges->items[at], &edges->items[(at - 1) / 2])) {
        exchange(&edges->items[at], &edges->items[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
}

static struct edge take_first(struct edges *edges)
{
    struct edge first = edges->items[0];
    edges->items[0]   = edges->items[--edges->count];
    for (int64_t at = 0, minimum = 0;; at = minimum) {
        for (int64_t child = 2 * at + 1; child <= 2 * at + 2 && child < edges->count; child++) {
            minimum = is_before(&edges->items[child], &edges->items[minimum]) ? child : minimum;
        }
        if (minimum == at) {
            return first;
        }
        exchange(&edges->items[at], &edges->items[minimum]);
    }
}

// A slice must cover the edges it starts on, the last one possibly in part.
static enum tiling lay(struct edges *edges, const struct rectangle *at)
{
    int64_t end = at->column + at->columns;
    for (int64_t column = at->column; column < end;) {
        struct edge wanted = {.row = at->row, .column = column};
        if (is_before(&edges->items[0], &wanted)) {
            return TILING_HOLE;
        }
        if (is_before(&wanted, &edges->items[0])) {
            return TILING_OVERLAP;
        }
        struct edge edge = take_first(edges);
        column += edge.columns;
        if (column > end) {
            add(edges, (struct edge){edge.row, end, column - end});
        }
    }
    add(edges, (struct edge){at->row + at->rows, at->column, at->columns});
    return TILING_WHOLE;
}

enum tiling tiling_find(const struct stored_tensor *tensor, const struct stored **wrong)
{
    // A slice adds two edges at most.
    struct edges edges  = {.items = memory_allocate((size_t)(2 * tensor->count + 2) * sizeof(*edges.items))};
    enum tiling  tiling = TILING_WHOLE;
    add(&edges, (struct edge){0, 0, tensor->columns});
    for (int64_t i = 0; i < tensor->count && tiling == TILING_WHOLE; i++) {
        *wrong = &tensor->slices[i];
        tiling = lay(&edges, &tensor->slices[i].at);
    }
    if (tiling == TILING_WHOLE && edges.items[0].row != tensor->rows) {
        tiling = TILING_HOLE;
    }
    free(edges.items);
    return tiling;
}
