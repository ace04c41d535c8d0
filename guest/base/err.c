/* SPDX-License-Identifier: Apache-2.0 */
/* err.c: fill and format struct rv_err; names of the result codes. */
#include <ravelin/error.h>

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static int fill(struct rv_err *err, int code, int os_errno, const uint64_t *addr,
		const char *where, const char *fmt, va_list ap)
{
	if (!err)
		return code;
	memset(err, 0, sizeof(*err));
	err->code = code;
	err->os_errno = os_errno;
	if (addr) {
		err->has_addr = true;
		err->addr = *addr;
	}
	snprintf(err->where, sizeof(err->where), "%s", where);
	vsnprintf(err->what, sizeof(err->what), fmt, ap);
	return code;
}

int rv_err_set(struct rv_err *err, int code, const char *where, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	code = fill(err, code, 0, NULL, where, fmt, ap);
	va_end(ap);
	return code;
}

int rv_err_at(struct rv_err *err, int code, uint64_t addr, const char *where, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	code = fill(err, code, 0, &addr, where, fmt, ap);
	va_end(ap);
	return code;
}

int rv_err_os(struct rv_err *err, const char *where, const char *fmt, ...)
{
	int saved = errno;
	va_list ap;

	va_start(ap, fmt);
	fill(err, RV_EOS, saved, NULL, where, fmt, ap);
	va_end(ap);
	return RV_EOS;
}

const char *rv_status_name(int code)
{
	switch (code) {
	case RV_OK: return "ok";
	case RV_ENOTMAPPED: return "not mapped";
	case RV_ESOURCE: return "source cannot deliver";
	case RV_EBADDATA: return "bad data";
	case RV_EBUDGET: return "budget exhausted";
	case RV_ESTALE: return "stale";
	case RV_ENOSYM: return "no such symbol";
	case RV_EUNSUPPORTED: return "unsupported";
	case RV_EINVAL: return "invalid argument";
	case RV_ENOMEM: return "out of memory";
	case RV_EOS: return "system error";
	case RV_EREFUSED: return "refused";
	case RV_EBUSY: return "busy";
	}
	return "unknown code";
}

const char *rv_err_str(const struct rv_err *err, char *buf, size_t len)
{
	char at[32] = "";
	const char *sep = "", *os = "";

	if (err->has_addr)
		snprintf(at, sizeof(at), " (at 0x%llx)", (unsigned long long)err->addr);
	if (err->os_errno) {
		sep = ": ";
		os = strerror(err->os_errno);
	}
	snprintf(buf, len, "%s: %s%s%s%s", err->where[0] ? err->where : "ravelin",
		 err->what[0] ? err->what : rv_status_name(err->code), at, sep, os);
	return buf;
}
