// SPDX-License-Identifier: MIT
// Runs a fuzz target on every file of a folder: corpus FOLDER. Fails if the folder has no file.
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#include "fuzz_file.h"

#pragma weak LLVMFuzzerInitialize

static void run_file(const char *path)
{
    static uint8_t data[1 << 20];
    FILE          *file = fopen(path, "rb");
    if (file == NULL) {
        perror(path);
        exit(1);
    }
    size_t bytes = fread(data, 1, sizeof(data), file);
    fclose(file);
    fprintf(stderr, "%s\n", path);    // the last printed path is the input that crashed
    LLVMFuzzerTestOneInput(data, bytes);
}

int main(int count, char **arguments)
{
    int            files     = 0;
    DIR           *directory = count == 2 ? opendir(arguments[1]) : NULL;
    struct dirent *entry;
    if (directory == NULL) {
        fprintf(stderr, "usage: %s FOLDER\n", arguments[0]);
        return 2;
    }
    if (LLVMFuzzerInitialize != NULL) {
        LLVMFuzzerInitialize(&count, &arguments);
    }
    while ((entry = readdir(directory)) != NULL) {
        char path[1024];
        snprintf(path, sizeof(path), "%s/%s", arguments[1], entry->d_name);
        if (entry->d_name[0] != '.') {
            run_file(path);
            files++;
        }
    }
    closedir(directory);
    return files > 0 ? 0 : 1;
}
