/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fake_vm.h: the monitor as device models see it, made of a byte array.
 *
 * RAM starts at RV_FAKE_BASE and has RV_FAKE_SIZE bytes; one range of it can be
 * protected. Bus ranges, lines, doorbells and descriptors are recorded; tests play the
 * vcpu (rv_fake_*_read/write) and the I/O thread (rv_fake_io_run).
 */
#ifndef RV_FAKE_VM_H
#define RV_FAKE_VM_H

#include "dev/dev.h"

#define RV_FAKE_BASE 0x100000ull
#define RV_FAKE_SIZE (1u << 20)

struct rv_vm *rv_fake_vm_new(void);
void rv_fake_vm_free(struct rv_vm *vm);	 /* destroys the devices, newest first */
void rv_fake_vm_clear(struct rv_vm *vm); /* as new again, cheaper than a new one */

uint8_t *rv_fake_ram(struct rv_vm *vm, uint64_t gpa);
void rv_fake_protect(struct rv_vm *vm, uint64_t gpa, uint64_t len);
unsigned int rv_fake_refused(struct rv_vm *vm); /* writes that hit the protection */
unsigned int rv_fake_bad(struct rv_vm *vm);	/* calls of rv_dev_guest_bad() */
const char *rv_fake_bad_text(struct rv_vm *vm);

bool rv_fake_line(struct rv_vm *vm, uint32_t gsi);
unsigned int rv_fake_edges(struct rv_vm *vm, uint32_t gsi); /* times the line went up */

uint64_t rv_fake_mmio_read(struct rv_vm *vm, uint64_t gpa, uint8_t len);
void rv_fake_mmio_write(struct rv_vm *vm, uint64_t gpa, uint8_t len, uint64_t v);
uint8_t rv_fake_pio_read(struct rv_vm *vm, uint16_t port);
void rv_fake_pio_write(struct rv_vm *vm, uint16_t port, uint8_t v);

/* Handle events until none came for ms milliseconds. */
void rv_fake_io_run(struct rv_vm *vm, int ms);

#endif
