// SPDX-License-Identifier: MIT
// Reads safetensors files, and validates the whole header before it is used. A file's metadata can have checksums of
// each tensor and of the header, which detect any flipped bit and swapped entries.

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "gswbench/arena.h"
#include "gswbench/fatal.h"
#include "gswbench/input.h"
#include "gswbench/json.h"
#include "gswbench/text.h"
#include "internal.h"

enum { HEADER_BYTES_MAX = 100000000, DIMS_MAX = 4 };

// dtype of each format in a file. FP8 tensors are never in a file.
const char *const safetensors_codes[] = {[FORMAT_F32] = "F32", [FORMAT_BF16] = "BF16", [FORMAT_I32] = "I32"};
enum { FORMAT_CODES = sizeof(safetensors_codes) / sizeof(safetensors_codes[0]) };

status safetensors_refuse(const char *path, const char *name, const char *problem)
{
    return fail_as(EXIT_CHECKPOINT, "%s: tensor '%.127s': %s", path, name, problem);
}

static const char header_key[] = "xxh3", tensor_prefix[] = "xxh3 ";
enum { DIGITS = CHECKSUM_BYTES - 1, KEY_BYTES = 160 };

void checksum_print(uint64_t checksum, char text[CHECKSUM_BYTES])
{
    snprintf(text, CHECKSUM_BYTES, "%016" PRIx64, checksum);
}

static json_t *print_digits(uint64_t checksum)
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
    json_t *metadata = json_pack("{s:s, s:o}", "format", "pt", header_key, print_digits(header_checksum));
    for (int32_t i = 0; i < count; i++) {
        name_key(&tensors[i], key);
        json_object_set_new(metadata, key, print_digits(tensors[i].checksum));
    }
    return metadata;
}

// Returns the checksum of a header. It is computed with zeros in place of the checksum itself.
uint64_t checksums_of_header(char *text, size_t bytes)
{
    static const char before[] = "\"xxh3\":\"";
    char             *value    = strstr(text, before);
    if (value != NULL && strlen(value) >= strlen(before) + DIGITS) {
        memset(value + strlen(before), '0', DIGITS);
    }
    return XXH3_64bits(text, bytes);
}

