/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decode.h: what one A64 instruction writes to memory, from its word and the registers.
 *
 * A write to protected memory leaves KVM with no more than the program counter, and
 * often less than the truth (a page-crossing store names its second page only), so the
 * monitor works the store out itself. Knows no KVM and touches no guest memory: the
 * same word and registers give the same answer, on every host. (Text for a journal line
 * is guest/disasm.h's.)
 */
#ifndef RV_VMM_ARM64_DECODE_H
#define RV_VMM_ARM64_DECODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Protection is by pages of this size, whatever the guest's granule is; bytes. */
#define RV_ARM64_PAGE 4096u

enum rv_arm64_kind {
	/*
	 * The word is no store, or not one that we know: it may be any. Nothing that
	 * follows from "not a store" may be concluded.
	 */
	RV_ARM64_UNKNOWN = 0,
	/* A load, a prefetch, or nothing that touches memory. Also a set or copy that has
	 * nothing left to do. */
	RV_ARM64_NOT_A_STORE,
	RV_ARM64_STORE,
	/* DC and IC by address. The processor may report it as a write (Arm ARM, ESR_ELx:
	 * WnR is 1 with CM 1); it changes no byte. va is where, len is 1: the caller knows
	 * the line size. */
	RV_ARM64_CACHE,
};

/* What the instruction sees; plain data. */
struct rv_arm64_regs {
	uint64_t x[31];
	uint64_t sp;	 /* the one that PSTATE.SP selects */
	uint64_t pc;	 /* of the instruction */
	uint64_t pstate; /* as SPSR has it */
	uint64_t dczid;	 /* DCZID_EL0: the block of DC ZVA */
};

struct rv_arm64_insn {
	enum rv_arm64_kind kind;
	/* Why a word is RV_ARM64_UNKNOWN, a static string; "" otherwise. */
	const char *why;
	/*
	 * Every A64 store writes one run of bytes: [va, va + len). It is done in pieces of
	 * unit bytes (registers, elements, a byte of MOPS), len / unit of them, each of
	 * which may land without the others. The top byte of va may hold a tag.
	 */
	uint64_t va, len;
	uint32_t unit;
	/*
	 * The bytes, where they come from general registers or are zero: value_len of
	 * them, repeated until len is full; 0 where they are not known (vector registers,
	 * results of arithmetic on memory, cases that the architecture leaves open). As a
	 * little-endian guest writes them.
	 */
	uint8_t value[16];
	uint8_t value_len;
	/* Whether [va, va + len) touches more than one page, or wraps. */
	bool crosses_page;
	/* STXR and its kin: leaving the guest clears its monitor, so single-stepping it can
	 * never succeed. status is the register that takes 0 for "stored" (31: none). */
	bool exclusive;
	uint8_t status;
	/* CAS, CASP, RCW and ST64BV: the bytes land only if memory or the device agrees;
	 * write permission is needed in any case. */
	bool conditional;
	/* Reads memory and gives it to a register, in one step with the store (LSE). */
	bool atomic;
	/* Acts with user mode's rights when executed by the kernel (STTR). */
	bool unprivileged;
	/* Allocation tags of [va, va + len) change; with tags_only nothing else does. */
	bool tags, tags_only;
	/* Set and copy instructions: registers hold the progress, the run is what is left. */
	bool mops;
	/* Base register that the instruction updates, and to what (31: sp). Not for mops. */
	bool writeback;
	uint8_t base;
	uint64_t base_value;
};

/*
 * Decode one little-endian word. Total: every word gives one of the four kinds, without
 * allocation and without a loop over guest data. Words outside the load/store space are
 * RV_ARM64_NOT_A_STORE, except DC, GCS and what SVE and SME store. AArch32 state in
 * pstate is RV_ARM64_UNKNOWN.
 *
 * Source: Arm ARM (DDI 0487) C4.1 "A64 instruction set encoding", tables "Loads and
 * stores", "System instructions"; the instructions' pages in C6.2 and C7.2.
 */
void rv_arm64_decode(uint32_t word, const struct rv_arm64_regs *r, struct rv_arm64_insn *out);

#endif
