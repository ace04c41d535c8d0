/* SPDX-License-Identifier: Apache-2.0 */
/* decode_test.c: every form of store, from its bytes to the place that it writes. */
/* unit-sources: vmm/arch/x86_64/decode.c */
#include "disasm.h"
#include "arch/x86_64/x86.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* The registers of every row. */
#define RAX   0x1000ull
#define RBX   0xffffffff00010000ull
#define RCX   0x10ull
#define RDI   0xffffffff00060000ull
#define RSP   0xffffffff00070100ull
#define RBP   0xffffffff00080000ull
#define R8    0x8000ull
#define R12   0xc000ull
#define R13   0xd000ull
#define R14   2ull
#define RIP   0xffffffff81000000ull
#define FS    0x100000000ull
#define GS    0xffff888000000000ull
#define XSAVE 11264u

/* What a row expects instead of a store. */
#define NONE         \
	{            \
		0, 0 \
	} /* an instruction whose stores are not known, or that has none */
#define BAD              \
	{                \
		0, 0xbad \
	} /* the decoder does not know the bytes at all */

static const struct row {
	const char *text, *hex;
	struct rv_x86_store want;
} rows[] = {
	{"movb [rbx], al", "8803", {RBX, 1}},
	{"mov [rbx], ax", "668903", {RBX, 2}},
	{"mov [rbx], eax", "8903", {RBX, 4}},
	{"mov [rbx], rax", "488903", {RBX, 8}},
	{"mov byte ptr [rbx], 1", "c60301", {RBX, 1}},
	{"mov qword ptr [rbx], 1", "48c70301000000", {RBX, 8}},
	{"mov [rbx+rcx*8+0x10], rax", "488944cb10", {RBX + RCX * 8 + 0x10, 8}},
	{"mov [rip+0x100], rax", "48890500010000", {RIP + 7 + 0x100, 8}},
	{"mov fs:[rbx], rax", "64488903", {FS + RBX, 8}},
	{"mov gs:[0x10], rax", "654889042510000000", {GS + 0x10, 8}},
	{"mov gs:[rbx], rax", "65488903", {GS + RBX, 8}},
	{"mov [ebx], rax", "67488903", {(uint32_t)RBX, 8}},
	{"mov [ebx+ecx*2-4], al", "6788444bfc", {(uint32_t)RBX + RCX * 2 - 4, 1}},
	{"mov fs:[ebx], al", "64678803", {FS + (uint32_t)RBX, 1}},
	{"movabs [0x1122334455667788], al", "a28877665544332211", {0x1122334455667788, 1}},
	{"movabs [0x1122334455667788], rax", "48a38877665544332211", {0x1122334455667788, 8}},
	{"movabs [0x1122334455667788], eax", "a38877665544332211", {0x1122334455667788, 4}},
	{"movabs al, [0x1122334455667788]", "a08877665544332211", NONE},
	{"movnti [rbx], eax", "0fc303", {RBX, 4}},
	{"movnti [rbx], rax", "480fc303", {RBX, 8}},
	{"movbe [rbx], ax", "660f38f103", {RBX, 2}},
	{"movbe [rbx], rax", "480f38f103", {RBX, 8}},
	{"add [rbx], rax", "480103", {RBX, 8}},
	{"add [rbx], al", "0003", {RBX, 1}},
	{"add word ptr [rbx], 1", "66830301", {RBX, 2}},
	{"lock add [rbx], rax", "f0480103", {RBX, 8}},
	{"adc [rbx], rax", "481103", {RBX, 8}},
	{"sbb [rbx], rax", "481903", {RBX, 8}},
	{"sub [rbx], rax", "482903", {RBX, 8}},
	{"and [rbx], rax", "482103", {RBX, 8}},
	{"or [rbx], rax", "480903", {RBX, 8}},
	{"xor [rbx], rax", "483103", {RBX, 8}},
	{"inc qword ptr [rbx]", "48ff03", {RBX, 8}},
	{"dec byte ptr [rbx]", "fe0b", {RBX, 1}},
	{"neg dword ptr [rbx]", "f71b", {RBX, 4}},
	{"not qword ptr [rbx]", "48f713", {RBX, 8}},
	{"shl qword ptr [rbx], 1", "48d123", {RBX, 8}},
	{"sal qword ptr [rbx], cl", "48d323", {RBX, 8}},
	{"shr dword ptr [rbx], 3", "c12b03", {RBX, 4}},
	{"sar byte ptr [rbx], 1", "d03b", {RBX, 1}},
	{"rol qword ptr [rbx], 1", "48d103", {RBX, 8}},
	{"ror qword ptr [rbx], 1", "48d10b", {RBX, 8}},
	{"rcl qword ptr [rbx], 1", "48d113", {RBX, 8}},
	{"rcr qword ptr [rbx], 1", "48d11b", {RBX, 8}},
	{"shld [rbx], rax, 3", "480fa40303", {RBX, 8}},
	{"shrd [rbx], rax, cl", "480fad03", {RBX, 8}},
	{"xadd [rbx], rax", "480fc103", {RBX, 8}},
	{"xchg [rbx], rax", "488703", {RBX, 8}},
	{"xchg [rbx], al", "8603", {RBX, 1}},
	{"cmpxchg [rbx], rax", "480fb103", {RBX, 8}},
	{"lock cmpxchg [rbx], rdx", "f0480fb113", {RBX, 8}},
	{"cmpxchg8b [rbx]", "0fc70b", {RBX, 8}},
	{"lock cmpxchg16b [rbx]", "f0480fc70b", {RBX, 16}},
	{"bts [rbx], rax", "480fab03", {RBX + 0x200, 8}},
	{"bts [rbx], eax", "0fab03", {RBX + 0x200, 4}},
	{"bts [rbx], ax", "660fab03", {RBX + 0x200, 2}},
	{"btr [rbx], rax", "480fb303", {RBX + 0x200, 8}},
	{"btc dword ptr [rbx], 5", "0fba3b05", {RBX, 4}},
	{"bts qword ptr [rbx], 67", "480fba2b43", {RBX, 8}},
	{"lock bts [rbx], rax", "f0480fab03", {RBX + 0x200, 8}},
	{"bt [rbx], rax", "480fa303", NONE},
	{"sete [rbx]", "0f9403", {RBX, 1}},
	{"setnz [rbx]", "0f9503", {RBX, 1}},
	{"seta [rbx]", "0f9703", {RBX, 1}},
	{"cmp [rbx], rax", "483903", NONE},
	{"test [rbx], rax", "488503", NONE},
	{"push rax", "50", {RSP - 8, 8}},
	{"push ax", "6650", {RSP - 2, 2}},
	{"push 5", "6a05", {RSP - 8, 8}},
	{"push qword ptr [rbx]", "ff33", {RSP - 8, 8}},
	{"push fs", "0fa0", {RSP - 8, 8}},
	{"pushf", "9c", {RSP - 8, 8}},
	{"pushfw", "669c", {RSP - 2, 2}},
	{"call .+0x100", "e8fb000000", {RSP - 8, 8}},
	{"call rax", "ffd0", {RSP - 8, 8}},
	{"call qword ptr [rbx]", "ff13", {RSP - 8, 8}},
	{"lcall [rbx]", "ff1b", {RSP - 8, 8}},
	{"rex.W lcall [rbx]", "48ff1b", {RSP - 16, 16}},
	{"enter 16, 0", "c8100000", {RSP - 24, 24}},
	{"enter 16, 3", "c8100003", {RSP - 48, 48}},
	{"leave", "c9", NONE},
	{"pop rax", "58", NONE},
	{"pop qword ptr [rbx]", "8f03", {RBX, 8}},
	{"pop word ptr [rbx]", "668f03", {RBX, 2}},
	{"pop qword ptr [rsp]", "8f0424", {RSP + 8, 8}},
	{"pop qword ptr [rsp+8]", "8f442408", {RSP + 16, 8}},
	{"push qword ptr [rsp]", "ff3424", {RSP - 8, 8}},
	{"movsb", "a4", {RDI, 1}},
	{"movsw", "66a5", {RDI, 2}},
	{"movsd", "a5", {RDI, 4}},
	{"movsq", "48a5", {RDI, 8}},
	{"rep movsb", "f3a4", {RDI, 1}},
	{"rep movsq", "f348a5", {RDI, 8}},
	{"rep movsb byte ptr es:[edi], byte ptr [esi]", "67f3a4", {(uint32_t)RDI, 1}},
	{"stosb", "aa", {RDI, 1}},
	{"stosw", "66ab", {RDI, 2}},
	{"stosd", "ab", {RDI, 4}},
	{"stosq", "48ab", {RDI, 8}},
	{"rep stosq", "f348ab", {RDI, 8}},
	{"rep stosb", "f3aa", {RDI, 1}},
	{"insb", "6c", {RDI, 1}},
	{"rep insb", "f36c", {RDI, 1}},
	{"insw", "666d", {RDI, 2}},
	{"insd", "6d", {RDI, 4}},
	{"outsb", "6e", NONE},
	{"rep outsb", "f36e", NONE},
	{"lodsb", "ac", NONE},
	{"scasb", "ae", NONE},
	{"repne scasb", "f2ae", NONE},
	{"cmpsb", "a6", NONE},
	{"sidt [rbx]", "0f010b", {RBX, 10}},
	{"sgdt [rbx]", "0f0103", {RBX, 10}},
	{"sldt [rbx]", "0f0003", {RBX, 2}},
	{"str word ptr [rbx]", "0f000b", {RBX, 2}},
	{"smsw [rbx]", "0f0123", {RBX, 2}},
	{"mov [rbx], ds", "8c1b", {RBX, 2}},
	{"fxsave [rbx]", "0fae03", {RBX, 512}},
	{"fxsave64 [rbx]", "480fae03", {RBX, 512}},
	{"fxrstor [rbx]", "0fae0b", NONE},
	{"xsave [rbx]", "0fae23", {RBX, XSAVE}},
	{"xsave64 [rbx]", "480fae23", {RBX, XSAVE}},
	{"xsaveopt [rbx]", "0fae33", {RBX, XSAVE}},
	{"xsavec [rbx]", "0fc723", {RBX, XSAVE}},
	{"xsavec64 [rbx]", "480fc723", {RBX, XSAVE}},
	{"xsaves [rbx]", "0fc72b", {RBX, XSAVE}},
	{"xsaves64 [rbx]", "480fc72b", {RBX, XSAVE}},
	{"xrstor [rbx]", "0fae2b", NONE},
	{"fnsave [rbx]", "dd33", {RBX, 108}},
	{"fnstenv [rbx]", "d933", {RBX, 28}},
	{"fnstcw [rbx]", "d93b", {RBX, 2}},
	{"fnstsw [rbx]", "dd3b", {RBX, 2}},
	{"fst dword ptr [rbx]", "d913", {RBX, 4}},
	{"fst qword ptr [rbx]", "dd13", {RBX, 8}},
	{"fstp dword ptr [rbx]", "d91b", {RBX, 4}},
	{"fstp qword ptr [rbx]", "dd1b", {RBX, 8}},
	{"fstp tbyte ptr [rbx]", "db3b", {RBX, 10}},
	{"fist word ptr [rbx]", "df13", {RBX, 2}},
	{"fist dword ptr [rbx]", "db13", {RBX, 4}},
	{"fistp qword ptr [rbx]", "df3b", {RBX, 8}},
	{"fisttp qword ptr [rbx]", "dd0b", {RBX, 8}},
	{"fbstp [rbx]", "df33", {RBX, 10}},
	{"fld qword ptr [rbx]", "dd03", NONE},
	{"stmxcsr [rbx]", "0fae1b", {RBX, 4}},
	{"ldmxcsr [rbx]", "0fae13", NONE},
	{"vstmxcsr [rbx]", "c5f8ae1b", {RBX, 4}},
	{"movd [rbx], xmm0", "660f7e03", {RBX, 4}},
	{"movq [rbx], xmm0", "660fd603", {RBX, 8}},
	{"movq [rbx], mm0", "0f7f03", {RBX, 8}},
	{"movd [rbx], mm0", "0f7e03", {RBX, 4}},
	{"movntq [rbx], mm0", "0fe703", {RBX, 8}},
	{"movdqu [rbx], xmm0", "f30f7f03", {RBX, 16}},
	{"movdqa [rbx], xmm0", "660f7f03", {RBX, 16}},
	{"movups [rbx], xmm0", "0f1103", {RBX, 16}},
	{"movaps [rbx], xmm0", "0f2903", {RBX, 16}},
	{"movupd [rbx], xmm0", "660f1103", {RBX, 16}},
	{"movapd [rbx], xmm0", "660f2903", {RBX, 16}},
	{"movss [rbx], xmm0", "f30f1103", {RBX, 4}},
	{"movsd [rbx], xmm0", "f20f1103", {RBX, 8}},
	{"movlps [rbx], xmm0", "0f1303", {RBX, 8}},
	{"movlpd [rbx], xmm0", "660f1303", {RBX, 8}},
	{"movhps [rbx], xmm0", "0f1703", {RBX, 8}},
	{"movhpd [rbx], xmm0", "660f1703", {RBX, 8}},
	{"movntps [rbx], xmm0", "0f2b03", {RBX, 16}},
	{"movntpd [rbx], xmm0", "660f2b03", {RBX, 16}},
	{"movntdq [rbx], xmm0", "660fe703", {RBX, 16}},
	{"maskmovdqu xmm0, xmm1", "660ff7c1", {RDI, 16}},
	{"maskmovq mm0, mm1", "0ff7c1", {RDI, 8}},
	{"pextrb [rbx], xmm0, 1", "660f3a140301", {RBX, 1}},
	{"pextrw [rbx], xmm0, 1", "660f3a150301", {RBX, 2}},
	{"pextrd [rbx], xmm0, 1", "660f3a160301", {RBX, 4}},
	{"pextrq [rbx], xmm0, 1", "66480f3a160301", {RBX, 8}},
	{"extractps [rbx], xmm0, 1", "660f3a170301", {RBX, 4}},
	{"vmovdqu [rbx], ymm0", "c5fe7f03", {RBX, 32}},
	{"vmovdqu [rbx], xmm0", "c5fa7f03", {RBX, 16}},
	{"vmovdqa [rbx], ymm0", "c5fd7f03", {RBX, 32}},
	{"vmovups [rbx], ymm0", "c5fc1103", {RBX, 32}},
	{"vmovaps [rbx], ymm0", "c5fc2903", {RBX, 32}},
	{"vmovss [rbx], xmm0", "c5fa1103", {RBX, 4}},
	{"vmovsd [rbx], xmm0", "c5fb1103", {RBX, 8}},
	{"vmovd [rbx], xmm0", "c5f97e03", {RBX, 4}},
	{"vmovq [rbx], xmm0", "c5f9d603", {RBX, 8}},
	{"vmovlps [rbx], xmm0", "c5f81303", {RBX, 8}},
	{"vmovhps [rbx], xmm0", "c5f81703", {RBX, 8}},
	{"vmovntdq [rbx], ymm0", "c5fde703", {RBX, 32}},
	{"vmovntps [rbx], ymm0", "c5fc2b03", {RBX, 32}},
	{"vextractf128 [rbx], ymm0, 1", "c4e37d190301", {RBX, 16}},
	{"vextracti128 [rbx], ymm0, 1", "c4e37d390301", {RBX, 16}},
	{"vpextrb [rbx], xmm0, 1", "c4e379140301", {RBX, 1}},
	{"vpextrw [rbx], xmm0, 1", "c4e379150301", {RBX, 2}},
	{"vpextrd [rbx], xmm0, 1", "c4e379160301", {RBX, 4}},
	{"vpextrq [rbx], xmm0, 1", "c4e3f9160301", {RBX, 8}},
	{"vextractps [rbx], xmm0, 1", "c4e379170301", {RBX, 4}},
	{"vcvtps2ph [rbx], ymm0, 0", "c4e37d1d0300", {RBX, 16}},
	{"vcvtps2ph [rbx], xmm0, 0", "c4e3791d0300", {RBX, 8}},
	{"vmaskmovps [rbx], ymm1, ymm0", "c4e2752e03", {RBX, 32}},
	{"vpmaskmovd [rbx], ymm1, ymm0", "c4e2758e03", {RBX, 32}},
	{"vpmaskmovq [rbx], xmm1, xmm0", "c4e2f18e03", {RBX, 16}},
	{"vmaskmovdqu xmm0, xmm1", "c5f9f7c1", {RDI, 16}},
	{"vmovdqu64 [rbx], zmm0", "62f1fe487f03", {RBX, 64}},
	{"vmovdqu32 [rbx]{k1}, zmm0", "62f17e497f03", {RBX, 64}},
	{"vmovdqu8 [rbx], zmm0", "62f17f487f03", {RBX, 64}},
	{"vmovdqu16 [rbx], ymm0", "62f1ff287f03", {RBX, 32}},
	{"vmovdqa64 [rbx], zmm0", "62f1fd487f03", {RBX, 64}},
	{"vmovups [rbx], zmm0", "62f17c481103", {RBX, 64}},
	{"vmovaps [rbx+0x40], zmm0", "62f17c48294301", {RBX + 0x40, 64}},
	{"vmovntdq [rbx], zmm0", "62f17d48e703", {RBX, 64}},
	{"vmovdqu64 [rbx+0x40], zmm16", "62e1fe487f4301", {RBX + 0x40, 64}},
	{"vpmovqb [rbx], zmm0", "62f27e483203", {RBX, 16}},
	{"vpmovqd [rbx], zmm0", "62f27e483503", {RBX, 32}},
	{"vpmovdb [rbx], zmm0", "62f27e483103", {RBX, 16}},
	{"vpmovwb [rbx], zmm0", "62f27e483003", BAD},
	{"vpmovusqd [rbx], zmm0", "62f27e481503", {RBX, 32}},
	{"vcompressps [rbx], zmm0", "62f27d488a03", BAD},
	{"vcompresspd [rbx], zmm0", "62f2fd488a03", BAD},
	{"vpcompressd [rbx]{k1}, zmm0", "62f27d498b03", {RBX, 64}},
	{"vpcompressq [rbx]{k1}, zmm0", "62f2fd498b03", {RBX, 64}},
	{"vpcompressb [rbx]{k1}, zmm0", "62f27d496303", BAD},
	{"vextractf32x4 [rbx], zmm0, 1", "62f37d48190301", {RBX, 16}},
	{"vextractf64x4 [rbx], zmm0, 1", "62f3fd481b0301", {RBX, 32}},
	{"vextracti32x8 [rbx], zmm0, 1", "62f37d483b0301", BAD},
	{"vextracti64x2 [rbx], zmm0, 1", "62f3fd48390301", BAD},
	{"vscatterdps [rbx+zmm1*4]{k1}, zmm0", "62f27d49a2048b", NONE},
	{"vpscatterdd [rbx+zmm1*4]{k1}, zmm0", "62f27d49a0048b", NONE},
	{"vpscatterqq [rbx+zmm1*8]{k1}, zmm0", "62f2fd49a104cb", NONE},
	{"vscatterqpd [rbx+ymm1*8]{k1}, ymm0", "62f2fd29a304cb", BAD},
	{"kmovw [rbx], k1", "c5f8910b", {RBX, 2}},
	{"kmovq [rbx], k1", "c4e1f8910b", BAD},
	{"kmovb [rbx], k1", "c5f9910b", {RBX, 1}},
	{"kmovd [rbx], k1", "c4e1f9910b", BAD},
	{"iretq", "48cf", NONE},
	{"int 3", "cc", NONE},
	{"int 0x80", "cd80", NONE},
	{"syscall", "0f05", NONE},
	{"wrmsr", "0f30", NONE},
	{"rdmsr", "0f32", NONE},
	{"out 0xf5, al", "e6f5", NONE},
	{"in al, dx", "ec", NONE},
	{"lea rax, [rbx]", "488d03", NONE},
	{"nop dword ptr [rbx]", "0f1f03", NONE},
	{"prefetcht0 [rbx]", "0f180b", NONE},
	{"prefetchw [rbx]", "0f0d0b", NONE},
	{"clflush [rbx]", "0fae3b", NONE},
	{"clflushopt [rbx]", "660fae3b", NONE},
	{"clwb [rbx]", "660fae33", NONE},
	{"invlpg [rbx]", "0f013b", NONE},
	{"invpcid rax, [rbx]", "660f388203", NONE},
	{"lgdt [rbx]", "0f0113", NONE},
	{"lidt [rbx]", "0f011b", NONE},
	{"ltr word ptr [rbx]", "0f001b", NONE},
	{"mov rax, [rbx]", "488b03", NONE},
	{"mov al, [rbx]", "8a03", NONE},
	{"movdir64b rbx, [rcx]", "660f38f819", BAD},
	{"movdiri [rbx], rax", "480f38f903", BAD},
	{"enqcmd rbx, [rcx]", "f20f38f819", BAD},
	{"wrssq [rbx], rax", "480f38f603", BAD},
	{"wrussq [rbx], rax", "66480f38f503", BAD},
	{"clrssbsy [rbx]", "f30fae33", {RBX, XSAVE}},
	{"rstorssp [rbx]", "f30f012b", BAD},
	{"vmptrst [rbx]", "0fc73b", {RBX, 8}},
	{"vmread [rbx], rax", "0f7803", {RBX, 8}},
	{"vmread rax, rbx", "0f78d8", NONE},
	{"bndmov [rbx], bnd0", "660f1b03", NONE},
	{"bndstx [rbx+rcx], bnd0", "0f1b040b", NONE},
	{"rdsspq rax", "f3480f1ec8", BAD},
	{"int1", "f1", NONE},
	{"xabort 1", "c6f801", NONE},
	{"cldemote [rbx]", "0f1c03", NONE},
	{"ptwrite qword ptr [rbx]", "f3480fae23", {RBX, XSAVE}},
	{"adox rax, [rbx]", "f3480f38f603", NONE},
	{"mov [rsp], rax", "48890424", {RSP, 8}},
	{"mov [rsp-8], rax", "48894424f8", {RSP - 8, 8}},
	{"mov [rbp], rax", "48894500", {RBP, 8}},
	{"mov [r12], r13", "4d892c24", {R12, 8}},
	{"mov [r13+r14*4+1], r15b", "47887cb501", {R13 + R14 * 4 + 1, 1}},
	{"mov [0x1234], eax", "89042534120000", {0x1234, 4}},
	{"lock inc dword ptr [r8]", "f041ff00", {R8, 4}},
	{"repne movsb", "f2a4", {RDI, 1}},
	{"fs movsb", "64a4", {RDI, 1}},
	{"xacquire lock add [rbx], eax", "f2f00103", {RBX, 4}},
	{"xrelease mov [rbx], eax", "f38903", {RBX, 4}},
	{"aadd [rbx], rax", "480f38fc03", BAD},
	{"cmpbexadd [rbx], rax, rcx", "c4e2f1e603", BAD},
	{"vmovsh [rbx], xmm0", "62f57e081103", BAD},
	{"vmovw [rbx], xmm0", "62f57d087e03", BAD},
	{"tilestored [rbx+rcx], tmm0", "c4e27a4b040b", BAD},
	{"sttilecfg [rbx]", "c4e2794903", BAD},
	/* displacements and bases that wrap or extend */
	{"mov [rip-7], al", "8805f9ffffff", {RIP + 6 - 7, 1}},
	{"mov [eip+0x10], eax", "67890510000000", {(uint32_t)(RIP + 7 + 0x10), 4}},
	{"mov [0xffffffff81000000], eax", "89042500000081", {0xffffffff81000000ull, 4}},
	{"mov [rbx-0x80000000], eax", "898300000080", {RBX - 0x80000000ull, 4}},
	{"mov gs:[rip+8], eax", "65890508000000", {GS + RIP + 7 + 8, 4}},
	{"lcall [rbx] (66)", "66ff1b", {RSP - 4, 4}},
	{"push rax (66 REX.W)", "664850", {RSP - 8, 8}},
	{"push 5 (66)", "666a05", {RSP - 2, 2}},
	{"pop word [rsp]", "668f0424", {RSP + 2, 2}},
	{"maskmovdqu fs:[rdi]", "64660ff7c1", {FS + RDI, 16}},
	{"maskmovdqu [edi]", "67660ff7c1", {(uint32_t)RDI, 16}},
	{"mov cs:[rbx], eax (no base in 64-bit mode)", "2e8903", {RBX, 4}},
	{"mov fs:[rbx] after a wrong REX", "48648903", {FS + RBX, 4}},
	/* read only, memory first */
	{"mul qword [rbx]", "48f723", NONE},
	{"idiv dword [rbx]", "f73b", NONE},
	{"jmp [rbx]", "ff23", NONE},
	{"fadd qword [rbx]", "dc03", NONE},
	{"fild word [rbx]", "df03", NONE},
	{"fldcw [rbx]", "d92b", NONE},
	{"frstor [rbx]", "dd23", NONE},
	{"lldt [rbx]", "0f0013", NONE},
	{"lmsw [rbx]", "0f0133", NONE},
	{"verw [rbx]", "0f002b", NONE},
	{"cmpsq", "48a7", NONE},
	{"hlt", "f4", NONE},
	/* not instructions */
	{"ud2 in the middle of nowhere: push es", "06", BAD},
	{"sixteen prefixes", "66666666666666666666666666666690", BAD},
	{"cut off", "4889", BAD},
};

