// SPDX-License-Identifier: MIT
// Checks the CUDA libraries that the program opens at run time.
#include <stdio.h>
#include <string.h>

#include "gswbench/library.h"
#include "internal.h"

#ifdef GSWBENCH_CUDA_MAJOR
#define CUDA_LIBRARY(name) name TEXT_OF_VALUE(GSWBENCH_CUDA_MAJOR)
#endif

// How a library tells its version: by return value, or through a pointer.
union version_call {
    size_t (*returned)(void);
    int (*stored)(int *version);
};

struct library {
    const char *name, *file, *function;
    bool        is_returned, is_required;
    size_t      step;      // the version is major * step^2 + minor * step + patch, or step 0: a plain number
    size_t      oldest;    // in the same form; 0: any
    const char *remedy;
};

static const struct library libraries[] = {
#ifdef GSWBENCH_CUDA_MAJOR
    {"cublaslt", CUDA_LIBRARY("libcublasLt.so."), "cublasLtGetVersion", true, true, 100, 0,
     "install libcublas of the toolkit, or add its folder to LD_LIBRARY_PATH"},
    {"nccl", "libnccl.so.2", "ncclGetVersion", false, true, 100, 21700, "apt-get install libnccl2"},
    {"cudnn", "libcudnn.so.9", "cudnnGetVersion", true, false, 100, 90000,
     "attention then uses gswbench's own, slower kernels: apt-get install libcudnn9-cuda-" TEXT_OF_VALUE(
         GSWBENCH_CUDA_MAJOR)},
    {"cupti", CUDA_LIBRARY("libcupti.so."), "cuptiGetVersion", false, false, 0, 0,
     "times of ops in CUDA graphs are then missing: install cuda-cupti"},
#else
    {NULL, NULL, NULL, false, false, 0, 0, NULL},
#endif
};

enum { VERSION_BYTES = 72 };

static size_t ask_version(const struct library *library, union version_call call)
{
    int version = 0;
    if (library->is_returned) {
        return call.returned();
    }
    return call.stored(&version) == 0 && version > 0 ? (size_t)version : 0;
}

static void describe(char text[VERSION_BYTES], size_t version, size_t step)
{
    if (step == 0) {
        snprintf(text, VERSION_BYTES, "API %zu", version);
    } else {
        snprintf(text, VERSION_BYTES, "%zu.%zu.%zu", version / (step * step), version / step % step, version % step);
    }
}

// Cuts off the remedy of library_open, since the caller adds its own.
static struct doctor_line *add_lost(struct doctor *doctor, const struct library *library, enum doctor_state state,
                                    const char *reason)
{
    const char *remedy   = strstr(reason, ": install it");
    bool        is_there = strstr(reason, "No such file") == NULL;
    return is_there ? doctor_add(doctor, library->name, state, "%.*s",
                                 (int)(remedy != NULL ? (size_t)(remedy - reason) : strlen(reason)), reason)
                    : doctor_add(doctor, library->name, state, "%s is not installed", library->file);
}

static void check(struct doctor *doctor, const struct library *library)
{
    union version_call          call;
    const struct library_symbol symbols[] = {{library->function, &call.returned, false}};
    char                        text[VERSION_BYTES], oldest[VERSION_BYTES];
    status                      opened = library_open(library->file, symbols, 1);
    enum doctor_state   lost = doctor->gpus == 0 ? DOCTOR_ABSENT : library->is_required ? DOCTOR_WRONG : DOCTOR_WARNING;
    struct doctor_line *line;
    if (failed(&opened)) {
        line = add_lost(doctor, library, lost, opened.text);
        doctor_advise(line, "%s", library->remedy);
        return;
    }
    size_t version = ask_version(library, call);
    describe(text, version, library->step);
    describe(oldest, library->oldest, library->step);
    if (version < library->oldest || version == 0) {
        line = doctor_add(doctor, library->name, lost, "%s has version %s, %s or newer is needed", library->file, text,
                          oldest);
        doctor_advise(line, "%s", library->remedy);
    } else {
        doctor_add(doctor, library->name, DOCTOR_OK, "%s", text);
    }
}

void doctor_check_libraries(struct doctor *doctor)
{
    for (size_t i = 0; i < sizeof(libraries) / sizeof(libraries[0]) && libraries[i].name != NULL; i++) {
        check(doctor, &libraries[i]);
    }
}
