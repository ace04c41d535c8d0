/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rvx_bpf.c: BPF programs by raw system calls. Loading one makes the kernel write
 * machine code (the JIT); attaching one to a function by fentry builds a
 * trampoline and redirects the function's first bytes.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/btf.h>
#include <linux/perf_event.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "rvx.h"

#ifdef __aarch64__
#define GETPPID "__arm64_sys_getppid"
#else
#define GETPPID "__x64_sys_getppid"
#endif

static char verifier[4096];

static int bpf(int cmd, union bpf_attr *attr)
{
	return (int)syscall(SYS_bpf, cmd, attr, sizeof(*attr));
}

static int make_map(void)
{
	union bpf_attr a;

	memset(&a, 0, sizeof(a));
	a.map_type = BPF_MAP_TYPE_ARRAY;
	a.key_size = 4;
	a.value_size = 8;
	a.max_entries = 1;
	return bpf(BPF_MAP_CREATE, &a);
}

static uint64_t map_value(int map)
{
	union bpf_attr a;
	uint32_t key = 0;
	uint64_t value = 0;

	memset(&a, 0, sizeof(a));
	a.map_fd = map;
	a.key = (uintptr_t)&key;
	a.value = (uintptr_t)&value;
	return bpf(BPF_MAP_LOOKUP_ELEM, &a) ? 0 : value;
}

#define INSN(c, d, s, o, i) \
	((struct bpf_insn){.code = (c), .dst_reg = (d), .src_reg = (s), .off = (o), .imm = (i)})

/* Adds one to the map's only value. */
static int load(int type, int map, int attach_type, uint32_t btf_id)
{
	struct bpf_insn prog[] = {
		INSN(BPF_ST | BPF_MEM | BPF_W, 10, 0, -4, 0),
		INSN(BPF_ALU64 | BPF_MOV | BPF_X, 2, 10, 0, 0),
		INSN(BPF_ALU64 | BPF_ADD | BPF_K, 2, 0, 0, -4),
		INSN(BPF_LD | BPF_DW | BPF_IMM, 1, BPF_PSEUDO_MAP_FD, 0, map),
		INSN(0, 0, 0, 0, 0),
		INSN(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_map_lookup_elem),
		INSN(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 2, 0),
		INSN(BPF_ALU64 | BPF_MOV | BPF_K, 1, 0, 0, 1),
		INSN(BPF_STX | BPF_ATOMIC | BPF_DW, 0, 1, 0, BPF_ADD),
		INSN(BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, 0),
		INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),
	};
	union bpf_attr a;

	memset(&a, 0, sizeof(a));
	a.prog_type = type;
	a.insns = (uintptr_t)prog;
	a.insn_cnt = sizeof(prog) / sizeof(prog[0]);
	a.license = (uintptr_t) "GPL";
	a.log_buf = (uintptr_t)verifier;
	a.log_size = sizeof(verifier);
	a.log_level = 1;
	a.expected_attach_type = attach_type;
	a.attach_btf_id = btf_id;
	return bpf(BPF_PROG_LOAD, &a);
}

static int run_sock(int map)
{
	int prog = load(BPF_PROG_TYPE_SOCKET_FILTER, map, 0, 0), s[2], i;
	char c;

	if (prog < 0)
		return rvx_fail("socket filter: %s", verifier);
	if (socketpair(AF_UNIX, SOCK_DGRAM, 0, s))
		return rvx_fail("socketpair");
	if (setsockopt(s[1], SOL_SOCKET, SO_ATTACH_BPF, &prog, sizeof(prog)))
		return rvx_fail("SO_ATTACH_BPF");
	for (i = 0; i < 20; i++)
		if (send(s[0], "x", 1, MSG_DONTWAIT) < 0 && errno != EAGAIN && errno != EPERM)
			return rvx_fail("send");
	while (recv(s[1], &c, 1, MSG_DONTWAIT) > 0)
		;
	close(s[0]);
	close(s[1]);
	close(prog);
	return 0;
}

static long read_number(const char *path)
{
	char buf[64];

	return rvx_slurp(path, buf, sizeof(buf)) > 0 ? atol(buf) : -1;
}

