/* SPDX-License-Identifier: Apache-2.0 */
/* smp_guest.c: start the other CPUs, and what each says it is. Argument: cpus=. */
#include "lib.h"

#define LAPIC	0xfee00000ull
#define ICR	(LAPIC + 0x300)
#define AP_PAGE 0x30000ull
#define MAX	64
#define ADDS	20000u

struct identity {
	uint32_t lapic, leaf1, leafb, count, smt_eax, smt_ebx, core_eax, core_ebx, smt_type,
		core_type, end_type, hypervisor, htt;
	volatile uint32_t done;
};

static struct identity who[MAX];
static volatile uint64_t shared;
static volatile uint32_t online, go;
extern char ap_code[], ap_code_end[];
void ap_main(uint32_t index);

static void look(struct identity *w)
{
	struct cpuid c = cpuid(1, 0), b0 = cpuid(0xb, 0), b1 = cpuid(0xb, 1), b2 = cpuid(0xb, 2);

	w->lapic = read32(LAPIC + 0x20) >> 24;
	w->leaf1 = c.ebx >> 24;
	w->count = c.ebx >> 16 & 0xff;
	w->hypervisor = c.ecx >> 31;
	w->htt = c.edx >> 28 & 1;
	w->leafb = b0.edx == b1.edx ? b0.edx : ~0u;
	w->smt_eax = b0.eax & 31;
	w->smt_ebx = b0.ebx & 0xffff;
	w->smt_type = b0.ecx >> 8 & 0xff;
	w->core_eax = b1.eax & 31;
	w->core_ebx = b1.ebx & 0xffff;
	w->core_type = b1.ecx >> 8 & 0xff;
	w->end_type = b2.ecx >> 8 & 0xff;
}

static void work(void)
{
	for (uint32_t i = 0; i < ADDS; i++)
		asm volatile("lock incq %0" : "+m"(shared));
}

void ap_main(uint32_t index)
{
	look(&who[index + 1]);
	asm volatile("lock incl %0" : "+m"(online));
	while (!go)
		asm volatile("pause");
	work();
	who[index + 1].done = 1;
}

static void send(uint32_t icr)
{
	write32(ICR, icr);
	for (uint32_t i = 0; i < 1000000 && (read32(ICR) & 0x1000); i++)
		asm volatile("pause");
}

/* Wait until *p is n, a minute at most: an emulated host takes its time. */
static bool reach(volatile uint32_t *p, uint32_t n)
{
	for (uint32_t i = 0; i < 60000 && *p != n; i++)
		delay_us(1000);
	return *p == n;
}

static uint32_t width(uint32_t n)
{
	uint32_t w = 0;

	while ((1u << w) < n)
		w++;
	return w;
}

static void check(uint32_t n)
{
	uint64_t ids = 0, same = 0, topo = 0, bits = 0;

	for (uint32_t i = 0; i < n; i++) {
		struct identity *w = &who[i];

		ids |= 1ull << (w->lapic & 63);
		same += w->lapic == w->leaf1 && w->leaf1 == w->leafb;
		topo += w->count == n && w->smt_eax == 0 && w->smt_ebx == 1 && w->smt_type == 1 &&
			w->core_eax == width(n) && w->core_ebx == n && w->core_type == 2 &&
			w->end_type == 0;
		bits += w->hypervisor && w->htt == (n > 1);
		print("# cpu %u: apic %u, leaf 1 %u of %u, leaf b %u, smt %u/%u type %u, core %u/%u type %u, then %u\n",
		      i, w->lapic, w->leaf1, w->count, w->leafb, w->smt_eax, w->smt_ebx,
		      w->smt_type, w->core_eax, w->core_ebx, w->core_type, w->end_type);
	}
	report("apic-ids-distinct", ids == (n == 64 ? ~0ull : (1ull << n) - 1), "mask 0x%lx", ids);
	report("apic-ids-agree", same == n, "%lu of %u", same, n);
	report("topology", topo == n, "%lu of %u", topo, n);
	report("feature-bits", bits == n, "%lu of %u", bits, n);
}

void guest_main(uint8_t *bp, uint64_t entry, uint64_t cs)
{
	uint32_t n = (uint32_t)arg("cpus", 1);
	bool all;

	(void)bp, (void)entry, (void)cs;
	look(&who[0]);
	report("boot-cpu-first", who[0].lapic == 0, "apic %u", who[0].lapic);
	memcpy((void *)AP_PAGE, ap_code, (size_t)(ap_code_end - ap_code));
	delay_us(1000);
	report("others-wait", online == 0, "%u run before they were started", online);
	write32(LAPIC + 0xf0, 0x1ff); /* software enable */
	send(0xc4500);		      /* INIT to all but us */
	delay_us(10000);
	report("init-does-not-start", online == 0, "%u run after INIT alone", online);
	send(0xc4600 | (uint32_t)(AP_PAGE >> 12));
	delay_us(200);
	send(0xc4600 | (uint32_t)(AP_PAGE >> 12)); /* the second must not start them again */
	all = reach(&online, n - 1);
	report("start", all, "%u of %u", online, n - 1);
	delay_us(5000);
	report("start-once", online == n - 1, "%u of %u", online, n - 1);
	if (!all)
		finish();
	check(n);
	go = 1;
	work();
	for (uint32_t i = 1; i < n; i++)
		all &= reach(&who[i].done, 1);
	report("all-work", all, "a CPU did not finish");
	report("atomic-adds", shared == (uint64_t)n * ADDS, "%lu", shared);
	finish();
}
