/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probe.c: which structures this kernel has and where their members are.
 *
 * Every decision is made by looking for the member or symbol itself; version
 * numbers are not read, since distributions carry changes back. What is not
 * found takes its capability away, with a sentence that names it.
 */
#include "linux/linux.h"

#include <stdio.h>
#include <string.h>

/* Largest struct module accepted: 0x500 in 6.12; 4 KiB leaves room for debug options. */
#define MAX_MODULE_SIZE 4096u
/* Largest offset that is believed: task_struct with every option takes some 16 KiB. */
#define MAX_OFFSET 65536u

/* --- symbols ------------------------------------------------------------- */

enum {
	W_MODULES,
	W_PAGE_OFFSET_BASE,
	W_ROOT,
	W_CURRENT_TASK,
	W_PCPU_HOT,
	W_ORC_IP,
	W_ORC_IP_END,
	W_ORC,
	W_ORC_END,
	W_GAPS, /* start and end of each, in the order of enum rv_image_gap */
	W_COUNT = W_GAPS + 2 * RV_GAP_COUNT
};

/*
 * Namesakes at different addresses: which is meant cannot be told, so none is. A
 * variable's name on a function is somebody else's; the linker's marks have any type.
 */
static uint64_t unique(const struct rv_symbol_want *w)
{
	bool data = w->type && strchr("aAbBdDrRvV", w->type);
	bool marker = w->name[0] == '_';

	return w->count && w->va == w->last && (data || marker) ? w->va : 0;
}

static void probe_symbols(struct rv_kernel *k)
{
	struct rv_symbol_want w[W_COUNT] = {
		[W_MODULES] = {.name = "modules"},
		[W_PAGE_OFFSET_BASE] = {.name = "page_offset_base"},
		[W_ROOT] = {.name = "init_top_pgt"},
		[W_CURRENT_TASK] = {.name = "current_task"},
		[W_PCPU_HOT] = {.name = "pcpu_hot"},
		[W_ORC_IP] = {.name = "__start_orc_unwind_ip"},
		[W_ORC_IP_END] = {.name = "__stop_orc_unwind_ip"},
		[W_ORC] = {.name = "__start_orc_unwind"},
		[W_ORC_END] = {.name = "__stop_orc_unwind"},
		/* mark_rodata_ro() and free_initmem(), arch/x86/mm/init_64.c and init.c */
		[W_GAPS + 0] = {.name = "_etext"},
		[W_GAPS + 1] = {.name = "__start_rodata"},
		[W_GAPS + 2] = {.name = "__end_rodata"},
		[W_GAPS + 3] = {.name = "_sdata"},
		[W_GAPS + 4] = {.name = "__init_begin"},
		[W_GAPS + 5] = {.name = "__init_end"},
	};
	struct rv_kernel_offsets *o = &k->off;

	if (!k->cap[RV_KCAP_SYMBOLS].ok)
		return;
	if (rv_kallsyms_resolve(&k->syms, w, W_COUNT, NULL)) {
		k->cap[RV_KCAP_SYMBOLS].ok = false;
		strcpy(k->cap[RV_KCAP_SYMBOLS].missing, "kallsyms is damaged");
		return;
	}
	k->sym_modules = unique(&w[W_MODULES]);
	k->sym_page_offset_base = unique(&w[W_PAGE_OFFSET_BASE]);
	k->sym_root_table = unique(&w[W_ROOT]);
	k->orc.ip = unique(&w[W_ORC_IP]);
	k->orc.ip_end = unique(&w[W_ORC_IP_END]);
	k->orc.entry = unique(&w[W_ORC]);
	k->orc.entry_end = unique(&w[W_ORC_END]);
	for (int i = 0; i < RV_GAP_COUNT; i++) {
		k->gap[i].start = unique(&w[W_GAPS + 2 * i]);
		k->gap[i].end = unique(&w[W_GAPS + 2 * i + 1]);
	}
	/*
	 * v6.2 gathered hot per-CPU variables in pcpu_hot (e57ef2ed97c1 "x86: Put hot
	 * per CPU variables into a struct"), v6.15 took it apart again. A per-CPU
	 * symbol is an offset before v6.15 and an address after: in both cases GS
	 * base + symbol is the variable.
	 */
	k->has_current = false;
	if (unique(&w[W_CURRENT_TASK])) {
		k->sym_current = w[W_CURRENT_TASK].va;
		k->has_current = true;
	} else if (unique(&w[W_PCPU_HOT]) && o->hot_current != RV_KERNEL_NO_OFF) {
		k->sym_current = w[W_PCPU_HOT].va + o->hot_current;
		k->has_current = true;
	}
}

