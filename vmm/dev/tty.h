/* SPDX-License-Identifier: Apache-2.0 */
/* tty.h: the user's terminal in raw mode, and its way back whatever happens. */
#ifndef RV_VMM_DEV_TTY_H
#define RV_VMM_DEV_TTY_H

#include <ravelin/error.h>

/*
 * Put the terminal fd in raw mode. The old mode comes back at rv_tty_restore(), at
 * exit(), and before the process dies of a signal whose action was the default one.
 * One terminal per process.
 */
int rv_tty_raw(int fd, struct rv_err *err) RV_MUST_CHECK;
void rv_tty_restore(void);

#endif
