// SPDX-License-Identifier: MIT
// Signatures of files, made and verified by ssh-keygen (-Y, OpenSSH 8.0 or newer). FILE.sig holds the signature of
// FILE.
#ifndef GSWBENCH_SIGNATURE_H
#define GSWBENCH_SIGNATURE_H

#include <stdbool.h>
#include <stddef.h>

#include "gswbench/status.h"

// Signs the file with a private key, or with a public key whose private key the agent holds. Replaces FILE.sig. Never
// asks for a passphrase. Errors are EXIT_OUTPUT.
status signature_make(const char *path, const char *key);

// Whether FILE.sig exists.
bool signature_exists(const char *path);

// Verifies FILE.sig. Writes who signed: a principal of the allowed-signers file, or, where signers is NULL, the
// fingerprint of an unknown key. Fails (EXIT_COMPARE) where the file is not what was signed, or nobody of the
// allowed-signers file signed it.
status signature_verify(const char *path, const char *signers, char *signer, size_t bytes);

#endif
