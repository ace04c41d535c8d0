/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_run.c: the options of `ravelin run`. */
#include "cmd.h"
#include "vm.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MIB	   (1ull << 20)
#define MIN_MEMORY (64 * MIB) /* a stock kernel alone takes some 55 MiB */

static const char help[] =
	"usage: ravelin run --kernel FILE [OPTIONS]\n"
	"\n"
	"Starts an unmodified Linux guest. The kernel is placed at random addresses, its\n"
	"text and read-only data are sealed once it has finished patching itself, and every\n"
	"attempt to change them is answered as the policy says and written to the journal.\n"
	"\n"
	"  --kernel FILE      bzImage or vmlinux (ravelin image FILE tells what it can carry)\n"
	"  --initrd FILE      initial RAM disk\n"
	"  --append STRING    kernel command line (default: console=ttyS0 panic=-1); pci=off\n"
	"                     is added, since there is no PCI bus\n"
	"  --policy FILE      policy of this VM, or a profile: observe, balanced, strict\n"
	"                     (default: balanced)\n"
	"  --cpus N           1 to 64 (default 1)\n"
	"  --memory SIZE      e.g. 512M, 4G (default 512M)\n"
	"  --disk FILE[,ro]   a raw image as /dev/vda, /dev/vdb, ... (may be repeated)\n"
	"  --net SPEC         tap:IFNAME, or user (through passt), or unix:SOCKET;\n"
	"                     [,mac=xx:xx:xx:xx:xx:xx] (may be repeated)\n"
	"  --vsock SPEC       cid=N,path=SOCKET\n"
	"  --console SPEC     stdio (default), file:PATH, pty, unix:PATH, null\n"
	"  --hvc SPEC         a virtio console beside it, same forms (may be repeated)\n"
	"  --no-rng           leave out the virtio entropy device\n"
	"  --name NAME        name in the journal (default: the policy's, else \"vm\")\n"
	"  --journal FILE     append events there (default: they are only counted)\n"
	"  --quiet            no closing line\n"
	"\n"
	"On the terminal, Ctrl-A x ends the guest.\n"
	"\n"
	"Exit status: 0 the guest powered off; 10 it asked for a reboot; 11 it crashed;\n"
	"12 the policy ended it; 13 the operator did; 1 it could not be started; 2 usage.\n"
	"\n"
	"Examples:\n"
	"  ravelin run --kernel vmlinuz --initrd initrd.img --append 'console=ttyS0 root=/dev/vda'\n"
	"              --disk root.raw --cpus 2 --memory 1G --policy web1.yaml --journal web1.jsonl\n"
	"  ravelin run --kernel vmlinuz --policy observe --journal trial.jsonl   # stop nothing\n";

enum {
	O_KERNEL = 256, O_INITRD, O_APPEND, O_POLICY, O_CPUS, O_MEMORY, O_DISK, O_NET,
	O_VSOCK, O_CONSOLE, O_HVC, O_NORNG, O_NAME, O_JOURNAL, O_QUIET, O_HELP,
};

static const struct option options[] = {
	{"kernel", required_argument, NULL, O_KERNEL},
	{"initrd", required_argument, NULL, O_INITRD},
	{"append", required_argument, NULL, O_APPEND},
	{"policy", required_argument, NULL, O_POLICY},
	{"cpus", required_argument, NULL, O_CPUS},
	{"memory", required_argument, NULL, O_MEMORY},
	{"disk", required_argument, NULL, O_DISK},
	{"net", required_argument, NULL, O_NET},
	{"vsock", required_argument, NULL, O_VSOCK},
	{"console", required_argument, NULL, O_CONSOLE},
	{"hvc", required_argument, NULL, O_HVC},
	{"no-rng", no_argument, NULL, O_NORNG},
	{"name", required_argument, NULL, O_NAME},
	{"journal", required_argument, NULL, O_JOURNAL},
	{"quiet", no_argument, NULL, O_QUIET},
	{"help", no_argument, NULL, O_HELP},
	{NULL, 0, NULL, 0},
};