static int run_event(int map, int type)
{
	struct perf_event_attr pe = {.size = sizeof(pe)};
	int prog = load(type, map, 0, 0), ev, i;

	if (prog < 0)
		return rvx_fail("program: %s", verifier);
	if (type == BPF_PROG_TYPE_KPROBE) {
		pe.type = (uint32_t)read_number("/sys/bus/event_source/devices/kprobe/type");
		pe.kprobe_func = (uintptr_t)GETPPID;
		pe.probe_offset = 0;
	} else {
		pe.type = PERF_TYPE_TRACEPOINT;
		pe.config = (uint64_t)read_number(
			"/sys/kernel/tracing/events/syscalls/sys_enter_getppid/id");
	}
	pe.sample_period = 1;
	pe.wakeup_events = 1;
	ev = (int)syscall(SYS_perf_event_open, &pe, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);
	if (ev < 0)
		return rvx_fail("perf_event_open");
	if (ioctl(ev, PERF_EVENT_IOC_SET_BPF, prog) || ioctl(ev, PERF_EVENT_IOC_ENABLE, 0))
		return rvx_fail("attach");
	for (i = 0; i < 50; i++)
		syscall(SYS_getppid);
	close(ev);
	close(prog);
	return 0;
}

/* The number of a function's type in the kernel's own BTF; 0: none. */
static uint32_t btf_function(const char *name)
{
	static char buf[16 << 20];
	long len = rvx_slurp("/sys/kernel/btf/vmlinux", buf, sizeof(buf));
	struct btf_header *h = (void *)buf;
	char *p, *end, *strings;
	uint32_t id = 1;

	if (len < (long)sizeof(*h) || h->magic != BTF_MAGIC)
		return 0;
	p = buf + h->hdr_len + h->type_off;
	end = p + h->type_len;
	strings = buf + h->hdr_len + h->str_off;
	for (; p + sizeof(struct btf_type) <= end; id++) {
		struct btf_type *t = (void *)p;
		uint32_t n = BTF_INFO_VLEN(t->info), kind = BTF_INFO_KIND(t->info);

		if (kind == BTF_KIND_FUNC && !strcmp(strings + t->name_off, name))
			return id;
		p += sizeof(*t);
		switch (kind) {
		case BTF_KIND_INT:
		case BTF_KIND_VAR:
		case BTF_KIND_DECL_TAG: p += 4; break;
		case BTF_KIND_ARRAY: p += sizeof(struct btf_array); break;
		case BTF_KIND_STRUCT:
		case BTF_KIND_UNION: p += n * sizeof(struct btf_member); break;
		case BTF_KIND_ENUM: p += n * sizeof(struct btf_enum); break;
		case BTF_KIND_FUNC_PROTO: p += n * sizeof(struct btf_param); break;
		case BTF_KIND_DATASEC: p += n * sizeof(struct btf_var_secinfo); break;
		case BTF_KIND_ENUM64: p += n * 12; break;
		}
	}
	return 0;
}

static int run_fentry(int map)
{
	static uint32_t id;
	union bpf_attr a;
	int prog, link, i;

	if (!id)
		id = btf_function(GETPPID);
	if (!id)
		id = btf_function("__do_sys_getppid");
	if (!id) {
		printf("skip: no type information for getppid\n");
		return 77;
	}
	prog = load(BPF_PROG_TYPE_TRACING, map, BPF_TRACE_FENTRY, id);
	if (prog < 0)
		return rvx_fail("fentry program: %s", verifier);
	memset(&a, 0, sizeof(a));
	a.raw_tracepoint.prog_fd = prog;
	link = bpf(BPF_RAW_TRACEPOINT_OPEN, &a);
	if (link < 0 && errno == 524) { /* ENOTSUPP: arm64 before v6.4 has no trampolines */
		printf("skip: this kernel cannot attach to functions\n");
		return 77;
	}
	if (link < 0)
		return rvx_fail("fentry attach");
	for (i = 0; i < 50; i++)
		syscall(SYS_getppid);
	close(link);
	close(prog);
	return 0;
}

int rvx_bpf(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "sock";
	int times = argc > 2 ? atoi(argv[2]) : 1, map = make_map(), ret = 0;

	if (map < 0)
		return rvx_fail("map");
	while (times-- > 0 && !ret) {
		if (!strcmp(what, "sock"))
			ret = run_sock(map);
		else if (!strcmp(what, "kprobe"))
			ret = run_event(map, BPF_PROG_TYPE_KPROBE);
		else if (!strcmp(what, "tracepoint"))
			ret = run_event(map, BPF_PROG_TYPE_TRACEPOINT);
		else if (!strcmp(what, "fentry"))
			ret = run_fentry(map);
		else
			return 2;
	}
	if (ret)
		return ret;
	if (!map_value(map)) {
		fprintf(stderr, "%s: the program never ran\n", what);
		return 1;
	}
	printf("hits=%llu\n", (unsigned long long)map_value(map));
	return 0;
}
