/* SPDX-License-Identifier: Apache-2.0 */
/*
 * task.c: which task a vCPU runs.
 *
 * It decorates an event, and events come at awkward moments (early boot, inside
 * the entry code, out of a damaged guest): every failure is "not known".
 */
#include "linux/linux.h"

#include <string.h>

/* Kernel addresses are in the upper half on both architectures. */
static bool is_kernel(uint64_t va)
{
	return va >> 63;
}

bool rv_task_at(const struct rv_kernel *k, uint64_t task_va, struct rv_task *out)
{
	const struct rv_kernel_offsets *o = &k->off;
	size_t n = sizeof(out->comm);
	struct rv_task t = {.va = task_va};
	struct rv_view v;
	uint32_t pid, tgid;

	memset(out, 0, sizeof(*out));
	if (!is_kernel(task_va) || task_va % 8 || o->task_pid == RV_KERNEL_NO_OFF ||
	    o->task_comm == RV_KERNEL_NO_OFF || rv_kernel_view(k, &v, NULL))
		return false;
	/* comm is comm_len bytes with the NUL among them. */
	if (n > o->task_comm_len)
		n = o->task_comm_len;
	if (rv_view_read_u32(&v, rv_gva_of(task_va + o->task_pid), &pid, NULL) ||
	    rv_view_read_name(&v, rv_gva_of(task_va + o->task_comm), t.comm, n, NULL))
		return false;
	t.pid = (int32_t)pid;
	if (o->task_tgid != RV_KERNEL_NO_OFF &&
	    !rv_view_read_u32(&v, rv_gva_of(task_va + o->task_tgid), &tgid, NULL))
		t.tgid = (int32_t)tgid;
	if (o->task_stack != RV_KERNEL_NO_OFF)
		(void)!rv_view_read_u64(&v, rv_gva_of(task_va + o->task_stack), &t.stack, NULL);
	*out = t;
	return true;
}

bool rv_task_current(const struct rv_kernel *k, uint64_t percpu, struct rv_task *out)
{
	struct rv_view v;
	uint64_t task;

	memset(out, 0, sizeof(*out));
	if (k->regs.arch == RV_ARCH_ARM64)
		return rv_task_at(k, percpu, out);
	if (!k->has_current || !is_kernel(percpu) || rv_kernel_view(k, &v, NULL) ||
	    rv_view_read_u64(&v, rv_gva_of(percpu + k->sym_current), &task, NULL))
		return false;
	return rv_task_at(k, task, out);
}
