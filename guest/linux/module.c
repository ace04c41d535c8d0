/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module.c: the guest's list of modules, and symbols inside them.
 *
 * A struct module is copied whole, once, and only the copy is judged. The list
 * belongs to the guest: it may end nowhere, loop, or hold nonsense.
 */
#include "linux/linux.h"

#include "base/cursor.h"

#include <stdio.h>
#include <string.h>

/* A full desktop has some 200 modules loaded, a large server 400: ten times that. */
#define MAX_MODULES 4096u
/* Same limit as probe.c's. */
#define MAX_MODULE_SIZE 4096u
/* amdgpu, the largest module, has some 40,000 symbols with KALLSYMS_ALL. */
#define MAX_SYMTAB 262144u

/* --- struct module -> struct rv_module ------------------------------------- */

static uint64_t word(const uint8_t *copy, size_t len, uint64_t off)
{
	uint64_t v = 0;

	(void)rv_get(copy, len, off, &v, sizeof(v));
	return v;
}

static uint32_t half(const uint8_t *copy, size_t len, uint64_t off)
{
	uint32_t v = 0;

	(void)rv_get(copy, len, off, &v, sizeof(v));
	return v;
}

/* Keep a part when it is one: a base, bytes, and no wrap. */
static void add_part(struct rv_module *m, enum rv_section kind, uint64_t base, uint64_t size)
{
	if (!base || !size || base + (size - 1) < base || m->nmem == RV_MODULE_MAX_MEM)
		return;
	m->mem[m->nmem++] = (struct rv_module_mem){kind, base, size};
}

/*
 * Before v6.4: one area, with cumulative ends (struct module_layout: text_size,
 * ro_size includes text, ro_after_init_size includes both).
 */
static void add_layout(const struct rv_kernel_offsets *o, struct rv_module *m, const uint8_t *copy,
		       uint64_t at, bool init)
{
	uint64_t base = word(copy, o->mod_size, at + o->lay_base);
	uint64_t end[4], from = 0;
	static const uint8_t core_kind[4] = {RV_SECT_TEXT, RV_SECT_RODATA, RV_SECT_RO_AFTER_INIT,
					     RV_SECT_DATA};
	static const uint8_t init_kind[4] = {RV_SECT_INIT_TEXT, RV_SECT_INIT_RODATA,
					     RV_SECT_INIT_DATA, RV_SECT_INIT_DATA};

	end[0] = half(copy, o->mod_size, at + o->lay_text);
	end[1] = half(copy, o->mod_size, at + o->lay_ro);
	end[2] = o->lay_ro_after_init == RV_KERNEL_NO_OFF
			 ? end[1]
			 : half(copy, o->mod_size, at + o->lay_ro_after_init);
	end[3] = half(copy, o->mod_size, at + o->lay_size);
	for (int i = 0; base && i < 4; i++) {
		if (end[i] > end[3])
			end[i] = end[3];
		if (end[i] <= from)
			continue;
		add_part(m, init ? init_kind[i] : core_kind[i], base + from, end[i] - from);
		from = end[i];
	}
}

static void add_mem(const struct rv_kernel_offsets *o, struct rv_module *m, const uint8_t *copy)
{
	for (uint32_t i = 0; i < o->mem_count; i++) {
		uint64_t at = o->mod_mem + (uint64_t)i * o->mem_stride;

		add_part(m, o->mem_kind[i], word(copy, o->mod_size, at + o->mem_base),
			 half(copy, o->mod_size, at + o->mem_size));
	}
}

static void printable(char *s)
{
	for (; *s; s++)
		if (*s < 0x21 || *s > 0x7e)
			*s = '?';
}

static void parse(const struct rv_kernel *k, const uint8_t *copy, struct rv_module *m)
{
	const struct rv_kernel_offsets *o = &k->off;
	size_t n = sizeof(m->name) - 1;

	m->state = (int32_t)half(copy, o->mod_size, o->mod_state);
	m->live = m->state == o->state_live;
	m->coming = m->state == o->state_coming;
	m->going = m->state == o->state_going;
	if (n > o->mod_name_len)
		n = o->mod_name_len;
	memcpy(m->name, copy + o->mod_name, n); /* in_module() checked the place */
	m->name[n] = '\0';
	printable(m->name);
	/* While it is being formed its memory may be anything. */
	if (!m->live && !m->coming && !m->going)
		return;
	if (o->mod_mem != RV_KERNEL_NO_OFF) {
		add_mem(o, m, copy);
	} else {
		add_layout(o, m, copy, o->mod_core, false);
		if (o->mod_init != RV_KERNEL_NO_OFF)
			add_layout(o, m, copy, o->mod_init, true);
	}
	/* module.kallsyms is set before COMING and cleared by nobody; while the module
	 * goes, the memory behind it does too. */
	if (k->cap[RV_KCAP_MODULE_SYMS].ok && (m->live || m->coming))
		m->kallsyms = word(copy, o->mod_size, o->mod_kallsyms);
	if (k->cap[RV_KCAP_MODULE_ORC].ok) {
		m->num_orcs = half(copy, o->mod_size, o->mod_num_orcs);
		m->orc_ip = word(copy, o->mod_size, o->mod_orc_ip);
		m->orc = word(copy, o->mod_size, o->mod_orc);
	}
}