/* --- types ---------------------------------------------------------------- */

enum { T_MODULE, T_MEMORY, T_LAYOUT, T_KALLSYMS, T_TASK, T_HOT, T_ORC, T_COUNT };
enum { E_MEM_TYPE, E_STATE, E_COUNT };

/* Offset of a member with a known size (0: any), or RV_KERNEL_NO_OFF. */
static uint32_t member(const struct rv_btf_types *b, uint32_t id, const char *path, uint64_t want)
{
	struct rv_btf_member m;
	uint32_t off;
	uint64_t size;

	if (!id || rv_btf_type_offset(b, id, path, &off, NULL) || off > MAX_OFFSET)
		return RV_KERNEL_NO_OFF;
	if (!want)
		return off;
	if (rv_btf_type_member(b, id, path, &m, NULL) || rv_btf_type_size(b, m.type, &size, NULL) ||
	    size != want)
		return RV_KERNEL_NO_OFF;
	return off;
}

/* Elements of an array member; 0 when it is none. */
static uint32_t elements(const struct rv_btf_types *b, uint32_t id, const char *path,
			 uint64_t *elem_size)
{
	struct rv_btf_member m;
	uint32_t elem, n;

	if (!id || rv_btf_type_member(b, id, path, &m, NULL) ||
	    rv_btf_type_array(b, m.type, &elem, &n, NULL) ||
	    rv_btf_type_size(b, elem, elem_size, NULL))
		return 0;
	return n;
}

static void probe_module_memory(struct rv_kernel *k, const uint32_t *ids, uint32_t mem_type)
{
	static const char *const kinds[RV_SECT_UNKNOWN] = {
		[RV_SECT_TEXT] = "MOD_TEXT",
		[RV_SECT_DATA] = "MOD_DATA",
		[RV_SECT_RODATA] = "MOD_RODATA",
		[RV_SECT_RO_AFTER_INIT] = "MOD_RO_AFTER_INIT",
		[RV_SECT_INIT_TEXT] = "MOD_INIT_TEXT",
		[RV_SECT_INIT_DATA] = "MOD_INIT_DATA",
		[RV_SECT_INIT_RODATA] = "MOD_INIT_RODATA",
	};
	struct rv_kernel_offsets *o = &k->off;
	uint64_t stride = 0;

	o->mod_mem = member(&k->types, ids[T_MODULE], "mem", 0);
	o->mem_count = elements(&k->types, ids[T_MODULE], "mem", &stride);
	o->mem_base = member(&k->types, ids[T_MEMORY], "base", 8);
	o->mem_size = member(&k->types, ids[T_MEMORY], "size", 4);
	if (!o->mem_count || o->mem_count > RV_MODULE_MAX_MEM || stride > MAX_MODULE_SIZE ||
	    o->mem_base == RV_KERNEL_NO_OFF || o->mem_size == RV_KERNEL_NO_OFF)
		o->mod_mem = RV_KERNEL_NO_OFF;
	o->mem_stride = (uint32_t)stride;
	memset(o->mem_kind, RV_SECT_UNKNOWN, sizeof(o->mem_kind));
	for (uint8_t i = 0; mem_type && i < RV_SECT_UNKNOWN; i++) {
		int64_t v;

		if (!rv_btf_type_enumerator(&k->types, mem_type, kinds[i], &v, NULL) && v >= 0 &&
		    v < (int64_t)RV_MODULE_MAX_MEM)
			o->mem_kind[v] = i;
	}
}

static void probe_module(struct rv_kernel *k, const uint32_t *ids, uint32_t mem_type)
{
	const struct rv_btf_types *b = &k->types;
	struct rv_kernel_offsets *o = &k->off;
	uint32_t mod = ids[T_MODULE], lay = ids[T_LAYOUT], mks = ids[T_KALLSYMS];
	uint64_t size;

	o->mod_size = 0;
	if (mod && !rv_btf_type_size(b, mod, &size, NULL) && size <= MAX_MODULE_SIZE)
		o->mod_size = (uint32_t)size;
	o->mod_state = member(b, mod, "state", 4);
	o->mod_list = member(b, mod, "list", 16);
	o->mod_name = member(b, mod, "name", 0);
	o->mod_name_len = elements(b, mod, "name", &size);
	o->mod_kallsyms = member(b, mod, "kallsyms", 8);
	probe_module_memory(k, ids, mem_type);
	o->mod_core = member(b, mod, "core_layout", 0);
	o->mod_init = member(b, mod, "init_layout", 0);
	o->lay_base = member(b, lay, "base", 8);
	o->lay_size = member(b, lay, "size", 4);
	o->lay_text = member(b, lay, "text_size", 4);
	o->lay_ro = member(b, lay, "ro_size", 4);
	o->lay_ro_after_init = member(b, lay, "ro_after_init_size", 4);
	o->mks_symtab = member(b, mks, "symtab", 8);
	o->mks_num = member(b, mks, "num_symtab", 4);
	o->mks_strtab = member(b, mks, "strtab", 8);
	o->mks_typetab = member(b, mks, "typetab", 8);
	o->mod_num_orcs = member(b, mod, "arch.num_orcs", 4);
	o->mod_orc_ip = member(b, mod, "arch.orc_unwind_ip", 8);
	o->mod_orc = member(b, mod, "arch.orc_unwind", 8);
}

