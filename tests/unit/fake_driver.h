/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fake_driver.h: a virtio driver for fake_vm, honest by default; tests bend what they
 * want bent. Queue n has its rings at 0x1000 * (1 + n) from the start of RAM and buffers
 * wherever the test says.
 */
#ifndef RV_FAKE_DRIVER_H
#define RV_FAKE_DRIVER_H

#include "fake_vm.h"

#define DRV_MMIO     0xd0000000ull
#define DRV_GSI	     16
#define DRV_NUM	     16u
#define DRV_NEXT     1u
#define DRV_WRITE    2u
#define DRV_INDIRECT 4u

/* Guest addresses of the rings of queue n. */
#define DRV_DESC(n)  (RV_FAKE_BASE + 0x1000ull * (1 + (n)))
#define DRV_AVAIL(n) (DRV_DESC(n) + 0x400)
#define DRV_USED(n)  (DRV_DESC(n) + 0x800)

uint32_t drv_reg(struct rv_vm *vm, uint32_t off);
void drv_reg_set(struct rv_vm *vm, uint32_t off, uint32_t v);
void drv_put16(struct rv_vm *vm, uint64_t gpa, uint16_t v);
uint16_t drv_get16(struct rv_vm *vm, uint64_t gpa);
uint32_t drv_get32(struct rv_vm *vm, uint64_t gpa);

/* Reset, negotiate features (VERSION_1 is added), up to FEATURES_OK; returns the status. */
uint32_t drv_negotiate(struct rv_vm *vm, uint64_t features);
/* Set one queue up; returns what QueueReady reads afterwards. */
uint32_t drv_queue(struct rv_vm *vm, unsigned int n, uint32_t num);
/* All of it for nqueues, DRIVER_OK included. */
void drv_start(struct rv_vm *vm, uint64_t features, unsigned int nqueues);

void drv_desc(struct rv_vm *vm, unsigned int q, unsigned int i, uint64_t addr, uint32_t len,
	      uint16_t flags, uint16_t next);
/* Put head in the avail ring and move its index. */
void drv_offer(struct rv_vm *vm, unsigned int q, uint16_t head);
void drv_notify(struct rv_vm *vm, unsigned int q);
uint16_t drv_used_idx(struct rv_vm *vm, unsigned int q);
uint32_t drv_used_len(struct rv_vm *vm, unsigned int q, unsigned int i);

#endif