/*
 * Capstone 5 knows instructions that 4 (Debian 12) does not, and the sizes of some others.
 * A store too many (cldemote, ptwrite, bounds) costs a look-up and is no fault.
 */
static const struct {
	const char *hex;
	struct rv_x86_store want;
} newer[] = {
	{"62f27e483203", {RBX, 8}},    {"62f27e483003", {RBX, 32}}, {"62f27d488a03", {RBX, 64}},
	{"62f2fd488a03", {RBX, 64}},   {"62f27d496303", {RBX, 64}}, {"62f37d483b0301", {RBX, 32}},
	{"62f3fd48390301", {RBX, 16}}, {"62f2fd29a304cb", NONE},    {"c4e1f8910b", {RBX, 8}},
	{"c4e1f9910b", {RBX, 4}},      {"660f38f819", NONE},	    {"480f38f903", {RBX, 8}},
	{"480f38f603", {RBX, 8}},      {"66480f38f503", {RBX, 8}},  {"f30fae33", {RBX, 8}},
	{"f30f012b", {RBX, 8}},	       {"660f1b03", {RBX, 16}},	    {"0f1b040b", {RBX + RCX, 16}},
	{"f3480f1ec8", NONE},	       {"0f1c03", {RBX, 1}},	    {"f3480fae23", {RBX, 8}},
};

