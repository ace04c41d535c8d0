/* SPDX-License-Identifier: Apache-2.0 */
/* vm.c (x86_64): interrupt controllers, timer, memory map, vcpu state before boot. */
#include "x86.h"
#include "arch.h"
#include "linux/linux.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#define MSR_IA32_MISC_ENABLE 0x1a0u /* SDM vol. 4: bit 0, fast strings */
#define MSR_KERNEL_GS_BASE   0xc0000102u
#define MSR_MTRR_DEF_TYPE    0x2ffu /* SDM vol. 3, 12.11.2.1: bit 11 enable, type 6 = WB */

uint32_t rv_arch_ram_layout(uint64_t size, struct rv_ram out[2])
{
	out[0] = (struct rv_ram){.gpa = rv_gpa_of(0), .len = size, .off = 0};
	if (size <= X86_HOLE)
		return 1;
	out[0].len = X86_HOLE;
	out[1] = (struct rv_ram){
		.gpa = rv_gpa_of(X86_4G), .len = size - X86_HOLE, .off = X86_HOLE};
	return 2;
}

void rv_arch_virtio_slot(uint32_t i, struct rv_virtio_slot *out)
{
	/* IOAPIC pins above the ISA range first; then ISA lines that nothing here uses. */
	static const uint8_t gsi[RV_VIRTIO_MAX] = {16, 17, 18, 19, 20, 21, 22, 23,
						   5,  6,  7,  10, 11, 12, 14, 15};

	out->base = rv_gpa_of(X86_VIRTIO + i * X86_VIRTIO_STRIDE);
	out->gsi = gsi[i % RV_VIRTIO_MAX];
}

/* There is no PCI bus; a kernel that is not told looks for one, and complains. */
const char *rv_arch_append(const char *given)
{
	return given && strstr(given, "pci=") ? "" : " pci=off";
}

unsigned long rv_arch_vm_type(int kvm_fd, uint64_t memory)
{
	(void)kvm_fd, (void)memory;
	return 0;
}

static int enable_cap(struct rv_vm *vm, uint32_t cap, uint64_t arg)
{
	struct kvm_enable_cap c = {.cap = cap, .args = {arg}};

	return ioctl(vm->fd, KVM_ENABLE_CAP, &c);
}

int rv_arch_vm_init(struct rv_vm *vm, struct rv_err *err)
{
	struct kvm_pit_config pit = {.flags = KVM_PIT_SPEAKER_DUMMY};
	uint64_t identity = X86_IDENTITY;

	vm->arch = calloc(1, sizeof(*vm->arch));
	if (!vm->arch)
		return rv_err_set(err, RV_ENOMEM, "x86", "allocate the machine");
	if (ioctl(vm->fd, KVM_SET_IDENTITY_MAP_ADDR, &identity) ||
	    ioctl(vm->fd, KVM_SET_TSS_ADDR, X86_TSS))
		return rv_err_os(err, "x86", "reserve KVM's own pages");
	if (ioctl(vm->fd, KVM_CREATE_IRQCHIP, 0))
		return rv_err_os(err, "x86", "create the interrupt controllers");
	if (ioctl(vm->fd, KVM_CREATE_PIT2, &pit))
		return rv_err_os(err, "x86", "create the interval timer");
	/* The way a write is refused: a page fault with its address, delivered late enough
	 * that CR2 is not disturbed before (kvm.rst 7.11). */
	if (enable_cap(vm, KVM_CAP_EXCEPTION_PAYLOAD, 1))
		return rv_err_os(err, "x86", "enable exception payloads (needed to refuse a write)");
	/* An instruction that KVM cannot emulate becomes an exit with its bytes. */
	(void)enable_cap(vm, KVM_CAP_EXIT_ON_EMULATION_FAILURE, 1);
	vm->arch->guestdbg_blockirq = (ioctl(vm->kvm, KVM_CHECK_EXTENSION,
					     KVM_CAP_SET_GUEST_DEBUG2) & KVM_GUESTDBG_BLOCKIRQ) != 0;
	return rv_x86_cpuid_init(vm, err);
}

void rv_arch_vm_deinit(struct rv_vm *vm)
{
	if (vm->arch)
		free(vm->arch->cpuid);
	free(vm->arch);
	vm->arch = NULL;
}

int rv_arch_devices(struct rv_vm *vm, struct rv_chardev *console, struct rv_err *err)
{
	int rc = rv_serial_create(vm, X86_COM1, X86_COM1_IRQ, console, err);

	return rc ? rc : rv_x86_pm_create(vm, err);
}

static int set_msrs(struct rv_vcpu *v, struct rv_err *err)
{
	struct {
		struct kvm_msrs head;
		struct kvm_msr_entry e[2];
	} m = {.head = {.nmsrs = 2},
	       .e = {{.index = MSR_IA32_MISC_ENABLE, .data = 1},
		     /* Without MTRRs Linux switches the PAT off. */
		     {.index = MSR_MTRR_DEF_TYPE, .data = 0x806}}};

	if (ioctl(v->fd, KVM_SET_MSRS, &m) != 2)
		return rv_err_os(err, "x86", "set the first MSRs of vcpu %u", v->index);
	return 0;
}

