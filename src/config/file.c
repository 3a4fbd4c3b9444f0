// SPDX-License-Identifier: MIT
// Finds and reads config files. Time and memory are limited, because users name the paths.
#include "internal.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gswbench/input.h"

enum { FILE_BYTES_MAX = 1 << 20 };

// Reads a whole file. st_size may be wrong (growing file, /proc), so this reads up to one byte more than the limit.
static status read_whole(int file, char **text, size_t *bytes)
{
    size_t used = 0;
    char  *data = memory_allocate(FILE_BYTES_MAX + 1);
    for (ssize_t added = 1; added != 0 && used <= FILE_BYTES_MAX;) {
        added = read(file, data + used, FILE_BYTES_MAX + 1 - used);
        if (added < 0 && errno != EINTR) {
            status error = fail("cannot be read: %s", strerror(errno));
            free(data);
            return error;
        }
        used += added > 0 ? (size_t)added : 0;
    }
    if (used > FILE_BYTES_MAX) {
        free(data);
        return fail("is larger than %d bytes, the limit for a config", FILE_BYTES_MAX);
    }
    *text  = data;
    *bytes = used;
    return OK;
}

status file_read(const char *path, char **text, size_t *bytes)
{
    int         file;
    struct stat about;
    TRY(input_open(path, &file, &about));
    status result = about.st_size > FILE_BYTES_MAX
                        ? fail("has %" PRId64 " bytes: a config has at most %d", (int64_t)about.st_size, FILE_BYTES_MAX)
                        : read_whole(file, text, bytes);
    close(file);
    return result;
}

bool file_find(const char *folder, const char *name, char *path, size_t bytes)
{
    struct stat about;
    size_t      length = config_stem(name);
    return length > 0 && length < 256 && strchr(name, '/') == NULL &&
           snprintf(path, bytes, "%s/%.*s.ini", folder, (int)length, name) < (int)bytes && stat(path, &about) == 0;
}

size_t config_stem(const char *name)
{
    size_t length = strlen(name);
    return length > 4 && strcmp(name + length - 4, ".ini") == 0 ? length - 4 : length;
}

int config_is_file(const struct dirent *entry)
{
    return config_stem(entry->d_name) < strlen(entry->d_name);
}

// The names are sorted, so that the suggestion for a misspelt name is always the same if several are equally close.
const char **config_names(struct arena *arena, const char *folder)
{
    struct dirent **entries;
    int             count = scandir(folder, &entries, config_is_file, alphasort);
    if (count < 0) {
        return NULL;
    }
    const char **names = arena_allocate(arena, ((size_t)count + 1) * sizeof(*names));
    for (int i = 0; i < count; i++) {
        names[i] = arena_format(arena, "%.*s", (int)config_stem(entries[i]->d_name), entries[i]->d_name);
        free(entries[i]);
    }
    free(entries);
    return names;
}

const char *file_suggest(struct arena *arena, const char *folder, const char *name)
{
    const char **names = config_names(arena, folder);
    return names != NULL ? text_closest(name, names) : NULL;
}

const char *file_list(struct arena *arena, const char *folder)
{
    enum { SHOWN = 12 };
    const char **names = config_names(arena, folder), *text = "";
    for (int i = 0; names != NULL && i < SHOWN && names[i] != NULL; i++) {
        text = arena_format(arena, "%s%s%s", text, i > 0 ? ", " : "", names[i]);
    }
    return text;
}
