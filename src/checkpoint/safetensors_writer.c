// SPDX-License-Identifier: MIT
// Writes safetensors files under a temporary name, so that a file under its own name is complete.
#include <assert.h>
#include <errno.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gswbench/arena.h"
#include "gswbench/text.h"
#include "internal.h"

static status cannot_write(const struct safetensors_writer *writer)
{
    return fail_as(EXIT_OUTPUT, "%s: cannot be written: %s", writer->path, strerror(errno));
}

static json_t *describe_tensor(const struct safetensor *tensor)
{
    json_t *shape = json_array();
    for (int32_t i = 0; i < tensor->dims; i++) {
        json_array_append_new(shape, json_integer(tensor->dim[i]));
    }
    return json_pack("{s:s, s:o, s:[I, I]}", "dtype", safetensors_codes[tensor->format], "shape", shape, "data_offsets",
                     (json_int_t)tensor->begin, (json_int_t)(tensor->begin + tensor->bytes));
}

// The header's text, padded with spaces so that the data begin at a multiple of 8. Places the tensors. The caller
// frees.
static char *format_header(struct safetensor *tensors, int32_t count, int64_t *data_bytes, size_t *header_bytes)
{
    json_t *header = json_pack("{s:{s:s}}", "__metadata__", "format", "pt");    // which some readers insist on
    *data_bytes    = 0;
    for (int32_t i = 0; i < count; i++) {
        tensors[i].begin = *data_bytes;
        int64_t elements = 1;
        for (int32_t j = 0; j < tensors[i].dims; j++) {
            elements *= tensors[i].dim[j];
        }
        tensors[i].bytes = format_bytes(tensors[i].format, elements);
        *data_bytes += tensors[i].bytes;
        json_object_set_new(header, tensors[i].name, describe_tensor(&tensors[i]));
    }
    size_t length = json_dumpb(header, NULL, 0, JSON_COMPACT);
    *header_bytes = (length + SAFETENSORS_LENGTH_BYTES - 1) / SAFETENSORS_LENGTH_BYTES * SAFETENSORS_LENGTH_BYTES;
    char *text    = memory_allocate(*header_bytes);
    memset(text, ' ', *header_bytes);
    json_dumpb(header, text, length, JSON_COMPACT);
    json_decref(header);
    return text;
}

status safetensors_create(struct safetensors_writer *writer, const char *path, struct safetensor *tensors,
                          int32_t count)
{
    *writer = (struct safetensors_writer){0};
    if (!text_copy(writer->path, sizeof(writer->path), path)) {
        return fail_as(EXIT_OUTPUT, "%s: the path is too long", writer->path);
    }
    snprintf(writer->temporary, sizeof(writer->temporary), "%s.tmp", path);
    writer->file = fopen(writer->temporary, "wb");
    if (writer->file == NULL) {
        return cannot_write(writer);
    }
    size_t        header_bytes;
    char         *text = format_header(tensors, count, &writer->expected_bytes, &header_bytes);
    unsigned char length[SAFETENSORS_LENGTH_BYTES];
    for (int i = 0; i < SAFETENSORS_LENGTH_BYTES; i++) {
        length[i] = (unsigned char)(header_bytes >> (8 * i));
    }
    bool whole = fwrite(length, 1, sizeof(length), writer->file) == sizeof(length) &&
                 fwrite(text, 1, header_bytes, writer->file) == header_bytes;
    free(text);
    status result = whole ? OK : cannot_write(writer);
    if (!whole) {
        safetensors_abandon(writer);
    }
    return result;
}

status safetensors_append(struct safetensors_writer *writer, const void *data, int64_t bytes)
{
    writer->written_bytes += bytes;
    return fwrite(data, 1, (size_t)bytes, writer->file) == (size_t)bytes ? OK : cannot_write(writer);
}

status safetensors_finish(struct safetensors_writer *writer)
{
    assert(writer->written_bytes == writer->expected_bytes);
    if (fflush(writer->file) != 0 || fsync(fileno(writer->file)) != 0 || rename(writer->temporary, writer->path) != 0) {
        return cannot_write(writer);
    }
    fclose(writer->file);
    *writer = (struct safetensors_writer){0};
    return OK;
}

void safetensors_abandon(struct safetensors_writer *writer)
{
    if (writer->file != NULL) {
        fclose(writer->file);
        remove(writer->temporary);
    }
    *writer = (struct safetensors_writer){0};
}
