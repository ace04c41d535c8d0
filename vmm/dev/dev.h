/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dev.h: what a device model may ask of the monitor, and nothing else.
 *
 * Device models know no KVM. They see guest RAM only through rv_dma_*, the one
 * gate that consults the protection map; they raise interrupts through a line;
 * they run in the I/O thread (epoll), except for register accesses, which come
 * from vcpu threads. A device guards its own state with its own mutex.
 */
#ifndef RV_VMM_DEV_H
#define RV_VMM_DEV_H

#include <ravelin/error.h>
#include <ravelin/types.h>

#include <sys/types.h>
#include <sys/uio.h>

struct rv_vm;

/* --- guest memory ------------------------------------------------------ */

/*
 * Copy between guest RAM and a buffer. RV_ENOTMAPPED where any byte is outside
 * RAM (nothing copied), RV_EREFUSED where a write touches protected memory
 * (nothing written; the event is posted by the gate itself). who names the
 * device in the journal ("virtio-blk0").
 */
int rv_dma_read(struct rv_vm *vm, rv_gpa gpa, void *dst, size_t len) RV_MUST_CHECK;
int rv_dma_write(struct rv_vm *vm, const char *who, rv_gpa gpa, const void *src,
		 size_t len) RV_MUST_CHECK;

/*
 * Host pointers for bulk transfers (preadv and the like). Appends to iov[*n..max)
 * the pieces that [gpa, gpa+len) maps to (one, or two where it straddles the MMIO
 * hole is refused: RAM is not contiguous there). write: the device will write.
 * Between a successful rv_dma_begin() and rv_dma_end() no protection changes, so
 * keep it short and never block on a peer in it.
 */
void rv_dma_begin(struct rv_vm *vm);
void rv_dma_end(struct rv_vm *vm);
int rv_dma_map(struct rv_vm *vm, const char *who, rv_gpa gpa, size_t len, bool write,
	       struct iovec *out) RV_MUST_CHECK;

/* --- interrupts -------------------------------------------------------- */

/* Drive an interrupt line (GSI). Safe from any thread. */
void rv_irq_line(struct rv_vm *vm, uint32_t gsi, bool level);

/* --- the bus ----------------------------------------------------------- */

/*
 * A range of MMIO (or of I/O ports, x86). read/write are called from vcpu
 * threads, len is 1, 2, 4 or 8; an access that straddles the end never arrives.
 */
struct rv_bus_ops {
	void (*read)(void *dev, uint64_t off, uint8_t len, void *data);
	void (*write)(void *dev, uint64_t off, uint8_t len, const void *data);
};
int rv_bus_add_mmio(struct rv_vm *vm, rv_gpa base, uint64_t len, const struct rv_bus_ops *ops,
		    void *dev, struct rv_err *err) RV_MUST_CHECK;
int rv_bus_add_pio(struct rv_vm *vm, uint16_t base, uint16_t len, const struct rv_bus_ops *ops,
		   void *dev, struct rv_err *err) RV_MUST_CHECK;

/*
 * Turn 32-bit writes of value at gpa into a signal on fd (an eventfd), without
 * an exit to user space (KVM_IOEVENTFD with a datamatch).
 */
int rv_ioevent_add(struct rv_vm *vm, rv_gpa gpa, uint32_t value, int fd,
		   struct rv_err *err) RV_MUST_CHECK;

/* --- the I/O thread ---------------------------------------------------- */

/*
 * Call fn(dev, fd, events) in the I/O thread when fd is ready (epoll events).
 * rv_io_mod changes the set of events; rv_io_del stops it (safe inside fn; from
 * another thread it returns after a running call has ended).
 */
typedef void rv_io_fn(void *dev, int fd, uint32_t events);
int rv_io_add(struct rv_vm *vm, int fd, uint32_t events, rv_io_fn *fn, void *dev,
	      struct rv_err *err) RV_MUST_CHECK;
int rv_io_mod(struct rv_vm *vm, int fd, uint32_t events);
void rv_io_del(struct rv_vm *vm, int fd);

/* --- virtio ------------------------------------------------------------ */

/* One virtio-mmio device: 0x200 bytes of registers and a level-triggered line. */
struct rv_virtio_slot {
	rv_gpa base;
	uint32_t gsi;
	uint32_t index; /* 0, 1, ...; _UID in ACPI */
	char name[24];	/* "virtio-blk0" */
};
#define RV_VIRTIO_MMIO_LEN 0x200u
#define RV_VIRTIO_MAX	   16u

/* Reserve the next slot (address and line come from the architecture's map). */
int rv_virtio_slot_next(struct rv_vm *vm, const char *kind, struct rv_virtio_slot *out,
			struct rv_err *err) RV_MUST_CHECK;

/*
 * Create a device on a slot. What is needed from the host (file, tap, socket) is
 * opened here, so a bad option stops the start with one line. Each device is owned
 * by the VM: rv_vm_add_device() is called inside with its destructor.
 */
int rv_virtio_blk_create(struct rv_vm *vm, const char *option, struct rv_err *err) RV_MUST_CHECK;
int rv_virtio_net_create(struct rv_vm *vm, const char *option, struct rv_err *err) RV_MUST_CHECK;
int rv_virtio_rng_create(struct rv_vm *vm, struct rv_err *err) RV_MUST_CHECK;
int rv_virtio_vsock_create(struct rv_vm *vm, const char *option, struct rv_err *err) RV_MUST_CHECK;
int rv_virtio_console_create(struct rv_vm *vm, const char *option,
			     struct rv_err *err) RV_MUST_CHECK;

/* destroy runs after all vcpu threads and the I/O thread have ended. */
int rv_vm_add_device(struct rv_vm *vm, void *dev, void (*destroy)(void *dev),
		     struct rv_err *err) RV_MUST_CHECK;

/* Evidence of a guest structure that contradicts itself; rate-limited by the journal. */
void rv_dev_guest_bad(struct rv_vm *vm, const char *who, const char *fmt, ...) RV_PRINTF(3, 4);

/* --- serial (8250) ----------------------------------------------------- */

/* option: "stdio", "file:PATH", "pty", "unix:PATH", "null". */
struct rv_chardev;
int rv_chardev_open(struct rv_vm *vm, const char *option, struct rv_chardev **out,
		    struct rv_err *err) RV_MUST_CHECK;
/* Bytes to the outside; never blocks: what does not fit is dropped and counted. */
void rv_chardev_write(struct rv_chardev *c, const void *buf, size_t len);
/* Room for input arrived: fn gets bytes from outside, returns how many it took;
 * after a short take, call rv_chardev_kick() when there is room again. */
void rv_chardev_on_input(struct rv_chardev *c, size_t (*fn)(void *arg, const void *buf, size_t len),
			 void *arg);
void rv_chardev_kick(struct rv_chardev *c);
const char *rv_chardev_where(const struct rv_chardev *c); /* "pty /dev/pts/3" */
void rv_chardev_close(struct rv_chardev *c);

/* A 16550A at port base (x86) with line gsi. */
int rv_serial_create(struct rv_vm *vm, uint16_t port, uint32_t gsi, struct rv_chardev *chr,
		     struct rv_err *err) RV_MUST_CHECK;
/* The same as eight bytes of MMIO ("ns16550a" with reg-shift 0). */
int rv_serial_create_mmio(struct rv_vm *vm, rv_gpa base, uint32_t gsi, struct rv_chardev *chr,
			  struct rv_err *err) RV_MUST_CHECK;
/* Both own chr from success on, and close it when the device is destroyed. */

#endif
