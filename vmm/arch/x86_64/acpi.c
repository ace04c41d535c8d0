/* SPDX-License-Identifier: Apache-2.0 */
/*
 * acpi.c: the tables that a stock kernel needs to find its CPUs, its console's
 * interrupt controller and the virtio devices: RSDP, XSDT, FADT, FACS, MADT, DSDT.
 *
 * Stock kernels are built without virtio-mmio command-line devices, so the DSDT
 * announces each slot as "LNRO0005", the identifier that the kernel's driver binds to
 * (drivers/virtio/virtio_mmio.c). Section numbers are those of ACPI 6.4.
 */
#include "x86.h"

#include <string.h>

struct table {
	uint8_t *base;
	size_t len, cap;
	bool full;
};

static void put(struct table *t, const void *p, size_t n)
{
	if (n > t->cap - t->len) {
		t->full = true;
		return;
	}
	memcpy(t->base + t->len, p, n);
	t->len += n;
}

static void put8(struct table *t, uint8_t v)
{
	put(t, &v, 1);
}

static void put16(struct table *t, uint16_t v)
{
	put(t, &v, 2);
}

static void put32(struct table *t, uint32_t v)
{
	put(t, &v, 4);
}

static void put64(struct table *t, uint64_t v)
{
	put(t, &v, 8);
}

static void poke8(struct table *t, size_t off, uint8_t v)
{
	if (off < t->len)
		t->base[off] = v;
}

static void poke(struct table *t, size_t off, const void *p, size_t n)
{
	if (off + n <= t->len)
		memcpy(t->base + off, p, n);
}

static void poke32(struct table *t, size_t off, uint32_t v)
{
	poke(t, off, &v, 4);
}

/* 5.2.6: the header that all but RSDP and FACS begin with. */
static void header(struct table *t, const char *sig, uint8_t rev)
{
	put(t, sig, 4);
	put32(t, 0); /* length, in finish() */
	put8(t, rev);
	put8(t, 0); /* checksum, in finish() */
	put(t, "RAVLIN", 6);
	put(t, "RAVELIN ", 8);
	put32(t, 1);
	put(t, "RAVL", 4);
	put32(t, 1);
}

static uint8_t sum(const uint8_t *p, size_t n)
{
	uint8_t s = 0;

	while (n--)
		s = (uint8_t)(s + *p++);
	return (uint8_t)-s;
}

static void finish(struct table *t)
{
	poke32(t, 4, (uint32_t)t->len);
	poke8(t, 9, sum(t->base, t->len));
}

/* --- AML (chapter 20) --------------------------------------------------------- */

/* 20.2.4: two-byte PkgLength, filled in when the end is known. */
static size_t pkg_open(struct table *t)
{
	put16(t, 0);
	return t->len - 2;
}

static void pkg_close(struct table *t, size_t at)
{
	size_t n = t->len - at; /* counts itself */

	poke8(t, at, (uint8_t)(0x40 | (n & 0xf)));
	poke8(t, at + 1, (uint8_t)(n >> 4));
}

static void aml_byte(struct table *t, uint8_t v)
{
	put8(t, 0x0a);
	put8(t, v);
}

static void aml_virtio(struct table *t, const struct rv_virtio_slot *s)
{
	static const char hex[] = "0123456789ABCDEF";
	char name[5] = {'V', 'R', hex[s->index >> 4 & 15], hex[s->index & 15], 0};
	size_t dev, buf;

	put(t, "\x5b\x82", 2); /* DeviceOp */
	dev = pkg_open(t);
	put(t, name, 4);
	put(t, "\x08_HID\x0dLNRO0005", 15); /* with the string's NUL */
	put(t, "\x08_UID", 5);
	aml_byte(t, (uint8_t)s->index);
	put(t, "\x08_CCA\x01", 6); /* cache coherent */
	put(t, "\x08_CRS\x11", 6); /* BufferOp */
	buf = pkg_open(t);
	aml_byte(t, 12 + 9 + 2);
	put(t, "\x86\x09\x00\x01", 4); /* 6.4.3.4: Memory32Fixed, read-write */
	put32(t, (uint32_t)s->base.v);
	put32(t, RV_VIRTIO_MMIO_LEN);
	put(t, "\x89\x06\x00\x01\x01", 5); /* 6.4.3.6: consumer, level, active high */
	put32(t, s->gsi);
	put16(t, 0x0079); /* end tag */
	pkg_close(t, buf);
	pkg_close(t, dev);
}

static void dsdt(struct rv_vm *vm, struct table *t)
{
	size_t at;

	header(t, "DSDT", 2);
	put(t, "\x08\\_S5_\x12", 7); /* Name (\_S5, Package ...) */
	at = pkg_open(t);
	put8(t, 4);
	aml_byte(t, X86_SLP_TYP_S5);
	aml_byte(t, X86_SLP_TYP_S5);
	put16(t, 0);
	pkg_close(t, at);
	put8(t, 0x10); /* ScopeOp */
	at = pkg_open(t);
	put(t, "\\_SB_", 5);
	for (uint32_t i = 0; i < vm->nslots; i++)
		aml_virtio(t, &vm->slots[i]);
	pkg_close(t, at);
	finish(t);
}

/* --- the fixed tables ------------------------------------------------------------ */

