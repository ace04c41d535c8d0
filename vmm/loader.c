/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loader.c: read the kernel file in a process of its own, choose where the kernel
 * goes, and put it there.
 *
 * The file is hostile input and its readers are large (four decompressors, a
 * disassembler). They run in a child with nothing but guest RAM and one shared
 * result; its memory is gone before the guest starts. The result is plain data and
 * is checked again by the parent before use.
 */
#include "vm.h"
#include "arch.h"
#include "disasm.h"
#include "place.h"
#include "sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MIB (1ull << 20)
/* Reading a kernel is a matter of seconds, of tens of them under emulation. */
#define CHILD_CPU_SECONDS 300u

static uint64_t now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000u + (uint64_t)t.tv_nsec / 1000u;
}

const struct rv_site *rv_plan_site(const struct rv_boot_plan *p, const char *name)
{
	for (uint32_t i = 0; i < p->nsites && i < RV_PLAN_SITES; i++)
		if (!strcmp(p->sites[i].name, name))
			return &p->sites[i];
	return NULL;
}

/* Does "word" stand in the command line as a whole parameter? */
static bool cmdline_has(const char *cmdline, const char *word)
{
	size_t n = strlen(word);

	for (const char *s = cmdline; (s = strstr(s, word)); s += n)
		if ((s == cmdline || s[-1] == ' ') && (s[n] == 0 || s[n] == ' '))
			return true;
	return false;
}

/* --- placement ---------------------------------------------------------------- */

static int place(struct rv_vm *vm, struct rv_boot_plan *p, const struct rv_arch_place *pl)
{
	const struct rv_image_info *info = &p->info;
	uint64_t need = info->init_size > info->mem_size ? info->init_size : info->mem_size;
	bool nokaslr = cmdline_has(vm->cmdline, "nokaslr");
	struct rv_windows w = {.n = 0};
	uint64_t total;

	rv_windows_add(&w, pl->phys_min, rv_mem_low_end(vm), vm->initrd_gpa, vm->initrd_len, need,
		       pl->phys_align);
	if (rv_mem_high_end(vm))
		rv_windows_add(&w, vm->mem.ram[1].gpa.v, rv_mem_high_end(vm), vm->initrd_gpa,
			       vm->initrd_len, need, pl->phys_align);
	total = rv_windows_total(&w);
	if (!total)
		return rv_err_set(&p->err, RV_EINVAL, "loader",
				  "the kernel needs %llu MiB of RAM above %llu MiB beside the "
				  "initrd; the VM has %llu MiB",
				  (unsigned long long)(need / MIB + 1),
				  (unsigned long long)(pl->phys_min / MIB),
				  (unsigned long long)(vm->mem.size / MIB));
	p->phys_base = rv_windows_has(&w, info->phys_base, pl->phys_align) ? info->phys_base
									   : w.w[0].first;
	if (vm->policy.placement_base == RV_PLACE_OFF)
		snprintf(p->place_why, sizeof(p->place_why), "policy: placement.base is off");
	else if (nokaslr)
		snprintf(p->place_why, sizeof(p->place_why), "nokaslr on the command line");
	else if (pl->why[0])
		snprintf(p->place_why, sizeof(p->place_why), "%s", pl->why);
	else if (!info->has_relocs)
		snprintf(p->place_why, sizeof(p->place_why),
			 "the image carries no relocations (a bzImage does)");
	else if (pl->virt_slots < 2)
		snprintf(p->place_why, sizeof(p->place_why), "the image fills its whole range");
	if (p->place_why[0]) {
		if (vm->policy.placement_base == RV_PLACE_RANDOM)
			return rv_err_set(&p->err, RV_EREFUSED, "loader",
					  "placement.base is required and impossible: %s",
					  p->place_why);
		return 0;
	}
	p->phys_base = rv_windows_draw(&w, pl->phys_align);
	p->place_bits_phys = rv_log2(total);
	p->virt_delta = pl->virt_first + rv_random_below(pl->virt_slots) * pl->virt_align;
	p->place_bits_virt = rv_log2(pl->virt_slots);
	p->placed = true;
	return 0;
}

