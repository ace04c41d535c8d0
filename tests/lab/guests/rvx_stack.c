/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rvx_stack.c: are kernel stack traces whole? A trace through the monitor's stub
 * must reach the entry code, by the kernel's reliable unwinder.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "rvx.h"

static int check(const char *what, const char *path, const char *innermost)
{
	static char buf[8192];
	int bad = 0;

	if (rvx_slurp(path, buf, sizeof(buf)) <= 0)
		return rvx_fail("%s", path);
	if (innermost && !strstr(buf, innermost)) {
		fprintf(stderr, "%s: no %s\n", what, innermost);
		bad = 1;
	}
#ifdef __x86_64__
	if (!strstr(buf, "do_syscall_64")) {
		fprintf(stderr, "%s: no do_syscall_64\n", what);
		bad = 1;
	}
	if (!strstr(buf, "entry_SYSCALL_64_after_hwframe")) {
		fprintf(stderr, "%s: does not end in the entry code\n", what);
		bad = 1;
	}
#else
	if (!strstr(buf, "el0t_64_sync")) {
		fprintf(stderr, "%s: does not end in the entry code\n", what);
		bad = 1;
	}
#endif
	if (strchr(buf, '?')) {
		fprintf(stderr, "%s: has unreliable lines\n", what);
		bad = 1;
	}
	if (bad)
		fprintf(stderr, "%s", buf);
	else
		printf("%s whole, %zu bytes\n", what, strlen(buf));
	return bad;
}

enum how { IN_PIPE, IN_SLEEP, IN_WAIT, IN_POLL, IN_PAUSE };

static int blocked(enum how how, const char *what, const char *innermost)
{
	struct timespec ms50 = {0, 50000000}, hour = {3600, 0};
	char path[64];
	int p[2], bad;
	pid_t pid;

	if (pipe(p))
		return rvx_fail("pipe");
	pid = fork();
	if (pid < 0)
		return rvx_fail("fork");
	if (!pid) {
		struct pollfd pf = {.fd = p[0], .events = POLLIN};
		char c;

		switch (how) {
		case IN_PIPE:
			if (read(p[0], &c, 1) < 0)
				_exit(1);
			break;
		case IN_SLEEP: nanosleep(&hour, NULL); break;
		case IN_WAIT:
			if (!fork()) {
				pause();
				_exit(0);
			}
			wait(NULL);
			break;
		case IN_POLL: poll(&pf, 1, -1); break;
		case IN_PAUSE: pause(); break;
		}
		_exit(0);
	}
	nanosleep(&ms50, NULL);
	nanosleep(&ms50, NULL);
	snprintf(path, sizeof(path), "/proc/%d/stack", (int)pid);
	bad = check(what, path, innermost);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	close(p[0]);
	close(p[1]);
	return bad;
}

int rvx_stack(int argc, char **argv)
{
	int bad = 0;

	(void)argc;
	(void)argv;
	bad |= check("self", "/proc/self/stack", "proc_pid_stack");
	bad |= blocked(IN_PIPE, "pipe", "pipe_read");
	bad |= blocked(IN_SLEEP, "sleep", "nanosleep");
	bad |= blocked(IN_WAIT, "wait", "do_wait");
	bad |= blocked(IN_POLL, "poll", "poll");
	bad |= blocked(IN_PAUSE, "pause", "pause");
	return bad;
}
