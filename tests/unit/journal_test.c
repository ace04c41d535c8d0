/* SPDX-License-Identifier: Apache-2.0 */
/* journal_test.c: the line format (pinned), the chain, the queue, floods, damage and repair. */
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
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../policy/flood.h"
#include "../../policy/record.h"

static char dir[32], path[64], torn[80];

static int setup(void **state)
{
	(void)state;
	strcpy(dir, "/tmp/rv-journal-XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	snprintf(path, sizeof(path), "%s/j", dir);
	snprintf(torn, sizeof(torn), "%s.torn", path);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	unlink(path);
	unlink(torn);
	return rmdir(dir);
}

static void sample(struct rv_event *ev)
{
	memset(ev, 0, sizeof(*ev));
	ev->version = RV_EVENT_VERSION;
	ev->kind = RV_EV_WRITE;
	ev->mono_ns = 123456789;
	ev->wall_ns = 1767323045000000006u;
	ev->vcpu = 1;
	ev->size = 8;
	ev->pc = 0xffffffffc0000010u;
	ev->pc_exact = 1;
	ev->caller = 0xffffffffc0000200u;
	ev->target = 0xffffffff81234560u;
	ev->gpa = 0x1234560;
	ev->nold = ev->nnew = 4;
	memcpy(ev->old_bytes, "\x0f\x1f\x44\x00", 4);
	memcpy(ev->new_bytes, "\xcc\x1f\x44\x00", 4);
	strcpy(ev->engine, "seal");
	strcpy(ev->object, "text");
	strcpy(ev->insn, "mov qword ptr [rax], rcx");
	strcpy(ev->pc_symbol, "ravelin_attack+0x1c");
	strcpy(ev->caller_symbol, "do_init+0x20");
	strcpy(ev->target_symbol, "vfs_read+0x0");
	strcpy(ev->comm, "insmod");
}

static const struct rv_verdict fault = {RV_ACT_FAULT, "seal.text.act",
					"write into kernel code that is no known patch"};

/* The format is an interface: a changed byte here needs a new RV_RECORD_VERSION. */
static const char pinned[] =
	"{\"v\":1,\"seq\":1,\"time\":\"2026-01-02T03:04:05.000000006Z\",\"mono_ns\":123456789,"
	"\"vm\":\"web1\",\"verb\":\"BLOCK\",\"kind\":\"write\",\"action\":\"fault\","
	"\"rule\":\"seal.text.act\",\"reason\":\"write into kernel code that is no known patch\","
	"\"engine\":\"seal\",\"object\":\"text\",\"vcpu\":1,\"pc\":\"0xffffffffc0000010\","
	"\"pc_symbol\":\"ravelin_attack+0x1c\",\"pc_exact\":true,"
	"\"caller\":\"0xffffffffc0000200\",\"caller_symbol\":\"do_init+0x20\","
	"\"target\":\"0xffffffff81234560\",\"target_symbol\":\"vfs_read+0x0\","
	"\"gpa\":\"0x1234560\",\"size\":8,\"old\":\"0f1f4400\",\"new\":\"cc1f4400\","
	"\"insn\":\"mov qword ptr [rax], rcx\",\"cpl\":0,\"comm\":\"insmod\","
	"\"prev\":\"0000000000000000000000000000000000000000000000000000000000000000\","
	"\"digest\":\"40d9d03b2a285dee84704b2040af2f7d8a99bc316693e202858a88cad57ef777\"}\n";

static const char pinned_two[] =
	"{\"v\":1,\"seq\":2,\"time\":\"1970-01-01T00:00:00.000000000Z\",\"mono_ns\":0,"
	"\"verb\":\"START\",\"kind\":\"start\",\"action\":\"record\",\"vcpu\":0,"
	"\"detail\":\"a\\\\x1b[31m\\\"\\\\\\\\xff\","
	"\"prev\":\"40d9d03b2a285dee84704b2040af2f7d8a99bc316693e202858a88cad57ef777\","
	"\"digest\":\"cb8962b0d3c6b9e4340327d834a75619794022e548f44903e9c1f2c2fd615772\"}\n";

static void test_pinned(void **state)
{
	char line[RV_RECORD_MAX];
	struct rv_chain c;
	struct rv_event ev;
	size_t len;

	(void)state;
	rv_chain_init(&c);
	sample(&ev);
	len = rv_record_line(&c, "web1", &ev, &fault, line);
	assert_string_equal(line, pinned);
	assert_int_equal(len, strlen(pinned));
	memset(&ev, 0, sizeof(ev));
	ev.kind = RV_EV_START;
	strcpy(ev.detail, "a\x1b[31m\"\\\xff");
	rv_record_line(&c, "", &ev, NULL, line);
	assert_string_equal(line, pinned_two);
}

/* What is not known is not claimed: a write whose new bytes nobody saw has no "new". */
static void test_one_side(void **state)
{
	char line[RV_RECORD_MAX];
	struct rv_chain c;
	struct rv_event ev;

	(void)state;
	rv_chain_init(&c);
	sample(&ev);
	ev.nnew = 0;
	rv_record_line(&c, "web1", &ev, &fault, line);
	assert_non_null(strstr(line, "\"old\":\"0f1f4400\""));
	assert_null(strstr(line, "\"new\""));
	ev.nold = 0;
	ev.nnew = 2;
	rv_record_line(&c, "web1", &ev, &fault, line);
	assert_null(strstr(line, "\"old\""));
	assert_non_null(strstr(line, "\"new\":\"cc1f\""));
}

/* Everything at its longest and least printable stays within the promised size. */
static void test_longest(void **state)
{
	char line[RV_RECORD_MAX], vm[64];
	struct rv_chain c, d;
	struct rv_verdict v;
	struct rv_event ev;
	size_t len;

	(void)state;
	memset(&ev, 0xff, sizeof(ev));
	memset(&v, 0xff, sizeof(v));
	memset(vm, 0xff, sizeof(vm));
	ev.vcpu = 0x7fffffff;
	rv_chain_init(&c);
	c.seq = INT64_MAX - 1;
	d = c;
	len = rv_record_line(&c, vm, &ev, &v, line);
	assert_true(len < RV_RECORD_MAX - 1024);
	assert_int_equal(line[len - 1], '\n');
	for (size_t i = 0; i + 1 < len; i++)
		assert_true(line[i] >= 0x20 && line[i] < 0x7f);
	assert_int_equal(rv_chain_check(&d, line, len - 1, NULL), 0);
}

static void test_round_trip(void **state)
{
	char line[RV_RECORD_MAX];
	struct rv_record rec;
	struct rv_chain c;
	struct rv_event ev;
	size_t len;

	(void)state;
	rv_chain_init(&c);
	sample(&ev);
	ev.value = UINT64_MAX; /* above what a JSON integer holds */
	len = rv_record_line(&c, "web1", &ev, &fault, line);
	assert_int_equal(rv_record_parse(line, len - 1, &rec, NULL), 0);
	assert_int_equal(rec.seq, 1);
	assert_string_equal(rec.vm, "web1");
	assert_memory_equal(&rec.ev, &ev, sizeof(ev));
	assert_memory_equal(&rec.verdict, &fault, sizeof(fault));
}

static void post_samples(uint32_t n)
{
	struct rv_journal *j;
	struct rv_event ev;
	uint64_t before;

	assert_int_equal(rv_journal_open(path, "web1", 64, 1000, &j, NULL), 0);
	sample(&ev);
	before = rv_journal_post(j, &ev, &fault);
	assert_true(before > 0);
	for (uint32_t i = 1; i < n; i++)
		assert_int_equal(rv_journal_post(j, &ev, &fault), before + i);
	assert_int_equal(rv_journal_flush(j, NULL), 0);
	assert_int_equal(rv_journal_count(j, RV_EV_WRITE), n);
	assert_int_equal(rv_journal_count(j, RV_EV_START), 0);
	rv_journal_close(j);
}

static void test_continue(void **state)
{
	struct rv_err err;
	struct stat st;
	uint64_t n;

	(void)state;
	post_samples(3);
	assert_int_equal(rv_journal_verify(path, &n, &err), 0);
	assert_int_equal(n, 3);
	post_samples(2);
	assert_int_equal(rv_journal_verify(path, &n, &err), 0);
	assert_int_equal(n, 5);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	unlink(path);
}

static size_t read_back(char *buf, size_t size)
{
	FILE *f = fopen(path, "r");
	size_t n;

	assert_non_null(f);
	n = fread(buf, 1, size, f);
	fclose(f);
	return n;
}

static void put_back(const char *buf, size_t len)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_int_equal(fwrite(buf, 1, len, f), len);
	fclose(f);
}

