// SPDX-License-Identifier: GPL-2.0
/*
 * rv_load: everything a well-behaved module may ask of the kernel that ends in a
 * change of kernel or module text. None of it may be taken for an attack.
 *
 *   echo "keys 100" > /proc/rv_load       static keys and static calls of this module
 *   echo "kprobes 5" > /proc/rv_load      probes set and removed on many functions
 *   echo "ftrace 5" > /proc/rv_load       function tracing with a filter
 *   echo "tracepoints 5" > /proc/rv_load  a tracepoint of this module
 *   echo "rodata 5" > /proc/rv_load       a page made read-only and writable again
 *   cat /proc/rv_load                     "ok=N bad=N last=..."
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/ftrace.h>
#include <linux/jump_label.h>
#include <linux/kprobes.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/proc_fs.h>
#include <linux/seq_file.h>
#include <linux/static_call.h>
#include <linux/tracepoint.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>

static DEFINE_MUTEX(lock);
static unsigned long ok, bad;
static char last[64] = "none";

static void check(bool good, const char *what)
{
	if (good) {
		ok++;
		return;
	}
	bad++;
	strscpy(last, what, sizeof(last));
	pr_err("%s failed\n", what);
}

/* --- static keys and calls ----------------------------------------------------- */

static DEFINE_STATIC_KEY_FALSE(key_off);
static DEFINE_STATIC_KEY_TRUE(key_on);

static noinline int read_off(void)
{
	return static_branch_unlikely(&key_off) ? 1 : 0;
}

static noinline int read_off_likely(void)
{
	return static_branch_likely(&key_off) ? 1 : 0;
}

static noinline int read_on(void)
{
	return static_branch_likely(&key_on) ? 1 : 0;
}

static int first(int x)
{
	return x + 1;
}

static int second(int x)
{
	return x + 2;
}

DEFINE_STATIC_CALL(rv_load_call, first);

static void do_keys(void)
{
	static_branch_enable(&key_off);
	static_branch_disable(&key_on);
	check(read_off() && read_off_likely() && !read_on(), "keys switched");
	static_call_update(rv_load_call, second);
	check(static_call(rv_load_call)(5) == 7, "static call switched");
	static_branch_disable(&key_off);
	static_branch_enable(&key_on);
	check(!read_off() && !read_off_likely() && read_on(), "keys switched back");
	static_call_update(rv_load_call, first);
	check(static_call(rv_load_call)(5) == 6, "static call switched back");
}

/* --- probes --------------------------------------------------------------------- */

static const char *const probed[] = {
	"vfs_read",	    "vfs_write",      "vfs_open",      "vfs_statx",
	"do_mmap",	    "kernel_clone",   "do_exit",       "wake_up_process",
	"schedule_timeout", "hrtimer_cancel", "alloc_pid",     "do_filp_open",
	"path_lookupat",    "pipe_read",      "pipe_write",    "unmap_region",
	"do_send_sig_info", "seq_read",	      "proc_reg_read", "kmem_cache_alloc",
};

static atomic_long_t hits;

static int on_hit(struct kprobe *kp, struct pt_regs *regs)
{
	atomic_long_inc(&hits);
	return 0;
}

static int on_return(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	atomic_long_inc(&hits);
	return 0;
}

/* At the start of a function a probe goes through ftrace, inside by a breakpoint. */
static void do_kprobes(void)
{
	static struct kprobe at[ARRAY_SIZE(probed)], in[ARRAY_SIZE(probed)];
	static struct kretprobe ret;
	bool at_ok[ARRAY_SIZE(probed)], in_ok[ARRAY_SIZE(probed)], ret_ok;
	unsigned int i, n = 0;

	for (i = 0; i < ARRAY_SIZE(probed); i++) {
		memset(&at[i], 0, sizeof(at[i]));
		at[i].symbol_name = probed[i];
		at[i].pre_handler = on_hit;
		at_ok[i] = !register_kprobe(&at[i]);
		/* five bytes on is an instruction boundary after the ftrace site */
		memset(&in[i], 0, sizeof(in[i]));
		in[i].symbol_name = probed[i];
		in[i].offset = 5;
		in[i].pre_handler = on_hit;
		in_ok[i] = IS_ENABLED(CONFIG_X86) && !IS_ENABLED(CONFIG_X86_KERNEL_IBT) &&
			   !register_kprobe(&in[i]);
		n += at_ok[i];
	}
	memset(&ret, 0, sizeof(ret));
	ret.kp.symbol_name = "vfs_read";
	ret.handler = on_return;
	ret.maxactive = 32;
	ret_ok = !register_kretprobe(&ret);
	check(n > ARRAY_SIZE(probed) / 2, "kprobes registered");
	check(ret_ok, "kretprobe registered");
	schedule_timeout_uninterruptible(2);
	if (ret_ok)
		unregister_kretprobe(&ret);
	for (i = 0; i < ARRAY_SIZE(probed); i++) {
		if (at_ok[i])
			unregister_kprobe(&at[i]);
		if (in_ok[i])
			unregister_kprobe(&in[i]);
	}
}

