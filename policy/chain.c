/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chain.c: walk, verify and repair journal files. Reads only, except for the
 * repair, which moves a torn last line away and never touches a whole line.
 */
#include "record.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define WINDOW (64u * 1024u)
_Static_assert(WINDOW > 2 * RV_RECORD_MAX, "a whole line fits into the window");

/* Fill buf behind *len up to WINDOW; 1: end of file, 0: full, negative: failed. */
static int fill(int fd, const char *path, char *buf, size_t *len, struct rv_err *err)
{
	while (*len < WINDOW) {
		ssize_t n = read(fd, buf + *len, WINDOW - *len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return rv_err_os(err, "journal", "%s: read", path);
		if (n == 0)
			return 1;
		*len += (size_t)n;
	}
	return 0;
}

static int line_error(const char *path, uint64_t number, struct rv_err *err)
{
	char what[sizeof(err->what)];

	if (!err)
		return RV_EBADDATA;
	snprintf(what, sizeof(what), "%s", err->what);
	return rv_err_set(err, RV_EBADDATA, "journal", "%s: line %llu %s", path,
			  (unsigned long long)number, what);
}

static int torn_error(const char *path, const struct rv_journal_end *end, size_t rest,
		      struct rv_err *err)
{
	return rv_err_set(err, RV_EBADDATA, "journal",
			  "%s: line %llu is torn: %zu bytes without a newline after the last good "
			  "line; `ravelin events --repair` moves them away",
			  path, (unsigned long long)end->chain.seq + 1, rest);
}

/* Handle each whole line of the window; *used_out is what they took. */
static int lines(const char *path, const char *buf, size_t len, struct rv_journal_end *end,
		 rv_journal_line *fn, void *arg, size_t *used_out, struct rv_err *err)
{
	size_t at = 0;
	int rc;

	for (;;) {
		const char *nl = memchr(buf + at, '\n', len - at);
		size_t n = nl ? (size_t)(nl - buf) - at : 0;

		*used_out = at;
		if (!nl)
			return 0;
		rc = rv_chain_check(&end->chain, buf + at, n, err);
		if (rc)
			return line_error(path, end->chain.seq + 1, err);
		end->good_bytes += n + 1;
		rc = fn ? fn(arg, buf + at, n, &end->chain) : 0;
		if (rc)
			return rc;
		at += n + 1;
	}
}

int rv_journal_walk(int fd, const char *path, struct rv_journal_end *end, rv_journal_line *fn,
		    void *arg, struct rv_err *err)
{
	size_t len = 0, used;
	struct rv_err none;
	char *buf;
	int rc, eof;

	memset(end, 0, sizeof(*end));
	rv_chain_init(&end->chain);
	if (!err)
		err = &none;
	buf = malloc(WINDOW);
	if (!buf)
		return rv_err_set(err, RV_ENOMEM, "journal", "out of memory");
	do {
		eof = rc = fill(fd, path, buf, &len, err);
		if (rc < 0)
			break;
		rc = lines(path, buf, len, end, fn, arg, &used, err);
		if (rc)
			break;
		memmove(buf, buf + used, len - used);
		len -= used;
		end->total_bytes = end->good_bytes + len;
		if (len && eof && len < RV_RECORD_MAX) {
			end->torn = true;
			rc = torn_error(path, end, len, err);
		} else if (len >= RV_RECORD_MAX) {
			rc = rv_err_set(err, RV_EBADDATA, "journal", "is longer than any line");
			rc = line_error(path, end->chain.seq + 1, err);
		}
	} while (!rc && !eof);
	free(buf);
	return rc;
}

static int open_journal(const char *path, int flags, struct rv_err *err)
{
	struct stat st;
	int fd = open(path, flags | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

	if (fd < 0)
		return rv_err_os(err, "journal", "%s: open", path);
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
		close(fd);
		return rv_err_set(err, RV_EINVAL, "journal", "%s: expected a regular file", path);
	}
	return fd;
}

int rv_journal_verify(const char *path, uint64_t *lines_out, struct rv_err *err)
{
	struct rv_journal_end end = {0};
	int fd, rc;

	if (lines_out)
		*lines_out = 0;
	fd = open_journal(path, O_RDONLY, err);
	if (fd < 0)
		return fd;
	rc = rv_journal_walk(fd, path, &end, NULL, NULL, err);
	if (lines_out)
		*lines_out = end.chain.seq;
	close(fd);
	return rc;
}

/* Append the tail of fd from offset to PATH.torn; on disk before the caller cuts it. */
static int save_tail(int fd, const char *path, uint64_t offset, uint64_t len, struct rv_err *err)
{
	char torn[4096], buf[RV_RECORD_MAX];
	ssize_t n, w;
	int out;

	if ((size_t)snprintf(torn, sizeof(torn), "%s.torn", path) >= sizeof(torn))
		return rv_err_set(err, RV_EINVAL, "journal", "%.100s: path too long", path);
	out = open(torn, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
	if (out < 0)
		return rv_err_os(err, "journal", "%s: open", torn);
	n = pread(fd, buf, len < sizeof(buf) ? len : sizeof(buf), (off_t)offset);
	w = n < 0 ? -1 : write(out, buf, (size_t)n);
	if (n < 0 || (uint64_t)n != len || w != n || fsync(out) < 0) {
		rv_err_os(err, "journal", "%s: write", torn);
		close(out);
		return RV_EOS;
	}
	close(out);
	return 0;
}

int rv_journal_repair(const char *path, uint64_t *moved_out, struct rv_err *err)
{
	struct rv_journal_end end;
	uint64_t rest;
	int fd, rc;

	*moved_out = 0;
	fd = open_journal(path, O_RDWR, err);
	if (fd < 0)
		return fd;
	if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		close(fd);
		return rv_err_set(err, RV_EBUSY, "journal", "%s: a monitor is writing it", path);
	}
	rc = rv_journal_walk(fd, path, &end, NULL, NULL, err);
	rest = end.total_bytes - end.good_bytes;
	if (!rc)
		rc = rv_err_set(err, RV_EINVAL, "journal", "%s: nothing to repair", path);
	else if (rc == RV_EBADDATA && end.torn)
		rc = save_tail(fd, path, end.good_bytes, rest, err);
	else if (rc == RV_EBADDATA)
		end.torn = false; /* err names the line: evidence, left as it is */
	if (!rc && (ftruncate(fd, (off_t)end.good_bytes) < 0 || fsync(fd) < 0))
		rc = rv_err_os(err, "journal", "%s: truncate", path);
	if (!rc)
		*moved_out = rest;
	close(fd);
	return rc;
}
