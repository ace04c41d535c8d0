/* SPDX-License-Identifier: Apache-2.0 */
/* chardev_test.c: console back ends: nothing blocks, nothing spins, losses are counted. */
/* unit-sources: vmm/dev/chardev.c vmm/dev/tty.c vmm/dev/unixsock.c */
#include "fake_vm.h"
#include "dev/unixsock.h"

#include <fcntl.h>
#include <pty.h>
#include <signal.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <cmocka.h>

static struct rv_vm *vm;
static char dir[64], path[96], option[128];
static char got[65536];
static size_t got_len, take_max;

static size_t take(void *arg, const void *buf, size_t len)
{
	(void)arg;
	if (len > take_max)
		len = take_max;
	memcpy(got + got_len, buf, len);
	got_len += len;
	take_max -= len;
	return len;
}

static int setup(void **state)
{
	(void)state;
	vm = rv_fake_vm_new();
	snprintf(dir, sizeof(dir), "/tmp/chardev_test.XXXXXX");
	got_len = 0;
	take_max = sizeof(got);
	return mkdtemp(dir) ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	unlink(path);
	rmdir(dir);
	rv_fake_vm_free(vm);
	return 0;
}

static struct rv_chardev *open_at(const char *kind)
{
	struct rv_chardev *c = NULL;

	snprintf(path, sizeof(path), "%s/x", dir);
	snprintf(option, sizeof(option), "%s:%s", kind, path);
	assert_int_equal(rv_chardev_open(vm, option, &c, NULL), RV_OK);
	rv_chardev_on_input(c, take, NULL);
	rv_fake_io_run(vm, 0);
	return c;
}

static void test_options(void **state)
{
	static const char *const bad[] = {
		"", "stdi", "file:", "unix:", "file", "unix:/no/such/dir/s", "file:/no/such/dir/f"};
	struct rv_chardev *c;
	struct rv_err err;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_not_equal(rv_chardev_open(vm, bad[i], &c, &err), RV_OK);
	assert_int_equal(rv_chardev_open(vm, "null", &c, &err), RV_OK);
	rv_chardev_write(c, "gone", 4);
	rv_chardev_kick(c);
	rv_fake_io_run(vm, 0);
	rv_chardev_close(c);
	rv_chardev_close(NULL);
}

static void test_file(void **state)
{
	struct rv_chardev *c = open_at("file");
	char buf[16] = "";
	int fd;

	(void)state;
	rv_chardev_write(c, "one", 3);
	rv_chardev_write(c, "two", 3);
	rv_chardev_close(c);
	fd = open(path, O_RDONLY);
	assert_int_equal(read(fd, buf, sizeof(buf)), 6);
	assert_string_equal(buf, "onetwo");
	close(fd);
}

static void test_unix(void **state)
{
	struct rv_chardev *c = open_at("unix");
	struct stat st;
	char buf[16] = "";
	int fd, second;

	(void)state;
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	rv_chardev_write(c, "nobody", 6);
	for (int round = 0; round < 3; round++) {
		assert_int_equal(rv_unix_connect(path, &fd, NULL), RV_OK);
		rv_fake_io_run(vm, 0);
		assert_int_equal(rv_unix_connect(path, &second, NULL), RV_OK);
		rv_fake_io_run(vm, 0);
		assert_int_equal(read(second, buf, 1), 0);
		close(second);
		rv_chardev_write(c, "hello", 5);
		assert_int_equal(read(fd, buf, sizeof(buf)), 5);
		assert_memory_equal(buf, "hello", 5);
		got_len = 0;
		assert_int_equal(write(fd, "input", 5), 5);
		rv_fake_io_run(vm, 0);
		assert_int_equal(got_len, 5);
		close(fd);
		rv_fake_io_run(vm, 0);
		rv_chardev_write(c, "nobody", 6);
	}
	rv_chardev_close(c);
	assert_int_not_equal(access(path, F_OK), 0);
}

/* A reader that reads nothing: the writer never waits; later everything kept arrives. */
static void test_slow_reader(void **state)
{
	struct rv_chardev *c = open_at("unix");
	static char line[1000];
	size_t total = 0;
	char buf[4096];
	ssize_t n;
	int fd;

	(void)state;
	memset(line, 'x', sizeof(line));
	assert_int_equal(rv_unix_connect(path, &fd, NULL), RV_OK);
	rv_fake_io_run(vm, 0);
	for (int i = 0; i < 2000; i++)
		rv_chardev_write(c, line, sizeof(line));
	for (int i = 0; i < 200; i++) {
		while ((n = read(fd, buf, sizeof(buf))) > 0)
			total += (size_t)n;
		rv_fake_io_run(vm, 0);
	}
	assert_true(total >= 64 << 10);
	assert_true(total < 2000 * sizeof(line));
	rv_chardev_write(c, "end", 3);
	assert_int_equal(read(fd, buf, sizeof(buf)), 3);
	close(fd);
	rv_chardev_close(c);
}

