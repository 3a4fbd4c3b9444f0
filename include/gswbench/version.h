// SPDX-License-Identifier: MIT
// Tells the version and the build of the program.
#pragma once

// The version: "0.1.0 (1a2b3c4)" with the commit, "0.1.0 (1a2b3c4+)" with local changes, "0.1.0" outside a git
// checkout.
extern const char version_text[];

// Writes the GNU build id in hexadecimal; without one, "code" and a hash of the code. It differs between builds.
enum { VERSION_BUILD_BYTES = 48 };
void version_build(char text[VERSION_BUILD_BYTES]);
