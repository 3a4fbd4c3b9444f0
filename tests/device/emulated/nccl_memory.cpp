// SPDX-License-Identifier: MIT
// Memory of the emulator's NCCL, and what it lets its communicators know. The real one takes windows that members have
// in other places or sizes, and then reads what is elsewhere: here that ends the process, as does memory that is not
// its own, or is given back while it is known.
#include <stdlib.h>

#include <map>

#include "nccl_transfer.h"

namespace
{
enum { GRAIN = 2 << 20 };    // of memory that is mapped
std::map<char *, size_t> the_memory;
int                      the_known;    // registrations that are open, of all communicators

// The allocation that all of it lies in.
char *find(const char *function, void *data, size_t bytes)
{
    auto next = the_memory.upper_bound((char *)data);
    if (next == the_memory.begin() || (--next)->first + next->second < (char *)data + bytes) {
        fake_fail("%s of %zu bytes that are not ncclMemAlloc's", function, bytes);
    }
    return next->first;
}

// All members open one window, in one place and size.
void compare(ncclComm_t comm, size_t offset, size_t bytes)
{
    const size_t own[] = {comm->known.size(), offset, bytes};
    auto         heard = tell_all(comm->boxes, own, sizeof(own));
    for (int peer = 0; peer < comm->boxes.size; peer++) {
        const size_t *other = (const size_t *)heard[(size_t)peer].data();
        if (other[0] != own[0] || other[1] != own[1] || other[2] != own[2]) {
            fake_fail("member %d opens window %zu at %zu of %zu bytes, member %d %zu at %zu of %zu", comm->boxes.rank,
                      own[0], own[1], own[2], peer, other[0], other[1], other[2]);
        }
    }
}

void *keep(ncclComm_t comm, void *data, size_t bytes, bool is_window)
{
    comm->known.push_back({(const char *)data, bytes, is_window, true});
    the_known++;
    return (void *)comm->known.size();    // never NULL
}

ncclResult_t forget(ncclComm_t comm, void *handle, bool is_window)
{
    size_t index = (size_t)handle - 1;
    if (index >= comm->known.size() || !comm->known[index].is_open || comm->known[index].is_window != is_window) {
        fake_fail("a %s is closed that is not open", is_window ? "window" : "registration");
    }
    comm->known[index].is_open = false;
    the_known--;
    return ncclSuccess;
}
}    // namespace

extern "C" {

// Poisoned, as the device's own.
ncclResult_t ncclMemAlloc(void **data, size_t bytes)
{
    size_t all = (bytes + GRAIN - 1) / GRAIN * GRAIN;
    *data      = aligned_alloc(GRAIN, all);
    memset(*data, 0xff, all);
    the_memory[(char *)*data] = all;
    emulator::add_memory(*data, all);
    return ncclSuccess;
}

ncclResult_t ncclMemFree(void *data)
{
    if (the_memory.count((char *)data) == 0 || the_known > 0) {
        fake_fail("ncclMemFree of memory that is %s", the_known > 0 ? "still known" : "not its own");
    }
    the_memory.erase((char *)data);
    emulator::remove_memory(data);
    free(data);
    return ncclSuccess;
}

ncclResult_t ncclCommRegister(const ncclComm_t comm, void *data, size_t bytes, void **handle)
{
    find("ncclCommRegister", data, bytes);
    *handle = the_faults().knows_nothing ? NULL : keep(comm, data, bytes, false);
    return ncclSuccess;
}

// ncclStatGpuMemTotal.
ncclResult_t ncclCommMemStats(ncclComm_t comm, int stat, uint64_t *value)
{
    if (stat != 3) {
        fake_fail("ncclCommMemStats of number %d", stat);
    }
    *value = comm->is_used ? (uint64_t)comm->channels << 20 : 0;
    return ncclSuccess;
}

ncclResult_t ncclCommDeregister(const ncclComm_t comm, void *handle)
{
    return forget(comm, handle, false);
}

ncclResult_t ncclCommWindowRegister(ncclComm_t comm, void *data, size_t bytes, ncclWindow_t *window, int flags)
{
    size_t offset = (size_t)((char *)data - find("ncclCommWindowRegister", data, bytes));
    if (offset % NCCL_WIN_REQUIRED_ALIGNMENT != 0 || flags != NCCL_WIN_COLL_SYMMETRIC) {
        fake_fail("a window at offset %zu with flags %d", offset, flags);
    }
    compare(comm, offset, bytes);
    *window = the_faults().knows_nothing ? NULL : (ncclWindow_t)keep(comm, data, bytes, true);
    return ncclSuccess;
}

ncclResult_t ncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t window)
{
    return forget(comm, window, true);
}
}
