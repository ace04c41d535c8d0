/* SPDX-License-Identifier: Apache-2.0 */
/* arm64_decode_test.c: every form of A64 store, from its word to the bytes that it writes. */
/* unit-sources: vmm/arch/arm64/decode.c */
#include "arch/arm64/decode.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

/*
 * The registers of every row. Low halves have bit 31 set, so that extensions show; x5 to
 * x7 are sizes of set and copy: to do, left in option A's way, and nothing.
 */
#define X(n)                        \
	((n) == 5   ? 0x80000ull    \
	 : (n) == 6 ? 0ull - 0x1000 \
	 : (n) == 7 ? 0ull          \
		    : 0xffff800080000000ull + (n)*0x100000100ull + (n))
#define W(n)  (X(n) & 0xffffffff)
#define SX(n) (W(n) | 0xffffffff00000000ull)
#define SP    0xffff80001234bfc0ull
#define PC    0xffff800008001000ull

#define PSTATE_C (1ull << 29)
#define PSTATE_N (1ull << 31)

/* Words as GNU as 2.40 makes them; those that it does not know are put together by hand. */
struct row {
	const char *text;
	uint32_t word;
	uint64_t va, len;
	uint32_t unit, value_len;
	uint64_t value; /* the first eight bytes of it */
	/* atomic, conditional, unprivileged, tags, Tags only, mops, write-back, x: exclusive
	 * with the number of its status register */
	const char *flags;
	uint32_t base;
	uint64_t base_value;
};
struct named {
	const char *text;
	uint32_t word;
};

