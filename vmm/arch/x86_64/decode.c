/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decode.c: from an instruction and the registers to the memory it would write.
 *
 * Built on capstone's operands, with two precautions: the "written" flags of capstone 4
 * have gaps (sidt, fxsave, some vector forms), so a memory operand whose direction is
 * not stated counts as written; and implicit stack stores are added here. A store too
 * many costs a look-up, a store too few would let a write pass unexplained.
 */
#include "x86.h"
#include "disasm.h"

#include <string.h>

#define XSAVE_MAX 4096u /* largest area of any known XCR0; SDM vol. 1, 13.1 */

static uint64_t reg_value(x86_reg reg, const struct kvm_regs *r, bool *known)
{
	*known = true;
	switch (reg) {
	case X86_REG_RAX: return r->rax;
	case X86_REG_RBX: return r->rbx;
	case X86_REG_RCX: return r->rcx;
	case X86_REG_RDX: return r->rdx;
	case X86_REG_RSI: return r->rsi;
	case X86_REG_RDI: return r->rdi;
	case X86_REG_RBP: return r->rbp;
	case X86_REG_RSP: return r->rsp;
	case X86_REG_R8: return r->r8;
	case X86_REG_R9: return r->r9;
	case X86_REG_R10: return r->r10;
	case X86_REG_R11: return r->r11;
	case X86_REG_R12: return r->r12;
	case X86_REG_R13: return r->r13;
	case X86_REG_R14: return r->r14;
	case X86_REG_R15: return r->r15;
	case X86_REG_EAX: return (uint32_t)r->rax;
	case X86_REG_EBX: return (uint32_t)r->rbx;
	case X86_REG_ECX: return (uint32_t)r->rcx;
	case X86_REG_EDX: return (uint32_t)r->rdx;
	case X86_REG_ESI: return (uint32_t)r->rsi;
	case X86_REG_EDI: return (uint32_t)r->rdi;
	case X86_REG_EBP: return (uint32_t)r->rbp;
	case X86_REG_ESP: return (uint32_t)r->rsp;
	case X86_REG_R8D: return (uint32_t)r->r8;
	case X86_REG_R9D: return (uint32_t)r->r9;
	case X86_REG_R10D: return (uint32_t)r->r10;
	case X86_REG_R11D: return (uint32_t)r->r11;
	case X86_REG_R12D: return (uint32_t)r->r12;
	case X86_REG_R13D: return (uint32_t)r->r13;
	case X86_REG_R14D: return (uint32_t)r->r14;
	case X86_REG_R15D: return (uint32_t)r->r15;
	case X86_REG_INVALID:
	case X86_REG_RIZ:
	case X86_REG_EIZ: return 0;
	default: *known = false; return 0;
	}
}

static uint64_t segment_base(x86_reg seg, const struct kvm_sregs *s)
{
	/* In 64-bit mode only FS and GS have a base (SDM vol. 1, 3.4.2.1). */
	if (seg == X86_REG_FS)
		return s->fs.base;
	if (seg == X86_REG_GS)
		return s->gs.base;
	return 0;
}

/* Linear address of a memory operand; false where a register is not a plain one
 * (the vector index of a scatter). */
static bool effective(const cs_x86 *x, const cs_x86_op *op, const struct kvm_regs *r,
		      const struct kvm_sregs *s, uint8_t insn_len, uint64_t *out)
{
	bool known, known2;
	uint64_t base, index, a;

	if (op->mem.base == X86_REG_RIP || op->mem.base == X86_REG_EIP) {
		base = r->rip + insn_len;
		known = true;
	} else {
		base = reg_value(op->mem.base, r, &known);
	}
	index = reg_value(op->mem.index, r, &known2);
	if (!known || !known2)
		return false;
	a = base + index * (uint64_t)(int64_t)op->mem.scale + (uint64_t)op->mem.disp;
	if (x->addr_size == 4)
		a = (uint32_t)a;
	*out = a + segment_base(op->mem.segment, s);
	return true;
}

