// SPDX-License-Identifier: MIT
// Loads the cuDNN of the headers' major version.
#include "cudnn_library.h"

#include "gswbench/library.h"

#define TEXT_OF(number) #number
#define NAME_OF(major)  "libcudnn.so." TEXT_OF(major)

status cudnn_open(struct cudnn *cudnn)
{
#define CUDNN_SYMBOL(function) {#function, &cudnn->function, false},
    const struct library_symbol symbols[] = {CUDNN_FUNCTIONS(CUDNN_SYMBOL)};
#undef CUDNN_SYMBOL
    return library_open(NAME_OF(CUDNN_MAJOR), symbols, sizeof(symbols) / sizeof(symbols[0]));
}

status cudnn_failure(const struct cudnn *cudnn, const char *what, cudnnStatus_t code)
{
    char detail[512] = "";
    cudnn->cudnnGetLastErrorString(detail, sizeof(detail));
    return fail("cuDNN %zu: %s: %s%s%s", cudnn->cudnnGetVersion(), what, cudnn->cudnnGetErrorString(code),
                detail[0] == '\0' ? "" : ": ", detail);
}
