// SPDX-License-Identifier: GPL-2.0
/*
 * rv_attack: overwrite memory that a kernel believes to be read-only, one way at
 * a time. For test guests only: it is meant to damage the kernel it is loaded in.
 *
 *   echo "WRITER TARGET ALIAS" > /proc/rv_attack     one attack, in this process
 *   cat /proc/rv_attack                              what became of the last one
 *   echo "map TARGET" > /proc/rv_attack              then mmap() it, for CPL 3
 *   echo list > /proc/rv_attack; cat /proc/rv_attack all the words
 *
 * The bytes of the target are kept before the attack, so the report says whether
 * the store landed even when the attacking process died by it. A store that did
 * land is undone at once: what follows in the same boot is then still meaningful.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/highmem.h>
#include <linux/ctype.h>
#include <linux/kallsyms.h>
#include <linux/kdebug.h>
#include <linux/kprobes.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/proc_fs.h>
#include <linux/sched.h>
#include <linux/seq_file.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>

#include "rv_attack.h"

u8 rv_pattern[64];
const char __user *rv_user_src;

/* --- writers that need no particular processor ------------------------------ */

/* Reached through a pointer, or the compiler would open-code the copy. */
static void *(*volatile rv_memcpy)(void *, const void *, size_t) = memcpy;

static noinline void rv_attack_memcpy(void *dst)
{
	rv_memcpy(dst, rv_pattern, 16);
	barrier();
}

static noinline void rv_attack_copy_from_user(void *dst)
{
	if (raw_copy_from_user(dst, rv_user_src, 16))
		pr_info("copy_from_user stopped early\n");
}

/* copy_to_kernel_nofault() is for built-in code only. */
static noinline void rv_attack_nofault(void *dst)
{
	long (*copy)(void *, const void *, size_t) = (void *)rv_lookup("copy_to_kernel_nofault");

	if (copy && copy(dst, rv_pattern, 8))
		pr_info("copy_to_kernel_nofault stopped\n");
}

static const struct rv_writer rv_writers[] = {
	{"memcpy", 16, 0, rv_attack_memcpy, NULL},
	{"copy_from_user", 16, RV_F_FIXUP, rv_attack_copy_from_user, NULL},
	{"nofault", 8, RV_F_FIXUP, rv_attack_nofault, NULL},
	{NULL, 0, 0, NULL, NULL},
};

/* --- symbols ------------------------------------------------------------------ */

static unsigned long (*rv_kallsyms_lookup_name)(const char *name);

unsigned long rv_lookup(const char *name)
{
	return rv_kallsyms_lookup_name ? rv_kallsyms_lookup_name(name) : 0;
}

/* Not exported since 5.7, but a probe may be set on it, and a probe knows its address. */
static int rv_find_lookup(void)
{
	static struct kprobe kp = {.symbol_name = "kallsyms_lookup_name"};
	int ret = register_kprobe(&kp);

	if (ret)
		return ret;
	rv_kallsyms_lookup_name = (void *)kp.addr;
	unregister_kprobe(&kp);
	return 0;
}

/* --- targets ------------------------------------------------------------------ */

static const struct {
	const char *name, *symbol;
	bool hot; /* used all the time: the damage must not be seen before it is undone */
} rv_targets[] = {
	{"text", NULL, false}, /* rv_arch_text_symbol */
	{"hottext", "vfs_read", true},
	{"rodata", "linux_banner", false},
	{"ops", "pipefifo_fops", true},
	{"roinit", "rodata_enabled", false},
	{"table", "sys_call_table", false}, /* rv_arch_table_row */
};

/* The padding in front of the entry code; the monitor's own stubs live there. */
static unsigned long rv_find_gate(void)
{
	static const char *const before[] = {"__kprobes_text_end", "__softirqentry_text_end",
					     "__static_call_text_end", "__lock_text_end",
					     "__irqentry_text_end"};
	unsigned long hi = rv_lookup("__entry_text_start"), lo = 0, a, entry;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(before); i++) {
		a = rv_lookup(before[i]);
		if (a < hi && a > lo)
			lo = a;
	}
	entry = rv_lookup(rv_arch_entry_symbol);
	if (!IS_ENABLED(CONFIG_ARM64) && (!lo || !entry))
		return 0;
	a = rv_arch_gate(entry, lo, hi);
	return a || !lo ? a : PAGE_ALIGN(lo);
}

static int rv_find_target(const char *name, unsigned long *addr, bool *hot)
{
	size_t i;

	*hot = false;
	*addr = 0;
	for (i = 0; i < ARRAY_SIZE(rv_targets); i++)
		if (!strcmp(name, rv_targets[i].name)) {
			*addr = rv_lookup(rv_targets[i].symbol ?: rv_arch_text_symbol);
			*hot = rv_targets[i].hot;
		}
	if (!strcmp(name, "table") && *addr)
		*addr += rv_arch_table_row * 8;
	/* A kernel that names no data (KALLSYMS_ALL is off) exports some of it. */
	if (!strcmp(name, "rodata") && !*addr)
		*addr = (unsigned long)_ctype + 224;
	if (!strcmp(name, "entry")) {
		*addr = rv_lookup(rv_arch_entry_symbol);
		*hot = true;
	} else if (!strcmp(name, "gate")) {
		*addr = rv_find_gate();
		*hot = true;
	} else if (!strncmp(name, "sym:", 4)) {
		*addr = rv_lookup(name + 4);
		*hot = true;
	}
	return *addr ? 0 : -ENOENT;
}

