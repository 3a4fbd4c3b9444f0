// SPDX-License-Identifier: MIT
#include "safetensors_read.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "checkpoint/internal.h"

status safetensors_read(struct safetensors_reader *reader, const char *name, void *data, int64_t bytes)
{
    for (int32_t i = 0; i < reader->count; i++) {
        const struct safetensor *tensor = &reader->tensors[i];
        if (strcmp(tensor->name, name) != 0) {
            continue;
        }
        if (tensor->bytes != bytes) {
            return fail_as(EXIT_CHECKPOINT, "%s: tensor '%s': %" PRId64 " bytes, expected %" PRId64, reader->path, name,
                           tensor->bytes, bytes);
        }
        if (fseeko(reader->file, reader->data_start + tensor->begin, SEEK_SET) != 0 ||
            fread(data, 1, (size_t)bytes, reader->file) != (size_t)bytes) {
            return fail_as(EXIT_CHECKPOINT, "%s: tensor '%s': cannot be read: %s", reader->path, name,
                           ferror(reader->file) ? strerror(errno) : "the file became shorter");
        }
        struct checksum_run run;
        checksum_begin(&run, tensor);
        checksum_add(&run, data, bytes);
        return checksum_end(&run, reader->path);
    }
    return fail_as(EXIT_CHECKPOINT, "%s: tensor '%s': not in the file", reader->path, name);
}
