/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decode.c: from an instruction and the registers to the memory it would write.
 *
 * Built on capstone's operands. Its read/write flags are not used: in version 4 they call
 * dozens of stores reads (movnti, movbe, cmpxchg, rol, seta, movdqa, nearly every VEX and
 * EVEX form). The encoding knows better: an x86 instruction that stores through an
 * operand has it first, so a memory operand in first place counts as written, except for
 * the closed list of those that only read it. Implicit stores are added by hand. A store
 * too many costs a look-up, a store too few would let a write pass unexplained.
 */
#include "x86.h"
#include "disasm.h"

#include <string.h>

#define XSAVE_MAX 11264u /* largest area of any known XCR0, AMX tiles included: 11008 */
#define REX_W	  8u

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
	case X86_REG_AX: return (uint16_t)r->rax;
	case X86_REG_BX: return (uint16_t)r->rbx;
	case X86_REG_CX: return (uint16_t)r->rcx;
	case X86_REG_DX: return (uint16_t)r->rdx;
	case X86_REG_SI: return (uint16_t)r->rsi;
	case X86_REG_DI: return (uint16_t)r->rdi;
	case X86_REG_BP: return (uint16_t)r->rbp;
	case X86_REG_SP: return (uint16_t)r->rsp;
	case X86_REG_R8W: return (uint16_t)r->r8;
	case X86_REG_R9W: return (uint16_t)r->r9;
	case X86_REG_R10W: return (uint16_t)r->r10;
	case X86_REG_R11W: return (uint16_t)r->r11;
	case X86_REG_R12W: return (uint16_t)r->r12;
	case X86_REG_R13W: return (uint16_t)r->r13;
	case X86_REG_R14W: return (uint16_t)r->r14;
	case X86_REG_R15W: return (uint16_t)r->r15;
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

static bool is_bit_string(unsigned id)
{
	return id == X86_INS_BTS || id == X86_INS_BTR || id == X86_INS_BTC;
}

/*
 * What the address differs by from base + index * scale + displacement. The bit number
 * of bts and its kin is signed and reaches beyond the operand when it comes from a
 * register (SDM vol. 2, "Bit(BitBase, BitOffset)"); pop into memory computes its address
 * after it has moved the stack pointer.
 */
static uint64_t adjust(unsigned id, const cs_x86 *x, const cs_x86_op *op, const struct kvm_regs *r,
		       bool *known)
{
	uint64_t bit;

	*known = true;
	if (id == X86_INS_POP && (op->mem.base == X86_REG_RSP || op->mem.base == X86_REG_ESP))
		return op->size;
	if (!is_bit_string(id) || x->op_count < 2 || x->operands[1].type != X86_OP_REG)
		return 0;
	bit = reg_value(x->operands[1].reg, r, known);
	switch (op->size) {
	case 2: return (uint64_t)((int64_t)(int16_t)bit >> 4) * 2;
	case 4: return (uint64_t)((int64_t)(int32_t)bit >> 5) * 4;
	default: return (uint64_t)((int64_t)bit >> 6) * 8;
	}
}

/* Linear address of a memory operand; false where a register is not a plain one. */
static bool effective(unsigned id, const cs_x86 *x, const cs_x86_op *op, const struct kvm_regs *r,
		      const struct kvm_sregs *s, uint8_t insn_len, uint64_t *out)
{
	bool known, known2, known3;
	uint64_t base, index, a;

	if (op->mem.base == X86_REG_RIP || op->mem.base == X86_REG_EIP) {
		base = r->rip + insn_len;
		known = true;
	} else {
		base = reg_value(op->mem.base, r, &known);
	}
	index = reg_value(op->mem.index, r, &known2);
	a = base + index * (uint64_t)(int64_t)op->mem.scale + (uint64_t)op->mem.disp +
	    adjust(id, x, op, r, &known3);
	if (!known || !known2 || !known3)
		return false;
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
	case X86_INS_FNSTSW:
	case X86_INS_FNSTCW: return 2;
	case X86_INS_CMPXCHG16B: return 16;
	case X86_INS_CMPXCHG8B: return 8;
#if CS_API_MAJOR >= 5
	/* Tokens of the shadow stack (SDM vol. 2): capstone says four. */
	case X86_INS_CLRSSBSY:
	case X86_INS_RSTORSSP: return 8;
#endif
	default: return op->size ? op->size : 8;
	}
}

