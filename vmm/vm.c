/* SPDX-License-Identifier: Apache-2.0 */
/* vm.c: the boot story of one VM in order, and its end. */
#include "vm.h"
#include "arch.h"
#include "caps.h"
#include "enforce/gate.h"
#include "enforce/memprot.h"
#include "enforce/seal.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* --- how it ends ------------------------------------------------------------ */

static const struct {
	const char *name;
	int status;
} ends[] = {
	[RV_END_NONE] = {"running", 1},	   [RV_END_POWEROFF] = {"power-off", 0},
	[RV_END_REBOOT] = {"reboot", 10},  [RV_END_CRASH] = {"crash", 11},
	[RV_END_KILLED] = {"killed", 12},  [RV_END_QUIT] = {"quit", 13},
	[RV_END_FAILED] = {"failed", 1},
};

const char *rv_end_name(enum rv_end end)
{
	return ends[end].name;
}

int rv_end_status(enum rv_end end)
{
	return ends[end].status;
}

/* --- events ------------------------------------------------------------------- */

enum rv_action rv_vm_event(struct rv_vm *vm, const struct rv_event *ev)
{
	struct rv_verdict v;
	uint64_t seq;

	rv_policy_decide(&vm->policy, ev, &v);
	seq = rv_journal_post(vm->journal, ev, &v);
	if (v.action == RV_ACT_PAUSE)
		rv_vm_pause(vm);
	else if (v.action == RV_ACT_KILL)
		rv_vm_end(vm, RV_END_KILLED, "%s, journal line %llu (rule %s)", ev->object,
			  (unsigned long long)seq, v.rule);
	return (enum rv_action)v.action;
}

static void event(struct rv_vm *vm, uint32_t kind, const char *engine, const char *object,
		  uint64_t target, uint64_t gpa, uint64_t value, const char *fmt, ...)
	RV_PRINTF(8, 9);

static void event(struct rv_vm *vm, uint32_t kind, const char *engine, const char *object,
		  uint64_t target, uint64_t gpa, uint64_t value, const char *fmt, ...)
{
	struct rv_event ev = {.version = RV_EVENT_VERSION, .kind = kind, .vcpu = -1};
	va_list ap;

	ev.target = target;
	ev.gpa = gpa;
	ev.value = value;
	snprintf(ev.engine, sizeof(ev.engine), "%s", engine);
	snprintf(ev.object, sizeof(ev.object), "%s", object);
	va_start(ap, fmt);
	vsnprintf(ev.detail, sizeof(ev.detail), fmt, ap);
	va_end(ap);
	(void)rv_vm_event(vm, &ev);
}

void rv_dev_guest_bad(struct rv_vm *vm, const char *who, const char *fmt, ...)
{
	struct rv_event ev = {.version = RV_EVENT_VERSION, .kind = RV_EV_GUEST_BAD, .vcpu = -1};
	va_list ap;

	ev.gpa = ~0ull;
	snprintf(ev.engine, sizeof(ev.engine), "dev");
	snprintf(ev.object, sizeof(ev.object), "%s", who);
	va_start(ap, fmt);
	vsnprintf(ev.detail, sizeof(ev.detail), fmt, ap);
	va_end(ap);
	(void)rv_vm_event(vm, &ev);
}

/* --- building ------------------------------------------------------------------- */

static int open_kvm(struct rv_vm *vm, struct rv_err *err)
{
	struct rv_caps caps;
	int rc;

	vm->kvm = open("/dev/kvm", O_RDWR | O_CLOEXEC);
	if (vm->kvm < 0) {
		const char *hint = errno == ENOENT   ? " (is the kvm module loaded?)"
				   : errno == EACCES ? " (is this user in the group kvm?)"
						     : "";

		return rv_err_os(err, "kvm", "open /dev/kvm%s", hint);
	}
	rc = rv_caps_probe(vm->kvm, &caps, err);
	if (!rc)
		rc = rv_caps_require(&caps, err);
	if (rc)
		return rc;
	vm->fd = ioctl(vm->kvm, KVM_CREATE_VM, rv_arch_vm_type(vm->kvm, vm->opt->memory));
	if (vm->fd < 0)
		return rv_err_os(err, "kvm", "create a VM");
	return 0;
}

int rv_vm_add_device(struct rv_vm *vm, void *dev, void (*destroy)(void *dev), struct rv_err *err)
{
	if (vm->ndevs == sizeof(vm->devs) / sizeof(vm->devs[0]))
		return rv_err_set(err, RV_EBUDGET, "vm", "more than %u devices", vm->ndevs);
	vm->devs[vm->ndevs].dev = dev;
	vm->devs[vm->ndevs].destroy = destroy;
	vm->ndevs++;
	return 0;
}

