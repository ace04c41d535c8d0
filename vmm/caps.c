/* SPDX-License-Identifier: Apache-2.0 */
/* caps.c: the table of KVM capabilities that every architecture shares, and its probe. */
#include "caps.h"

#include <errno.h>
#include <linux/kvm.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>

/* Some constants hide behind per-architecture feature macros of the header; the
 * numbers are one space for all. */
#ifndef KVM_CAP_READONLY_MEM
#define KVM_CAP_READONLY_MEM 81
#endif

static const struct rv_cap common[] = {
	{"KVM_CAP_USER_MEMORY", KVM_CAP_USER_MEMORY, NULL, 1, RV_CAP_REQUIRED, "guest RAM",
	 "no machine can be built"},
	{"KVM_CAP_SYNC_MMU", KVM_CAP_SYNC_MMU, NULL, 1, RV_CAP_REQUIRED,
	 "seal: protection of the host mapping",
	 "protecting a page would not reach the guest, so that nothing can be sealed"},
	{"KVM_CAP_IRQCHIP", KVM_CAP_IRQCHIP, NULL, 1, RV_CAP_REQUIRED, "interrupt controller",
	 "no machine can be built"},
	{"KVM_CAP_IMMEDIATE_EXIT", KVM_CAP_IMMEDIATE_EXIT, NULL, 1, RV_CAP_REQUIRED,
	 "parking of processors", "processors cannot be stopped without a race"},
	{"KVM_CAP_IRQFD", KVM_CAP_IRQFD, NULL, 1, RV_CAP_UNUSED, "interrupts of devices",
	 "devices cannot interrupt"},
	{"KVM_CAP_IOEVENTFD", KVM_CAP_IOEVENTFD, NULL, 1, RV_CAP_REQUIRED, "queues of devices",
	 "devices cannot be told of new requests"},
	{"KVM_CAP_READONLY_MEM", KVM_CAP_READONLY_MEM, NULL, 1, RV_CAP_UNUSED,
	 "seal: read-only slots for regions known at boot",
	 "such regions are sealed through the host mapping instead"},
	{"KVM_CAP_MEMORY_FAULT_INFO", KVM_CAP_MEMORY_FAULT_INFO, NULL, 1, RV_CAP_FASTER,
	 "seal: address of a refused write", "the address is worked out from the instruction"},
	{"KVM_CAP_SET_GUEST_DEBUG", KVM_CAP_SET_GUEST_DEBUG, NULL, 1, RV_CAP_WANTED,
	 "seal: stepping over a write that is let through or denied",
	 "records and denials of writes in sealed memory end the machine"},
	{"KVM_CAP_VCPU_EVENTS", KVM_CAP_VCPU_EVENTS, NULL, 1, RV_CAP_REQUIRED,
	 "faults given to the guest", "the action fault cannot be carried out"},
	{"KVM_CAP_SYNC_REGS", KVM_CAP_SYNC_REGS, NULL, 1, RV_CAP_UNUSED, "doorbell",
	 "two more system calls for each exit of the gate"},
	{"KVM_CAP_NR_MEMSLOTS", KVM_CAP_NR_MEMSLOTS, NULL, 32, RV_CAP_UNUSED,
	 "number of memory slots", "few regions can be sealed by read-only slots"},
	{"KVM_CAP_MAX_VCPUS", KVM_CAP_MAX_VCPUS, NULL, 1, RV_CAP_WANTED, "number of processors",
	 "machines with more processors than KVM recommends"},
};

static int ask(int kvm_fd, const struct rv_cap *cap)
{
	int v = cap->probe ? cap->probe(kvm_fd) : ioctl(kvm_fd, KVM_CHECK_EXTENSION, cap->number);

	return v < 0 ? 0 : v;
}

static void add(struct rv_caps *out, int kvm_fd, const struct rv_cap *cap)
{
	struct rv_cap_state *s;

	if (out->n >= RV_CAPS_MAX)
		return;
	s = &out->state[out->n++];
	s->cap = cap;
	s->value = ask(kvm_fd, cap);
	s->present = s->value >= (cap->least ? cap->least : 1);
	if (!s->present && cap->need == RV_CAP_REQUIRED)
		out->missing_required++;
	else if (!s->present && cap->need == RV_CAP_WANTED)
		out->missing_optional++;
}

int rv_caps_probe(int kvm_fd, struct rv_caps *out, struct rv_err *err)
{
	memset(out, 0, sizeof(*out));
	out->api = ioctl(kvm_fd, KVM_GET_API_VERSION, 0);
	if (out->api < 0)
		return rv_err_os(err, "caps", "KVM_GET_API_VERSION: is it /dev/kvm?");
	if (out->api != RV_KVM_API)
		return rv_err_set(err, RV_EUNSUPPORTED, "caps", "KVM API version %d: expected %d",
				  out->api, RV_KVM_API);
	for (size_t i = 0; i < sizeof(common) / sizeof(common[0]); i++)
		add(out, kvm_fd, &common[i]);
	for (const struct rv_cap *cap = rv_arch_caps; cap->name; cap++)
		add(out, kvm_fd, cap);
	return 0;
}

int rv_caps_require(const struct rv_caps *caps, struct rv_err *err)
{
	for (uint32_t i = 0; i < caps->n; i++) {
		const struct rv_cap_state *s = &caps->state[i];

		if (s->cap->need == RV_CAP_REQUIRED && !s->present)
			return rv_err_set(err, RV_EUNSUPPORTED, "caps",
					  "this host's KVM has no %s (%s): %s", s->cap->name,
					  s->cap->user, s->cap->lost);
	}
	return 0;
}

int rv_caps_value(const struct rv_caps *caps, uint32_t number)
{
	for (uint32_t i = 0; i < caps->n; i++) {
		if (!caps->state[i].cap->probe && caps->state[i].cap->number == number)
			return caps->state[i].value;
	}
	return 0;
}
