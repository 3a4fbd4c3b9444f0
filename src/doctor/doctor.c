// SPDX-License-Identifier: MIT
// Runs the checks of gswbench doctor and prints their lines, as text and as JSON.
#include "gswbench/doctor.h"

#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gswbench/arena.h"
#include "gswbench/clock.h"
#include "gswbench/text.h"
#include "internal.h"

enum { ANSWER_SECONDS = 10 };    // time in which a program must print its answer and end

extern char **environ;

static const char *const states[] = {"ok", "absent", "warning", "wrong", NULL};

static const struct json_field line_fields[] = {
    JSON_FIELD(doctor_line, JSON_FIELD_TEXT, "name", name),
    JSON_CHOICE(doctor_line, "state", state, states),
    JSON_FIELD(doctor_line, JSON_FIELD_TEXT, "found", found),
    JSON_FIELD(doctor_line, JSON_FIELD_TEXT, "remedy", remedy),
    JSON_END,
};
const struct json_field doctor_fields[] = {
    JSON_SCHEMA("gswbench.doctor/1"),
    JSON_FIELD(doctor, JSON_FIELD_INTEGER, "gpus", gpus),
    JSON_LIST(doctor, "checks", lines, count, sizeof(struct doctor_line), line_fields),
    JSON_END,
};

static void write_text(char *to, size_t bytes, const char *format, va_list arguments)
{
    char text[1024];
    vsnprintf(text, sizeof(text), format, arguments);
    text_printable(to, bytes, text);
}

struct doctor_line *doctor_add(struct doctor *doctor, const char *name, enum doctor_state state, const char *format,
                               ...)
{
    va_list             arguments;
    struct doctor_line *line = LIST_ADD(doctor->lines, doctor->count);
    *line                    = (struct doctor_line){.state = state};
    text_copy(line->name, sizeof(line->name), name);
    va_start(arguments, format);
    write_text(line->found, sizeof(line->found), format, arguments);
    va_end(arguments);
    return line;
}

void doctor_judge(struct doctor *doctor, const char *name, bool is_good, enum doctor_state worse, const char *remedy,
                  const char *format, ...)
{
    va_list             arguments;
    struct doctor_line *line = doctor_add(doctor, name, is_good ? DOCTOR_OK : worse, "%s", "");
    va_start(arguments, format);
    write_text(line->found, sizeof(line->found), format, arguments);
    va_end(arguments);
    if (!is_good) {
        doctor_advise(line, "%s", remedy);
    }
}

void doctor_advise(struct doctor_line *line, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    write_text(line->remedy, sizeof(line->remedy), format, arguments);
    va_end(arguments);
}

void doctor_cut_remedy(status *opened)
{
    char *remedy = strstr(opened->text, ": install ");
    if (remedy != NULL) {
        *remedy = '\0';
    }
}

void doctor_read(const struct doctor *doctor, const char *path, const char *key, char *text, size_t bytes)
{
    char  whole[512], line[512];
    FILE *file;
    text[0] = '\0';
    snprintf(whole, sizeof(whole), "%s%s", doctor->root, path);
    file = fopen(whole, "r");
    while (file != NULL && text[0] == '\0' && fgets(line, sizeof(line), file) != NULL) {
        if (strncmp(line, key, strlen(key)) == 0) {
            const char *start = line + strlen(key);
            start += strspn(start, " \t:=\"");
            snprintf(text, bytes, "%.*s", (int)strcspn(start, "\"\n"), start);
        }
    }
    if (file != NULL) {
        fclose(file);
    }
}

// Reads the whole output of a program and stores its first bytes. Returns the number of stored bytes, or 0 if the
// program has not closed its output by the deadline.
static size_t read_answer(int file, double deadline, char *text, size_t bytes)
{
    struct pollfd ready  = {.fd = file, .events = POLLIN};
    size_t        length = 0;
    char          rest[256];
    for (double left; (left = deadline - clock_seconds()) > 0.0 && poll(&ready, 1, (int)(1000 * left) + 1) > 0;) {
        bool    is_full = length + 1 >= bytes;
        ssize_t count   = read(file, is_full ? rest : text + length, is_full ? sizeof(rest) : bytes - 1 - length);
        if (count <= 0) {
            return length;
        }
        length += is_full ? 0 : (size_t)count;
    }
    return 0;
}

// Returns the exit status of a program, which is killed if it has not ended by the deadline.
static int await_end(pid_t child, double deadline)
{
    int code = 0;
    while (waitpid(child, &code, WNOHANG) == 0) {
        if (clock_seconds() > deadline) {
            kill(child, SIGKILL);
        }
        clock_sleep_until(clock_seconds() + 0.01);
    }
    return code;
}

void doctor_ask(char *const words[], char *text, size_t bytes)
{
    posix_spawn_file_actions_t actions;
    int                        ends[2], code = 0;
    pid_t                      child;
    text[0] = '\0';
    if (pipe(ends) != 0) {
        return;
    }
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", 0, 0);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
    posix_spawn_file_actions_addclose(&actions, ends[0]);
    bool has_started = posix_spawnp(&child, words[0], &actions, NULL, words, environ) == 0;
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    if (has_started) {
        double deadline                                   = clock_seconds() + ANSWER_SECONDS;
        text[read_answer(ends[0], deadline, text, bytes)] = '\0';
        code                                              = await_end(child, deadline);
    }
    close(ends[0]);
    text[has_started && code == 0 ? strcspn(text, "\n") : 0] = '\0';
}

void doctor_examine(struct doctor *doctor)
{
    doctor_check_host(doctor);
    doctor_check_build(doctor);
    doctor_check_devices(doctor);
    doctor_check_libraries(doctor);
    doctor_check_mpi(doctor);
    doctor_check_network(doctor);
    doctor_check_limits(doctor);
    for (int64_t i = 0; i < doctor->count; i++) {
        doctor->states[doctor->lines[i].state]++;
    }
}

void doctor_print(const struct doctor *doctor, FILE *file)
{
    for (int64_t i = 0; i < doctor->count; i++) {
        const struct doctor_line *line = &doctor->lines[i];
        fprintf(file, "%-12s %-8s %s%s%s\n", line->name, states[line->state], line->found,
                line->remedy[0] != '\0' ? ": " : "", line->remedy);
    }
    if (doctor->states[DOCTOR_WRONG] > 0) {
        fprintf(file, "\n%" PRId64 " of %" PRId64 " checks are wrong\n", doctor->states[DOCTOR_WRONG], doctor->count);
    } else {
        int64_t warnings  = doctor->states[DOCTOR_WARNING];
        char    count[64] = "";
        if (warnings > 0) {
            snprintf(count, sizeof(count), ", but there %s %" PRId64 " warning%s", warnings == 1 ? "is" : "are",
                     warnings, warnings == 1 ? "" : "s");
        }
        fprintf(file, "\nnothing is wrong%s; %s\n", count,
                doctor->gpus > 0 ? "next: gswbench preflight" : "without a GPU, try: gswbench predict llama2-70b-fsdp");
    }
}

void doctor_free(struct doctor *doctor)
{
    free(doctor->lines);
}
