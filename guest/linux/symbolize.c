/* SPDX-License-Identifier: Apache-2.0 */
/* symbolize.c: a name for an address, or the address itself. Never nothing. */
#include "linux/linux.h"

#include <stdio.h>
#include <string.h>

/* The direct map covers at most 64 TiB with 4 levels and 32 PiB with 5
 * (Documentation/arch/x86/x86_64/mm.rst). */
#define DIRECT_MAP_MAX (1ull << 55)

/* Names come out of guest memory: a terminal must survive them. */
static void printable(char *s)
{
	for (; *s; s++)
		if (*s < 0x20 || *s > 0x7e)
			*s = '?';
}

/*
 * A module's names are what the guest says. One with a blank or a bracket in it could
 * finish the line that a person reads, and begin another story.
 */
static void one_word(char *s)
{
	for (; *s; s++)
		if (*s <= 0x20 || *s > 0x7e || strchr("[]()+", *s))
			*s = '?';
}

static int image_symbol(const struct rv_kernel *k, uint64_t va, const char *suffix, char *buf,
			size_t len)
{
	struct rv_symbol s;
	uint64_t off;
	rv_gpa gpa;

	if (!k->cap[RV_KCAP_SYMBOLS].ok || rv_kernel_image_gpa(k, va, &gpa) ||
	    rv_kallsyms_nearest(&k->syms, va, &s, &off, NULL))
		return RV_ENOTMAPPED;
	/* A name that is not from the image (a per-CPU offset) says nothing here. */
	if (rv_kernel_image_gpa(k, s.va, &gpa))
		return RV_ENOTMAPPED;
	snprintf(buf, len, "%s+0x%llx%s", s.name, (unsigned long long)off, suffix);
	printable(buf);
	return RV_OK;
}

static int module_symbol(const struct rv_kernel *k, uint64_t va, const char *suffix, char *buf,
			 size_t len)
{
	char name[RV_KSYM_NAME_LEN];
	struct rv_module_mem part;
	struct rv_module m;
	uint64_t off;

	if (rv_module_find(k, va, &m, &part, NULL))
		return RV_ENOTMAPPED;
	one_word(m.name);
	if (rv_module_symbol(k, &m, va, name, sizeof(name), &off, NULL)) {
		snprintf(buf, len, "[%s %s]+0x%llx%s", m.name, rv_section_name(part.kind),
			 (unsigned long long)(va - part.base), suffix);
	} else {
		one_word(name);
		snprintf(buf, len, "%s+0x%llx [%s]%s", name, (unsigned long long)off, m.name,
			 suffix);
	}
	printable(buf);
	return RV_OK;
}

/* The physical address behind a direct-map address, by the kernel's own base. */
static bool direct_map(const struct rv_kernel *k, uint64_t va, uint64_t *gpa)
{
	uint64_t base;

	if (!k->sym_page_offset_base ||
	    rv_kernel_image_read(k, k->sym_page_offset_base, &base, sizeof(base), NULL))
		return false;
	if (!(base >> 63) || va < base || va - base >= DIRECT_MAP_MAX)
		return false;
	*gpa = va - base;
	return true;
}

static uint64_t image_va(const struct rv_kernel *k, uint64_t gpa)
{
	return gpa - k->image_gpa + k->link_base + k->slide;
}

/* The part of the image that is given away after boot and holds va; RV_GAP_COUNT: none. */
static int gap_of(const struct rv_kernel *k, uint64_t va)
{
	int i = 0;

	while (i < RV_GAP_COUNT &&
	       !(k->gap[i].start && va >= k->gap[i].start && va < k->gap[i].end))
		i++;
	return i;
}

/*
 * What a physical address is called where the kernel itself has it mapped. The image
 * comes first, since its place is the monitor's knowledge and not the guest's word;
 * except where the kernel gives memory away, which may hold a module by now.
 */
static int gpa_symbol(const struct rv_kernel *k, uint64_t gpa, const char *suffix, char *buf,
		      size_t len)
{
	uint64_t va, in_image = image_va(k, gpa);
	int gap = gap_of(k, in_image);

	if (gap == RV_GAP_COUNT && !image_symbol(k, in_image, suffix, buf, len))
		return RV_OK;
	if (!rv_module_find_gpa(k, gpa, &va, NULL))
		return module_symbol(k, va, suffix, buf, len);
	/* Before it is given away, the init part is what its symbols say. */
	if (gap == RV_GAP_INIT)
		return image_symbol(k, in_image, suffix, buf, len);
	return RV_ENOTMAPPED;
}

int rv_kernel_symbolize(const struct rv_kernel *k, uint64_t va, char *buf, size_t len)
{
	uint64_t gpa;
	uint8_t byte;

	if (!image_symbol(k, va, "", buf, len))
		return RV_OK;
	if (va >> 63 && !module_symbol(k, va, "", buf, len))
		return RV_OK;
	/* Vmalloc and the rest lie above the direct map as well: only addresses with
	 * RAM behind them are taken for it. */
	if (direct_map(k, va, &gpa) && !k->src->read_phys(k->src, rv_gpa_of(gpa), &byte, 1)) {
		if (!gpa_symbol(k, gpa, " (direct map)", buf, len))
			return RV_OK;
		snprintf(buf, len, "0x%llx (direct map)", (unsigned long long)va);
		return RV_ENOTMAPPED;
	}
	snprintf(buf, len, "0x%llx", (unsigned long long)va);
	return RV_ENOTMAPPED;
}

int rv_kernel_symbolize_gpa(const struct rv_kernel *k, uint64_t gpa, char *buf, size_t len)
{
	if (!gpa_symbol(k, gpa, "", buf, len))
		return RV_OK;
	snprintf(buf, len, "gpa 0x%llx", (unsigned long long)gpa);
	return RV_ENOTMAPPED;
}