static struct rv_x86_store wanted(const struct row *w)
{
	for (size_t i = 0; CS_API_MAJOR >= 5 && i < sizeof(newer) / sizeof(newer[0]); i++)
		if (!strcmp(newer[i].hex, w->hex))
			return newer[i].want;
	return w->want;
}

static void registers(struct kvm_regs *r, struct kvm_sregs *s)
{
	memset(r, 0, sizeof(*r));
	memset(s, 0, sizeof(*s));
	r->rax = RAX;
	r->rbx = RBX;
	r->rcx = RCX;
	r->rdx = 3;
	r->rsi = 0x50000;
	r->rdi = RDI;
	r->rsp = RSP;
	r->rbp = RBP;
	r->r8 = R8;
	r->r12 = R12;
	r->r13 = R13;
	r->r14 = R14;
	r->r15 = 0xf000;
	r->rip = RIP;
	s->cs.l = 1;
	s->fs.base = FS;
	s->gs.base = GS;
	s->ds.base = s->es.base = s->cs.base = 0x123450000ull; /* not used in 64-bit mode */
}

static size_t unhex(const char *hex, uint8_t *out)
{
	size_t n = strlen(hex) / 2;

	for (size_t i = 0; i < n; i++) {
		char two[3] = {hex[2 * i], hex[2 * i + 1], 0};

		out[i] = (uint8_t)strtoul(two, NULL, 16);
	}
	return n;
}

