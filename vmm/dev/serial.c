/* SPDX-License-Identifier: Apache-2.0 */
/*
 * serial.c: a 16550A UART (National Semiconductor PC16550D data sheet).
 *
 * Good enough that Linux's autoconfig() names it 16550A: scratch register, loopback
 * of the modem lines, FIFO bits in IIR, four bits of IER. Transmission takes no time:
 * THR and the shifter are always empty, and the "THR empty" interrupt is raised as the
 * data sheet says (on enabling it, and after each byte), because Linux writes user
 * space output from that interrupt only.
 *
 * Limits: line parameters, break, parity and framing errors are accepted and mean
 * nothing; the receive FIFO is deeper than 16 so that pasted input survives; OUT2 does
 * not gate the line.
 */
#include "dev.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define RX_FIFO 128u

/* Register offsets; 0 and 1 are the divisor latch when LCR.DLAB is set. */
enum { REG_DATA, REG_IER, REG_IIR_FCR, REG_LCR, REG_MCR, REG_LSR, REG_MSR, REG_SCR };

#define IER_RDI	     0x01u
#define IER_THRI     0x02u
#define IER_MSI	     0x08u
#define IER_MASK     0x0fu
#define IIR_MSI	     0x00u
#define IIR_NONE     0x01u
#define IIR_THRI     0x02u
#define IIR_RDI	     0x04u
#define IIR_FIFO     0xc0u
#define FCR_ENABLE   0x01u
#define FCR_CLEAR_RX 0x02u
#define LCR_DLAB     0x80u
#define MCR_DTR	     0x01u
#define MCR_RTS	     0x02u
#define MCR_OUT1     0x04u
#define MCR_OUT2     0x08u
#define MCR_LOOP     0x10u
#define MCR_MASK     0x1fu
#define LSR_DR	     0x01u
#define LSR_THRE     0x20u
#define LSR_TEMT     0x40u
#define MSR_TERI     0x04u
#define MSR_CTS	     0x10u
#define MSR_DSR	     0x20u
#define MSR_RI	     0x40u
#define MSR_DCD	     0x80u

struct rv_serial {
	struct rv_vm *vm;
	struct rv_chardev *chr;
	uint32_t gsi;

	/* Guards everything below, and the order of line changes. */
	pthread_mutex_t lock;
	bool line;
	bool thri_pending;
	uint8_t ier, lcr, mcr, msr, scr, fcr, dll, dlm;
	uint8_t rx[RX_FIFO];
	unsigned int rx_head, rx_len;
};

static uint8_t iir_now(const struct rv_serial *s)
{
	if ((s->ier & IER_RDI) && s->rx_len)
		return IIR_RDI;
	if ((s->ier & IER_THRI) && s->thri_pending)
		return IIR_THRI;
	if ((s->ier & IER_MSI) && (s->msr & 0x0f))
		return IIR_MSI;
	return IIR_NONE;
}

static void line_update(struct rv_serial *s)
{
	bool level = iir_now(s) != IIR_NONE;

	if (level == s->line)
		return;
	s->line = level;
	rv_irq_line(s->vm, s->gsi, level);
}

/* Modem inputs: what a null modem that is always there shows, or the looped outputs. */
static void msr_update(struct rv_serial *s)
{
	uint8_t now = MSR_DCD | MSR_DSR | MSR_CTS, was = s->msr & 0xf0, delta;

	if (s->mcr & MCR_LOOP)
		now = (s->mcr & MCR_RTS ? MSR_CTS : 0) | (s->mcr & MCR_DTR ? MSR_DSR : 0) |
		      (s->mcr & MCR_OUT1 ? MSR_RI : 0) | (s->mcr & MCR_OUT2 ? MSR_DCD : 0);
	delta = (was ^ now) >> 4;
	/* Ring shows only its trailing edge. */
	if (!(was & MSR_RI))
		delta &= ~MSR_TERI;
	s->msr = now | (s->msr & 0x0f) | delta;
}

static void rx_put(struct rv_serial *s, uint8_t c)
{
	if (s->rx_len == RX_FIFO)
		return;
	s->rx[(s->rx_head + s->rx_len++) % RX_FIFO] = c;
}

static uint8_t rx_get(struct rv_serial *s)
{
	uint8_t c;

	if (!s->rx_len)
		return 0;
	c = s->rx[s->rx_head];
	s->rx_head = (s->rx_head + 1) % RX_FIFO;
	s->rx_len--;
	return c;
}

static uint8_t reg_read(struct rv_serial *s, unsigned int reg, bool *kick)
{
	uint8_t v;

	switch (reg) {
	case REG_DATA:
		if (s->lcr & LCR_DLAB)
			return s->dll;
		v = rx_get(s);
		/* Kick when half the room is free, not for every byte. */
		*kick = s->rx_len == RX_FIFO / 2 || !s->rx_len;
		return v;
	case REG_IER: return s->lcr & LCR_DLAB ? s->dlm : s->ier;
	case REG_IIR_FCR:
		v = iir_now(s);
		if (v == IIR_THRI)
			s->thri_pending = false;
		return v | (s->fcr & FCR_ENABLE ? IIR_FIFO : 0);
	case REG_LCR: return s->lcr;
	case REG_MCR: return s->mcr;
	case REG_LSR: return LSR_THRE | LSR_TEMT | (s->rx_len ? LSR_DR : 0);
	case REG_MSR:
		v = s->msr;
		s->msr &= 0xf0;
		return v;
	case REG_SCR: return s->scr;
	default: return 0xff;
	}
}

