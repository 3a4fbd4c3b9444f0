// SPDX-License-Identifier: MIT
// Counts which instructions of kernels the tests reach, changes kernels to test the tests (mutants), and counts memory
// reads. Reads pass a cache that is as large as an L1 and empty at the start of each launch.
#include "ptx.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <list>
#include <regex>

namespace ptx
{
namespace
{
// These counters are pairs: reached, and total.
int64_t the_entries[2], the_instructions[2];

void count_kernel(const kernel &its)
{
    int64_t all = (int64_t)its.code.size(), reached = std::count(its.reached, its.reached + all, 1);
    the_entries[0] += reached > 0;
    the_entries[1]++;
    the_instructions[0] += reached;
    the_instructions[1] += all;
    printf("%6.1f %% of %6lld %s\n", 100.0 * (double)reached / (double)all, (long long)all, its.name.c_str());
}
}    // namespace

// Returns a byte for each instruction of the kernel. With GSWBENCH_PTX_COVERAGE=FOLDER, they are in a file for each
// kernel that all processes share.
uint8_t *keep_reached(const std::string &kernel, size_t instructions)
{
    const char *folder = getenv("GSWBENCH_PTX_COVERAGE");
    if (folder == NULL) {
        return new uint8_t[instructions]();
    }
    std::string path = folder + ("/" + std::to_string(std::hash<std::string>()(kernel)));
    int         file = open(path.c_str(), O_RDWR | O_CREAT, 0644);
    void       *made = MAP_FAILED;
    if (file >= 0 && ftruncate(file, (off_t)instructions) == 0) {
        made = mmap(NULL, instructions, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    }
    if (made == MAP_FAILED) {
        perror(path.c_str());
        abort();
    }
    close(file);
    return (uint8_t *)made;
}

// Changes a kernel as GSWBENCH_PTX_MUTANT says in four lines: a part of the kernel's name, the number of the match, the
// pattern, and its replacement.
std::string mutate(const std::string &kernel, std::string text)
{
    const char *told = getenv("GSWBENCH_PTX_MUTANT");
    std::string lines[4];
    for (int i = 0; i < 4 && told != NULL; i++) {
        lines[i] = std::string(told, strcspn(told, "\n"));
        told += lines[i].size() + (told[lines[i].size()] == '\n');
    }
    if (lines[2].empty() || kernel.find(lines[0]) == std::string::npos) {
        return text;
    }
    std::regex           pattern(lines[2]);
    std::sregex_iterator found(text.begin(), text.end(), pattern), end;
    for (int i = 1; i < atoi(lines[1].c_str()) && found != end; i++) {
        ++found;
    }
    if (found == end) {
        return text;
    }
    fprintf(stderr, "ptx: mutant: %s\n", found->str().c_str());
    return text.substr(0, (size_t)found->position()) + found->format(lines[3]) + found->suffix().str();
}

bool             the_count_runs;
emulator_traffic the_traffic;

namespace
{
enum { SECTOR = 32, SECTORS = (128 << 10) / SECTOR };

struct cache {
    std::list<uint64_t>                                         order;    // the most recent sector is first
    std::unordered_map<uint64_t, std::list<uint64_t>::iterator> places;

    // Returns whether the cache has the sector, and inserts it.
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

// Returns whether tests have reached these percentages of the kernels and of their instructions.
extern "C" int emulator_coverage(double entries, double instructions)
{
    ptx::visit_kernels(ptx::count_kernel);
    double run     = 100.0 * (double)ptx::the_entries[0] / (double)ptx::the_entries[1];
    double reached = 100.0 * (double)ptx::the_instructions[0] / (double)ptx::the_instructions[1];
    printf("%lld of %lld kernels run: %.1f %%, at least %.1f %%\n", (long long)ptx::the_entries[0],
           (long long)ptx::the_entries[1], run, entries);
    printf("%lld of %lld instructions reached: %.1f %%, at least %.1f %%\n", (long long)ptx::the_instructions[0],
           (long long)ptx::the_instructions[1], reached, instructions);
    return run >= entries && reached >= instructions;
}

extern "C" struct emulator_traffic emulator_count(void)
{
    emulator_traffic counted = ptx::the_traffic;
    ptx::the_traffic         = {};
    ptx::the_count_runs      = true;
    return counted;
}