static const struct row stores[] = {
	{"strb w1, [x2]", 0x39000041, X(2), 1, 1, 1, X(1), "", 0, 0},
	{"strh w1, [x2]", 0x79000041, X(2), 2, 2, 2, X(1), "", 0, 0},
	{"str w1, [x2]", 0xb9000041, X(2), 4, 4, 4, X(1), "", 0, 0},
	{"str x1, [x2]", 0xf9000041, X(2), 8, 8, 8, X(1), "", 0, 0},
	{"str xzr, [x2]", 0xf900005f, X(2), 8, 8, 8, 0, "", 0, 0},
	{"str wzr, [sp]", 0xb90003ff, SP, 4, 4, 4, 0, "", 0, 0},
	{"str x30, [sp, #32760]", 0xf93ffffe, SP + 32760, 8, 8, 8, X(30), "", 0, 0},
	{"strb w3, [x29, #4095]", 0x393fffa3, X(29) + 4095, 1, 1, 1, X(3), "", 0, 0},
	{"strh w3, [x29, #8190]", 0x793fffa3, X(29) + 8190, 2, 2, 2, X(3), "", 0, 0},
	{"str w3, [x29, #16380]", 0xb93fffa3, X(29) + 16380, 4, 4, 4, X(3), "", 0, 0},
	{"str b0, [x2, #1]", 0x3d000440, X(2) + 1, 1, 1, 0, 0, "", 0, 0},
	{"str h0, [x2, #2]", 0x7d000440, X(2) + 2, 2, 2, 0, 0, "", 0, 0},
	{"str s0, [x2, #4]", 0xbd000440, X(2) + 4, 4, 4, 0, 0, "", 0, 0},
	{"str d0, [x2, #8]", 0xfd000440, X(2) + 8, 8, 8, 0, 0, "", 0, 0},
	{"str q0, [x2, #65520]", 0x3dbffc40, X(2) + 65520, 16, 16, 0, 0, "", 0, 0},
	{"stur x1, [x2, #-256]", 0xf8100041, X(2) - 256, 8, 8, 8, X(1), "", 0, 0},
	{"stur w1, [x2, #255]", 0xb80ff041, X(2) + 255, 4, 4, 4, X(1), "", 0, 0},
	{"sturb w1, [sp, #-1]", 0x381ff3e1, SP - 1, 1, 1, 1, X(1), "", 0, 0},
	{"sturh w1, [x2, #3]", 0x78003041, X(2) + 3, 2, 2, 2, X(1), "", 0, 0},
	{"stur q31, [x2, #-3]", 0x3c9fd05f, X(2) - 3, 16, 16, 0, 0, "", 0, 0},
	{"stur b1, [x2, #-3]", 0x3c1fd041, X(2) - 3, 1, 1, 0, 0, "", 0, 0},
	{"str x1, [x2, #-8]!", 0xf81f8c41, X(2) - 8, 8, 8, 8, X(1), "w", 2, X(2) - 8},
	{"str x1, [x2], #-8", 0xf81f8441, X(2), 8, 8, 8, X(1), "w", 2, X(2) - 8},
	{"str x30, [sp, #-16]!", 0xf81f0ffe, SP - 16, 8, 8, 8, X(30), "w", 31, SP - 16},
	{"strb w1, [x2], #1", 0x38001441, X(2), 1, 1, 1, X(1), "w", 2, X(2) + 1},
	{"strh w1, [x2, #255]!", 0x780ffc41, X(2) + 255, 2, 2, 2, X(1), "w", 2, X(2) + 255},
	{"str w1, [x2], #-256", 0xb8100441, X(2), 4, 4, 4, X(1), "w", 2, X(2) - 256},
	{"str q2, [x2], #16", 0x3c810442, X(2), 16, 16, 0, 0, "w", 2, X(2) + 16},
	{"str d2, [x2, #-16]!", 0xfc1f0c42, X(2) - 16, 8, 8, 0, 0, "w", 2, X(2) - 16},
	{"str x7, [sp], #8", 0xf80087e7, SP, 8, 8, 8, X(7), "w", 31, SP + 8},
	{"str x7, [x7], #8: left open", 0xf80084e7, X(7), 8, 8, 0, 0, "w", 7, X(7) + 8},
	{"str x1, [x2, x3]", 0xf8236841, X(2) + X(3), 8, 8, 8, X(1), "", 0, 0},
	{"str x1, [x2, x3, lsl #3]", 0xf8237841, X(2) + X(3) * 8, 8, 8, 8, X(1), "", 0, 0},
	{"str w1, [x2, w3, uxtw]", 0xb8234841, X(2) + W(3), 4, 4, 4, X(1), "", 0, 0},
	{"str w1, [x2, w3, uxtw #2]", 0xb8235841, X(2) + W(3) * 4, 4, 4, 4, X(1), "", 0, 0},
	{"strh w1, [x2, w3, sxtw]", 0x7823c841, X(2) + SX(3), 2, 2, 2, X(1), "", 0, 0},
	{"strh w1, [x2, w3, sxtw #1]", 0x7823d841, X(2) + SX(3) * 2, 2, 2, 2, X(1), "", 0, 0},
	{"strb w1, [sp, x3, sxtx]", 0x3823ebe1, SP + X(3), 1, 1, 1, X(1), "", 0, 0},
	{"strb w1, [sp, x3, lsl #0]", 0x38237be1, SP + X(3), 1, 1, 1, X(1), "", 0, 0},
	{"str x1, [x2, xzr]", 0xf83f6841, X(2), 8, 8, 8, X(1), "", 0, 0},
	{"str q1, [x2, x3, lsl #4]", 0x3ca37841, X(2) + X(3) * 16, 16, 16, 0, 0, "", 0, 0},
	{"str s1, [x2, w3, sxtw #2]", 0xbc23d841, X(2) + SX(3) * 4, 4, 4, 0, 0, "", 0, 0},
	{"sttr x1, [x2, #8]", 0xf8008841, X(2) + 8, 8, 8, 8, X(1), "u", 0, 0},
	{"sttr w1, [x2, #-8]", 0xb81f8841, X(2) - 8, 4, 4, 4, X(1), "u", 0, 0},
	{"sttrb w1, [x2]", 0x38000841, X(2), 1, 1, 1, X(1), "u", 0, 0},
	{"sttrh w1, [x2, #255]", 0x780ff841, X(2) + 255, 2, 2, 2, X(1), "u", 0, 0},
	{"stp x1, x3, [x2]", 0xa9000c41, X(2), 16, 8, 16, X(1), "", 0, 0},
	{"stp w1, w3, [x2, #-256]", 0x29200c41, X(2) - 256, 8, 4, 8, W(1) | W(3) << 32, "", 0, 0},
	{"stp x29, x30, [sp, #-64]!", 0xa9bc7bfd, SP - 64, 16, 8, 16, X(29), "w", 31, SP - 64},
	{"stp x29, x30, [sp], #504", 0xa89ffbfd, SP, 16, 8, 16, X(29), "w", 31, SP + 504},
	{"stp w1, wzr, [x2, #252]!", 0x299ffc41, X(2) + 252, 8, 4, 8, W(1), "w", 2, X(2) + 252},
	{"stp s1, s3, [x2, #4]", 0x2d008c41, X(2) + 4, 8, 4, 0, 0, "", 0, 0},
	{"stp d8, d9, [sp, #16]", 0x6d0127e8, SP + 16, 16, 8, 0, 0, "", 0, 0},
	{"stp q0, q1, [x0], #-1024", 0xaca00400, X(0), 32, 16, 0, 0, "w", 0, X(0) - 1024},
	{"stnp x1, x3, [x2, #-512]", 0xa8200c41, X(2) - 512, 16, 8, 16, X(1), "", 0, 0},
	{"stnp w1, w3, [x2, #4]", 0x28008c41, X(2) + 4, 8, 4, 8, W(1) | W(3) << 32, "", 0, 0},
	{"stnp q0, q1, [x2, #1008]", 0xac1f8440, X(2) + 1008, 32, 16, 0, 0, "", 0, 0},
	{"stp x3, x3, [x2], #16", 0xa8810c43, X(2), 16, 8, 16, X(3), "w", 2, X(2) + 16},
	{"stp x2, x2, [x2], #16: left open", 0xa8810842, X(2), 16, 8, 0, 0, "w", 2, X(2) + 16},
	{"stgp x1, x3, [x2, #-1024]", 0x69200c41, X(2) - 1024, 16, 8, 16, X(1), "t", 0, 0},
	{"stgp x1, x3, [x2], #16", 0x68808c41, X(2), 16, 8, 16, X(1), "tw", 2, X(2) + 16},
	{"stgp x1, x3, [sp, #1008]!", 0x699f8fe1, SP + 1008, 16, 8, 16, X(1), "tw", 31, SP + 1008},
	{"st1 {v0.16b}, [x2]", 0x4c007040, X(2), 16, 1, 0, 0, "", 0, 0},
	{"st1 {v0.8b}, [x2]", 0x0c007040, X(2), 8, 1, 0, 0, "", 0, 0},
	{"st1 {v0.1d}, [sp]", 0x0c007fe0, SP, 8, 8, 0, 0, "", 0, 0},
	{"st1 {v0.4s, v1.4s}, [x2]", 0x4c00a840, X(2), 32, 4, 0, 0, "", 0, 0},
	{"st1 {v0.4h, v1.4h, v2.4h}, [x2]", 0x0c006440, X(2), 24, 2, 0, 0, "", 0, 0},
	{"st1 {v0.2d, v1.2d, v2.2d, v3.2d}, [x2], #64", 0x4c9f2c40, X(2), 64, 8, 0, 0, "w", 2,
	 X(2) + 64},
	{"st1 {v0.2d, v1.2d, v2.2d, v3.2d}, [x2], x3", 0x4c832c40, X(2), 64, 8, 0, 0, "w", 2,
	 X(2) + X(3)},
	{"st2 {v0.8h, v1.8h}, [x2]", 0x4c008440, X(2), 32, 2, 0, 0, "", 0, 0},
	{"st2 {v0.8b, v1.8b}, [x2], #16", 0x0c9f8040, X(2), 16, 1, 0, 0, "w", 2, X(2) + 16},
	{"st3 {v0.2s, v1.2s, v2.2s}, [x2]", 0x0c004840, X(2), 24, 4, 0, 0, "", 0, 0},
	{"st3 {v0.16b, v1.16b, v2.16b}, [x2], #48", 0x4c9f4040, X(2), 48, 1, 0, 0, "w", 2,
	 X(2) + 48},
	{"st4 {v0.2d, v1.2d, v2.2d, v3.2d}, [x2]", 0x4c000c40, X(2), 64, 8, 0, 0, "", 0, 0},
	{"st4 {v0.8b, v1.8b, v2.8b, v3.8b}, [sp], #32", 0x0c9f03e0, SP, 32, 1, 0, 0, "w", 31,
	 SP + 32},
	{"st1 {v0.b}[15], [x2]", 0x4d001c40, X(2), 1, 1, 0, 0, "", 0, 0},
	{"st1 {v0.h}[7], [x2], #2", 0x4d9f5840, X(2), 2, 2, 0, 0, "w", 2, X(2) + 2},
	{"st1 {v0.s}[3], [x2]", 0x4d009040, X(2), 4, 4, 0, 0, "", 0, 0},
	{"st1 {v0.d}[1], [x2], x3", 0x4d838440, X(2), 8, 8, 0, 0, "w", 2, X(2) + X(3)},
	{"st2 {v0.b, v1.b}[3], [x2], #2", 0x0dbf0c40, X(2), 2, 1, 0, 0, "w", 2, X(2) + 2},
	{"st2 {v0.d, v1.d}[0], [x2]", 0x0d208440, X(2), 16, 8, 0, 0, "", 0, 0},
	{"st3 {v0.h, v1.h, v2.h}[1], [x2], #6", 0x0d9f6840, X(2), 6, 2, 0, 0, "w", 2, X(2) + 6},
	{"st3 {v0.s, v1.s, v2.s}[1], [x2]", 0x0d00b040, X(2), 12, 4, 0, 0, "", 0, 0},
	{"st4 {v0.s, v1.s, v2.s, v3.s}[1], [x2], #16", 0x0dbfb040, X(2), 16, 4, 0, 0, "w", 2,
	 X(2) + 16},
	{"st4 {v0.d, v1.d, v2.d, v3.d}[1], [x2]", 0x4d20a440, X(2), 32, 8, 0, 0, "", 0, 0},
	{"st4 {v0.b, v1.b, v2.b, v3.b}[0], [x2]", 0x0d202040, X(2), 4, 1, 0, 0, "", 0, 0},
	{"stlr x1, [x2]", 0xc89ffc41, X(2), 8, 8, 8, X(1), "", 0, 0},
	{"stlr w1, [sp]", 0x889fffe1, SP, 4, 4, 4, X(1), "", 0, 0},
	{"stlrb w1, [x2]", 0x089ffc41, X(2), 1, 1, 1, X(1), "", 0, 0},
	{"stlrh w1, [x2]", 0x489ffc41, X(2), 2, 2, 2, X(1), "", 0, 0},
	{"stllr x1, [x2]", 0xc89f7c41, X(2), 8, 8, 8, X(1), "", 0, 0},
	{"stllrb w1, [x2]", 0x089f7c41, X(2), 1, 1, 1, X(1), "", 0, 0},
	{"stllrh w1, [x2]", 0x489f7c41, X(2), 2, 2, 2, X(1), "", 0, 0},
	{"stlur x1, [x2, #-256]", 0xd9100041, X(2) - 256, 8, 8, 8, X(1), "", 0, 0},
	{"stlur w1, [x2, #255]", 0x990ff041, X(2) + 255, 4, 4, 4, X(1), "", 0, 0},
	{"stlurb w1, [sp, #1]", 0x190013e1, SP + 1, 1, 1, 1, X(1), "", 0, 0},
	{"stlurh w1, [x2, #2]", 0x59002041, X(2) + 2, 2, 2, 2, X(1), "", 0, 0},
	{"stxr w4, x1, [x2]", 0xc8047c41, X(2), 8, 8, 8, X(1), "x4", 0, 0},
	{"stxr w4, w1, [sp]", 0x88047fe1, SP, 4, 4, 4, X(1), "x4", 0, 0},
	{"stxrb w4, w1, [x2]", 0x08047c41, X(2), 1, 1, 1, X(1), "x4", 0, 0},
	{"stxrh wzr, w1, [x2]", 0x481f7c41, X(2), 2, 2, 2, X(1), "x31", 0, 0},
	{"stlxr w4, x1, [x2]", 0xc804fc41, X(2), 8, 8, 8, X(1), "x4", 0, 0},
	{"stlxrb w4, w1, [x2]", 0x0804fc41, X(2), 1, 1, 1, X(1), "x4", 0, 0},
	{"stlxrh w4, w1, [x2]", 0x4804fc41, X(2), 2, 2, 2, X(1), "x4", 0, 0},
	{"stxp w4, x1, x3, [x2]", 0xc8240c41, X(2), 16, 8, 16, X(1), "x4", 0, 0},
	{"stxp w4, w1, w3, [x2]", 0x88240c41, X(2), 8, 4, 8, W(1) | W(3) << 32, "x4", 0, 0},
	{"stlxp w4, x1, x3, [sp]", 0xc8248fe1, SP, 16, 8, 16, X(1), "x4", 0, 0},
	{"stxr w1, x1, [x2]: left open", 0xc8017c41, X(2), 8, 8, 0, 0, "x1", 0, 0},
	{"cas x3, x1, [x2]", 0xc8a37c41, X(2), 8, 8, 8, X(1), "ac", 0, 0},
	{"casa w3, w1, [x2]", 0x88e37c41, X(2), 4, 4, 4, X(1), "ac", 0, 0},
	{"casal x3, x1, [sp]", 0xc8e3ffe1, SP, 8, 8, 8, X(1), "ac", 0, 0},
	{"caslb w3, w1, [x2]", 0x08a3fc41, X(2), 1, 1, 1, X(1), "ac", 0, 0},
	{"cash w3, w1, [x2]", 0x48a37c41, X(2), 2, 2, 2, X(1), "ac", 0, 0},
	{"casp x4, x5, x6, x7, [x2]", 0x48247c46, X(2), 16, 8, 16, X(6), "ac", 0, 0},
	{"caspal w4, w5, w6, w7, [x2]", 0x0864fc46, X(2), 8, 4, 8, W(6) | W(7) << 32, "ac", 0, 0},
	{"swp x1, x3, [x2]", 0xf8218043, X(2), 8, 8, 8, X(1), "a", 0, 0},
	{"swpal w1, w3, [x2]", 0xb8e18043, X(2), 4, 4, 4, X(1), "a", 0, 0},
	{"swpb w1, w3, [x2]", 0x38218043, X(2), 1, 1, 1, X(1), "a", 0, 0},
	{"swplh w1, w3, [sp]", 0x786183e3, SP, 2, 2, 2, X(1), "a", 0, 0},
	{"ldadd x1, x3, [x2]", 0xf8210043, X(2), 8, 8, 0, 0, "a", 0, 0},
	{"ldaddal w1, w3, [x2]", 0xb8e10043, X(2), 4, 4, 0, 0, "a", 0, 0},
	{"ldclrb w1, w3, [x2]", 0x38211043, X(2), 1, 1, 0, 0, "a", 0, 0},
	{"ldeorh w1, w3, [x2]", 0x78212043, X(2), 2, 2, 0, 0, "a", 0, 0},
	{"ldset x1, x3, [x2]", 0xf8213043, X(2), 8, 8, 0, 0, "a", 0, 0},
	{"ldsmax x1, x3, [sp]", 0xf82143e3, SP, 8, 8, 0, 0, "a", 0, 0},
	{"ldsmin x1, x3, [x2]", 0xf8215043, X(2), 8, 8, 0, 0, "a", 0, 0},
	{"ldumax w1, w3, [x2]", 0xb8216043, X(2), 4, 4, 0, 0, "a", 0, 0},
	{"ldumin x1, x3, [x2]", 0xf8217043, X(2), 8, 8, 0, 0, "a", 0, 0},
	{"stadd x1, [x2]", 0xf821005f, X(2), 8, 8, 0, 0, "a", 0, 0},
	{"stsetl w1, [x2]", 0xb861305f, X(2), 4, 4, 0, 0, "a", 0, 0},
	{"stclrb w1, [x2]", 0x3821105f, X(2), 1, 1, 0, 0, "a", 0, 0},
	{"dc zva, x2", 0xd50b7422, X(2) & ~63ull, 64, 16, 1, 0, "", 0, 0},
	{"dc gva, x2", 0xd50b7462, X(2) & ~63ull, 64, 16, 0, 0, "tT", 0, 0},
	{"dc gzva, x2", 0xd50b7482, X(2) & ~63ull, 64, 16, 1, 0, "t", 0, 0},
	{"dc zva, xzr", 0xd50b743f, 0, 64, 16, 1, 0, "", 0, 0},
	{"stg x1, [x2]", 0xd9200841, X(2), 16, 16, 0, 0, "tT", 0, 0},
	{"stg sp, [x2, #-4096]", 0xd930085f, X(2) - 4096, 16, 16, 0, 0, "tT", 0, 0},
	{"stg x1, [x2], #16", 0xd9201441, X(2), 16, 16, 0, 0, "tTw", 2, X(2) + 16},
	{"st2g x1, [x2, #32]!", 0xd9a02c41, X(2) + 32, 32, 16, 0, 0, "tTw", 2, X(2) + 32},
	{"stzg x1, [x2]", 0xd9600841, X(2), 16, 16, 1, 0, "t", 0, 0},
	{"stz2g x1, [sp], #4080", 0xd9eff7e1, SP, 32, 16, 1, 0, "tw", 31, SP + 4080},
	{"stzgm x1, [x2]", 0xd9200041, X(2) & ~63ull, 64, 16, 1, 0, "t", 0, 0},
	{"st64b x4, [x2]", 0xf83f9044, X(2), 64, 64, 0, 0, "", 0, 0},
	{"st64bv x1, x4, [x2]", 0xf821b044, X(2), 64, 64, 0, 0, "c", 0, 0},
	{"st64bv0 x1, x4, [sp]", 0xf821a3e4, SP, 64, 64, 0, 0, "c", 0, 0},
	{"setp [x1]!, x5!, x2", 0x19c204a1, X(1), 0x80000, 1, 1, X(2), "m", 0, 0},
	{"setm [x1]!, x6!, x2", 0x19c244c1, X(1) - 0x1000, 0x1000, 1, 1, X(2), "m", 0, 0},
	{"sete [x1]!, x6!, x2", 0x19c284c1, X(1) - 0x1000, 0x1000, 1, 1, X(2), "m", 0, 0},
	{"setpt [x1]!, x5!, xzr", 0x19df14a1, X(1), 0x80000, 1, 1, 0, "mu", 0, 0},
	{"setgp [x1]!, x5!, x2", 0x1dc204a1, X(1), 0x80000, 1, 1, X(2), "mt", 0, 0},
	{"cpyfp [x1]!, [x2]!, x5!", 0x190204a1, X(1), 0x80000, 1, 0, 0, "m", 0, 0},
	{"cpyfm [x1]!, [x2]!, x6!", 0x194204c1, X(1) - 0x1000, 0x1000, 1, 0, 0, "m", 0, 0},
	{"cpyfe [x1]!, [x2]!, x6!", 0x198204c1, X(1) - 0x1000, 0x1000, 1, 0, 0, "m", 0, 0},
	{"cpyp [x1]!, [x2]!, x5!", 0x1d0204a1, X(1), 0x80000, 1, 0, 0, "m", 0, 0},
	{"cpym [x1]!, [x2]!, x5!", 0x1d4204a1, X(1), 0x80000, 1, 0, 0, "m", 0, 0},
	{"cpyewt [x1]!, [x2]!, x6!", 0x1d8214c1, X(1) - 0x1000, 0x1000, 1, 0, 0, "mu", 0, 0},
	{"cpyert [x1]!, [x2]!, x6!", 0x1d8224c1, X(1) - 0x1000, 0x1000, 1, 0, 0, "m", 0, 0},
	{"swpp x1, x1, [x2]", 0x19218041, X(2), 16, 16, 16, X(1), "a", 0, 0},
	{"ldclrp x1, x3, [x2]", 0x19231041, X(2), 16, 16, 0, 0, "a", 0, 0},
	{"ldsetpal x1, x3, [x2]", 0x19e33041, X(2), 16, 16, 0, 0, "a", 0, 0},
	{"rcwswpp x1, x1, [x2]", 0x1921a041, X(2), 16, 16, 0, 0, "ac", 0, 0},
	{"rcwcas x4, x6, [x2]", 0x19240846, X(2), 8, 8, 0, 0, "ac", 0, 0},
	{"rcwscasp x4, x5, x6, x7, [x2]", 0x59240c46, X(2), 16, 16, 0, 0, "ac", 0, 0},
	{"rcwswp x3, x1, [x2]", 0x3823a041, X(2), 8, 8, 0, 0, "ac", 0, 0},
	{"stilp x1, x3, [x2]", 0xd9031841, X(2), 16, 8, 16, X(1), "", 0, 0},
	{"stilp x1, x3, [x2, #-16]!", 0xd9030841, X(2) - 16, 16, 8, 16, X(1), "w", 2, X(2) - 16},
	{"stilp w1, w3, [x2, #-8]!", 0x99030841, X(2) - 8, 8, 4, 8, W(1) | W(3) << 32, "w", 2,
	 X(2) - 8},
	{"stlr x1, [x2, #-8]!", 0xd9800841, X(2) - 8, 8, 8, 8, X(1), "w", 2, X(2) - 8},
	{"stlr w1, [x2, #-4]!", 0x99800841, X(2) - 4, 4, 4, 4, X(1), "w", 2, X(2) - 4},
	{"stl1 {v0.d}[0], [x2]", 0x0d018440, X(2), 8, 8, 0, 0, "", 0, 0},
	{"stlur b0, [x2, #8]", 0x1d008840, X(2) + 8, 1, 1, 0, 0, "", 0, 0},
	{"stlur q0, [x2, #-8]", 0x1d9f8840, X(2) - 8, 16, 16, 0, 0, "", 0, 0},
	{"gcsstr x1, [x2]", 0xd91f0c41, X(2), 8, 8, 8, X(1), "", 0, 0},
	{"gcssttr x1, [x2]", 0xd91f1c41, X(2), 8, 8, 8, X(1), "u", 0, 0},
};