static int decode(const char *hex, const struct kvm_regs *r, const struct kvm_sregs *s,
		  struct rv_x86_insn *in)
{
	/* Of its own size, so that a read beyond the bytes is found by the sanitizer. */
	size_t n = strlen(hex) / 2;
	uint8_t *code = malloc(n);
	struct rv_err err;
	int rc;

	assert_non_null(code);
	unhex(hex, code);
	rc = rv_x86_decode(code, n, r, s, in, &err);
	free(code);
	return rc;
}

static bool row_ok(const struct row *w, int rc, const struct rv_x86_insn *in)
{
	struct rv_x86_store want = wanted(w);
	bool bad = !want.va && want.len == 0xbad, none = !want.va && !want.len;

	if (bad)
		return rc == RV_EBADDATA && !in->nstores && !in->len;
	if (in->len != strlen(w->hex) / 2)
		return false;
	if (none)
		return rc == RV_EUNSUPPORTED && !in->nstores && in->text[0];
	return !rc && in->nstores == 1 && in->store[0].va == want.va &&
	       in->store[0].len == want.len && in->text[0];
}

static void table(void **state)
{
	struct rv_x86_insn in;
	struct kvm_regs r;
	struct kvm_sregs s;
	int failed = 0;

	(void)state;
	registers(&r, &s);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		int rc = decode(rows[i].hex, &r, &s, &in);

		if (row_ok(&rows[i], rc, &in))
			continue;
		failed++;
		print_error(
			"%s (%s): rc %d len %u stores %u at 0x%llx+%u [%s], expected 0x%llx+%u\n",
			rows[i].text, rows[i].hex, rc, in.len, in.nstores,
			(unsigned long long)in.store[0].va, in.store[0].len, in.text,
			(unsigned long long)wanted(&rows[i]).va, wanted(&rows[i]).len);
	}
	assert_int_equal(failed, 0);
}

