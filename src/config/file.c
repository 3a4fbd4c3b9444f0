// SPDX-License-Identifier: MIT
// Finds config files.
#include "internal.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

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
