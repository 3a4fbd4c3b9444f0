// SPDX-License-Identifier: MIT
// Creates and removes the folder of a test.
#include "folder.h"
#include "line.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

char folder[32];

void make_folder(void)
{
    strcpy(folder, "/tmp/gswbench-test-XXXXXX");
    cr_assert_not_null(mkdtemp(folder));
}

void enter_folder(void)
{
    make_folder();
    cr_assert_eq(chdir(folder), 0);
}

void remove_folder(void)
{
    cr_expect_eq(system(line_of("rm -rf %s", folder)), 0);
}

void write_bytes(const char *path, const void *bytes, size_t count)
{
    FILE *file = fopen(path, "wb");
    cr_assert_not_null(file, "%s", path);
    fwrite(bytes, 1, count, file);
    fclose(file);
}

void write_text(const char *path, const char *text)
{
    write_bytes(path, text, strlen(text));
}

const char *text_in(const char *path)
{
    static char text[1 << 20];
    FILE       *file = fopen(path, "r");
    cr_assert_not_null(file, "%s", path);
    text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
    fclose(file);
    return text;
}