/* The bit number is signed, as wide as the operand, and moves the address. */
static void bit_strings(void **state)
{
	static const struct {
		const char *hex;
		uint64_t rax;
		int64_t off;
		uint32_t len;
	} t[] = {
		{"480fab03", 0, 0, 8},
		{"480fab03", 63, 0, 8},
		{"480fab03", 64, 8, 8},
		{"480fab03", (uint64_t)-1, -8, 8},
		{"480fab03", (uint64_t)-64, -8, 8},
		{"480fab03", (uint64_t)-65, -16, 8},
		{"480fab03", 1ull << 40, 1ll << 37, 8},
		{"480fb303", 0x8000000000000000ull, -(1ll << 60), 8},
		{"480fbb03", 4096 * 8, 4096, 8},
		{"0fab03", 31, 0, 4},
		{"0fab03", 32, 4, 4},
		{"0fab03", 0xffffffff, -4, 4}, /* 32 bits wide, and signed */
		{"0fab03", 0x1234567800000020, 4, 4},
		{"0fb303", 0x80000000, -(1ll << 28), 4},
		{"660fab03", 15, 0, 2},
		{"660fab03", 16, 2, 2},
		{"660fab03", 0xffff, -2, 2},
		{"660fbb03", 0x8000, -4096, 2},
		{"f0480fab03", 4096 * 8, 4096, 8}, /* lock */
		{"480fba2bff", 0, 0, 8},	   /* an immediate stays within the operand */
	};
	struct rv_x86_insn in;
	struct kvm_regs r;
	struct kvm_sregs s;

	(void)state;
	registers(&r, &s);
	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		r.rax = t[i].rax;
		assert_int_equal(decode(t[i].hex, &r, &s, &in), 0);
		assert_int_equal(in.nstores, 1);
		assert_true(in.store[0].va == RBX + (uint64_t)t[i].off);
		assert_int_equal(in.store[0].len, t[i].len);
	}
}

