/* SPDX-License-Identifier: Apache-2.0 */
/* boot_guest.c: the zero page and the ACPI tables, seen as a kernel sees them.
 * Arguments: mem= in MiB, cpus=, virtio= devices, tag=boot7. */
#include "lib.h"

#define LOW_END	 0x9fc00ull
#define HIGH_RAM 0x100000ull
#define HOLE	 0xc0000000ull

static uint8_t zeros[200000]; /* more than a page, of the .bss */
static const struct e820 *map;
static uint32_t nmap;

extern uint32_t mapped_gib; /* of the first four, by the tables at entry */

static uint32_t get32(const void *p)
{
	uint32_t v;

	memcpy(&v, p, 4);
	return v;
}

static uint64_t get64(const void *p)
{
	uint64_t v;

	memcpy(&v, p, 8);
	return v;
}

static uint8_t sum(const uint8_t *p, uint32_t n)
{
	uint8_t s = 0;

	while (n--)
		s = (uint8_t)(s + *p++);
	return s;
}

static uint32_t type_at(uint64_t a)
{
	for (uint32_t i = 0; i < nmap; i++)
		if (a >= map[i].addr && a - map[i].addr < map[i].size)
			return map[i].type;
	return 0;
}

static void check_entry(const uint8_t *bp, uint64_t entry, uint64_t cs)
{
	uint64_t cr0, cr4, flags;
	uint16_t ss, ds;
	bool clean = true;

	asm volatile("mov %%cr0, %0" : "=r"(cr0));
	asm volatile("mov %%cr4, %0" : "=r"(cr4));
	asm volatile("pushf; pop %0" : "=r"(flags));
	asm volatile("mov %%ss, %0" : "=r"(ss));
	asm volatile("mov %%ds, %0" : "=r"(ds));
	report("entry-address", entry == 0x1000000, "entered at 0x%lx", entry);
	report("entry-segments", cs == 0x10 && ss == 0x18 && ds == 0x18, "cs 0x%lx ss 0x%x ds 0x%x",
	       cs, ss, ds);
	report("entry-control", (cr0 & 0x80000001) == 0x80000001 && (cr4 & 0x20),
	       "cr0 0x%lx cr4 0x%lx", cr0, cr4);
	report("identity-map-4g", mapped_gib == 4, "%u of the first 4 GiB", mapped_gib);
	report("entry-interrupts-off", !(flags & 0x200), "rflags 0x%lx", flags);
	for (uint32_t i = 0; i < sizeof(zeros); i++)
		clean &= !((volatile uint8_t *)zeros)[i];
	report("bss-zero", clean, "bytes that the file does not have are not zero");
	report("zero-page-place", (uint64_t)bp < LOW_END && !((uint64_t)bp & 15), "at 0x%lx",
	       (uint64_t)bp);
}

static void check_header(const uint8_t *bp)
{
	const uint8_t *sd = (const uint8_t *)get64(bp + BP_SETUP);
	uint8_t any = 0;

	report("header-magic", get32(bp + BP_HEADER) == 0x53726448, "0x%x", get32(bp + BP_HEADER));
	report("header-version", (get32(bp + BP_VERSION) & 0xffff) >= 0x20c, "0x%x",
	       get32(bp + BP_VERSION) & 0xffff);
	report("loader-type", bp[BP_LOADER] == 0xff, "0x%x", bp[BP_LOADER]);
	report("loaded-high", (bp[BP_FLAGS] & 1) && !(bp[BP_FLAGS] & 2), "flags 0x%x",
	       bp[BP_FLAGS]);
	report("cmdline", arg_is("tag", "boot7") && type_at((uint64_t)cmdline) == 1, "\"%s\"",
	       cmdline);
	if (!sd) {
		report("random-seed", false, "none");
		return;
	}
	for (uint32_t i = 0; i < 32; i++)
		any |= sd[16 + i];
	report("random-seed",
	       !get64(sd) && get32(sd + 8) == 9 && get32(sd + 12) == 32 && any &&
		       type_at((uint64_t)sd) == 1,
	       "next 0x%lx type %u length %u", get64(sd), get32(sd + 8), get32(sd + 12));
}

