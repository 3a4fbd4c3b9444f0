// SPDX-License-Identifier: MIT
// Which program this is.
#ifndef GSWBENCH_VERSION_H
#define GSWBENCH_VERSION_H

// "0.1.0 (1a2b3c4)" with the commit, "0.1.0 (1a2b3c4+)" with changes on top, "0.1.0" outside a git checkout.
extern const char version_text[];

// Differs between two programs of one version that were built of other sources, by another compiler or with other
// options: the GNU build id in hexadecimal digits, or "code" and a hash.
enum { VERSION_BUILD_BYTES = 48 };
void version_build(char text[VERSION_BUILD_BYTES]);

#endif