/* --- function tracing ------------------------------------------------------------- */

static void on_call(unsigned long ip, unsigned long parent, struct ftrace_ops *ops,
		    struct ftrace_regs *regs)
{
	atomic_long_inc(&hits);
}

static struct ftrace_ops fops = {.func = on_call, .flags = FTRACE_OPS_FL_RECURSION};

static void do_ftrace(void)
{
	unsigned char filter[] = "vfs_*"; /* parsed in place: a fresh copy each time */

	check(!ftrace_set_filter(&fops, filter, strlen(filter), 1), "ftrace filter");
	check(!register_ftrace_function(&fops), "ftrace on");
	schedule_timeout_uninterruptible(2);
	check(!unregister_ftrace_function(&fops), "ftrace off");
}

/* --- a tracepoint ------------------------------------------------------------------- */

DECLARE_TRACE(rv_load_tick, TP_PROTO(int n), TP_ARGS(n));
DEFINE_TRACE(rv_load_tick, TP_PROTO(int n), TP_ARGS(n));

static int ticks;

static void on_tick(void *data, int n)
{
	ticks += n;
}

static void on_tick2(void *data, int n)
{
	ticks += 2 * n;
}

static void do_tracepoints(void)
{
	ticks = 0;
	check(!register_trace_rv_load_tick(on_tick, NULL), "tracepoint on");
	trace_rv_load_tick(1);
	/* a second user makes the static call go to the iterator */
	check(!register_trace_rv_load_tick(on_tick2, NULL), "second tracepoint on");
	trace_rv_load_tick(10);
	unregister_trace_rv_load_tick(on_tick2, NULL);
	unregister_trace_rv_load_tick(on_tick, NULL);
	tracepoint_synchronize_unregister();
	trace_rv_load_tick(1000);
	check(ticks == 31, "tracepoint calls counted");
}

/* --- page attributes ---------------------------------------------------------------- */

static unsigned long (*lookup_name)(const char *name);

static void do_rodata(void)
{
	static struct kprobe kp = {.symbol_name = "kallsyms_lookup_name"};
	int (*set_ro)(unsigned long, int), (*set_rw)(unsigned long, int);
	u8 *page;

	if (!lookup_name && !register_kprobe(&kp)) {
		lookup_name = (void *)kp.addr;
		unregister_kprobe(&kp);
	}
	if (!lookup_name)
		return;
	set_ro = (void *)lookup_name("set_memory_ro");
	set_rw = (void *)lookup_name("set_memory_rw");
	page = vmalloc(PAGE_SIZE);
	if (!set_ro || !set_rw || !page) {
		vfree(page);
		return;
	}
	page[0] = 1;
	check(!set_ro((unsigned long)page, 1), "page made read-only");
	check(page[0] == 1, "page read");
	check(!set_rw((unsigned long)page, 1), "page made writable");
	page[0] = 2;
	vfree(page);
}

/* --- the file ------------------------------------------------------------------------ */

static const struct {
	const char *name;
	void (*fn)(void);
} jobs[] = {
	{"keys", do_keys},     {"kprobes", do_kprobes},
	{"ftrace", do_ftrace}, {"tracepoints", do_tracepoints},
	{"rodata", do_rodata},
};

static ssize_t load_write(struct file *file, const char __user *buf, size_t len, loff_t *pos)
{
	char cmd[64], name[32];
	unsigned int i, n;
	bool known = false;

	if (len >= sizeof(cmd))
		return -EINVAL;
	if (copy_from_user(cmd, buf, len))
		return -EFAULT;
	cmd[len] = 0;
	if (sscanf(cmd, "%31s %u", name, &n) != 2 || n > 100000)
		return -EINVAL;
	mutex_lock(&lock);
	for (i = 0; i < ARRAY_SIZE(jobs); i++)
		if (!strcmp(name, jobs[i].name) || !strcmp(name, "all")) {
			unsigned int k;

			known = true;
			for (k = 0; k < n; k++)
				jobs[i].fn();
		}
	mutex_unlock(&lock);
	return known ? len : -EINVAL;
}

static int load_show(struct seq_file *m, void *v)
{
	seq_printf(m, "ok=%lu bad=%lu hits=%ld last=%s\n", ok, bad, atomic_long_read(&hits), last);
	return 0;
}

static int load_open(struct inode *inode, struct file *file)
{
	return single_open(file, load_show, NULL);
}

static const struct proc_ops load_ops = {
	.proc_open = load_open,
	.proc_read = seq_read,
	.proc_lseek = seq_lseek,
	.proc_release = single_release,
	.proc_write = load_write,
};

static int __init load_init(void)
{
	return proc_create("rv_load", 0600, NULL, &load_ops) ? 0 : -ENOMEM;
}

static void __exit load_exit(void)
{
	remove_proc_entry("rv_load", NULL);
}

module_init(load_init);
module_exit(load_exit);
MODULE_DESCRIPTION("legitimate text changes, for test guests");
MODULE_LICENSE("GPL");
