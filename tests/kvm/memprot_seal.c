/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memprot_seal.c: verdicts: what enforce/seal.c does, without a kernel.
 *
 * The answer is the region's, set by the test before it runs; the first write is kept.
 */
#include "memprot_test.h"

struct mpt_seal mpt_seal = {.lock = PTHREAD_MUTEX_INITIALIZER};

enum rv_action rv_seal_write(struct rv_vm *m, struct rv_vcpu *v, const struct rv_guard *reg,
			     const struct rv_write *w)
{
	uint32_t i = reg->id < 2 ? reg->id : 0;

	(void)m;
	pthread_mutex_lock(&mpt_seal.lock);
	if (!mpt_seal.events)
		mpt_seal.last = *w;
	pthread_mutex_unlock(&mpt_seal.lock);
	mpt_seal.events++;
	mpt_seal.by_region[i]++;
	if (mpt_seal.asked)
		mpt_seal.asked(v);
	return mpt_seal.act[i];
}

enum rv_action rv_seal_would(struct rv_vm *m, const struct rv_guard *reg)
{
	(void)m;
	return mpt_seal.act[reg->id < 2 ? reg->id : 0];
}

int rv_seal_prepare(struct rv_vm *m, struct rv_err *err)
{
	(void)m;
	return rv_err_set(err, RV_EUNSUPPORTED, "test", "no kernel");
}

void rv_seal_destroy(struct rv_vm *m)
{
	(void)m;
}

void rv_seal_ready(struct rv_vm *m, struct rv_vcpu *v)
{
	(void)m, (void)v;
}

bool rv_seal_poke(struct rv_vm *m, struct rv_vcpu *v, rv_gpa gpa, const void *bytes, uint32_t len,
		  rv_gva target)
{
	(void)m, (void)v, (void)gpa, (void)bytes, (void)len, (void)target;
	return false;
}

uint64_t rv_seal_image_va(struct rv_vm *m, uint64_t gpa)
{
	(void)m;
	return HIGH + gpa;
}

void rv_seal_name(struct rv_vm *m, struct rv_vcpu *v, struct rv_event *ev)
{
	(void)m, (void)v, (void)ev;
}

uint64_t rv_seal_task_stack(struct rv_vm *m, struct rv_vcpu *v)
{
	(void)m, (void)v;
	return HIGH + 0x30000; /* where the program may go on; handlers have a stack of their own */
}