static void check_e820(void)
{
	uint64_t ram = 0, mem = arg("mem", 0) << 20, low = mem < HOLE ? mem : HOLE, last = 0;
	bool sorted = true, sane = true;

	for (uint32_t i = 0; i < nmap; i++) {
		sorted &= i == 0 || map[i].addr >= last;
		last = map[i].addr + map[i].size;
		sane &= map[i].size && (map[i].type == 1 || map[i].type == 2);
		if (map[i].type == 1)
			ram += map[i].size;
	}
	report("e820-count", nmap >= 3 && nmap <= 128, "%u", nmap);
	report("e820-sorted", sorted, "entries overlap or are out of order");
	report("e820-types", sane, "an empty entry, or one of unknown type");
	report("e820-total", ram == mem - (HIGH_RAM - LOW_END), "0x%lx bytes of RAM of 0x%lx", ram,
	       mem);
	report("e820-edges",
	       type_at(0) == 1 && type_at(LOW_END - 1) == 1 && type_at(LOW_END) != 1 &&
		       type_at(HIGH_RAM - 1) != 1 && type_at(HIGH_RAM) == 1 &&
		       type_at(low - 1) == 1 && type_at(low) != 1,
	       "a border is off");
}

static bool table_ok(const uint8_t *t, const char *sig)
{
	uint32_t len = get32(t + 4);
	uint64_t a = (uint64_t)t;
	bool ok = !memcmp(t, sig, 4) && len >= 36 && len < 0x10000 && type_at(a) == 2 &&
		  type_at(a + len - 1) == 2 && !sum(t, len);

	print("# %c%c%c%c at 0x%lx, %u bytes\n", t[0], t[1], t[2], t[3], a, len);
	return ok;
}

static void check_madt(const uint8_t *t)
{
	uint32_t len = get32(t + 4), n = 0, io = 0, bad = 0;
	uint64_t seen = 0;

	for (uint32_t off = 44; off + 2 <= len; off += t[off + 1]) {
		if (t[off + 1] < 2 || off + t[off + 1] > len) {
			bad++;
			break;
		}
		if (t[off] == 0 && (get32(t + off + 4) & 1)) {
			n++;
			bad += t[off + 3] > 63 || (seen >> t[off + 3] & 1);
			seen |= 1ull << (t[off + 3] & 63);
		}
		io += t[off] == 1 && get32(t + off + 4) == 0xfec00000;
	}
	report("madt-entries", !bad, "%u malformed", bad);
	report("madt-cpus", n == arg("cpus", 1) && seen == (n == 64 ? ~0ull : (1ull << n) - 1),
	       "%u enabled, mask 0x%lx", n, seen);
	report("madt-ioapic", io == 1 && get32(t + 36) == 0xfee00000, "%u", io);
}

/* Length of a package at p, and how many bytes say so (ACPI 6.4, 20.2.4). */
static uint32_t pkg(const uint8_t *p, uint32_t *used)
{
	uint32_t more = p[0] >> 6, len = more ? p[0] & 15 : p[0] & 63;

	for (uint32_t i = 0; i < more; i++)
		len |= (uint32_t)p[1 + i] << (4 + 8 * i);
	*used = 1 + more;
	return len;
}

static void check_dsdt(const uint8_t *t)
{
	uint32_t len = get32(t + 4), n = 0, used, good = 0;
	uint64_t lines = 0;
	const uint8_t *p = t + 36, *end = t + len, *scope;

	/* Name (\_S5_, Package) and then a scope that ends where the table does */
	report("dsdt-s5", !memcmp(p, "\x08\\_S5_\x12", 7), "no \\_S5_ first");
	for (scope = p; scope < end - 6 && memcmp(scope, "\x10", 1); scope++)
		;
	/* The first 0x10 behind _S5_ is ScopeOp: the package before holds 4, 0x0a and 5 only. */
	report("dsdt-scope", scope + 1 + pkg(scope + 1, &used) == end,
	       "the scope does not end with the table");
	p = scope + 1 + used + 5;
	while (p + 2 < end && p[0] == 0x5b && p[1] == 0x82) {
		uint32_t plen = pkg(p + 2, &used);
		const uint8_t *dev_end = p + 2 + plen;
		bool hid = false, mem = false, irq = false;

		if (dev_end > end)
			break;
		n++;
		for (const uint8_t *q = p; q + 9 <= dev_end; q++) {
			hid |= !memcmp(q, "LNRO0005", 9);
			if (!memcmp(q, "\x86\x09\x00\x01", 4))
				mem = read32(get32(q + 4)) == 0x74726976 && get32(q + 8) >= 0x200;
			if (!memcmp(q, "\x89\x06\x00", 3) && q[4] == 1) {
				irq = get32(q + 5) < 24 && !(lines >> get32(q + 5) & 1);
				lines |= 1ull << (get32(q + 5) & 63);
			}
		}
		good += hid && mem && irq;
		p = dev_end;
	}
	report("dsdt-devices", p == end && n == arg("virtio", 0), "%u, and 0x%lx bytes left", n,
	       (uint64_t)(end - p));
	report("dsdt-resources", good == n,
	       "%u of %u have a device at their address and a line of their own", good, n);
}

