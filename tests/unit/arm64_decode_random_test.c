/* SPDX-License-Identifier: Apache-2.0 */
/* arm64_decode_random_test.c: random A64 words, against capstone and against sense. */
/* unit-sources: vmm/arch/arm64/decode.c */
#include "arch/arm64/decode.h"
#include "disasm.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define PC 0xffff800008001000ull

/* Every register different, low halves negative. */
static void registers(struct rv_arm64_regs *r)
{
	memset(r, 0, sizeof(*r));
	for (uint64_t i = 0; i < 31; i++)
		r->x[i] = 0xffff800080000000ull + i * 0x100000100ull + i;
	r->sp = 0xffff80001234bfc0ull;
	r->pc = PC;
	r->pstate = 0x3c5;
	r->dczid = 4;
}

static bool starts(const char *s, const char *const *with)
{
	for (; *with; with++)
		if (!strncmp(s, *with, strlen(*with)))
			return true;
	return false;
}

/* What capstone's mnemonic says. It knows up to Armv8.5 or so. */
static bool cs_store(const char *s)
{
	static const char *const names[] = {"st",     "swp",	"cas",	  "ldadd",  "ldclr",
					    "ldeor",  "ldset",	"ldsmax", "ldsmin", "ldumax",
					    "ldumin", "dc zva", NULL};

	return starts(s, names);
}

static bool cs_load(const char *s)
{
	static const char *const names[] = {"ld", "prf", NULL};

	return !cs_store(s) && starts(s, names);
}

static uint64_t cs_reg(const struct rv_arm64_regs *r, unsigned reg)
{
	if (reg == ARM64_REG_SP)
		return r->sp;
	if (reg == ARM64_REG_X29)
		return r->x[29];
	if (reg == ARM64_REG_X30)
		return r->x[30];
	if (reg >= ARM64_REG_X0 && reg <= ARM64_REG_X28)
		return r->x[reg - ARM64_REG_X0];
	if (reg >= ARM64_REG_W0 && reg <= ARM64_REG_W30)
		return (uint32_t)r->x[reg - ARM64_REG_W0];
	return 0;
}

/* Capstone's operands -> the address, where it is one and no post-index. */
static bool cs_address(const struct rv_insn *in, const struct rv_arm64_regs *r, uint64_t *va)
{
	const cs_arm64 *a = &in->cs->detail->arm64;

	for (uint8_t i = 0; i < a->op_count; i++) {
		const cs_arm64_op *op = &a->operands[i];
		uint64_t x;

		if (op->type != ARM64_OP_MEM || strstr(in->text, "], "))
			continue;
		x = cs_reg(r, op->mem.index);
		if (op->ext == ARM64_EXT_SXTW)
			x = (uint64_t)(int64_t)(int32_t)x;
		if (op->shift.type == ARM64_SFT_LSL)
			x <<= op->shift.value;
		*va = cs_reg(r, op->mem.base) + x + (uint64_t)(int64_t)op->mem.disp;
		return true;
	}
	return false;
}

/*
 * Random words of the load/store space, against capstone: what it calls a store must not
 * be "not a store" here, what it calls a load must not be a store, and addresses agree.
 */
static void test_capstone(void **state)
{
	struct rv_arm64_regs r;
	uint32_t both = 0, addresses = 0;
	uint64_t seed = 1;

	(void)state;
	registers(&r);
	if (!rv_insn_ready(NULL)) {
		print_message("# SKIP no capstone\n");
		skip();
	}
	for (int i = 0; i < 300000; i++) {
		struct rv_arm64_insn in;
		struct rv_insn cs;
		uint32_t w;
		uint64_t va;

		seed = seed * 6364136223846793005ull + 1442695040888963407ull;
		w = ((uint32_t)(seed >> 32) & ~(1u << 25)) | 1u << 27;
		/* Sparse classes get their share. */
		if (i % 4 == 1)
			w = (w & 0xc0ffffff) | 0x08000000;
		else if (i % 4 == 2)
			w = (w & 0xc0fffcff) | 0x38000000;
		else if (i % 4 == 3 && i & 4)
			w = (w & 0x40ff7fff) | 0x0c000000 | (w & 1 << 24);
		if (rv_insn_decode(RV_ARCH_ARM64, &w, sizeof(w), PC, &cs, NULL))
			continue;
		rv_arm64_decode(w, &r, &in);
		if ((cs_store(cs.text) && in.kind == RV_ARM64_NOT_A_STORE) ||
		    (cs_load(cs.text) && in.kind == RV_ARM64_STORE))
			fail_msg("0x%08x \"%s\": kind %d", w, cs.text, in.kind);
		if (in.kind != RV_ARM64_STORE)
			continue;
		if (!cs_store(cs.text))
			fail_msg("0x%08x \"%s\": called a store", w, cs.text);
		both++;
		if (!cs_address(&cs, &r, &va))
			continue;
		if (va != in.va)
			fail_msg("0x%08x \"%s\": 0x%llx, expected 0x%llx", w, cs.text,
				 (unsigned long long)in.va, (unsigned long long)va);
		addresses++;
	}
	/* The comparison took place. */
	assert_true(both > 40000 && addresses > 20000);
}

/* Any word at all: one of four kinds, and what is said of it hangs together. */
static void test_any_word(void **state)
{
	struct rv_arm64_regs r;
	struct rv_arm64_insn in;
	uint64_t seed = 7;

	(void)state;
	registers(&r);
	for (int i = 0; i < 1000000; i++) {
		seed = seed * 6364136223846793005ull + 1442695040888963407ull;
		rv_arm64_decode((uint32_t)(seed >> 32), &r, &in);
		assert_non_null(in.why);
		assert_true(in.value_len <= sizeof(in.value) && in.value_len <= in.len);
		if (in.kind == RV_ARM64_STORE || in.kind == RV_ARM64_CACHE) {
			assert_true(in.len > 0 && in.unit > 0 && in.len % in.unit == 0);
			assert_true(!in.value_len || in.len % in.value_len == 0);
			assert_true(in.mops || in.len <= 64);
		} else {
			assert_true(!in.len && !in.writeback && !in.exclusive && !in.tags);
		}
		assert_int_equal(in.kind == RV_ARM64_UNKNOWN, in.why[0] != 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_capstone),
		cmocka_unit_test(test_any_word),
	};

	return cmocka_run_group_tests_name("arm64_decode_random", tests, NULL, NULL);
}
