/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memprot_storm.c: several vcpus that write to a protected page, while several threads
 * park them all and open it.
 */
#include "memprot_test.h"

#define ROUNDS 150u

static struct {
	_Atomic bool stop;
	_Atomic uint32_t cycles, moved;
	int holders; /* not atomic on purpose: only the owner of the park touches it */
	_Atomic uint32_t overlap;
} s;

/* Progress of the vcpus as the monitor sees it. */
static void progress(uint64_t out[NVCPU])
{
	for (uint32_t i = 0; i < NVCPU; i++)
		memcpy(&out[i], mpt_mem(COUNTERS + 64 * i, 8), 8);
}

static void *initiator(void *arg)
{
	bool opens = arg != NULL;

	while (!mpt_started && !s.stop)
		usleep(100);
	while (!s.stop) {
		uint64_t a[NVCPU], b[NVCPU];

		rv_park(&mpt_vm);
		if (s.holders++)
			s.overlap++;
		progress(a);
		if (opens) {
			(void)!rv_memprot_open(mpt_vm.prot, rv_gpa_of(WINDOW + P1), 4096, NULL);
			rv_park(&mpt_vm); /* nests */
		}
		usleep(500);
		progress(b);
		if (memcmp(a, b, sizeof(a)))
			s.moved++;
		if (opens) {
			(void)!rv_memprot_shut(mpt_vm.prot, rv_gpa_of(WINDOW + P1), 4096, NULL);
			rv_unpark(&mpt_vm);
		}
		s.holders--;
		s.cycles++;
		rv_unpark(&mpt_vm);
		usleep(2000);
	}
	return NULL;
}

/*
 * Each vcpu: count in its own line, then write to its own protected bytes, then count in
 * the shared protected word; rbx = index.
 */
static void storm_code(void)
{
	uint8_t *c = mpt_mem(CODE, 128);
	uint32_t rounds = ROUNDS;
	size_t n = 0, loop;
	int8_t back;

	n += mpt_unhex("49b8", c + n); /* mov r8, COUNTERS */
	memcpy(c + n, &(uint64_t){HIGH + COUNTERS}, 8);
	n += 8;
	n += mpt_unhex("4889d848c1e0064901c0", c + n); /* mov rax,rbx; shl rax,6; add r8,rax */
	n += mpt_unhex("49b9", c + n);		       /* mov r9, protected */
	memcpy(c + n, &(uint64_t){HIGH + WINDOW + P1}, 8);
	n += 8;
	n += mpt_unhex("b9", c + n); /* mov ecx, ROUNDS */
	memcpy(c + n, &rounds, 4);
	n += 4;
	loop = n;
	n += mpt_unhex("49ff00", c + n);     /* inc qword [r8] */
	n += mpt_unhex("49894cd908", c + n); /* mov [r9+rbx*8+8], rcx */
	n += mpt_unhex("f049ff01", c + n);   /* lock inc qword [r9] */
	n += mpt_unhex("ffc975", c + n);     /* dec ecx; jnz loop */
	back = (int8_t)((int)loop - (int)(n + 1));
	c[n++] = (uint8_t)back;
	n += mpt_unhex("e6edfaf4ebfc", c + n); /* out 0xed; cli; hlt; jmp */
}

void mpt_storm(const char *name, enum rv_action act)
{
	uint8_t *w = mpt_mem(WINDOW, WLEN);
	pthread_t a, b;
	const char *why;
	uint64_t total, counts[NVCPU];

	memset(w, 0, WLEN);
	memset(mpt_mem(COUNTERS, 4096), 0, 4096);
	memset(&s, 0, sizeof(s));
	mpt_started = false;
	mpt_done = 0;
	storm_code();
	mpt_seal.act[0] = mpt_seal.act[1] = act;
	mpt_seal.events = 0;
	mpt_vm.spurious = 0;
	pthread_create(&a, NULL, initiator, NULL);
	pthread_create(&b, NULL, initiator, &s);
	why = mpt_run(NVCPU, HIGH + CODE, HANG * 3);
	s.stop = true;
	pthread_join(a, NULL);
	pthread_join(b, NULL);
	memcpy(&total, w + P1, 8);
	progress(counts);
	if (!why && s.overlap)
		why = "two initiators held the VM at once";
	if (!why && s.moved)
		why = "a parked vcpu made progress";
	if (!why && !s.cycles)
		why = "no park cycle happened";
	for (uint32_t i = 0; !why && i < NVCPU; i++)
		if (counts[i] != ROUNDS)
			why = "a vcpu ran more or fewer rounds than it was told";
	if (!why && mpt_seal.events != 2 * ROUNDS * NVCPU) {
		static char t2[100];

		snprintf(t2, sizeof(t2), "%u events, expected %u", (uint32_t)mpt_seal.events,
			 2 * ROUNDS * NVCPU);
		why = t2;
	}
	if (!why && act == RV_ACT_RECORD && total != ROUNDS * NVCPU)
		why = "recorded increments were lost or done twice";
	for (uint32_t i = 0; !why && i < WLEN; i++)
		if (w[i] && (act == RV_ACT_DENY || i < P1 || i >= P1 + 8 + 8 * NVCPU))
			why = "a denied write landed";
	if (mpt_verbose)
		printf("# %s: %u park cycles, %llu unexplained faults\n", name, (uint32_t)s.cycles,
		       (unsigned long long)mpt_vm.spurious);
	mpt_result(name, why);
}
