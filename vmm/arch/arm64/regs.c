/* SPDX-License-Identifier: Apache-2.0 */
/* regs.c (arm64): single registers, and what the watchdog and the guest view ask of them. */
#include "arm64.h"
#include "arch.h"

#include <string.h>
#include <sys/ioctl.h>

#define INSN_WFI  0xd503207fu
#define INSN_WFIT 0xd5031020u /* wfit xt; Arm ARM, C6.2 */

int rv_arm64_get(int fd, uint64_t id, uint64_t *out)
{
	struct kvm_one_reg reg = {.id = id, .addr = (uintptr_t)out};

	*out = 0;
	return ioctl(fd, KVM_GET_ONE_REG, &reg) ? RV_EOS : 0;
}

int rv_arm64_set(int fd, uint64_t id, uint64_t value)
{
	struct kvm_one_reg reg = {.id = id, .addr = (uintptr_t)&value};

	return ioctl(fd, KVM_SET_ONE_REG, &reg) ? RV_EOS : 0;
}

/*
 * KVM does not say that a vcpu waits for an interrupt: its state stays "runnable". What
 * tells is the instruction that was just left, for KVM has stepped over it by now. The
 * kernel idles in its own image, whose place is known without page tables.
 */
static bool in_wfi(struct rv_vm *vm, uint64_t pc)
{
	const struct rv_boot_plan *p = vm->plan;
	uint64_t off = pc - 4 - (p->info.link_base + p->virt_delta);
	const uint8_t *at;
	uint32_t insn;

	if (off >= p->info.mem_size)
		return false;
	at = rv_mem_ptr(vm, rv_gpa_of(p->phys_base + off), sizeof(insn));
	if (!at)
		return false;
	memcpy(&insn, at, sizeof(insn));
	return insn == INSN_WFI || (insn & ~31u) == INSN_WFIT;
}

int rv_arch_vcpu_pulse(struct rv_vcpu *v, uint64_t *digest, uint64_t *pc, bool *halted)
{
	struct kvm_mp_state mp;
	uint64_t h = 0xcbf29ce484222325ull, w;

	if (ioctl(v->fd, KVM_GET_MP_STATE, &mp) || rv_arm64_get(v->fd, ARM64_PC, pc))
		return RV_EOS;
	/* FNV-1a over whole registers: equality is all that is asked of it. */
	for (uint32_t i = 0; i < 34; i++) { /* x0 to x30, sp_el0, pc, pstate */
		if (rv_arm64_get(v->fd, ARM64_X(i), &w))
			return RV_EOS;
		h = (h ^ w) * 0x100000001b3ull;
	}
	*digest = h;
	*halted = mp.mp_state != KVM_MP_STATE_RUNNABLE || in_wfi(v->vm, *pc);
	return 0;
}

/* ID_AA64MMFR0_EL1.PARange; 7 is 56 bits, which the walker does not know. */
static uint32_t pa_bits(uint64_t mmfr0)
{
	static const uint8_t bits[16] = {32, 36, 40, 42, 44, 48, 52};

	return bits[mmfr0 & 15];
}

/* A register that this host's KVM, or the vcpu, may lack: then it is 0. */
static uint64_t get_if(int fd, uint64_t id)
{
	uint64_t v;

	return rv_arm64_get(fd, id, &v) ? 0 : v;
}

int rv_arm64_paging(struct rv_vcpu *v, struct rv_paging_regs *out)
{
	memset(out, 0, sizeof(*out));
	out->arch = RV_ARCH_ARM64;
	out->pa_bits = pa_bits(v->vm->arch->mmfr0);
	if (rv_arm64_get(v->fd, ARM64_TTBR0, &out->arm64.ttbr0) ||
	    rv_arm64_get(v->fd, ARM64_TTBR1, &out->arm64.ttbr1) ||
	    rv_arm64_get(v->fd, ARM64_TCR, &out->arm64.tcr) ||
	    rv_arm64_get(v->fd, ARM64_SCTLR, &out->arm64.sctlr))
		return RV_EOS;
	out->arm64.tcr2 = get_if(v->fd, ARM64_TCR2);
	out->arm64.pir = get_if(v->fd, ARM64_PIR);
	out->arm64.pire0 = get_if(v->fd, ARM64_PIRE0);
	return 0;
}

int rv_arm64_view_init(struct rv_vm *vm, struct rv_err *err)
{
	struct rv_arch_vm *a = vm->arch;

	for (uint32_t i = 0; i < vm->mem.nram; i++)
		a->regions[i] = (struct rv_region){vm->mem.ram[i].gpa.v, vm->mem.ram[i].len,
						   vm->mem.mon + vm->mem.ram[i].off};
	return rv_source_mapped_init(&a->source, a->regions, vm->mem.nram, err);
}

int rv_arch_vcpu_view(struct rv_vcpu *v, struct rv_paging_regs *paging,
		      struct rv_unwind_regs *unwind, uint64_t *percpu)
{
	uint64_t pstate;

	memset(unwind, 0, sizeof(*unwind));
	if (rv_arm64_paging(v, paging) || rv_arm64_get(v->fd, ARM64_PSTATE, &pstate) ||
	    rv_arm64_get(v->fd, ARM64_PC, &unwind->ip) ||
	    rv_arm64_get(v->fd, ARM64_X(29), &unwind->bp) ||
	    rv_arm64_get(v->fd, ARM64_X(30), &unwind->lr) ||
	    rv_arm64_get(v->fd, ARM64_SP_EL1, &unwind->sp))
		return RV_EOS;
	/* In the kernel SP_EL0 holds the current task, in user mode the user's stack pointer
	 * (arch/arm64/include/asm/current.h). */
	*percpu = 0;
	if (pstate & ARM64_PSTATE_EL && rv_arm64_get(v->fd, ARM64_SP_EL0, percpu))
		return RV_EOS;
	return 0;
}