/* --- the list ---------------------------------------------------------------- */

/* A read that fails inside a guest structure is the structure's fault. */
static int as_bad(int rc, struct rv_err *err, uint64_t at, const char *what)
{
	if (rc != RV_ENOTMAPPED)
		return rc;
	return rv_err_at(err, RV_EBADDATA, at, "module", "%s points nowhere", what);
}

int rv_module_each(const struct rv_kernel *k, int (*fn)(const struct rv_module *m, void *arg),
		   void *arg, struct rv_err *err)
{
	const struct rv_kernel_offsets *o = &k->off;
	uint64_t at, mark, next_mark = 1;
	uint8_t copy[MAX_MODULE_SIZE];
	struct rv_view v;
	int rc;

	if (!k->cap[RV_KCAP_MODULES].ok)
		return rv_err_set(err, RV_EUNSUPPORTED, "module", "missing: %s",
				  k->cap[RV_KCAP_MODULES].missing);
	rc = rv_kernel_view(k, &v, err);
	if (rc)
		return rc;
	rc = rv_kernel_image_read(k, k->sym_modules, &at, sizeof(at), err);
	if (rc)
		return rc;
	/* Brent: a mark that moves on at powers of two meets every cycle. */
	mark = k->sym_modules;
	for (uint64_t n = 0; n < MAX_MODULES; n++) {
		struct rv_module m = {.va = at - o->mod_list};

		if (at == k->sym_modules)
			return RV_OK;
		if (n && at == mark)
			return rv_err_at(err, RV_EBADDATA, at, "module",
					 "the list of modules is a cycle without its head");
		if (n == next_mark) {
			mark = at;
			next_mark *= 2;
		}
		rc = rv_view_read(&v, rv_gva_of(m.va), copy, o->mod_size, err);
		if (rc)
			return as_bad(rc, err, at, "an entry of the list of modules");
		parse(k, copy, &m);
		rc = fn(&m, arg);
		if (rc)
			return rc;
		at = word(copy, o->mod_size, o->mod_list);
	}
	return rv_err_at(err, RV_EBUDGET, at, "module", "more than %u modules", MAX_MODULES);
}

struct find {
	uint64_t va;
	struct rv_module *out;
	struct rv_module_mem *part;
};

#define FOUND 1

static int find_in(const struct rv_module *m, void *arg)
{
	struct find *f = arg;

	for (uint32_t i = 0; i < m->nmem; i++) {
		if (f->va - m->mem[i].base >= m->mem[i].size)
			continue;
		*f->out = *m;
		if (f->part)
			*f->part = m->mem[i];
		return FOUND;
	}
	return 0;
}

int rv_module_find(const struct rv_kernel *k, uint64_t va, struct rv_module *out,
		   struct rv_module_mem *part_out, struct rv_err *err)
{
	struct find f = {va, out, part_out};
	int rc = rv_module_each(k, find_in, &f, err);

	if (rc == FOUND)
		return RV_OK;
	if (rc)
		return rc;
	return rv_err_at(err, RV_ENOTMAPPED, va, "module", "in no module");
}

struct find_gpa {
	struct rv_view view;
	uint64_t gpa, va;
};

/* The pages of one part. Holes are stepped over by their size. */
static bool find_gpa_part(struct find_gpa *f, const struct rv_module_mem *p, int *rc)
{
	uint64_t last = p->base + (p->size - 1), va = p->base;

	for (;;) {
		struct rv_translation t;

		*rc = rv_view_translate(&f->view, rv_gva_of(va), &t, NULL);
		if (*rc == RV_EBUDGET)
			return false;
		if (!*rc) {
			/* Where the page would have to begin for gpa to be in it. */
			uint64_t off = f->gpa - (t.gpa.v & ~(t.page_size - 1));

			f->va = (va & ~(t.page_size - 1)) + off;
			if (off < t.page_size && f->va >= p->base && f->va <= last)
				return true;
		}
		if (!t.page_size || (last & ~(t.page_size - 1)) <= va)
			return false;
		va = (va & ~(t.page_size - 1)) + t.page_size;
	}
}

static int find_gpa_in(const struct rv_module *m, void *arg)
{
	int rc = 0;

	for (uint32_t i = 0; i < m->nmem; i++) {
		if (find_gpa_part(arg, &m->mem[i], &rc))
			return FOUND;
		if (rc == RV_EBUDGET)
			return rc;
	}
	return 0;
}

int rv_module_find_gpa(const struct rv_kernel *k, uint64_t gpa, uint64_t *va_out,
		       struct rv_err *err)
{
	struct find_gpa f = {.gpa = gpa};
	int rc = rv_kernel_view(k, &f.view, err);

	if (!rc)
		rc = rv_module_each(k, find_gpa_in, &f, err);
	if (rc == FOUND) {
		*va_out = f.va;
		return RV_OK;
	}
	if (rc == RV_EBUDGET)
		return rv_err_at(err, rc, gpa, "module", "too many module pages to look through");
	if (rc)
		return rc;
	return rv_err_at(err, RV_ENOTMAPPED, gpa, "module", "in no module's memory");
}

