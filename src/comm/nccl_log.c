// SPDX-License-Identifier: MIT
// Reads from NCCL's log (NCCL_DEBUG_SUBSYS = TUNING) which algorithm it chose for a collective. Rank 0 of a
// communicator writes a line when it enqueues a collective. The format is not documented, so unknown lines are ignored.
#define _GNU_SOURCE
#include "nccl_log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gswbench/arena.h"
#include "gswbench/fatal.h"
#include "gswbench/text.h"

status nccl_log_open(int *file)
{
    char path[48];
    if (getenv("NCCL_DEBUG") != NULL || getenv("NCCL_DEBUG_FILE") != NULL || getenv("NCCL_DEBUG_SUBSYS") != NULL) {
        return fail_as(EXIT_LAUNCH,
                       "[run] communication_algorithms = yes needs NCCL's log for itself: unset NCCL_DEBUG, "
                       "NCCL_DEBUG_FILE and NCCL_DEBUG_SUBSYS");
    }
    *file = memfd_create("gswbench-nccl-log", 0);
    if (*file < 0) {
        FATAL(EXIT_LAUNCH, "no memory for NCCL's log");
    }
    snprintf(path, sizeof(path), "/proc/self/fd/%d", *file);
    setenv("NCCL_DEBUG", "INFO", 1);
    setenv("NCCL_DEBUG_SUBSYS", "TUNING", 1);
    setenv("NCCL_DEBUG_FILE", path, 1);
    return OK;
}

// Expands a file name as NCCL does: %h is the host name up to its first dot, and %p the process id.
static void expand(char *path, size_t bytes, const char *named)
{
    char   host[256] = "";
    size_t length    = 0;
    gethostname(host, sizeof(host) - 1);
    host[strcspn(host, ".")] = '\0';
    path[0]                  = '\0';
    for (const char *at = named; *at != '\0' && length < bytes - 1; at++) {
        if (at[0] == '%' && at[1] == 'h') {
            length += (size_t)snprintf(path + length, bytes - length, "%s", host);
            at++;
        } else if (at[0] == '%' && at[1] == 'p') {
            length += (size_t)snprintf(path + length, bytes - length, "%d", (int)getpid());
            at++;
        } else {
            length += (size_t)snprintf(path + length, bytes - length, "%c", *at);
            at += at[0] == '%' && at[1] == '%';
        }
    }
}

// Selects where NCCL writes its log. By default this is stdout, where it would mix with the program's output. NCCL
// truncates a log file, so stderr is used only if it is a pipe or a terminal; otherwise each process gets its own file.
status nccl_log_choose_file(void)
{
    struct stat about;
    const char *named     = getenv("NCCL_DEBUG_FILE");
    bool        is_stream = fstat(STDERR_FILENO, &about) == 0 && (S_ISFIFO(about.st_mode) || S_ISCHR(about.st_mode)) &&
                     access("/dev/stderr", W_OK) == 0;
    if (getenv("NCCL_DEBUG") == NULL) {
        return OK;
    }
    if (named == NULL && is_stream) {
        setenv("NCCL_DEBUG_FILE", "/dev/stderr", 1);
        return OK;
    }
    if (named != NULL && (strncmp(named, "/dev/", 5) == 0 || strncmp(named, "/proc/self/fd/", 14) == 0)) {
        return OK;    // links of the system, such as the file of nccl_log_open
    }
    char path[1024], opened[48];
    expand(path, sizeof(path), named != NULL ? named : "nccl.%h.%p.log");
    int file = open(path, O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0644);
    if (file < 0) {
        return fail_as(EXIT_LAUNCH, "NCCL's log (NCCL_DEBUG_FILE) cannot go to %.700s: %s", path,
                       errno == ELOOP ? "it is a symbolic link, and NCCL would empty its target: name a file"
                                      : strerror(errno));
    }
    snprintf(opened, sizeof(opened), "/proc/self/fd/%d", file);
    setenv("NCCL_DEBUG_FILE", opened, 1);    // NCCL reopens this file even if the name changes
    return OK;
}

// Converts an algorithm or protocol of a log line to its name. NCCL before 2.24 prints a number, later versions the
// name.
static void name(char *text, size_t bytes, const char *word, const char *const *names, int count)
{
    char *end;
    long  number = strtol(word, &end, 10);
    bool  is     = end != word && *end == '\0' && number >= 0 && number < count;
    text_copy(text, bytes, is ? names[number] : word);
}

bool nccl_log_parse(const char *line, struct comm_choice *choice)
{
    static const char *const algorithms[] = {"TREE",      "RING", "COLLNET_DIRECT", "COLLNET_CHAIN", "NVLS",
                                             "NVLS_TREE", "PAT"};
    static const char *const protocols[]  = {"LL", "LL128", "SIMPLE"};
    const char              *what         = strstr(line, " Bytes -> ");
    char                     algorithm[64], protocol[64];
    int                      first = 0, last = -1, channels = 0;
    *choice = (struct comm_choice){.algorithm = ""};
    if (what == NULL) {
        return false;
    }
    what += strlen(" Bytes -> ");
    if (sscanf(what, "Algo %63s proto %63s", algorithm, protocol) == 2) {
        const char *range = strstr(what, "}={");
        name(choice->algorithm, sizeof(choice->algorithm), algorithm, algorithms, 7);
        name(choice->protocol, sizeof(choice->protocol), protocol, protocols, 3);
        choice->channels = range != NULL && sscanf(range, "}={%d..%d}", &first, &last) == 2 ? last - first + 1 : 0;
        return true;
    }
    if (sscanf(what, "Kernel %63s nchannels %d", algorithm, &channels) == 2) {
        text_copy(choice->algorithm, sizeof(choice->algorithm), algorithm);
        text_copy(choice->protocol, sizeof(choice->protocol), "symmetric");
        choice->channels = channels;
        return true;
    }
    if (strncmp(what, "cudaMemcpy", 10) == 0 || strncmp(what, "RMA proxy + CE", 14) == 0) {
        text_copy(choice->algorithm, sizeof(choice->algorithm), "copy engine");
        return true;
    }
    return false;
}

struct comm_choice nccl_log_read(int file, int64_t *position)
{
    struct comm_choice last = {.algorithm = ""}, one;
    off_t              end  = lseek(file, 0, SEEK_END);
    int64_t            size = end > *position ? end - *position : 0;
    char              *text = memory_allocate((size_t)size + 1), *rest = NULL;
    ssize_t            read   = pread(file, text, (size_t)size, *position);
    text[read > 0 ? read : 0] = '\0';
    for (char *line = strtok_r(text, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest)) {
        last = nccl_log_parse(line, &one) ? one : last;
    }
    *position = end;
    free(text);
    return last;
}
