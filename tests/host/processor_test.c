// SPDX-License-Identifier: MIT
// Compares the instruction sets that the program finds by cpuid with /proc/cpuinfo.
#include "backend/host/processor.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/backend.h"

// Returns the name that /proc/cpuinfo uses for an instruction set.
static const char *system_name(const char *name)
{
    static const char *const names[][2] = {
        {"sse3", "pni"}, {"sse4.1", "sse4_1"}, {"sse4.2", "sse4_2"}, {"lzcnt", "abm"}};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(names[i][0], name) == 0) {
            return names[i][1];
        }
    }
    return name;
}

Test(processor, has_what_the_system_says)
{
    char  *line = NULL, word[64];
    size_t room = 0;
    FILE  *file = fopen("/proc/cpuinfo", "r");
    cr_assert_not_null(file);
    while (getline(&line, &room, file) > 0 && strncmp(line, "flags", 5) != 0) {
    }
    fclose(file);
    if (strncmp(line, "flags", 5) != 0) {
        cr_skip_test("not an x86 processor");
    }
    line[strcspn(line, "\n")] = ' ';
    for (int i = 0; i < PROCESSOR_FEATURE_COUNT; i++) {
        const char *name = processor_feature_name((enum processor_feature)i);
        snprintf(word, sizeof(word), " %s ", system_name(name));
        cr_expect_eq(processor_features() >> i & 1, strstr(line, word) != NULL, "%s", name);
    }
    free(line);
}

// The test runs on the host that compiled it, so the CPU must have every instruction set of the build.
Test(processor, has_what_this_program_was_compiled_for)
{
    status checked = backend_check_processor();
    cr_expect(!failed(&checked), "%s", checked.text);
}