/* Bytes that capstone's operand size does not tell. */
static uint32_t store_size(unsigned id, const cs_x86_op *op)
{
	switch (id) {
	case X86_INS_SIDT:
	case X86_INS_SGDT: return 10;
	case X86_INS_FXSAVE:
	case X86_INS_FXSAVE64: return 512;
	case X86_INS_XSAVE:
	case X86_INS_XSAVE64:
	case X86_INS_XSAVEC:
	case X86_INS_XSAVEC64:
	case X86_INS_XSAVEOPT:
	case X86_INS_XSAVEOPT64:
	case X86_INS_XSAVES:
	case X86_INS_XSAVES64: return XSAVE_MAX;
	case X86_INS_FNSAVE: return 108;
	case X86_INS_FNSTENV: return 28;
	case X86_INS_CMPXCHG16B: return 16;
	case X86_INS_CMPXCHG8B: return 8;
	default: return op->size ? op->size : 8;
	}
}

/* Operands that are addresses or are only read. */
static bool never_stores(unsigned id)
{
	switch (id) {
	case X86_INS_LEA:
	case X86_INS_NOP:
	case X86_INS_CMP:
	case X86_INS_TEST:
	case X86_INS_BT:
	case X86_INS_PREFETCHT0:
	case X86_INS_PREFETCHT1:
	case X86_INS_PREFETCHT2:
	case X86_INS_PREFETCHNTA:
	case X86_INS_PREFETCHW:
	case X86_INS_INVLPG:
	case X86_INS_CLFLUSH: return true;
	default: return false;
	}
}

/* Stores to the stack that no operand shows. */
static uint32_t stack_store(unsigned id, const cs_x86 *x)
{
	switch (id) {
	case X86_INS_PUSH:
	case X86_INS_PUSHFQ: return x->prefix[2] == 0x66 ? 2 : 8;
	case X86_INS_PUSHF: return 2;
	case X86_INS_CALL:
	case X86_INS_ENTER: return 8;
	case X86_INS_LCALL: return 16;
	default: return 0;
	}
}

static bool is_rep(const cs_x86 *x)
{
	return x->prefix[0] == X86_PREFIX_REP || x->prefix[0] == X86_PREFIX_REPNE;
}

static bool is_string(unsigned id)
{
	switch (id) {
	case X86_INS_MOVSB:
	case X86_INS_MOVSW:
	case X86_INS_MOVSD:
	case X86_INS_MOVSQ:
	case X86_INS_STOSB:
	case X86_INS_STOSW:
	case X86_INS_STOSD:
	case X86_INS_STOSQ:
	case X86_INS_INSB:
	case X86_INS_INSW:
	case X86_INS_INSD: return true;
	default: return false;
	}
}

static void add(struct rv_x86_insn *out, uint64_t va, uint32_t len)
{
	if (out->nstores < sizeof(out->store) / sizeof(out->store[0]))
		out->store[out->nstores++] = (struct rv_x86_store){va, len};
}

int rv_x86_decode(const uint8_t *bytes, size_t n, const struct kvm_regs *r,
		  const struct kvm_sregs *s, struct rv_x86_insn *out, struct rv_err *err)
{
	struct rv_insn in;
	const cs_x86 *x;
	uint32_t stack;
	bool blind = false;
	int rc;

	memset(out, 0, sizeof(*out));
	rc = rv_insn_decode(RV_ARCH_X86_64, bytes, n, r->rip, &in, err);
	if (rc)
		return rc;
	out->len = in.len;
	snprintf(out->text, sizeof(out->text), "%.95s", in.text);
	if (!in.cs->detail)
		return rv_err_at(err, RV_EUNSUPPORTED, r->rip, "decode", "no operand details");
	x = &in.cs->detail->x86;
	out->rep = is_rep(x) && is_string(in.cs->id);
	for (uint8_t i = 0; i < x->op_count && !never_stores(in.cs->id); i++) {
		const cs_x86_op *op = &x->operands[i];
		uint64_t va;

		if (op->type != X86_OP_MEM)
			continue;
		if (op->access == CS_AC_READ && !(is_string(in.cs->id) && i == 0))
			continue;
		if (!effective(x, op, r, s, in.len, &va)) {
			blind = true;
			continue;
		}
		add(out, va, store_size(in.cs->id, op));
	}
	stack = stack_store(in.cs->id, x);
	if (stack)
		add(out, r->rsp - stack, stack);
	if (blind || !out->nstores)
		return rv_err_at(err, RV_EUNSUPPORTED, r->rip, "decode",
				 "the stores of \"%.80s\" are not known", in.text);
	return 0;
}
