/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fdt.c: the device tree (devicetree.org specification 0.4, and the bindings in Linux'
 * Documentation/devicetree/bindings). libfdt keeps the first error and refuses
 * everything after it, so the end is where it is looked at.
 */
#include "arm64.h"

#include <errno.h>
#include <libfdt.h>
#include <stdarg.h>
#include <string.h>
#include <sys/random.h>

#define PHANDLE_GIC   1u
#define PHANDLE_CLOCK 2u

/* First and third cell of an interrupt (interrupt-controller/arm,gic-v3.yaml). */
#define IRQ_SPI	  0u
#define IRQ_PPI	  1u
#define IRQ_LEVEL 4u /* active high */

#define UART_HZ	 1843200u
#define CLOCK_HZ 24000000u /* of the pl031's bus; nothing is derived from it */
#define RNG_SEED 64u

/* The MPIDR fields that name a processor: affinity 3, 2, 1, 0. */
#define MPIDR_AFF 0xff00ffffffull

struct tree {
	void *fdt;
	int rc; /* first error of libfdt */
};

static void note(struct tree *t, int rc)
{
	if (rc && !t->rc)
		t->rc = rc;
}

static void node(struct tree *t, const char *fmt, ...) RV_PRINTF(2, 3);

static void node(struct tree *t, const char *fmt, ...)
{
	char name[64];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(name, sizeof(name), fmt, ap);
	va_end(ap);
	note(t, fdt_begin_node(t->fdt, name));
}

static void end(struct tree *t)
{
	note(t, fdt_end_node(t->fdt));
}

static void prop(struct tree *t, const char *name, const void *value, size_t len)
{
	note(t, fdt_property(t->fdt, name, value, (int)len));
}

static void prop_str(struct tree *t, const char *name, const char *value)
{
	prop(t, name, value, strlen(value) + 1);
}

static void prop_cells(struct tree *t, const char *name, const uint32_t *cells, size_t n)
{
	fdt32_t be[32];

	for (size_t i = 0; i < n; i++)
		be[i] = cpu_to_fdt32(cells[i]);
	prop(t, name, be, n * sizeof(be[0]));
}

#define CELLS(t, name, ...)                                  \
	prop_cells(t, name, (const uint32_t[]){__VA_ARGS__}, \
		   sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))

static void prop_u64(struct tree *t, const char *name, uint64_t v)
{
	CELLS(t, name, (uint32_t)(v >> 32), (uint32_t)v);
}

static void prop_reg(struct tree *t, uint64_t base, uint64_t len)
{
	CELLS(t, "reg", (uint32_t)(base >> 32), (uint32_t)base, (uint32_t)(len >> 32),
	      (uint32_t)len);
}

static int chosen(struct tree *t, struct rv_vm *vm, uint64_t seed, struct rv_err *err)
{
	uint8_t rng[RNG_SEED];

	node(t, "chosen");
	prop_str(t, "bootargs", vm->cmdline);
	note(t, fdt_property_string(t->fdt, "stdout-path", "/serial@9000000"));
	if (vm->initrd_len) {
		prop_u64(t, "linux,initrd-start", vm->initrd_gpa);
		prop_u64(t, "linux,initrd-end", vm->initrd_gpa + vm->initrd_len);
	}
	if (seed)
		prop_u64(t, "kaslr-seed", seed);
	if (getrandom(rng, sizeof(rng), 0) != sizeof(rng))
		return rv_err_os(err, "boot", "draw the guest's random seed");
	prop(t, "rng-seed", rng, sizeof(rng));
	explicit_bzero(rng, sizeof(rng));
	end(t);
	return 0;
}

static int cpus(struct tree *t, struct rv_vm *vm, struct rv_err *err)
{
	node(t, "cpus");
	CELLS(t, "#address-cells", 2);
	CELLS(t, "#size-cells", 0);
	for (uint32_t i = 0; i < vm->nvcpu; i++) {
		uint64_t mpidr;

		if (rv_arm64_get(vm->vcpu[i].fd, ARM64_MPIDR, &mpidr))
			return rv_err_os(err, "boot", "read the number of vcpu %u", i);
		mpidr &= MPIDR_AFF;
		node(t, "cpu@%llx", (unsigned long long)mpidr);
		prop_str(t, "device_type", "cpu");
		prop_str(t, "compatible", "arm,armv8");
		prop_str(t, "enable-method", "psci");
		prop_u64(t, "reg", mpidr);
		end(t);
	}
	end(t);
	node(t, "psci");
	prop(t, "compatible", "arm,psci-1.0\0arm,psci-0.2", sizeof("arm,psci-1.0\0arm,psci-0.2"));
	prop_str(t, "method", "hvc");
	end(t);
	return 0;
}

