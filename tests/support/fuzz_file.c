// SPDX-License-Identifier: MIT
#define _GNU_SOURCE
#include "fuzz_file.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[64];

static void remove_folder(void)
{
    DIR           *directory = opendir(folder);
    struct dirent *entry;
    while (directory != NULL && (entry = readdir(directory)) != NULL) {
        char path[400];
        snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
        unlink(path);
    }
    if (directory != NULL) {
        closedir(directory);
    }
    rmdir(folder);
}

const char *fuzz_folder(void)
{
    if (folder[0] == '\0') {
        strcpy(folder, "/dev/shm/gswbench-fuzz-XXXXXX");
        if (mkdtemp(folder) == NULL) {
            perror(folder);
            exit(1);
        }
        atexit(remove_folder);
    }
    return folder;
}

const char *fuzz_file(const char *name, const void *data, size_t bytes)
{
    static char path[200];
    snprintf(path, sizeof(path), "%s/%s", fuzz_folder(), name);
    FILE *file = fopen(path, "wb");
    if (file == NULL || fwrite(data, 1, bytes, file) != bytes || fclose(file) != 0) {
        perror(path);
        exit(1);
    }
    return path;
}
