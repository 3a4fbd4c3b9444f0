// SPDX-License-Identifier: MIT
// Fake profiler for tests of NVTX ranges. The NVTX header loads this library from the path in NVTX_INJECTION64_PATH.
// The library appends one line per call to the file in FAKE_PROFILER, to which other libraries may also append. If
// FAKE_PROFILER_PLAIN is set, it does not support multi-value payloads, like older profilers.
//
// THREAD domain NAME
// THREAD category NAME ID
// THREAD string NAME
// THREAD schema NAME
// THREAD push NAME category=2 PAYLOAD...
// THREAD pop
//
// Words are separated by tabs. A payload is NAME=VALUE for each value of its schema, or integer=VALUE or real=VALUE.
// Calls that the program must not make are logged as "wrong".
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NVTX_NO_IMPL
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtPayload.h>

enum { STRINGS_MAX = 4096, SCHEMAS_MAX = 64, ENTRIES_MAX = 8, NAME_BYTES = 128 };

struct schema {
    struct {
        char     name[NAME_BYTES];
        uint64_t type, offset;
    } entries[ENTRIES_MAX];
    size_t count, bytes;
};

struct nvtxDomainRegistration_st {
    int unused;
};
struct nvtxStringRegistration_st {
    char text[NAME_BYTES];
};

static struct nvtxDomainRegistration_st the_domain;
static struct nvtxStringRegistration_st strings[STRINGS_MAX];
static struct schema                    schemas[SCHEMAS_MAX];
static atomic_int                       string_count, schema_count, threads;

static int this_thread(void)
{
    static _Thread_local int number;
    if (number == 0) {
        number = atomic_fetch_add(&threads, 1) + 1;
    }
    return number;
}

__attribute__((format(printf, 1, 2))) static void line(const char *format, ...)
{
    char        text[1024];
    const char *path = getenv("FAKE_PROFILER");
    int         used = snprintf(text, sizeof(text), "%d\t", this_thread());
    va_list     arguments;
    va_start(arguments, format);
    used += vsnprintf(text + used, sizeof(text) - (size_t)used, format, arguments);
    va_end(arguments);
    int file = path != NULL ? open(path, O_WRONLY | O_APPEND | O_CREAT, 0600) : -1;
    if (file < 0 || write(file, text, (size_t)used) != used) {
        abort();
    }
    close(file);
}

static nvtxDomainHandle_t create_domain(const char *name)
{
    line("domain\t%s\n", name);
    return &the_domain;
}

static void name_category(nvtxDomainHandle_t domain, uint32_t category, const char *name)
{
    line("%s\t%s\t%" PRIu32 "\n", domain == &the_domain ? "category" : "wrong", name, category);
}

static nvtxStringHandle_t register_string(nvtxDomainHandle_t domain, const char *text)
{
    int number = atomic_fetch_add(&string_count, 1);
    if (number >= STRINGS_MAX) {
        abort();
    }
    snprintf(strings[number].text, NAME_BYTES, "%s", text);
    line("%s\t%s\n", domain == &the_domain ? "string" : "wrong", text);
    return &strings[number];
}

static uint64_t register_schema(nvtxDomainHandle_t domain, const nvtxPayloadSchemaAttr_t *attributes)
{
    int            number = atomic_fetch_add(&schema_count, 1);
    struct schema *schema = &schemas[number];
    if (number >= SCHEMAS_MAX || attributes->numEntries > ENTRIES_MAX) {
        abort();
    }
    schema->count = attributes->numEntries;
    schema->bytes = attributes->payloadStaticSize;
    for (size_t i = 0; i < schema->count; i++) {
        snprintf(schema->entries[i].name, NAME_BYTES, "%s", attributes->entries[i].name);
        schema->entries[i].type   = attributes->entries[i].type;
        schema->entries[i].offset = attributes->entries[i].offset;
    }
    line("%s\t%s\n", domain == &the_domain ? "schema" : "wrong", attributes->name);
    return NVTX_PAYLOAD_SCHEMA_ID_DYNAMIC_START + (uint64_t)number;
}