static void madt(struct rv_vm *vm, struct table *t)
{
	header(t, "APIC", 5);
	put32(t, X86_LAPIC);
	put32(t, 1); /* PCAT_COMPAT: there are 8259s too */
	for (uint32_t i = 0; i < vm->opt->cpus; i++) {
		put(t, "\x00\x08", 2);
		put8(t, (uint8_t)i);
		put8(t, (uint8_t)i);
		put32(t, 1); /* enabled */
	}
	put(t, "\x01\x0c\x00\x00", 4);
	put32(t, X86_IOAPIC);
	put32(t, 0);
	put(t, "\x02\x0a\x00", 3); /* the SCI is level, active high */
	put8(t, X86_SCI_IRQ);
	put32(t, X86_SCI_IRQ);
	put16(t, 0x000d);
	put(t, "\x04\x06\xff\x00\x00\x01", 6); /* LINT1 is NMI on every CPU */
	finish(t);
}

/* 5.2.3.2: a generic address in I/O space. */
static void gas(struct table *t, size_t off, uint8_t bits, uint8_t access, uint64_t addr)
{
	uint8_t g[12] = {1, bits, 0, access};

	memcpy(g + 4, &addr, 8);
	poke(t, off, g, sizeof(g));
}

static void fadt(struct table *t, uint64_t facs, uint64_t dsdt_at)
{
	static const uint8_t zero[276 - 36];
	/* WBINVD, C1, no power or sleep button, 32-bit timer, reset register */
	uint32_t flags = 1u << 0 | 1u << 2 | 1u << 4 | 1u << 5 | 1u << 8 | 1u << 10;
	/* Legacy devices; no VGA; no CMOS clock; no 8042: saves seconds of probing. */
	uint16_t boot_arch = 1u << 0 | 1u << 2 | 1u << 5;

	header(t, "FACP", 6);
	put(t, zero, sizeof(zero));
	poke32(t, 36, (uint32_t)facs);
	poke32(t, 40, (uint32_t)dsdt_at);
	poke8(t, 46, X86_SCI_IRQ);
	poke32(t, 56, X86_PM1_EVT);
	poke32(t, 64, X86_PM1_CNT);
	poke32(t, 76, X86_PM_TIMER);
	poke8(t, 88, 4);
	poke8(t, 89, 2);
	poke8(t, 91, 4);
	poke8(t, 96, 0xff); /* no C2 */
	poke8(t, 97, 0x0f);
	poke8(t, 98, 0xff); /* no C3 */
	poke8(t, 99, 0x0f);
	poke(t, 109, &boot_arch, 2);
	poke32(t, 112, flags);
	gas(t, 116, 8, 1, X86_PM_RESET);
	poke8(t, 128, 1); /* RESET_VALUE */
	poke8(t, 131, 4); /* 6.4 */
	poke(t, 132, &facs, 8);
	poke(t, 140, &dsdt_at, 8);
	gas(t, 148, 32, 2, X86_PM1_EVT);
	gas(t, 172, 16, 2, X86_PM1_CNT);
	gas(t, 208, 32, 3, X86_PM_TIMER);
	poke(t, 268, "RAVELIN", 8); /* hypervisor vendor identity */
	finish(t);
}

/* Where the next table goes: 64-byte aligned, as the FACS must be. */
static struct table next(uint8_t *base, size_t *used)
{
	*used = (*used + 63) & ~(size_t)63;
	return (struct table){.base = base + *used, .cap = X86_ACPI_LEN - *used};
}

int rv_x86_acpi_build(struct rv_vm *vm, uint64_t *rsdp, struct rv_err *err)
{
	uint8_t *base = rv_mem_ptr(vm, rv_gpa_of(X86_ACPI), X86_ACPI_LEN);
	uint64_t at_dsdt, at_facs, at_fadt, at_madt, at_xsdt;
	size_t used = 64; /* the RSDP goes first */
	struct table t;
	bool full = false;

	if (!base)
		return rv_err_set(err, RV_EINVAL, "acpi", "no RAM for the tables");
#define BUILD(at, call)                         \
	do {                                    \
		t = next(base, &used);          \
		at = X86_ACPI + used;           \
		call;                           \
		full |= t.full;                 \
		used += t.len;                  \
	} while (0)
	BUILD(at_facs, (put(&t, "FACS", 4), put32(&t, 64), put(&t, (uint8_t[56]){[24] = 2}, 56)));
	BUILD(at_dsdt, dsdt(vm, &t));
	BUILD(at_fadt, fadt(&t, at_facs, at_dsdt));
	BUILD(at_madt, madt(vm, &t));
	BUILD(at_xsdt, (header(&t, "XSDT", 1), put64(&t, at_fadt), put64(&t, at_madt), finish(&t)));
#undef BUILD
	t = (struct table){.base = base, .cap = 64};
	put(&t, "RSD PTR \0RAVLIN\2\0\0\0\0\44\0\0\0", 24); /* 5.2.5.3, revision 2, length 36 */
	put64(&t, at_xsdt);
	put32(&t, 0);
	poke8(&t, 8, sum(base, 20));
	poke8(&t, 32, sum(base, 36));
	if (full || t.full)
		return rv_err_set(err, RV_EBUDGET, "acpi", "the tables exceed their room");
	*rsdp = X86_ACPI;
	return 0;
}
