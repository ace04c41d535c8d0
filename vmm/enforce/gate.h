/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate.h: monitor-owned code inside the guest's kernel text, and the call sites that
 * lead into it.
 *
 * The code lives in padding pages that every stock kernel carries inside .text:
 * mapped executable for the kernel's whole life, within direct-call reach, inside what
 * the kernel itself calls core text. Each redirect is a row of one table: the original
 * bytes are checked before the patch.
 */
#ifndef RV_VMM_GATE_H
#define RV_VMM_GATE_H

#include "vm.h"

/* What a stub tells the monitor. The value is the port on x86_64. */
enum rv_doorbell {
	RV_BELL_READY = 0xf5, /* the kernel has made its text and rodata read-only */
	RV_BELL_POKE = 0xf6,  /* text_poke_memcpy is about to copy */
};

#define RV_GATE_BELLS 8

struct rv_gate {
	uint64_t va;  /* run-time address of the code */
	uint64_t gpa;
	uint64_t len; /* whole pages */
	uint32_t nbells;
	struct {
		enum rv_doorbell bell;
		uint64_t va; /* of the instruction that rings */
	} bells[RV_GATE_BELLS];
	uint64_t poke_link_va;	/* link-time address of the patching stub */
	/* Where a legitimate poke returns to: behind the one indirect call, which the
	 * kernel may have shortened inside its own bytes (retpolines switched off). */
	uint64_t poke_ret_va, poke_ret_len;
	uint64_t ready_ret_gpa; /* our return that may become a return thunk */
};

#endif
