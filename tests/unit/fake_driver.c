/* SPDX-License-Identifier: Apache-2.0 */
/* fake_driver.c: a virtio driver for fake_vm; little-endian hosts only. */
#include "fake_driver.h"

#include <string.h>

uint32_t drv_reg(struct rv_vm *vm, uint32_t off)
{
	return (uint32_t)rv_fake_mmio_read(vm, DRV_MMIO + off, 4);
}

void drv_reg_set(struct rv_vm *vm, uint32_t off, uint32_t v)
{
	rv_fake_mmio_write(vm, DRV_MMIO + off, 4, v);
}

void drv_put16(struct rv_vm *vm, uint64_t gpa, uint16_t v)
{
	__atomic_store_n((uint16_t *)rv_fake_ram(vm, gpa), v, __ATOMIC_RELEASE);
}

uint16_t drv_get16(struct rv_vm *vm, uint64_t gpa)
{
	return __atomic_load_n((uint16_t *)rv_fake_ram(vm, gpa), __ATOMIC_ACQUIRE);
}

uint32_t drv_get32(struct rv_vm *vm, uint64_t gpa)
{
	uint32_t v;

	memcpy(&v, rv_fake_ram(vm, gpa), sizeof(v));
	return v;
}

uint32_t drv_negotiate(struct rv_vm *vm, uint64_t features)
{
	features |= 1ull << 32;
	drv_reg_set(vm, 0x070, 0);
	drv_reg_set(vm, 0x070, 1);
	drv_reg_set(vm, 0x070, 3);
	drv_reg_set(vm, 0x024, 0);
	drv_reg_set(vm, 0x020, (uint32_t)features);
	drv_reg_set(vm, 0x024, 1);
	drv_reg_set(vm, 0x020, (uint32_t)(features >> 32));
	drv_reg_set(vm, 0x070, 0x0b);
	return drv_reg(vm, 0x070);
}

uint32_t drv_queue(struct rv_vm *vm, unsigned int n, uint32_t num)
{
	drv_reg_set(vm, 0x030, n);
	drv_reg_set(vm, 0x038, num);
	drv_reg_set(vm, 0x080, (uint32_t)DRV_DESC(n));
	drv_reg_set(vm, 0x084, 0);
	drv_reg_set(vm, 0x090, (uint32_t)DRV_AVAIL(n));
	drv_reg_set(vm, 0x094, 0);
	drv_reg_set(vm, 0x0a0, (uint32_t)DRV_USED(n));
	drv_reg_set(vm, 0x0a4, 0);
	drv_reg_set(vm, 0x044, 1);
	return drv_reg(vm, 0x044);
}

void drv_start(struct rv_vm *vm, uint64_t features, unsigned int nqueues)
{
	drv_negotiate(vm, features);
	memset(rv_fake_ram(vm, DRV_DESC(0)), 0, 0x1000 * nqueues);
	for (unsigned int i = 0; i < nqueues; i++)
		drv_queue(vm, i, DRV_NUM);
	drv_reg_set(vm, 0x070, 0x0f);
}

void drv_desc(struct rv_vm *vm, unsigned int q, unsigned int i, uint64_t addr, uint32_t len,
	      uint16_t flags, uint16_t next)
{
	struct {
		uint64_t addr;
		uint32_t len;
		uint16_t flags, next;
	} d = {addr, len, flags, next};

	memcpy(rv_fake_ram(vm, DRV_DESC(q) + 16ull * i), &d, sizeof(d));
}

void drv_offer(struct rv_vm *vm, unsigned int q, uint16_t head)
{
	uint16_t idx = drv_get16(vm, DRV_AVAIL(q) + 2);

	drv_put16(vm, DRV_AVAIL(q) + 4 + 2ull * (idx % DRV_NUM), head);
	drv_put16(vm, DRV_AVAIL(q) + 2, (uint16_t)(idx + 1));
}

void drv_notify(struct rv_vm *vm, unsigned int q)
{
	drv_reg_set(vm, 0x050, q);
}

uint16_t drv_used_idx(struct rv_vm *vm, unsigned int q)
{
	return drv_get16(vm, DRV_USED(q) + 2);
}

uint32_t drv_used_len(struct rv_vm *vm, unsigned int q, unsigned int i)
{
	return drv_get32(vm, DRV_USED(q) + 4 + 8ull * (i % DRV_NUM) + 4);
}
