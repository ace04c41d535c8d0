/* SPDX-License-Identifier: Apache-2.0 */
/* lib.c: console, results, command line and exceptions of the tiny guests. */
#include "lib.h"

#include <stdarg.h>

const char *cmdline = "";
static unsigned int passed, failed;

/* --- what the compiler calls ------------------------------------------------------- */

void *memcpy(void *dst, const void *src, size_t n)
{
	void *d = dst;

	asm volatile("rep movsb" : "+D"(d), "+S"(src), "+c"(n)::"memory");
	return dst;
}

void *memset(void *dst, int c, size_t n)
{
	void *d = dst;

	asm volatile("rep stosb" : "+D"(d), "+c"(n) : "a"(c) : "memory");
	return dst;
}

int memcmp(const void *a, const void *b, size_t n)
{
	const uint8_t *x = a, *y = b;

	for (; n; n--, x++, y++)
		if (*x != *y)
			return *x - *y;
	return 0;
}

size_t strlen(const char *s)
{
	size_t n = 0;

	while (s[n])
		n++;
	return n;
}

/* --- console ---------------------------------------------------------------------- */

static void put(char c)
{
	if (c == '\n')
		outb(COM1, '\r');
	outb(COM1, (uint8_t)c);
}

static void put_number(uint64_t v, unsigned int base)
{
	char buf[24];
	unsigned int n = 0;

	do {
		buf[n++] = "0123456789abcdef"[v % base];
		v /= base;
	} while (v);
	while (n)
		put(buf[--n]);
}

static void vprint(const char *fmt, va_list ap)
{
	for (; *fmt; fmt++) {
		bool wide = false;

		if (*fmt != '%') {
			put(*fmt);
			continue;
		}
		if (*++fmt == 'l') {
			wide = true;
			fmt++;
		}
		if (*fmt == 's')
			for (const char *s = va_arg(ap, const char *); *s; s++)
				put(*s);
		else if (*fmt == 'c')
			put((char)va_arg(ap, int));
		else if (*fmt == 'u' || *fmt == 'x')
			put_number(wide ? va_arg(ap, uint64_t) : va_arg(ap, uint32_t),
				   *fmt == 'u' ? 10 : 16);
	}
}

void print(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vprint(fmt, ap);
	va_end(ap);
}

void report(const char *name, bool ok, const char *fmt, ...)
{
	va_list ap;

	*(ok ? &passed : &failed) += 1;
	print(ok ? "PASS %s" : "FAIL %s: ", name);
	va_start(ap, fmt);
	if (!ok)
		vprint(fmt, ap);
	va_end(ap);
	print("\n");
}

void power_off(void)
{
	for (;;) {
		outw(PM1_CNT, 5u << 10 | 1u << 13); /* S5 of the DSDT */
		asm volatile("pause");
	}
}

void finish(void)
{
	print("SUMMARY %u %u\n", passed, failed);
	power_off();
}

void delay_us(uint32_t us)
{
	uint32_t start = inl(PM_TIMER), ticks = (uint32_t)((uint64_t)us * PM_HZ / 1000000u);

	/* A clock that stands still must not hang the test: each read takes its time, too. */
	for (uint32_t i = 0; inl(PM_TIMER) - start < ticks && i < 50000000u; i++)
		asm volatile("pause");
}

/* --- command line ------------------------------------------------------------------- */

static const char *find(const char *name)
{
	size_t n = strlen(name);

	for (const char *s = cmdline; *s; s++)
		if ((s == cmdline || s[-1] == ' ') && !memcmp(s, name, n) && s[n] == '=')
			return s + n + 1;
	return NULL;
}

bool arg_is(const char *name, const char *value)
{
	const char *s = find(name);
	size_t n = strlen(value);

	return s && !memcmp(s, value, n) && (!s[n] || s[n] == ' ');
}

uint64_t arg(const char *name, uint64_t otherwise)
{
	const char *s = find(name);
	uint64_t v = 0;

	if (!s)
		return otherwise;
	for (; *s >= '0' && *s <= '9'; s++)
		v = v * 10 + (uint64_t)(*s - '0');
	return v;
}

/* --- exceptions: none is expected --------------------------------------------------- */

extern char vectors[];
extern uint64_t idt[64];
void idt_fill(const uint8_t *bp);
void guest_exception(uint64_t vector, uint64_t code, uint64_t rip, uint64_t cr2);

void idt_fill(const uint8_t *bp)
{
	uint32_t line;

	for (unsigned int i = 0; i < 32; i++) {
		uint64_t at = (uint64_t)vectors + 16 * i;

		idt[2 * i] =
			(at & 0xffff) | 0x10ull << 16 | 0x8eull << 40 | (at >> 16 & 0xffff) << 48;
		idt[2 * i + 1] = at >> 32;
	}
	memcpy(&line, bp + BP_CMDLINE, 4);
	cmdline = (const char *)(uint64_t)line;
}

void guest_exception(uint64_t vector, uint64_t code, uint64_t rip, uint64_t cr2)
{
	report("no-exception", false, "vector %lu, error code 0x%lx, at 0x%lx, CR2 0x%lx", vector,
	       code, rip, cr2);
	finish();
}
