// SPDX-License-Identifier: MIT
// What tests reach of kernels, and kernels that are wrong on purpose.
#include "ptx.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <regex>

namespace ptx
{
namespace
{
// Of kernels and of their instructions.
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

// Where GSWBENCH_PTX_COVERAGE names a folder, all processes share a file of a kernel there, with a byte an instruction.
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

// GSWBENCH_PTX_MUTANT, a line each: part of a kernel's name, which place of a pattern, the pattern, and what replaces
// it.
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
}    // namespace ptx

// Whether tests have reached so many percent of the kernels and of their instructions.
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
