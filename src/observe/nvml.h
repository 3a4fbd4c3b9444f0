// SPDX-License-Identifier: MIT
// Declares the functions and constants of NVML that this program uses. The toolkit's header is missing if CUDA was
// installed as wheels or only a driver is present. The ABI of a function name is stable. A test compares these
// declarations with nvml.h if it is available.
#pragma once

#include <stdatomic.h>

#include "gswbench/observe.h"
#include "gswbench/status.h"

struct nvmlDevice_st;    // opaque types with NVML's names, so that the test can compare prototypes
struct nvmlPciInfo_st;
struct nvmlUtilization_st;

enum {
    NVML_CODE_SUCCESS            = 0,
    NVML_CODE_INSUFFICIENT_SIZE  = 7,
    NVML_CODE_FUNCTION_NOT_FOUND = 13,
    NVML_CODE_GPU_IS_LOST        = 15,
    NVML_CODE_RESET_REQUIRED     = 16,
};
enum { NVML_SM = 1, NVML_MEMORY = 2 };                                                // nvmlClockType_t
enum { NVML_DIE = 0 };                                                                // nvmlTemperatureSensors_t
enum { NVML_CORRECTED = 0, NVML_UNCORRECTED = 1 };                                    // nvmlMemoryErrorType_t
enum { NVML_SINCE_LOAD = 0, NVML_EVER = 1 };                                          // nvmlEccCounterType_t
enum { NVML_SINGLE_BIT = 0, NVML_DOUBLE_BIT = 1 };                                    // nvmlPageRetirementCause_t
enum { NVML_REPLAY = 0, NVML_RECOVERY = 1, NVML_CRC_FLIT = 2, NVML_CRC_DATA = 3 };    // nvmlNvLinkErrorCounter_t
enum { NVML_ACTIVE = 1 };                                                             // nvmlEnableState_t

struct nvml_pci {
    char     legacy_id[16];
    unsigned domain, bus, device, device_id, subsystem_id;
    char     id[32];
};
struct nvml_utilization {
    unsigned gpu, memory;
};

// ROW(function, parameters): a required function. OPTIONAL: a function that some driver versions lack.
// clang-format off
#define NVML_FUNCTIONS(ROW, OPTIONAL) \
    ROW(nvmlInit_v2, (void)) \
    ROW(nvmlShutdown, (void)) \
    ROW(nvmlSystemGetDriverVersion, (char *, unsigned)) \
    ROW(nvmlDeviceGetHandleByUUID, (const char *, struct nvmlDevice_st **)) \
    ROW(nvmlDeviceGetName, (struct nvmlDevice_st *, char *, unsigned)) \
    ROW(nvmlDeviceGetUUID, (struct nvmlDevice_st *, char *, unsigned)) \
    ROW(nvmlDeviceGetPciInfo_v3, (struct nvmlDevice_st *, struct nvmlPciInfo_st *)) \
    ROW(nvmlDeviceGetVbiosVersion, (struct nvmlDevice_st *, char *, unsigned)) \
    ROW(nvmlDeviceGetClockInfo, (struct nvmlDevice_st *, unsigned, unsigned *)) \
    ROW(nvmlDeviceGetPowerUsage, (struct nvmlDevice_st *, unsigned *)) \
    ROW(nvmlDeviceGetEnforcedPowerLimit, (struct nvmlDevice_st *, unsigned *)) \
    ROW(nvmlDeviceGetUtilizationRates, (struct nvmlDevice_st *, struct nvmlUtilization_st *)) \
    ROW(nvmlDeviceGetTotalEccErrors, (struct nvmlDevice_st *, unsigned, unsigned, unsigned long long *)) \
    OPTIONAL(nvmlDeviceGetTemperature, (struct nvmlDevice_st *, unsigned, unsigned *)) \
    OPTIONAL(nvmlDeviceGetTotalEnergyConsumption, (struct nvmlDevice_st *, unsigned long long *)) \
    OPTIONAL(nvmlDeviceGetCurrentClocksEventReasons, (struct nvmlDevice_st *, unsigned long long *)) \
    OPTIONAL(nvmlDeviceGetCurrentClocksThrottleReasons, (struct nvmlDevice_st *, unsigned long long *)) \
    OPTIONAL(nvmlDeviceGetRemappedRows, (struct nvmlDevice_st *, unsigned *, unsigned *, unsigned *, unsigned *)) \
    OPTIONAL(nvmlDeviceGetRetiredPages, (struct nvmlDevice_st *, unsigned, unsigned *, unsigned long long *)) \
    OPTIONAL(nvmlDeviceGetNvLinkState, (struct nvmlDevice_st *, unsigned, unsigned *)) \
    OPTIONAL(nvmlDeviceGetNvLinkErrorCounter, (struct nvmlDevice_st *, unsigned, unsigned, unsigned long long *))
// clang-format on

#define NVML_MEMBER(function, parameters) unsigned(*function) parameters;
struct nvml {
    NVML_FUNCTIONS(NVML_MEMBER, NVML_MEMBER)
    const char *(*nvmlErrorString)(unsigned code);
};

// A device whose values are read. Each reading may fail separately, and is then NaN.
struct nvml_device {
    struct nvml           nvml;
    struct nvmlDevice_st *handle;
    unsigned              refusal;    // first NVML error since this field was cleared; 0: none
    // NVML error that says that the device is lost; no NVML calls are made after it. 0: not lost.
    atomic_uint lost;
};

// Loads NVML and finds the device with this UUID. Fails if the library, the driver or the device is missing.
status nvml_device_open(struct nvml_device *device, const char *library, const char *uuid);
void   nvml_device_close(struct nvml_device *device);

void   nvml_read_names(struct nvml_device *device, struct observation *observation);
double nvml_read_gauge(struct nvml_device *device, enum gauge gauge);
double nvml_read_counter(struct nvml_device *device, enum counter counter);
double nvml_read_energy(struct nvml_device *device);    // joules since the driver was loaded

// Sets on[i] to 1 if the clocks are throttled for reason i, else 0; NaN: unknown.
void nvml_read_throttles(struct nvml_device *device, double on[THROTTLE_COUNT]);
