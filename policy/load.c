/* SPDX-License-Identifier: Apache-2.0 */
/* load.c: read a policy file that can be trusted: whose it is and who may write it. */
#include "schema.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static int refuse(const char *path, const char *why, rv_policy_report *report, void *arg,
		  struct rv_err *err)
{
	char line[512];

	snprintf(line, sizeof(line), "%s: %s", path, why);
	if (report)
		report(arg, line);
	return rv_err_set(err, RV_EINVAL, "policy", "%s", line);
}

/* Checked on the open descriptor, so that the file checked is the file read. */
static int check_trust(int fd, const char *path, rv_policy_report *report, void *arg,
		       struct rv_err *err)
{
	struct stat st;
	char why[160];
	int bad = 0;

	if (fstat(fd, &st) < 0)
		return rv_err_os(err, "policy", "%s: fstat", path);
	if (!S_ISREG(st.st_mode))
		return refuse(path, "expected a regular file", report, arg, err);
	if (st.st_uid != 0 && st.st_uid != geteuid()) {
		snprintf(why, sizeof(why), "expected owner root or user %u, found user %u",
			 (unsigned)geteuid(), (unsigned)st.st_uid);
		bad = refuse(path, why, report, arg, err);
	}
	if (st.st_mode & (S_IWGRP | S_IWOTH)) {
		snprintf(why, sizeof(why),
			 "expected no write permission for group or others, found mode %04o; "
			 "chmod go-w helps",
			 (unsigned)(st.st_mode & 07777));
		/* err keeps the first problem. */
		bad = refuse(path, why, report, arg, bad ? NULL : err);
	}
	return bad;
}

static int read_all(int fd, const char *path, char *buf, size_t size, size_t *len_out,
		    struct rv_err *err)
{
	size_t len = 0;

	while (len < size) {
		ssize_t n = read(fd, buf + len, size - len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return rv_err_os(err, "policy", "%s: read", path);
		if (n == 0)
			break;
		len += (size_t)n;
	}
	*len_out = len;
	return 0;
}

int rv_policy_load_origins(const char *path, struct rv_policy *out,
			   struct rv_schema_origin *origins, rv_policy_report *report, void *arg,
			   struct rv_err *err)
{
	/* One byte more than allowed, so that the parser sees the excess. */
	const size_t size = RV_POLICY_MAX_BYTES + 1;
	size_t len = 0;
	char *buf;
	int fd, rc;

	/* O_NONBLOCK: a FIFO must not hang the start before it is refused. */
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0)
		return rv_err_os(err, "policy", "%s: open", path);
	rc = check_trust(fd, path, report, arg, err);
	if (rc) {
		close(fd);
		return rc;
	}
	buf = malloc(size);
	if (!buf) {
		close(fd);
		return rv_err_set(err, RV_ENOMEM, "policy", "%s: out of memory", path);
	}
	rc = read_all(fd, path, buf, size, &len, err);
	if (!rc)
		rc = rv_policy_parse_origins(path, buf, len, out, origins, report, arg, err);
	free(buf);
	close(fd);
	return rc;
}

int rv_policy_load(const char *path, struct rv_policy *out, rv_policy_report *report, void *arg,
		   struct rv_err *err)
{
	return rv_policy_load_origins(path, out, NULL, report, arg, err);
}
