// SPDX-License-Identifier: MIT
#include "checkpoint/catalogue.h"

#include <criterion/criterion.h>

#include "gswbench/random.h"

enum { SLICES_MAX = 64, ROWS = 12, COLUMNS = 10 };

static int by_place(const void *a, const void *b)
{
    const struct rectangle *x = &((const struct stored *)a)->at, *y = &((const struct stored *)b)->at;
    return x->row != y->row ? (x->row > y->row) - (x->row < y->row) : (x->column > y->column) - (x->column < y->column);
}

static enum tiling find(const struct rectangle *slices, int64_t count)
{
    static struct stored stored[SLICES_MAX];
    const struct stored *wrong;
    for (int64_t i = 0; i < count; i++) {
        stored[i].at = slices[i];
    }
    qsort(stored, (size_t)count, sizeof(*stored), by_place);
    return tiling_find(&(struct stored_tensor){stored, count, ROWS, COLUMNS}, &wrong);
}

// Reference for tiling_find: counts for each element of the tensor how many slices contain it.
static enum tiling find_by_elements(const struct rectangle *slices, int64_t count)
{
    int  covered[ROWS][COLUMNS] = {{0}};
    bool has_hole = false, has_overlap = false;
    for (int64_t i = 0; i < count; i++) {
        for (int64_t row = slices[i].row; row < slices[i].row + slices[i].rows; row++) {
            for (int64_t column = slices[i].column; column < slices[i].column + slices[i].columns; column++) {
                covered[row][column]++;
            }
        }
    }
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        has_hole |= covered[i / COLUMNS][i % COLUMNS] == 0;
        has_overlap |= covered[i / COLUMNS][i % COLUMNS] > 1;
    }
    return has_overlap ? TILING_OVERLAP : has_hole ? TILING_HOLE : TILING_WHOLE;
}

static int64_t draw(uint64_t *state, int64_t count)
{
    return (int64_t)(random_key(30, ++*state) % (uint64_t)count);
}

// Cuts a random slice in two, along rows or columns. Returns the new number of slices.
static int64_t cut(struct rectangle *slices, int64_t count, uint64_t *state)
{
    struct rectangle *one = &slices[draw(state, count)], other = *one;
    if (draw(state, 2) == 0 && one->rows > 1) {
        one->rows = 1 + draw(state, one->rows - 1);
        other.row += one->rows;
        other.rows -= one->rows;
    } else if (one->columns > 1) {
        one->columns = 1 + draw(state, one->columns - 1);
        other.column += one->columns;
        other.columns -= one->columns;
    } else {
        return count;
    }
    slices[count] = other;
    return count + 1;
}

Test(tiling, agrees_with_what_elements_say_of_slices_that_were_cut_moved_and_lost)
{
    uint64_t state    = 0;
    int      found[3] = {0};
    for (int series = 0; series < 3000; series++) {
        struct rectangle slices[SLICES_MAX] = {{0, ROWS, 0, COLUMNS}};
        int64_t          count              = 1;
        for (int64_t cuts = draw(&state, 40); cuts > 0; cuts--) {
            count = cut(slices, count, &state);
        }
        struct rectangle *one = &slices[draw(&state, count)];
        if (series % 3 == 1 && count > 1) {
            *one = slices[--count];
        } else if (series % 3 == 2) {
            one->column = draw(&state, COLUMNS - one->columns + 1);
            one->row    = draw(&state, ROWS - one->rows + 1);
        }
        enum tiling tiling = find(slices, count), expected = find_by_elements(slices, count);
        // A moved slice leaves a hole and an overlap, so either is a correct answer.
        cr_expect_eq(tiling == TILING_WHOLE, expected == TILING_WHOLE, "series %d", series);
        cr_expect(series % 3 == 2 || tiling == expected, "series %d", series);
        found[expected]++;
    }
    cr_expect(found[TILING_WHOLE] > 1000 && found[TILING_HOLE] > 900 && found[TILING_OVERLAP] > 500, "%d %d %d",
              found[0], found[1], found[2]);
}

// Five slices in the shape of a pinwheel: no straight cut through the tensor separates them, so a search by cuts would
// fail.
Test(tiling, takes_a_pinwheel)
{
    struct rectangle slices[] = {{0, 4, 0, 7}, {0, 8, 7, 3}, {8, 4, 3, 7}, {4, 8, 0, 3}, {4, 4, 3, 4}};

    cr_expect_eq(find(slices, 5), TILING_WHOLE);

    slices[4].rows = 5;
    cr_expect_eq(find(slices, 5), TILING_OVERLAP);
    slices[4].rows = 3;
    cr_expect_eq(find(slices, 5), TILING_HOLE);
}
