// SPDX-License-Identifier: MIT
// Parses the choice of algorithm from NCCL's log (NCCL_DEBUG_SUBSYS = TUNING). Rank 0 of a communicator writes a line
// when it enqueues a collective. The format is not documented, so unknown lines are ignored.
#define _GNU_SOURCE
#include "nccl_log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "gswbench/arena.h"
#include "gswbench/fatal.h"
#include "gswbench/text.h"

status nccl_log_open(int *file)
{
    char path[48];
    if (getenv("NCCL_DEBUG") != NULL || getenv("NCCL_DEBUG_FILE") != NULL || getenv("NCCL_DEBUG_SUBSYS") != NULL) {
        return fail_as(EXIT_LAUNCH,
                       "[run] transfer_algorithms = yes: NCCL's log is asked for otherwise: unset NCCL_DEBUG, "
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

// Versions before 2.24 print numbers, later ones names.
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

struct comm_choice nccl_log_read(int file, int64_t *place)
{
    struct comm_choice last = {.algorithm = ""}, one;
    off_t              end  = lseek(file, 0, SEEK_END);
    int64_t            size = end > *place ? end - *place : 0;
    char              *text = memory_allocate((size_t)size + 1), *rest = NULL;
    ssize_t            read   = pread(file, text, (size_t)size, *place);
    text[read > 0 ? read : 0] = '\0';
    for (char *line = strtok_r(text, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest)) {
        last = nccl_log_parse(line, &one) ? one : last;
    }
    *place = end;
    free(text);
    return last;
}
