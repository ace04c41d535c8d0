/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_virtq.c: guest RAM made of the input, under a queue and under the rng device. */
/* fuzz-sources: vmm/dev/virtq.c vmm/dev/virtio_mmio.c vmm/dev/virtio_rng.c tests/unit/fake_vm.c */
#include "../unit/fake_vm.h"
#include "dev/virtq.h"

#include <string.h>

#define MMIO 0xd0000000ull

static void reg(struct rv_vm *vm, uint32_t off, uint32_t v)
{
	rv_fake_mmio_write(vm, MMIO + off, 4, v);
}

/* The rings are the driver's to place; the input is everything in them. */
static void queue(struct rv_vm *vm, uint8_t num, bool event_idx, uint8_t prot)
{
	static struct rv_vq_chain c;
	struct rv_virtq q = {.vm = vm, .who = "fuzz", .num_max = RV_VIRTQ_MAX};
	uint8_t buf[64];
	const char *why;
	bool got, yes;

	q.num = 1u << (num % 9);
	q.desc = RV_FAKE_BASE;
	q.avail = RV_FAKE_BASE + 16ull * q.num;
	q.used = RV_FAKE_BASE + 0x8000;
	if (rv_virtq_enable(&q, event_idx, &why))
		__builtin_trap();
	rv_fake_protect(vm, q.used, prot);
	for (int i = 0; i < 300 && !rv_virtq_pop(&q, &c, &got) && got; i++) {
		struct rv_vq_cur cur;
		uint64_t sum = 0;

		for (unsigned int k = 0; k < (unsigned int)c.nr + c.nw; k++)
			sum += c.seg[k].len;
		if (sum != (uint64_t)c.rlen + c.wlen || c.nr + c.nw > (int)q.num)
			__builtin_trap();
		rv_vq_cur_init(&cur, &c, false);
		(void)!rv_vq_cur_read(&q, &cur, buf, cur.left < 64 ? cur.left : 64);
		rv_vq_cur_init(&cur, &c, true);
		(void)!rv_vq_cur_write(&q, &cur, buf, cur.left < 64 ? cur.left : 64);
		(void)!rv_virtq_push(&q, c.head, 1);
		(void)!rv_virtq_must_signal(&q, &yes);
		(void)!rv_virtq_await(&q, &yes);
	}
}

/* Pairs of (register, value) to a device, then its doorbell. */
static void device(struct rv_vm *vm, const uint8_t *data, size_t size)
{
	for (; size >= 6; data += 6, size -= 6) {
		uint16_t off;
		uint32_t v;

		memcpy(&off, data, 2);
		memcpy(&v, data + 2, 4);
		off &= 0x1ff;
		/* Half the addresses shall hit RAM, or nothing is ever set up. */
		if (off >= 0x80 && off < 0xb0 && (v & 1))
			v = (uint32_t)RV_FAKE_BASE + (v & 0xfff0);
		reg(vm, off, v);
		(void)rv_fake_mmio_read(vm, MMIO + off, 4);
	}
	rv_fake_io_run(vm, 0);
}

static void device_start(struct rv_vm *vm)
{
	static const uint32_t steps[][2] = {
		{0x70, 0},	    {0x70, 3},	      {0x24, 1}, {0x20, 1},   {0x24, 0},
		{0x20, 0x30000000}, {0x70, 0xb},      {0x30, 0}, {0x38, 16},  {0x80, 0x100000},
		{0x90, 0x100100},   {0xa0, 0x108000}, {0x44, 1}, {0x70, 0xf}, {0x50, 0},
	};

	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
		reg(vm, steps[i][0], steps[i][1]);
	rv_fake_io_run(vm, 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct rv_vm *vm;
	size_t n;

	if (size < 4)
		return 0;
	if (!vm)
		vm = rv_fake_vm_new();
	n = size - 3 < 0x8000 ? size - 3 : 0x8000;
	memcpy(rv_fake_ram(vm, RV_FAKE_BASE), data + 3, n);
	if (data[0] & 2) {
		queue(vm, data[1], data[0] & 4, data[0] & 1 ? data[2] : 0);
	} else if (!rv_virtio_rng_create(vm, NULL)) {
		if (data[0] & 4)
			device_start(vm);
		if (data[0] & 1)
			rv_fake_protect(vm, RV_FAKE_BASE + 0x8000, data[2]);
		device(vm, data + 3, n);
	}
	rv_fake_vm_clear(vm);
	return 0;
}
