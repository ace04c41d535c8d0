/* SPDX-License-Identifier: Apache-2.0 */
/* fake_kernel.c: a kernel image with symbols, types, modules and a task, for unit tests. */
#include "fake_kernel.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

uint64_t fk_mod_gpa(uint32_t n, uint64_t off)
{
	return FK_MOD_GPA + n * FK_MOD_STEP + off;
}

uint64_t fk_mod_va(uint32_t n, uint64_t off)
{
	return FK_MOD_VA + n * FK_MOD_STEP + off;
}

uint64_t fk_img_gpa(uint64_t off)
{
	return FK_GPA + off;
}

uint64_t fk_img_va(uint64_t off)
{
	return FK_BASE + off;
}

/* --- kallsyms, in the absolute-percpu encoding, one token per character -------- */

struct fk_sym {
	uint64_t value; /* offset in the image, or the absolute value itself */
	char type;
	const char *name;
};

static const struct fk_sym symbols[] = {
	{FK_CURRENT, 'A', "current_task"}, /* "pcpu_hot" in the new flavour */
	{0, 'T', "_text"},
	{FK_VFS_READ, 'T', "vfs_read"},
	{FK_KSYS_READ, 'T', "ksys_read"},
	{FK_ENTRY, 'T', "entry_SYSCALL_64"},
	{FK_TEXT_END, 'T', "_etext"},
	{FK_RODATA, 'R', "__start_rodata"},
	{FK_MODULES, 'd', "modules"},
	{FK_PAGE_OFFSET, 'D', "page_offset_base"},
	{FK_INIT_TASK, 'D', "init_task"},
	{FK_ORC_IP, 'R', "__start_orc_unwind_ip"},
	{FK_ORC_IP + 4 * FK_ORC_MAX, 'R', "__stop_orc_unwind_ip"},
	{FK_ORC, 'R', "__start_orc_unwind"},
	{FK_ORC + 6 * FK_ORC_MAX, 'R', "__stop_orc_unwind"},
	{FK_BTF, 'R', "__start_BTF"},
};
#define NSYMS (sizeof(symbols) / sizeof(symbols[0]))

static void put_kallsyms(struct fake_kernel *fk)
{
	struct rv_kallsyms_layout *l = &fk->syms.lay;
	uint8_t *flat = fk->f.ram + FK_GPA;
	uint64_t at = FK_KALLSYMS;

	l->encoding = RV_KSYM_ABSOLUTE_PERCPU;
	l->num_syms = NSYMS;
	l->relative_base = FK_LINK;
	l->marker_size = 4;
	l->token_table = at;
	l->token_index = at + 1024;
	l->markers = at + 2048;
	l->offsets = at + 2304;
	l->names = at + 3072;
	for (uint16_t c = 0; c < 256; c++) {
		uint16_t off = (uint16_t)(c * 2);

		flat[l->token_table + off] = (uint8_t)c;
		memcpy(flat + l->token_index + off, &off, 2);
	}
	at = l->names;
	for (size_t i = 0; i < NSYMS; i++) {
		const char *name = symbols[i].name;
		int32_t v = symbols[i].type == 'A' ? (int32_t)symbols[i].value
						   : -1 - (int32_t)symbols[i].value;

		if (fk->flavour == FK_NEW && !strcmp(name, "current_task"))
			name = "pcpu_hot";
		memcpy(flat + l->offsets + i * 4, &v, 4);
		flat[at++] = (uint8_t)(strlen(name) + 1);
		flat[at++] = (uint8_t)symbols[i].type;
		memcpy(flat + at, name, strlen(name));
		at += strlen(name);
	}
	l->names_len = at - l->names;
	fk->syms.mem = flat;
	fk->syms.len = FK_SIZE;
	fk->syms.link_base = FK_LINK;
	fk->syms.slide = FK_SLIDE;
}

/* --- types ---------------------------------------------------------------------- */

