// SPDX-License-Identifier: MIT
// Reads slices of a checkpoint in pieces, so that each piece is checksummed while it is in the CPU cache. Also asks the
// kernel to read ahead.
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "catalogue.h"
#include "gswbench/arena.h"
#include "gswbench/input.h"
#include "gswbench/number.h"

enum { PIECE_BYTES = 256 << 10, AHEAD_BYTES = 16 << 20, AHEAD_MIN = 4 << 20 };

static const char *name_file(const struct catalogue *catalogue, const struct stored *stored,
                             char path[CATALOGUE_PATH_BYTES])
{
    return catalogue_join(catalogue->path, catalogue->files[stored->file], path);
}

static void close_file(struct catalogue *catalogue)
{
    if (catalogue->open_file >= 0) {
        close(catalogue->descriptor);
    }
    catalogue->open_file = -1;
}

void catalogue_end_reading(struct catalogue *catalogue)
{
    close_file(catalogue);
    free(catalogue->data);
    free(catalogue->destination);
    free(catalogue->ends);
    catalogue->ends = NULL;
    catalogue->data = catalogue->destination = NULL;
    catalogue->last                          = NULL;
}

static void find_ends(struct catalogue *catalogue)
{
    catalogue->ends = memory_allocate((size_t)catalogue->file_count * sizeof(*catalogue->ends));
    for (int64_t i = 0; i < catalogue->count; i++) {
        const struct stored *one   = &catalogue->slices[i];
        catalogue->ends[one->file] = number_max(catalogue->ends[one->file], one->begin + one->entry.bytes);
    }
}

// Fails unless the file ends with its last slice. If it does not, this rank sees another file than rank 0, which has
// read the header.
static status check_size(struct catalogue *catalogue, const char *path, const struct stat *about)
{
    if (catalogue->ends == NULL) {
        find_ends(catalogue);
    }
    if (about->st_size == catalogue->ends[catalogue->open_file]) {
        return OK;
    }
    close_file(catalogue);
    return fail_as(EXIT_CHECKPOINT,
                   "%.900s: is not the file whose header rank 0 read: all ranks must see the same folder", path);
}

static status open_data(struct catalogue *catalogue, const struct stored *stored)
{
    if (catalogue->open_file == stored->file) {
        return OK;
    }
    close_file(catalogue);
    char        path[CATALOGUE_PATH_BYTES];
    struct stat about;
    name_file(catalogue, stored, path);
    checkpoint_enter(&catalogue->watch, path);
    status opened = input_open(path, &catalogue->descriptor, &about);
    FAIL_AS_IF(failed(&opened), EXIT_CHECKPOINT, "%.900s: %s", path, opened.text);
    catalogue->open_file = stored->file;
    catalogue->ahead     = 0;
    return check_size(catalogue, path, &about);
}

// Asks the kernel to load the bytes after a slice into the page cache while the slice is read, because most reads are
// sequential. end: offset at which the slice ends.
static void read_ahead(struct catalogue *catalogue, int64_t end)
{
    int64_t from = catalogue->ahead > end && catalogue->ahead < end + AHEAD_BYTES ? catalogue->ahead : end;
    if (end + AHEAD_BYTES - from >= AHEAD_MIN) {
        posix_fadvise(catalogue->descriptor, from, end + AHEAD_BYTES - from, POSIX_FADV_WILLNEED);
        catalogue->ahead = end + AHEAD_BYTES;
    }
}

static status read_at(struct catalogue *catalogue, const struct stored *stored, char *data, int64_t bytes,
                      int64_t offset)
{
    for (int64_t done = 0; done < bytes;) {
        ssize_t count  = pread(catalogue->descriptor, data + done, (size_t)(bytes - done), offset + done);
        bool    is_bad = count == 0 || (count < 0 && errno != EINTR);
        if (is_bad) {
            char        path[CATALOGUE_PATH_BYTES];
            const char *problem = count == 0 ? "the file became shorter" : strerror(errno);
            return safetensors_refuse(name_file(catalogue, stored, path), stored->entry.name, problem);
        }
        done += count > 0 ? count : 0;
        checkpoint_moved(&catalogue->watch);
    }
    catalogue->read_bytes += bytes;
    return OK;
}

static status read_run(struct catalogue *catalogue, const struct stored *stored, struct checksum_run *check, char *data,
                       int64_t bytes, int64_t offset)
{
    for (int64_t done = 0; done < bytes; done += PIECE_BYTES) {
        int64_t piece = bytes - done < PIECE_BYTES ? bytes - done : PIECE_BYTES;
        TRY(read_at(catalogue, stored, data + done, piece, offset + done));
        checksum_add(check, data + done, piece);
    }
    return OK;
}

// Reads a rectangle of a slice. Whole rows are contiguous and are read at once; parts of rows are read row by row.
static status read_runs(struct catalogue *catalogue, const struct stored *stored, const struct rectangle *at,
                        struct checksum_run *check, char *data)
{
    enum format             format    = stored->entry.format;
    const struct rectangle *from      = &stored->at;
    int64_t                 runs      = at->columns == from->columns ? 1 : at->rows;
    int64_t                 run_bytes = format_bytes(format, at->rows * at->columns) / runs;
    for (int64_t run = 0; run < runs; run++) {
        int64_t first  = (at->row - from->row + run) * from->columns + at->column - from->column;
        int64_t offset = stored->begin + format_bytes(format, first);
        TRY(read_run(catalogue, stored, check, data + run * run_bytes, run_bytes, offset));
    }
    return OK;
}

status catalogue_read_into(struct catalogue *catalogue, const struct stored *stored, const struct rectangle *at,
                           void *data)
{
    char                path[CATALOGUE_PATH_BYTES];
    struct checksum_run check;
    struct safetensor   read = stored->entry;
    read.has_checksum        = read.has_checksum && catalogue->verifies;
    TRY(open_data(catalogue, stored));
    if (memcmp(at, &stored->at, sizeof(*at)) == 0) {
        read_ahead(catalogue, stored->begin + stored->entry.bytes);
    }
    checksum_begin(&check, &read);
    status result   = read_runs(catalogue, stored, at, &check, data);
    status verified = checksum_end(&check, name_file(catalogue, stored, path));
    return failed(&result) ? result : verified;
}

// Reads the whole slice if it must be verified, else only the requested rectangle.
status catalogue_read(struct catalogue *catalogue, const struct stored *stored, struct rectangle *at, const void **data)
{
    bool is_whole = stored->entry.has_checksum && catalogue->verifies;
    if (is_whole) {
        *at = stored->at;
    }
    if (!is_whole || catalogue->last != stored) {
        catalogue->last = NULL;
        catalogue->data =
            memory_resize(catalogue->data, (size_t)format_bytes(stored->entry.format, at->rows * at->columns));
        TRY(catalogue_read_into(catalogue, stored, at, catalogue->data));
        catalogue->last = is_whole ? stored : NULL;
    }
    *data = catalogue->data;
    return OK;
}
