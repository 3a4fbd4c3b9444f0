// SPDX-License-Identifier: MIT
// Loads NVML, and maps gauges, counters and throttle reasons to NVML calls.
#include "nvml.h"

#include <math.h>

#include "gswbench/library.h"
#include "gswbench/text.h"

enum { LINKS_MAX = 64 };    // more links than any device has; NVML rejects invalid link numbers

// Calls an NVML function. Returns an error if the library lacks the function or the device is lost.
#define CALL(device, function, ...)                                                                                    \
    ((device)->lost != 0 || (device)->nvml.function == NULL ? (unsigned)NVML_CODE_FUNCTION_NOT_FOUND                   \
                                                            : (device)->nvml.function((device)->handle, __VA_ARGS__))

static double known(struct nvml_device *device, unsigned code, double value)
{
    if (code == NVML_CODE_GPU_IS_LOST || code == NVML_CODE_RESET_REQUIRED) {
        device->lost = code;
    }
    device->refusal = device->refusal == NVML_CODE_SUCCESS ? code : device->refusal;
    return code == NVML_CODE_SUCCESS ? value : NAN;
}

// Loads the library with this file name and initialises it.
static status open_library(struct nvml *nvml, const char *name)
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

status nvml_device_open(struct nvml_device *device, const char *library, const char *uuid)
{
    device->lost    = 0;
    device->refusal = NVML_CODE_SUCCESS;
    TRY(open_library(&device->nvml, library));
    unsigned code = device->nvml.nvmlDeviceGetHandleByUUID(uuid, &device->handle);
    if (code != NVML_CODE_SUCCESS) {
        status result =
            fail_as(EXIT_LAUNCH, "%s does not find %.50s: %.80s", library, uuid, device->nvml.nvmlErrorString(code));
        nvml_device_close(device);
        return result;
    }
    return OK;
}

void nvml_device_close(struct nvml_device *device)
{
    device->nvml.nvmlShutdown();
}

void nvml_read_names(struct nvml_device *device, struct observation *observation)
{
    struct nvml_pci pci = {.id = ""};
    CALL(device, nvmlDeviceGetName, observation->name, sizeof(observation->name));
    CALL(device, nvmlDeviceGetUUID, observation->uuid, sizeof(observation->uuid));
    CALL(device, nvmlDeviceGetVbiosVersion, observation->vbios, sizeof(observation->vbios));
    CALL(device, nvmlDeviceGetPciInfo_v3, (struct nvmlPciInfo_st *)&pci);
    text_copy(observation->pci, sizeof(observation->pci), pci.id);
    device->nvml.nvmlSystemGetDriverVersion(observation->driver, sizeof(observation->driver));
}

double nvml_read_gauge(struct nvml_device *device, enum gauge gauge)
{
    struct nvml_utilization share = {.gpu = 0};
    unsigned                value = 0, code = NVML_CODE_FUNCTION_NOT_FOUND;
    switch (gauge) {
    case GAUGE_SM_CLOCK:
    case GAUGE_MEMORY_CLOCK:
        code = CALL(device, nvmlDeviceGetClockInfo, gauge == GAUGE_SM_CLOCK ? NVML_SM : NVML_MEMORY, &value);
        break;
    case GAUGE_POWER:
        code = CALL(device, nvmlDeviceGetPowerUsage, &value);
        break;
    case GAUGE_POWER_LIMIT:
        code = CALL(device, nvmlDeviceGetEnforcedPowerLimit, &value);
        break;
    case GAUGE_TEMPERATURE:
        code = CALL(device, nvmlDeviceGetTemperature, NVML_DIE, &value);
        break;
    case GAUGE_UTILIZATION:
        code  = CALL(device, nvmlDeviceGetUtilizationRates, (struct nvmlUtilization_st *)&share);
        value = share.gpu;
        break;
    case GAUGE_COUNT:
        break;
    }
    bool is_milliwatts = gauge == GAUGE_POWER || gauge == GAUGE_POWER_LIMIT;
    return known(device, code, is_milliwatts ? value / 1e3 : value);
}

static double read_ecc(struct nvml_device *device, unsigned error, unsigned since)
{
    unsigned long long errors = 0;
    unsigned           code   = CALL(device, nvmlDeviceGetTotalEccErrors, error, since, &errors);
    return known(device, code, (double)errors);
}

// Reads a number of remapped memory rows. which: 0 corrected errors, 1 uncorrected errors, 2 pending, 3 failed.
static double read_rows(struct nvml_device *device, unsigned which, unsigned unused)
{
    unsigned rows[4] = {0};
    unsigned code    = CALL(device, nvmlDeviceGetRemappedRows, &rows[0], &rows[1], &rows[2], &rows[3]);
    (void)unused;
    return known(device, code, rows[which]);
}

