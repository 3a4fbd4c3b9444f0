// SPDX-License-Identifier: MIT
// Makes a new folder for each test: TestSuite(name, .init = make_folder, .fini = remove_folder).
#pragma once

#include <stddef.h>

extern char folder[32];
void        make_folder(void);
void        enter_folder(void);     // makes it the working folder
void        remove_folder(void);    // with its contents

void write_bytes(const char *path, const void *bytes, size_t count);
void write_text(const char *path, const char *text);

// Returns the contents of a text file, until the next call.
const char *text_in(const char *path);
