/* SPDX-License-Identifier: Apache-2.0 */
/*
 * boot.c (arm64): enter a Linux kernel at its Image header without firmware.
 *
 * Documentation/arch/arm64/booting.rst: the Image at a multiple of 2 MiB (plus
 * text_offset), entered at its first byte in EL1 with translation off and interrupts
 * masked, x0 = the device tree, x1 to x3 = 0: the state that KVM_ARM_VCPU_INIT leaves.
 */
#include "arm64.h"
#include "arch.h"

#include <string.h>
#include <sys/ioctl.h>

#define MIB2		  (2ull << 20)
#define COMMAND_LINE_SIZE 2048u /* arch/arm64/include/uapi/asm/setup.h, the NUL included */
#define FLAG_PAGE_SIZE	  6ull	/* Image header, flags bits 2:1; 1 is 4 KiB, 0 unspecified */
#define FLAG_PAGE_4K	  2ull
#define FLAG_ANYWHERE	  8ull /* bit 3: need not be near the start of RAM */

int rv_arch_image_check(const struct rv_image *img, struct rv_err *err)
{
	const struct rv_image_info *i = rv_image_info(img);

	if (i->arch != RV_ARCH_ARM64)
		return rv_err_set(err, RV_EUNSUPPORTED, "loader",
				  "the kernel is for another architecture than this host");
	if (i->format != RV_IMAGE_ARM64)
		return rv_err_set(err, RV_EUNSUPPORTED, "loader",
				  "expected an arm64 Image, packed or not, and no ELF file");
	if (i->text_offset)
		return rv_err_at(err, RV_EUNSUPPORTED, i->text_offset, "loader",
				 "text_offset is not 0: a kernel before v5.8");
	if (!(i->arm64_flags & FLAG_ANYWHERE))
		return rv_err_set(err, RV_EUNSUPPORTED, "loader",
				  "the kernel must lie at the start of RAM: before v4.6");
	if ((i->arm64_flags & FLAG_PAGE_SIZE) && (i->arm64_flags & FLAG_PAGE_SIZE) != FLAG_PAGE_4K)
		return rv_err_set(err, RV_EUNSUPPORTED, "loader",
				  "the kernel has pages of %u KiB, expected 4",
				  (i->arm64_flags & FLAG_PAGE_SIZE) == 4 ? 16 : 64);
	return 0;
}

void rv_arch_image_place(struct rv_vm *vm, const struct rv_image *img, struct rv_arch_place *out)
{
	struct rv_arm64_kaslr k = {0};
	struct rv_err err = {0};

	out->virt_align = out->phys_align = MIB2;
	out->phys_min = ARM64_KERNEL_MIN;
	out->self_relocating = true;
	out->virt_slots = 1;
	if (rv_arm64_kaslr_find(img, vm->arch->mmfr0, &k, &err)) {
		snprintf(out->why, sizeof(out->why), "%.120s", err.what);
		return;
	}
	rv_arm64_kaslr_slots(&k, &out->virt_first, &out->virt_slots);
	vm->plan->arm64_kaslr_total = k.total;
}

uint64_t rv_arch_initrd_max(const struct rv_image_info *info)
{
	(void)info;
	return UINT64_MAX; /* anywhere in the linear map, so anywhere in RAM */
}

/* The device tree's seed leads the kernel to where the plan has put it. */
static int choose_seed(struct rv_vm *vm, uint64_t *seed, struct rv_err *err)
{
	const struct rv_boot_plan *p = vm->plan;
	const struct rv_arm64_kaslr k = {.total = p->arm64_kaslr_total};

	if (!rv_arm64_kaslr_seed(&k, p->virt_delta, seed))
		return rv_err_at(err, RV_EBADDATA, p->info.link_base + p->virt_delta, "boot",
				 "no seed leads the kernel there");
	return 0;
}

/*
 * Without a seed a kernel on a processor with a random number generator would still move,
 * to where nobody knows.
 */
static int hold_still(struct rv_vm *vm, struct rv_err *err)
{
	size_t n = strlen(vm->cmdline);

	if (n + sizeof(" nokaslr") > sizeof(vm->cmdline))
		return rv_err_set(err, RV_EINVAL, "boot",
				  "no room for nokaslr in the command line");
	memcpy(vm->cmdline + n, " nokaslr", sizeof(" nokaslr"));
	return 0;
}

int rv_arch_boot_setup(struct rv_vm *vm, struct rv_err *err)
{
	struct rv_boot_plan *p = vm->plan;
	uint64_t seed = 0;
	int rc;

	p->entry = p->phys_base;
	if (p->phys_base % MIB2 || p->virt_delta % MIB2)
		return rv_err_at(err, RV_EBADDATA, p->phys_base, "boot",
				 "the kernel's place is no multiple of 2 MiB");
	rc = p->placed ? choose_seed(vm, &seed, err) : hold_still(vm, err);
	if (rc)
		return rc;
	if (strlen(vm->cmdline) >= COMMAND_LINE_SIZE)
		return rv_err_set(err, RV_EINVAL, "boot",
				  "the command line has %zu characters, this kernel takes %u",
				  strlen(vm->cmdline), COMMAND_LINE_SIZE - 1);
	rc = rv_arm64_fdt_build(vm, seed, err);
	if (rc)
		return rc;
	if (rv_arm64_set(vm->vcpu[0].fd, ARM64_PC, p->entry) ||
	    rv_arm64_set(vm->vcpu[0].fd, ARM64_X(0), ARM64_FDT))
		return rv_err_os(err, "boot", "set the boot vcpu's registers");
	return 0;
}
