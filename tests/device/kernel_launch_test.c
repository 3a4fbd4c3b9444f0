// SPDX-License-Identifier: MIT
// Tests how many blocks and threads kernels are launched with.
#include <criterion/criterion.h>

#include "kernels/cross_entropy.h"
#include "kernels/norm.h"
#include "kernels/route.h"

// An H200 has 132 SMs, and up to 227 KiB of shared memory per block.
static const struct kernel_target target = {.multiprocessors = 132, .shared_bytes = 232448};

Test(kernel_launch, takes_whole_words_only_where_every_row_starts_on_one)
{
    cr_assert(launch_is_wide(128256, 0x7f0000001000));
    cr_assert(launch_is_wide(8, 0));
    cr_assert_not(launch_is_wide(8, 0x7f0000001008));
    cr_assert_not(launch_is_wide(12, 0x1000));
    cr_assert_not(launch_is_wide(50257, 0x1000));
}

Test(kernel_launch, counts_groups_without_overflow)
{
    cr_assert_eq(launch_groups(0, 8), 0);
    cr_assert_eq(launch_groups(1, 8), 1);
    cr_assert_eq(launch_groups(16, 8), 2);
    cr_assert_eq(launch_groups(17, 8), 3);
    cr_assert_eq(launch_groups(INT64_MAX, 8), INT64_MAX / 8 + 1);
}

Test(kernel_launch, fills_the_device_and_no_more)
{
    struct launch many  = launch_items((INT64_C(1) << 31) + 7, target.multiprocessors);
    struct launch few   = launch_items(257, target.multiprocessors);
    struct launch none  = launch_items(0, target.multiprocessors);
    struct launch warps = launch_warps(17, target.multiprocessors);

    cr_assert_eq(many.blocks, 132 * 8);
    cr_assert_eq(many.threads, 256);
    cr_assert_eq(few.blocks, 2);
    cr_assert_eq(none.blocks, 1);
    cr_assert_eq(warps.blocks, 3);
}

Test(kernel_launch, gives_a_row_as_many_whole_warps_as_it_has_items)
{
    struct launch low_precision = launch_rows(10, 33, 256, target.multiprocessors);
    struct launch wide          = launch_rows(INT64_C(1) << 33, 16032, 1024, target.multiprocessors);
    struct launch empty         = launch_rows(0, 0, 256, target.multiprocessors);

    cr_assert_eq(low_precision.threads, 64);
    cr_assert_eq(low_precision.blocks, 10);
    cr_assert_eq(wide.threads, 1024);
    cr_assert_eq(wide.blocks, 264);
    cr_assert_eq(empty.threads, 32);
    cr_assert_eq(empty.blocks, 1);
}

Test(kernel_launch, holds_every_element_of_a_norm_in_some_thread)
{
    for (int64_t columns = 1; columns <= NORM_COLUMNS_MAX; columns += 61) {
        struct launch launch = norm_launch(8192, columns, target.multiprocessors);
        cr_assert_geq(launch.threads * (int64_t)NORM_HELD, columns);
        cr_assert_leq(launch.threads, NORM_THREADS_MAX);
    }
    cr_assert_eq(norm_launch(8192, NORM_COLUMNS_MAX, target.multiprocessors).threads, NORM_THREADS_MAX);
}

Test(kernel_launch, sums_gradients_of_norms_in_as_many_blocks_as_are_resident)
{
    struct launch launch = norm_backward_launch(8192, 8192, 2, target.multiprocessors);
    struct launch wide   = norm_backward_launch(8192, 18432, 1, target.multiprocessors);
    struct launch few    = norm_backward_launch(3, 77, 4, target.multiprocessors);

    cr_assert_eq(norm_backward_shared_bytes(8192, 1), 32768);
    // 77 x 2 values of 4 bytes, with rows padded to multiples of 8.
    cr_assert_eq(norm_backward_shared_bytes(77, 2), 640);
    cr_assert_eq(launch.blocks, 2 * 132);
    cr_assert_eq(launch.threads, 256);
    cr_assert_eq(wide.blocks, 132);
    cr_assert_eq(wide.threads, 576);
    cr_assert_eq(few.blocks, 3);
    // GPUs of compute capability 8.6, 8.9 and 12.0 have the least shared memory, 99 KiB per block.
    cr_assert(norm_backward_fits(NORM_COLUMNS_MAX, 1, 99 << 10));
    cr_assert_not(norm_backward_fits(12808, 2, 99 << 10));
    cr_assert(norm_backward_fits(12288, 2, 99 << 10));
}

Test(kernel_launch, gives_every_thread_of_a_row_the_same_work)
{
    struct launch rope = launch_rows(8192, 384, 256, target.multiprocessors);
    struct launch odd  = launch_rows(8192, 257, 256, target.multiprocessors);

    cr_assert_eq(rope.threads, 192);
    cr_assert_eq(rope.blocks, 132 * 10);
    cr_assert_eq(odd.threads, 160);
}

Test(kernel_launch, holds_of_a_row_of_logits_what_fits)
{
    cr_assert_eq(cross_entropy_held_bytes(32000, FORMAT_BF16, 232448), 64000);
    cr_assert_eq(cross_entropy_held_bytes(128256, FORMAT_BF16, 232448), 230400);
    cr_assert_eq(cross_entropy_held_bytes(517, FORMAT_F32, 232448), 65 * 32);
}

Test(kernel_launch, links_every_token)
{
    cr_assert_eq(scatter_scratch_bytes(8192), 65536);
}