static void struct_orc(struct fake_btf *b, bool new, uint32_t t_u16, uint32_t t_int)
{
	fake_btf_type(b, "orc_entry", RV_BTF_STRUCT | 0x80000000u, 6, 6);
	fake_btf_member(b, "sp_offset", t_u16, 0);
	fake_btf_member(b, "bp_offset", t_u16, 16);
	fake_btf_member(b, "sp_reg", t_int, 4u << 24 | 32);
	fake_btf_member(b, "bp_reg", t_int, 4u << 24 | 36);
	fake_btf_member(b, "type", t_int, (new ? 3u : 2u) << 24 | 40);
	fake_btf_member(b, new ? "signal" : "end", t_int, 1u << 24 | (new ? 43 : 42));
}

static void struct_module(struct fake_btf *b, bool new, const uint32_t *t)
{
	enum { T_INT, T_PTR, T_LIST, T_NAME, T_AREA, T_ARCH };

	fake_btf_type(b, "module", RV_BTF_STRUCT, new ? 6 : 7, FK_M_SIZE);
	fake_btf_member(b, "state", t[T_INT], FK_M_STATE * 8);
	fake_btf_member(b, "list", t[T_LIST], FK_M_LIST * 8);
	fake_btf_member(b, "name", t[T_NAME], FK_M_NAME * 8);
	fake_btf_member(b, "kallsyms", t[T_PTR], FK_M_KALLSYMS * 8);
	fake_btf_member(b, new ? "mem" : "core_layout", t[T_AREA], FK_M_MEM * 8);
	if (!new)
		fake_btf_member(b, "init_layout", t[T_AREA], FK_M_INIT * 8);
	fake_btf_member(b, "arch", t[T_ARCH], FK_M_ARCH * 8);
}

static uint32_t struct_area(struct fake_btf *b, bool new, uint32_t t_int, uint32_t t_ptr)
{
	uint32_t id = fake_btf_type(b, new ? "module_memory" : "module_layout", RV_BTF_STRUCT,
				    new ? 2 : 5, new ? 16 : 24);

	fake_btf_member(b, "base", t_ptr, 0);
	fake_btf_member(b, "size", t_int, 64);
	if (new)
		return fake_btf_array(b, id, t_int, 7);
	fake_btf_member(b, "text_size", t_int, 96);
	fake_btf_member(b, "ro_size", t_int, 128);
	fake_btf_member(b, "ro_after_init_size", t_int, 160);
	return id;
}

