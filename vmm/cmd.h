/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd.h: the subcommands. Each gets its own arguments, argv[0] being its name, and
 * returns the exit status of the process; none of them exits by itself.
 */
#ifndef RV_VMM_CMD_H
#define RV_VMM_CMD_H

int rv_cmd_run(int argc, char **argv);
int rv_cmd_doctor(int argc, char **argv);
int rv_cmd_events(int argc, char **argv);
int rv_cmd_image(int argc, char **argv);
int rv_cmd_policy(int argc, char **argv);

#endif
