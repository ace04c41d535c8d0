/* SPDX-License-Identifier: Apache-2.0 */
/* names.c: the symbols that this folder works with, looked up in one pass. */
#include "parts.h"

/* stem: the compiler may have cloned the function (".constprop.0", ".isra.0"). */
static const struct {
	enum name_id id;
	const char *name;
	bool stem;
} names[] = {
	{N_STEXT, "_stext", false},
	{N_ETEXT, "_etext", false},
	{N_RODATA, "__start_rodata", false},
	{N_RODATA_E, "__end_rodata", false},
	{N_INIT_BEGIN, "__init_begin", false},
	{N_ENTRY_START, "__entry_text_start", false},
	{N_ENTRY_END, "__entry_text_end", false},
	{N_BANNER, "linux_banner", false},
	{N_BTF_START, "__start_BTF", false},
	{N_BTF_STOP, "__stop_BTF", false},
	{N_JUMP, "__start___jump_table", false},
	{N_JUMP_E, "__stop___jump_table", false},
	{N_SCALL, "__start_static_call_sites", false},
	{N_SCALL_E, "__stop_static_call_sites", false},
	{N_MCOUNT, "__start_mcount_loc", false},
	{N_MCOUNT_E, "__stop_mcount_loc", false},
	{N_ALT, "__alt_instructions", false},
	{N_ALT_E, "__alt_instructions_end", false},
	{N_RETURN, "__return_sites", false},
	{N_RETURN_E, "__return_sites_end", false},
	{N_RETPOLINE, "__retpoline_sites", false},
	{N_RETPOLINE_E, "__retpoline_sites_end", false},
	{N_CALLS, "__call_sites", false},
	{N_CALLS_E, "__call_sites_end", false},
	{N_ENDBR, "__ibt_endbr_seal", false},
	{N_ENDBR_E, "__ibt_endbr_seal_end", false},
	{N_EXTAB, "__start___ex_table", false},
	{N_EXTAB_E, "__stop___ex_table", false},
	{N_ORC_IP, "__start_orc_unwind_ip", false},
	{N_ORC_IP_E, "__stop_orc_unwind_ip", false},
	{N_ORC, "__start_orc_unwind", false},
	{N_ORC_E, "__stop_orc_unwind", false},
	{N_SCT, "__SCT__*", false},
	{N_KERNEL_INIT, "kernel_init", false},
	{N_MARK_RODATA_RO, "mark_rodata_ro", false},
	{N_SYSCALL64, "entry_SYSCALL_64", false},
	{N_SYSCALL64_HW, "entry_SYSCALL_64_after_hwframe", false},
	{N_DO_SYSCALL_64, "do_syscall_64", false},
	{N_SYSCALL_COMPAT, "entry_SYSCALL_compat", false},
	{N_SYSCALL_COMPAT_HW, "entry_SYSCALL_compat_after_hwframe", false},
	{N_DO_FAST_SYSCALL_32, "do_fast_syscall_32", false},
	{N_SYSENTER, "entry_SYSENTER_compat", false},
	{N_SYSENTER_HW, "entry_SYSENTER_compat_after_hwframe", false},
	{N_DO_SYSENTER_32, "do_SYSENTER_32", false},
	{N_ASM_INT80, "asm_int80_emulation", false},
	{N_INT80_EMU, "int80_emulation", false},
	{N_INT80_COMPAT, "entry_INT80_compat", false},
	{N_DO_INT80, "do_int80_syscall_32", false},
	{N_POKE_MEMCPY, "text_poke_memcpy", true},
	{N_MEMCPY, "memcpy", false},
	{N_MEMCPY_, "__memcpy", false},
	{N_TEXT_POKE, "__text_poke", true},
	{N_INDIRECT_THUNKS, "__x86_indirect_thunk_*", false},
	{N_MODULE_ALLOC, "module_alloc", false},
	{N_EXECMEM_ALLOC, "execmem_alloc", true},
	{N_EXECMEM_VMALLOC, "execmem_vmalloc", true},
	{N_VMALLOC_RANGE, "__vmalloc_node_range", false},
	{N_VMALLOC_RANGE_NP, "__vmalloc_node_range_noprof", false},
	{N_FORTIFY_PANIC, "fortify_panic", false},
	{N_FORTIFY_PANIC_, "__fortify_panic", false},
	{N_FORTIFY_REPORT, "__fortify_report", false},
	{N_EL0T64, "el0t_64_sync", false},
	{N_EL0T64_H, "el0t_64_sync_handler", false},
	{N_EL0T32, "el0t_32_sync", false},
	{N_EL0T32_H, "el0t_32_sync_handler", false},
	{N_INSN_WRITE, "__aarch64_insn_write", true},
	{N_NOFAULT, "copy_to_kernel_nofault", false},
	{N_INSN_COPY, "aarch64_insn_copy", true},
	{N_RET_TO_USER, "ret_to_user", false},
	{N_KFREE_CONST, "kfree_const", false},
	{N_KSTRDUP_CONST, "kstrdup_const", false},
};

_Static_assert(sizeof(names) / sizeof(names[0]) == N_COUNT, "one line for each name_id");
_Static_assert((int)N_COUNT <= RV_SYMBOL_WANTS_MAX, "one pass must do");

int rv_names_resolve(const struct rv_image *img, struct rv_symbol_want w[N_COUNT],
		     struct rv_err *err)
{
	size_t i;

	memset(w, 0, sizeof(w[0]) * N_COUNT);
	for (i = 0; i < N_COUNT; i++) {
		w[names[i].id].name = names[i].name;
		w[names[i].id].stem = names[i].stem;
	}
	if (!img->has_ksyms)
		return 0;
	return rv_kallsyms_resolve(&img->ksyms, w, N_COUNT, err);
}
