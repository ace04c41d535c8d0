/* SPDX-License-Identifier: Apache-2.0 */
/*
 * linux.h: a Linux guest's objects as seen from outside. Included by guest/linux/
 * and by the program.
 *
 * A struct rv_kernel is filled once, from the kernel's own symbols and types;
 * that needs no running guest. It holds no storage of its own, is const for all
 * questions, and may be copied by assignment: one per thread, each with the
 * registers of its vCPU, is the expected use.
 *
 * Answers about a running guest race with it. Every list is walked with a bound,
 * every pointer is read through page tables, and an answer that contradicts
 * itself is RV_EBADDATA, never a guess.
 */
#ifndef RV_GUEST_LINUX_H
#define RV_GUEST_LINUX_H

#include <ravelin/error.h>
#include <ravelin/kallsyms.h>
#include <ravelin/types.h>

#include "paging/paging.h"
#include "source/source.h"
#include "sym/btf_type.h"

/* What can be answered about this kernel; found by evidence, not by version. */
enum rv_kernel_cap {
	RV_KCAP_SYMBOLS = 0, /* kallsyms */
	RV_KCAP_TYPES,	     /* BTF */
	RV_KCAP_MODULES,     /* module list: which module holds an address */
	RV_KCAP_MODULE_SYMS, /* symbols inside modules */
	RV_KCAP_TASK,	     /* current task of a vCPU */
	RV_KCAP_DIRECT_MAP,  /* aliases of the image in the direct map */
	RV_KCAP_ORC,	     /* unwinding through the image */
	RV_KCAP_MODULE_ORC,  /* and through modules */
	RV_KCAP_COUNT
};

struct rv_kernel_cap_state {
	bool ok;
	char missing[80]; /* what was looked for and not found; "" when ok */
};

#define RV_KERNEL_NO_OFF  (~0u) /* a member that this kernel does not have */
#define RV_MODULE_MAX_MEM 12u	/* mod_mem_type has 7 values in v6.4..v6.12 */

/* Parts of a module, in the kernel's terms. */
enum rv_section {
	RV_SECT_TEXT = 0,
	RV_SECT_DATA,
	RV_SECT_RODATA,
	RV_SECT_RO_AFTER_INIT,
	RV_SECT_INIT_TEXT,
	RV_SECT_INIT_DATA,
	RV_SECT_INIT_RODATA,
	RV_SECT_UNKNOWN,
	RV_SECT_COUNT
};
const char *rv_section_name(enum rv_section s); /* "text", "ro_after_init", ... */

/* Member offsets, as the kernel's types say; RV_KERNEL_NO_OFF where there is none. */
struct rv_kernel_offsets {
	/* struct module */
	uint32_t mod_size, mod_state, mod_list, mod_name, mod_name_len;
	uint32_t mod_kallsyms; /* pointer to struct mod_kallsyms */
	/* v6.4 on: module.mem[n] of struct module_memory */
	uint32_t mod_mem, mem_count, mem_stride, mem_base, mem_size;
	uint8_t mem_kind[RV_MODULE_MAX_MEM]; /* enum rv_section */
	/* before: module.core_layout and init_layout of struct module_layout */
	uint32_t mod_core, mod_init, lay_base, lay_size, lay_text, lay_ro, lay_ro_after_init;
	/* struct mod_kallsyms */
	uint32_t mks_symtab, mks_num, mks_strtab, mks_typetab;
	/* module.arch.{num_orcs,orc_unwind_ip,orc_unwind} */
	uint32_t mod_num_orcs, mod_orc_ip, mod_orc;
	/* struct task_struct */
	uint32_t task_pid, task_tgid, task_comm, task_comm_len, task_stack;
	/* struct pcpu_hot (v6.2..v6.14) */
	uint32_t hot_current;
	/* enum module_state */
	int32_t state_live, state_coming, state_going, state_unformed;
};

/* The kernel's ORC tables, see unwind.c; addresses are run-time ones. */
struct rv_kernel_orc {
	uint64_t ip, ip_end;	   /* __start/__stop_orc_unwind_ip */
	uint64_t entry, entry_end; /* __start/__stop_orc_unwind */
	uint8_t type_bits;	   /* width of orc_entry.type: 2 before v6.4, then 3 */
};

/*
 * Parts of the image that the kernel gives to its page allocator after boot: what
 * lies there by physical address is anybody's. Run-time addresses; end 0: none.
 */
