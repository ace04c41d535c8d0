/* SPDX-License-Identifier: Apache-2.0 */
/* lib.h: what the tiny guests share: ports, the console, results, the command line. */
#ifndef RV_TESTS_KVM_GUEST_LIB_H
#define RV_TESTS_KVM_GUEST_LIB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define COM1	 0x3f8
#define PM1_CNT	 0x604
#define PM_TIMER 0x608
#define PM_RESET 0x60c
#define PM_HZ	 3579545u
#define KBD	 0x64

static inline void outb(uint16_t port, uint8_t v)
{
	asm volatile("outb %0, %1" ::"a"(v), "Nd"(port) : "memory");
}

static inline void outw(uint16_t port, uint16_t v)
{
	asm volatile("outw %0, %1" ::"a"(v), "Nd"(port) : "memory");
}

static inline void outl(uint16_t port, uint32_t v)
{
	asm volatile("outl %0, %1" ::"a"(v), "Nd"(port) : "memory");
}

static inline uint8_t inb(uint16_t port)
{
	uint8_t v;

	asm volatile("inb %1, %0" : "=a"(v) : "Nd"(port) : "memory");
	return v;
}

static inline uint16_t inw(uint16_t port)
{
	uint16_t v;

	asm volatile("inw %1, %0" : "=a"(v) : "Nd"(port) : "memory");
	return v;
}

static inline uint32_t inl(uint16_t port)
{
	uint32_t v;

	asm volatile("inl %1, %0" : "=a"(v) : "Nd"(port) : "memory");
	return v;
}

/* Single accesses of one size, whatever the compiler would like better. */
#define DEFINE_ACCESS(bits, type)                          \
	static inline type read##bits(uint64_t a)          \
	{                                                  \
		return *(volatile type *)a;                \
	}                                                  \
	static inline void write##bits(uint64_t a, type v) \
	{                                                  \
		*(volatile type *)a = v;                   \
	}
DEFINE_ACCESS(8, uint8_t)
DEFINE_ACCESS(16, uint16_t)
DEFINE_ACCESS(32, uint32_t)
DEFINE_ACCESS(64, uint64_t)

struct cpuid {
	uint32_t eax, ebx, ecx, edx;
};

static inline struct cpuid cpuid(uint32_t leaf, uint32_t sub)
{
	struct cpuid c;

	asm volatile("cpuid"
		     : "=a"(c.eax), "=b"(c.ebx), "=c"(c.ecx), "=d"(c.edx)
		     : "a"(leaf), "c"(sub));
	return c;
}

void *memcpy(void *dst, const void *src, size_t n);
void *memset(void *dst, int c, size_t n);
int memcmp(const void *a, const void *b, size_t n);
size_t strlen(const char *s);

/* %s %c %u %x %lx only. */
void print(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* A result: "PASS name" or "FAIL name: why". */
void report(const char *name, bool ok, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* "SUMMARY passed failed" and the power is off. */
void finish(void) __attribute__((noreturn));
void power_off(void) __attribute__((noreturn));

/* The command line, and the value of name=NUMBER in it. */
extern const char *cmdline;
bool arg_is(const char *name, const char *value);
uint64_t arg(const char *name, uint64_t otherwise);

void delay_us(uint32_t us);

struct e820 {
	uint64_t addr, size;
	uint32_t type;
} __attribute__((packed));

/* Offsets in the zero page: Documentation/arch/x86/zero-page.rst. */
#define BP_RSDP	   0x070
#define BP_E820_N  0x1e8
#define BP_HEADER  0x202
#define BP_VERSION 0x206
#define BP_LOADER  0x210
#define BP_FLAGS   0x211
#define BP_CMDLINE 0x228
#define BP_SETUP   0x250
#define BP_E820	   0x2d0

/* Each guest's own: bp = zero page, entry = address of the first instruction. */
void guest_main(uint8_t *bp, uint64_t entry, uint64_t cs);

#endif
