/* SPDX-License-Identifier: Apache-2.0 */
/* io_guest.c: ports and memory-mapped addresses, claimed and not, in every size.
 * Arguments: mem= in MiB, no more than the hole. */
#include "lib.h"

#define NOBODY	0xd8000000ull /* in the hole, beyond the virtio slots */
#define SCRATCH (COM1 + 7)
#define MCR	(COM1 + 4)
#define LOOP	0x10
#define PORT	0x5000 /* nobody's */

static uint8_t buf[9000];

static void outs(uint16_t port, const void *p, uint64_t n, int size)
{
	if (size == 1)
		asm volatile("rep outsb" : "+S"(p), "+c"(n) : "d"(port) : "memory");
	else if (size == 2)
		asm volatile("rep outsw" : "+S"(p), "+c"(n) : "d"(port) : "memory");
	else
		asm volatile("rep outsl" : "+S"(p), "+c"(n) : "d"(port) : "memory");
}

static void ins(uint16_t port, void *p, uint64_t n, int size)
{
	if (size == 1)
		asm volatile("rep insb" : "+D"(p), "+c"(n) : "d"(port) : "memory");
	else if (size == 2)
		asm volatile("rep insw" : "+D"(p), "+c"(n) : "d"(port) : "memory");
	else
		asm volatile("rep insl" : "+D"(p), "+c"(n) : "d"(port) : "memory");
}

static bool all_are(const uint8_t *p, uint32_t n, uint8_t v)
{
	while (n--)
		if (*p++ != v)
			return false;
	return true;
}

/* The console itself: the runner counts and compares what arrives. */
static void check_string_out(void)
{
	static char text[4401];

	for (uint32_t i = 0; i < 4400; i++)
		text[i] = (char)('a' + (i * 7 + i / 26) % 26);
	print("STRING ");
	outs(COM1, text, 4400, 1);
	print(" GNIRTS\n");
	/* The same backwards, from the end of its buffer. */
	print("DF ");
	asm volatile("std; rep outsb; cld" ::"S"(text + 15), "c"(16), "d"(COM1) : "memory");
	print("\n");
}

static void check_string_in(void)
{
	uint8_t out[64];

	while (inb(COM1 + 5) & 1)
		inb(COM1);
	for (uint32_t i = 0; i < sizeof(out); i++)
		out[i] = (uint8_t)(i * 5 + 1);
	outb(MCR, LOOP);
	outs(COM1, out, sizeof(out), 1);
	memset(buf, 0, sizeof(buf));
	ins(COM1, buf + 1, sizeof(out), 1);
	outb(MCR, 3);
	report("insb-order", !memcmp(buf + 1, out, sizeof(out)), "%x %x %x", buf[1], buf[2],
	       buf[3]);
	report("insb-count", !buf[0] && !buf[1 + sizeof(out)], "wrote around its buffer");
	outb(SCRATCH, 0x5a);
	ins(SCRATCH, buf + 4000, 300, 1); /* across a page */
	report("insb-across-pages", all_are(buf + 4000, 300, 0x5a) && !buf[4300], "%x %x",
	       buf[4000], buf[4299]);
	outs(SCRATCH, "\1\2\3\4\5", 5, 1);
	report("outsb-last-wins", inb(SCRATCH) == 5, "0x%x", inb(SCRATCH));
	ins(SCRATCH, buf, 0, 1);
	report("ins-none", inb(SCRATCH) == 5, "a count of zero did something");
}

static void check_wide(void)
{
	uint32_t t[8], sane = 0;

	outb(SCRATCH, 0x33);
	report("inw-two-registers", (inw(COM1 + 6) >> 8) == 0x33, "0x%x", inw(COM1 + 6));
	outw(COM1 + 3, 0x0303); /* LCR and MCR */
	report("outw-two-registers", inb(COM1 + 3) == 3 && inb(MCR) == 3, "0x%x 0x%x",
	       inb(COM1 + 3), inb(MCR));
	report("inl-four-registers", inl(COM1 + 4) >> 24 == 0x33, "0x%x", inl(COM1 + 4));
	outs(COM1 + 3, "\3\3\3\3\3\3", 3, 2);
	report("outsw", inb(COM1 + 3) == 3 && inb(MCR) == 3, "0x%x", inw(COM1 + 3));
	ins(PM_TIMER, t, 8, 4);
	for (uint32_t i = 1; i < 8; i++)
		sane += t[i] - t[i - 1] < PM_HZ * 10;
	report("insl", sane == 7, "0x%x 0x%x", t[0], t[1]);
	report("timer-by-bytes", inb(PM_TIMER + 3) - (inl(PM_TIMER) >> 24) <= 1u, "torn");
}