static void interrupts(struct tree *t, uint32_t nvcpu)
{
	uint64_t redist = nvcpu * ARM64_GICR_EACH;

	node(t, "intc@%llx", (unsigned long long)ARM64_GICD);
	prop_str(t, "compatible", "arm,gic-v3");
	CELLS(t, "#interrupt-cells", 3);
	prop(t, "interrupt-controller", NULL, 0);
	CELLS(t, "reg", 0, ARM64_GICD, 0, ARM64_GICD_LEN, 0, ARM64_GICR, 0, (uint32_t)redist);
	CELLS(t, "phandle", PHANDLE_GIC);
	end(t);
	/* Secure, non-secure, virtual and hypervisor timer of the architecture. */
	node(t, "timer");
	prop_str(t, "compatible", "arm,armv8-timer");
	CELLS(t, "interrupts", IRQ_PPI, 13, IRQ_LEVEL, IRQ_PPI, 14, IRQ_LEVEL, IRQ_PPI, 11,
	      IRQ_LEVEL, IRQ_PPI, 10, IRQ_LEVEL);
	prop(t, "always-on", NULL, 0);
	end(t);
}

static void devices(struct tree *t, const struct rv_vm *vm)
{
	node(t, "serial@%llx", (unsigned long long)ARM64_UART);
	prop_str(t, "compatible", "ns16550a");
	prop_reg(t, ARM64_UART, ARM64_UART_LEN);
	CELLS(t, "interrupts", IRQ_SPI, ARM64_SPI_UART, IRQ_LEVEL);
	CELLS(t, "clock-frequency", UART_HZ);
	end(t);
	node(t, "apb-clock");
	prop_str(t, "compatible", "fixed-clock");
	CELLS(t, "#clock-cells", 0);
	CELLS(t, "clock-frequency", CLOCK_HZ);
	CELLS(t, "phandle", PHANDLE_CLOCK);
	end(t);
	node(t, "rtc@%llx", (unsigned long long)ARM64_RTC);
	prop(t, "compatible", "arm,pl031\0arm,primecell", sizeof("arm,pl031\0arm,primecell"));
	prop_reg(t, ARM64_RTC, ARM64_RTC_LEN);
	CELLS(t, "clocks", PHANDLE_CLOCK);
	prop_str(t, "clock-names", "apb_pclk");
	end(t);
	for (uint32_t i = 0; i < vm->nslots; i++) {
		const struct rv_virtio_slot *s = &vm->slots[i];

		node(t, "virtio_mmio@%llx", (unsigned long long)s->base.v);
		prop_str(t, "compatible", "virtio,mmio");
		prop_reg(t, s->base.v, RV_VIRTIO_MMIO_LEN);
		CELLS(t, "interrupts", IRQ_SPI, ARM64_GSI_SPI(s->gsi), IRQ_LEVEL);
		prop(t, "dma-coherent", NULL, 0);
		end(t);
	}
}

static int root(struct tree *t, struct rv_vm *vm, uint64_t seed, struct rv_err *err)
{
	int rc;

	node(t, "%s", "");
	prop_str(t, "compatible", "linux,dummy-virt");
	prop_str(t, "model", "ravelin");
	CELLS(t, "#address-cells", 2);
	CELLS(t, "#size-cells", 2);
	CELLS(t, "interrupt-parent", PHANDLE_GIC);
	rc = chosen(t, vm, seed, err);
	if (rc)
		return rc;
	for (uint32_t i = 0; i < vm->mem.nram; i++) {
		node(t, "memory@%llx", (unsigned long long)vm->mem.ram[i].gpa.v);
		prop_str(t, "device_type", "memory");
		prop_reg(t, vm->mem.ram[i].gpa.v, vm->mem.ram[i].len);
		end(t);
	}
	rc = cpus(t, vm, err);
	if (rc)
		return rc;
	interrupts(t, vm->nvcpu);
	devices(t, vm);
	end(t);
	return 0;
}

int rv_arm64_fdt_build(struct rv_vm *vm, uint64_t seed, struct rv_err *err)
{
	struct tree t = {.fdt = rv_mem_ptr(vm, rv_gpa_of(ARM64_FDT), ARM64_FDT_MAX)};
	int rc;

	if (!t.fdt)
		return rv_err_set(err, RV_EINVAL, "boot", "too little RAM for a device tree");
	note(&t, fdt_create(t.fdt, (int)ARM64_FDT_MAX));
	note(&t, fdt_finish_reservemap(t.fdt));
	rc = root(&t, vm, seed, err);
	if (rc)
		return rc;
	note(&t, fdt_finish(t.fdt));
	if (t.rc)
		return rv_err_set(err, RV_EINVAL, "boot", "write the device tree: %s",
				  fdt_strerror(t.rc));
	return 0;
}