static void check_fadt(const uint8_t *t)
{
	const uint8_t *dsdt = (const uint8_t *)get64(t + 140),
		      *facs = (const uint8_t *)get64(t + 132);

	report("fadt-pointers", get32(t + 40) == get64(t + 140) && get32(t + 36) == get64(t + 132),
	       "32 and 64 bits differ");
	report("fadt-ports",
	       get32(t + 56) == 0x600 && get32(t + 64) == PM1_CNT && get32(t + 76) == PM_TIMER &&
		       get64(t + 152) == 0x600 && get64(t + 176) == PM1_CNT &&
		       get64(t + 212) == PM_TIMER && get64(t + 120) == PM_RESET,
	       "a register is elsewhere");
	report("fadt-flags", (get32(t + 112) & (1u << 10)) && !(get32(t + 112) & (1u << 20)),
	       "0x%x", get32(t + 112));
	report("facs", !memcmp(facs, "FACS", 4) && !((uint64_t)facs & 63) && get32(facs + 4) == 64,
	       "at 0x%lx", (uint64_t)facs);
	report("dsdt", table_ok(dsdt, "DSDT"), "damaged");
	check_dsdt(dsdt);
}

static void check_acpi(const uint8_t *bp)
{
	const uint8_t *rsdp = (const uint8_t *)get64(bp + BP_RSDP), *xsdt;
	bool ok = rsdp && !memcmp(rsdp, "RSD PTR ", 8) && rsdp[15] == 2 && get32(rsdp + 20) == 36;

	report("rsdp", ok, "at 0x%lx", (uint64_t)rsdp);
	if (!ok)
		return;
	report("rsdp-checksums", !sum(rsdp, 20) && !sum(rsdp, 36), "%u %u", sum(rsdp, 20),
	       sum(rsdp, 36));
	/* Where a kernel without the pointer would look (ACPI 6.4, 5.2.5.1). */
	report("rsdp-place",
	       (uint64_t)rsdp >= 0xe0000 && (uint64_t)rsdp < 0x100000 && !((uint64_t)rsdp & 15),
	       "0x%lx", (uint64_t)rsdp);
	xsdt = (const uint8_t *)get64(rsdp + 24);
	report("xsdt", table_ok(xsdt, "XSDT"), "damaged");
	for (uint32_t off = 36; off + 8 <= get32(xsdt + 4); off += 8) {
		const uint8_t *t = (const uint8_t *)get64(xsdt + off);

		if (!memcmp(t, "FACP", 4)) {
			report("fadt", table_ok(t, "FACP"), "damaged");
			check_fadt(t);
		} else if (!memcmp(t, "APIC", 4)) {
			report("madt", table_ok(t, "APIC"), "damaged");
			check_madt(t);
		} else {
			report("table", table_ok(t, (const char *)t), "damaged");
		}
	}
}

static void check_pm(void)
{
	uint32_t a = inl(PM_TIMER), b = a;

	for (uint32_t i = 0; i < 100000 && b == a; i++)
		b = inl(PM_TIMER);
	report("pm-timer-counts", b != a && b - a < PM_HZ * 60, "0x%x then 0x%x", a, b);
	report("pm-acpi-mode", inw(PM1_CNT) & 1, "SCI_EN is not set");
	outw(0x602, 0x0123);
	report("pm-enable-holds", inw(0x602) == 0x0123, "0x%x", inw(0x602));
	outw(0x602, 0);
	outw(PM1_CNT, 3u << 10 | 1u << 13); /* another sleep state: not ours to enter */
	report("pm-other-sleep-ignored", !(inw(PM1_CNT) & (1u << 13)), "0x%x", inw(PM1_CNT));
}

void guest_main(uint8_t *bp, uint64_t entry, uint64_t cs)
{
	nmap = bp[BP_E820_N];
	map = (const struct e820 *)(bp + BP_E820);
	check_entry(bp, entry, cs);
	check_header(bp);
	check_e820();
	check_acpi(bp);
	check_pm();
	finish();
}
