/* SPDX-License-Identifier: Apache-2.0 */
/* main.c: subcommands; the only place that ends the process. */
#include "cmd.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *help;
} commands[] = {
	{"run", rv_cmd_run, "start a guest: place it, seal it, watch it"},
	{"doctor", rv_cmd_doctor, "can this host do it, and what would be lost"},
	{"image", rv_cmd_image, "what a kernel file is and which protections it can carry"},
	{"events", rv_cmd_events, "read, follow and verify a journal"},
	{"policy", rv_cmd_policy, "check, explain, compare and replay policy files"},
};

static void usage(FILE *out)
{
	fputs("ravelin: a virtual machine monitor that hardens unmodified Linux guests from outside\n"
	      "\n"
	      "usage: ravelin COMMAND [OPTIONS]     (ravelin COMMAND --help teaches each)\n\n",
	      out);
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		fprintf(out, "  %-8s %s\n", commands[i].name, commands[i].help);
	fputs("\nA first guest, from a stock kernel and its initrd:\n"
	      "  ravelin doctor\n"
	      "  ravelin run --kernel /boot/vmlinuz-$(uname -r) --initrd /boot/initrd.img-$(uname -r) \\\n"
	      "              --append 'console=ttyS0' --memory 512M --journal guest.jsonl\n"
	      "  ravelin events guest.jsonl\n",
	      out);
}

int main(int argc, char **argv)
{
	const char *cmd = argc > 1 ? argv[1] : NULL;

	if (!cmd || !strcmp(cmd, "help")) {
		usage(cmd ? stdout : stderr);
		return cmd ? 0 : 2;
	}
	if (!strcmp(cmd, "--help") || !strcmp(cmd, "-h")) {
		usage(stdout);
		return 0;
	}
	if (!strcmp(cmd, "--version") || !strcmp(cmd, "version")) {
		puts("ravelin " RV_VERSION);
		return 0;
	}
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (!strcmp(cmd, commands[i].name))
			return commands[i].run(argc - 1, argv + 1);
	fprintf(stderr, "ravelin: unknown command \"%s\"; expected", cmd);
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		fprintf(stderr, "%s %s", i ? "," : "", commands[i].name);
	fputc('\n', stderr);
	return 2;
}
