// SPDX-License-Identifier: MIT
// Broadcasts the index from rank 0: a thousand ranks that read every header would open a million files.
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "catalogue.h"
#include "gswbench/arena.h"

enum { MOST_BYTES = 1 << 30 };    // per broadcast

static void *share(struct comm *comm, void *items, size_t bytes)
{
    if (comm->topology.rank != 0) {
        items = memory_allocate(bytes);
    }
    for (size_t done = 0; done < bytes; done += MOST_BYTES) {
        size_t part = bytes - done < MOST_BYTES ? bytes - done : MOST_BYTES;
        comm->ops->share(comm, (char *)items + done, (int64_t)part, 0);
    }
    return items;
}

void catalogue_share(struct catalogue *catalogue, struct comm *comm)
{
    struct catalogue told = *catalogue;
    comm->ops->share(comm, &told, sizeof(told), 0);
    if (comm->topology.rank != 0) {    // without rank 0's private state
        *catalogue                 = (struct catalogue){.is_ours    = told.is_ours,
                                                        .verifies   = told.verifies,
                                                        .is_alone   = told.is_alone,
                                                        .count      = told.count,
                                                        .file_count = told.file_count,
                                                        .open_file  = -1};
        catalogue->manifest.origin = told.manifest.origin;
        memcpy(catalogue->path, told.path, sizeof(told.path));
    }
    catalogue->files  = share(comm, catalogue->files, (size_t)told.file_count * sizeof(*told.files));
    catalogue->slices = share(comm, catalogue->slices, (size_t)told.count * sizeof(*told.slices));
}

status catalogue_is_seen(const struct catalogue *catalogue)
{
    return access(catalogue->path, R_OK | X_OK) == 0
               ? OK
               : fail_as(EXIT_CHECKPOINT,
                         "%.900s: %s, but rank 0 has opened it: all ranks must see the same checkpoint folder",
                         catalogue->path, strerror(errno));
}