enum rv_image_gap { RV_GAP_TEXT_RODATA = 0, RV_GAP_RODATA_DATA, RV_GAP_INIT, RV_GAP_COUNT };

struct rv_kernel {
	struct rv_source *src;
	struct rv_paging_regs regs;
	struct rv_kallsyms syms;
	struct rv_btf_types types;
	uint64_t link_base, slide;
	uint64_t image_gpa, image_size;
	const uint8_t *flat; /* the image in memory of this process; may be NULL */
	size_t flat_len;
	uint32_t budget;
	struct rv_kernel_offsets off;
	struct rv_kernel_orc orc;
	/* Run-time addresses of variables; 0 where there is no such symbol. */
	uint64_t sym_modules, sym_page_offset_base, sym_root_table;
	uint64_t sym_current; /* per-CPU offset, plus hot_current added */
	bool has_current;
	struct {
		uint64_t start, end;
	} gap[RV_GAP_COUNT];
	struct rv_kernel_cap_state cap[RV_KCAP_COUNT];
};

/* Everything borrowed; it must outlive the struct rv_kernel and its copies. */
struct rv_kernel_params {
	struct rv_source *source;   /* guest RAM; e.g. &rv_source_mapped.base */
	struct rv_paging_regs regs; /* of any vCPU; see rv_kernel_set_regs() */
	/* Symbols with mem pointing at the image in guest RAM (or a copy), slide set.
	 * NULL: no symbols. */
	const struct rv_kallsyms *kallsyms;
	uint64_t link_base;  /* link-time va of flat offset 0 (_text) */
	uint64_t slide;	     /* run-time va = link-time va + slide, modulo 2^64 */
	uint64_t image_gpa;  /* guest physical address of flat offset 0 */
	uint64_t image_size; /* bytes in memory, bss included */
	/* The image's bytes from flat offset 0; NULL: kallsyms->mem is taken. */
	const uint8_t *flat;
	size_t flat_len;
	uint64_t btf_va; /* link-time va of .BTF; 0: none */
	uint64_t btf_size;
	uint32_t read_budget; /* physical reads for one question; 0: the default */
};

/*
 * Fill *k and probe (rv_kernel_probe). No allocation, no read of guest virtual
 * memory: it may be called before the guest's first instruction. A kernel that
 * lacks something is not a failure: see rv_kernel_cap(). RV_EINVAL for params
 * that contradict themselves.
 */
int rv_kernel_init(struct rv_kernel *k, const struct rv_kernel_params *p,
		   struct rv_err *err) RV_MUST_CHECK;

/* Find symbols and member offsets again; rv_kernel_init() has done it once.
 * Lives in probe.c: each offset is found by looking for the member. */
void rv_kernel_probe(struct rv_kernel *k);

/* The registers to translate with from now on. Page tables: init_top_pgt when it
 * maps the image (so that a CR3 of user mode under PTI does no harm), else CR3. */
void rv_kernel_set_regs(struct rv_kernel *k, const struct rv_paging_regs *regs);

/* Whether it can be answered, and if not, what is missing. Never NULL. */
const struct rv_kernel_cap_state *rv_kernel_cap(const struct rv_kernel *k, enum rv_kernel_cap c);
const char *rv_kernel_cap_name(enum rv_kernel_cap c); /* "modules", ... */

/* A view of the kernel's address space with a fresh budget. */
int rv_kernel_view(const struct rv_kernel *k, struct rv_view *out,
		   struct rv_err *err) RV_MUST_CHECK;

/* Run-time va -> gpa by the image's own linear placement; RV_ENOTMAPPED outside it. */
int rv_kernel_image_gpa(const struct rv_kernel *k, uint64_t va, rv_gpa *out) RV_MUST_CHECK;

/* Read a variable of the image through its placement: needs no page tables. */
int rv_kernel_image_read(const struct rv_kernel *k, uint64_t va, void *dst, size_t len,
			 struct rv_err *err) RV_MUST_CHECK;

/* --- modules ------------------------------------------------------------- */

struct rv_module_mem {
	enum rv_section kind;
	uint64_t base, size;
};