static const struct named caches[] = {
	{"dc cvac, x2", 0xd50b7a22},	{"dc cvau, x2", 0xd50b7b22},
	{"dc civac, x2", 0xd50b7e22},	{"dc ivac, x2", 0xd5087622},
	{"ic ivau, x2", 0xd50b7522},	{"dc cvap, x2", 0xd50b7c22},
	{"dc cvadp, x2", 0xd50b7d22},	{"dc cgvac, x2", 0xd50b7a62},
	{"dc cgdvac, x2", 0xd50b7aa2},	{"dc cigvac, x2", 0xd50b7e62},
	{"dc cigdvac, x2", 0xd50b7ea2}, {"dc igvac, x2", 0xd5087662},
	{"dc igdvac, x2", 0xd50876a2},	{"dc cgvap, x2", 0xd50b7c62},
	{"dc cgdvap, x2", 0xd50b7ca2},	{"dc cgvadp, x2", 0xd50b7d62},
	{"dc cgdvadp, x2", 0xd50b7da2}, {"dc cvaoc, x2", 0xd50b7b02},
	{"dc civaps, x2", 0xd5087f22},
};

static const struct named others[] = {
	{"ldr x1, [x2]", 0xf9400041},
	{"ldr w1, [x2, #4]!", 0xb8404c41},
	{"ldr q1, [x2], #16", 0x3cc10441},
	{"ldrb w1, [x2, x3]", 0x38636841},
	{"ldrsw x1, [x2]", 0xb9800041},
	{"ldrsh w1, [x2, #-1]", 0x78dff041},
	{"ldr x1, .", 0x58000001},
	{"ldr q1, .", 0x9c000001},
	{"prfm pldl1keep, [x2]", 0xf9800040},
	{"prfm pstl1strm, [x2, x3]", 0xf8a36851},
	{"prfum pldl1keep, [x2, #-1]", 0xf89ff040},
	{"prfm pldl1keep, .", 0xd8000000},
	{"ldp x1, x3, [x2]", 0xa9400c41},
	{"ldpsw x1, x3, [x2], #8", 0x68c10c41},
	{"ldnp q1, q3, [x2]", 0xac400c41},
	{"ldp x29, x30, [sp], #16", 0xa8c17bfd},
	{"ldxr x1, [x2]", 0xc85f7c41},
	{"ldaxrb w1, [x2]", 0x085ffc41},
	{"ldxp x1, x3, [x2]", 0xc87f0c41},
	{"ldaxp w1, w3, [x2]", 0x887f8c41},
	{"ldar x1, [x2]", 0xc8dffc41},
	{"ldlarh w1, [x2]", 0x48df7c41},
	{"ldapr x1, [x2]", 0xf8bfc041},
	{"ldaprb w1, [x2]", 0x38bfc041},
	{"ldapur x1, [x2, #1]", 0xd9401041},
	{"ldapursw x1, [x2, #1]", 0x99801041},
	{"ldtr x1, [x2]", 0xf8400841},
	{"ldtrsb w1, [x2]", 0x38c00841},
	{"ldraa x1, [x2, #8]", 0xf8201441},
	{"ldrab x1, [x2, #-8]!", 0xf8fffc41},
	{"ld1 {v0.16b}, [x2]", 0x4c407040},
	{"ld1 {v0.b}[3], [x2], #1", 0x0ddf0c40},
	{"ld1r {v0.8h}, [x2]", 0x4d40c440},
	{"ld2r {v0.8h, v1.8h}, [x2], #4", 0x4dffc440},
	{"ld4 {v0.2d, v1.2d, v2.2d, v3.2d}, [x2], x3", 0x4cc30c40},
	{"ldg x1, [x2]", 0xd9600041},
	{"ldgm x1, [x2]", 0xd9e00041},
	{"ld64b x4, [x2]", 0xf83fd044},
	{"setm [x1]!, x5!, x2", 0x19c244a1},
	{"cpyfe [x1]!, [x2]!, x5!", 0x198204a1},
	{"cpym [x1]!, [x2]!, x7!", 0x1d4204e1},
	{"setp [x1]!, x7!, x2", 0x19c204e1},
	{"ic iallu", 0xd508751f},
	{"ic ialluis", 0xd508711f},
	{"dc isw, x1", 0xd5087641},
	{"dc csw, x1", 0xd5087a41},
	{"dc cisw, x1", 0xd5087e41},
	{"at s1e1r, x1", 0xd5087801},
	{"at s1e0w, x1", 0xd5087861},
	{"tlbi vmalle1is", 0xd508831f},
	{"tlbi vae1, x1", 0xd5088721},
	{"cfp rctx, x1", 0xd50b7381},
	{"add x1, x2, x3", 0x8b030041},
	{"nop", 0xd503201f},
	{"bl .", 0x94000000},
	{"ret", 0xd65f03c0},
	{"brk #0", 0xd4200000},
	{"svc #0", 0xd4000001},
	{"hvc #0", 0xd4000002},
	{"eret", 0xd69f03e0},
	{"clrex", 0xd5033f5f},
	{"dmb ish", 0xd5033bbf},
	{"mrs x1, ttbr0_el1", 0xd5382001},
	{"msr ttbr0_el1, x1", 0xd5182001},
	{"mov x1, sp", 0x910003e1},
	{"fadd d0, d1, d2", 0x1e622820},
	{"paciasp", 0xd503233f},
	{"sys #3, c7, c3, #4, x1", 0xd50b7381},
};

