/* SPDX-License-Identifier: Apache-2.0 */
/*
 * protections.c: from sites and tables to "can this kernel carry that protection".
 * The needs of each protection are one row; what is missing becomes the reason.
 */
#include "parts.h"

#include <stdio.h>

#define NEEDS_MAX 4

struct row {
	const char *name;
	bool needs_padding;
	const char *sites[NEEDS_MAX];  /* all of these */
	const char *or_site;	       /* or this one instead of the first */
	const char *ranges[NEEDS_MAX]; /* and all of these */
};

static const struct row x86_rows[] = {
	{"placement-modules", true, {"module_alloc"}, NULL, {NULL}},
	{"seal",
	 true,
	 {"mark_rodata_ro", "text_poke_memcpy", "text_poke_memcpy_call"},
	 NULL,
	 {"text", "rodata"}},
	{"kstack", true, {"syscall64"}, NULL, {NULL}},
	{"fortify-report", true, {"fortify_report"}, "fortify_panic", {NULL}},
};

static const struct row arm64_rows[] = {
	{"placement-modules", true, {"module_alloc"}, NULL, {NULL}},
	{"seal",
	 true,
	 {"mark_rodata_ro", "insn_write"},
	 NULL,
	 {"text", "rodata", "copy_to_kernel_nofault"}},
	{"kstack", true, {"syscall64"}, NULL, {NULL}},
	{"fortify-report", true, {"fortify_report"}, "fortify_panic", {NULL}},
};

static struct rv_protection *add(struct rv_image *img, const char *name)
{
	struct rv_protection *p;

	if (img->protection_count == RV_PROTECTIONS_MAX)
		img->protection_count--;
	p = &img->protections[img->protection_count++];
	memset(p, 0, sizeof(*p));
	snprintf(p->name, sizeof(p->name), "%s", name);
	return p;
}

static void site_append(struct rv_protection *p, const struct rv_site *s)
{
	size_t n = strlen(p->site);

	snprintf(p->site + n, sizeof(p->site) - n, "%s%.40s+0x%x", n ? ", " : "", s->symbol,
		 s->symbol_off);
}

static void row_check(struct rv_image *img, const struct row *r)
{
	struct rv_protection *p = add(img, r->name);
	int i;

	p->supported = true;
	for (i = 0; i < NEEDS_MAX && r->sites[i]; i++) {
		const struct rv_site *s = rv_image_site(img, r->sites[i]);

		if (i == 0 && r->or_site && (!s || !s->found))
			s = rv_image_site(img, r->or_site);
		if (s && s->found) {
			site_append(p, s);
			continue;
		}
		p->supported = false;
		snprintf(p->reason, sizeof(p->reason), "%.30s: %.110s", s ? s->name : r->sites[i],
			 s ? s->reason : "not looked for");
		break;
	}
	for (i = 0; i < NEEDS_MAX && r->ranges[i] && p->supported; i++) {
		const struct rv_range *need = rv_image_range(img, r->ranges[i]);

		p->supported = need && need->found;
		if (!p->supported)
			snprintf(p->reason, sizeof(p->reason), "%.30s: %.110s", r->ranges[i],
				 need ? need->reason : "not looked for");
	}
	if (p->supported && r->needs_padding && !img->padding.found) {
		p->supported = false;
		snprintf(p->reason, sizeof(p->reason), "no padding in .text: %.110s",
			 img->padding.reason);
	}
}

/*
 * A 32-bit entry that exists and whose call was not found would be a way around the
 * stack offset, so it counts as missing. One that the kernel was built without does not.
 */
static void kstack_check_32(struct rv_image *img)
{
	static const char *const entries[] = {"syscall32_fast", "sysenter32", "int80", "syscall32"};
	struct rv_protection *p = NULL;
	size_t i;

	for (i = 0; i < img->protection_count; i++)
		if (strcmp(img->protections[i].name, "kstack") == 0)
			p = &img->protections[i];
	for (i = 0; p && p->supported && i < sizeof(entries) / sizeof(entries[0]); i++) {
		const struct rv_site *s = rv_image_site(img, entries[i]);

		if (!s || s->found || strncmp(s->reason, "no symbol ", 10) == 0)
			continue;
		p->supported = false;
		snprintf(p->reason, sizeof(p->reason), "%.30s: %.110s", s->name, s->reason);
	}
}

/* arm64: the guest picks its base from a seed in the device tree, if it was built to. */
static void placement_base_arm64(struct rv_image *img, struct rv_protection *p)
{
	static const char prop[] = "kaslr-seed"; /* arch/arm64/kernel/kaslr.c, pi/kaslr_early.c */

	if (!img->info.has_relocs)
		snprintf(p->reason, sizeof(p->reason), "no relocations: it cannot move itself");
	else if (!memmem(img->flat, img->info.flat_size, prop, sizeof(prop)))
		snprintf(p->reason, sizeof(p->reason),
			 "it does not read /chosen/kaslr-seed (no CONFIG_RANDOMIZE_BASE)");
	else
		p->supported = true;
	snprintf(p->site, sizeof(p->site), "/chosen/kaslr-seed");
}

static void placement_base(struct rv_image *img)
{
	struct rv_protection *p = add(img, "placement-base");

	if (img->info.arch == RV_ARCH_ARM64) {
		placement_base_arm64(img, p);
		return;
	}
	p->supported = img->info.has_relocs;
	if (p->supported)
		snprintf(p->site, sizeof(p->site), "%u relocations",
			 img->info.relocs[0] + img->info.relocs[1] + img->info.relocs[2]);
	else
		snprintf(p->reason, sizeof(p->reason),
			 "no relocation tables behind the ELF: built "
			 "without CONFIG_RELOCATABLE, or a bare vmlinux");
}

static void stack_traces(struct rv_image *img)
{
	struct rv_protection *p = add(img, "stack-traces");
	const struct rv_padding *pad = &img->padding;

	p->supported = pad->found && (pad->has_orc || img->info.arch == RV_ARCH_ARM64);
	if (!p->supported)
		snprintf(p->reason, sizeof(p->reason), "%.150s", pad->reason);
	else if (pad->has_orc)
		snprintf(p->site, sizeof(p->site), "orc entry at 0x%llx",
			 (unsigned long long)pad->orc_va);
	else
		snprintf(p->site, sizeof(p->site), "frame records, nothing to correct");
}

void rv_protections_find(struct rv_image *img)
{
	bool x86 = img->info.arch == RV_ARCH_X86_64;
	const struct row *rows = x86 ? x86_rows : arm64_rows;
	size_t n = x86 ? sizeof(x86_rows) / sizeof(x86_rows[0])
		       : sizeof(arm64_rows) / sizeof(arm64_rows[0]);
	size_t i;

	placement_base(img);
	for (i = 0; i < n; i++)
		row_check(img, &rows[i]);
	kstack_check_32(img);
	stack_traces(img);
}
