// SPDX-License-Identifier: MIT
// Collects compute times by rank and step in a table of at most RESULT_CELLS rows and columns. A full table merges
// columns in pairs, so a column then has several steps.
#include <math.h>
#include <stdlib.h>

#include "gswbench/arena.h"
#include "gswbench/result.h"

static int64_t count_rows(int64_t ranks)
{
    return ranks < RESULT_CELLS ? ranks : RESULT_CELLS;
}

// Merges next into cell: the mean weighted by their numbers of steps.
static void join(struct result_compute_time *cell, const struct result_compute_time *next)
{
    double share = (double)next->steps / (double)(cell->steps + next->steps);
    cell->seconds += share * (next->seconds - cell->seconds);
    cell->excess += share * (next->excess - cell->excess);
    cell->steps += next->steps;
}

static void halve(struct result *result, int64_t rows)
{
    struct result_compute_time *cells = result->compute_times;
    int64_t                     count = result->compute_time_count / 2;
    for (int64_t i = 0; i < count; i++) {
        struct result_compute_time cell = cells[i / rows * 2 * rows + i % rows];
        join(&cell, &cells[i / rows * 2 * rows + rows + i % rows]);
        cells[i] = cell;
    }
    result->compute_time_count = count;
}

// The maximum over the ranks of one row.
static struct result_compute_time measure_row(const double *seconds, const double *excess, int64_t first, int64_t end)
{
    struct result_compute_time cell = {.rank = first, .ranks = end - first, .steps = 1, .seconds = NAN, .excess = NAN};
    for (int64_t rank = first; rank < end; rank++) {
        cell.seconds = fmax(cell.seconds, seconds[rank]);
        cell.excess  = fmax(cell.excess, excess[rank]);
    }
    return cell;
}

void result_add_compute_times(struct result *result, const double *seconds, const double *excess, int64_t ranks)
{
    int64_t rows = count_rows(ranks);
    if (result->compute_times == NULL) {
        result->compute_times = memory_allocate((size_t)(rows * RESULT_CELLS) * sizeof(*result->compute_times));
    }
    int64_t columns = result->compute_time_count / rows;
    // All columns except the last cover the same number of steps.
    struct result_compute_time *last    = columns > 0 ? &result->compute_times[(columns - 1) * rows] : NULL;
    bool                        is_full = last == NULL || last->steps == result->compute_times[0].steps;
    if (is_full && columns == RESULT_CELLS) {
        halve(result, rows);
        columns /= 2;
    }
    int64_t step = columns > 0 ? last->step + last->steps : result->planned_warmup;
    for (int64_t row = 0; row < rows; row++) {
        struct result_compute_time cell = measure_row(seconds, excess, row * ranks / rows, (row + 1) * ranks / rows);
        cell.step                       = step;
        if (is_full) {
            result->compute_times[result->compute_time_count++] = cell;
        } else {
            join(&last[row], &cell);
        }
    }
}
