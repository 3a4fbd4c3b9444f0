// SPDX-License-Identifier: MIT
// Fuzzes the manifest of a checkpoint, which gets a valid checksum, or the index of a Hugging Face folder. No weight
// file exists, so opening must fail with an error that starts with the folder.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint/manifest.h"
#include "fuzz_file.h"

// Replaces the checksum in a manifest by the right one.
static void sign(char *text, size_t bytes)
{
    static const char before[] = "\"xxh3\":\"";
    char              checksum[CHECKSUM_BYTES];
    checksum_print(checksums_of_header(text, bytes), checksum);
    char *value = strstr(text, before);
    if (value != NULL && strlen(value) >= strlen(before) + CHECKSUM_BYTES - 1) {
        memcpy(value + strlen(before), checksum, CHECKSUM_BYTES - 1);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    char                       index[512];
    struct checkpoint_contents contents;
    if (bytes < 1) {
        return 0;
    }
    snprintf(index, sizeof(index), "%s/" INDEX_NAME, fuzz_folder());
    remove(index);
    fuzz_file(CONFIG_NAME, "{}", 2);
    char *text = calloc(1, bytes);
    memcpy(text, data + 1, bytes - 1);
    if (data[0] % 2 == 0) {
        sign(text, bytes - 1);
        fuzz_file(MANIFEST_NAME, text, bytes - 1);
    } else {
        snprintf(index, sizeof(index), "%s/" MANIFEST_NAME, fuzz_folder());
        remove(index);
        fuzz_file(INDEX_NAME, text, bytes - 1);
    }
    free(text);
    status verified = checkpoint_verify(fuzz_folder(), &contents);
    require(verified.exit_code == EXIT_CHECKPOINT && strncmp(verified.text, fuzz_folder(), strlen(fuzz_folder())) == 0);
    return 0;
}