static const struct named unknowns[] = {
	{"str z0, [x2]", 0xe5804040},
	{"str p0, [x2]", 0xe5800040},
	{"st1d {z0.d}, p0, [x2]", 0xe5e0e040},
	{"stnt1b {z0.b}, p0, [x2, x3]", 0xe4036040},
	{"stgm x1, [x2]", 0xd9a00041},
	{"unprivileged SIMD", 0x3cc00800},
	{"prefetch with pre-index", 0xf8800c41},
	{"size 3, opc 3", 0xf8c00000},
	{"ldrsw unscaled is opc 2; opc 3 at size 2", 0xb8c00041},
	{"option 0: UXTB", 0x38200841},
	{"pair, opc 3", 0xe8010c41},
	{"no-allocate STGP", 0x68010c41},
	{"multiple structures, opcode 1", 0x0c001041},
	{"st4 of .1d", 0x0c000c41},
	{"replicate, store", 0x0d00c041},
	{"st1 .d with S", 0x0d005441},
	{"CAS, Rt2 not 31", 0x08a07041},
	{"casp with odd register", 0x08237c41},
	{"stxr w2, x1, [x2]", 0xc8027c41},
	{"set/copy of size 1", 0x59010441},
	{"copy to xzr", 0x1901045f},
	{"FP atomic", 0x3c200041},
	{"gcs push", 0xd50b7720},
	{"SME store", 0xe0200000},
	{"SME2 store", 0xa0200000},
	{"str za", 0xe1200000},
};

