// SPDX-License-Identifier: MIT
// Opens shared libraries at run time.
#include "gswbench/library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

status library_open(const char *name, const struct library_symbol *symbols, size_t count)
{
    if (strchr(name, '/') != NULL && name[0] != '/') {
        return fail_as(EXIT_LAUNCH, "%s is a relative path: use a file name that the loader finds, or an absolute path",
                       name);
    }
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        return fail_as(EXIT_LAUNCH, "%s cannot be loaded (%.600s): install it, or add its folder to LD_LIBRARY_PATH",
                       name, dlerror());
    }
    for (size_t i = 0; i < count; i++) {
        void *address = dlsym(library, symbols[i].name);
        if (address == NULL && !symbols[i].is_optional) {
            return fail_as(EXIT_LAUNCH, "%s has no %s: install the version that this gswbench was built with", name,
                           symbols[i].name);
        }
        memcpy(symbols[i].place, &address, sizeof(address));
    }
    return OK;
}

void library_beside_program(char *text, size_t bytes, const char *path)
{
    char    program[900];
    ssize_t length                   = readlink("/proc/self/exe", program, sizeof(program) - 1);
    program[length > 0 ? length : 0] = '\0';
    for (int parent = 0; parent < 2 && strrchr(program, '/') != NULL; parent++) {
        *strrchr(program, '/') = '\0';
    }
    snprintf(text, bytes, "%s/%s", program, path);
}
