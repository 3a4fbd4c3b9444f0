// SPDX-License-Identifier: MIT
// Loads NVML.
#include "nvml_library.h"

#include "gswbench/library.h"

status nvml_open(struct nvml *nvml, const char *name)
{
#define NVML_ROW(function, parameters)      {#function, &nvml->function, false},
#define NVML_OPTIONAL(function, parameters) {#function, &nvml->function, true},
    const struct library_symbol symbols[] = {
        NVML_FUNCTIONS(NVML_ROW, NVML_OPTIONAL){"nvmlErrorString", &nvml->nvmlErrorString, false}};
#undef NVML_ROW
#undef NVML_OPTIONAL
    TRY(library_open(name, symbols, sizeof(symbols) / sizeof(symbols[0])));
    unsigned code = nvml->nvmlInit_v2();
    return code == NVML_CODE_SUCCESS ? OK : fail_as(EXIT_LAUNCH, "%s: %.160s", name, nvml->nvmlErrorString(code));
}