static bool parse_checksum(const json_t *value, uint64_t *checksum)
{
    const char *text = json_string_value(value);
    if (text == NULL || strlen(text) != DIGITS || strspn(text, "0123456789abcdef") != DIGITS) {
        return false;
    }
    *checksum = strtoull(text, NULL, 16);
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

// Compares the checksum of the header with the metadata, and reads the checksums of tensors. metadata: NULL if the file
// has none.
static status read_checksums(struct safetensors_reader *reader, json_t *metadata, uint64_t header_checksum)
{
    uint64_t written;
    if (!has_any(metadata)) {    // no checksums: another program wrote the file
        return OK;
    }
    FAIL_AS_IF(!parse_checksum(json_object_get(metadata, header_key), &written) || written != header_checksum,
               EXIT_CHECKPOINT, "%s: the header differs from its checksum", reader->path);
    reader->header_checksum = header_checksum;
    for (int32_t i = 0; i < reader->count; i++) {
        struct safetensor *tensor = &reader->tensors[i];
        char               key[KEY_BYTES];
        name_key(tensor, key);
        tensor->has_checksum = parse_checksum(json_object_get(metadata, key), &tensor->checksum);
        if (!tensor->has_checksum) {
            return safetensors_refuse(reader->path, tensor->name, "has no checksum, though the file has others");
        }
    }
    return OK;
}

// In a NaN or infinity all bits of the exponent are 1, so adding 1 to the exponent carries into the sign bit, which is
// masked out before. The loop has no branch, so the compiler vectorizes it.
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

static bool parse_dtype(const json_t *json, enum format *format)
{
    for (int i = 0; json_is_string(json) && i < FORMAT_CODES; i++) {
        if (strcmp(json_string_value(json), safetensors_codes[i]) == 0) {
            *format = (enum format)i;
            return true;
        }
    }
    return false;
}

// Returns a JSON integer that is not negative, or -1.
static int64_t parse_size(const json_t *json)
{
    return json_is_integer(json) && json_integer_value(json) >= 0 ? json_integer_value(json) : -1;
}

static const char *parse_shape(struct safetensor *tensor, const json_t *shape)
{
    if (!json_is_array(shape)) {
        return "shape must be a list";
    }
    if (json_array_size(shape) > DIMS_MAX) {
        return "more than 4 dimensions are not supported";
    }
    int64_t maximum = INT64_MAX / format_table[tensor->format].bits, elements = 1;
    tensor->dims = (int32_t)json_array_size(shape);
    for (int32_t i = 0; i < tensor->dims; i++) {
        tensor->dim[i] = parse_size(json_array_get(shape, (size_t)i));
        if (tensor->dim[i] < 0) {
            return "each dimension must be a whole number, 0 or more";
        }
        if (__builtin_mul_overflow(elements, tensor->dim[i], &elements) || elements > maximum) {
            return "the shape's size overflows";
        }
    }
    tensor->bytes = format_bytes(tensor->format, elements);
    return NULL;
}

// Parses an entry. Returns its problem, or NULL. Overlaps are checked later.
static const char *parse_entry(struct safetensor *tensor, const char *name, json_t *entry)
{
    if (!text_copy(tensor->name, sizeof(tensor->name), name)) {
        return "names longer than 127 bytes are not supported";
    }
    if (json_object_size(entry) != 3) {    // the size is 0 if it is not an object
        return "an entry has exactly dtype, shape and data_offsets";
    }
    if (!parse_dtype(json_object_get(entry, "dtype"), &tensor->format)) {
        return "dtype is not one of F32, BF16, I32";
    }
    const char *problem = parse_shape(tensor, json_object_get(entry, "shape"));
    if (problem != NULL) {
        return problem;
    }
    const json_t *offsets = json_object_get(entry, "data_offsets");
    int64_t       end     = parse_size(json_array_get(offsets, 1));
    tensor->begin         = parse_size(json_array_get(offsets, 0));
    if (json_array_size(offsets) != 2 || tensor->begin < 0 || end < tensor->begin) {
        return "data_offsets must be [begin, end] with 0 <= begin <= end";
    }
    if (end - tensor->begin != tensor->bytes) {
        return "data_offsets differ from the size that dtype and shape give";
    }
    return NULL;
}

static const char *check_metadata(json_t *metadata)
{
    if (!json_is_object(metadata)) {
        return "must be an object";
    }
    const char *key;
    json_t     *value;
    json_object_foreach(metadata, key, value)
    {
        if (!json_is_string(value)) {
            return "every value must be a string";
        }
    }
    return NULL;
}

static int compare_begin(const void *a, const void *b)
{
    const struct safetensor *x = a, *y = b;
    if (x->begin != y->begin) {
        return x->begin < y->begin ? -1 : 1;
    }
    // an empty tensor comes before another tensor with the same offset
    return (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

// Checks that the tensors fill the data section without holes, overlaps or further bytes.
static status check_tiling(struct safetensors_reader *reader, int64_t data_bytes)
{
    qsort(reader->tensors, (size_t)reader->count, sizeof(*reader->tensors), compare_begin);
    int64_t end = 0;
    for (int32_t i = 0; i < reader->count; i++) {
        const struct safetensor *tensor = &reader->tensors[i];
        if (tensor->begin != end) {
            return safetensors_refuse(reader->path, tensor->name,
                                      tensor->begin < end ? "its data overlap another tensor's"
                                                          : "a hole lies before its data");
        }
        end += tensor->bytes;
        if (end > data_bytes) {
            return safetensors_refuse(reader->path, tensor->name,
                                      "its data lie beyond the end of the file: the file is cut short");
        }
    }
    FAIL_AS_IF(end != data_bytes, EXIT_CHECKPOINT, "%s: %" PRId64 " bytes after the last tensor", reader->path,
               data_bytes - end);
    return OK;
}

static status parse_header(struct safetensors_reader *reader, json_t *header)
{
    reader->tensors = memory_allocate(json_object_size(header) * sizeof(*reader->tensors));
    const char *name;
    json_t     *entry;
    json_object_foreach(header, name, entry)
    {
        const char *problem;
        if (strcmp(name, "__metadata__") == 0) {
            problem = check_metadata(entry);
        } else {
            problem = parse_entry(&reader->tensors[reader->count++], name, entry);
        }
        if (problem != NULL) {
            return safetensors_refuse(reader->path, name, problem);
        }
    }
    return OK;
}

static status load_header(struct safetensors_reader *reader, int64_t header_bytes, json_t **header, uint64_t *checksum)
{
    char        *text = memory_allocate((size_t)header_bytes + 1);
    json_error_t error;
    *header       = NULL;
    status result = OK;
    if (fread(text, 1, (size_t)header_bytes, reader->file) != (size_t)header_bytes) {
        result = fail_as(EXIT_CHECKPOINT, "%s: cannot read the header: %s", reader->path, strerror(errno));
    } else if (header_bytes == 0 || text[0] != '{') {
        result = fail_as(EXIT_CHECKPOINT, "%s: the header does not begin with '{'", reader->path);
    } else {
        *header = json_parse(text, (size_t)header_bytes, &error);
        if (*header == NULL) {
            result = fail_as(EXIT_CHECKPOINT, "%s: the header is not valid JSON: %s (byte %d)", reader->path,
                             error.text, error.position);
        }
        *checksum = checksums_of_header(text, (size_t)header_bytes);
    }
    free(text);
    return result;
}

static status read_length(FILE *file, const char *path, int64_t file_bytes, int64_t *header_bytes)
{
    unsigned char raw[SAFETENSORS_LENGTH_BYTES];
    FAIL_AS_IF(fread(raw, 1, sizeof(raw), file) != sizeof(raw), EXIT_CHECKPOINT,
               "%s: shorter than the 8 bytes that every safetensors file begins with", path);
    uint64_t length = 0;
    for (int i = 0; i < SAFETENSORS_LENGTH_BYTES; i++) {
        length |= (uint64_t)raw[i] << (8 * i);
    }
    FAIL_AS_IF(length > HEADER_BYTES_MAX, EXIT_CHECKPOINT,
               "%s: header of %" PRIu64 " bytes: not a safetensors file (the limit is %d bytes)", path, length,
               HEADER_BYTES_MAX);
    *header_bytes = (int64_t)length;
    FAIL_AS_IF(*header_bytes > file_bytes - SAFETENSORS_LENGTH_BYTES, EXIT_CHECKPOINT,
               "%s: header of %" PRIu64 " bytes in a file of %" PRId64 ": the file is cut short", path, length,
               file_bytes);
    return OK;
}

static status read_header(struct safetensors_reader *reader)
{
    int64_t  header_bytes = 0;
    uint64_t checksum     = 0;
    json_t  *header;
    TRY(read_length(reader->file, reader->path, reader->file_bytes, &header_bytes));
    TRY(load_header(reader, header_bytes, &header, &checksum));
    status result = parse_header(reader, header);
    result = failed(&result) ? result : read_checksums(reader, json_object_get(header, "__metadata__"), checksum);
    json_decref(header);
    TRY(result);
    reader->data_start = SAFETENSORS_LENGTH_BYTES + header_bytes;
    return check_tiling(reader, reader->file_bytes - reader->data_start);
}

status safetensors_open(struct safetensors_reader *reader, const char *path)
{
    *reader = (struct safetensors_reader){0};
    FAIL_AS_IF(!text_copy(reader->path, sizeof(reader->path), path), EXIT_CHECKPOINT, "%s: the path is too long",
               reader->path);
    struct stat about;
    status      opened = input_open_stream(path, &reader->file, &about);
    FAIL_AS_IF(failed(&opened), EXIT_CHECKPOINT, "%s: %s", path, opened.text);
    reader->file_bytes = about.st_size;
    status result      = read_header(reader);
    if (failed(&result)) {
        safetensors_close(reader);
    }
    return result;
}

void safetensors_close(struct safetensors_reader *reader)
{
    if (reader->file != NULL) {
        fclose(reader->file);
    }
    free(reader->tensors);
    *reader = (struct safetensors_reader){0};
}
