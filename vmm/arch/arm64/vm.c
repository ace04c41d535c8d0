/* SPDX-License-Identifier: Apache-2.0 */
/* vm.c (arm64): memory map, interrupt controller, vcpu state before boot. */
#include "arm64.h"
#include "arch.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define IPA_DEFAULT 40u /* bits, for type 0 of KVM_CREATE_VM */

/* Younger than some of the kernel headers that we build with. */
#ifndef KVM_CAP_ARM_PTRAUTH_ADDRESS
#define KVM_CAP_ARM_PTRAUTH_ADDRESS 171
#define KVM_CAP_ARM_PTRAUTH_GENERIC 172
#endif

uint32_t rv_arch_ram_layout(uint64_t size, struct rv_ram out[2])
{
	out[0] = (struct rv_ram){.gpa = rv_gpa_of(ARM64_RAM), .len = size, .off = 0};
	return 1;
}

void rv_arch_virtio_slot(uint32_t i, struct rv_virtio_slot *out)
{
	out->base = rv_gpa_of(ARM64_VIRTIO + i * ARM64_VIRTIO_STRIDE);
	out->gsi = ARM64_GSI(ARM64_SPI_VIRTIO + i % RV_VIRTIO_MAX);
}

/* What there is, the device tree says. */
const char *rv_arch_append(const char *given)
{
	(void)given;
	return "";
}

static uint32_t ipa_bits(int kvm_fd)
{
	int bits = ioctl(kvm_fd, KVM_CHECK_EXTENSION, KVM_CAP_ARM_VM_IPA_SIZE);

	return bits > 0 ? (uint32_t)bits : IPA_DEFAULT;
}

/* 40 bits as KVM's default has it; less where the host has less, more where RAM needs it. */
unsigned long rv_arch_vm_type(int kvm_fd, uint64_t memory)
{
	uint32_t bits = ipa_bits(kvm_fd);

	if (bits < IPA_DEFAULT)
		return bits;
	return memory > (1ull << IPA_DEFAULT) - ARM64_RAM ? bits : 0;
}

static int has_cap(int fd, unsigned cap)
{
	return ioctl(fd, KVM_CHECK_EXTENSION, (unsigned long)cap) > 0;
}

static int preferred(int vm_fd, bool ptrauth, struct kvm_vcpu_init *init)
{
	memset(init, 0, sizeof(*init));
	if (ioctl(vm_fd, KVM_ARM_PREFERRED_TARGET, init))
		return RV_EOS;
	init->features[0] |= 1u << KVM_ARM_VCPU_PSCI_0_2;
	if (ptrauth)
		init->features[0] |=
			1u << KVM_ARM_VCPU_PTRAUTH_ADDRESS | 1u << KVM_ARM_VCPU_PTRAUTH_GENERIC;
	return 0;
}

/*
 * What vcpus are like must be known before the kernel is placed, and that happens before
 * there are any: ask one of a VM that is made for this question.
 */
static int ask_vcpu(struct rv_vm *vm, struct rv_err *err)
{
	struct kvm_vcpu_init init;
	int fd, vcpu = -1, rc = 0;

	fd = ioctl(vm->kvm, KVM_CREATE_VM, rv_arch_vm_type(vm->kvm, 0));
	if (fd >= 0)
		vcpu = ioctl(fd, KVM_CREATE_VCPU, 0UL);
	if (vcpu < 0 || preferred(fd, vm->arch->ptrauth, &init) ||
	    ioctl(vcpu, KVM_ARM_VCPU_INIT, &init) ||
	    rv_arm64_get(vcpu, ARM64_ID_MMFR0, &vm->arch->mmfr0))
		rc = rv_err_os(err, "arm64", "ask a vcpu for its features");
	if (vcpu >= 0)
		close(vcpu);
	if (fd >= 0)
		close(fd);
	return rc;
}