static void put_types(struct fake_kernel *fk)
{
	static struct fake_btf b;
	bool new = fk->flavour == FK_NEW;
	uint32_t t_int, t_char, t_ptr, t_u16, t_list, t_name, t_comm, t_area, t_arch, id;
	size_t len;

	fake_btf_init(&b);
	t_int = fake_btf_int(&b, "unsigned int", 4);
	t_char = fake_btf_int(&b, "char", 1);
	t_u16 = fake_btf_int(&b, "short", 2);
	t_ptr = fake_btf_type(&b, NULL, RV_BTF_PTR, 0, 0);
	t_list = fake_btf_type(&b, "list_head", RV_BTF_STRUCT, 2, 16);
	fake_btf_member(&b, "next", t_ptr, 0);
	fake_btf_member(&b, "prev", t_ptr, 64);
	t_name = fake_btf_array(&b, t_char, t_int, 56);
	t_comm = fake_btf_array(&b, t_char, t_int, 16);
	t_area = struct_area(&b, new, t_int, t_ptr);
	t_arch = fake_btf_type(&b, "mod_arch_specific", RV_BTF_STRUCT, 3, 24);
	fake_btf_member(&b, "num_orcs", t_int, 0);
	fake_btf_member(&b, "orc_unwind_ip", t_ptr, 64);
	fake_btf_member(&b, "orc_unwind", t_ptr, 128);
	struct_module(&b, new, (uint32_t[]){t_int, t_ptr, t_list, t_name, t_area, t_arch});
	fake_btf_type(&b, "mod_kallsyms", RV_BTF_STRUCT, 4, 32);
	fake_btf_member(&b, "symtab", t_ptr, 0);
	fake_btf_member(&b, "num_symtab", t_int, 64);
	fake_btf_member(&b, "strtab", t_ptr, 128);
	fake_btf_member(&b, "typetab", t_ptr, 192);
	fake_btf_type(&b, "task_struct", RV_BTF_STRUCT, 4, 64);
	fake_btf_member(&b, "stack", t_ptr, 64);
	fake_btf_member(&b, "pid", t_int, 128);
	fake_btf_member(&b, "tgid", t_int, 160);
	fake_btf_member(&b, "comm", t_comm, 192);
	if (new) {
		id = fake_btf_type(&b, NULL, RV_BTF_STRUCT, 2, 16);
		fake_btf_member(&b, "count", t_ptr, 0);
		fake_btf_member(&b, "current_task", t_ptr, 64);
		fake_btf_type(&b, "pcpu_hot", RV_BTF_STRUCT, 1, 16);
		fake_btf_member(&b, NULL, id, 0);
		fake_btf_type(&b, "mod_mem_type", RV_BTF_ENUM, 3, 4);
		fake_btf_enumerator(&b, "MOD_TEXT", 0);
		fake_btf_enumerator(&b, "MOD_DATA", 1);
		fake_btf_enumerator(&b, "MOD_INVALID", -1);
	}
	struct_orc(&b, new, t_u16, t_int);
	len = fake_btf_emit(&b, fk->f.ram + FK_GPA + FK_BTF, FK_KALLSYMS - FK_BTF);
	fk->params.btf_va = FK_LINK + FK_BTF;
	fk->params.btf_size = len;
}

/* --- the whole ---------------------------------------------------------------------- */

static void put_task(struct fake_kernel *fk)
{
	uint64_t task = fk_img_gpa(FK_INIT_TASK), cur = fk_img_gpa(FK_PERCPU + FK_CURRENT);

	fake_put_u64(&fk->f, task + 8, 0xffffc90000000000ull);
	fake_put_u32(&fk->f, task + 16, 42);
	fake_put_u32(&fk->f, task + 20, 41);
	fake_put(&fk->f, task + 24,
		 "sh\x1b"
		 "ell",
		 7);
	fake_put_u64(&fk->f, cur + (fk->flavour == FK_NEW ? 8 : 0), fk_img_va(FK_INIT_TASK));
}

void fk_init(struct fake_kernel *fk, enum fk_flavour flavour)
{
	struct rv_kernel_params *p = &fk->params;
	int rc;

	memset(fk, 0, sizeof(*fk));
	fk->flavour = flavour;
	fake_init(&fk->f, 4);
	for (uint64_t off = 0; off < FK_SIZE; off += 4096)
		fake_map(&fk->f, FK_BASE + off, FK_GPA + off, 1, FAKE_RW);
	fake_map(&fk->f, FK_DIRECT, 0, 2, FAKE_RW);
	fake_map(&fk->f, FK_DIRECT + 0x200000, 0x200000, 2, FAKE_RW);
	put_kallsyms(fk);
	if (flavour != FK_NOTYPES)
		put_types(fk);
	put_task(fk);
	fake_put_u64(&fk->f, fk_img_gpa(FK_PAGE_OFFSET), FK_DIRECT);
	fake_put_u64(&fk->f, fk_img_gpa(FK_MODULES), fk_img_va(FK_MODULES));
	p->source = &fk->f.src.base;
	p->regs = fk->f.regs;
	p->kallsyms = &fk->syms;
	p->link_base = FK_LINK;
	p->slide = FK_SLIDE;
	p->image_gpa = FK_GPA;
	p->image_size = FK_SIZE;
	rc = rv_kernel_init(&fk->k, p, NULL);
	assert(!rc);
}

