// SPDX-License-Identifier: MIT
// The manual page gswbench(1): commands and their flags.
#include <string.h>

#include "internal.h"

static void print(FILE *file, const char *text)
{
    text_print_roff(file, text, strlen(text));
}

static void print_flag(FILE *file, const struct flag *flag)
{
    fputs(".TP\n\\fB", file);
    print(file, flag->name);
    fputs("\\fR", file);
    if (flag->value != NULL) {
        fputs(" \\fI", file);
        print(file, flag->value);
        fputs("\\fR", file);
    }
    fputc('\n', file);
    print(file, flag->help);
    fputs(".\n", file);
}

void manual_print(FILE *file)
{
    fputs(".TH GSWBENCH 1 \"\" gswbench \"User Commands\"\n"
          ".SH NAME\n"
          "gswbench \\- benchmark of LLM training steps\n"
          ".SH SYNOPSIS\n"
          ".B gswbench\n"
          "[\\fICOMMAND\\fR] [\\fIFLAG\\fR]...\n"
          ".SH DESCRIPTION\n"
          ".B gswbench\n"
          "runs the training step of a published or custom config on all ranks that mpirun or srun starts. It reports "
          "the\n"
          "step time, where the time goes, and how it compares with published and predicted step times. The default "
          "command is run.\n"
          ".SH COMMANDS\n",
          file);
    for (int i = 0; cli_commands[i] != NULL; i++) {
        const struct command *command = cli_commands[i];
        fprintf(file, ".SS %s\n", command->name);
        print(file, command->help);
        fputs(".\n", file);
        for (const struct flag *flag = command->flags; flag->name != NULL; flag++) {
            if (flag->type != FLAG_HEADING) {
                print_flag(file, flag);
            }
        }
        fputs(".PP\nExample:\n.PP\n.nf\n", file);
        print(file, command->example);
        fputs("\n.fi\n", file);
    }
    fputs(".SH EXIT STATUS\n"
          "0: the result is VALID.\n"
          ".I method.md\n"
          "lists the other exit codes.\n"
          ".SH FILES\n"
          "In the installation prefix,\n"
          ".I share/gswbench/configs\n"
          "contains the installed configs (GSWBENCH_CONFIGS selects another folder), and\n"
          ".I share/doc/gswbench\n"
          "the documents.\n"
          ".SH SEE ALSO\n"
          ".BR gswbench (5),\n"
          ".BR mpirun (1),\n"
          ".BR srun (1)\n",
          file);
}