int rv_arch_vm_init(struct rv_vm *vm, struct rv_err *err)
{
	struct kvm_enable_cap nisv = {.cap = KVM_CAP_ARM_NISV_TO_USER};
	uint32_t bits = ipa_bits(vm->kvm);

	vm->arch = calloc(1, sizeof(*vm->arch));
	if (!vm->arch)
		return rv_err_set(err, RV_ENOMEM, "arm64", "allocate the machine");
	vm->arch->gic = -1;
	if (bits < 64 && vm->opt->memory > (1ull << bits) - ARM64_RAM)
		return rv_err_set(err, RV_EINVAL, "arm64",
				  "%llu MiB of RAM: this host's guests have %u-bit addresses",
				  (unsigned long long)(vm->opt->memory >> 20), bits);
	/* A load or store to where no memory is, of a kind that the processor does not
	 * describe, would else end the VM. */
	if (ioctl(vm->fd, KVM_ENABLE_CAP, &nisv))
		return rv_err_os(err, "arm64", "enable exits for accesses without a syndrome");
	vm->arch->ext_dabt = has_cap(vm->kvm, KVM_CAP_ARM_INJECT_EXT_DABT);
	/* Both or none: KVM refuses one alone. */
	vm->arch->ptrauth = has_cap(vm->kvm, KVM_CAP_ARM_PTRAUTH_ADDRESS) &&
			    has_cap(vm->kvm, KVM_CAP_ARM_PTRAUTH_GENERIC);
	return ask_vcpu(vm, err);
}

void rv_arch_vm_deinit(struct rv_vm *vm)
{
	if (vm->arch && vm->arch->gic >= 0)
		close(vm->arch->gic);
	free(vm->arch);
	vm->arch = NULL;
}

int rv_arch_vcpu_init(struct rv_vm *vm, struct rv_vcpu *v, struct rv_err *err)
{
	struct kvm_vcpu_init init;
	uint64_t mmfr0;

	if (preferred(vm->fd, vm->arch->ptrauth, &init))
		return rv_err_os(err, "arm64", "ask for the kind of vcpu that this host has");
	/* The others wait until the guest starts them (PSCI CPU_ON, inside KVM). */
	if (v->index)
		init.features[0] |= 1u << KVM_ARM_VCPU_POWER_OFF;
	if (ioctl(v->fd, KVM_ARM_VCPU_INIT, &init))
		return rv_err_os(err, "arm64", "initialise vcpu %u", v->index);
	/* The kernel's place was worked out from these. */
	if (rv_arm64_get(v->fd, ARM64_ID_MMFR0, &mmfr0))
		return rv_err_os(err, "arm64", "read the features of vcpu %u", v->index);
	if (mmfr0 != vm->arch->mmfr0)
		return rv_err_set(err, RV_EUNSUPPORTED, "arm64",
				  "vcpu %u has other features than the first one that was asked",
				  v->index);
	return 0;
}

static int gic_attr(struct rv_vm *vm, uint32_t group, uint64_t attr, void *value)
{
	struct kvm_device_attr a = {.group = group, .attr = attr, .addr = (uintptr_t)value};

	return ioctl(vm->arch->gic, KVM_SET_DEVICE_ATTR, &a);
}

/* The interrupt controller; every vcpu exists, none has run. */
static int create_gic(struct rv_vm *vm, struct rv_err *err)
{
	struct kvm_create_device dev = {.type = KVM_DEV_TYPE_ARM_VGIC_V3};
	uint64_t dist = ARM64_GICD;
	/* One region: count in bits 63:52, base, index 0 (devices/arm-vgic-v3.rst). */
	uint64_t redist = (uint64_t)vm->nvcpu << 52 | ARM64_GICR;
	uint32_t irqs = ARM64_NR_IRQS;

	if (ioctl(vm->fd, KVM_CREATE_DEVICE, &dev))
		return rv_err_os(err, "arm64", "create a GICv3 (a host with a GICv2 has none)");
	vm->arch->gic = (int)dev.fd;
	if (gic_attr(vm, KVM_DEV_ARM_VGIC_GRP_ADDR, KVM_VGIC_V3_ADDR_TYPE_DIST, &dist) ||
	    gic_attr(vm, KVM_DEV_ARM_VGIC_GRP_ADDR, KVM_VGIC_V3_ADDR_TYPE_REDIST_REGION, &redist))
		return rv_err_os(err, "arm64", "place the interrupt controller");
	if (gic_attr(vm, KVM_DEV_ARM_VGIC_GRP_NR_IRQS, 0, &irqs) ||
	    gic_attr(vm, KVM_DEV_ARM_VGIC_GRP_CTRL, KVM_DEV_ARM_VGIC_CTRL_INIT, NULL))
		return rv_err_os(err, "arm64", "start the interrupt controller");
	return 0;
}

int rv_arch_devices(struct rv_vm *vm, struct rv_chardev *console, struct rv_err *err)
{
	int rc = create_gic(vm, err);

	if (!rc)
		rc = rv_serial_create_mmio(vm, rv_gpa_of(ARM64_UART), ARM64_GSI(ARM64_SPI_UART),
					   console, err);
	return rc ? rc : rv_arm64_rtc_create(vm, err);
}
