// SPDX-License-Identifier: MIT
// The installed profile of a machine, by the name that its device has for its driver.
#include <stdlib.h>
#include <string.h>

#include "internal.h"

// False where the file cannot be read, or is of another device.
static bool read_machine(struct hardware_config *machine, const char *path, const char *device)
{
    struct text_buffer ignored  = {.text = NULL};
    struct document    document = {.errors = &ignored, .only = "hardware", .ignored = "measured"};
    struct config      config;
    config_set_defaults(&config);
    document_parse_file(&document, path);
    document_apply(&config, &document, (struct selection){.ranks = -1, .compute = -1});
    bool is_found = document.error_count == 0 && strcmp(config.hardware.device, device) == 0;
    *machine      = is_found ? config.hardware : *machine;
    document_free(&document);
    text_free(&ignored);
    return is_found;
}

bool config_find_machine(struct hardware_config *machine, const char *device)
{
    struct dirent **entries;
    char            folder[1100], path[1400];
    bool            is_found = false;
    snprintf(folder, sizeof(folder), "%s/hardware", config_folder());
    int count = device[0] == '\0' ? 0 : scandir(folder, &entries, config_is_file, alphasort);
    for (int i = 0; i < count; i++) {
        const char *file = entries[i]->d_name;
        snprintf(path, sizeof(path), "%s/%s", folder, file);
        if (!is_found && read_machine(machine, path, device)) {
            is_found = true;
            snprintf(machine->profile, sizeof(machine->profile), "%.*s", (int)(strlen(file) - strlen(".ini")), file);
        }
        free(entries[i]);
    }
    if (count > 0) {
        free(entries);
    }
    return is_found;
}
