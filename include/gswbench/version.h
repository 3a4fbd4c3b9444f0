// SPDX-License-Identifier: MIT
// Which program this is.
#ifndef GSWBENCH_VERSION_H
#define GSWBENCH_VERSION_H

extern const char version_number[];    // "0.1.0"
extern const char version_commit[];    // "1a2b3c4", "1a2b3c4+" with changes on top; empty outside a git checkout

#endif