/* A consumer that takes little: nothing is lost, and nothing spins meanwhile. */
static void test_slow_consumer(void **state)
{
	struct rv_chardev *c = open_at("unix");
	char big[1000];
	int fd;

	(void)state;
	for (int i = 0; i < 1000; i++)
		big[i] = (char)i;
	take_max = 0;
	assert_int_equal(rv_unix_connect(path, &fd, NULL), RV_OK);
	rv_fake_io_run(vm, 0);
	assert_int_equal(write(fd, big, sizeof(big)), sizeof(big));
	rv_fake_io_run(vm, 0);
	assert_int_equal(got_len, 0);
	for (int i = 0; got_len < sizeof(big) && i < 2000; i++) {
		take_max = 7;
		rv_chardev_kick(c);
		rv_fake_io_run(vm, 0);
	}
	assert_int_equal(got_len, sizeof(big));
	assert_memory_equal(got, big, sizeof(big));
	/* and a peer that goes while the consumer is full */
	take_max = 0;
	assert_int_equal(write(fd, big, sizeof(big)), sizeof(big));
	rv_fake_io_run(vm, 0);
	close(fd);
	rv_fake_io_run(vm, 0);
	rv_chardev_close(c);
}

static void test_pty(void **state)
{
	struct rv_chardev *c;
	char buf[32] = "";
	int fd;

	(void)state;
	if (rv_chardev_open(vm, "pty", &c, NULL))
		skip();
	rv_chardev_on_input(c, take, NULL);
	rv_fake_io_run(vm, 0);
	assert_int_equal(strncmp(rv_chardev_where(c), "pty /dev/", 9), 0);
	rv_chardev_write(c, "early", 5);
	for (int round = 0; round < 2; round++) {
		fd = open(rv_chardev_where(c) + 4, O_RDWR | O_NOCTTY);
		assert_true(fd >= 0);
		if (!round)
			assert_int_equal(read(fd, buf, sizeof(buf)), 5);
		got_len = 0;
		assert_int_equal(write(fd, "ab\n", 3), 3);
		rv_fake_io_run(vm, 10);
		assert_int_equal(got_len, 3);
		close(fd); /* no hang-up, no spinning */
		rv_fake_io_run(vm, 0);
	}
	for (int i = 0; i < 100000; i++)
		rv_chardev_write(c, "0123456789", 10);
	rv_chardev_close(c);
}

static void test_stale_socket(void **state)
{
	struct rv_chardev *c = open_at("unix"), *d;
	struct rv_err err;
	int fd;

	(void)state;
	assert_int_equal(rv_chardev_open(vm, option, &d, &err), RV_EBUSY);
	rv_chardev_close(c);
	/* a dead one is replaced, a plain file never */
	assert_int_equal(rv_unix_listen(path, &fd, NULL), RV_OK);
	close(fd);
	assert_int_equal(rv_chardev_open(vm, option, &d, &err), RV_OK);
	rv_chardev_close(d);
	fd = open(path, O_CREAT | O_WRONLY, 0600);
	close(fd);
	assert_int_equal(rv_chardev_open(vm, option, &d, &err), RV_EBUSY);
}

/* On a terminal of its own: keys, the escape, and the mode it leaves behind. */
static int stdio_child(void)
{
	struct rv_chardev *c;
	struct termios t;

	if (rv_chardev_open(vm, "stdio", &c, NULL))
		return 1;
	rv_chardev_on_input(c, take, NULL);
	if (tcgetattr(0, &t) || (t.c_lflag & (ICANON | ECHO | ISIG)))
		return 2;
	rv_chardev_write(c, "ready", 5);
	/* SIGTERM of the escape key ends this; the loop is for when it does not come */
	for (int i = 0; i < 500; i++) {
		rv_fake_io_run(vm, 10);
		if (got_len == 5 && memcmp(got, "ab\3\1z", 5))
			return 3;
	}
	return 4;
}

static void test_stdio(void **state)
{
	struct termios before, after;
	int master, slave, status;
	char buf[64] = "";
	pid_t pid;

	(void)state;
	if (openpty(&master, &slave, NULL, NULL, NULL))
		skip();
	assert_int_equal(tcgetattr(slave, &before), 0);
	pid = fork();
	if (!pid) {
		setsid();
		dup2(slave, 0);
		dup2(slave, 1);
		_exit(stdio_child());
	}
	assert_true(read(master, buf, sizeof(buf)) == 5);
	assert_int_equal(write(master, "ab\3\1\1z\1x", 8), 8);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGTERM);
	assert_int_equal(tcgetattr(slave, &after), 0);
	assert_int_equal(before.c_lflag, after.c_lflag);
	assert_int_equal(before.c_iflag, after.c_iflag);
	assert_int_equal(before.c_oflag, after.c_oflag);
	close(master);
	close(slave);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_options),       T(test_file), T(test_unix),	   T(test_slow_reader),
		T(test_slow_consumer), T(test_pty),  T(test_stale_socket), T(test_stdio),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