static int32_t enumerator(const struct rv_kernel *k, uint32_t id, const char *name, int32_t other)
{
	int64_t v;

	if (!id || rv_btf_type_enumerator(&k->types, id, name, &v, NULL))
		return other;
	return (int32_t)v;
}

/* orc_entry: two 16-bit offsets, then sp_reg:4, bp_reg:4, type:2 or 3, ... */
static void probe_orc(struct rv_kernel *k, uint32_t id)
{
	struct rv_btf_member sp, bp, type;
	uint64_t size;

	k->orc.type_bits = 0;
	if (!id || rv_btf_type_size(&k->types, id, &size, NULL) || size != 6 ||
	    rv_btf_type_member(&k->types, id, "sp_reg", &sp, NULL) ||
	    rv_btf_type_member(&k->types, id, "bp_reg", &bp, NULL) ||
	    rv_btf_type_member(&k->types, id, "type", &type, NULL))
		return;
	if (sp.bit_off != 32 || sp.bit_size != 4 || bp.bit_off != 36 || bp.bit_size != 4 ||
	    type.bit_off != 40 || (type.bit_size != 2 && type.bit_size != 3))
		return;
	k->orc.type_bits = (uint8_t)type.bit_size;
}

static void probe_types(struct rv_kernel *k)
{
	static const char *const names[T_COUNT] = {
		[T_MODULE] = "module",	      [T_MEMORY] = "module_memory",
		[T_LAYOUT] = "module_layout", [T_KALLSYMS] = "mod_kallsyms",
		[T_TASK] = "task_struct",     [T_HOT] = "pcpu_hot",
		[T_ORC] = "orc_entry",
	};
	static const char *const enums[E_COUNT] = {"mod_mem_type", "module_state"};
	struct rv_kernel_offsets *o = &k->off;
	uint32_t ids[T_COUNT] = {0}, eids[E_COUNT] = {0};
	uint64_t size;

	/* All offsets "absent"; RV_KERNEL_NO_OFF is all ones. */
	memset(o, 0xff, sizeof(*o));
	if (k->cap[RV_KCAP_TYPES].ok) {
		(void)!rv_btf_type_find_all(&k->types, RV_BTF_STRUCT, names, T_COUNT, ids, NULL);
		(void)!rv_btf_type_find_all(&k->types, RV_BTF_ENUM, enums, E_COUNT, eids, NULL);
	}
	probe_module(k, ids, eids[E_MEM_TYPE]);
	o->task_pid = member(&k->types, ids[T_TASK], "pid", 4);
	o->task_tgid = member(&k->types, ids[T_TASK], "tgid", 4);
	o->task_comm = member(&k->types, ids[T_TASK], "comm", 0);
	o->task_comm_len = elements(&k->types, ids[T_TASK], "comm", &size);
	o->task_stack = member(&k->types, ids[T_TASK], "stack", 8);
	o->hot_current = member(&k->types, ids[T_HOT], "current_task", 8);
	/* include/linux/module.h; the values are as old as the enum. */
	o->state_live = enumerator(k, eids[E_STATE], "MODULE_STATE_LIVE", 0);
	o->state_coming = enumerator(k, eids[E_STATE], "MODULE_STATE_COMING", 1);
	o->state_going = enumerator(k, eids[E_STATE], "MODULE_STATE_GOING", 2);
	o->state_unformed = enumerator(k, eids[E_STATE], "MODULE_STATE_UNFORMED", 3);
	probe_orc(k, ids[T_ORC]);
}

/* --- capabilities ---------------------------------------------------------- */

struct need {
	bool there;
	const char *what;
};