/* What is written, where the instruction and the registers say it; else nothing is claimed. */
static void data(void **state)
{
	static const struct {
		const char *hex, *want; /* as it lies in memory; NULL: not known */
	} t[] = {
		{"8803", "00"},				/* mov [rbx], al */
		{"8823", "10"},				/* mov [rbx], ah */
		{"668903", "0010"},			/* mov [rbx], ax */
		{"48890b", "1000000000000000"},		/* mov [rbx], rcx */
		{"c60301", "01"},			/* mov byte [rbx], 1 */
		{"66c7033412", "3412"},			/* mov word [rbx], 0x1234 */
		{"48c703feffffff", "feffffffffffffff"}, /* sign-extended */
		{"480fc303", "0010000000000000"},	/* movnti [rbx], rax */
		{"660f38f103", "1000"},			/* movbe [rbx], ax */
		{"480f38f103", "0000000000001000"},	/* movbe [rbx], rax */
		{"488703", "0010000000000000"},		/* xchg [rbx], rax */
		{"48a38877665544332211", "0010000000000000"},
		{"aa", "00"},			    /* stosb */
		{"48ab", "0010000000000000"},	    /* stosq */
		{"50", "0010000000000000"},	    /* push rax */
		{"6aff", "ffffffffffffffff"},	    /* push -1 */
		{"e800000000", "05000081ffffffff"}, /* call: where it returns to */
		{"480103", NULL},		    /* add [rbx], rax: depends on memory */
		{"ff33", NULL},			    /* push [rbx] */
		{"a4", NULL},			    /* movsb */
		{"0f1103", NULL},		    /* movups [rbx], xmm0 */
		{"668c1b", NULL},		    /* mov [rbx], ds: no general register */
	};
	struct rv_x86_insn in;
	struct kvm_regs r;
	struct kvm_sregs s;

	(void)state;
	registers(&r, &s);
	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		uint8_t want[8];
		size_t n = t[i].want ? unhex(t[i].want, want) : 0;

		assert_int_equal(decode(t[i].hex, &r, &s, &in), 0);
		if (in.ndata != n || memcmp(in.data, want, n))
			fail_msg("%s: %u bytes %02x.., expected %s", t[i].hex, in.ndata, in.data[0],
				 t[i].want ? t[i].want : "none");
	}
}