// Reads the number of retired memory pages. Without a buffer for addresses, NVML returns only this number.
static double read_pages(struct nvml_device *device, unsigned cause, unsigned unused)
{
    unsigned           pages = 0;
    unsigned long long none  = 0;
    unsigned           code  = CALL(device, nvmlDeviceGetRetiredPages, cause, &pages, &none);
    (void)unused;
    return known(device, code == NVML_CODE_INSUFFICIENT_SIZE ? NVML_CODE_SUCCESS : code, pages);
}

// Adds a value to a sum, where NaN means unknown. Returns NaN if both are unknown.
static double add_known(double sum, double value)
{
    return isnan(sum) ? value : isnan(value) ? sum : sum + value;
}

// Returns the number of NVLinks, or of active ones; NaN: unknown.
static double count_links(struct nvml_device *device, unsigned is_active, unsigned unused)
{
    double sum = NAN;
    (void)unused;
    for (unsigned link = 0; link < LINKS_MAX; link++) {
        unsigned state = 0, code = CALL(device, nvmlDeviceGetNvLinkState, link, &state);
        sum = add_known(sum, known(device, code, !is_active || state == NVML_ACTIVE));
    }
    return sum;
}

// Returns the errors of the kinds from first to last, summed over all NVLinks.
static double sum_link_errors(struct nvml_device *device, unsigned first, unsigned last)
{
    double sum = NAN;
    for (unsigned kind = first; kind <= last; kind++) {
        for (unsigned link = 0; link < LINKS_MAX; link++) {
            unsigned long long errors = 0;
            unsigned           code   = CALL(device, nvmlDeviceGetNvLinkErrorCounter, link, kind, &errors);
            sum                       = add_known(sum, known(device, code, (double)errors));
        }
    }
    return sum;
}

double nvml_read_counter(struct nvml_device *device, enum counter counter)
{
    static const struct {
        double (*read)(struct nvml_device *device, unsigned first, unsigned second);
        unsigned first, second;
    } rows[COUNTER_COUNT] = {
        [COUNTER_ECC_CORRECTED]        = {read_ecc, NVML_CORRECTED, NVML_SINCE_LOAD},
        [COUNTER_ECC_UNCORRECTED]      = {read_ecc, NVML_UNCORRECTED, NVML_SINCE_LOAD},
        [COUNTER_ECC_CORRECTED_EVER]   = {read_ecc, NVML_CORRECTED, NVML_EVER},
        [COUNTER_ECC_UNCORRECTED_EVER] = {read_ecc, NVML_UNCORRECTED, NVML_EVER},
        [COUNTER_ROWS_CORRECTED]       = {read_rows, 0, 0},
        [COUNTER_ROWS_UNCORRECTED]     = {read_rows, 1, 0},
        [COUNTER_ROWS_PENDING]         = {read_rows, 2, 0},
        [COUNTER_ROWS_FAILED]          = {read_rows, 3, 0},
        [COUNTER_PAGES_SINGLE]         = {read_pages, NVML_SINGLE_BIT, 0},
        [COUNTER_PAGES_DOUBLE]         = {read_pages, NVML_DOUBLE_BIT, 0},
        [COUNTER_LINKS]                = {count_links, false, 0},
        [COUNTER_LINKS_ACTIVE]         = {count_links, true, 0},
        [COUNTER_LINK_REPLAYS]         = {sum_link_errors, NVML_REPLAY, NVML_REPLAY},
        [COUNTER_LINK_RECOVERIES]      = {sum_link_errors, NVML_RECOVERY, NVML_RECOVERY},
        [COUNTER_LINK_CRC]             = {sum_link_errors, NVML_CRC_FLIT, NVML_CRC_DATA},
    };
    return rows[counter].read(device, rows[counter].first, rows[counter].second);
}

double nvml_read_energy(struct nvml_device *device)
{
    unsigned long long millijoules = 0;
    unsigned           code        = CALL(device, nvmlDeviceGetTotalEnergyConsumption, &millijoules);
    return known(device, code, (double)millijoules / 1e3);
}

void nvml_read_throttles(struct nvml_device *device, double on[THROTTLE_COUNT])
{
#define THROTTLE_BIT(NAME, key, bit, words) [THROTTLE_##NAME] = (bit),
    static const unsigned bits[THROTTLE_COUNT]                = {THROTTLES(THROTTLE_BIT)};
    unsigned long long    all                                 = 0;
    unsigned              code = CALL(device, nvmlDeviceGetCurrentClocksEventReasons, &all);
    if (code == NVML_CODE_FUNCTION_NOT_FOUND) {    // the function's name before driver 535
        code = CALL(device, nvmlDeviceGetCurrentClocksThrottleReasons, &all);
    }
    for (int throttle = 0; throttle < THROTTLE_COUNT; throttle++) {
        on[throttle] = known(device, code, (all & bits[throttle]) != 0);
    }
}
