/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memprot_test.c: every form of store against a protected page, on a real KVM.
 *
 * The monitor's own memory, protection map, fault handling and vcpu threads, without a
 * kernel: the guest is one instruction and a doorbell. Each instruction runs once where
 * nothing is protected, which tells what it writes; then the same with the window
 * protected and the answers RECORD, DENY and FAULT. Links everything of the monitor
 * but enforce/seal.c, whose verdicts memprot_seal.c gives. memprot_test.h lists the parts.
 *
 *	memprot_test [-v] [NAME]	failures, or a line for each property with -v
 */
#include "memprot_test.h"

#include <signal.h>

bool mpt_verbose;
const char *mpt_only;
static uint32_t passed, failed;

void mpt_result(const char *name, const char *why)
{
	if (why)
		printf("not ok %s: %s\n", name, why);
	else if (mpt_verbose)
		printf("ok %s\n", name);
	fflush(stdout);
	*(why ? &failed : &passed) += 1;
}

int main(int argc, char **argv)
{
	struct rv_err err = {0};
	char buf[300];
	sigset_t set;

	for (int i = 1; i < argc; i++)
		if (!strcmp(argv[i], "-v"))
			mpt_verbose = true;
		else
			mpt_only = argv[i];
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	if (mpt_build(&err) || rv_bus_add_pio(&mpt_vm, PORT_NEXT, 9, &mpt_row_ops, NULL, &err) ||
	    rv_vcpus_create(&mpt_vm, NVCPU, &err)) {
		printf("not ok memprot: %s\n", rv_err_str(&err, buf, sizeof(buf)));
		return 1;
	}
	mpt_stores();
	if (!mpt_only) {
		mpt_two_regions();
		mpt_page_table_bits();
		mpt_storm("storm/deny", RV_ACT_DENY);
		mpt_storm("storm/record", RV_ACT_RECORD);
		mpt_exception_in_step();
		mpt_remap_before_step();
		mpt_init_before_step();
	}
	printf("memprot: %u passed, %u failed, 0 skipped\n", passed, failed);
	return failed != 0;
}