/* The first need that is not met names what is missing. */
static void cap_set(struct rv_kernel *k, enum rv_kernel_cap c, const struct need *needs, size_t n)
{
	struct rv_kernel_cap_state *s = &k->cap[c];

	memset(s, 0, sizeof(*s));
	for (size_t i = 0; i < n; i++)
		if (!needs[i].there) {
			snprintf(s->missing, sizeof(s->missing), "%s", needs[i].what);
			return;
		}
	s->ok = true;
}

#define CAP_SET(k, c, needs) cap_set(k, c, needs, sizeof(needs) / sizeof((needs)[0]))

/* A member lies whole inside struct module, of which a copy is taken. */
static bool in_module(const struct rv_kernel_offsets *o, uint32_t off, uint64_t len)
{
	return off != RV_KERNEL_NO_OFF && off <= o->mod_size && len <= o->mod_size - off;
}

static bool have_mem(const struct rv_kernel_offsets *o)
{
	return in_module(o, o->mod_mem, (uint64_t)o->mem_count * o->mem_stride) &&
	       o->mem_base + 8ull <= o->mem_stride && o->mem_size + 4ull <= o->mem_stride;
}

static bool have_layout(const struct rv_kernel_offsets *o)
{
	return in_module(o, o->mod_core, 8) && o->lay_base != RV_KERNEL_NO_OFF &&
	       o->lay_size != RV_KERNEL_NO_OFF && o->lay_text != RV_KERNEL_NO_OFF &&
	       o->lay_ro != RV_KERNEL_NO_OFF;
}

static void probe_caps(struct rv_kernel *k)
{
	const struct rv_kernel_offsets *o = &k->off;
	const struct need modules[] = {
		{k->sym_modules, "variable modules"},
		{k->cap[RV_KCAP_TYPES].ok, "types (BTF)"},
		{o->mod_size, "struct module"},
		{in_module(o, o->mod_state, 4) && in_module(o, o->mod_list, 16) &&
			 o->mod_name_len && in_module(o, o->mod_name, o->mod_name_len),
		 "members state, list, name of struct module"},
		{have_mem(o) || have_layout(o), "members mem or core_layout of struct module"},
	};
	const struct need modsyms[] = {
		{in_module(o, o->mod_kallsyms, 8), "member kallsyms of struct module"},
		{o->mks_symtab != RV_KERNEL_NO_OFF && o->mks_num != RV_KERNEL_NO_OFF &&
			 o->mks_strtab != RV_KERNEL_NO_OFF,
		 "members symtab, num_symtab, strtab of struct mod_kallsyms"},
	};
	const struct need task[] = {
		{o->task_pid != RV_KERNEL_NO_OFF && o->task_comm != RV_KERNEL_NO_OFF &&
			 o->task_comm_len,
		 "members pid and comm of struct task_struct"},
		{k->has_current || k->regs.arch != RV_ARCH_X86_64,
		 "per-CPU variable current_task or pcpu_hot"},
	};
	const struct need direct[] = {
		{k->sym_page_offset_base, "variable page_offset_base"},
	};
	const struct need orc[] = {
		{k->orc.type_bits, "struct orc_entry of a known shape"},
		{k->orc.ip && k->orc.ip_end > k->orc.ip && k->orc.entry &&
			 k->orc.entry_end > k->orc.entry,
		 "ORC tables (__start_orc_unwind_ip ...)"},
	};
	const struct need modorc[] = {
		{k->orc.type_bits, "struct orc_entry of a known shape"},
		{in_module(o, o->mod_num_orcs, 4) && in_module(o, o->mod_orc_ip, 8) &&
			 in_module(o, o->mod_orc, 8),
		 "member arch.orc_unwind_ip of struct module"},
	};

	CAP_SET(k, RV_KCAP_MODULES, modules);
	CAP_SET(k, RV_KCAP_MODULE_SYMS, modsyms);
	CAP_SET(k, RV_KCAP_TASK, task);
	CAP_SET(k, RV_KCAP_DIRECT_MAP, direct);
	CAP_SET(k, RV_KCAP_ORC, orc);
	CAP_SET(k, RV_KCAP_MODULE_ORC, modorc);
	/* What is asked of a module needs the module. */
	for (int c = RV_KCAP_MODULE_SYMS; c <= RV_KCAP_MODULE_ORC; c++)
		if ((c == RV_KCAP_MODULE_SYMS || c == RV_KCAP_MODULE_ORC) &&
		    !k->cap[RV_KCAP_MODULES].ok)
			k->cap[c] = k->cap[RV_KCAP_MODULES];
}

void rv_kernel_probe(struct rv_kernel *k)
{
	probe_types(k);
	probe_symbols(k);
	probe_caps(k);
}
