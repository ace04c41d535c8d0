/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vm.h: internal contract of vmm/. Neutral code needs no other header than this
 * one, arch.h and dev/dev.h.
 *
 * Threads: one per vcpu, one for I/O (io.c), the journal's writer, the watchdog,
 * and the main thread, which builds everything and then waits for the end.
 */
#ifndef RV_VMM_VM_H
#define RV_VMM_VM_H

#include <ravelin/error.h>
#include <ravelin/event.h>
#include <ravelin/image.h>
#include <ravelin/journal.h>
#include <ravelin/kallsyms.h>
#include <ravelin/policy.h>
#include <ravelin/types.h>

#include "dev/dev.h"

#include <linux/kvm.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>

#define RV_MAX_VCPUS 64

/* --- how a VM ends ----------------------------------------------------- */

enum rv_end {
	RV_END_NONE = 0,
	RV_END_POWEROFF, /* the guest switched itself off */
	RV_END_REBOOT,	 /* the guest asked for a reset */
	RV_END_CRASH,	 /* triple fault, or the host's KVM gave up on a vcpu */
	RV_END_KILLED,	 /* a verdict */
	RV_END_QUIT,	 /* the operator: signal or escape key */
	RV_END_FAILED,	 /* the monitor itself */
};
const char *rv_end_name(enum rv_end end);
int rv_end_status(enum rv_end end); /* exit status of `ravelin run` */

/* --- options of `ravelin run` ------------------------------------------ */

#define RV_MAX_OPT_DEVS 8

struct rv_run_options {
	const char *kernel, *initrd, *append, *policy, *name, *journal, *console, *profile;
	uint32_t cpus;
	uint64_t memory; /* bytes */
	const char *disks[RV_MAX_OPT_DEVS], *nets[RV_MAX_OPT_DEVS], *hvcs[RV_MAX_OPT_DEVS];
	uint32_t ndisks, nnets, nhvcs;
	const char *vsock;
	bool rng;
	bool quiet;
};

/* --- guest RAM (mem.c) -------------------------------------------------- */

struct rv_ram {
	rv_gpa gpa;
	uint64_t len;
	uint64_t off; /* in the memfd */
};

struct rv_mem {
	int fd;
	uint64_t size;
	uint8_t *mon;	/* the monitor's mapping: always writable */
	uint8_t *guest; /* the mapping handed to KVM: carries the protection */
	struct rv_ram ram[2];
	uint32_t nram;
	bool punched; /* rv_mem_punch() has been here */
	/* Held for reading across a device's transfer, for writing by a commit. */
	pthread_rwlock_t prot_lock;
};

int rv_mem_init(struct rv_vm *vm, uint64_t size, struct rv_err *err) RV_MUST_CHECK;
void rv_mem_deinit(struct rv_vm *vm);

/* Monitor's pointer to [gpa, gpa+len), NULL unless all of it lies in one piece of RAM. */
uint8_t *rv_mem_ptr(struct rv_vm *vm, rv_gpa gpa, uint64_t len);
/* The same place in KVM's mapping. */
uint8_t *rv_mem_guest_ptr(struct rv_vm *vm, rv_gpa gpa, uint64_t len);
/*
 * Take whole pages out of the RAM that KVM has, so that every access there is an exit
 * (rv_arch_mmio_ram). The monitor's mapping keeps them. Before the first vcpu runs, and
 * once. A failure of KVM (RV_EOS) may leave the VM without that piece of RAM.
 */
int rv_mem_punch(struct rv_vm *vm, rv_gpa gpa, uint64_t len, struct rv_err *err) RV_MUST_CHECK;
/* First byte after RAM below 4 GiB, and after all RAM (0 where none above). */
uint64_t rv_mem_low_end(const struct rv_vm *vm);
uint64_t rv_mem_high_end(const struct rv_vm *vm);
/* Give back the page-table entries of the monitor's mapping (the data stays). */
void rv_mem_trim(struct rv_vm *vm);

/* --- what the loader found and decided (loader.c) ----------------------- */

#define RV_PLAN_SITES 48
#define RV_PLAN_PROTS 12

/*
 * Plain data in memory shared with the loader process, which reads the hostile
 * kernel file and ends before the first guest instruction: its copies of the
 * image, and the disassembler, go with it.
 */
struct rv_boot_plan {
	int rc;
	struct rv_err err;
	struct rv_image_info info;
	uint64_t phys_base;  /* gpa of flat offset 0 */
	uint64_t virt_delta; /* added to every link-time va */
	bool placed;
	char place_why[160]; /* why it was not placed */
	double place_bits_virt, place_bits_phys;
	uint64_t entry;	     /* x86: gpa of the first instruction */
	bool have_ksym;
	struct rv_kallsyms_layout ksym;
	struct rv_site sites[RV_PLAN_SITES];
	uint32_t nsites;
	struct rv_protection prots[RV_PLAN_PROTS];
	uint32_t nprots;
	struct rv_padding pad;
	bool have_btf;
	uint64_t btf_va, btf_size;
	/* link-time addresses, 0 where not known */
	uint64_t text, etext, rodata, erodata;
	uint64_t x86_return_thunk_var, x86_return_thunk_fn;
	uint64_t arm64_kaslr_total; /* arch/arm64/arm64.h, struct rv_arm64_kaslr */
	uint64_t read_us, load_us;
};

int rv_loader_run(struct rv_vm *vm, struct rv_err *err) RV_MUST_CHECK;
const struct rv_site *rv_plan_site(const struct rv_boot_plan *p, const char *name);