static int bad(const char *opt, const char *val, const char *expected)
{
	fprintf(stderr, "ravelin run: --%s %s: expected %s\n", opt, val, expected);
	return 2;
}

static bool parse_size(const char *s, uint64_t *out)
{
	char *end;
	unsigned long long v;
	unsigned shift = 20; /* a bare number is MiB, as with other monitors */

	errno = 0;
	v = strtoull(s, &end, 10);
	if (errno || end == s || *s == '-')
		return false;
	switch (*end) {
	case 0: break;
	case 'M': case 'm': end++; break;
	case 'G': case 'g': shift = 30; end++; break;
	case 'K': case 'k': shift = 10; end++; break;
	default: return false;
	}
	if (*end || v > UINT64_MAX >> shift)
		return false;
	*out = v << shift;
	return *out % 4096 == 0;
}

static int add(const char **list, uint32_t *n, const char *opt, const char *val)
{
	if (*n == RV_MAX_OPT_DEVS)
		return bad(opt, val, "at most 8 of this kind");
	list[(*n)++] = val;
	return 0;
}

static int one(int c, struct rv_run_options *o)
{
	char *end;

	switch (c) {
	case O_KERNEL: o->kernel = optarg; return 0;
	case O_INITRD: o->initrd = optarg; return 0;
	case O_APPEND:
		o->append = optarg;
		return strlen(optarg) < 4000 ? 0 : bad("append", "...", "at most 4000 characters");
	case O_POLICY: o->policy = optarg; return 0;
	case O_CPUS:
		o->cpus = (uint32_t)strtoul(optarg, &end, 10);
		return !*end && end != optarg && o->cpus >= 1 && o->cpus <= RV_MAX_VCPUS
			       ? 0
			       : bad("cpus", optarg, "a number from 1 to 64");
	case O_MEMORY:
		return parse_size(optarg, &o->memory) && o->memory >= MIN_MEMORY
			       ? 0
			       : bad("memory", optarg, "at least 64M, e.g. 512M or 4G");
	case O_DISK: return add(o->disks, &o->ndisks, "disk", optarg);
	case O_NET: return add(o->nets, &o->nnets, "net", optarg);
	case O_HVC: return add(o->hvcs, &o->nhvcs, "hvc", optarg);
	case O_VSOCK: o->vsock = optarg; return 0;
	case O_CONSOLE: o->console = optarg; return 0;
	case O_NORNG: o->rng = false; return 0;
	case O_NAME: o->name = optarg; return 0;
	case O_JOURNAL: o->journal = optarg; return 0;
	case O_QUIET: o->quiet = true; return 0;
	default: return 2; /* getopt has said why */
	}
}

static void print_problem(void *arg, const char *line)
{
	(void)arg;
	fprintf(stderr, "ravelin: %s\n", line);
}

static int load_policy(const char *what, struct rv_policy *out, struct rv_err *err)
{
	if (!what)
		return rv_policy_profile("balanced", out, err);
	/* A file of that name wins over a profile. */
	if (access(what, F_OK) && !rv_policy_profile(what, out, NULL))
		return 0;
	return rv_policy_load(what, out, print_problem, NULL, err);
}

int rv_cmd_run(int argc, char **argv)
{
	struct rv_run_options o = {.cpus = 1, .memory = 512 * MIB, .rng = true};
	struct rv_policy policy;
	struct rv_err err = {0};
	char buf[300];
	int c, rc;

	optind = 1;
	while ((c = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		if (c == O_HELP || c == 'h') {
			fputs(help, stdout);
			return 0;
		}
		rc = one(c, &o);
		if (rc)
			return rc;
	}
	if (optind < argc)
		return bad("kernel", argv[optind], "options only; this word belongs to none");
	if (!o.kernel) {
		fputs("ravelin run: --kernel FILE is needed (ravelin run --help)\n", stderr);
		return 2;
	}
	if (!o.append)
		o.append = "console=ttyS0 panic=-1";
	rc = load_policy(o.policy, &policy, &err);
	if (rc) {
		fprintf(stderr, "ravelin: policy: %s\n", rv_err_str(&err, buf, sizeof(buf)));
		return 1;
	}
	return rv_vm_run(&o, &policy);
}
