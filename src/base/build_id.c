// SPDX-License-Identifier: MIT
// Finds the build identifier: the GNU build id or, without one, a hash of the executable segments.
#define _GNU_SOURCE
#include <elf.h>
#include <inttypes.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <xxhash.h>

#include "gswbench/version.h"

// Finds the GNU build id in a note segment.
static bool read_notes(const char *notes, size_t bytes, char text[VERSION_BUILD_BYTES])
{
    ElfW(Nhdr) note;
    for (size_t at = 0; at + sizeof(note) <= bytes;) {
        memcpy(&note, notes + at, sizeof(note));
        const char *name  = notes + at + sizeof(note);
        const char *value = name + (note.n_namesz + 3) / 4 * 4;
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == sizeof("GNU") &&
            memcmp(name, "GNU", note.n_namesz) == 0) {
            for (size_t i = 0; i < note.n_descsz && 2 * i + 2 < VERSION_BUILD_BYTES; i++) {
                snprintf(text + 2 * i, 3, "%02x", (unsigned char)value[i]);
            }
            return true;
        }
        at = (size_t)(value - notes) + (note.n_descsz + 3) / 4 * 4;
    }
    return false;
}

static bool contains(const struct dl_phdr_info *object, const void *address)
{
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
        uintptr_t begin           = object->dlpi_addr + segment->p_vaddr;
        if (segment->p_type == PT_LOAD && (uintptr_t)address - begin < segment->p_memsz) {
            return true;
        }
    }
    return false;
}

// dl_iterate_phdr calls this function for each loaded object. The function reads the build id of the object that
// contains this code: the program or a shared library.
static int read_object(struct dl_phdr_info *object, size_t bytes, void *text)
{
    (void)bytes;
    if (!contains(object, version_text)) {
        return 0;
    }
    uint64_t hash = 0;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
        const char *memory        = (const char *)(uintptr_t)(object->dlpi_addr + segment->p_vaddr);
        if (segment->p_type == PT_NOTE && read_notes(memory, segment->p_memsz, text)) {
            return 1;
        }
        if (segment->p_type == PT_LOAD && (segment->p_flags & PF_X) != 0) {
            hash = XXH3_64bits_withSeed(memory, segment->p_memsz, hash);
        }
    }
    snprintf(text, VERSION_BUILD_BYTES, "code %016" PRIx64, hash);
    return 1;
}

void version_build(char text[VERSION_BUILD_BYTES])
{
    text[0] = '\0';
    dl_iterate_phdr(read_object, text);
}
