/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ringspeed.c: the tiny guest of proof.h in EL1, translation off (as after reset).
 * The end is a store to where no memory is.
 */
#include "../../proof.h"

#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>

#define NOWHERE 0x09000000u

#define CORE_REG(member) \
	(KVM_REG_ARM64 | KVM_REG_SIZE_U64 | KVM_REG_ARM_CORE | KVM_REG_ARM_CORE_REG(member))

/* 1: subs w0, w0, #1; b.ne 1b; str w1, [x2] */
static const uint32_t loop_code[] = {0x71000400, 0x54ffffe1, 0xb9000041};
/* str x1, [x3]; str w1, [x2] */
static const uint32_t write_code[] = {0xf9000061, 0xb9000041};

/* 40-bit guest physical space where the host has it, else the largest it has. */
unsigned long rv_arch_tiny_type(int kvm_fd)
{
	int bits = ioctl(kvm_fd, KVM_CHECK_EXTENSION, KVM_CAP_ARM_VM_IPA_SIZE);

	return bits > 0 && bits < 40 ? (unsigned long)bits : 0;
}

int rv_arch_tiny_init(struct rv_tiny *t, int kvm_fd, struct rv_err *err)
{
	struct kvm_vcpu_init init;

	(void)kvm_fd;
	if (ioctl(t->vm, KVM_ARM_PREFERRED_TARGET, &init) < 0)
		return rv_err_os(err, "proof", "KVM_ARM_PREFERRED_TARGET");
	if (ioctl(t->vcpu, KVM_ARM_VCPU_INIT, &init) < 0)
		return rv_err_os(err, "proof", "KVM_ARM_VCPU_INIT");
	return 0;
}

static int set_reg(const struct rv_tiny *t, uint64_t id, uint64_t value, struct rv_err *err)
{
	struct kvm_one_reg reg = {.id = id, .addr = (uintptr_t)&value};

	if (ioctl(t->vcpu, KVM_SET_ONE_REG, &reg) < 0)
		return rv_err_os(err, "proof", "KVM_SET_ONE_REG");
	return 0;
}

int rv_arch_tiny_start(struct rv_tiny *t, enum rv_tiny_program program, uint64_t arg,
		       struct rv_err *err)
{
	const uint64_t regs[][2] = {{CORE_REG(regs.regs[0]), arg},
				    {CORE_REG(regs.regs[1]), RV_TINY_BYTE},
				    {CORE_REG(regs.regs[2]), NOWHERE},
				    {CORE_REG(regs.regs[3]), RV_TINY_TARGET},
				    {CORE_REG(regs.pc), RV_TINY_CODE}};
	const void *code = program == RV_TINY_LOOP ? loop_code : write_code;
	size_t size = program == RV_TINY_LOOP ? sizeof(loop_code) : sizeof(write_code);
	int rc = 0;

	memcpy(t->mon + RV_TINY_CODE, code, size);
	/* The guest fetches with translation off, past the data cache. */
	__builtin___clear_cache((char *)t->mon + RV_TINY_CODE,
				(char *)t->mon + RV_TINY_CODE + size);
	for (size_t i = 0; !rc && i < sizeof(regs) / sizeof(regs[0]); i++)
		rc = set_reg(t, regs[i][0], regs[i][1], err);
	return rc;
}

bool rv_arch_tiny_ended(const struct rv_tiny *t)
{
	return t->run->exit_reason == KVM_EXIT_MMIO && t->run->mmio.phys_addr == NOWHERE;
}

int rv_arch_tiny_pc(const struct rv_tiny *t, uint64_t *pc_out)
{
	struct kvm_one_reg reg = {.id = CORE_REG(regs.pc), .addr = (uintptr_t)pc_out};

	if (ioctl(t->vcpu, KVM_GET_ONE_REG, &reg) < 0)
		return rv_err_os(NULL, "proof", "KVM_GET_ONE_REG");
	return 0;
}

void rv_arch_tiny_host_loop(uint32_t turns)
{
	__asm__ volatile("1: subs %w0, %w0, #1\n\tb.ne 1b" : "+r"(turns) : : "cc");
}