static void registers(struct rv_arm64_regs *r)
{
	memset(r, 0, sizeof(*r));
	for (uint64_t i = 0; i < 31; i++)
		r->x[i] = X(i);
	r->sp = SP;
	r->pc = PC;
	r->pstate = 0x3c5;
	r->dczid = 4; /* 64 bytes */
}

static struct rv_arm64_insn decode(uint32_t word)
{
	struct rv_arm64_regs r;
	struct rv_arm64_insn in;

	registers(&r);
	memset(&in, 0xa5, sizeof(in));
	rv_arm64_decode(word, &r, &in);
	return in;
}

static bool flag(const struct row *w, char c)
{
	return strchr(w->flags, c) != NULL;
}

static bool flags_ok(const struct row *w, const struct rv_arm64_insn *in)
{
	uint32_t status = 31;

	if (flag(w, 'x')) {
		status = 0;
		for (const char *p = strchr(w->flags, 'x') + 1; *p; p++)
			status = status * 10 + (uint32_t)(*p - '0');
	}
	return in->exclusive == flag(w, 'x') && in->status == status &&
	       in->conditional == flag(w, 'c') && in->atomic == flag(w, 'a') &&
	       in->unprivileged == flag(w, 'u') && in->tags == flag(w, 't') &&
	       in->tags_only == flag(w, 'T') && in->mops == flag(w, 'm') &&
	       in->writeback == flag(w, 'w') && in->base == w->base &&
	       in->base_value == w->base_value;
}