int rv_virtio_slot_next(struct rv_vm *vm, const char *kind, struct rv_virtio_slot *out,
			struct rv_err *err)
{
	uint32_t same = 0;

	if (vm->nslots == RV_VIRTIO_MAX)
		return rv_err_set(err, RV_EBUDGET, "vm", "more than %u virtio devices",
				  RV_VIRTIO_MAX);
	for (uint32_t i = 0; i < vm->nslots; i++)
		same += !strncmp(vm->slots[i].name, kind, strlen(kind));
	rv_arch_virtio_slot(vm->nslots, out);
	out->index = vm->nslots;
	snprintf(out->name, sizeof(out->name), "%.18s%u", kind, same);
	vm->slots[vm->nslots++] = *out;
	return 0;
}

static int create_devices(struct rv_vm *vm, struct rv_err *err)
{
	const struct rv_run_options *o = vm->opt;
	struct rv_chardev *console;
	int rc;

	rc = rv_chardev_open(vm, o->console ? o->console : "stdio", &console, err);
	if (!rc)
		rc = rv_arch_devices(vm, console, err);
	for (uint32_t i = 0; !rc && i < o->ndisks; i++)
		rc = rv_virtio_blk_create(vm, o->disks[i], err);
	for (uint32_t i = 0; !rc && i < o->nnets; i++)
		rc = rv_virtio_net_create(vm, o->nets[i], err);
	for (uint32_t i = 0; !rc && i < o->nhvcs; i++)
		rc = rv_virtio_console_create(vm, o->hvcs[i], err);
	if (!rc && o->vsock)
		rc = rv_virtio_vsock_create(vm, o->vsock, err);
	if (!rc && o->rng)
		rc = rv_virtio_rng_create(vm, err);
	return rc;
}

/* Read all of fd into dst; the file may be shorter or longer than it said. */
static int read_full(int fd, uint8_t *dst, uint64_t len)
{
	while (len) {
		ssize_t n = read(fd, dst, len > (1u << 30) ? (1u << 30) : len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return RV_ESOURCE;
		dst += n;
		len -= (uint64_t)n;
	}
	return 0;
}

/*
 * The initrd goes to the top of low RAM before the kernel is placed, so that the
 * kernel's windows are known. Its place is no secret worth an entropy account.
 */
static int load_initrd(struct rv_vm *vm, struct rv_err *err)
{
	uint64_t top = rv_mem_low_end(vm), gpa;
	struct stat st;
	int fd, rc;

	if (!vm->opt->initrd)
		return 0;
	fd = open(vm->opt->initrd, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st)) {
		rc = rv_err_os(err, "initrd", "open %s", vm->opt->initrd);
		goto out;
	}
	rc = RV_EINVAL;
	if (!S_ISREG(st.st_mode) || st.st_size == 0) {
		rv_err_set(err, rc, "initrd", "%s: expected a file that is not empty",
			   vm->opt->initrd);
		goto out;
	}
	if (top > 0x7fffffffull)
		top = 0x80000000ull; /* initrd_addr_max of every x86_64 kernel; the loader checks */
	vm->initrd_len = (uint64_t)st.st_size;
	if (vm->initrd_len > top - vm->mem.ram[0].gpa.v - (16u << 20)) {
		rv_err_set(err, rc, "initrd", "%s: %llu MiB do not fit in %llu MiB of RAM",
			   vm->opt->initrd, (unsigned long long)(vm->initrd_len >> 20),
			   (unsigned long long)(vm->mem.size >> 20));
		goto out;
	}
	gpa = (top - vm->initrd_len) & ~0xfffull;
	rc = read_full(fd, rv_mem_ptr(vm, rv_gpa_of(gpa), vm->initrd_len), vm->initrd_len);
	if (rc)
		rv_err_os(err, "initrd", "read %s", vm->opt->initrd);
	vm->initrd_gpa = gpa;
out:
	if (fd >= 0)
		close(fd);
	return rc;
}

