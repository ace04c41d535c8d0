/* SPDX-License-Identifier: Apache-2.0 */
/*
 * boot.c: enter a Linux kernel at its 64-bit entry without firmware.
 *
 * Documentation/arch/x86/boot.rst, "64-bit boot protocol": long mode with the kernel,
 * zero page and command line identity-mapped, CS = 0x10, DS/ES/SS = 0x18, interrupts
 * off, %rsi = zero page. The uncompressed kernel is entered, so its own decompressor
 * (and its KASLR) never runs: KASLR_FLAG tells it that somebody else has placed it.
 */
#include "x86.h"
#include "arch.h"

#include <asm/bootparam.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/random.h>

#define MIB2		  (2ull << 20)
#define KERNEL_IMAGE_SIZE (1ull << 30) /* arch/x86/include/asm/page_64_types.h */
#define LOAD_PHYSICAL	  0x1000000ull /* CONFIG_PHYSICAL_START of every stock kernel */
#define MIN_PROTOCOL	  0x020cu /* xloadflags, v3.8 */
#define SETUP_TYPE_RNG	  9u /* SETUP_RNG_SEED, v6.0 */

int rv_arch_image_check(const struct rv_image *img, struct rv_err *err)
{
	const struct rv_image_info *i = rv_image_info(img);

	if (i->arch != RV_ARCH_X86_64)
		return rv_err_set(err, RV_EUNSUPPORTED, "loader",
				  "the kernel is for another architecture than this host");
	if (i->format == RV_IMAGE_BZIMAGE && i->boot_protocol < MIN_PROTOCOL)
		return rv_err_set(err, RV_EUNSUPPORTED, "loader",
				  "boot protocol %u.%02u, expected 2.12 or newer",
				  i->boot_protocol >> 8, i->boot_protocol & 0xff);
	if (i->format == RV_IMAGE_BZIMAGE && !(i->xloadflags & XLF_KERNEL_64))
		return rv_err_set(err, RV_EUNSUPPORTED, "loader", "the kernel has no 64-bit entry");
	if (i->phys_base % MIB2 || i->entry < i->phys_base ||
	    i->entry - i->phys_base >= i->mem_size)
		return rv_err_at(err, RV_EBADDATA, i->entry, "loader",
				 "the entry point lies outside the image");
	return 0;
}

void rv_arch_image_place(struct rv_vm *vm, const struct rv_image *img, struct rv_arch_place *out)
{
	const struct rv_image_info *i = rv_image_info(img);
	uint64_t first = i->link_base & (KERNEL_IMAGE_SIZE - 1);
	uint64_t need = (i->mem_size + MIB2 - 1) & ~(MIB2 - 1);

	(void)vm;
	out->virt_align = out->phys_align = MIB2;
	out->phys_min = LOAD_PHYSICAL;
	/* As the kernel's own find_random_virt_addr(): from the link address to the end of
	 * the 1 GiB that level2_kernel_pgt maps. */
	out->virt_slots = first + need > KERNEL_IMAGE_SIZE
				  ? 1
				  : (KERNEL_IMAGE_SIZE - first - need) / MIB2 + 1;
}

uint64_t rv_arch_initrd_max(const struct rv_image_info *i)
{
	return i->initrd_addr_max ? i->initrd_addr_max : 0x7fffffffull;
}

static void e820_add(struct boot_params *bp, uint64_t addr, uint64_t end, uint32_t type)
{
	struct boot_e820_entry *e = &bp->e820_table[bp->e820_entries];

	if (end <= addr)
		return;
	e->addr = addr;
	e->size = end - addr;
	e->type = type;
	bp->e820_entries++;
}

/* 32 random bytes that the kernel mixes into its pool and wipes (v6.0, "x86/setup: Use
 * rng seeds from setup_data"). */
static void rng_seed(struct rv_vm *vm, struct boot_params *bp)
{
	struct {
		uint64_t next;
		uint32_t type, len;
		uint8_t seed[32];
	} sd = {.type = SETUP_TYPE_RNG, .len = 32};

	if (getrandom(sd.seed, sizeof(sd.seed), 0) != sizeof(sd.seed))
		return;
	memcpy(rv_mem_ptr(vm, rv_gpa_of(X86_SETUP_DATA), sizeof(sd)), &sd, sizeof(sd));
	explicit_bzero(&sd, sizeof(sd));
	bp->hdr.setup_data = X86_SETUP_DATA;
}

