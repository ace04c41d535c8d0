/* SPDX-License-Identifier: Apache-2.0 */
/*
 * disasm.h: one instruction at a time, x86_64 and arm64, by capstone.
 *
 * Capstone is loaded when the first instruction is decoded, because linking it
 * costs every process about 2 MiB of private relocations. A host without it, or
 * with one whose structs are not those of the header we were built with, gives
 * RV_EUNSUPPORTED, and says which.
 */
#ifndef RV_GUEST_DISASM_H
#define RV_GUEST_DISASM_H

#include <ravelin/error.h>
#include <ravelin/types.h>

#include <capstone/capstone.h>

/* Longest instruction of any target (x86: SDM vol. 2, 2.3.11). */
#define RV_INSN_MAX 15

struct rv_insn {
	uint64_t va;
	uint8_t len;
	char text[128];	   /* "mnemonic operands" */
	const cs_insn *cs; /* with detail; valid until this thread decodes the next one */
};

/*
 * Decode the instruction at bytes[0], which runs at va. Safe from any thread.
 * RV_EBADDATA when the bytes are no whole instruction (at = va), RV_EUNSUPPORTED
 * when there is no usable capstone or no such architecture.
 */
int rv_insn_decode(enum rv_arch arch, const void *bytes, size_t len, uint64_t va,
		   struct rv_insn *out, struct rv_err *err) RV_MUST_CHECK;

/* True when capstone can be used on this host; the reason otherwise goes to err. */
bool rv_insn_ready(struct rv_err *err);

#endif
