// SPDX-License-Identifier: MIT
// Formats texts of tests, such as command lines, paths and expected messages.
#pragma once

// Returns the formatted text, which is kept until the process ends. Only one thread may call this.
__attribute__((format(printf, 1, 2))) const char *line_of(const char *format, ...);
