// SPDX-License-Identifier: MIT
// What the emulated device says of itself.
#include "emulator.h"

#include <cuda_profiler_api.h>
#include <stdio.h>

// Numbers that make it another device: FAKE_PROCESSORS, FAKE_CAPABILITY (its generation), FAKE_DRIVER (an older one).
int emulator::multiprocessors(void)
{
    return (int)number_told("FAKE_PROCESSORS", 3);
}

// Ranks that say others have devices of their own.
static int device_number(void)
{
    return (int)emulator::number_told("FAKE_DEVICE", 0);
}

// Profilers are told in the file in which tests/trace/fake_profiler.c takes down all else.
static cudaError_t tell(const char *line)
{
    const char *path = getenv("FAKE_PROFILER");
    FILE       *file = path != NULL ? fopen(path, "a") : NULL;
    if (file != NULL) {
        fputs(line, file);
        fclose(file);
    }
    return cudaSuccess;
}

extern "C" {

cudaError_t cudaDriverGetVersion(int *version)
{
    *version = (int)emulator::number_told("FAKE_DRIVER", CUDART_VERSION);
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
    *value = attribute == cudaDevAttrMultiProcessorCount            ? emulator::multiprocessors()
             : attribute == cudaDevAttrMaxSharedMemoryPerBlockOptin ? 227 << 10
             : attribute == cudaDevAttrComputeCapabilityMajor       ? (int)emulator::number_told("FAKE_CAPABILITY", 10)
                                                                    : 0;
    return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *properties, int)
{
    memset(properties, 0, sizeof(*properties));
    const char *name = getenv("FAKE_NAME");
    snprintf(properties->name, sizeof(properties->name), "%s", name != NULL ? name : "emulated GPU");
    properties->totalGlobalMem = (size_t)8 << 30;
    properties->uuid.bytes[15] = (char)device_number();
    return cudaSuccess;
}
cudaError_t cudaDeviceGetPCIBusId(char *text, int bytes, int)
{
    snprintf(text, (size_t)bytes, "FFFF:%02X:00.0", device_number());    // in a domain that no machine has
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

cudaError_t cudaProfilerStart(void)
{
    return tell("0\tdevice-start\n");
}
cudaError_t cudaProfilerStop(void)
{
    return tell("0\tdevice-stop\n");
}
}