/* All targets are in the kernel image, which is contiguous in physical memory. */
static unsigned long rv_pfn(unsigned long addr)
{
	return __pa_symbol(addr) >> PAGE_SHIFT;
}

/* --- the attack ---------------------------------------------------------------- */

static struct {
	char writer[24], target[64], alias[16], symbol[KSYM_SYMBOL_LEN];
	unsigned long addr, alias_addr;
	unsigned int len;
	bool returned, undone, list;
	int error;
	u8 before[RV_MAX_LEN], after[RV_MAX_LEN];
	struct task_struct *task; /* that attacks now */
} rv;

static noinline void rv_undo(void *dst)
{
	memcpy(dst, rv.before, rv.len);
}

static const struct rv_writer *rv_find_writer(const char *name)
{
	const struct rv_writer *w;

	for (w = rv_writers; w->name; w++)
		if (!strcmp(w->name, name))
			return w;
	for (w = rv_arch_writers; w->name; w++)
		if (!strcmp(w->name, name))
			return w;
	return NULL;
}

/* A second mapping of the target, like those that text patching makes for itself. */
static void *rv_vmap(unsigned long addr)
{
	struct page *pages[2] = {pfn_to_page(rv_pfn(addr)), pfn_to_page(rv_pfn(addr) + 1)};
	void *p = vmap(pages, 2, VM_MAP, PAGE_KERNEL);

	return p ? p + offset_in_page(addr) : NULL;
}

static void *rv_direct(unsigned long addr)
{
	return page_address(pfn_to_page(rv_pfn(addr))) + offset_in_page(addr);
}

static int rv_run(const struct rv_writer *w, bool hot)
{
	bool vmapped = false, wp = false, pte = false, closed;
	unsigned long flags = 0;
	void *dst;
	int ret = 0;

	if (!strcmp(rv.alias, "vmap")) {
		dst = rv_vmap(rv.addr);
		vmapped = true;
	} else if (!strcmp(rv.alias, "direct") || !strcmp(rv.alias, "dpte")) {
		dst = rv_direct(rv.addr);
		pte = rv.alias[1] == 'p';
	} else if (!strcmp(rv.alias, "self") || !strcmp(rv.alias, "wp") ||
		   !strcmp(rv.alias, "pte")) {
		dst = (void *)rv.addr;
		wp = rv.alias[0] == 'w';
		pte = rv.alias[0] == 'p';
	} else {
		return -EINVAL;
	}
	if (!dst)
		return -ENOMEM;
	rv.alias_addr = (unsigned long)dst;
	closed = hot || wp || pte || (w->flags & (RV_F_IRQOFF | RV_F_CROSS));
	rv.task = current;
	if (closed)
		local_irq_save(flags);
	if (wp)
		ret = rv_arch_open_wp();
	else if (pte)
		ret = rv_arch_open_pte(rv.alias_addr);
	if (!ret) {
		w->fn(dst);
		memcpy(rv.after, (void *)rv.addr, rv.len);
		rv.returned = true;
		if (memcmp(rv.after, rv.before, rv.len)) {
			rv_undo(dst);
			rv.undone = !memcmp((void *)rv.addr, rv.before, rv.len);
		}
	}
	rv_arch_close();
	if (closed)
		local_irq_restore(flags);
	rv.task = NULL;
	if (vmapped)
		vunmap((void *)((unsigned long)dst & PAGE_MASK));
	return ret;
}

/* The task dies with the window open: close it before anything else runs here. */
static int rv_die(struct notifier_block *nb, unsigned long val, void *data)
{
	if (val == DIE_OOPS && rv.task == current) {
		rv_arch_close();
		rv.task = NULL;
	}
	return NOTIFY_DONE;
}

static struct notifier_block rv_die_nb = {.notifier_call = rv_die, .priority = INT_MAX};

