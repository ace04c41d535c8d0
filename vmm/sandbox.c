/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sandbox.c: seccomp lists, each call with its user.
 *
 * The lists name what is needed; everything else kills the process, so that a
 * missing entry is found by the first test and not by an attacker's absence.
 */
#include "sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <seccomp.h>
#include <sys/prctl.h>

static const int loader_calls[] = {
	SCMP_SYS(read),
	SCMP_SYS(pread64),
	SCMP_SYS(lseek),
	SCMP_SYS(fstat),	 /* size of the kernel file */
	SCMP_SYS(newfstatat),
	SCMP_SYS(statx),
	SCMP_SYS(close),
	SCMP_SYS(mmap),		 /* buffers */
	SCMP_SYS(munmap),
	SCMP_SYS(mremap),
	SCMP_SYS(mprotect),	 /* malloc's arenas */
	SCMP_SYS(madvise),
	SCMP_SYS(brk),
	SCMP_SYS(getrandom),	 /* the draw of the base */
	SCMP_SYS(clock_gettime), /* where the vDSO does not answer */
	SCMP_SYS(futex),	 /* pthread_once of the decoders */
	SCMP_SYS(sysinfo),	 /* glibc's qsort asks how much memory there is */
	SCMP_SYS(rt_sigreturn),
	SCMP_SYS(exit_group),
	SCMP_SYS(exit),
};

int rv_sandbox_loader(struct rv_err *err)
{
	scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_KILL_PROCESS);
	int rc = 0;

	if (!ctx)
		return rv_err_set(err, RV_ENOMEM, "sandbox", "build the loader's filter");
	for (unsigned i = 0; i < sizeof(loader_calls) / sizeof(loader_calls[0]) && !rc; i++) {
		rc = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, loader_calls[i], 0);
		/* A call that this architecture never had needs no rule. */
		if (rc == -EDOM || rc == -EINVAL)
			rc = 0;
	}
	if (!rc)
		rc = seccomp_load(ctx);
	seccomp_release(ctx);
	if (rc) {
		errno = -rc;
		return rv_err_os(err, "sandbox", "confine the loader process");
	}
	return 0;
}
