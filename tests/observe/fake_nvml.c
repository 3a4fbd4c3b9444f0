// SPDX-License-Identifier: MIT
// Fake NVML with one device, for tests of the observer. The variable FAKE_NVML, called the script below, has
// space-separated words "key=value".
//
// A value that changes has one comma-separated part per phase, and each part one colon-separated value per call. The
// last part repeats. Each reading of the energy starts a phase: 0 before the run, 1 during it, 2 after it. Functions
// that the script does not mention return "not supported". Special words:
// init=CODE            nvmlInit fails
// refuse=NAME:CODE     this function fails; may be repeated
// slow=NAME:MS         this function takes MS milliseconds during the run
// lost=CALLS           the device is lost after that many power readings
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SUCCESS = 0, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, INSUFFICIENT_SIZE = 7, IS_LOST = 15 };
enum { KEYS_MAX = 64 };

struct pci {
    char     legacy_id[16];
    unsigned domain, bus, device, device_id, subsystem_id;
    char     id[32];
};
struct utilization {
    unsigned gpu, memory;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int             phase, power_calls;
static struct calls {
    char name[32];
    int  phase, count;
} calls[KEYS_MAX];

// Returns the value of the first word "key=value" at or after from, or NULL.
static const char *find_word(const char *from, const char *key)
{
    size_t length = strlen(key);
    while (from != NULL && *from != '\0') {
        from += strspn(from, " \n");
        if (strncmp(from, key, length) == 0 && from[length] == '=') {
            return from + length + 1;
        }
        from = strpbrk(from, " \n");
    }
    return NULL;
}

static const char *script(void)
{
    const char *text = getenv("FAKE_NVML");
    return text != NULL ? text : "";
}

// A value has parts between separators and ends at any character of ends. Returns part number, or the last part if
// there are fewer.
static const char *find_part(const char *value, int number, char separator, const char *ends)
{
    for (; number > 0; number--) {
        size_t      length = strcspn(value, ends);
        const char *next   = memchr(value, separator, length);
        if (next == NULL) {
            break;
        }
        value = next + 1;
    }
    return value;
}

static int count_call(const char *key)
{
    struct calls *found = calls;
    while (found->name[0] != '\0' && strcmp(found->name, key) != 0) {
        found++;
    }
    snprintf(found->name, sizeof(found->name), "%s", key);
    if (found->phase != phase) {
        *found = (struct calls){.phase = phase};
        snprintf(found->name, sizeof(found->name), "%s", key);
    }
    return found->count++;
}

// Returns the error code with which the script lets the function fail, or SUCCESS. After the device is lost, every call
// returns IS_LOST.
static unsigned refusal(const char *function)
{
    const char *lost = find_word(script(), "lost");
    char        name[64];
    int         number;
    for (const char *slow = find_word(script(), "slow"); slow != NULL; slow = find_word(slow, "slow")) {
        if (phase > 0 && sscanf(slow, "%63[^:]:%d", name, &number) == 2 && strcmp(name, function) == 0) {
            nanosleep(&(struct timespec){.tv_sec = number / 1000, .tv_nsec = number % 1000 * 1000000L}, NULL);
        }
    }
    for (const char *word = find_word(script(), "refuse"); word != NULL; word = find_word(word, "refuse")) {
        if (sscanf(word, "%63[^:]:%d", name, &number) == 2 && strcmp(name, function) == 0) {
            return (unsigned)number;
        }
    }
    return lost != NULL && power_calls >= atoi(lost) ? IS_LOST : SUCCESS;
}

static unsigned read_number(const char *function, const char *key, unsigned long long *number)
{
    unsigned code = refusal(function);
    pthread_mutex_lock(&mutex);
    const char *value = find_word(script(), key);
    code              = code == SUCCESS && value == NULL ? NOT_SUPPORTED : code;
    if (code == SUCCESS) {
        value   = find_part(value, phase, ',', " \n");
        *number = strtoull(find_part(value, count_call(key), ':', ", \n"), NULL, 0);
    }
    pthread_mutex_unlock(&mutex);
    return code;
}

static unsigned read_unsigned(const char *function, const char *key, unsigned *number)
{
    unsigned long long wide = 0;
    unsigned           code = read_number(function, key, &wide);
    if (code == SUCCESS) {
        *number = (unsigned)wide;
    }
    return code;
}

// Copies a value of the script. It cannot contain spaces, so the script writes '_' for a space.
static unsigned read_text(const char *function, const char *key, char *text, unsigned bytes)
{
    const char *value = find_word(script(), key);
    unsigned    code  = refusal(function);
    if (code != SUCCESS || value == NULL) {
        return code != SUCCESS ? code : NOT_SUPPORTED;
    }
    size_t length = strcspn(value, " \n");
    if (length >= bytes) {
        return INSUFFICIENT_SIZE;
    }
    for (size_t i = 0; i < length; i++) {
        text[i] = value[i] == '_' ? ' ' : value[i];
    }
    text[length] = '\0';
    return SUCCESS;
}

// Declares and defines a function of NVML. Functions need a prototype, and nvml.h may be missing.
#define FAKE(name, ...)                                                                                                \
    unsigned name(__VA_ARGS__);                                                                                        \
    unsigned name(__VA_ARGS__)

const char *nvmlErrorString(unsigned code);
const char *nvmlErrorString(unsigned code)
{
    return code == NOT_SUPPORTED ? "Not Supported"
           : code == NOT_FOUND   ? "Not Found"
           : code == 9           ? "Driver Not Loaded"
           : code == IS_LOST     ? "GPU is lost"
                                 : "Unknown Error";
}

FAKE(nvmlInit_v2, void)
{
    const char *code = find_word(script(), "init");
    phase = power_calls = 0;
    memset(calls, 0, sizeof(calls));
    return code != NULL ? (unsigned)atoi(code) : SUCCESS;
}

FAKE(nvmlShutdown, void)
{
    return SUCCESS;
}

FAKE(nvmlDeviceGetHandleByUUID, const char *uuid, void **device)
{
    char own[96];
    *device = calls;
    return read_text("nvmlDeviceGetHandleByUUID", "uuid", own, sizeof(own)) == SUCCESS && strcmp(own, uuid) == 0
               ? SUCCESS
               : NOT_FOUND;
}

FAKE(nvmlSystemGetDriverVersion, char *text, unsigned bytes)
{
    return read_text("nvmlSystemGetDriverVersion", "driver", text, bytes);
}

#define FAKE_TEXT(function, key)                                                                                       \
    FAKE(function, void *device, char *text, unsigned bytes)                                                           \
    {                                                                                                                  \
        (void)device;                                                                                                  \
        return read_text(#function, key, text, bytes);                                                                 \
    }
FAKE_TEXT(nvmlDeviceGetName, "name")
FAKE_TEXT(nvmlDeviceGetUUID, "uuid")
FAKE_TEXT(nvmlDeviceGetVbiosVersion, "vbios")

FAKE(nvmlDeviceGetPciInfo_v3, void *device, struct pci *pci)
{
    (void)device;
    return read_text("nvmlDeviceGetPciInfo_v3", "pci", pci->id, sizeof(pci->id));
}

FAKE(nvmlDeviceGetClockInfo, void *device, unsigned clock, unsigned *megahertz)
{
    (void)device;
    return clock == 1 ? read_unsigned("nvmlDeviceGetClockInfo", "sm", megahertz)
                      : read_unsigned("nvmlDeviceGetClockInfo", "memory", megahertz);
}

FAKE(nvmlDeviceGetPowerUsage, void *device, unsigned *milliwatts)
{
    (void)device;
    unsigned code = read_unsigned("nvmlDeviceGetPowerUsage", "power", milliwatts);
    pthread_mutex_lock(&mutex);
    power_calls++;
    pthread_mutex_unlock(&mutex);
    return code;
}

#define FAKE_UNSIGNED(function, key)                                                                                   \
    FAKE(function, void *device, unsigned *number)                                                                     \
    {                                                                                                                  \
        (void)device;                                                                                                  \
        return read_unsigned(#function, key, number);                                                                  \
    }
FAKE_UNSIGNED(nvmlDeviceGetEnforcedPowerLimit, "limit")

FAKE(nvmlDeviceGetTemperature, void *device, unsigned sensor, unsigned *celsius)
{
    (void)device;
    return sensor == 0 ? read_unsigned("nvmlDeviceGetTemperature", "temperature", celsius) : INVALID_ARGUMENT;
}

FAKE(nvmlDeviceGetUtilizationRates, void *device, struct utilization *rates)
{
    (void)device;
    return read_unsigned("nvmlDeviceGetUtilizationRates", "utilization", &rates->gpu);
}

// Key "ecc10" of the script is the number of uncorrected errors since the driver was loaded.
FAKE(nvmlDeviceGetTotalEccErrors, void *device, unsigned error, unsigned since, unsigned long long *errors)
{
    char key[16];
    (void)device;
    snprintf(key, sizeof(key), "ecc%u%u", error, since);
    return read_number("nvmlDeviceGetTotalEccErrors", key, errors);
}

#define FAKE_LONG(function, key)                                                                                       \
    FAKE(function, void *device, unsigned long long *number)                                                           \
    {                                                                                                                  \
        (void)device;                                                                                                  \
        return read_number(#function, key, number);                                                                    \
    }
FAKE_LONG(nvmlDeviceGetCurrentClocksThrottleReasons, "events")

#ifndef FAKE_NVML_OLD    // missing in drivers before 450
FAKE_LONG(nvmlDeviceGetCurrentClocksEventReasons, "events")

FAKE(nvmlDeviceGetTotalEnergyConsumption, void *device, unsigned long long *millijoules)
{
    (void)device;
    unsigned code = read_number("nvmlDeviceGetTotalEnergyConsumption", "energy", millijoules);
    pthread_mutex_lock(&mutex);
    phase++;
    pthread_mutex_unlock(&mutex);
    return code;
}

FAKE(nvmlDeviceGetRemappedRows, void *device, unsigned *corrected, unsigned *uncorrected, unsigned *pending,
     unsigned *failed)
{
    unsigned   *rows[] = {corrected, uncorrected, pending, failed};
    const char *keys[] = {"rows_corrected", "rows_uncorrected", "rows_pending", "rows_failed"};
    unsigned    code   = SUCCESS;
    (void)device;
    for (int i = 0; i < 4 && code == SUCCESS; i++) {
        code = read_unsigned("nvmlDeviceGetRemappedRows", keys[i], rows[i]);
    }
    return code;
}

// If the buffer is too small, returns the number of pages and an error code, as NVML does.
FAKE(nvmlDeviceGetRetiredPages, void *device, unsigned cause, unsigned *pages, unsigned long long *addresses)
{
    unsigned count = 0, room = *pages;
    unsigned code = read_unsigned("nvmlDeviceGetRetiredPages", cause == 0 ? "pages_single" : "pages_double", &count);
    (void)device, (void)addresses;
    *pages = code == SUCCESS ? count : *pages;
    return code == SUCCESS && count > room ? INSUFFICIENT_SIZE : code;
}

// Key "links" of the script is the number of links, and "active" the number of links that are up, from link 0 on.
FAKE(nvmlDeviceGetNvLinkState, void *device, unsigned link, unsigned *is_active)
{
    unsigned links = 0, active = 0, code = read_unsigned("nvmlDeviceGetNvLinkState", "links", &links);
    (void)device;
    if (code != SUCCESS || link >= links) {
        return code != SUCCESS ? code : INVALID_ARGUMENT;
    }
    code       = read_unsigned("nvmlDeviceGetNvLinkState", "active", &active);
    *is_active = link < active;
    return code;
}

// Each active link has "link0" replays, "link1" recoveries, and "link2" and "link3" CRC errors of two kinds.
FAKE(nvmlDeviceGetNvLinkErrorCounter, void *device, unsigned link, unsigned kind, unsigned long long *errors)
{
    unsigned is_active = 0, code = nvmlDeviceGetNvLinkState(device, link, &is_active);
    char     key[16];
    snprintf(key, sizeof(key), "link%u", kind);
    if (code == SUCCESS && !is_active) {
        code = NOT_SUPPORTED;
    }
    return code == SUCCESS ? read_number("nvmlDeviceGetNvLinkErrorCounter", key, errors) : code;
}
#endif
