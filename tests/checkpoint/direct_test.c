// SPDX-License-Identifier: MIT
// Reads with O_DIRECT return the contents of the file for every offset, length and order.
#define _GNU_SOURCE    // O_DIRECT, syscall
#include "checkpoint/direct.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { TAIL = 12345, PIECES = 5, FILE_BYTES = PIECES * DIRECT_PIECE + TAIL };

static char  path[] = "./gswbench-direct-XXXXXX";
static char *bytes;

// Replaces the system calls to imitate file systems with different support for O_DIRECT, and counts reads.
static enum { AS_IT_IS, REFUSED, ONLY_OPENED, FAILS } manner;
static int64_t reads, furthest;

int open(const char *name, int flags, ...)
{
    va_list arguments;
    va_start(arguments, flags);
    int mode = flags & O_CREAT ? va_arg(arguments, int) : 0;
    va_end(arguments);
    if (manner == REFUSED && (flags & O_DIRECT) != 0) {
        errno = EINVAL;
        return -1;
    }
    return (int)syscall(SYS_openat, AT_FDCWD, name, flags, mode);
}

ssize_t pread(int file, void *data, size_t count, off_t offset)
{
    if (manner == FAILS || (manner == ONLY_OPENED && (fcntl(file, F_GETFL) & O_DIRECT) != 0)) {
        errno = manner == FAILS ? EIO : EINVAL;
        return -1;
    }
    reads++;
    furthest = offset > furthest ? offset : furthest;
    return (ssize_t)syscall(SYS_pread64, file, data, count, offset);
}

// Every piece differs from every other, and so do positions within a piece.
static void make_file(void)
{
    uint32_t state = 1;
    bytes          = malloc(FILE_BYTES);
    for (int64_t i = 0; i < FILE_BYTES; i++) {
        state    = state * 1664525 + 1013904223;
        bytes[i] = (char)(state >> 24);
    }
    int file = mkstemp(path);
    cr_assert_eq(write(file, bytes, FILE_BYTES), FILE_BYTES);
    close(file);
}

static void remove_file(void)
{
    remove(path);
    free(bytes);
}

TestSuite(direct, .init = make_file, .fini = remove_file);

static void expect_bytes(struct direct *direct, int64_t begin, int64_t end)
{
    direct_expect(direct, begin, end);
    for (int64_t done = begin; done < end;) {
        const char *data;
        int64_t     count = direct_take(direct, done, &data);
        cr_assert_gt(count, 0, "nothing at byte %ld", (long)done);
        count = count < end - done ? count : end - done;
        cr_assert(memcmp(data, bytes + done, (size_t)count) == 0, "other bytes at byte %ld", (long)done);
        done += count;
    }
}

// Where the file system refuses O_DIRECT, the test checks only that.
static struct direct *open_it(void)
{
    struct direct *direct = direct_open(path);
    if (direct == NULL) {
        cr_skip_test("the file system of the tests refuses O_DIRECT");
    }
    return direct;
}

Test(direct, brings_each_byte_of_a_file_that_is_read_from_begin_to_end)
{
    struct direct *direct = open_it();
    for (int64_t done = 24; done < FILE_BYTES; done += 1000003) {
        expect_bytes(direct, done, done + 1000003 < FILE_BYTES ? done + 1000003 : FILE_BYTES);
    }
    direct_close(direct);
    cr_expect_leq(reads, PIECES + 1 + 2, "%ld reads", (long)reads);    // some reads only detect the end of the file
}

Test(direct, brings_each_byte_of_slices_in_any_order)
{
    struct direct *direct = open_it();
    uint32_t       state  = 7;
    for (int i = 0; i < 200; i++) {
        state         = state * 1664525 + 1013904223;
        int64_t begin = (int64_t)(state >> 8) % FILE_BYTES;
        state         = state * 1664525 + 1013904223;
        int64_t end   = begin + 1 + (int64_t)(state >> 8) % (i % 2 == 0 ? 3 * DIRECT_PIECE : 4096);
        expect_bytes(direct, begin, end < FILE_BYTES ? end : FILE_BYTES);
    }
    direct_close(direct);
}

Test(direct, reads_nothing_beyond_a_slice_that_follows_on_none)
{
    struct direct *direct = open_it();
    expect_bytes(direct, DIRECT_PIECE + 5, 2 * DIRECT_PIECE - 5);
    direct_close(direct);
    cr_expect_eq(reads, 1);
    cr_expect_eq(furthest, DIRECT_PIECE);
}

Test(direct, says_where_the_file_ends)
{
    struct direct *direct = open_it();
    const char    *data;
    direct_expect(direct, FILE_BYTES - 10, FILE_BYTES + 3 * (int64_t)DIRECT_PIECE);
    cr_expect_eq(direct_take(direct, FILE_BYTES - 10, &data), 10);
    cr_expect_eq(direct_take(direct, FILE_BYTES, &data), 0);
    cr_expect_eq(direct_take(direct, FILE_BYTES + 2 * (int64_t)DIRECT_PIECE, &data), 0);
    direct_close(direct);
}

Test(direct, says_why_nothing_can_be_read)
{
    struct direct *direct = open_it();
    const char    *data;
    manner = FAILS;
    direct_expect(direct, 0, 100);
    errno = 0;
    cr_expect_eq(direct_take(direct, 0, &data), -1);
    cr_expect_eq(errno, EIO);
    direct_close(direct);
}

Test(direct, is_refused_where_the_file_system_does_not_have_it)
{
    manner = REFUSED;
    cr_expect_null(direct_open(path));
}

Test(direct, goes_on_without_where_only_the_flag_is_taken)
{
    struct direct *direct = open_it();
    manner                = ONLY_OPENED;
    expect_bytes(direct, 0, FILE_BYTES);
    direct_close(direct);
}

Test(direct, is_closed_while_it_reads)
{
    for (int i = 0; i < 20; i++) {
        struct direct *direct = open_it();
        direct_expect(direct, 0, FILE_BYTES);
        direct_close(direct);
    }
}