struct rv_module {
	uint64_t va; /* of struct module */
	int32_t state;
	bool live, coming, going; /* none of them: still being formed */
	char name[64];
	uint32_t nmem;
	struct rv_module_mem mem[RV_MODULE_MAX_MEM]; /* only those with bytes in them */
	uint64_t kallsyms;			     /* va of struct mod_kallsyms, 0: none */
	uint64_t orc_ip, orc;			     /* va of the module's ORC tables */
	uint32_t num_orcs;
};

/*
 * Call fn for each module on the list until it returns non-zero, which is then
 * returned. RV_EBADDATA for a list with a cycle or a pointer to nowhere,
 * RV_EBUDGET, RV_EUNSUPPORTED without the capability: modules seen until then
 * were handed to fn, so a partial answer is known to be partial.
 */
int rv_module_each(const struct rv_kernel *k, int (*fn)(const struct rv_module *m, void *arg),
		   void *arg, struct rv_err *err) RV_MUST_CHECK;

/* The module that holds va, and which part. RV_ENOTMAPPED: none does. */
int rv_module_find(const struct rv_kernel *k, uint64_t va, struct rv_module *out,
		   struct rv_module_mem *part_out, struct rv_err *err) RV_MUST_CHECK;

/*
 * The address in a module's memory that is backed by gpa: module pages are scattered
 * in RAM, so the page tables of all of them are walked. RV_ENOTMAPPED: none.
 */
int rv_module_find_gpa(const struct rv_kernel *k, uint64_t gpa, uint64_t *va_out,
		       struct rv_err *err) RV_MUST_CHECK;

/*
 * The last function or object of the module at or below va and in the same part.
 * RV_ENOSYM when there is none or the module has no symbols yet.
 */
int rv_module_symbol(const struct rv_kernel *k, const struct rv_module *m, uint64_t va, char *name,
		     size_t len, uint64_t *off_out, struct rv_err *err) RV_MUST_CHECK;

/* --- tasks ---------------------------------------------------------------- */

struct rv_task {
	uint64_t va; /* of task_struct */
	int32_t pid, tgid;
	char comm[32];	/* printable */
	uint64_t stack; /* lowest address of its kernel stack; 0: not known */
};

/*
 * The task that runs on a vCPU. percpu is on x86 the kernel's GS base (of GS_BASE and
 * KERNEL_GS_BASE the one in the upper half); on arm64 SP_EL0, which in the kernel is the
 * task itself, and 0 in user mode. False: not known, *out is zeroed.
 */
bool rv_task_current(const struct rv_kernel *k, uint64_t percpu, struct rv_task *out);

/* The task at an address (arm64: SP_EL0). */
bool rv_task_at(const struct rv_kernel *k, uint64_t task_va, struct rv_task *out);

/* --- names for addresses ---------------------------------------------------- */

/*
 * Write what is at va: "vfs_read+0x30", "mod_fn+0x1c [rv_attack]",
 * "vfs_read+0x0 (direct map)" (an alias of the image or of a module), "[rv_attack text]+0x1c" where
 * the module has no symbol there. Always terminated, printable, and "0x..." at the least. 0 when a
 * name was found, RV_ENOTMAPPED when there is none; buf is good in both cases.
 */
int rv_kernel_symbolize(const struct rv_kernel *k, uint64_t va, char *buf, size_t len);

/* The same for a guest physical address in the image or a module's memory, under the
 * name that it has there; "gpa 0x..." when it is in neither. */
int rv_kernel_symbolize_gpa(const struct rv_kernel *k, uint64_t gpa, char *buf, size_t len);

/* --- callers ------------------------------------------------------------------ */

struct rv_unwind_regs {
	uint64_t ip, sp, bp; /* bp: rbp, or x29 */
	uint64_t lr;	     /* arm64: x30 */
};

/*
 * Return addresses of the callers of ip, nearest first, by the kernel's ORC
 * tables (arm64: by frame records). Returns how many were written (0 .. max): the walk ends quietly at the
 * first frame that is not certain. *complete_out (may be NULL) says that it ended
 * at user mode or the stack's end and not for want of data.
 */
size_t rv_kernel_unwind(const struct rv_kernel *k, const struct rv_unwind_regs *regs, uint64_t *out,
			size_t max, bool *complete_out);

/* The same for arm64, by frame records (unwind_arm64.c); called by the above. */
size_t rv_unwind_records(const struct rv_kernel *k, const struct rv_unwind_regs *regs,
			 uint64_t *out, size_t max, bool *complete_out);

#endif
