// SPDX-License-Identifier: MIT
// Fuzzes safetensors files. The program must either refuse a file with its path, or find each of its tensors inside the
// file; reading a tensor may then succeed or fail.
#include <stdlib.h>
#include <string.h>

#include "fuzz_file.h"
#include "safetensors_read.h"

static void read_all(const char *path, size_t bytes)
{
    struct safetensors_reader reader;
    status                    opened = safetensors_open(&reader, path);
    if (failed(&opened)) {
        require(opened.exit_code == EXIT_CHECKPOINT && strncmp(opened.text, path, strlen(path)) == 0);
        return;
    }
    int64_t sum = reader.data_start;
    for (int32_t i = 0; i < reader.count; i++) {
        const struct safetensor *tensor = &reader.tensors[i];
        require(tensor->begin >= 0 && tensor->bytes >= 0 && (uint64_t)tensor->bytes <= bytes);
        void  *data = malloc((size_t)tensor->bytes + 1);
        status read = safetensors_read(&reader, tensor->name, data, tensor->bytes);
        require(!failed(&read) || read.exit_code == EXIT_CHECKPOINT);
        free(data);
        sum += tensor->bytes;
    }
    require(sum == (int64_t)bytes);
    safetensors_close(&reader);
}

// If the first byte is odd, the other bytes are a whole file. Else the second byte is the number of data bytes, and the
// bytes after it are a header, whose length is written before it.
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    if (bytes < 2) {
        return 0;
    }
    if (data[0] % 2 == 1) {
        read_all(fuzz_file("weights.safetensors", data + 1, bytes - 1), bytes - 1);
        return 0;
    }
    uint64_t length = bytes - 2;
    size_t   whole  = sizeof(length) + bytes - 2 + data[1];
    uint8_t *file   = calloc(1, whole);
    memcpy(file, &length, sizeof(length));
    memcpy(file + sizeof(length), data + 2, bytes - 2);
    read_all(fuzz_file("weights.safetensors", file, whole), whole);
    free(file);
    return 0;
}
