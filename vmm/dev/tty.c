/* SPDX-License-Identifier: Apache-2.0 */
/* tty.c: the user's terminal in raw mode, and its way back whatever happens. */
#include "tty.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

static struct termios saved;
static int saved_fd = -1;
static atomic_bool is_raw;

/* Async-signal-safe: tcsetattr() is on the list of signal-safety(7). */
void rv_tty_restore(void)
{
	int e = errno;

	if (atomic_exchange(&is_raw, false))
		tcsetattr(saved_fd, TCSANOW, &saved);
	errno = e;
}

/* SA_RESETHAND put the default action back, so the signal now does what it would have done. */
static void on_fatal(int sig)
{
	rv_tty_restore();
	raise(sig);
}

static void fatal_signals_hook(void)
{
	static const int sigs[] = {SIGHUP,  SIGINT, SIGQUIT, SIGTERM, SIGABRT,
				   SIGSEGV, SIGBUS, SIGILL,  SIGFPE,  SIGSYS};
	struct sigaction sa = {.sa_handler = on_fatal,
			       .sa_flags = (int)(SA_RESETHAND | SA_NODEFER)};
	struct sigaction old;

	sigemptyset(&sa.sa_mask);
	for (size_t i = 0; i < sizeof(sigs) / sizeof(sigs[0]); i++)
		if (sigaction(sigs[i], NULL, &old) == 0 && old.sa_handler == SIG_DFL &&
		    !(old.sa_flags & SA_SIGINFO))
			sigaction(sigs[i], &sa, NULL);
}

int rv_tty_raw(int fd, struct rv_err *err)
{
	static bool hooked;
	struct termios t;

	if (atomic_load(&is_raw))
		return rv_err_set(err, RV_EBUSY, "tty", "the terminal is already used");
	if (tcgetattr(fd, &saved) < 0)
		return rv_err_os(err, "tty", "read terminal mode");
	saved_fd = fd;
	if (!hooked) {
		hooked = true;
		fatal_signals_hook();
		if (atexit(rv_tty_restore))
			return rv_err_set(err, RV_ENOMEM, "tty", "atexit");
	}
	t = saved;
	cfmakeraw(&t);
	/* The monitor's own messages still end in plain newlines. */
	t.c_oflag |= OPOST | ONLCR;
	t.c_cc[VMIN] = 1;
	t.c_cc[VTIME] = 0;
	atomic_store(&is_raw, true);
	if (tcsetattr(fd, TCSANOW, &t) < 0) {
		atomic_store(&is_raw, false);
		return rv_err_os(err, "tty", "set raw mode");
	}
	return RV_OK;
}