static int zero_page(struct rv_vm *vm, struct rv_err *err)
{
	const struct rv_boot_plan *p = vm->plan;
	struct boot_params *bp =
		(void *)rv_mem_ptr(vm, rv_gpa_of(X86_BOOT_PARAMS), sizeof(*bp));
	char *cmdline = (char *)rv_mem_ptr(vm, rv_gpa_of(X86_CMDLINE), X86_CMDLINE_MAX);
	size_t n = p->info.setup_hdr_len;
	uint64_t rsdp = 0;
	int rc;

	memset(bp, 0, sizeof(*bp));
	if (n > sizeof(bp->hdr))
		n = sizeof(bp->hdr);
	memcpy(&bp->hdr, p->info.setup_hdr, n);
	if (p->info.format == RV_IMAGE_ELF) {
		bp->hdr.boot_flag = 0xaa55;
		bp->hdr.header = 0x53726448; /* "HdrS" */
		bp->hdr.version = 0x020f;
		bp->hdr.kernel_alignment = MIB2;
	}
	bp->hdr.setup_data = 0;
	bp->hdr.type_of_loader = 0xff;
	bp->hdr.loadflags = (uint8_t)((bp->hdr.loadflags | LOADED_HIGH) & ~KASLR_FLAG);
	if (p->placed)
		bp->hdr.loadflags |= KASLR_FLAG;
	bp->hdr.cmd_line_ptr = X86_CMDLINE;
	snprintf(cmdline, X86_CMDLINE_MAX, "%s", vm->cmdline);
	if (vm->initrd_len) {
		if (vm->initrd_gpa + vm->initrd_len - 1 > rv_arch_initrd_max(&p->info))
			return rv_err_at(err, RV_EINVAL, vm->initrd_gpa, "boot",
					 "the initrd ends above what this kernel can reach");
		bp->hdr.ramdisk_image = (uint32_t)vm->initrd_gpa;
		bp->hdr.ramdisk_size = (uint32_t)vm->initrd_len;
	}
	rc = rv_x86_acpi_build(vm, &rsdp, err);
	if (rc)
		return rc;
	bp->acpi_rsdp_addr = rsdp;
	e820_add(bp, 0, X86_LOW_RAM_END, 1);
	e820_add(bp, X86_LOW_RAM_END, X86_HIGH_RAM, 2);
	e820_add(bp, X86_HIGH_RAM, rv_mem_low_end(vm), 1);
	if (rv_mem_high_end(vm))
		e820_add(bp, X86_4G, rv_mem_high_end(vm), 1);
	rng_seed(vm, bp);
	return 0;
}

/*
 * Identity map of the first 4 GiB and of the gigabytes that the kernel lies in, in
 * 2 MiB pages; the kernel builds its own tables at once.
 */
static int page_tables(struct rv_vm *vm, struct rv_err *err)
{
	uint64_t *t = (void *)rv_mem_ptr(vm, rv_gpa_of(X86_PAGE_TABLES), X86_PAGE_TABLES_N * 4096);
	uint64_t first = vm->plan->phys_base >> 30;
	uint64_t last = (vm->plan->phys_base + vm->plan->info.mem_size - 1) >> 30;
	uint32_t used = 2;

	memset(t, 0, X86_PAGE_TABLES_N * 4096);
	t[0] = (X86_PAGE_TABLES + 4096) | 3;
	if (last >= 512)
		return rv_err_at(err, RV_EUNSUPPORTED, vm->plan->phys_base, "boot",
				 "the kernel lies above 512 GiB");
	for (uint64_t g = 0; g < 4 || g <= last; g++) {
		uint64_t *pd = t + used * 512;

		if (g >= 4 && g < first)
			continue;
		if (used == X86_PAGE_TABLES_N)
			return rv_err_set(err, RV_EBUDGET, "boot", "the kernel is too large");
		t[512 + g] = (X86_PAGE_TABLES + used * 4096) | 3;
		for (uint64_t i = 0; i < 512; i++)
			pd[i] = (g << 30 | i << 21) | 0x83; /* present, writable, 2 MiB */
		used++;
	}
	return 0;
}

static struct kvm_segment segment(uint16_t sel, uint8_t type, bool code)
{
	struct kvm_segment s = {
		.limit = 0xffffffff, .selector = sel, .type = type, .present = 1, .s = 1, .g = 1};

	s.l = code;
	s.db = !code;
	return s;
}

static int first_registers(struct rv_vm *vm, struct rv_err *err)
{
	static const uint64_t gdt[4] = {0, 0, 0x00af9b000000ffffull, 0x00cf93000000ffffull};
	int fd = vm->vcpu[0].fd;
	struct kvm_regs r = {.rip = vm->plan->entry, .rsi = X86_BOOT_PARAMS, .rflags = 2};
	struct kvm_sregs s;

	memcpy(rv_mem_ptr(vm, rv_gpa_of(X86_GDT), sizeof(gdt)), gdt, sizeof(gdt));
	if (ioctl(fd, KVM_GET_SREGS, &s))
		return rv_err_os(err, "boot", "read the boot vcpu's registers");
	s.gdt.base = X86_GDT;
	s.gdt.limit = sizeof(gdt) - 1;
	s.cs = segment(0x10, 11, true);
	s.ds = s.es = s.fs = s.gs = s.ss = segment(0x18, 3, false);
	s.cr0 = 0x80050033; /* PG, AM, WP, NE, ET, MP, PE */
	s.cr3 = X86_PAGE_TABLES;
	s.cr4 = 0x20;	 /* PAE */
	s.efer = 0x500;	 /* LMA, LME */
	if (ioctl(fd, KVM_SET_SREGS, &s) || ioctl(fd, KVM_SET_REGS, &r))
		return rv_err_os(err, "boot", "set the boot vcpu's registers");
	return 0;
}

int rv_arch_boot_setup(struct rv_vm *vm, struct rv_err *err)
{
	struct rv_boot_plan *p = vm->plan;
	int rc;

	p->entry = p->info.entry - p->info.phys_base + p->phys_base;
	rc = zero_page(vm, err);
	if (!rc)
		rc = page_tables(vm, err);
	return rc ? rc : first_registers(vm, err);
}
