/* SPDX-License-Identifier: Apache-2.0 */
/* caps.c: KVM capabilities that only arm64 has, and hints about its hosts. */
#include "../../caps.h"

#include <linux/kvm.h>

const struct rv_cap rv_arch_caps[] = {
	{"KVM_CAP_ONE_REG", KVM_CAP_ONE_REG, NULL, 1, RV_CAP_REQUIRED, "registers of processors",
	 "no machine can be built"},
	{"KVM_CAP_DEVICE_CTRL", KVM_CAP_DEVICE_CTRL, NULL, 1, RV_CAP_REQUIRED,
	 "interrupt controller", "no machine can be built"},
	{"KVM_CAP_ARM_PSCI_0_2", KVM_CAP_ARM_PSCI_0_2, NULL, 1, RV_CAP_REQUIRED,
	 "start and stop of processors", "the guest has one processor and cannot power off"},
	{"KVM_CAP_ARM_VM_IPA_SIZE", KVM_CAP_ARM_VM_IPA_SIZE, NULL, 32, RV_CAP_WANTED,
	 "large guest physical spaces", "guests are bound to 40-bit addresses"},
	{"KVM_CAP_ARM_NISV_TO_USER", KVM_CAP_ARM_NISV_TO_USER, NULL, 1, RV_CAP_REQUIRED,
	 "stray accesses that the processor does not describe", "they end the machine"},
	{"KVM_CAP_ARM_INJECT_EXT_DABT", KVM_CAP_ARM_INJECT_EXT_DABT, NULL, 1, RV_CAP_WANTED,
	 "bus errors given to the guest",
	 "a stray access that the processor does not describe ends the machine"},
	{NULL, 0, NULL, 0, RV_CAP_UNUSED, NULL, NULL},
};

/* Not told by /proc/cpuinfo: only the boot messages say whether EL2 was there. */
int rv_arch_cpu_virt(void)
{
	return -1;
}

const char *rv_arch_kvm_module(void)
{
	return "kvm (built into most kernels; the firmware must enter the kernel in EL2)";
}