static void check_nobody_ports(void)
{
	report("port-ones",
	       inb(PORT) == 0xff && inw(PORT) == 0xffff && inl(PORT) == 0xffffffff &&
		       inl(0xcf8) == 0xffffffff && inb(0x71) == 0xff && inb(0xffff) == 0xff,
	       "0x%x 0x%x 0x%x", inb(PORT), inw(PORT), inl(PORT));
	outb(PORT, 1);
	outw(PORT, 2);
	outl(PORT, 3);
	outl(0xcf8, 0x80000000);
	report("port-writes-ignored", inl(PORT) == 0xffffffff && inl(0xcfc) == 0xffffffff, "0x%x",
	       inl(PORT));
	memset(buf, 0, 64);
	ins(PORT, buf, 7, 1);
	ins(PORT, buf + 8, 7, 2);
	ins(PORT, buf + 24, 7, 4);
	report("ins-ones",
	       all_are(buf, 7, 0xff) && !buf[7] && all_are(buf + 8, 14, 0xff) && !buf[22] &&
		       all_are(buf + 24, 28, 0xff) && !buf[52],
	       "wrong bytes");
	/* An access that begins in a device and ends outside belongs to nobody. */
	report("port-straddle",
	       inl(0x60e) == 0xffffffff && inw(0x64) == 0xffff && inw(COM1 + 7) == 0xffff,
	       "0x%x 0x%x 0x%x", inl(0x60e), inw(0x64), inw(COM1 + 7));
	outw(0x64, 0xfefe); /* not the reset command: it is wider than the port */
	report("port-straddle-write", true, " ");
}

/* Ports that the monitor's own code uses, rung from code that is not the monitor's. */
static void check_doorbells(void)
{
	for (uint16_t p = 0xf5; p <= 0xf6; p++) {
		uint64_t r11 = 0x1122334455667788, before = r11;

		asm volatile("mov %0, %%r11; outb %%al, %1; mov %%r11, %0"
			     : "+r"(r11)
			     : "Nd"(p), "a"(0)
			     : "r11", "memory");
		report(p == 0xf5 ? "doorbell-f5" : "doorbell-f6", r11 == before, "r11 0x%lx", r11);
		outw(p, 0);
		outl(p, 0);
		outs(p, buf, 5, 1);
		report(p == 0xf5 ? "doorbell-f5-in" : "doorbell-f6-in", inb(p) == 0xff, "0x%x",
		       inb(p));
	}
}

static void check_nobody_mmio(void)
{
	uint64_t old = 0;

	report("mmio-ones",
	       read8(NOBODY) == 0xff && read16(NOBODY) == 0xffff && read32(NOBODY) == 0xffffffff &&
		       read64(NOBODY) == ~0ull,
	       "0x%lx", read64(NOBODY));
	report("mmio-ones-odd",
	       read16(NOBODY + 1) == 0xffff && read32(NOBODY + 3) == 0xffffffff &&
		       read64(NOBODY + 0xffd) == ~0ull,
	       "0x%lx", read64(NOBODY + 0xffd));
	write8(NOBODY, 0);
	write16(NOBODY, 0);
	write32(NOBODY, 0);
	write64(NOBODY, 0);
	write64(NOBODY + 0xffd, 0); /* two pages */
	report("mmio-writes-ignored", read64(NOBODY) == ~0ull, "0x%lx", read64(NOBODY));
	asm volatile("lock xaddq %0, %1" : "+r"(old), "+m"(*(uint64_t *)NOBODY));
	report("mmio-xadd", old == ~0ull, "0x%lx", old);
	old = 1;
	asm volatile("xchgl %k0, %1" : "+r"(old), "+m"(*(uint32_t *)NOBODY));
	report("mmio-xchg", (uint32_t)old == ~0u, "0x%lx", old);
	memset(buf, 0, 64);
	memcpy(buf, (void *)NOBODY, 33);
	report("mmio-rep-movsb", all_are(buf, 33, 0xff) && !buf[33], "wrong bytes");
	memcpy((void *)NOBODY, buf, 33);
	memset((void *)NOBODY, 0, 65);
	report("mmio-rep-stosb", read64(NOBODY) == ~0ull, "0x%lx", read64(NOBODY));
	report("apic-answers", read32(0xfee00030) != 0xffffffff, "the local APIC does not");
}

/* The last bytes of RAM, and an access that begins there and ends in the hole. */
static void check_edge(void)
{
	uint64_t end = arg("mem", 0) << 20;

	write64(end - 8, 0x0807060504030201ull);
	report("ram-last", read64(end - 8) == 0x0807060504030201ull, "0x%lx", read64(end - 8));
	report("ram-behind", read32(end) == 0xffffffff, "0x%x", read32(end));
	report("ram-straddle-read", read64(end - 4) == 0xffffffff08070605ull, "0x%lx",
	       read64(end - 4));
	write64(end - 4, 0x1817161514131211ull);
	report("ram-straddle-write",
	       read64(end - 8) == 0x1413121104030201ull && read32(end) == 0xffffffff, "0x%lx 0x%x",
	       read64(end - 8), read32(end));
}

void guest_main(uint8_t *bp, uint64_t entry, uint64_t cs)
{
	(void)bp, (void)entry, (void)cs;
	check_string_out();
	check_string_in();
	check_wide();
	check_nobody_ports();
	check_doorbells();
	check_nobody_mmio();
	check_edge();
	finish();
}
