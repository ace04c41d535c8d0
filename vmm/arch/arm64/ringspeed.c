/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ringspeed.c: proofs by a tiny guest. Not there for arm64 yet; says so, so that
 * `ravelin doctor` reports "not measured" instead of success.
 */
#include "../../caps.h"

#include <string.h>

int rv_arch_ring_speed(int kvm_fd, struct rv_ring_speed *out, struct rv_err *err)
{
	(void)kvm_fd;
	memset(out, 0, sizeof(*out));
	return rv_err_set(err, RV_EUNSUPPORTED, "doctor", "kernel-mode speed: no proof for arm64");
}

int rv_arch_write_proof(int kvm_fd, struct rv_write_proof *out, struct rv_err *err)
{
	(void)kvm_fd;
	memset(out, 0, sizeof(*out));
	return rv_err_set(err, RV_EUNSUPPORTED, "doctor", "write protection: no proof for arm64");
}
