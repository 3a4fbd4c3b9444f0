// SPDX-License-Identifier: MIT
// Makes and verifies signatures with ssh-keygen. ssh-keygen reads the file from standard input and prints the
// signature, so that FILE.sig is written like other outputs. It runs in its own session without a terminal, so that it
// cannot ask for a passphrase.
#include "gswbench/signature.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gswbench/input.h"
#include "gswbench/output.h"
#include "gswbench/text.h"

#define NAMESPACE "gswbench"
#define HEAD      "-----BEGIN SSH SIGNATURE-----"

enum { NAME_BYTES = OUTPUT_PATH_BYTES + OUTPUT_NAME_BYTES, SAID_BYTES = 16384 };

static void name_signature(char name[NAME_BYTES], const char *path)
{
    snprintf(name, NAME_BYTES, "%s.sig", path);
}

bool signature_exists(const char *path)
{
    char name[NAME_BYTES];
    name_signature(name, path);
    return access(name, F_OK) == 0;
}

static void become_keygen(const char *const arguments[], const char *input, int output)
{
    int file = open(input, O_RDONLY);
    setsid();
    if (file >= 0 && dup2(file, STDIN_FILENO) >= 0 && dup2(output, STDOUT_FILENO) >= 0 &&
        dup2(output, STDERR_FILENO) >= 0) {
        execvp(arguments[0], (char *const *)arguments);
    }
    _exit(127);
}

// Reads ssh-keygen's output until its end, so that ssh-keygen never blocks, and keeps the first SAID_BYTES.
static void read_said(int file, char said[SAID_BYTES])
{
    char    piece[512];
    size_t  length = 0;
    ssize_t count;
    while ((count = read(file, piece, sizeof(piece))) > 0 || (count < 0 && errno == EINTR)) {
        size_t kept = count < 0 ? 0 : (size_t)count;
        kept        = kept < SAID_BYTES - 1 - length ? kept : SAID_BYTES - 1 - length;
        memcpy(said + length, piece, kept);
        length += kept;
    }
    said[length] = '\0';
}

// Runs ssh-keygen. If it fails, the error is the first line of its output.
static status run_keygen(const char *const arguments[], const char *input, char said[SAID_BYTES])
{
    int ends[2], outcome = 0;
    if (pipe(ends) != 0) {
        return fail("cannot run ssh-keygen: %s", strerror(errno));
    }
    pid_t child = fork();
    if (child == 0) {
        become_keygen(arguments, input, ends[1]);
    }
    close(ends[1]);
    said[0] = '\0';
    if (child > 0) {
        read_said(ends[0], said);
        while (waitpid(child, &outcome, 0) < 0 && errno == EINTR) {
        }
    }
    close(ends[0]);
    FAIL_IF(child < 0 || (WIFEXITED(outcome) && WEXITSTATUS(outcome) == 127),
            "cannot run ssh-keygen (Debian: apt-get install openssh-client)");
    if (outcome == 0) {
        return OK;
    }
    said[strcspn(said, "\r\n")] = '\0';
    return fail("ssh-keygen: %.400s", said);
}

status signature_make(const char *path, const char *key)
{
    char              name[NAME_BYTES], said[SAID_BYTES] = "";
    const char *const arguments[] = {"ssh-keygen", "-Y", "sign", "-f", key, "-n", NAMESPACE, NULL};
    struct stat       about;
    // ssh-keygen reads a key without limit, so a device would take all memory, and a pipe could block forever. A
    // missing file is no error here: its .pub file may belong to a private key in the SSH agent.
    bool   is_file = stat(key, &about) != 0 || S_ISREG(about.st_mode);
    status made    = is_file ? run_keygen(arguments, path, said) : fail("is %s, not a file", input_kind(about.st_mode));
    const char *signature = strstr(said, HEAD);
    FAIL_AS_IF(failed(&made) || signature == NULL, EXIT_OUTPUT, "cannot sign %.900s with %.400s: %.400s", path, key,
               failed(&made) ? made.text : "ssh-keygen printed no signature");
    name_signature(name, path);
    return output_replace(name, signature, strlen(signature));
}

static status refuse(const char *path, const status *why)
{
    return fail_as(EXIT_COMPARE, "%.900s.sig is no signature of this file: %.500s", path, why->text);
}

static void take_line(const char *from, char *signer, size_t bytes)
{
    char line[512];
    snprintf(line, sizeof(line), "%.*s", (int)strcspn(from, "\r\n"), from);
    text_printable(signer, bytes, line);
}

static status verify_unknown(const char *path, const char *name, char *signer, size_t bytes)
{
    char              said[SAID_BYTES];
    const char *const arguments[] = {"ssh-keygen", "-Y", "check-novalidate", "-n", NAMESPACE, "-s", name, NULL};
    status            checked     = run_keygen(arguments, path, said);
    if (failed(&checked)) {
        return refuse(path, &checked);
    }
    const char *key = strstr(said, "SHA256:");
    take_line(key != NULL ? key : "an unnamed key", signer, bytes);
    return OK;
}

status signature_verify(const char *path, const char *signers, char *signer, size_t bytes)
{
    char name[NAME_BYTES], said[SAID_BYTES];
    name_signature(name, path);
    if (signers == NULL) {
        return verify_unknown(path, name, signer, bytes);
    }
    const char *const find[] = {"ssh-keygen", "-Y", "find-principals", "-s", name, "-f", signers, NULL};
    status            found  = run_keygen(find, "/dev/null", said);
    FAIL_AS_IF(failed(&found), EXIT_COMPARE, "%.900s.sig is by no signer in %.400s: %.400s", path, signers, found.text);
    take_line(said, signer, bytes);
    const char *const verify[] = {"ssh-keygen", "-Y", "verify",  "-f", signers, "-I",
                                  signer,       "-n", NAMESPACE, "-s", name,    NULL};
    status            verified = run_keygen(verify, path, said);
    return failed(&verified) ? refuse(path, &verified) : OK;
}
