/* SPDX-License-Identifier: Apache-2.0 */
/*
 * start.S: from the kernel's 64-bit entry to guest_main(boot_params, address of entry);
 * exceptions; and the way of another CPU from its first real-mode instruction.
 */
	.section .head, "ax"
	.code64
	.globl _start
_start:
	lea	_start(%rip), %r13	/* where we really are */
	mov	%rsi, %r12
	mov	%cs, %r14
	cli
	cld
	/* The link address: 1 GiB at -2 GiB, beside the identity map that is there. */
	lea	boot_pd(%rip), %rdi
	mov	$0x83, %eax
1:	mov	%rax, (%rdi)
	add	$0x200000, %rax
	add	$8, %rdi
	cmp	$0x40000083, %rax
	jb	1b
	lea	boot_pd(%rip), %rax
	or	$3, %rax
	mov	%rax, boot_pdpt+510*8(%rip)
	lea	boot_pdpt(%rip), %rax
	or	$3, %rax
	mov	%cr3, %rdx
	mov	%rax, 511*8(%rdx)
	/* What of the first 4 GiB we were given; then all of it, whatever that was. */
	mov	(%rdx), %rbx
	and	$~0xfff, %rbx
	xor	%r15, %r15
	xor	%ecx, %ecx
	lea	low_pd(%rip), %rdi
	mov	$0x83, %eax
2:	mov	(%rbx,%rcx,8), %r8
	and	$1, %r8
	add	%r8, %r15
	lea	3(%rdi), %r9
	mov	$512, %r10d
3:	mov	%rax, (%rdi)
	add	$0x200000, %rax
	add	$8, %rdi
	dec	%r10d
	jnz	3b
	mov	%r9, (%rbx,%rcx,8)	/* not before it is filled: we run there */
	inc	%ecx
	cmp	$4, %ecx
	jne	2b
	mov	%rdx, %cr3
	mov	$high, %rax
	jmp	*%rax
high:
	mov	$stack_top, %rsp
	mov	%r15d, mapped_gib
	lidt	idt_ptr
	mov	%r12, %rdi
	mov	%r13, %rsi
	mov	%r14, %rdx
	call	idt_fill
	mov	%r12, %rdi
	mov	%r13, %rsi
	mov	%r14, %rdx
	call	guest_main
1:	cli
	hlt
	jmp	1b

	.text
	/* One entry for each vector; those without an error code push a 0. */
	.globl	vectors
	.balign	16
vectors:
	i = 0
	.rept	32
	.balign	16
	.if	(i == 8) || (i >= 10 && i <= 14) || (i == 17) || (i == 21)
	.else
	push	$0
	.endif
	push	$i
	jmp	1f
	i = i + 1
	.endr
1:	mov	(%rsp), %rdi
	mov	8(%rsp), %rsi
	mov	16(%rsp), %rdx
	mov	%cr2, %rcx
	call	guest_exception
	ud2

	.data
	.balign	8
idt_ptr:
	.word	32 * 16 - 1
	.quad	idt

	/* --- another CPU; copied to AP_PAGE, which the start-up message names ------------ */
	.section .rodata
	.globl	ap_code, ap_code_end
	.set	AP_PAGE, 0x30000
	.code16
ap_code:
	cli
	mov	%cs, %ax
	mov	%ax, %ds
	lgdtl	ap_gdt_ptr - ap_code
	mov	$0x20, %eax
	mov	%eax, %cr4
	mov	$0x9000, %eax		/* the tables that the boot CPU was given */
	mov	%eax, %cr3
	mov	$0xc0000080, %ecx
	mov	$0x100, %eax
	xor	%edx, %edx
	wrmsr
	mov	$0x80000033, %eax
	mov	%eax, %cr0
	ljmpl	$0x10, $(AP_PAGE + (ap_long - ap_code))
	.code64
ap_long:
	mov	$0x18, %eax
	mov	%eax, %ds
	mov	%eax, %es
	mov	%eax, %ss
	mov	$ap_high, %rax
	jmp	*%rax
	.balign	8
ap_gdt_ptr:
	.word	31
	.long	0x6000			/* the boot CPU's descriptors */
ap_code_end:
	.text
ap_high:
	mov	$1, %eax
	lock xadd %eax, ap_count
	mov	%eax, %edi
	inc	%eax
	shl	$12, %rax
	lea	ap_stacks(%rax), %rsp
	lidt	idt_ptr
	call	ap_main
1:	cli
	hlt
	jmp	1b

	.bss
	.balign	4096
boot_pdpt:	.skip 4096
boot_pd:	.skip 4096
low_pd:		.skip 4 * 4096
	.globl	idt, ap_count, mapped_gib
mapped_gib:	.skip 4
	.balign	16
idt:		.skip 32 * 16
ap_count:	.skip 4
	.balign	4096
		.skip 16384
stack_top:
	/* 64 CPUs of 4 KiB */
ap_stacks:	.skip 64 * 4096

	.weak	ap_main
	.section .note.GNU-stack, "", @progbits