static void print_values(const nvtxPayloadData_t *payload, char *text, size_t bytes)
{
    uint64_t             number = payload->schemaId - NVTX_PAYLOAD_SCHEMA_ID_DYNAMIC_START;
    const struct schema *schema = &schemas[number];
    size_t               used   = 0;
    if (number >= (uint64_t)schema_count || payload->size != schema->bytes) {
        snprintf(text, bytes, "\tunknown");
        return;
    }
    for (size_t i = 0; i < schema->count; i++) {
        const char *value = (const char *)payload->payload + schema->entries[i].offset;
        int64_t     integer;
        double      real;
        memcpy(&integer, value, sizeof(integer));
        memcpy(&real, value, sizeof(real));
        used += (size_t)(schema->entries[i].type == NVTX_PAYLOAD_ENTRY_TYPE_INT64
                             ? snprintf(text + used, bytes - used, "\t%s=%" PRId64, schema->entries[i].name, integer)
                             : snprintf(text + used, bytes - used, "\t%s=%.17g", schema->entries[i].name, real));
    }
}

static int push(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *range)
{
    char payload[512]  = "";
    bool is_registered = range->messageType == NVTX_MESSAGE_TYPE_REGISTERED;
    if (range->payloadType == NVTX_PAYLOAD_TYPE_EXT && range->reserved0 == 1) {
        print_values((const nvtxPayloadData_t *)(uintptr_t)range->payload.ullValue, payload, sizeof(payload));
    } else if (range->payloadType == NVTX_PAYLOAD_TYPE_INT64) {
        snprintf(payload, sizeof(payload), "\tinteger=%" PRId64, range->payload.llValue);
    } else if (range->payloadType == NVTX_PAYLOAD_TYPE_DOUBLE) {
        snprintf(payload, sizeof(payload), "\treal=%.17g", range->payload.dValue);
    } else if (range->payloadType != NVTX_PAYLOAD_UNKNOWN) {
        snprintf(payload, sizeof(payload), "\tunknown");
    }
    line("%s\t%s\tcategory=%" PRIu32 "%s\n", is_registered && domain == &the_domain ? "push" : "wrong",
         is_registered ? range->message.registered->text : "not registered", range->category, payload);
    return 0;
}

static int pop(nvtxDomainHandle_t domain)
{
    line(domain == &the_domain ? "pop\n" : "wrong\n");
    return 0;
}

// The program must not use start/end ranges: its ranges nest, so push/pop suffices.
static nvtxRangeId_t start(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *range)
{
    (void)domain;
    (void)range;
    line("wrong\tstart\n");
    return 1;
}

int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t export);
int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t export)
{
    const NvtxExportTableCallbacks *callbacks = export(NVTX_ETID_CALLBACKS);
    NvtxFunctionTable               table;
    unsigned                        count;
    if (!callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &count) || count < NVTX_CBID_CORE2_SIZE) {
        return 0;
    }
    *table[NVTX_CBID_CORE2_DomainCreateA]         = (NvtxFunctionPointer)create_domain;
    *table[NVTX_CBID_CORE2_DomainNameCategoryA]   = (NvtxFunctionPointer)name_category;
    *table[NVTX_CBID_CORE2_DomainRegisterStringA] = (NvtxFunctionPointer)register_string;
    *table[NVTX_CBID_CORE2_DomainRangePushEx]     = (NvtxFunctionPointer)push;
    *table[NVTX_CBID_CORE2_DomainRangePop]        = (NvtxFunctionPointer)pop;
    *table[NVTX_CBID_CORE2_DomainRangeStartEx]    = (NvtxFunctionPointer)start;
    return 1;
}

int InitializeInjectionNvtxExtension(nvtxExtModuleInfo_t *module);
int InitializeInjectionNvtxExtension(nvtxExtModuleInfo_t *module)
{
    if (module->moduleId != NVTX_EXT_PAYLOAD_MODULEID || getenv("FAKE_PROFILER_PLAIN") != NULL) {
        return 0;
    }
    module->segments[0].functionSlots[NVTX3EXT_CBID_nvtxPayloadSchemaRegister] = (intptr_t)register_schema;
    return 1;
}
