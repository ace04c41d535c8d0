/* SPDX-License-Identifier: Apache-2.0 */
/* gate.c (arm64): no gate yet, so no seal: said, and refused where it is required. */
#include "arch.h"

int rv_arch_gate_install(struct rv_vm *vm, struct rv_err *err)
{
	(void)vm;
	return rv_err_set(err, RV_EUNSUPPORTED, "gate", "not supported on arm64 yet");
}

int rv_arch_gate_arm(struct rv_vm *vm, struct rv_err *err)
{
	(void)vm;
	return rv_err_set(err, RV_EUNSUPPORTED, "gate", "not supported on arm64 yet");
}
