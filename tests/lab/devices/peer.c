/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peer.c: the far end of a vsock connection or a console, in the guest or on the host.
 *
 *   peer vlisten PORT              vsock: accept, echo until the end; four connections
 *   peer vconnect CID PORT BYTES   vsock: send BYTES, expect them back
 *   peer uecho PATH N              unix: accept N times, echo
 *   peer uconnect PATH PORT BYTES  unix: "CONNECT PORT", then as vconnect
 *   peer chat PATH TEXT EXPECT     unix: send TEXT until EXPECT is read
 */
#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>
#include <linux/vm_sockets.h>

static int die(const char *what)
{
	fprintf(stderr, "peer: %s: %s\n", what, strerror(errno));
	return 1;
}

static uint8_t pattern(uint64_t i)
{
	return (uint8_t)(i * 131 + (i >> 8) * 17 + (i >> 16));
}

static int echo(int fd)
{
	static char buf[65536];
	ssize_t n, w;

	while ((n = read(fd, buf, sizeof(buf))) > 0)
		for (ssize_t done = 0; done < n; done += w)
			if ((w = write(fd, buf + done, (size_t)(n - done))) <= 0)
				return die("echo: write");
	if (n < 0)
		return die("echo: read");
	close(fd);
	return 0;
}

/* Sends and reads at the same time, so that both directions are full. */
static int exchange(int fd, uint64_t total)
{
	static uint8_t out[40000], in[40000];
	uint64_t sent = 0, got = 0;

	while (got < total) {
		struct pollfd p = {.fd = fd, .events = POLLIN | (sent < total ? POLLOUT : 0)};
		ssize_t n;

		if (poll(&p, 1, 60000) <= 0) {
			fprintf(stderr, "peer: stuck at %llu sent, %llu read of %llu\n",
				(unsigned long long)sent, (unsigned long long)got,
				(unsigned long long)total);
			return 1;
		}
		if (p.revents & POLLOUT) {
			size_t len = total - sent < sizeof(out) ? (size_t)(total - sent) : sizeof(out);

			for (size_t i = 0; i < len; i++)
				out[i] = pattern(sent + i);
			n = send(fd, out, len, MSG_DONTWAIT | MSG_NOSIGNAL);
			if (n < 0 && errno != EAGAIN)
				return die("send");
			sent += n > 0 ? (uint64_t)n : 0;
		}
		if (p.revents & (POLLIN | POLLHUP)) {
			n = recv(fd, in, sizeof(in), MSG_DONTWAIT);
			if (n == 0 || (n < 0 && errno != EAGAIN))
				return die("recv");
			for (ssize_t i = 0; i < n; i++)
				if (in[i] != pattern(got + (uint64_t)i)) {
					fprintf(stderr, "peer: wrong byte at %llu\n",
						(unsigned long long)(got + (uint64_t)i));
					return 1;
				}
			got += n > 0 ? (uint64_t)n : 0;
		}
	}
	shutdown(fd, SHUT_WR);
	/* The echo ends, and so must this. */
	if (read(fd, in, 1) != 0)
		return die("no end of stream");
	printf("peer: %llu bytes came back\n", (unsigned long long)total);
	return 0;
}

static int vsock(uint32_t cid, uint32_t port, int listening)
{
	struct sockaddr_vm a = {.svm_family = AF_VSOCK, .svm_cid = cid, .svm_port = port};
	int fd = socket(AF_VSOCK, SOCK_STREAM, 0);

	if (fd < 0)
		return -1;
	if (listening ? bind(fd, (void *)&a, sizeof(a)) || listen(fd, 8)
		      : connect(fd, (void *)&a, sizeof(a))) {
		close(fd);
		return -1;
	}
	return fd;
}

static int unix_sock(const char *path, int listening)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	snprintf(a.sun_path, sizeof(a.sun_path), "%s", path);
	if (listening ? bind(fd, (void *)&a, sizeof(a)) || listen(fd, 8)
		      : connect(fd, (void *)&a, sizeof(a))) {
		close(fd);
		return -1;
	}
	return fd;
}

static int serve(int lfd, int n)
{
	for (; n > 0; n--) {
		int fd = accept(lfd, NULL, NULL);

		if (fd < 0)
			return die("accept");
		if (echo(fd))
			return 1;
	}
	return 0;
}

static int uconnect(const char *path, const char *port, uint64_t total)
{
	char line[64];
	size_t n = 0;
	int fd = unix_sock(path, 0);

	if (fd < 0)
		return die(path);
	snprintf(line, sizeof(line), "CONNECT %s\n", port);
	if (write(fd, line, strlen(line)) < 0)
		return die("CONNECT");
	while (n < sizeof(line) - 1 && read(fd, line + n, 1) == 1 && line[n++] != '\n')
		;
	line[n] = 0;
	if (strncmp(line, "OK ", 3)) {
		fprintf(stderr, "peer: refused: %s\n", line);
		return 1;
	}
	return exchange(fd, total);
}

static int chat(const char *path, const char *text, const char *expect)
{
	static char got[65536];
	size_t n = 0;
	int fd = unix_sock(path, 0);

	if (fd < 0)
		return die(path);
	for (int i = 0; i < 100; i++) {
		struct pollfd p = {.fd = fd, .events = POLLIN};

		if (write(fd, text, strlen(text)) < 0 || write(fd, "\n", 1) < 0)
			return die("write");
		while (poll(&p, 1, 1000) > 0 && n < sizeof(got) - 1) {
			ssize_t r = read(fd, got + n, sizeof(got) - 1 - n);

			if (r <= 0)
				return die("chat ended");
			n += (size_t)r;
			got[n] = 0;
			if (strstr(got, expect))
				return 0;
		}
	}
	fprintf(stderr, "peer: no answer, got: %s\n", got);
	return 1;
}

int main(int argc, char **argv)
{
	const char *cmd = argc > 1 ? argv[1] : "";
	int fd;

	if (!strcmp(cmd, "vlisten") && argc == 3) {
		fd = vsock(VMADDR_CID_ANY, (uint32_t)atol(argv[2]), 1);
		return fd < 0 ? die("vsock listen") : serve(fd, 4);
	}
	if (!strcmp(cmd, "vconnect") && argc == 5) {
		fd = vsock((uint32_t)atol(argv[2]), (uint32_t)atol(argv[3]), 0);
		return fd < 0 ? die("vsock connect") : exchange(fd, strtoull(argv[4], NULL, 0));
	}
	if (!strcmp(cmd, "uecho") && argc == 4) {
		fd = unix_sock(argv[2], 1);
		return fd < 0 ? die(argv[2]) : serve(fd, atoi(argv[3]));
	}
	if (!strcmp(cmd, "uconnect") && argc == 5)
		return uconnect(argv[2], argv[3], strtoull(argv[4], NULL, 0));
	if (!strcmp(cmd, "chat") && argc == 5)
		return chat(argv[2], argv[3], argv[4]);
	fprintf(stderr, "usage: see peer.c\n");
	return 2;
}