static void journal_start(struct rv_vm *vm)
{
	static const char hex[] = "0123456789abcdef";
	const struct rv_boot_plan *p = vm->plan;
	char digest[17], release[sizeof(p->info.banner)];

	for (int i = 0; i < 8; i++) {
		digest[2 * i] = hex[vm->policy.digest[i] >> 4];
		digest[2 * i + 1] = hex[vm->policy.digest[i] & 15];
	}
	digest[16] = 0;
	/* "Linux version 6.1.0-57-cloud-amd64 (who built it) ...": the third word ends it. */
	snprintf(release, sizeof(release), "%s", p->info.banner[0] ? p->info.banner : "no banner");
	if (strstr(release, " ("))
		*strstr(release, " (") = 0;
	event(vm, RV_EV_START, "vm", "vm", 0, ~0ull, 0,
	      "ravelin " RV_VERSION ", policy %s %s, %u vcpus, %llu MiB, %.60s",
	      rv_profile_name(vm->policy.profile), digest, vm->nvcpu,
	      (unsigned long long)(vm->mem.size >> 20), release);
	if (p->placed)
		event(vm, RV_EV_PLACEMENT, "placement", "kernel base",
		      p->info.link_base + p->virt_delta, p->phys_base,
		      (uint64_t)(p->place_bits_virt + 0.5),
		      "virtual %.2f bits, physical %.2f bits, drawn independently",
		      p->place_bits_virt, p->place_bits_phys);
	else
		event(vm,
		      vm->policy.placement_base == RV_PLACE_OFF ? RV_EV_PLACEMENT : RV_EV_DEGRADE,
		      "placement", "kernel base", p->info.link_base, p->phys_base, 0,
		      "not placed: %.150s", p->place_why);
}

/* Arm what the policy asks for, or say what is lost; refuse where it is required. */
static int arm(struct rv_vm *vm, struct rv_err *err)
{
	bool want = vm->policy.seal_text || vm->policy.seal_rodata;
	struct rv_err why = {0};
	char buf[260];
	int rc;

	if (!want)
		return 0;
	/* The gate is code of ours in the guest: unguarded, it would be a way in. */
	if (!vm->policy.seal_gate)
		return rv_err_set(err, RV_EREFUSED, "seal",
				  "seal.gate.watch is off while text or rodata is watched");
	rc = rv_seal_prepare(vm, &why);
	if (!rc)
		return 0;
	if (vm->policy.seal_require) {
		*err = why;
		return RV_EREFUSED;
	}
	event(vm, RV_EV_DEGRADE, "seal", "text", 0, ~0ull, 0, "not sealed: %.170s",
	      rv_err_str(&why, buf, sizeof(buf)));
	return 0;
}

static int build(struct rv_vm *vm, struct rv_err *err)
{
	int rc;

	rc = open_kvm(vm, err);
	if (!rc)
		rc = rv_arch_vm_init(vm, err);
	if (!rc)
		rc = rv_mem_init(vm, vm->opt->memory, err);
	if (!rc) {
		vm->prot = rv_memprot_create(vm);
		rc = vm->prot ? 0 : rv_err_set(err, RV_ENOMEM, "vm", "protection map");
	}
	if (!rc)
		rc = load_initrd(vm, err);
	/* The loader forks: nothing that must not be shared exists yet. */
	if (!rc)
		rc = rv_loader_run(vm, err);
	if (!rc)
		rc = rv_journal_open(vm->opt->journal, vm->name, vm->policy.journal_queue,
				     vm->policy.journal_coalesce, &vm->journal, err);
	if (!rc)
		rc = rv_vcpus_create(vm, vm->opt->cpus, err);
	if (!rc)
		rc = create_devices(vm, err);
	if (!rc)
		rc = rv_arch_boot_setup(vm, err);
	if (rc)
		return rc;
	journal_start(vm);
	rc = arm(vm, err);
	if (!rc)
		rv_mem_trim(vm);
	return rc;
}

/* --- running ----------------------------------------------------------------------- */

static void on_signal(void *arg, int fd, uint32_t events)
{
	struct rv_vm *vm = arg;
	struct signalfd_siginfo si;

	(void)events;
	if (read(fd, &si, sizeof(si)) == sizeof(si))
		rv_vm_end(vm, RV_END_QUIT, "signal %u", si.ssi_signo);
}

static int catch_signals(struct rv_vm *vm, struct rv_err *err)
{
	sigset_t set;
	int fd;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd < 0)
		return rv_err_os(err, "vm", "watch for signals");
	return rv_io_add(vm, fd, 1 /* EPOLLIN */, on_signal, vm, err);
}

/* Before any thread exists, so that all inherit it: signals go to the signalfd, the
 * kick only to vcpu threads, and a peer that closes its socket is an error code. */
static void mask_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
}

/* Wait for the end, or for so many seconds (0: no limit); true: the time is over. */
static bool wait_end(struct rv_vm *vm, uint32_t seconds)
{
	struct timespec until;
	int rc = 0;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += seconds;
	pthread_mutex_lock(&vm->end_lock);
	while (!vm->ending && rc != ETIMEDOUT)
		rc = seconds ? pthread_cond_timedwait(&vm->end_cond, &vm->end_lock, &until)
			     : pthread_cond_wait(&vm->end_cond, &vm->end_lock);
	pthread_mutex_unlock(&vm->end_lock);
	return rc == ETIMEDOUT && !vm->ending;
}