void fk_deinit(struct fake_kernel *fk)
{
	fake_deinit(&fk->f);
}

static void put_sym(struct fake *f, uint32_t mod, uint32_t i, uint32_t name, uint8_t info,
		    uint64_t va)
{
	uint64_t at = fk_mod_gpa(mod, FK_MOD_SYMTAB) + i * 24;

	fake_put_u32(f, at, name);
	fake_put_u32(f, at + 4, info | 1u << 16);
	fake_put_u64(f, at + 8, va);
	fake_put_u64(f, at + 16, 4);
}

static void put_area(struct fake_kernel *fk, uint32_t n)
{
	uint64_t at = fk_mod_gpa(n, FK_MOD_STRUCT) + FK_M_MEM;

	fake_put_u64(&fk->f, at, fk_mod_va(n, 0));
	if (fk->flavour == FK_NEW) { /* text, data */
		fake_put_u32(&fk->f, at + 8, 0x1000);
		fake_put_u64(&fk->f, at + 16, fk_mod_va(n, 0x1000));
		fake_put_u32(&fk->f, at + 24, 0x7000);
		return;
	}
	fake_put_u32(&fk->f, at + 8, 0x8000);  /* size */
	fake_put_u32(&fk->f, at + 12, 0x1000); /* text */
	fake_put_u32(&fk->f, at + 16, 0x1000); /* + rodata: none */
	fake_put_u32(&fk->f, at + 20, 0x1000);
}

void fk_add_module(struct fake_kernel *fk, const char *name)
{
	uint32_t n = fk->nmods++;
	uint64_t mod = fk_mod_gpa(n, FK_MOD_STRUCT), ks = fk_mod_gpa(n, FK_MOD_KS);
	uint64_t prev = n ? fk_mod_gpa(n - 1, FK_MOD_STRUCT) + FK_M_LIST : fk_img_gpa(FK_MODULES);
	struct fake *f = &fk->f;
	char strs[64] = {0};
	int a, b;

	for (uint64_t off = 0; off < FK_MOD_STEP; off += 4096)
		fake_map(f, fk_mod_va(n, off), fk_mod_gpa(n, off), 1, FAKE_RW);
	fake_put_u64(f, prev, fk_mod_va(n, FK_MOD_STRUCT) + FK_M_LIST);
	fake_put_u64(f, mod + FK_M_LIST, fk_img_va(FK_MODULES));
	fake_put(f, mod + FK_M_NAME, name, strlen(name) + 1);
	fake_put_u64(f, mod + FK_M_KALLSYMS, fk_mod_va(n, FK_MOD_KS));
	put_area(fk, n);
	a = snprintf(strs + 1, 30, "%s_fn", name) + 2;
	b = a + snprintf(strs + a, 30, "%s_var", name) + 1;
	memcpy(strs + b, "$x", 3);
	fake_put(f, fk_mod_gpa(n, FK_MOD_STRTAB), strs, sizeof(strs));
	fake_put_u64(f, ks, fk_mod_va(n, FK_MOD_SYMTAB));
	fake_put_u32(f, ks + 8, 6);
	fake_put_u64(f, ks + 16, fk_mod_va(n, FK_MOD_STRTAB));
	put_sym(f, n, 1, 1, 2, fk_mod_va(n, 0x100));		/* function */
	put_sym(f, n, 2, (uint32_t)a, 1, fk_mod_va(n, 0x1010)); /* object */
	put_sym(f, n, 3, (uint32_t)b, 2, fk_mod_va(n, 0x110));	/* "$x" */
	put_sym(f, n, 4, 0, 3, fk_mod_va(n, 0x120));		/* section */
	put_sym(f, n, 5, 63, 2, fk_mod_va(n, 0x118));		/* "" */
}