static int rv_command(char *cmd)
{
	char *writer = strsep(&cmd, " "), *target = strsep(&cmd, " "), *alias = cmd;
	const struct rv_writer *w;
	bool hot;
	int ret;

	memset(&rv, 0, sizeof(rv));
	if (!strcmp(writer, "list")) {
		rv.list = true;
		return 0;
	}
	if (!target)
		return -EINVAL;
	strscpy(rv.writer, writer, sizeof(rv.writer));
	strscpy(rv.target, target, sizeof(rv.target));
	strscpy(rv.alias, alias ? alias : "user", sizeof(rv.alias));
	ret = rv_find_target(target, &rv.addr, &hot);
	if (ret)
		return ret;
	if (!strcmp(writer, "map")) {
		rv.len = 16;
	} else {
		w = rv_find_writer(writer);
		if (!w || !alias)
			return -EINVAL;
		if (w->usable && !w->usable())
			return -EOPNOTSUPP;
		if (w->flags & RV_F_ALIGN16)
			rv.addr = ALIGN(rv.addr, 16);
		if (w->flags & RV_F_CROSS)
			rv.addr = ALIGN(rv.addr + 1, PAGE_SIZE) - w->len / 2;
		rv.len = w->len;
	}
	sprint_symbol(rv.symbol, rv.addr);
	memcpy(rv.before, (void *)rv.addr, rv.len);
	memcpy(rv.after, rv.before, rv.len);
	if (!strcmp(writer, "map"))
		return 0;
	pr_info("%s %s %s: %s\n", rv.writer, rv.target, rv.alias, rv.symbol);
	return rv_run(w, hot);
}

static ssize_t rv_write(struct file *file, const char __user *buf, size_t len, loff_t *pos)
{
	char cmd[128];

	if (len < 4 || len >= sizeof(cmd))
		return -EINVAL;
	if (copy_from_user(cmd, buf, len))
		return -EFAULT;
	cmd[len] = 0;
	rv_user_src = buf;
	rv.error = rv_command(strim(cmd));
	return rv.error ? rv.error : len;
}

static int rv_show(struct seq_file *m, void *v)
{
	const struct rv_writer *w;
	unsigned int n = min(rv.len, 64u);
	u8 *now = rv.after;
	size_t i;

	if (rv.list) {
		for (w = rv_writers; w->name; w++)
			seq_printf(m, "writer %s\n", w->name);
		for (w = rv_arch_writers; w->name; w++)
			seq_printf(m, "writer %s%s\n", w->name,
				   w->usable && !w->usable() ? " (not on this cpu)" : "");
		for (i = 0; i < ARRAY_SIZE(rv_targets); i++)
			seq_printf(m, "target %s\n", rv_targets[i].name);
		seq_puts(m, "target entry\ntarget gate\ntarget sym:NAME\n");
		seq_puts(m,
			 "alias self\nalias direct\nalias vmap\nalias wp\nalias pte\nalias dpte\n");
		return 0;
	}
	if (!rv.addr) {
		seq_printf(m, "error=%d\n", rv.error);
		return 0;
	}
	/* Nothing came back from the attack: look at what is there now. */
	if (!rv.returned)
		now = (u8 *)rv.addr;
	seq_printf(m, "landed=%d returned=%d undone=%d error=%d len=%u",
		   !!memcmp(rv.before, now, rv.len), rv.returned, rv.undone, rv.error, rv.len);
	seq_printf(m, " writer=%s target=%s alias=%s symbol=%s addr=%lx alias-addr=%lx", rv.writer,
		   rv.target, rv.alias, rv.symbol, rv.addr, rv.alias_addr);
	seq_printf(m, " bytes-before=%*phN bytes-after=%*phN\n", n, rv.before, n, now);
	return 0;
}

static int rv_open(struct inode *inode, struct file *file)
{
	return single_open(file, rv_show, NULL);
}

/* The page that holds the target, and the next one, writable from user space. */
static int rv_mmap(struct file *file, struct vm_area_struct *vma)
{
	unsigned long size = vma->vm_end - vma->vm_start;

	if (!rv.addr || size > 2 * PAGE_SIZE || vma->vm_pgoff)
		return -EINVAL;
	return remap_pfn_range(vma, vma->vm_start, rv_pfn(rv.addr), size, vma->vm_page_prot);
}

static const struct proc_ops rv_proc_ops = {
	.proc_open = rv_open,
	.proc_read = seq_read,
	.proc_lseek = seq_lseek,
	.proc_release = single_release,
	.proc_write = rv_write,
	.proc_mmap = rv_mmap,
};

static int __init rv_init(void)
{
	size_t i;
	int ret = rv_find_lookup();

	if (ret)
		return ret;
	for (i = 0; i < sizeof(rv_pattern); i++)
		rv_pattern[i] = 0xa5 - i;
	ret = register_die_notifier(&rv_die_nb);
	if (ret)
		return ret;
	if (!proc_create("rv_attack", 0600, NULL, &rv_proc_ops)) {
		unregister_die_notifier(&rv_die_nb);
		return -ENOMEM;
	}
	return 0;
}

/* Do not unload after an oops: the dead process still counts as a user of the file. */
static void __exit rv_exit(void)
{
	remove_proc_entry("rv_attack", NULL);
	unregister_die_notifier(&rv_die_nb);
}

module_init(rv_init);
module_exit(rv_exit);
MODULE_DESCRIPTION("overwrites read-only kernel memory in many ways, for test guests");
MODULE_LICENSE("GPL");
