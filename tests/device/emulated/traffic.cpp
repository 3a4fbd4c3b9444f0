// SPDX-License-Identifier: MIT
// Counts what kernels read and write, behind a cache as small as a multiprocessor's, which each launch finds empty.
#include "emulator.h"

#include <list>
#include <unordered_map>

namespace
{
enum { SECTOR = 32, SECTORS = (128 << 10) / SECTOR };

struct cache {
    std::list<uintptr_t>                                          order;    // the latest first
    std::unordered_map<uintptr_t, std::list<uintptr_t>::iterator> places;

    // Whether the sector was there; it is, from then on.
    bool has(uintptr_t sector)
    {
        auto found = places.find(sector);
        if (found != places.end()) {
            order.splice(order.begin(), order, found->second);
            return true;
        }
        order.push_front(sector);
        places[sector] = order.begin();
        if (order.size() > SECTORS) {
            places.erase(order.back());
            order.pop_back();
        }
        return false;
    }
};

bool             the_count_runs;
emulator_traffic the_traffic;
cache            the_cache;
}    // namespace

extern "C" struct emulator_traffic emulator_count(void)
{
    emulator_traffic counted = the_traffic;
    the_traffic              = {};
    the_count_runs           = true;
    return counted;
}

// Descriptions of cuBLASLt's operations that were made so far, and those that there are.
extern "C" void emulator_descriptions(int *made, int *kept)
{
    *made = emulator::products_made;
    *kept = emulator::products_kept;
}

namespace emulator
{
void begin_launch()
{
    the_cache = {};
}

void count(int64_t emulator_traffic::*what, int64_t amount)
{
    the_traffic.*what += the_count_runs ? amount : 0;
}

void watch(const void *at, int64_t bytes, bool is_write)
{
    if (!the_count_runs) {
        return;
    }
    if (is_write) {
        the_traffic.written_bytes += bytes;
        return;
    }
    uintptr_t begin = (uintptr_t)at, end = begin + (uintptr_t)bytes;
    for (uintptr_t sector = begin / SECTOR; sector * SECTOR < end; sector++) {
        the_traffic.read_bytes += the_cache.has(sector) ? 0 : SECTOR;
    }
}
}    // namespace emulator
