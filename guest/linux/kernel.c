/* SPDX-License-Identifier: Apache-2.0 */
/* kernel.c: what is known of a guest's kernel as a whole, and reading through it. */
#include "linux/linux.h"

#include "base/cursor.h"

#include <string.h>

/*
 * Physical reads for one question. The dearest honest one is a symbol of a large
 * module (amdgpu has some 40,000 symbols; each better match is read): five times that.
 */
#define DEFAULT_BUDGET 262144u
/* A walk of five levels with one read each, for trying a root table. */
#define ROOT_BUDGET 8u
/* More than any kernel image in memory (a 6.12 one takes 56 MiB). */
#define MAX_IMAGE (1ull << 30)

static const char *const cap_names[RV_KCAP_COUNT] = {
	[RV_KCAP_SYMBOLS] = "symbols", [RV_KCAP_TYPES] = "types",
	[RV_KCAP_MODULES] = "modules", [RV_KCAP_MODULE_SYMS] = "module-symbols",
	[RV_KCAP_TASK] = "task",       [RV_KCAP_DIRECT_MAP] = "direct-map",
	[RV_KCAP_ORC] = "unwind",      [RV_KCAP_MODULE_ORC] = "module-unwind",
};

static const char *const section_names[RV_SECT_COUNT] = {
	[RV_SECT_TEXT] = "text",
	[RV_SECT_DATA] = "data",
	[RV_SECT_RODATA] = "rodata",
	[RV_SECT_RO_AFTER_INIT] = "ro_after_init",
	[RV_SECT_INIT_TEXT] = "init_text",
	[RV_SECT_INIT_DATA] = "init_data",
	[RV_SECT_INIT_RODATA] = "init_rodata",
	[RV_SECT_UNKNOWN] = "unknown",
};

const char *rv_kernel_cap_name(enum rv_kernel_cap c)
{
	return (unsigned)c < RV_KCAP_COUNT ? cap_names[c] : "unknown";
}

const char *rv_section_name(enum rv_section s)
{
	return (unsigned)s < RV_SECT_COUNT ? section_names[s] : "unknown";
}

const struct rv_kernel_cap_state *rv_kernel_cap(const struct rv_kernel *k, enum rv_kernel_cap c)
{
	static const struct rv_kernel_cap_state none = {false, "no such capability"};

	return (unsigned)c < RV_KCAP_COUNT ? &k->cap[c] : &none;
}

void rv_kernel_set_regs(struct rv_kernel *k, const struct rv_paging_regs *regs)
{
	k->regs = *regs;
}

static int check_params(const struct rv_kernel_params *p, struct rv_err *err)
{
	if (!p->source || !p->source->read_phys)
		return rv_err_set(err, RV_EINVAL, "kernel", "no memory source");
	if (!p->image_size || p->image_size > MAX_IMAGE)
		return rv_err_set(err, RV_EINVAL, "kernel", "image size 0x%llx out of range",
				  (unsigned long long)p->image_size);
	if (p->image_gpa + (p->image_size - 1) < p->image_gpa ||
	    p->link_base + p->slide + (p->image_size - 1) < p->link_base + p->slide)
		return rv_err_at(err, RV_EINVAL, p->image_gpa, "kernel", "the image wraps");
	/* A table of absolute addresses was corrected by the kernel itself: slide 0. */
	if (p->kallsyms && p->kallsyms->slide != p->slide &&
	    !(p->kallsyms->lay.encoding == RV_KSYM_ABSOLUTE && !p->kallsyms->slide))
		return rv_err_at(err, RV_EINVAL, p->kallsyms->slide, "kernel",
				 "kallsyms view has another slide than 0x%llx",
				 (unsigned long long)p->slide);
	return RV_OK;
}

