/* SPDX-License-Identifier: Apache-2.0 */
/* exit.c (arm64): power events, accesses that the processor does not describe. */
#include "arm64.h"
#include "arch.h"

#include <string.h>
#include <sys/ioctl.h>

/* Arm ARM, D24.2.40, ISS encoding for an exception from a Data Abort. */
#define ISS_WNR (1ull << 6)
#define ISS_CM	(1ull << 8)

static void system_event(struct rv_vm *vm, struct rv_vcpu *v)
{
	switch (v->run->system_event.type) {
	case KVM_SYSTEM_EVENT_SHUTDOWN:
		rv_vm_end(vm, RV_END_POWEROFF, "the guest switched itself off");
		break;
	case KVM_SYSTEM_EVENT_RESET:
		rv_vm_end(vm, RV_END_REBOOT, "the guest asked for a reset");
		break;
	default:
		rv_vm_end(vm, RV_END_CRASH, "vcpu %u: system event %u", v->index,
			  v->run->system_event.type);
	}
}

/* A synchronous external abort at the instruction: the guest's own bus error. */
bool rv_arm64_bus_error(struct rv_vm *vm, struct rv_vcpu *v)
{
	struct kvm_vcpu_events ev;

	memset(&ev, 0, sizeof(ev));
	ev.exception.ext_dabt_pending = 1;
	return vm->arch->ext_dabt && !ioctl(v->fd, KVM_SET_VCPU_EVENTS, &ev);
}

/*
 * A load or store to where no memory is, by an instruction whose syndrome says nothing
 * (pairs, vectors, write-back): what a device register would answer is not known.
 */
static void no_syndrome(struct rv_vm *vm, struct rv_vcpu *v)
{
	uint64_t gpa = v->run->arm_nisv.fault_ipa, iss = v->run->arm_nisv.esr_iss;

	/* The address is good to a page; cache maintenance there finds nothing to do, and KVM
	 * does not bring it here. */
	if ((iss & ISS_WNR) && !(iss & ISS_CM) && rv_arm64_hole_store(vm, v, gpa))
		return;
	if (!rv_arm64_bus_error(vm, v))
		rv_vm_end(vm, RV_END_CRASH,
			  "vcpu %u: an access to 0x%llx, where no memory is, cannot be answered",
			  v->index, (unsigned long long)gpa);
}

bool rv_arch_exit(struct rv_vm *vm, struct rv_vcpu *v)
{
	switch (v->run->exit_reason) {
	case KVM_EXIT_SYSTEM_EVENT: system_event(vm, v); return true;
	case KVM_EXIT_ARM_NISV: no_syndrome(vm, v); return true;
	case KVM_EXIT_DEBUG: return true;
	default: return false;
	}
}