/* A memory operand in first place that is only read, or only an address. */
static bool never_stores(unsigned id)
{
	switch (id) {
	case X86_INS_NOP:
	case X86_INS_CMP:
	case X86_INS_TEST:
	case X86_INS_BT:
	case X86_INS_CMPSB:
	case X86_INS_CMPSW:
	case X86_INS_CMPSD:
	case X86_INS_CMPSQ:
	case X86_INS_PUSH:
	case X86_INS_CALL:
	case X86_INS_LCALL:
	case X86_INS_JMP:
	case X86_INS_LJMP:
	case X86_INS_MUL:
	case X86_INS_IMUL:
	case X86_INS_DIV:
	case X86_INS_IDIV:
	case X86_INS_PREFETCH:
	case X86_INS_PREFETCHT0:
	case X86_INS_PREFETCHT1:
	case X86_INS_PREFETCHT2:
	case X86_INS_PREFETCHNTA:
	case X86_INS_PREFETCHW:
	case X86_INS_INVLPG:
	case X86_INS_CLFLUSH:
	case X86_INS_CLFLUSHOPT:
	case X86_INS_CLWB:
	case X86_INS_LGDT:
	case X86_INS_LIDT:
	case X86_INS_LLDT:
	case X86_INS_LTR:
	case X86_INS_LMSW:
	case X86_INS_VERR:
	case X86_INS_VERW:
	case X86_INS_FADD:
	case X86_INS_FIADD:
	case X86_INS_FSUB:
	case X86_INS_FSUBR:
	case X86_INS_FISUB:
	case X86_INS_FISUBR:
	case X86_INS_FMUL:
	case X86_INS_FIMUL:
	case X86_INS_FDIV:
	case X86_INS_FDIVR:
	case X86_INS_FIDIV:
	case X86_INS_FIDIVR:
	case X86_INS_FCOM:
	case X86_INS_FCOMP:
	case X86_INS_FICOM:
	case X86_INS_FICOMP:
	case X86_INS_FLD:
	case X86_INS_FILD:
	case X86_INS_FBLD:
	case X86_INS_FLDCW:
	case X86_INS_FLDENV:
	case X86_INS_FRSTOR:
	case X86_INS_FXRSTOR:
	case X86_INS_FXRSTOR64:
	case X86_INS_XRSTOR:
	case X86_INS_XRSTOR64:
	case X86_INS_XRSTORS:
	case X86_INS_XRSTORS64:
	case X86_INS_LDMXCSR:
	case X86_INS_VLDMXCSR:
	case X86_INS_VMPTRLD:
	case X86_INS_VMXON: return true;
	default: return false;
	}
}

/* One store for each element, at places that a vector register holds (capstone shows
 * the index as a general register of the same number). */
static bool is_scatter(unsigned id)
{
	switch (id) {
	case X86_INS_VPSCATTERDD:
	case X86_INS_VPSCATTERDQ:
	case X86_INS_VPSCATTERQD:
	case X86_INS_VPSCATTERQQ:
	case X86_INS_VSCATTERDPD:
	case X86_INS_VSCATTERDPS:
	case X86_INS_VSCATTERQPD:
	case X86_INS_VSCATTERQPS: return true;
	default: return false;
	}
}

/* Bytes stored through rdi by an instruction that names no memory operand. */
static uint32_t rdi_store(unsigned id)
{
	switch (id) {
	case X86_INS_MASKMOVQ: return 8;
	case X86_INS_MASKMOVDQU:
	case X86_INS_VMASKMOVDQU: return 16;
	default: return 0;
	}
}

