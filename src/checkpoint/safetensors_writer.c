// SPDX-License-Identifier: MIT
// Writes safetensors files piece by piece.
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "gswbench/arena.h"
#include "gswbench/fatal.h"
#include "internal.h"

static json_t *describe_tensor(const struct safetensor *tensor)
{
    json_t *shape = json_array();
    for (int32_t i = 0; i < tensor->dims; i++) {
        json_array_append_new(shape, json_integer(tensor->dim[i]));
    }
    return json_pack("{s:s, s:o, s:[I, I]}", "dtype", safetensors_codes[tensor->format], "shape", shape, "data_offsets",
                     (json_int_t)tensor->begin, (json_int_t)(tensor->begin + tensor->bytes));
}

// Sets begin and bytes of the tensors, which follow each other without gaps.
static status place_tensors(struct safetensor *tensors, int32_t count, const char *path, int64_t *data_bytes)
{
    *data_bytes = 0;
    for (int32_t i = 0; i < count; i++) {
        struct safetensor *tensor   = &tensors[i];
        int64_t            elements = 1, maximum = INT64_MAX / format_table[tensor->format].bits;
        bool               is_large = false;
        for (int32_t j = 0; j < tensor->dims; j++) {
            is_large |= __builtin_mul_overflow(elements, tensor->dim[j], &elements) || elements > maximum;
        }
        tensor->begin = *data_bytes;
        tensor->bytes = is_large ? 0 : format_bytes(tensor->format, elements);
        FAIL_AS_IF(is_large || __builtin_add_overflow(*data_bytes, tensor->bytes, data_bytes), EXIT_OUTPUT,
                   "cannot write %.900s: tensor '%s' is larger than any file", path, tensor->name);
    }
    return OK;
}

// Formats the header as text, padded so that the data start at a multiple of 8 bytes. The caller frees it.
static char *format_text(const struct safetensor *tensors, int32_t count, uint64_t checksum, size_t *header_bytes)
{
    json_t *header = json_pack("{s:o}", "__metadata__", checksums_describe(tensors, count, checksum));
    for (int32_t i = 0; i < count; i++) {
        json_object_set_new(header, tensors[i].name, describe_tensor(&tensors[i]));
    }
    size_t length = json_dumpb(header, NULL, 0, JSON_COMPACT);
    *header_bytes = (length + SAFETENSORS_LENGTH_BYTES - 1) / SAFETENSORS_LENGTH_BYTES * SAFETENSORS_LENGTH_BYTES;
    char *text    = memory_allocate(*header_bytes + 1);
    memset(text, ' ', *header_bytes);
    json_dumpb(header, text, length, JSON_COMPACT);
    json_decref(header);
    return text;
}

// Formats the header twice: with zeros to compute its checksum, then with the checksum. Both texts have the same
// length.
static char *format_header(const struct safetensor *tensors, int32_t count, size_t *header_bytes, uint64_t *checksum)
{
    char *text = format_text(tensors, count, 0, header_bytes);
    *checksum  = checksums_of_header(text, *header_bytes);
    free(text);
    return format_text(tensors, count, *checksum, header_bytes);
}

// Starts the hash of the next tensor that has data.
static void begin_tensor(struct safetensors_writer *writer)
{
    XXH3_64bits_reset(writer->hash);
    while (writer->current < writer->count && writer->tensors[writer->current].bytes == 0) {
        writer->tensors[writer->current++].checksum = XXH3_64bits_digest(writer->hash);
    }
}

static status write_header(struct safetensors_writer *writer, struct safetensor *tensors, int32_t count)
{
    const struct output *output = &writer->output;
    size_t               header_bytes;
    char                *text = format_header(tensors, count, &header_bytes, &writer->header_checksum);
    unsigned char        length[SAFETENSORS_LENGTH_BYTES];
    for (int i = 0; i < SAFETENSORS_LENGTH_BYTES; i++) {
        length[i] = (unsigned char)(header_bytes >> (8 * i));
    }
    writer->tensors    = tensors;
    writer->count      = count;
    writer->file_bytes = SAFETENSORS_LENGTH_BYTES + (int64_t)header_bytes + writer->expected_bytes;
    writer->hash       = XXH3_createState();
    if (writer->hash == NULL) {
        FATAL(EXIT_MEMORY, "out of host memory");
    }
    begin_tensor(writer);
    status result = output_check_space(output->folder, output->path, writer->file_bytes, writer->file_bytes);
    result        = failed(&result) ? result : output_append(&writer->output, length, sizeof(length));
    result        = failed(&result) ? result : output_append(&writer->output, text, header_bytes);
    free(text);
    if (failed(&result)) {
        safetensors_abandon(writer);
    }
    return result;
}

status safetensors_create(struct safetensors_writer *writer, const char *path, struct safetensor *tensors,
                          int32_t count)
{
    *writer = (struct safetensors_writer){.expected_bytes = 0};
    TRY(place_tensors(tensors, count, path, &writer->expected_bytes));
    TRY(output_begin(&writer->output, path));
    return write_header(writer, tensors, count);
}

status safetensors_create_in(struct safetensors_writer *writer, const struct output_folder *folder, const char *name,
                             struct safetensor *tensors, int32_t count)
{
    *writer = (struct safetensors_writer){.expected_bytes = 0};
    TRY(place_tensors(tensors, count, name, &writer->expected_bytes));
    TRY(output_begin_in(&writer->output, folder, name));
    return write_header(writer, tensors, count);
}

static void add_to_checksums(struct safetensors_writer *writer, const char *data, int64_t bytes)
{
    while (bytes > 0) {
        struct safetensor *tensor = &writer->tensors[writer->current];
        int64_t            left   = tensor->begin + tensor->bytes - writer->written_bytes;
        int64_t            part   = bytes < left ? bytes : left;
        XXH3_64bits_update(writer->hash, data, (size_t)part);
        writer->written_bytes += part;
        data += part;
        bytes -= part;
        if (part == left) {
            tensor->checksum = XXH3_64bits_digest(writer->hash);
            writer->current++;
            begin_tensor(writer);
        }
    }
}

status safetensors_append(struct safetensors_writer *writer, const void *data, int64_t bytes)
{
    assert(writer->written_bytes + bytes <= writer->expected_bytes);
    status result = output_append(&writer->output, data, (size_t)bytes);
    if (failed(&result)) {
        safetensors_abandon(writer);
        return result;
    }
    add_to_checksums(writer, data, bytes);
    return OK;
}

status safetensors_finish(struct safetensors_writer *writer)
{
    assert(writer->written_bytes == writer->expected_bytes);
    size_t header_bytes;
    char  *text   = format_header(writer->tensors, writer->count, &header_bytes, &writer->header_checksum);
    status result = output_rewrite(&writer->output, text, header_bytes, SAFETENSORS_LENGTH_BYTES);
    free(text);
    result = failed(&result) ? result : output_finish(&writer->output);
    safetensors_abandon(writer);
    return result;
}

void safetensors_abandon(struct safetensors_writer *writer)
{
    output_abandon(&writer->output);
    if (writer->hash != NULL) {
        XXH3_freeState(writer->hash);
        writer->hash = NULL;
    }
}