/* One changed bit anywhere, a line gone, doubled or moved: refused, with the line's number. */
static void test_every_byte(void **state)
{
	char good[8192], bad[8192];
	struct rv_journal *j;
	struct rv_err err;
	size_t len, first;
	uint64_t n, line = 0;

	(void)state;
	post_samples(3);
	len = read_back(good, sizeof(good));
	first = (size_t)((char *)memchr(good, '\n', len) - good) + 1;
	for (size_t i = 0; i < len; i++) {
		char name[32];

		snprintf(name, sizeof(name), "line %llu ", (unsigned long long)line + 1);
		memcpy(bad, good, len);
		bad[i] ^= (char)(1 << (i % 8));
		put_back(bad, len);
		assert_int_equal(rv_journal_verify(path, &n, &err), RV_EBADDATA);
		/* A changed newline joins two lines; the first of them is the bad one. */
		assert_int_equal(n, line);
		assert_non_null(strstr(err.what, name));
		line += good[i] == '\n';
	}
	/* A bad journal is not opened and not touched. */
	assert_int_equal(rv_journal_open(path, "web1", 64, 1, &j, &err), RV_EBADDATA);
	assert_null(j);
	assert_int_equal(read_back(good + 4096, 4096), len);
	assert_memory_equal(good + 4096, bad, len);

	put_back(good + first, len - first);
	assert_int_equal(rv_journal_verify(path, &n, &err), RV_EBADDATA);
	assert_non_null(strstr(err.what, "line 1 the sequence number is not 1"));
	memcpy(bad, good, first);
	memcpy(bad + first, good, len);
	put_back(bad, len + first);
	assert_int_equal(rv_journal_verify(path, &n, &err), RV_EBADDATA);
	assert_int_equal(n, 1);
	unlink(path);
}

