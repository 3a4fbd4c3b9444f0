// SPDX-License-Identifier: MIT
// Handles file signatures, made and verified by ssh-keygen (-Y, OpenSSH 8.0 or newer). FILE.sig holds the signature of
// FILE.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "gswbench/status.h"

// Signs a file with a private key, or with a public key whose private key is in the SSH agent. Replaces FILE.sig and
// never asks for a passphrase. Errors are EXIT_OUTPUT.
status signature_make(const char *path, const char *key);

bool signature_exists(const char *path);

// Verifies FILE.sig and writes the signer: a principal of the allowed-signers file, or a key fingerprint if signers is
// NULL. Fails (EXIT_COMPARE) if the file was modified or the signer is not allowed.
status signature_verify(const char *path, const char *signers, char *signer, size_t bytes);