static int go(struct rv_vm *vm, struct rv_err *err)
{
	int rc = catch_signals(vm, err);

	if (!rc)
		rc = rv_io_start(vm, err);
	if (!rc)
		rc = rv_watchdog_start(vm, err);
	if (!rc)
		rc = rv_vcpus_start(vm, err);
	if (rc) {
		rv_vm_end(vm, RV_END_FAILED, "start");
		return rc;
	}
	if (wait_end(vm, vm->seal ? vm->policy.seal_deadline : 0)) {
		if (!vm->sealed)
			event(vm, RV_EV_DEGRADE, "seal", "text", 0, ~0ull, vm->policy.seal_deadline,
			      "not sealed: the guest has not made its text read-only in %u s",
			      vm->policy.seal_deadline);
		(void)wait_end(vm, 0);
	}
	return 0;
}

static void tear_down(struct rv_vm *vm)
{
	rv_watchdog_stop(vm);
	rv_io_stop(vm);
	while (vm->ndevs) {
		vm->ndevs--;
		vm->devs[vm->ndevs].destroy(vm->devs[vm->ndevs].dev);
	}
	rv_seal_destroy(vm);
	rv_journal_close(vm->journal);
	rv_vcpus_destroy(vm);
	rv_memprot_destroy(vm->prot);
	rv_arch_vm_deinit(vm);
	if (vm->fd > 0)
		close(vm->fd);
	if (vm->kvm > 0)
		close(vm->kvm);
	rv_mem_deinit(vm);
	if (vm->plan)
		munmap(vm->plan, sizeof(*vm->plan));
}

/* The last line of a VM in the journal carries what the protections cost in exits. */
static void stop_event(struct rv_vm *vm, const char *failure)
{
	uint64_t exits = 0;

	if (failure) {
		event(vm, RV_EV_STOP, "vm", "vm", 0, ~0ull, 0, "not started: %.150s", failure);
		return;
	}
	for (uint32_t i = 0; i < vm->nvcpu; i++)
		exits += vm->vcpu[i].exits;
	event(vm, RV_EV_STOP, "vm", "vm", 0, ~0ull, exits,
	      "%s: %.90s; %llu exits, of them %llu doorbells and %llu guarded writes",
	      rv_end_name(vm->end), vm->end_why, (unsigned long long)exits,
	      (unsigned long long)vm->bells, (unsigned long long)vm->guard_faults);
}

int rv_vm_run(const struct rv_run_options *opt, const struct rv_policy *policy)
{
	struct rv_vm *vm = calloc(1, sizeof(*vm));
	struct rv_err err = {0};
	pthread_condattr_t attr;
	char buf[300];
	int rc, status;

	if (!vm) {
		fprintf(stderr, "ravelin: out of memory\n");
		return 1;
	}
	vm->opt = opt;
	vm->policy = *policy;
	vm->kvm = vm->fd = -1;
	vm->mem.fd = -1;
	snprintf(vm->name, sizeof(vm->name), "%s",
		 opt->name ? opt->name : policy->name[0] ? policy->name : "vm");
	snprintf(vm->cmdline, sizeof(vm->cmdline), "%s%s", opt->append ? opt->append : "",
		 rv_arch_append(opt->append));
	pthread_mutex_init(&vm->end_lock, NULL);
	/* Waits on it must not stretch when somebody sets the clock. */
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&vm->end_cond, &attr);
	pthread_mutex_init(&vm->park.lock, NULL);
	pthread_cond_init(&vm->park.cond, NULL);
	mask_signals();
	rc = build(vm, &err);
	if (!rc)
		rc = go(vm, &err);
	/* The counters are whole only when no vcpu runs any more. */
	rv_vcpus_join(vm);
	if (rc) {
		fprintf(stderr, "ravelin: %s\n", rv_err_str(&err, buf, sizeof(buf)));
		status = 1;
	} else {
		status = rv_end_status(vm->end);
	}
	if (vm->journal)
		stop_event(vm, rc ? rv_err_str(&err, buf, sizeof(buf)) : NULL);
	if (!rc && !opt->quiet)
		fprintf(stderr, "ravelin: %s: %s (%s)\n", vm->name, rv_end_name(vm->end),
			vm->end_why);
	tear_down(vm);
	free(vm);
	return status;
}