static void test_every_truncation(void **state)
{
	static char good[8192];
	struct rv_journal *j;
	struct rv_err err;
	uint64_t n, moved, whole = 0;
	size_t len;

	(void)state;
	post_samples(3);
	len = read_back(good, sizeof(good));
	for (size_t i = 0; i <= len; i++) {
		bool cut = i && good[i - 1] != '\n';

		put_back(good, i);
		assert_int_equal(rv_journal_verify(path, &n, &err), cut ? RV_EBADDATA : 0);
		if (cut) {
			assert_non_null(strstr(err.what, "is torn"));
			assert_non_null(strstr(err.what, "--repair"));
		}
		whole += i && !cut;
		assert_int_equal(n, whole);
	}
	/* Torn in the middle of the third line: refused, repaired, continued. */
	put_back(good, len - 100);
	assert_int_equal(rv_journal_open(path, "web1", 64, 1, &j, &err), RV_EBADDATA);
	assert_int_equal(rv_journal_repair(path, &moved, &err), 0);
	assert_true(moved > 100);
	assert_int_equal(rv_journal_verify(path, &n, &err), 0);
	assert_int_equal(n, 2);
	assert_int_equal(rv_journal_repair(path, &moved, &err), RV_EINVAL);
	post_samples(1);
	assert_int_equal(rv_journal_verify(path, &n, &err), 0);
	assert_int_equal(n, 3);
	/* A changed line is evidence: no repair. */
	good[50] ^= 1;
	put_back(good, len - 100);
	assert_int_equal(rv_journal_repair(path, &moved, &err), RV_EBADDATA);
	assert_int_equal(read_back(good + 4096, 4096), len - 100);
	unlink(path);
	unlink(torn);
}

