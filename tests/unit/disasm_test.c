/* SPDX-License-Identifier: Apache-2.0 */
/* disasm_test.c: one instruction at a time, both architectures, several threads. */
#include <disasm.h>

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define SKIP_IF_MISSING()                                       \
	do {                                                    \
		struct rv_err why;                              \
		if (!rv_insn_ready(&why)) {                     \
			print_message("# SKIP %s\n", why.what); \
			skip();                                 \
		}                                               \
	} while (0)

static const uint8_t call_next[] = {0xe8, 0x10, 0, 0, 0};
static const uint8_t bl_next[] = {0x04, 0, 0, 0x94};

static void x86(void **state)
{
	static const uint8_t store[] = {0x48, 0x89, 0x44, 0x8b, 0x10, 0xcc};
	struct rv_insn in;
	struct rv_err err;

	(void)state;
	SKIP_IF_MISSING();
	assert_int_equal(rv_insn_decode(RV_ARCH_X86_64, call_next, 5, 0x1000, &in, &err), 0);
	assert_int_equal(in.len, 5);
	assert_string_equal(in.text, "call 0x1015");
	assert_int_equal(rv_insn_decode(RV_ARCH_X86_64, store, sizeof(store), 0, &in, &err), 0);
	assert_int_equal(in.len, 5);
	assert_non_null(in.cs->detail);
	assert_int_equal(in.cs->detail->x86.op_count, 2);
	assert_int_equal(in.cs->detail->x86.operands[0].type, X86_OP_MEM);
	assert_int_equal(in.cs->detail->x86.operands[0].mem.disp, 0x10);
}

static void arm64(void **state)
{
	struct rv_insn in;
	struct rv_err err;

	(void)state;
	SKIP_IF_MISSING();
	assert_int_equal(rv_insn_decode(RV_ARCH_ARM64, bl_next, 4, 0x4000, &in, &err), 0);
	assert_int_equal(in.len, 4);
	assert_string_equal(in.text, "bl #0x4010");
}

static void refused(void **state)
{
	static const uint8_t half[] = {0x48, 0x89}, bad[] = {0x06, 0x90};
	struct rv_insn in;
	struct rv_err err;

	(void)state;
	SKIP_IF_MISSING();
	assert_int_equal(rv_insn_decode(RV_ARCH_X86_64, half, 2, 0x10, &in, &err), RV_EBADDATA);
	assert_true(err.has_addr && err.addr == 0x10);
	assert_int_equal(rv_insn_decode(RV_ARCH_X86_64, bad, 2, 0, &in, &err), RV_EBADDATA);
	assert_int_equal(rv_insn_decode(RV_ARCH_X86_64, bad, 0, 0, &in, &err), RV_EBADDATA);
	assert_int_equal(rv_insn_decode(RV_ARCH_ARM64, bl_next, 3, 0, &in, &err), RV_EBADDATA);
	assert_int_equal(rv_insn_decode(RV_ARCH_UNKNOWN, bl_next, 4, 0, &in, &err),
			 RV_EUNSUPPORTED);
}

/* Random bytes: never more than the bytes that were given. */
static void noise(void **state)
{
	uint8_t buf[16];
	uint32_t x = 1;

	(void)state;
	SKIP_IF_MISSING();
	for (int i = 0; i < 20000; i++) {
		struct rv_insn in;
		size_t len = i % 17;

		for (size_t k = 0; k < sizeof(buf); k++) {
			x = x * 1664525 + 1013904223;
			buf[k] = (uint8_t)(x >> 24);
		}
		if (rv_insn_decode(i & 1 ? RV_ARCH_X86_64 : RV_ARCH_ARM64, buf, len, i, &in,
				   NULL) == 0)
			assert_true(in.len > 0 && in.len <= len);
	}
}

static void *worker(void *arg)
{
	for (int i = 0; i < 2000; i++) {
		struct rv_insn in;
		bool odd = (i ^ *(int *)arg) & 1;

		if (rv_insn_decode(odd ? RV_ARCH_X86_64 : RV_ARCH_ARM64, odd ? call_next : bl_next,
				   odd ? 5 : 4, (uint64_t)i, &in, NULL) ||
		    in.cs->address != (uint64_t)i || in.len != (odd ? 5 : 4))
			return arg;
	}
	return NULL;
}

static void threads(void **state)
{
	pthread_t t[4];
	int id[4] = {0, 1, 2, 3};

	(void)state;
	SKIP_IF_MISSING();
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&t[i], NULL, worker, &id[i]), 0);
	for (int i = 0; i < 4; i++) {
		void *bad;

		pthread_join(t[i], &bad);
		assert_null(bad);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(x86),	 cmocka_unit_test(arm64),   cmocka_unit_test(refused),
		cmocka_unit_test(noise), cmocka_unit_test(threads),
	};

	return cmocka_run_group_tests_name("disasm", tests, NULL, NULL);
}