/* The BTF bytes inside the flat image; a kernel without is no failure. */
static void find_types(struct rv_kernel *k, const struct rv_kernel_params *p)
{
	struct rv_kernel_cap_state *c = &k->cap[RV_KCAP_TYPES];
	struct rv_err err = {0};
	uint64_t off = p->btf_va - k->link_base;

	if (!p->btf_va || !k->flat) {
		strcpy(c->missing, "no BTF in the image");
		return;
	}
	if (off > k->flat_len || p->btf_size > k->flat_len - off) {
		strcpy(c->missing, "BTF lies outside the image");
		return;
	}
	if (rv_btf_types_init(&k->types, k->flat + off, (size_t)p->btf_size, &err)) {
		memcpy(c->missing, err.what, sizeof(c->missing) - 1);
		memset(&k->types, 0, sizeof(k->types));
		return;
	}
	c->ok = true;
}

int rv_kernel_init(struct rv_kernel *k, const struct rv_kernel_params *p, struct rv_err *err)
{
	int rc;

	memset(k, 0, sizeof(*k));
	rc = check_params(p, err);
	if (rc)
		return rc;
	k->src = p->source;
	k->regs = p->regs;
	k->link_base = p->link_base;
	k->slide = p->slide;
	k->image_gpa = p->image_gpa;
	k->image_size = p->image_size;
	k->budget = p->read_budget ? p->read_budget : DEFAULT_BUDGET;
	k->flat = p->flat;
	k->flat_len = p->flat ? p->flat_len : 0;
	if (p->kallsyms) {
		k->syms = *p->kallsyms;
		k->cap[RV_KCAP_SYMBOLS].ok = true;
		if (!k->flat) {
			k->flat = p->kallsyms->mem;
			k->flat_len = p->kallsyms->len;
		}
	} else {
		strcpy(k->cap[RV_KCAP_SYMBOLS].missing, "no kallsyms in the image");
	}
	find_types(k, p);
	rv_kernel_probe(k);
	return RV_OK;
}

int rv_kernel_image_gpa(const struct rv_kernel *k, uint64_t va, rv_gpa *out)
{
	uint64_t off = va - (k->link_base + k->slide);

	if (off >= k->image_size)
		return RV_ENOTMAPPED;
	*out = rv_gpa_of(k->image_gpa + off);
	return RV_OK;
}

int rv_kernel_image_read(const struct rv_kernel *k, uint64_t va, void *dst, size_t len,
			 struct rv_err *err)
{
	rv_gpa first, last;
	int rc;

	if (!len)
		return RV_OK;
	if (rv_kernel_image_gpa(k, va, &first) || rv_kernel_image_gpa(k, va + (len - 1), &last) ||
	    last.v < first.v)
		return rv_err_at(err, RV_ENOTMAPPED, va, "kernel", "not in the kernel image");
	rc = k->src->read_phys(k->src, first, dst, len);
	if (rc)
		return rv_err_at(err, rc, first.v, "kernel", "reading the kernel image");
	return RV_OK;
}

/* Does this root table map the image to where it is? */
static bool root_maps_image(const struct rv_kernel *k, struct rv_view *v, uint64_t root)
{
	struct rv_translation t;

	v->regs.x86.cr3 = root;
	v->budget = ROOT_BUDGET;
	return !rv_view_translate(v, rv_gva_of(k->link_base + k->slide), &t, NULL) &&
	       t.gpa.v == k->image_gpa;
}

int rv_kernel_view(const struct rv_kernel *k, struct rv_view *out, struct rv_err *err)
{
	rv_gpa root;
	int rc = rv_view_init(out, k->src, &k->regs, k->budget, err);

	if (rc)
		return rc;
	/* The kernel's own table holds every kernel mapping; CR3 may be a process' user
	 * half. Before startup_64 has filled it in it maps nothing: then CR3 it is. */
	if (k->regs.arch == RV_ARCH_X86_64 && k->sym_root_table &&
	    !rv_kernel_image_gpa(k, k->sym_root_table, &root) && !root_maps_image(k, out, root.v))
		out->regs.x86.cr3 = k->regs.x86.cr3;
	out->budget = k->budget;
	return RV_OK;
}