static void test_refusals(void **state)
{
	struct rv_journal *j, *k;
	struct rv_err err;

	(void)state;
	assert_int_equal(rv_journal_open(NULL, "x", 15, 1, &j, &err), RV_EINVAL);
	assert_int_equal(rv_journal_open(NULL, "x", 65537, 1, &j, &err), RV_EINVAL);
	assert_int_equal(rv_journal_open("/tmp", "x", 16, 1, &j, &err), RV_EOS);
	assert_int_equal(rv_journal_open("/dev/null", "x", 16, 1, &j, &err), RV_EINVAL);
	assert_int_equal(rv_journal_open(path, "x", 16, 1, &j, &err), 0);
	assert_int_equal(rv_journal_open(path, "x", 16, 1, &k, &err), RV_EBUSY);
	rv_journal_close(j);
	rv_journal_close(NULL);
	unlink(path);
}

struct tapped {
	pthread_mutex_t hold;
	uint32_t lines, lost, coalesced, last_value;
};

static void on_line(void *arg, const char *line)
{
	struct tapped *t = arg;
	struct rv_record rec;

	pthread_mutex_lock(&t->hold);
	assert_int_equal(rv_record_parse(line, strlen(line), &rec, NULL), 0);
	t->lines++;
	if (rec.ev.kind == RV_EV_LOST)
		t->lost += (uint32_t)rec.ev.value;
	if (rec.ev.kind == RV_EV_COALESCED)
		t->coalesced += (uint32_t)rec.ev.value;
	pthread_mutex_unlock(&t->hold);
}

/* The writer stands still: posts come back at once, what is dropped is told and numbers have no
 * gap. */
static void test_loss(void **state)
{
	struct tapped t = {.hold = PTHREAD_MUTEX_INITIALIZER};
	struct rv_journal *j;
	struct rv_event ev;
	uint32_t kept = 0;
	uint64_t n;

	(void)state;
	assert_int_equal(rv_journal_open(path, "x", 16, 1000000, &j, NULL), 0);
	rv_journal_tap(j, on_line, &t);
	pthread_mutex_lock(&t.hold);
	for (uint32_t i = 0; i < 1000; i++) {
		sample(&ev);
		kept += rv_journal_post(j, &ev, &fault) != 0;
	}
	assert_true(kept >= 16 && kept <= 18);
	assert_int_equal(rv_journal_lost(j), 1000 - kept);
	pthread_mutex_unlock(&t.hold);
	assert_int_equal(rv_journal_flush(j, NULL), 0);
	assert_int_equal(rv_journal_count(j, RV_EV_WRITE), 1000);
	rv_journal_close(j);
	assert_int_equal(t.lost, 1000 - kept);
	assert_int_equal(rv_journal_verify(path, &n, NULL), 0);
	assert_int_equal(n, t.lines);
	unlink(path);
}

static void test_coalesce(void **state)
{
	struct tapped t = {.hold = PTHREAD_MUTEX_INITIALIZER};
	struct rv_journal *j;
	struct rv_event ev;
	uint32_t written = 0, kills = 0;

	(void)state;
	assert_int_equal(rv_journal_open(NULL, "x", 4096, 4, &j, NULL), 0);
	rv_journal_tap(j, on_line, &t);
	for (uint32_t i = 0; i < 400; i++) {
		struct rv_verdict kill = {RV_ACT_KILL, "r", "r"};

		sample(&ev);
		ev.mono_ns = ev.wall_ns = 0;
		ev.pc += i % 2;
		written += rv_journal_post(j, &ev, &fault) != 0;
		/* What ends the machine is never held back. */
		if (i % 100 == 0)
			kills += rv_journal_post(j, &ev, &kill) != 0;
	}
	rv_journal_close(j);
	assert_int_equal(kills, 4);
	/* 4 a second for each of two sites; the loop may see a second begin. */
	assert_true(written == 8 || written == 12 || written == 16);
	assert_int_equal(t.coalesced, 400 - written);
	/* One count per site, or two: kept small whatever the number of events. */
	assert_true(t.lines <= written + kills + 4);
}