/* --- the child ------------------------------------------------------------------ */

/* The addresses that the engines need, in one pass over the table. */
static void copy_symbols(struct rv_boot_plan *p, const struct rv_kallsyms *k)
{
	struct rv_symbol_want w[] = {
		{.name = "x86_return_thunk"},
		{.name = "__x86_return_thunk"},
	};

	if (rv_kallsyms_resolve(k, w, sizeof(w) / sizeof(w[0]), NULL))
		return;
	p->x86_return_thunk_var = w[0].va;
	p->x86_return_thunk_fn = w[1].va;
}

static void copy_range(const struct rv_image *img, const char *name, uint64_t *from, uint64_t *to)
{
	const struct rv_range *r = rv_image_range(img, name);

	if (r && r->found) {
		*from = r->va;
		*to = r->va + r->size;
	}
}

static void copy_facts(struct rv_boot_plan *p, const struct rv_image *img)
{
	const struct rv_protection *prot;
	const struct rv_padding *pad = rv_image_padding(img);
	const struct rv_site *site;
	size_t n;

	n = rv_image_sites(img, &site);
	p->nsites = n > RV_PLAN_SITES ? RV_PLAN_SITES : (uint32_t)n;
	memcpy(p->sites, site, p->nsites * sizeof(*site));
	n = rv_image_protections(img, &prot);
	p->nprots = n > RV_PLAN_PROTS ? RV_PLAN_PROTS : (uint32_t)n;
	memcpy(p->prots, prot, p->nprots * sizeof(*prot));
	if (pad)
		p->pad = *pad;
	if (rv_image_kallsyms(img)) {
		p->have_ksym = true;
		p->ksym = rv_image_kallsyms(img)->lay;
		copy_symbols(p, rv_image_kallsyms(img));
	}
	copy_range(img, "text", &p->text, &p->etext);
	copy_range(img, "rodata", &p->rodata, &p->erodata);
	p->have_btf = rv_image_btf(img, &p->btf_va, &p->btf_size);
}

static int load(struct rv_vm *vm, struct rv_boot_plan *p, int fd)
{
	uint64_t t0 = now_us();
	struct rv_arch_place pl = {0};
	struct rv_image *img;
	uint8_t *dst;
	int rc;

	rc = rv_image_open_fd(fd, &img, &p->err);
	if (rc)
		return rc;
	rc = rv_arch_image_check(img, &p->err);
	if (rc)
		return rc;
	p->info = *rv_image_info(img);
	p->read_us = now_us() - t0;
	if (p->info.cmdline_size && strlen(vm->cmdline) > p->info.cmdline_size)
		return rv_err_set(&p->err, RV_EINVAL, "loader",
				  "the command line has %zu characters, this kernel takes %u",
				  strlen(vm->cmdline), p->info.cmdline_size);
	rv_arch_image_place(vm, img, &pl);
	rc = place(vm, p, &pl);
	if (rc)
		return rc;
	dst = rv_mem_ptr(vm, rv_gpa_of(p->phys_base), p->info.mem_size);
	if (!dst)
		return rv_err_at(&p->err, RV_EINVAL, p->phys_base, "loader",
				 "the kernel does not fit");
	rc = rv_image_load(img, dst, p->info.mem_size, &p->err);
	if (!rc && p->virt_delta && !pl.self_relocating)
		rc = rv_image_relocate(img, dst, p->info.mem_size, p->virt_delta, &p->err);
	if (rc)
		return rc;
	copy_facts(p, img);
	p->load_us = now_us() - t0;
	return 0;
}