/* Bytes stored below the stack pointer that no operand shows. */
static uint32_t stack_store(unsigned id, const cs_x86 *x)
{
	bool wide = x->rex & REX_W, narrow = x->prefix[2] == X86_PREFIX_OPSIZE;
	uint32_t level;

	switch (id) {
	case X86_INS_PUSH:
	case X86_INS_PUSHF:
	case X86_INS_PUSHFQ: return narrow && !wide ? 2 : 8;
	case X86_INS_CALL: return 8;
	case X86_INS_LCALL: return wide ? 16 : narrow ? 4 : 8;
	case X86_INS_ENTER:
		/* The saved rbp and the display; then the CPU tries the new top of the
		 * stack for writing (SDM vol. 2, ENTER). */
		level = x->op_count > 1 ? (uint32_t)x->operands[1].imm & 31 : 0;
		return 8 * (level + 1) + (x->op_count ? (uint32_t)x->operands[0].imm & 0xffff : 0);
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

/* Stores that no operand shows. */
static void add_implicit(unsigned id, const cs_x86 *x, const struct kvm_regs *r,
			 const struct kvm_sregs *s, struct rv_x86_insn *out)
{
	uint32_t stack = stack_store(id, x), len = rdi_store(id);
	uint64_t rdi = x->addr_size == 4 ? (uint32_t)r->rdi : r->rdi;

	if (stack)
		add(out, r->rsp - stack, stack);
	if (!len)
		return;
	if (x->prefix[1] == X86_PREFIX_FS)
		rdi += s->fs.base;
	else if (x->prefix[1] == X86_PREFIX_GS)
		rdi += s->gs.base;
	add(out, rdi, len);
}

/* A register as data: in addresses the byte registers do not occur. */
static uint64_t data_value(x86_reg reg, const struct kvm_regs *r, bool *known)
{
	*known = true;
	switch (reg) {
	case X86_REG_AH: return r->rax >> 8;
	case X86_REG_BH: return r->rbx >> 8;
	case X86_REG_CH: return r->rcx >> 8;
	case X86_REG_DH: return r->rdx >> 8;
	case X86_REG_AL: return r->rax;
	case X86_REG_BL: return r->rbx;
	case X86_REG_CL: return r->rcx;
	case X86_REG_DL: return r->rdx;
	case X86_REG_SIL: return r->rsi;
	case X86_REG_DIL: return r->rdi;
	case X86_REG_BPL: return r->rbp;
	case X86_REG_SPL: return r->rsp;
	case X86_REG_R8B: return r->r8;
	case X86_REG_R9B: return r->r9;
	case X86_REG_R10B: return r->r10;
	case X86_REG_R11B: return r->r11;
	case X86_REG_R12B: return r->r12;
	case X86_REG_R13B: return r->r13;
	case X86_REG_R14B: return r->r14;
	case X86_REG_R15B: return r->r15;
	default: return reg_value(reg, r, known);
	}
}

/* The operand whose value a plain store writes: its number, or -1. */
static int data_operand(unsigned id, const cs_x86 *x)
{
	switch (id) {
	case X86_INS_MOV:
	case X86_INS_MOVABS:
	case X86_INS_MOVNTI:
	case X86_INS_MOVBE:
	case X86_INS_XCHG: return x->op_count == 2 ? 1 : -1;
	case X86_INS_PUSH: return x->op_count == 1 ? 0 : -1;
	case X86_INS_STOSB:
	case X86_INS_STOSW:
	case X86_INS_STOSD:
	case X86_INS_STOSQ: return 1;
	default: return -1;
	}
}

static void find_data(unsigned id, const cs_x86 *x, const struct kvm_regs *r,
		      struct rv_x86_insn *out)
{
	int n = data_operand(id, x);
	uint32_t len = out->store[0].len;
	uint64_t value;
	bool known;

	if (!out->nstores || len > sizeof(out->data))
		return;
	if (id == X86_INS_CALL) {
		value = r->rip + out->len;
	} else if (n < 0 || n >= x->op_count) {
		return;
	} else if (x->operands[n].type == X86_OP_IMM) {
		value = (uint64_t)x->operands[n].imm;
	} else if (x->operands[n].type == X86_OP_REG) {
		value = data_value(x->operands[n].reg, r, &known);
		if (!known)
			return;
	} else {
		return;
	}
	for (uint32_t i = 0; i < len; i++)
		out->data[id == X86_INS_MOVBE ? len - 1 - i : i] = (uint8_t)(value >> (8 * i));
	out->ndata = (uint8_t)len;
}

int rv_x86_decode(const uint8_t *bytes, size_t n, const struct kvm_regs *r,
		  const struct kvm_sregs *s, struct rv_x86_insn *out, struct rv_err *err)
{
	struct rv_insn in;
	const cs_x86 *x;
	unsigned id;
	int rc;

	memset(out, 0, sizeof(*out));
	if (!s->cs.l)
		return rv_err_at(err, RV_EUNSUPPORTED, r->rip, "decode", "not 64-bit code");
	rc = rv_insn_decode(RV_ARCH_X86_64, bytes, n, r->rip, &in, err);
	if (rc)
		return rc;
	id = in.cs->id;
	out->len = in.len;
	out->pushes_flags = id == X86_INS_PUSHF || id == X86_INS_PUSHFQ;
	snprintf(out->text, sizeof(out->text), "%.95s", in.text);
	if (!in.cs->detail)
		return rv_err_at(err, RV_EUNSUPPORTED, r->rip, "decode", "no operand details");
	x = &in.cs->detail->x86;
	out->rep = is_rep(x) && is_string(id);
	if (x->op_count && x->operands[0].type == X86_OP_MEM && !never_stores(id) &&
	    !is_scatter(id)) {
		uint64_t va;

		if (effective(id, x, &x->operands[0], r, s, in.len, &va))
			add(out, va, store_size(id, &x->operands[0]));
	}
	add_implicit(id, x, r, s, out);
	find_data(id, x, r, out);
	if (!out->nstores)
		return rv_err_at(err, RV_EUNSUPPORTED, r->rip, "decode",
				 "the stores of \"%.80s\" are not known", in.text);
	return 0;
}