/* The table itself, with a clock that the test turns. */
static void test_flood_table(void **state)
{
	struct rv_flood *f = malloc(sizeof(*f));
	struct rv_flood_slot *slot;
	struct rv_event ev, out;
	uint64_t passed = 0, counted = 0, s = 1000000000u;

	(void)state;
	rv_flood_init(f, 2);
	sample(&ev);
	assert_true(rv_flood_pass(f, &ev, NULL, 0, &slot));
	slot->last_seq = 41;
	assert_true(rv_flood_pass(f, &ev, NULL, 1, &slot));
	slot->last_seq = 42;
	assert_false(rv_flood_pass(f, &ev, NULL, 2, &slot));
	assert_false(rv_flood_take(f, 3, false, &out));
	assert_true(rv_flood_waits(f));
	/* The next second: the count comes out, and then events pass again. */
	assert_true(rv_flood_take(f, s, false, &out));
	assert_int_equal(out.kind, RV_EV_COALESCED);
	assert_int_equal(out.value, 1);
	assert_int_equal(out.ref, 42);
	assert_false(rv_flood_waits(f));
	assert_true(rv_flood_pass(f, &ev, NULL, s, &slot));
	/* Another instruction each time: bounded by kind, and nothing is lost from the count. */
	for (uint64_t i = 0; i < 5000; i++) {
		ev.pc = 0x1000 + i;
		if (rv_flood_pass(f, &ev, NULL, 5 * s, &slot))
			passed++;
	}
	while (rv_flood_take(f, 9 * s, true, &out))
		counted += out.value;
	assert_int_equal(passed, 32);
	assert_int_equal(passed + counted, 5000);
	/* The monitor's own words are never held back. */
	for (uint32_t i = 0; i < 1000; i++) {
		ev.kind = RV_EV_DEGRADE;
		assert_true(rv_flood_pass(f, &ev, NULL, 5 * s, &slot));
	}
	free(f);
}

static void *poster(void *arg)
{
	struct rv_event ev;

	for (uint32_t i = 0; i < 2000; i++) {
		sample(&ev);
		ev.mono_ns = ev.wall_ns = 0;
		ev.kind = RV_EV_ARM;
		(void)rv_journal_post(arg, &ev, NULL);
	}
	return NULL;
}

static void test_threads(void **state)
{
	pthread_t threads[4];
	struct rv_journal *j;
	uint64_t n, lost;

	(void)state;
	assert_int_equal(rv_journal_open(path, "x", 256, 32, &j, NULL), 0);
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, poster, j), 0);
	for (size_t i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(rv_journal_flush(j, NULL), 0);
	assert_int_equal(rv_journal_count(j, RV_EV_ARM), 8000);
	lost = rv_journal_lost(j);
	rv_journal_close(j);
	assert_int_equal(rv_journal_verify(path, &n, NULL), 0);
	assert_true(n >= 8000 - lost && n <= 8000 - lost + 100);
	unlink(path);
}

/* The disk is full: flush says so, the file stays whole, and nothing hangs. */
static void test_disk_full(void **state)
{
	struct rlimit old, small = {2000, 2000};
	struct rv_journal *j;
	struct rv_event ev;
	struct rv_err err;
	uint64_t n;

	(void)state;
	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &old);
	small.rlim_max = old.rlim_max;
	assert_int_equal(rv_journal_open(path, "x", 16, 1000, &j, NULL), 0);
	setrlimit(RLIMIT_FSIZE, &small);
	for (uint32_t i = 0; i < 10; i++) {
		sample(&ev);
		(void)rv_journal_post(j, &ev, &fault);
	}
	assert_int_equal(rv_journal_flush(j, &err), RV_EOS);
	setrlimit(RLIMIT_FSIZE, &old);
	assert_int_equal(rv_journal_verify(path, &n, &err), 0);
	assert_true(n >= 1 && n < 10);
	/* Space comes back: the writer goes on where it stood. */
	for (uint32_t i = 0; i < 50 && rv_journal_flush(j, NULL); i++)
		nanosleep(&(struct timespec){0, 100000000}, NULL);
	rv_journal_close(j);
	assert_int_equal(rv_journal_verify(path, &n, &err), 0);
	assert_int_equal(n, 10);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pinned),
		cmocka_unit_test(test_one_side),
		cmocka_unit_test(test_longest),
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_continue),
		cmocka_unit_test(test_every_byte),
		cmocka_unit_test(test_every_truncation),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_loss),
		cmocka_unit_test(test_coalesce),
		cmocka_unit_test(test_flood_table),
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_disk_full),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
