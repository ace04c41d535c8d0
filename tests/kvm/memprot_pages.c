/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memprot_pages.c: stores that are no row of their own: one that meets two regions with
 * different answers, and the CPU's own into a page table.
 */
#include "memprot_test.h"

/* Regions with different answers: one write that reaches both gets the harder one. */
void mpt_two_regions(void)
{
	static const struct {
		const char *name;
		enum rv_action one, two;
		bool lands;
	} m[] = {
		{"record+deny", RV_ACT_RECORD, RV_ACT_DENY, false},
		{"deny+record", RV_ACT_DENY, RV_ACT_RECORD, false},
		{"record+record", RV_ACT_RECORD, RV_ACT_RECORD, true},
	};
	static uint8_t before[WLEN];

	for (size_t i = 0; i < sizeof(m) / sizeof(m[0]); i++) {
		uint8_t *w = mpt_mem(WINDOW, WLEN), *code = mpt_mem(CODE, 64);
		const char *why;
		char name[40];
		size_t n = 0;

		mpt_fill(w);
		mpt_fill(before);
		n += mpt_unhex("48bb", code); /* mov rbx, across the border */
		memcpy(code + n, &(uint64_t){HIGH + WINDOW + P2 - 4}, 8);
		n += 8;
		n += mpt_unhex("488903", code + n); /* mov [rbx], rax */
		n += mpt_unhex("e6ee", code + n);   /* out 0xee: end */
		mpt_seal.act[0] = m[i].one;
		mpt_seal.act[1] = m[i].two;
		mpt_seal.events = 0;
		why = mpt_run(1, HIGH + CODE, HANG);
		if (!why && mpt_seal.events != 2)
			why = "expected an event for each region";
		if (!why && m[i].lands && !memcmp(w, before, WLEN))
			why = "the write did not land";
		if (!why && !m[i].lands)
			why = mpt_differs(w, before, 0, WLEN);
		snprintf(name, sizeof(name), "two-regions/%s", m[i].name);
		mpt_result(name, why);
	}
}

/*
 * The CPU's own writes: a page table in a guarded page gets its accessed and dirty bits.
 * No operand leads there, and the instruction must neither hang nor get past a denial.
 */
void mpt_page_table_bits(void)
{
	static const enum rv_action acts[] = {RV_ACT_RECORD, RV_ACT_DENY};
	uint64_t *pdpt = (void *)mpt_mem(PDPT, 4096), *pd = (void *)mpt_mem(PD2, 4096);
	uint64_t *pt = (void *)mpt_mem(WINDOW + P1, 4096);

	pdpt[1] = PD2 | 0x63; /* these have their bits already */
	pd[0] = (WINDOW + P1) | 0x63;
	for (size_t i = 0; i < 2; i++) {
		uint8_t *code = mpt_mem(CODE, 64), *page = mpt_mem(SOURCE + 0x1000, 8);
		bool landed;
		const char *why;
		char name[40];
		size_t n = 0;

		memset(pt, 0, 4096);
		pt[0] = (SOURCE + 0x1000) | 3;
		memset(page, 0, 8);
		n += mpt_unhex("48bb", code);
		memcpy(code + n, &(uint64_t){HIGH + (1ull << 30)}, 8);
		n += 8;
		n += mpt_unhex("c603a5", code + n); /* mov byte [rbx], 0xa5 */
		n += mpt_unhex("e6ee", code + n);
		mpt_seal.act[0] = mpt_seal.act[1] = acts[i];
		mpt_seal.events = 0;
		why = mpt_run(1, HIGH + CODE, HANG);
		landed = page[0] == 0xa5;
		if (!why && !mpt_seal.events)
			why = "no event";
		if (!why && acts[i] == RV_ACT_RECORD && (!landed || (pt[0] & 0x60) != 0x60))
			why = "the write or its bits did not land";
		if (!why && acts[i] == RV_ACT_DENY && (landed || pt[0] & 0x60))
			why = "a guarded page table was changed";
		snprintf(name, sizeof(name), "page-table-bits/%s", i ? "deny" : "record");
		mpt_result(name, why);
	}
	pdpt[1] = 0;
}