static bool value_ok(const struct row *w, const struct rv_arm64_insn *in)
{
	uint8_t want[8];
	uint64_t v = w->value;

	for (size_t i = 0; i < 8; i++, v >>= 8)
		want[i] = (uint8_t)v;
	return in->value_len == w->value_len &&
	       !memcmp(in->value, want, w->value_len < 8 ? w->value_len : 8);
}

static void test_stores(void **state)
{
	int failed = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(stores) / sizeof(stores[0]); i++) {
		const struct row *w = &stores[i];
		struct rv_arm64_insn in = decode(w->word);

		if (in.kind == RV_ARM64_STORE && in.va == w->va && in.len == w->len &&
		    in.unit == w->unit && value_ok(w, &in) && flags_ok(w, &in) && !in.why[0])
			continue;
		failed++;
		print_error("%s (0x%08x): kind %d \"%s\" 0x%llx+%llu by %u, %u bytes known, "
			    "base x%u = 0x%llx; expected 0x%llx+%llu\n",
			    w->text, w->word, in.kind, in.why, (unsigned long long)in.va,
			    (unsigned long long)in.len, in.unit, in.value_len, in.base,
			    (unsigned long long)in.base_value, (unsigned long long)w->va,
			    (unsigned long long)w->len);
	}
	assert_int_equal(failed, 0);
}

