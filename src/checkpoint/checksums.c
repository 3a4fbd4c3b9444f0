// SPDX-License-Identifier: MIT
// Checksums in a safetensors file's metadata, of each tensor and of the header. They detect any flipped bit and swapped
// entries.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "gswbench/fatal.h"
#include "internal.h"

static const char header_key[] = "xxh3", tensor_prefix[] = "xxh3 ";
enum { DIGITS = CHECKSUM_BYTES - 1, KEY_BYTES = 160 };

void checksum_print(uint64_t checksum, char text[CHECKSUM_BYTES])
{
    snprintf(text, CHECKSUM_BYTES, "%016" PRIx64, checksum);
}

static json_t *print(uint64_t checksum)
{
    char digits[CHECKSUM_BYTES];
    checksum_print(checksum, digits);
    return json_string(digits);
}

static void name_key(const struct safetensor *tensor, char key[KEY_BYTES])
{
    snprintf(key, KEY_BYTES, "%s%s", tensor_prefix, tensor->name);
}

json_t *checksums_describe(const struct safetensor *tensors, int32_t count, uint64_t header_checksum)
{
    char    key[KEY_BYTES];
    json_t *metadata = json_pack("{s:s, s:o}", "format", "pt", header_key, print(header_checksum));
    for (int32_t i = 0; i < count; i++) {
        name_key(&tensors[i], key);
        json_object_set_new(metadata, key, print(tensors[i].checksum));
    }
    return metadata;
}

// The header's checksum covers its text with zeros in the checksum field.
uint64_t checksums_of_header(char *text, size_t bytes)
{
    static const char before[] = "\"xxh3\":\"";
    char             *value    = strstr(text, before);
    if (value != NULL && strlen(value) >= strlen(before) + DIGITS) {
        memset(value + strlen(before), '0', DIGITS);
    }
    return XXH3_64bits(text, bytes);
}

static bool parse(const json_t *value, uint64_t *checksum)
{
    const char *text = json_string_value(value);
    char       *end;
    if (text == NULL || strlen(text) != DIGITS || strspn(text, "0123456789abcdef") != DIGITS) {
        return false;
    }
    *checksum = strtoull(text, &end, 16);
    return true;
}

static bool has_any(json_t *metadata)
{
    const char *key;
    json_t     *value;
    json_object_foreach(metadata, key, value)
    {
        if (strncmp(key, header_key, strlen(header_key)) == 0) {
            return true;
        }
    }
    return false;
}

status checksums_read(struct safetensors_reader *reader, json_t *metadata, uint64_t header_checksum)
{
    uint64_t written;
    if (!has_any(metadata)) {    // a file of another program
        return OK;
    }
    if (!parse(json_object_get(metadata, header_key), &written) || written != header_checksum) {
        return fail_as(EXIT_CHECKPOINT, "%s: the header differs from its checksum", reader->path);
    }
    reader->header_checksum = header_checksum;
    for (int32_t i = 0; i < reader->count; i++) {
        struct safetensor *tensor = &reader->tensors[i];
        char               key[KEY_BYTES];
        name_key(tensor, key);
        tensor->has_checksum = parse(json_object_get(metadata, key), &tensor->checksum);
        if (!tensor->has_checksum) {
            return safetensors_refuse(reader->path, tensor->name, "has no checksum, though the file has others");
        }
    }
    return OK;
}

// An all-ones exponent carries into the sign bit, which is masked out. OR-ing needs no branch, so the loop vectorizes.
bool checksum_is_finite(enum format format, const void *data, int64_t bytes)
{
    const uint32_t *floats        = data;
    const uint16_t *halves        = data;
    uint32_t        wide          = 0;
    uint16_t        low_precision = 0;
    int64_t         floats_count  = format == FORMAT_F32 ? bytes / (int64_t)sizeof(*floats) : 0;
    int64_t         halves_count  = format == FORMAT_BF16 ? bytes / (int64_t)sizeof(*halves) : 0;
    for (int64_t i = 0; i < floats_count; i++) {
        wide |= (floats[i] & 0x7f800000u) + 0x00800000u;
    }
    for (int64_t i = 0; i < halves_count; i++) {
        low_precision = (uint16_t)(low_precision | ((halves[i] & 0x7f80u) + 0x0080u));
    }
    return wide < 0x80000000u && low_precision < 0x8000u;
}

void checksum_begin(struct checksum_run *run, const struct safetensor *tensor)
{
    *run = (struct checksum_run){.tensor = tensor, .is_finite = true};
    if (tensor->has_checksum) {
        run->hash = XXH3_createState();
        if (run->hash == NULL) {
            FATAL(EXIT_MEMORY, "out of host memory");
        }
        XXH3_64bits_reset(run->hash);
    }
}

void checksum_add(struct checksum_run *run, const void *data, int64_t bytes)
{
    if (run->hash != NULL) {
        XXH3_64bits_update(run->hash, data, (size_t)bytes);
    }
    run->is_finite &= checksum_is_finite(run->tensor->format, data, bytes);
}

status checksum_end(struct checksum_run *run, const char *path)
{
    bool differs = run->hash != NULL && XXH3_64bits_digest(run->hash) != run->tensor->checksum;
    XXH3_freeState(run->hash);
    if (differs) {
        return safetensors_refuse(path, run->tensor->name, "its data differ from their checksum");
    }
    return run->is_finite ? OK : safetensors_refuse(path, run->tensor->name, "has a NaN or an infinity");
}

status checksums_verify(const char *path, const struct safetensor *tensor, const void *data)
{
    struct checksum_run run;
    checksum_begin(&run, tensor);
    checksum_add(&run, data, tensor->bytes);
    return checksum_end(&run, path);
}
