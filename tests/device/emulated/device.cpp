// SPDX-License-Identifier: MIT
// What the emulated device says of itself.
#include "emulator.h"

#include <stdio.h>
#include <stdlib.h>

namespace
{
enum { SHARED_BYTES = 232448 };

int capability(void)
{
    const char *told = getenv("FAKE_CAPABILITY");    // a number: of another generation
    return told != NULL ? atoi(told) : 10;
}
}    // namespace

int emulator::multiprocessors(void)
{
    const char *told = getenv("FAKE_PROCESSORS");    // a number: of another device
    return told != NULL ? atoi(told) : getenv("FAKE_SHARING") != NULL ? 132 : 3;
}

extern "C" {

cudaError_t cudaDriverGetVersion(int *version)
{
    const char *asked = getenv("FAKE_DRIVER");    // a number: of an older driver
    *version          = asked != NULL ? atoi(asked) : CUDART_VERSION;
    return cudaSuccess;
}
cudaError_t cudaGetDeviceCount(int *count)
{
    *count = 1;
    return cudaSuccess;
}
cudaError_t cudaSetDevice(int device)
{
    return device == 0 ? cudaSuccess : cudaErrorInvalidDevice;
}
cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int)
{
    switch (attribute) {
    case cudaDevAttrMultiProcessorCount:
        *value = emulator::multiprocessors();
        break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
        *value = SHARED_BYTES;
        break;
    case cudaDevAttrComputeCapabilityMajor:
        *value = capability();
        break;
    default:
        *value = 0;
    }
    return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *properties, int)
{
    memset(properties, 0, sizeof(*properties));
    const char *name = getenv("FAKE_NAME");
    snprintf(properties->name, sizeof(properties->name), "%s", name != NULL ? name : "emulated GPU");
    properties->totalGlobalMem = (size_t)8 << 30;
    // FAKE_DEVICE, a number: ranks that say others have devices of their own.
    const char *number         = getenv("FAKE_DEVICE");
    properties->uuid.bytes[15] = (char)(number == NULL ? 0 : atoi(number));
    return cudaSuccess;
}
cudaError_t cudaDeviceGetPCIBusId(char *text, int bytes, int)
{
    const char *number = getenv("FAKE_DEVICE");    // as above; in a domain that no machine has
    snprintf(text, (size_t)bytes, "FFFF:%02X:00.0", number == NULL ? 0 : atoi(number));
    return cudaSuccess;
}
cudaError_t cudaMemGetInfo(size_t *available, size_t *total)
{
    *total     = (size_t)8 << 30;
    *available = *total - (size_t)emulator::taken_bytes;
    return cudaSuccess;
}

// Descriptions of cuBLASLt's operations that were made so far, and those that there are.
void emulator_descriptions(int *made, int *kept)
{
    *made = emulator::products_made;
    *kept = emulator::products_kept;
}
}