/* --- vcpus and parking (vcpu.c) ----------------------------------------- */

struct rv_vcpu {
	struct rv_vm *vm;
	uint32_t index;
	int fd;
	struct kvm_run *run;
	pthread_t thread;
	bool started;
	bool parked, gone;	/* under park lock */
	_Atomic uint64_t exits; /* all KVM_RUN returns */
	_Atomic bool in_guest;
	/* a fault that nothing explains, tried again; the vcpu's thread only */
	uint64_t stuck_pc, stuck_exits;
	uint32_t stuck_count;
	/* watchdog's notes; its thread only */
	uint64_t seen_exits, seen_digest;
	uint32_t still;
	bool stall_posted;
};

struct rv_park {
	pthread_mutex_t lock;
	pthread_cond_t cond;
	bool want;	    /* somebody holds the VM parked */
	pthread_t owner;
	uint32_t depth;	    /* nested by the same owner */
	uint32_t nparked;
	bool paused;	    /* verdict PAUSE: stays parked until resumed */
};

int rv_vcpus_create(struct rv_vm *vm, uint32_t n, struct rv_err *err) RV_MUST_CHECK;
int rv_vcpus_start(struct rv_vm *vm, struct rv_err *err) RV_MUST_CHECK;
void rv_vcpus_join(struct rv_vm *vm);
void rv_vcpus_destroy(struct rv_vm *vm);

/*
 * Bring every other vcpu out of KVM_RUN and keep it out. May be called from a
 * vcpu thread (which itself counts as parked) or any other; nests; while another
 * owner holds the VM the caller waits, parked. Never call it holding a lock that
 * a vcpu thread takes.
 */
void rv_park(struct rv_vm *vm);
void rv_unpark(struct rv_vm *vm);

/* Handle the exit that v->run describes. */
void rv_vcpu_exit(struct rv_vm *vm, struct rv_vcpu *v);
/* One KVM_RUN of a vcpu that is set to single-step, by its own thread, with the others
 * parked: 0, or -1 with errno as KVM_RUN left it. A request to come out is kept. */
int rv_vcpu_step(struct rv_vm *vm, struct rv_vcpu *v);

/* End the VM: the first caller's reason wins. Any thread. */
void rv_vm_end(struct rv_vm *vm, enum rv_end end, const char *fmt, ...) RV_PRINTF(3, 4);
/* PAUSE verdict: all vcpus stop at their next exit until rv_vm_resume(). */
void rv_vm_pause(struct rv_vm *vm);
void rv_vm_resume(struct rv_vm *vm);

/* --- the machine -------------------------------------------------------- */

#define RV_MAX_BUS 64
struct rv_bus_range {
	uint64_t base, len;
	const struct rv_bus_ops *ops;
	void *dev;
};
struct rv_bus {
	struct rv_bus_range r[RV_MAX_BUS]; /* sorted; fixed before the first vcpu runs */
	uint32_t n;
};
/* Both answer all-ones / ignore where nobody listens, as a real bus does. */
void rv_bus_read(const struct rv_bus *bus, uint64_t addr, uint8_t len, void *data);
void rv_bus_write(const struct rv_bus *bus, uint64_t addr, uint8_t len, const void *data);

struct rv_io;
int rv_io_start(struct rv_vm *vm, struct rv_err *err) RV_MUST_CHECK;
void rv_io_stop(struct rv_vm *vm);

struct rv_gate;	   /* enforce/gate.h */
struct rv_seal;	   /* enforce/seal.c */
struct rv_memprot; /* enforce/memprot.h */
struct rv_arch_vm; /* arch/ */

struct rv_vm {
	const struct rv_run_options *opt;
	struct rv_policy policy;
	struct rv_journal *journal;
	char name[64];
	int kvm, fd;
	size_t run_size;
	struct rv_mem mem;
	struct rv_bus mmio, pio;
	struct rv_io *io;
	struct rv_vcpu *vcpu;
	uint32_t nvcpu;
	struct rv_park park;
	_Atomic uint64_t spurious; /* faults that no region explains */
	struct rv_boot_plan *plan;
	struct rv_arch_vm *arch;
	struct rv_memprot *prot;
	struct rv_gate *gate;
	struct rv_seal *seal;
	struct rv_virtio_slot slots[RV_VIRTIO_MAX];
	uint32_t nslots;
	struct {
		void *dev;
		void (*destroy)(void *dev);
	} devs[32];
	uint32_t ndevs;
	char cmdline[4096];
	uint64_t initrd_gpa, initrd_len;
	pthread_t watchdog;
	bool watchdog_on;

	/* What the protections cost in exits: rung doorbells, faults on guarded pages. */
	_Atomic uint64_t bells, guard_faults;
	_Atomic bool sealed; /* every seal that the policy watches is armed */

	pthread_mutex_t end_lock;
	pthread_cond_t end_cond;
	enum rv_end end;
	char end_why[200];
	_Atomic bool ending;
};

/* Build, run, tear down; returns the exit status of the process. */
int rv_vm_run(const struct rv_run_options *opt, const struct rv_policy *policy);

/* Decide about an event and journal it; carries out PAUSE and KILL itself.
 * Returns the action, which the caller carries out for the instruction at hand. */
enum rv_action rv_vm_event(struct rv_vm *vm, const struct rv_event *ev);

int rv_watchdog_start(struct rv_vm *vm, struct rv_err *err) RV_MUST_CHECK;
void rv_watchdog_stop(struct rv_vm *vm);

#endif
