// SPDX-License-Identifier: MIT
// Counts what kernels read and write, behind a cache as small as a multiprocessor's, which each launch finds empty.
#include "ptx.h"

#include <list>
#include <unordered_map>

namespace ptx
{
bool             the_count_runs;
emulator_traffic the_traffic;

namespace
{
enum { SECTOR = 32, SECTORS = (128 << 10) / SECTOR };

struct cache {
    std::list<uint64_t>                                         order;    // the latest first
    std::unordered_map<uint64_t, std::list<uint64_t>::iterator> places;

    // Whether the sector was there; it is, from then on.
    bool has(uint64_t sector)
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
cache the_cache;
}    // namespace

void begin_count()
{
    the_cache = {};
}

void count_read(uint64_t address, int bytes)
{
    for (uint64_t sector = address / SECTOR; sector * SECTOR < address + (uint64_t)bytes; sector++) {
        the_traffic.read_bytes += the_cache.has(sector) ? 0 : SECTOR;
    }
}
}    // namespace ptx

extern "C" struct emulator_traffic emulator_count(void)
{
    emulator_traffic counted = ptx::the_traffic;
    ptx::the_traffic         = {};
    ptx::the_count_runs      = true;
    return counted;
}