static int check_plan(struct rv_vm *vm, struct rv_boot_plan *p, struct rv_err *err)
{
	/* A child that was taken over by its input may have written anything here. */
	p->err.where[sizeof(p->err.where) - 1] = 0;
	p->err.what[sizeof(p->err.what) - 1] = 0;
	p->place_why[sizeof(p->place_why) - 1] = 0;
	p->info.banner[sizeof(p->info.banner) - 1] = 0;
	if (p->nsites > RV_PLAN_SITES || p->nprots > RV_PLAN_PROTS)
		return rv_err_set(err, RV_EBADDATA, "loader", "the loader's answer has no sense");
	for (uint32_t i = 0; i < p->nsites; i++) {
		p->sites[i].name[sizeof(p->sites[i].name) - 1] = 0;
		p->sites[i].symbol[sizeof(p->sites[i].symbol) - 1] = 0;
		p->sites[i].reason[sizeof(p->sites[i].reason) - 1] = 0;
	}
	for (uint32_t i = 0; i < p->nprots; i++) {
		p->prots[i].name[sizeof(p->prots[i].name) - 1] = 0;
		p->prots[i].reason[sizeof(p->prots[i].reason) - 1] = 0;
		p->prots[i].site[sizeof(p->prots[i].site) - 1] = 0;
	}
	for (uint32_t i = 0; i < p->nsites; i++)
		if (p->sites[i].len > sizeof(p->sites[i].bytes))
			return rv_err_set(err, RV_EBADDATA, "loader",
					  "the loader's answer has no sense");
	/* Negated, so that a NaN fails too. */
	if (!(p->place_bits_virt >= 0 && p->place_bits_virt < 64) ||
	    !(p->place_bits_phys >= 0 && p->place_bits_phys < 64) || (!p->rc && !p->info.mem_size))
		return rv_err_set(err, RV_EBADDATA, "loader", "the loader's answer has no sense");
	if (!p->rc && !rv_mem_ptr(vm, rv_gpa_of(p->phys_base), p->info.mem_size))
		return rv_err_set(err, RV_EBADDATA, "loader", "the loader's answer has no sense");
	return 0;
}

/*
 * A file that makes its reader run for ever must not outlive the operator's patience: the
 * child can be interrupted (the parent's signals wait for its signalfd), ends with its
 * parent, and has only so much time of a CPU.
 */
static void child_limits(void)
{
	struct rlimit cpu = {.rlim_cur = CHILD_CPU_SECONDS, .rlim_max = CHILD_CPU_SECONDS};
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)setrlimit(RLIMIT_CPU, &cpu);
}

/*
 * Everything that must be opened is opened first: from then on the process has the kernel
 * file, guest RAM and the plan, and no way to get at anything else.
 */
static void child(struct rv_vm *vm, struct rv_boot_plan *p)
{
	int fd = open(vm->opt->kernel, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0) {
		p->rc = rv_err_os(&p->err, "image", "open %s", vm->opt->kernel);
		return;
	}
	/* The disassembler is a shared object; without it the image still loads, and the
	 * places it would have found are reported as missing. */
	(void)rv_insn_ready(NULL);
	if (fd > 3)
		close_range(3, (unsigned)fd - 1, 0);
	close_range((unsigned)fd + 1, ~0u, 0);
	p->rc = rv_sandbox_loader(&p->err);
	if (!p->rc)
		p->rc = load(vm, p, fd);
}

int rv_loader_run(struct rv_vm *vm, struct rv_err *err)
{
	struct rv_boot_plan *p;
	int st, rc;
	pid_t pid;

	p = mmap(NULL, sizeof(*p), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		return rv_err_os(err, "loader", "allocate the result");
	vm->plan = p;
	p->rc = RV_EBADDATA; /* until the child has said otherwise */
	pid = fork();
	if (pid < 0)
		return rv_err_os(err, "loader", "start the loader process");
	if (!pid) {
		child_limits();
		signal(SIGINT, SIG_DFL);
		signal(SIGTERM, SIG_DFL);
		child(vm, p);
		_exit(0);
	}
	while (waitpid(pid, &st, 0) < 0)
		if (errno != EINTR)
			return rv_err_os(err, "loader", "wait for the loader process");
	if (!WIFEXITED(st) || WEXITSTATUS(st))
		return rv_err_set(err, RV_EBADDATA, "loader",
				  "%s: reading it killed the loader (%s %d)", vm->opt->kernel,
				  WIFSIGNALED(st) ? "signal" : "status",
				  WIFSIGNALED(st) ? WTERMSIG(st) : WEXITSTATUS(st));
	rc = check_plan(vm, p, err);
	if (rc)
		return rc;
	if (p->rc && err)
		*err = p->err;
	return p->rc;
}
