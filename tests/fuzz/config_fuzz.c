// SPDX-License-Identifier: MIT
// Fuzzes configuration files. Reading must either fail with errors, or give a configuration that can be checked,
// written, and read again with the same values.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz_file.h"
#include "gswbench/job.h"

static bool read_text(struct config *config, int64_t ranks, const char *text, size_t bytes)
{
    struct text_buffer    errors  = {0};
    struct config_request request = {.name = "fuzz.ini", .ranks = ranks};
    status                result  = config_read_text(config, &request, text, bytes, &errors);
    // Errors are reported if reading fails, and only then.
    require(failed(&result) == (errors.length > 0) && (!failed(&result) || result.exit_code == EXIT_CONFIG));
    text_free(&errors);
    return !failed(&result);
}

int LLVMFuzzerInitialize(int *count, char ***arguments)
{
    (void)count;
    (void)arguments;
    return setenv("GSWBENCH_CONFIGS", "/nonexistent", 1);
}

// The first byte selects the number of ranks, and the other bytes are the file.
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static const int64_t ranks[] = {0, 1, 8, 512};
    struct config        config, again;
    if (bytes == 0 || !read_text(&config, ranks[data[0] % 4], (const char *)data + 1, bytes - 1)) {
        return 0;
    }
    struct plan_request request;
    job_check(&request, &config);

    char  *text = NULL;
    size_t written;
    FILE  *file = open_memstream(&text, &written);
    config_write(&config, file);
    fclose(file);
    require(read_text(&again, 0, text, written));
    for (const struct config_section *section = config_sections; section->name != NULL; section++) {
        const char *before = (const char *)&config + section->offset, *after = (const char *)&again + section->offset;
        require(memcmp(before, after, section->bytes) == 0);
    }
    free(text);
    return 0;
}
