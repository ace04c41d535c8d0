# SPDX-License-Identifier: Apache-2.0
# stack: kernel stack traces are whole, by the unwinder and from a running CPU.
dmesg -c >/dev/null
if rvx stack >/tmp/out 2>&1; then
	ok stack
else
	fail stack "$(head -n 1 /tmp/out)"
	while read -r line; do info "stack: $line"; done </tmp/out
fi
# The trace of this very CPU: proc_reg_write is inside a system call.
echo 1 >/proc/sys/kernel/sysrq
echo l >/proc/sysrq-trigger
sleep 1
dmesg -c >/tmp/log
# A line with "?" is an old value that the unwinder met on its way and did not believe; the
# chain that it did believe must lead to the entry code.
grep -v '? ' /tmp/log >/tmp/chain
if grep -q entry_SYSCALL_64_after_hwframe /tmp/chain && grep -q do_syscall_64 /tmp/chain; then
	ok stack-sysrq
else
	fail stack-sysrq "$(grep -c . /tmp/log) lines, none of the entry code"
	while read -r line; do info "stack: $line"; done </tmp/log
fi
# The trace of mark_rodata_ro() as it ran at boot, called from the monitor's stub: it must lead
# through the stub to the kernel's first thread. (A probe at boot records it: kprobe_event= on
# the command line.)
if [ "$(param gate 0)" = 1 ]; then
	mount -t tracefs tracefs /sys/kernel/tracing 2>/dev/null
	sed -n 's/^ *=> //p' /sys/kernel/tracing/trace >/tmp/chain
	if grep -q '^kernel_init' /tmp/chain && grep -q '^ret_from_fork' /tmp/chain; then
		ok stack-gate
	else
		fail stack-gate "$(grep -c . /tmp/chain) entries, not down to kernel_init"
	fi
	info "gate-chain=$(tr '\n' ',' </tmp/chain)"
fi
