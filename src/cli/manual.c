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
          "gswbench \\- native benchmark of transformer training steps\n"
          ".SH SYNOPSIS\n"
          ".B gswbench\n"
          "[\\fICOMMAND\\fR] [\\fIFLAG\\fR]...\n"
          ".SH DESCRIPTION\n"
          "How long does a training step of a large language model take on this machine, and is that what it should "
          "take?\n"
          ".B gswbench\n"
          "runs the real step of a published or own configuration, over as many ranks as mpirun or srun starts, and "
          "says\n"
          "where the time goes. Without a command, it runs.\n"
          ".SH COMMANDS\n",
          file);
    for (int i = 0; cli_commands[i] != NULL; i++) {
        const struct command *command = cli_commands[i];
        fprintf(file, ".SS %s\n", command->name);
        print(file, command->help);
        fputs(".\n", file);
        for (const struct flag *flag = command->flags; flag->name != NULL; flag++) {
            print_flag(file, flag);
        }
    }
    fputs(".SH EXIT STATUS\n"
          "0: valid. The others each stand for one kind of trouble, which\n"
          ".I method.md\n"
          "lists.\n"
          ".SH FILES\n"
          "Beside the folder of the program,\n"
          ".I share/gswbench/configs\n"
          "has the configurations that are known by name (GSWBENCH_CONFIGS names another folder), and\n"
          ".I share/doc/gswbench\n"
          "the documents.\n"
          ".SH SEE ALSO\n"
          ".BR gswbench (5),\n"
          ".BR mpirun (1),\n"
          ".BR srun (1)\n",
          file);
}