static void thr_write(struct rv_serial *s, uint8_t v)
{
	if (s->mcr & MCR_LOOP)
		rx_put(s, v);
	else
		rv_chardev_write(s->chr, &v, 1);
	s->thri_pending = true;
}

static void reg_write(struct rv_serial *s, unsigned int reg, uint8_t v, bool *kick)
{
	switch (reg) {
	case REG_DATA:
		if (s->lcr & LCR_DLAB)
			s->dll = v;
		else
			thr_write(s, v);
		break;
	case REG_IER:
		if (s->lcr & LCR_DLAB) {
			s->dlm = v;
			break;
		}
		/* Enabling THRI with an empty THR interrupts at once; Linux tests for it. */
		if ((v & IER_THRI) && !(s->ier & IER_THRI))
			s->thri_pending = true;
		s->ier = v & IER_MASK;
		break;
	case REG_IIR_FCR:
		if ((v & FCR_CLEAR_RX) || ((v ^ s->fcr) & FCR_ENABLE)) {
			s->rx_len = 0;
			*kick = true;
		}
		s->fcr = v & FCR_ENABLE;
		break;
	case REG_LCR: s->lcr = v; break;
	case REG_MCR:
		s->mcr = v & MCR_MASK;
		msr_update(s);
		break;
	case REG_SCR: s->scr = v; break;
	default: break; /* LSR and MSR: factory test only */
	}
}

static void bus_read(void *dev, uint64_t off, uint8_t len, void *data)
{
	struct rv_serial *s = dev;
	uint8_t *p = data;
	bool kick = false, k;

	pthread_mutex_lock(&s->lock);
	for (uint8_t i = 0; i < len; i++) {
		k = false;
		p[i] = reg_read(s, (unsigned int)(off + i), &k);
		kick |= k;
	}
	line_update(s);
	pthread_mutex_unlock(&s->lock);
	if (kick)
		rv_chardev_kick(s->chr);
}

static void bus_write(void *dev, uint64_t off, uint8_t len, const void *data)
{
	struct rv_serial *s = dev;
	const uint8_t *p = data;
	bool kick = false;

	pthread_mutex_lock(&s->lock);
	for (uint8_t i = 0; i < len; i++)
		reg_write(s, (unsigned int)(off + i), p[i], &kick);
	line_update(s);
	pthread_mutex_unlock(&s->lock);
	if (kick)
		rv_chardev_kick(s->chr);
}

/* I/O thread: bytes from outside. While looped back the outside is disconnected. */
static size_t input(void *arg, const void *buf, size_t len)
{
	struct rv_serial *s = arg;
	const uint8_t *p = buf;
	size_t n = 0;

	pthread_mutex_lock(&s->lock);
	if (s->mcr & MCR_LOOP)
		n = len;
	else
		while (n < len && s->rx_len < RX_FIFO)
			rx_put(s, p[n++]);
	line_update(s);
	pthread_mutex_unlock(&s->lock);
	return n;
}

static void serial_destroy(void *dev)
{
	struct rv_serial *s = dev;

	if (!s)
		return;
	rv_chardev_close(s->chr);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

static const struct rv_bus_ops serial_ops = {.read = bus_read, .write = bus_write};

static struct rv_serial *serial_new(struct rv_vm *vm, uint32_t gsi, struct rv_chardev *chr)
{
	struct rv_serial *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->vm = vm;
	s->chr = chr;
	s->gsi = gsi;
	s->dll = 1; /* 115200 */
	s->msr = MSR_DCD | MSR_DSR | MSR_CTS;
	pthread_mutex_init(&s->lock, NULL);
	return s;
}

/* The bus holds s from here on, so a failure of the last step leaves it to the VM's end. */
static int serial_attach(struct rv_vm *vm, struct rv_serial *s, int rc, struct rv_err *err)
{
	if (rc) {
		s->chr = NULL;
		serial_destroy(s);
		return rc;
	}
	rc = rv_vm_add_device(vm, s, serial_destroy, err);
	if (rc)
		return rc;
	rv_chardev_on_input(s->chr, input, s);
	return RV_OK;
}

int rv_serial_create(struct rv_vm *vm, uint16_t port, uint32_t gsi, struct rv_chardev *chr,
		     struct rv_err *err)
{
	struct rv_serial *s = serial_new(vm, gsi, chr);

	if (!s)
		return rv_err_set(err, RV_ENOMEM, "serial", "no memory");
	return serial_attach(vm, s, rv_bus_add_pio(vm, port, 8, &serial_ops, s, err), err);
}

int rv_serial_create_mmio(struct rv_vm *vm, rv_gpa base, uint32_t gsi, struct rv_chardev *chr,
			  struct rv_err *err)
{
	struct rv_serial *s = serial_new(vm, gsi, chr);

	if (!s)
		return rv_err_set(err, RV_ENOMEM, "serial", "no memory");
	return serial_attach(vm, s, rv_bus_add_mmio(vm, base, 8, &serial_ops, s, err), err);
}
