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
if grep -q entry_SYSCALL_64_after_hwframe /tmp/log && grep -q do_syscall_64 /tmp/log; then
	if grep -E '\? .*(do_syscall_64|entry_SYSCALL_64)' /tmp/log; then
		fail stack-sysrq "unreliable lines: $(grep -m1 -E '\? .*(do_syscall|entry_SYSC)' /tmp/log)"
	else
		ok stack-sysrq
	fi
else
	fail stack-sysrq "$(grep -c . /tmp/log) lines, none of the entry code"
fi
