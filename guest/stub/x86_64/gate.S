/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate.S: the code that is planted in padding of the guest's kernel text.
 *
 * Position independent; never executed by the monitor itself, so it lives in .rodata.
 * Labels mark what is filled in per kernel (call and jump distances) and the
 * instructions that ring. A ringing "out" clobbers nothing.
 *
 * Returns are a plain ret followed by room for a 5-byte jump: once the kernel has
 * chosen a return thunk the monitor rewrites them. Jumping to __x86_return_thunk
 * itself is wrong: patched kernels make it a trap (v6.10, "x86/bugs: Add a separate
 * config for missing/unpatched return thunk" family).
 *
 * Whatever can be on a stack that is unwound keeps a frame pointer, because the one
 * unwind entry that covers the padding says "frame pointer".
 */
	.section .rodata.rv_stub, "a", @progbits

	.globl	rv_stub_x86_start, rv_stub_x86_end
	.globl	rv_stub_x86_ready, rv_stub_x86_ready_call, rv_stub_x86_ready_bell
	.globl	rv_stub_x86_ready_ret
	.globl	rv_stub_x86_poke, rv_stub_x86_poke_jmp
	.hidden	rv_stub_x86_start, rv_stub_x86_end
	.hidden	rv_stub_x86_ready, rv_stub_x86_ready_call, rv_stub_x86_ready_bell
	.hidden	rv_stub_x86_ready_ret
	.hidden	rv_stub_x86_poke, rv_stub_x86_poke_jmp

	.balign	16
rv_stub_x86_start:

/* Stands in for the call of mark_rodata_ro(): do it, then tell the monitor. */
rv_stub_x86_ready:
	push	%rbp
	mov	%rsp, %rbp
rv_stub_x86_ready_call:
	.byte	0xe8			/* call mark_rodata_ro */
	.long	0
rv_stub_x86_ready_bell:
	out	%al, $0xf5
	pop	%rbp
rv_stub_x86_ready_ret:
	ret
	.fill	4, 1, 0xcc

	.balign	16, 0xcc
/*
 * Stands in for the tail jump of text_poke_memcpy() to memcpy(). When the monitor
 * has written the bytes itself it resumes at the caller; else the copy goes on.
 */
rv_stub_x86_poke:
	out	%al, $0xf6
rv_stub_x86_poke_jmp:
	.byte	0xe9			/* jmp memcpy */
	.long	0

	.balign	16, 0xcc
rv_stub_x86_end:

	.section .note.GNU-stack, "", @progbits
