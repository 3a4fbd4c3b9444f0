// SPDX-License-Identifier: MIT
// Fuzzes the file that caches the chosen algorithm of each GEMM. The GEMMs of valid lines must be found, also after
// another GEMM is added and the file is rewritten. Notes about invalid lines must have no control characters.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "fuzz_file.h"
#include "gswbench/gemm.h"

static void check_note(const struct gemm_cache *cache)
{
    for (const char *at = cache->note; *at != '\0'; at++) {
        require((unsigned char)*at >= ' ');
    }
}

// Writes a cache file with these lines, and the right checksum before each.
static void write_lines(const char *lines, size_t bytes)
{
    char  *text;
    size_t length;
    FILE  *file = open_memstream(&text, &length);
    fputs("gswbench gemm algorithms 1\n", file);
    for (const char *line = lines, *end = lines + bytes; line < end;) {
        const char *next  = memchr(line, '\n', (size_t)(end - line));
        size_t      count = (size_t)((next != NULL ? next + 1 : end) - line);
        fprintf(file, "%016" PRIx64 " ", (uint64_t)XXH3_64bits(line, count));
        fwrite(line, 1, count, file);
        line += count;
    }
    fclose(file);
    fuzz_file("gemm.txt", text, length);
    free(text);
}

// If the first byte is odd, the other bytes are the whole file. Else they are lines, which get a title and checksums.
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct gemm_cache  cache, again;
    struct gemm_times  times  = {.count = 1, .seconds = {1e-3}};
    struct gemm_choice choice = {.problem = "4096 x 4096 x 4096", .algorithm = {1, 2, 3}};
    if (bytes == 0) {
        return 0;
    }
    if (data[0] % 2 == 1) {
        fuzz_file("gemm.txt", data + 1, bytes - 1);
    } else {
        write_lines((const char *)data + 1, bytes - 1);
    }
    gemm_cache_open(&cache, fuzz_folder(), true);
    check_note(&cache);
    fuzz_file("gemm_times.txt", "", 0);
    int before = cache.count;
    for (int i = 0; i < cache.count; i++) {
        require(gemm_cache_find(&cache, cache.choices[i].problem) != NULL);
    }
    bool is_ours = cache.path != NULL;    // a file that another program wrote is not replaced
    if (is_ours && gemm_cache_find(&cache, choice.problem) == NULL) {
        gemm_cache_add(&cache, &choice, &times);
        gemm_cache_keep(&cache);
        gemm_cache_open(&again, fuzz_folder(), true);
        check_note(&again);
        const struct gemm_choice *found = gemm_cache_find(&again, choice.problem);
        require(again.count == before + 1 && found != NULL && found->algorithm[2] == 3);
        gemm_cache_close(&again);
    }
    gemm_cache_close(&cache);
    return 0;
}
