/* SPDX-License-Identifier: Apache-2.0 */
/* events_test.c: events as text for people; `ravelin events` and `ravelin policy` as commands. */
/* unit-sources: vmm/cmd_events.c vmm/cmd_policy.c vmm/policy_page.c */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../policy/record.h"
#include "../../vmm/cmd.h"

static char dir[32], path[64], shot[64];

static int setup(void **state)
{
	(void)state;
	strcpy(dir, "/tmp/rv-events-XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	snprintf(path, sizeof(path), "%s/j", dir);
	snprintf(shot, sizeof(shot), "%s/out", dir);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	unlink(path);
	unlink(shot);
	return rmdir(dir);
}

/* Run a command; its status, and what it wrote to both streams. */
static int command(int (*fn)(int argc, char **argv), const char *line, char *out, size_t size)
{
	char copy[512], *argv[12], *save = NULL;
	int argc = 0, status, keep[2] = {dup(1), dup(2)};
	int fd = open(shot, O_RDWR | O_CREAT | O_TRUNC, 0600);
	ssize_t n;

	assert_true(fd >= 0);
	snprintf(copy, sizeof(copy), "%s", line);
	for (char *w = strtok_r(copy, " ", &save); w; w = strtok_r(NULL, " ", &save))
		argv[argc++] = w;
	argv[argc] = NULL;
	fflush(stdout);
	dup2(fd, 1);
	dup2(fd, 2);
	status = fn(argc, argv);
	fflush(stdout);
	dup2(keep[0], 1);
	dup2(keep[1], 2);
	close(keep[0]);
	close(keep[1]);
	n = pread(fd, out, size - 1, 0);
	out[n > 0 ? n : 0] = '\0';
	close(fd);
	return status;
}

static void sample(struct rv_event *ev)
{
	memset(ev, 0, sizeof(*ev));
	ev->kind = RV_EV_WRITE;
	ev->mono_ns = 1;
	ev->wall_ns = 1767323045000000006u;
	ev->size = 8;
	ev->pc = 0xffffffffc0000010u;
	ev->pc_exact = 1;
	ev->target = 0xffffffff81234560u;
	strcpy(ev->engine, "seal");
	strcpy(ev->object, "text");
	strcpy(ev->insn, "mov qword ptr [rax], rcx");
	strcpy(ev->pc_symbol, "ravelin_attack+0x1c");
	strcpy(ev->target_symbol, "vfs_read+0x0");
}

static void make_journal(void)
{
	const struct rv_verdict v = {RV_ACT_FAULT, "seal.text.act", "reason"};
	struct rv_journal *j;
	struct rv_event ev;

	unlink(path);
	assert_int_equal(rv_journal_open(path, "web1", 64, 100, &j, NULL), 0);
	memset(&ev, 0, sizeof(ev));
	ev.kind = RV_EV_ARM;
	ev.wall_ns = 1767323045000000006u;
	ev.vcpu = -1;
	strcpy(ev.object, "text");
	rv_journal_post(j, &ev, NULL);
	sample(&ev);
	rv_journal_post(j, &ev, &v);
	rv_journal_close(j);
}

static void test_format(void **state)
{
	const struct rv_verdict v = {RV_ACT_FAULT, "seal.text.act", "reason"};
	struct rv_event ev;
	char buf[512];

	(void)state;
	sample(&ev);
	assert_string_equal(
		rv_event_format(&ev, &v, buf, sizeof(buf)),
		"BLOCK write of 8 bytes by ravelin_attack+0x1c [mov qword ptr [rax], rcx] "
		"to text vfs_read+0x0 (0xffffffff81234560): fault (seal.text.act)");
	assert_string_equal(rv_event_format(&ev, NULL, buf, 30), "DETECT write of 8 bytes by ra");
	memset(&ev, 0, sizeof(ev));
	ev.kind = RV_EV_LOST;
	ev.value = 7;
	assert_string_equal(rv_event_format(&ev, NULL, buf, sizeof(buf)),
			    "LOST 7 events, the queue was full");
	ev.kind = RV_EV_STALL;
	ev.vcpu = 1;
	strcpy(ev.detail, "20 s\x1b]0;x\x07");
	assert_string_equal(rv_event_format(&ev, NULL, buf, sizeof(buf)),
			    "DETECT stall, vcpu 1: 20 s\\x1b]0;x\\x07: record");
	/* No terminators, no printable byte, every size of buffer. */
	memset(&ev, 0xff, sizeof(ev));
	for (size_t n = 0; n <= sizeof(buf); n++) {
		for (uint32_t kind = 0; kind <= RV_EV_COUNT; kind++) {
			ev.kind = kind;
			rv_event_format(&ev, &v, buf, n);
			assert_true(!n || strlen(buf) < n);
		}
	}
}

static void run_events(const char *args, int status, const char *expected)
{
	char line[512], out[8192];

	snprintf(line, sizeof(line), "events %s", args);
	assert_int_equal(command(rv_cmd_events, line, out, sizeof(out)), status);
	if (!strstr(out, expected)) {
		print_error("%s\n", out);
		assert_string_equal(out, expected);
	}
}

static void with_path(const char *fmt, int status, const char *expected)
{
	char args[512], *at = strstr(fmt, "FILE");

	snprintf(args, sizeof(args), "%.*s%s%s", (int)(at - fmt), fmt, path, at + 4);
	run_events(args, status, expected);
}

static void test_events(void **state)
{
	char out[8192], line[128];
	FILE *f;

	(void)state;
	make_journal();
	with_path("FILE", 0,
		  "       1  2026-01-02 03:04:05.000  web1: ARM text\n"
		  "       2  2026-01-02 03:04:05.000  web1: BLOCK write of 8 bytes by "
		  "ravelin_attack+0x1c");
	with_path("FILE --verify", 0, "2 lines, sequence and chain unbroken, last digest ");
	/* It ends with a write: nobody can tell whether more was there. */
	with_path("FILE --verify", 0, "the last line is no stop");
	with_path("FILE --json --kind arm", 0, "{\"v\":1,\"seq\":1,");
	with_path("--since 1 FILE --json", 0, "{\"v\":1,\"seq\":2,");
	with_path("--since 2 FILE", 0, "");
	with_path("--since x FILE", 2, "expected a sequence number");
	with_path("--kind x FILE", 2, "expected one of start stop placement");
	with_path("--what FILE", 2, "usage: ravelin events");
	with_path("FILE --repair --verify", 2, "usage");
	with_path("FILE --repair", 1, "nothing to repair");
	run_events("", 2, "usage");
	run_events("--help", 0, "usage");
	run_events("/nowhere/at/all", 1, "No such file");
	snprintf(line, sizeof(line), "events %s --since 1 --json", path);
	command(rv_cmd_events, line, out, sizeof(out));
	assert_null(strstr(out, "\"seq\":1,"));
	assert_null(strchr(out, '\033'));
	f = fopen(path, "a");
	fputs("{\"v\":1,\"se", f);
	fclose(f);
	with_path("FILE", 1, "line 3 is torn: 10 bytes");
	with_path("FILE --repair", 0, "moved 10 bytes");
	with_path("FILE --verify", 0, "2 lines");
	f = fopen(path, "a");
	fputs("{\"v\":1,\"seq\":3}\n", f);
	fclose(f);
	with_path("FILE --verify", 1, "line 3 ");
	snprintf(line, sizeof(line), "%s.torn", path);
	unlink(line);
}

static void *add_later(void *arg)
{
	struct rv_journal *j;
	struct rv_event ev;

	(void)arg;
	nanosleep(&(struct timespec){0, 300000000}, NULL);
	assert_int_equal(rv_journal_open(path, "web1", 64, 100, &j, NULL), 0);
	sample(&ev);
	rv_journal_post(j, &ev, NULL);
	rv_journal_close(j);
	nanosleep(&(struct timespec){0, 500000000}, NULL);
	kill(getpid(), SIGTERM);
	return NULL;
}

static void test_follow(void **state)
{
	pthread_t t;

	(void)state;
	make_journal();
	assert_int_equal(pthread_create(&t, NULL, add_later, NULL), 0);
	with_path("FILE --follow --since 2", 0, "       3  2026-01-02 03:04:05.000  web1: DETECT");
	pthread_join(t, NULL);
}

static void run_policy(const char *args, int status, const char *expected)
{
	char line[512], out[32768];

	snprintf(line, sizeof(line), "policy %s", args);
	assert_int_equal(command(rv_cmd_policy, line, out, sizeof(out)), status);
	if (!strstr(out, expected)) {
		print_error("%s\n", out);
		assert_string_equal(out, expected);
	}
}

static void test_policy(void **state)
{
	char args[256];

	(void)state;
	make_journal();
	run_policy("", 2, "usage");
	run_policy("judge", 2, "usage");
	run_policy("check", 2, "usage");
	run_policy("check configs/profiles/strict.yaml", 0, "good, profile strict");
	run_policy("check configs/examples/web-vm.yaml", 0,
		   "good, profile custom (based on balanced)");
	run_policy("check Makefile", 1, "Makefile:");
	run_policy("check /nowhere", 1, "No such file");
	run_policy("explain watchdog", 0, "watchdog.act: one of record, pause, kill");
	run_policy("explain watchdgo", 1, "did you mean 'watchdog'?");
	run_policy("show balanced", 0, "seal.text.act        fault        profile balanced");
	run_policy("show configs/examples/web-vm.yaml", 0,
		   "seal.gate.act        pause        line 12");
	run_policy("diff strict configs/profiles/strict.yaml", 0, "");
	run_policy("diff balanced strict", 1, "placement.base       if-able -> random\n");
	snprintf(args, sizeof(args), "replay observe %s", path);
	run_policy(args, 1, "2: fault -> record (seal.text.act: ");
	run_policy(args, 1, "2 events judged, 1 verdicts differ\n");
	snprintf(args, sizeof(args), "replay balanced %s", path);
	run_policy(args, 0, "2 events judged, 0 verdicts differ\n");
	run_policy("replay balanced /nowhere", 2, "No such file");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_format),
		cmocka_unit_test(test_events),
		cmocka_unit_test(test_follow),
		cmocka_unit_test(test_policy),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