/* LINT0 takes the PIC's interrupts, LINT1 is NMI, as firmware leaves them. */
static int set_lapic(struct rv_vcpu *v, struct rv_err *err)
{
	struct kvm_lapic_state st;
	uint32_t lint0 = 0x700, lint1 = 0x400;

	if (ioctl(v->fd, KVM_GET_LAPIC, &st))
		return rv_err_os(err, "x86", "read the local APIC of vcpu %u", v->index);
	memcpy(st.regs + 0x350, &lint0, 4);
	memcpy(st.regs + 0x360, &lint1, 4);
	if (ioctl(v->fd, KVM_SET_LAPIC, &st))
		return rv_err_os(err, "x86", "set the local APIC of vcpu %u", v->index);
	return 0;
}

/*
 * XCR0 starts with every feature that the vcpu has. Linux sets it by itself in any case;
 * a host CPU that does not intercept XSETBV (an emulated one) would leave KVM with the
 * reset value, and CPUID 0DH with sizes that contradict the registers.
 */
static int set_xcr0(struct rv_vm *vm, struct rv_vcpu *v, struct rv_err *err)
{
	const struct kvm_cpuid2 *c = vm->arch->cpuid;
	struct kvm_xcrs x = {.nr_xcrs = 1};

	for (uint32_t i = 0; i < c->nent; i++)
		if (c->entries[i].function == 0xd && c->entries[i].index == 0)
			x.xcrs[0].value = (uint64_t)c->entries[i].edx << 32 | c->entries[i].eax;
	/* Tile state needs the host's leave (ARCH_REQ_XCOMP_GUEST_PERM), not asked for. */
	x.xcrs[0].value &= ~(3ull << 17);
	if (!x.xcrs[0].value || ioctl(vm->kvm, KVM_CHECK_EXTENSION, KVM_CAP_XCRS) <= 0)
		return 0;
	if (ioctl(v->fd, KVM_SET_XCRS, &x))
		return rv_err_os(err, "x86", "set XCR0 of vcpu %u to 0x%llx", v->index,
				 (unsigned long long)x.xcrs[0].value);
	return 0;
}

int rv_arch_vcpu_init(struct rv_vm *vm, struct rv_vcpu *v, struct rv_err *err)
{
	int rc = rv_x86_cpuid_set(vm, v, err);

	if (!rc)
		rc = set_msrs(v, err);
	if (!rc)
		rc = set_lapic(v, err);
	if (!rc)
		rc = set_xcr0(vm, v, err);
	return rc;
}

int rv_arch_vcpu_pulse(struct rv_vcpu *v, uint64_t *digest, uint64_t *pc, bool *halted)
{
	struct kvm_mp_state mp;
	struct kvm_regs r;
	const uint64_t *w = (const uint64_t *)&r;
	uint64_t h = 0xcbf29ce484222325ull;

	if (ioctl(v->fd, KVM_GET_REGS, &r) || ioctl(v->fd, KVM_GET_MP_STATE, &mp))
		return RV_EOS;
	/* FNV-1a over whole registers: equality is all that is asked of it. */
	for (size_t i = 0; i < sizeof(r) / 8; i++)
		h = (h ^ w[i]) * 0x100000001b3ull;
	*digest = h;
	*pc = r.rip;
	*halted = mp.mp_state != KVM_MP_STATE_RUNNABLE;
	return 0;
}

int rv_arch_vcpu_view(struct rv_vcpu *v, struct rv_paging_regs *paging,
		      struct rv_unwind_regs *unwind, uint64_t *percpu)
{
	struct kvm_msrs_one {
		struct kvm_msrs head;
		struct kvm_msr_entry e;
	} kgs = {.head = {.nmsrs = 1}, .e = {.index = MSR_KERNEL_GS_BASE}};
	struct kvm_sregs s;
	struct kvm_regs r;

	if (ioctl(v->fd, KVM_GET_SREGS, &s) || ioctl(v->fd, KVM_GET_REGS, &r))
		return RV_EOS;
	memset(paging, 0, sizeof(*paging));
	paging->arch = RV_ARCH_X86_64;
	paging->x86.cr3 = s.cr3;
	paging->x86.cr4 = s.cr4;
	paging->x86.efer = s.efer;
	unwind->ip = r.rip;
	unwind->sp = r.rsp;
	unwind->bp = r.rbp;
	/* Of the two GS bases the kernel's is the one in the upper half. */
	*percpu = s.gs.base;
	if (!(s.gs.base >> 63) && ioctl(v->fd, KVM_GET_MSRS, &kgs) == 1)
		*percpu = kgs.e.data;
	return 0;
}