static void marks(void **state)
{
	struct rv_x86_insn in;
	struct kvm_regs r;
	struct kvm_sregs s;

	(void)state;
	registers(&r, &s);
	assert_int_equal(decode("f3a4", &r, &s, &in), 0);
	assert_true(in.rep);
	assert_int_equal(decode("a4", &r, &s, &in), 0);
	assert_false(in.rep);
	assert_int_equal(decode("f30f7f03", &r, &s, &in), 0); /* movdqu: F3 is not rep */
	assert_false(in.rep);
	assert_int_equal(decode("9c", &r, &s, &in), 0);
	assert_true(in.pushes_flags);
	assert_int_equal(decode("669c", &r, &s, &in), 0);
	assert_true(in.pushes_flags);
	assert_int_equal(decode("50", &r, &s, &in), 0);
	assert_false(in.pushes_flags);
	/* Compatibility mode has other instructions behind the same bytes. */
	s.cs.l = 0;
	assert_int_equal(decode("8803", &r, &s, &in), RV_EUNSUPPORTED);
	assert_int_equal(in.nstores, 0);
	assert_int_equal(in.len, 0);
}

/* No bytes whatever make it claim success without a store, or more than its room. */
static void any_bytes(void **state)
{
	struct rv_x86_insn in;
	struct kvm_regs r;
	struct kvm_sregs s;
	uint32_t seed = 1;

	(void)state;
	registers(&r, &s);
	for (int i = 0; i < 200000; i++) {
		uint8_t code[15];
		int rc;

		for (size_t k = 0; k < sizeof(code); k++) {
			seed = seed * 1664525u + 1013904223u;
			code[k] = (uint8_t)(seed >> 24);
		}
		rc = rv_x86_decode(code, sizeof(code), &r, &s, &in, NULL);
		assert_true(in.nstores <= sizeof(in.store) / sizeof(in.store[0]));
		assert_true(in.len <= sizeof(code));
		assert_true(rc ? !in.nstores : in.nstores > 0 && in.len > 0);
		for (uint32_t k = 0; k < in.nstores; k++)
			assert_true(in.store[k].len > 0 && in.store[k].len <= 0x10000 + 8 * 33);
	}
}

static int setup(void **state)
{
	struct rv_err err;

	(void)state;
	/* Without capstone there is nothing to test; that is a failure, not a pass. */
	return rv_insn_ready(&err) ? 0 : -1;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(table), cmocka_unit_test(bit_strings), cmocka_unit_test(data),
		cmocka_unit_test(marks), cmocka_unit_test(any_bytes),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
