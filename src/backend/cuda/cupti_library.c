// SPDX-License-Identifier: MIT
// Loads CUPTI and formats its errors.
#include "cupti_library.h"

#include <cuda_runtime_api.h>
#include <stdio.h>

#include "gswbench/library.h"

status cupti_open(struct cupti *cupti)
{
    char name[32];
    snprintf(name, sizeof(name), "libcupti.so.%d", CUDART_VERSION / 1000);
#define CUPTI_SYMBOL(function, parameters) {#function, &cupti->function, false},
    const struct library_symbol symbols[] = {CUPTI_FUNCTIONS(CUPTI_SYMBOL, CUPTI_SYMBOL)};
#undef CUPTI_SYMBOL
    return library_open(name, symbols, sizeof(symbols) / sizeof(symbols[0]));
}

status cupti_failure(const struct cupti *cupti, const char *call, unsigned code)
{
    const char *text   = NULL;
    const char *remedy = code == CUPTI_CODE_TAKEN ? ": a profiler or debugger has it, run without one" : "";
    cupti->cuptiGetResultString(code, &text);
    return fail_as(EXIT_LAUNCH, "%s: %s (%u)%s", call, text != NULL ? text : "an error", code, remedy);
}