/* --- symbols ------------------------------------------------------------------- */

/* Elf64_Sym, as the kernel keeps it (ELF-64 object file format, v1.5). */
struct sym {
	uint32_t name;
	uint8_t info, other;
	uint16_t shndx;
	uint64_t value, size;
};
_Static_assert(sizeof(struct sym) == 24, "Elf64_Sym");

#define STT_OBJECT 1u
#define STT_FUNC   2u
#define SHN_UNDEF  0u

struct symtab {
	uint64_t syms, strs, num;
};

static int symtab_of(const struct rv_kernel *k, struct rv_view *v, const struct rv_module *m,
		     struct symtab *t, struct rv_err *err)
{
	const struct rv_kernel_offsets *o = &k->off;
	uint32_t num;
	int rc;

	rc = rv_view_read_u64(v, rv_gva_of(m->kallsyms + o->mks_symtab), &t->syms, err);
	if (!rc)
		rc = rv_view_read_u64(v, rv_gva_of(m->kallsyms + o->mks_strtab), &t->strs, err);
	if (!rc)
		rc = rv_view_read_u32(v, rv_gva_of(m->kallsyms + o->mks_num), &num, err);
	if (rc)
		return as_bad(rc, err, m->kallsyms, "the kallsyms pointer of a module");
	if (num > MAX_SYMTAB)
		return rv_err_at(err, RV_EBADDATA, m->kallsyms, "module",
				 "%.64s says it has %u symbols", m->name, num);
	t->num = num;
	return RV_OK;
}

/* "" and the assembler's marks ("$x", ".L1"): is_mapping_symbol() of the kernel. */
static bool name_useful(const char *name)
{
	return name[0] && name[0] != '$' && !(name[0] == '.' && name[1] == 'L');
}

/* Where a symbol must be to beat the best so far. */
struct best {
	uint64_t first, va; /* part's base .. address asked about */
	uint64_t value;	    /* of the best; 0: none yet */
	char *name;
	size_t len;
};

static int consider(struct rv_view *v, const struct symtab *t, const struct sym *s, struct best *b,
		    struct rv_err *err)
{
	uint32_t type = s->info & 15;
	char name[RV_KSYM_NAME_LEN];
	int rc;

	if (s->shndx == SHN_UNDEF || !s->name || (type != STT_FUNC && type != STT_OBJECT) ||
	    s->value < b->first || s->value > b->va || (b->value && s->value <= b->value))
		return RV_OK;
	rc = rv_view_read_name(v, rv_gva_of(t->strs + s->name), name, sizeof(name), err);
	if (rc)
		return as_bad(rc, err, t->strs + s->name, "the name of a module's symbol");
	if (!name_useful(name))
		return RV_OK;
	printable(name);
	b->value = s->value;
	snprintf(b->name, b->len, "%s", name);
	return RV_OK;
}

static int scan(struct rv_view *v, const struct symtab *t, struct best *b, struct rv_err *err)
{
	struct sym chunk[64];
	int rc;

	for (uint64_t i = 0; i < t->num; i += 64) {
		uint64_t n = t->num - i < 64 ? t->num - i : 64;
		uint64_t at = t->syms + i * sizeof(struct sym);

		rc = rv_view_read(v, rv_gva_of(at), chunk, (size_t)n * sizeof(struct sym), err);
		if (rc)
			return as_bad(rc, err, at, "the symbol table of a module");
		for (uint64_t j = 0; j < n; j++) {
			rc = consider(v, t, &chunk[j], b, err);
			if (rc)
				return rc;
		}
	}
	return RV_OK;
}

int rv_module_symbol(const struct rv_kernel *k, const struct rv_module *m, uint64_t va, char *name,
		     size_t len, uint64_t *off_out, struct rv_err *err)
{
	struct best b = {.va = va, .name = name, .len = len};
	struct symtab t;
	struct rv_view v;
	uint32_t i = 0;
	int rc;

	if (len)
		name[0] = '\0';
	if (!k->cap[RV_KCAP_MODULE_SYMS].ok)
		return rv_err_set(err, RV_EUNSUPPORTED, "module", "missing: %s",
				  k->cap[RV_KCAP_MODULE_SYMS].missing);
	while (i < m->nmem && va - m->mem[i].base >= m->mem[i].size)
		i++;
	if (i == m->nmem || !m->kallsyms)
		return rv_err_at(err, RV_ENOSYM, va, "module", "%.64s has no symbols there",
				 m->name);
	b.first = m->mem[i].base;
	rc = rv_kernel_view(k, &v, err);
	if (!rc)
		rc = symtab_of(k, &v, m, &t, err);
	if (!rc)
		rc = scan(&v, &t, &b, err);
	if (rc)
		return rc;
	if (!b.value)
		return rv_err_at(err, RV_ENOSYM, va, "module", "no symbol of %.64s below", m->name);
	*off_out = va - b.value;
	return RV_OK;
}