static void all_are(const struct named *t, size_t n, enum rv_arm64_kind kind)
{
	int failed = 0;

	for (size_t i = 0; i < n; i++) {
		struct rv_arm64_insn in = decode(t[i].word);

		if (in.kind == kind && !in.writeback && !in.value_len && in.status == 31 &&
		    (kind == RV_ARM64_UNKNOWN) == !!in.why[0])
			continue;
		failed++;
		print_error("%s (0x%08x): kind %d \"%s\", expected %d\n", t[i].text, t[i].word,
			    in.kind, in.why, kind);
	}
	assert_int_equal(failed, 0);
}

static void test_no_stores(void **state)
{
	(void)state;
	all_are(others, sizeof(others) / sizeof(others[0]), RV_ARM64_NOT_A_STORE);
}

static void test_unknown(void **state)
{
	(void)state;
	all_are(unknowns, sizeof(unknowns) / sizeof(unknowns[0]), RV_ARM64_UNKNOWN);
}

static void test_cache(void **state)
{
	struct rv_arm64_insn in;

	(void)state;
	all_are(caches, sizeof(caches) / sizeof(caches[0]), RV_ARM64_CACHE);
	in = decode(caches[0].word);
	assert_true(in.va == X(2));
	assert_int_equal(in.len, 1);
	assert_false(in.crosses_page);
}

/* Both words of a pair, in order, and none of the upper half of a W register. */
static void test_second_word(void **state)
{
	struct rv_arm64_insn in = decode(0xa9000c41); /* stp x1, x3, [x2] */
	uint64_t v[2];

	(void)state;
	memcpy(v, in.value, sizeof(v));
	assert_true(v[0] == X(1) && v[1] == X(3));
	in = decode(0x48247c46); /* casp x4, x5, x6, x7, [x2] */
	memcpy(v, in.value, sizeof(v));
	assert_true(v[0] == X(6) && v[1] == X(7));
	in = decode(0xa900fc41); /* stp x1, xzr, [x2, #8] */
	memcpy(v, in.value, sizeof(v));
	assert_true(v[0] == X(1) && v[1] == 0);
}

