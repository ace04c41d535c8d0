/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate.S: the code that is planted in padding of the guest's kernel text.
 *
 * Position independent; never executed by the monitor itself, so it lives in .rodata.
 * Labels mark what is filled in per kernel (the targets of bl and adr) and the
 * instruction that rings: a load from a page that has no memory. The monitor's answer
 * arrives in the register.
 *
 * Frames are what the kernel's own functions have, so that it unwinds through them:
 * a frame record, and the return address signed where the processor can (hint 25 is
 * paciasp, hint 29 autiasp; NOPs elsewhere).
 */
	.section .rodata.rv_stub, "a", %progbits

	.globl	rv_stub_arm64_start, rv_stub_arm64_end
	.globl	rv_stub_arm64_ready, rv_stub_arm64_ready_call, rv_stub_arm64_ready_hole
	.globl	rv_stub_arm64_ready_bell
	.hidden	rv_stub_arm64_start, rv_stub_arm64_end
	.hidden	rv_stub_arm64_ready, rv_stub_arm64_ready_call, rv_stub_arm64_ready_hole
	.hidden	rv_stub_arm64_ready_bell

	.balign	16
rv_stub_arm64_start:

/* Stands in for the call of mark_rodata_ro(): do it, then tell the monitor. */
rv_stub_arm64_ready:
	hint	#25
	stp	x29, x30, [sp, #-16]!
	mov	x29, sp
rv_stub_arm64_ready_call:
	bl	.			/* mark_rodata_ro */
rv_stub_arm64_ready_hole:
	adr	x16, .			/* the page without memory */
rv_stub_arm64_ready_bell:
	ldr	x17, [x16, #8 * 0xf5]	/* RV_BELL_READY */
	ldp	x29, x30, [sp], #16
	hint	#29
	ret

	.balign	16, 0
rv_stub_arm64_end:

	.section .note.GNU-stack, "", %progbits
