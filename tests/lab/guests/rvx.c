/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rvx: the user-space side of the guest tests, one static program with several
 * exercises. "rvx" alone lists them.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#ifdef __x86_64__
#include <sys/io.h>
#endif

#include "rvx.h"

int rvx_fail(const char *fmt, ...)
{
	int saved = errno;
	va_list ap;

	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fprintf(stderr, ": %s\n", strerror(saved));
	return 1;
}

long rvx_slurp(const char *path, char *buf, unsigned long size)
{
	unsigned long got = 0;
	ssize_t n;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return -1;
	while (got + 1 < size && (n = read(fd, buf + got, size - 1 - got)) > 0)
		got += n;
	buf[got] = 0;
	close(fd);
	return (long)got;
}

/*
 * Write into kernel memory from user mode, through a mapping that a hostile
 * driver handed out. The offset in the page comes from the module's report.
 */
int rvx_usermap(int argc, char **argv)
{
	const char *target = argc > 1 ? argv[1] : "text";
	char cmd[128], report[2048], *at;
	volatile uint64_t *p;
	uint64_t before, after, new = 0x5a6978878796a5b4ULL;
	unsigned long addr;
	void *map;
	int fd = open("/proc/rv_attack", O_RDWR | O_CLOEXEC), n;

	if (fd < 0)
		return rvx_fail("/proc/rv_attack");
	n = snprintf(cmd, sizeof(cmd), "map %s", target);
	if (write(fd, cmd, n) != n)
		return rvx_fail("%s", cmd);
	if (rvx_slurp("/proc/rv_attack", report, sizeof(report)) < 0)
		return rvx_fail("report");
	at = strstr(report, " addr=");
	if (!at)
		return rvx_fail("no address in the report");
	addr = strtoul(at + 6, NULL, 16);
	map = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		return rvx_fail("mmap");
	p = (void *)((char *)map + (addr & 4095));
	before = *p;
	*p = new;
	after = *p;
	if (after != before)
		*p = before;
	printf("landed=%d\n", after != before);
	return 0;
}

/* Ring one of the monitor's doorbells from user mode. A monitor that refuses kills it here. */
static int bell(int argc, char **argv)
{
	unsigned long port = argc > 1 ? strtoul(argv[1], NULL, 0) : 0xf5;

#ifdef __x86_64__
	if (ioperm(port, 1, 1))
		return rvx_fail("ioperm");
	/* What is refused is refused behind the instruction: one more for it to arrive at. */
	__asm__ volatile("outb %b0, %w1\n\tnop" : : "a"(0), "d"(port));
#endif
	printf("rang %lx\n", port);
	return 0;
}

static int nop(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return 0;
}

static const struct {
	const char *name, *help;
	int (*run)(int argc, char **argv);
} exercises[] = {
	{"storm", "SECONDS  fork, exec, pipes, signals, ptrace", rvx_storm},
	{"bpf", "sock|kprobe|tracepoint|fentry [TIMES]  load, attach, run, detach", rvx_bpf},
	{"stack", "are kernel stack traces whole?", rvx_stack},
	{"usermap", "[TARGET]  write into the kernel from user mode (needs rv_attack)",
	 rvx_usermap},
	{"bell", "[PORT]  write to a doorbell's port from user mode", bell},
	{"nop", "exit", nop},
};

int main(int argc, char **argv)
{
	size_t i;

	setvbuf(stdout, NULL, _IOLBF, 0);
	for (i = 0; argc > 1 && i < sizeof(exercises) / sizeof(exercises[0]); i++)
		if (!strcmp(argv[1], exercises[i].name))
			return exercises[i].run(argc - 1, argv + 1);
	for (i = 0; i < sizeof(exercises) / sizeof(exercises[0]); i++)
		fprintf(stderr, "rvx %s %s\n", exercises[i].name, exercises[i].help);
	return 2;
}
