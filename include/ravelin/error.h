/* SPDX-License-Identifier: Apache-2.0 */
/*
 * error.h: the cause of a failure, in storage of the caller.
 *
 * The first place that knows the cause fills the struct; layers above hand it
 * up and may change the code they return, nothing else. No allocation.
 */
#ifndef RAVELIN_ERROR_H
#define RAVELIN_ERROR_H

#include <ravelin/types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rv_err {
	int code;	/* enum rv_status */
	int os_errno;	/* errno when code is RV_EOS, else 0 */
	bool has_addr;	/* addr says where: a guest address or a file offset */
	uint64_t addr;
	char where[24]; /* the part of ravelin that speaks: "kallsyms", "mem" */
	char what[200]; /* what was being done and what was expected */
};

/*
 * Fill *err (which may be NULL) and return code, so that a failure is one
 * statement: return rv_err_set(err, RV_EBADDATA, "elf", "...", ...).
 */
int rv_err_set(struct rv_err *err, int code, const char *where, const char *fmt, ...)
	RV_PRINTF(4, 5);

/* The same with an address or file offset. */
int rv_err_at(struct rv_err *err, int code, uint64_t addr, const char *where, const char *fmt,
	      ...) RV_PRINTF(5, 6);

/* The same for a failed system call: code RV_EOS, errno saved on entry. */
int rv_err_os(struct rv_err *err, const char *where, const char *fmt, ...) RV_PRINTF(3, 4);

/*
 * Write "where: what (at 0x..)(: strerror)" to buf, always terminated.
 * Returns buf.
 */
const char *rv_err_str(const struct rv_err *err, char *buf, size_t len);

/* Name of a code ("bad data"); never NULL. */
const char *rv_status_name(int code);

#ifdef __cplusplus
}
#endif
#endif
