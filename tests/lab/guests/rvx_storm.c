/* SPDX-License-Identifier: Apache-2.0 */
/* rvx_storm.c: processes that come and go, talk, get signals and are traced. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "rvx.h"

static int ended_well(pid_t pid, const char *what)
{
	int st = 0;

	if (waitpid(pid, &st, 0) != pid)
		return rvx_fail("%s: wait", what);
	if (st) {
		fprintf(stderr, "%s: status %#x\n", what, st);
		return 1;
	}
	return 0;
}

static int do_fork(void)
{
	pid_t pid = fork();

	if (pid < 0)
		return rvx_fail("fork");
	if (!pid)
		_exit(getppid() > 0 ? 0 : 1);
	return ended_well(pid, "fork");
}

static int do_exec(void)
{
	pid_t pid = vfork();

	if (pid < 0)
		return rvx_fail("vfork");
	if (!pid) {
		execl("/proc/self/exe", "rvx", "nop", (char *)NULL);
		_exit(127);
	}
	return ended_well(pid, "exec");
}

static int do_pipe(void)
{
	char buf[512], back[512];
	int to[2], from[2], i, bad = 0;
	pid_t pid;

	if (pipe(to) || pipe(from))
		return rvx_fail("pipe");
	pid = fork();
	if (pid < 0)
		return rvx_fail("fork");
	if (!pid) {
		close(to[1]);
		close(from[0]);
		while (read(to[0], buf, sizeof(buf)) == (ssize_t)sizeof(buf))
			if (write(from[1], buf, sizeof(buf)) != (ssize_t)sizeof(buf))
				_exit(1);
		_exit(0);
	}
	close(to[0]);
	close(from[1]);
	for (i = 0; i < 50 && !bad; i++) {
		memset(buf, i, sizeof(buf));
		if (write(to[1], buf, sizeof(buf)) != (ssize_t)sizeof(buf) ||
		    read(from[0], back, sizeof(back)) != (ssize_t)sizeof(back))
			bad = rvx_fail("pipe");
		else if (memcmp(buf, back, sizeof(buf)))
			bad = rvx_fail("pipe returned other bytes");
	}
	close(to[1]);
	close(from[0]);
	return ended_well(pid, "pipe") | bad;
}

static volatile sig_atomic_t got;

static void on_signal(int sig)
{
	(void)sig;
	got++;
}

static int do_signals(void)
{
	struct sigaction sa = {.sa_handler = on_signal};
	int i;

	sigaction(SIGUSR1, &sa, NULL);
	got = 0;
	for (i = 0; i < 100; i++)
		kill(getpid(), SIGUSR1);
	if (got != 100) {
		fprintf(stderr, "signals: %d of 100\n", (int)got);
		return 1;
	}
	return 0;
}

/* Every system call of the child stops twice; the parent counts. */
static int do_ptrace(void)
{
	const int calls = 40;
	int st, stops = 0;
	pid_t pid = fork();

	if (pid < 0)
		return rvx_fail("fork");
	if (!pid) {
		int i;

		if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
			_exit(1);
		raise(SIGSTOP);
		for (i = 0; i < calls; i++)
			syscall(SYS_getppid);
		_exit(0);
	}
	if (waitpid(pid, &st, 0) != pid || !WIFSTOPPED(st))
		return rvx_fail("ptrace: first stop");
	ptrace(PTRACE_SETOPTIONS, pid, NULL, (void *)(uintptr_t)PTRACE_O_TRACESYSGOOD);
	for (;;) {
		if (ptrace(PTRACE_SYSCALL, pid, NULL, NULL))
			return rvx_fail("ptrace");
		if (waitpid(pid, &st, 0) != pid)
			return rvx_fail("ptrace: wait");
		if (WIFEXITED(st) || WIFSIGNALED(st))
			break;
		if (WIFSTOPPED(st) && WSTOPSIG(st) == (SIGTRAP | 0x80))
			stops++;
	}
	/* raise() itself ends inside the traced part, hence "at least" */
	if (!WIFEXITED(st) || WEXITSTATUS(st) || stops < 2 * calls) {
		fprintf(stderr, "ptrace: status %#x after %d stops\n", st, stops);
		return 1;
	}
	return 0;
}

static void *thread(void *arg)
{
	int i;

	for (i = 0; i < 20; i++)
		syscall(SYS_gettid);
	return arg;
}

static int do_threads(void)
{
	pthread_t t[4];
	uintptr_t i;
	void *ret;

	for (i = 0; i < 4; i++)
		if (pthread_create(&t[i], NULL, thread, (void *)i))
			return rvx_fail("pthread_create");
	for (i = 0; i < 4; i++)
		if (pthread_join(t[i], &ret) || ret != (void *)i)
			return rvx_fail("pthread_join");
	return 0;
}

int rvx_storm(int argc, char **argv)
{
	static int (*const jobs[])(void) = {do_fork,	do_exec,   do_pipe,
					    do_signals, do_ptrace, do_threads};
	time_t end = time(NULL) + (argc > 1 ? atoi(argv[1]) : 5);
	unsigned long rounds = 0;
	size_t i;

	do {
		for (i = 0; i < sizeof(jobs) / sizeof(jobs[0]); i++)
			if (jobs[i]())
				return 1;
		rounds++;
	} while (time(NULL) < end);
	printf("rounds=%lu\n", rounds);
	return 0;
}
