/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rtc.c: the wall clock, an Arm PrimeCell PL031 (DDI 0224) that can only be read.
 * Setting it moves the guest's own offset; there is no alarm and no interrupt.
 */
#include "arm64.h"

#include <string.h>
#include <time.h>

#define RTC_DR	0x000u
#define RTC_LR	0x008u
#define RTC_CR	0x00cu
#define RTC_PID 0xfe0u /* eight identification registers, one byte in each word */

static const uint8_t ids[8] = {0x31, 0x10, 0x04, 0x00, 0x0d, 0xf0, 0x05, 0xb1};

static void rtc_read(void *dev, uint64_t off, uint8_t len, void *data)
{
	uint32_t v = 0;

	(void)dev;
	if (off == RTC_DR || off == RTC_LR)
		v = (uint32_t)time(NULL);
	else if (off == RTC_CR)
		v = 1;
	else if (off >= RTC_PID)
		v = ids[(off - RTC_PID) / 4 % 8];
	memset(data, 0, len);
	memcpy(data, &v, len < sizeof(v) ? len : sizeof(v));
}

static const struct rv_bus_ops rtc_ops = {.read = rtc_read};

int rv_arm64_rtc_create(struct rv_vm *vm, struct rv_err *err)
{
	return rv_bus_add_mmio(vm, rv_gpa_of(ARM64_RTC), ARM64_RTC_LEN, &rtc_ops, NULL, err);
}