static void test_pages(void **state)
{
	static const struct {
		uint32_t word;
		uint64_t off;
		bool crosses;
	} t[] = {
		{0xf9000041, 0xff8, false}, /* str x1, [x2] */
		{0xf9000041, 0xff9, true},   {0xf9000041, 0xfff, true},
		{0xf9000041, 0x1000, false}, {0x39000041, 0xfff, false}, /* strb */
		{0xa9000c41, 0xff0, false},				 /* stp x1, x3, [x2] */
		{0xa9000c41, 0xff1, true},   {0x3d800041, 0xff8, true},	 /* str q1, [x2] */
		{0x4c000040, 0xfc0, false}, /* st4 {..16b}, [x2]: 64 bytes */
		{0x4c000040, 0xfc1, true},   {0xd50b7422, 0xfff, false}, /* dc zva: aligned */
		{0xf81f8041, 0x1000, false},				 /* stur x1, [x2, #-8] */
		{0xf81f8041, 0x1004, true},
	};
	struct rv_arm64_regs r;
	struct rv_arm64_insn in;

	(void)state;
	registers(&r);
	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		r.x[2] = 0xffff800012340000ull + t[i].off;
		rv_arm64_decode(t[i].word, &r, &in);
		assert_int_equal(in.kind, RV_ARM64_STORE);
		assert_int_equal(in.crosses_page, t[i].crosses);
	}
	r.x[2] = ~0ull - 3; /* over the top of the address space */
	rv_arm64_decode(0xf9000041, &r, &in);
	assert_true(in.crosses_page && in.va == ~0ull - 3);
	/* cpye [x1]!, [x2]!, x3! by option B, with all that a register holds */
	r.pstate |= PSTATE_C;
	r.x[3] = ~0ull;
	rv_arm64_decode(0x1d820461, &r, &in);
	assert_true(in.crosses_page && in.len == ~0ull);
}

/* Sizes of DC ZVA, up to the architecture's most (DCZID_EL0.BS is 4 bits of words). */
static void test_zva(void **state)
{
	struct rv_arm64_regs r;
	struct rv_arm64_insn in;

	(void)state;
	registers(&r);
	r.x[2] = 0xffff80001234ffffull;
	for (uint32_t bs = 0; bs < 16; bs++) {
		uint64_t n = 4ull << bs;

		r.dczid = bs | 0xffffffe0u | (bs & 1) << 4; /* DZP and above do not matter */
		rv_arm64_decode(0xd50b7422, &r, &in);
		assert_int_equal(in.kind, RV_ARM64_STORE);
		assert_int_equal(in.len, n);
		assert_true(in.va == (r.x[2] & ~(n - 1)));
		assert_true(in.len % in.unit == 0);
		assert_int_equal(in.crosses_page, n > 4096);
	}
}

/* The registers in the middle of a set or a copy, as both options keep them. */
static void test_mops(void **state)
{
	static const struct {
		uint32_t word;
		uint64_t pstate, n;
		int64_t off; /* of va from Xd */
		uint64_t len;
	} t[] = {
		/* [x1]!, size x3: setp, setm, sete with x2; cpy* with [x2]! */
		{0x19c20461, 0, 64, 0, 64},
		{0x19c20461, PSTATE_C, 64, 0, 64},
		{0x19c20461, 0, ~0ull, 0, ~0ull >> 1},
		{0x19c24461, 0, 0ull - 48, -48, 48},
		{0x19c24461, PSTATE_C, 48, 0, 48},
		{0x19c28461, 0, 0ull - 1, -1, 1},
		{0x19c28461, PSTATE_C, 1, 0, 1},
		/* cpyfp, cpyfm, cpyfe */
		{0x19020461, PSTATE_C | PSTATE_N, 64, 0, 64},
		{0x19020461, 0, ~0ull, 0, ~0ull >> 9},
		{0x19420461, 0, 0ull - 48, -48, 48},
		{0x19420461, PSTATE_C, 48, 0, 48},
		{0x19420461, PSTATE_C | PSTATE_N, 48, 0, 48}, /* forward only */
		{0x19820461, PSTATE_C, 8, 0, 8},
		/* cpyp, cpym, cpye */
		{0x1d020461, PSTATE_C | PSTATE_N, 64, 0, 64},
		{0x1d420461, 0, 0ull - 48, -48, 48},
		{0x1d420461, 0, 48, 0, 48}, /* backward: the end comes first */
		{0x1d420461, PSTATE_C, 48, 0, 48},
		{0x1d420461, PSTATE_C | PSTATE_N, 48, -48, 48},
		{0x1d820461, PSTATE_C | PSTATE_N, 8, -8, 8},
	};
	struct rv_arm64_regs r;
	struct rv_arm64_insn in;

	(void)state;
	registers(&r);
	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		r.pstate = 5 | t[i].pstate;
		r.x[3] = t[i].n;
		rv_arm64_decode(t[i].word, &r, &in);
		assert_int_equal(in.kind, RV_ARM64_STORE);
		assert_true(in.mops && in.unit == 1);
		assert_true(in.va == r.x[1] + (uint64_t)t[i].off);
		assert_true(in.len == t[i].len);
	}
}

static void test_aarch32(void **state)
{
	struct rv_arm64_regs r;
	struct rv_arm64_insn in;

	(void)state;
	registers(&r);
	r.pstate |= 1 << 4;
	rv_arm64_decode(0xd503201f, &r, &in); /* a NOP in A64 */
	assert_int_equal(in.kind, RV_ARM64_UNKNOWN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stores),	    cmocka_unit_test(test_no_stores),
		cmocka_unit_test(test_unknown),	    cmocka_unit_test(test_cache),
		cmocka_unit_test(test_second_word), cmocka_unit_test(test_pages),
		cmocka_unit_test(test_zva),	    cmocka_unit_test(test_mops),
		cmocka_unit_test(test_aarch32),
	};

	return cmocka_run_group_tests_name("arm64_decode", tests, NULL, NULL);
}
