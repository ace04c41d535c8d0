/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pm.c: ACPI power management in 16 ports, and the keyboard controller's reset line.
 *
 * Not "hardware reduced": Linux would then do without the legacy interrupt controller
 * and the console's line with it. The PM timer must count, or Linux waits for it.
 */
#include "x86.h"

#include <string.h>
#include <time.h>

#define PM_TIMER_HZ 3579545ull /* ACPI 6.4, 4.8.2.1 */
#define SLP_EN	    (1u << 13)
#define SCI_EN	    1u
#define KBD_STATUS  0x64u
#define KBD_RESET   0xfeu

static uint32_t pm_timer(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint32_t)((uint64_t)t.tv_sec * PM_TIMER_HZ +
			  (uint64_t)t.tv_nsec * PM_TIMER_HZ / 1000000000ull);
}

static void pm_read(void *dev, uint64_t off, uint8_t len, void *data)
{
	struct rv_pm *pm = dev;
	uint8_t reg[X86_PM_LEN] = {0};
	uint16_t cnt = pm->cnt | SCI_EN;
	uint32_t t = pm_timer();

	memcpy(reg + 0, &pm->sts, 2);
	memcpy(reg + 2, &pm->en, 2);
	memcpy(reg + 4, &cnt, 2);
	memcpy(reg + 8, &t, 4);
	memcpy(data, reg + off, len); /* the bus keeps off + len within the range */
}

static void pm_write(void *dev, uint64_t off, uint8_t len, const void *data)
{
	struct rv_pm *pm = dev;
	uint16_t v = 0;

	memcpy(&v, data, len < 2 ? len : 2);
	switch (off + X86_PM_BASE) {
	case X86_PM1_EVT: pm->sts &= (uint16_t)~v; break;
	case X86_PM1_EVT + 2: pm->en = v; break;
	case X86_PM1_CNT:
		pm->cnt = (uint16_t)(v & ~SLP_EN);
		if ((v & SLP_EN) && (v >> 10 & 7) == X86_SLP_TYP_S5)
			rv_vm_end(pm->vm, RV_END_POWEROFF, "the guest switched itself off");
		break;
	case X86_PM_RESET:
		rv_vm_end(pm->vm, RV_END_REBOOT, "the guest asked for a reset");
		break;
	}
}

static void kbd_read(void *dev, uint64_t off, uint8_t len, void *data)
{
	(void)dev, (void)off;
	memset(data, 0, len); /* input buffer empty: Linux may write its reset command */
}

static void kbd_write(void *dev, uint64_t off, uint8_t len, const void *data)
{
	struct rv_pm *pm = dev;

	(void)off, (void)len;
	if (*(const uint8_t *)data == KBD_RESET)
		rv_vm_end(pm->vm, RV_END_REBOOT, "the guest asked for a reset (keyboard controller)");
}

static const struct rv_bus_ops pm_ops = {pm_read, pm_write};
static const struct rv_bus_ops kbd_ops = {kbd_read, kbd_write};

int rv_x86_pm_create(struct rv_vm *vm, struct rv_err *err)
{
	struct rv_pm *pm = &vm->arch->pm;
	int rc;

	pm->vm = vm;
	rc = rv_bus_add_pio(vm, X86_PM_BASE, X86_PM_LEN, &pm_ops, pm, err);
	return rc ? rc : rv_bus_add_pio(vm, KBD_STATUS, 1, &kbd_ops, pm, err);
}
