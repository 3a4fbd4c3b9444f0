// SPDX-License-Identifier: MIT
// Maps gauges, counters and throttle reasons to NVML calls.
#include "nvml_read.h"

#include <math.h>

#include "gswbench/text.h"

enum { LINKS_MAX = 64 };    // more links than any device has; NVML rejects invalid numbers

// Calls a function that the library may lack.
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

status nvml_device_open(struct nvml_device *device, const char *library, const char *uuid)
{
    device->lost    = 0;
    device->refusal = NVML_CODE_SUCCESS;
    TRY(nvml_open(&device->nvml, library));
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

static double read_clock(struct nvml_device *device, unsigned clock)
{
    unsigned megahertz = 0, code = CALL(device, nvmlDeviceGetClockInfo, clock, &megahertz);
    return known(device, code, megahertz);
}

static double read_power(struct nvml_device *device)
{
    unsigned milliwatts = 0, code = CALL(device, nvmlDeviceGetPowerUsage, &milliwatts);
    return known(device, code, milliwatts / 1e3);
}

static double read_power_limit(struct nvml_device *device)
{
    unsigned milliwatts = 0, code = CALL(device, nvmlDeviceGetEnforcedPowerLimit, &milliwatts);
    return known(device, code, milliwatts / 1e3);
}

static double read_temperature(struct nvml_device *device)
{
    unsigned celsius = 0, code = CALL(device, nvmlDeviceGetTemperature, NVML_DIE, &celsius);
    return known(device, code, celsius);
}

static double read_utilization(struct nvml_device *device)
{
    struct nvml_utilization share = {.gpu = 0};
    unsigned                code  = CALL(device, nvmlDeviceGetUtilizationRates, (struct nvmlUtilization_st *)&share);
    return known(device, code, share.gpu);
}

double nvml_read_gauge(struct nvml_device *device, enum gauge gauge)
{
    switch (gauge) {
    case GAUGE_SM_CLOCK:
        return read_clock(device, NVML_SM);
    case GAUGE_MEMORY_CLOCK:
        return read_clock(device, NVML_MEMORY);
    case GAUGE_POWER:
        return read_power(device);
    case GAUGE_POWER_LIMIT:
        return read_power_limit(device);
    case GAUGE_TEMPERATURE:
        return read_temperature(device);
    case GAUGE_UTILIZATION:
        return read_utilization(device);
    case GAUGE_COUNT:
        break;
    }
    return NAN;
}

static double read_ecc(struct nvml_device *device, unsigned error, unsigned since)
{
    unsigned long long errors = 0;
    unsigned           code   = CALL(device, nvmlDeviceGetTotalEccErrors, error, since, &errors);
    return known(device, code, (double)errors);
}

// which: 0 corrected, 1 uncorrected, 2 pending, 3 failed.
static double read_rows(struct nvml_device *device, int which)
{
    unsigned rows[4] = {0};
    unsigned code    = CALL(device, nvmlDeviceGetRemappedRows, &rows[0], &rows[1], &rows[2], &rows[3]);
    return known(device, code, rows[which]);
}

// With no room for addresses, NVML returns only the number of pages.
static double read_pages(struct nvml_device *device, unsigned cause)
{
    unsigned           pages = 0;
    unsigned long long none  = 0;
    unsigned           code  = CALL(device, nvmlDeviceGetRetiredPages, cause, &pages, &none);
    return known(device, code == NVML_CODE_INSUFFICIENT_SIZE ? NVML_CODE_SUCCESS : code, pages);
}

// Sums count over all links; NaN if unknown for every link.
typedef double link_count(struct nvml_device *device, unsigned link);
static double  sum_links(struct nvml_device *device, link_count *count)
{
    double sum = NAN;
    for (unsigned link = 0; link < LINKS_MAX; link++) {
        double value = count(device, link);
        if (!isnan(value)) {
            sum = isnan(sum) ? value : sum + value;
        }
    }
    return sum;
}

static double link_is_active(struct nvml_device *device, unsigned link)
{
    unsigned state = 0, code = CALL(device, nvmlDeviceGetNvLinkState, link, &state);
    return known(device, code, state == NVML_ACTIVE);
}

static double link_is_there(struct nvml_device *device, unsigned link)
{
    return isnan(link_is_active(device, link)) ? NAN : 1;
}

static double link_errors(struct nvml_device *device, unsigned link, unsigned kind)
{
    unsigned long long errors = 0;
    unsigned           code   = CALL(device, nvmlDeviceGetNvLinkErrorCounter, link, kind, &errors);
    return known(device, code, (double)errors);
}

static double link_replays(struct nvml_device *device, unsigned link)
{
    return link_errors(device, link, NVML_REPLAY);
}

static double link_recoveries(struct nvml_device *device, unsigned link)
{
    return link_errors(device, link, NVML_RECOVERY);
}

static double link_crc(struct nvml_device *device, unsigned link)
{
    double flits = link_errors(device, link, NVML_CRC_FLIT), data = link_errors(device, link, NVML_CRC_DATA);
    return isnan(flits) ? data : isnan(data) ? flits : flits + data;
}

double nvml_read_counter(struct nvml_device *device, enum counter counter)
{
    switch (counter) {
    case COUNTER_ECC_CORRECTED:
        return read_ecc(device, NVML_CORRECTED, NVML_SINCE_LOAD);
    case COUNTER_ECC_UNCORRECTED:
        return read_ecc(device, NVML_UNCORRECTED, NVML_SINCE_LOAD);
    case COUNTER_ECC_CORRECTED_EVER:
        return read_ecc(device, NVML_CORRECTED, NVML_EVER);
    case COUNTER_ECC_UNCORRECTED_EVER:
        return read_ecc(device, NVML_UNCORRECTED, NVML_EVER);
    case COUNTER_ROWS_CORRECTED:
    case COUNTER_ROWS_UNCORRECTED:
    case COUNTER_ROWS_PENDING:
    case COUNTER_ROWS_FAILED:
        return read_rows(device, (int)counter - COUNTER_ROWS_CORRECTED);
    case COUNTER_PAGES_SINGLE:
        return read_pages(device, NVML_SINGLE_BIT);
    case COUNTER_PAGES_DOUBLE:
        return read_pages(device, NVML_DOUBLE_BIT);
    case COUNTER_LINKS:
        return sum_links(device, link_is_there);
    case COUNTER_LINKS_ACTIVE:
        return sum_links(device, link_is_active);
    case COUNTER_LINK_REPLAYS:
        return sum_links(device, link_replays);
    case COUNTER_LINK_RECOVERIES:
        return sum_links(device, link_recoveries);
    case COUNTER_LINK_CRC:
        return sum_links(device, link_crc);
    case COUNTER_COUNT:
        break;
    }
    return NAN;
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
    if (code == NVML_CODE_FUNCTION_NOT_FOUND) {    // name before driver 535
        code = CALL(device, nvmlDeviceGetCurrentClocksThrottleReasons, &all);
    }
    for (int throttle = 0; throttle < THROTTLE_COUNT; throttle++) {
        on[throttle] = known(device, code, (all & bits[throttle]) != 0);
    }
}
