# SPDX-License-Identifier: Apache-2.0
# lib.sh: what guest tests share. Sourced by init.

# Lines go through the kernel's own log: one stream, so that an oops never splits a line.
say() {
	if [ -e /tmp/hushed ]; then echo "$*" >/dev/console; else echo "<1>$*" >/dev/kmsg; fi
}
# hush: keep the kernel's own words off the console. An oops is 5 KB, which an emulated serial
# port takes seconds for. At level 0 not even an oops raises the level. rv.verbose=1 prevents it.
hush() {
	[ "$(param verbose 0)" = 1 ] && return
	echo 0 >/proc/sys/kernel/printk
	: >/tmp/hushed
}
info() { say "RV-INFO $*"; }
ok() { echo "$1" >>/tmp/ok; say "RV-OK $1"; }
fail() { echo "$1" >>/tmp/fail; name=$1; shift; say "RV-FAIL $name: $*"; }
count() { if [ -f "/tmp/$1" ]; then wc -l <"/tmp/$1"; else echo 0; fi; }

# param NAME DEFAULT: the value of rv.NAME= on the kernel command line
param() {
	for word in $(cat /proc/cmdline); do
		case $word in rv.$1=*) echo "${word#*=}"; return ;; esac
	done
	echo "$2"
}

# What a healthy kernel never logs.
bad_words='WARNING:|BUG:|Oops|Call Trace:|soft lockup|hard LOCKUP|rcu.*(stall|self-detected)|blocked for more than|general protection|ftrace (bug|failed)|jump_label: Fatal|Unpatched return thunk|unable to handle|scheduling while atomic|rv_load: .* failed|invalid opcode'

# complaints < LOG: print the first few bad lines as RV-INFO
complaints() { grep -v 'RV-' | grep -E "$bad_words" | head -n 5 | while read -r line; do info "log: $line"; done; }

# clean_log NAME: succeed when the log since the last look is free of them, and forget it
clean_log() {
	dmesg -c >/tmp/log
	if grep -v 'RV-' /tmp/log | grep -qE "$bad_words"; then
		fail "$1" "the kernel complained: $(grep -v 'RV-' /tmp/log | grep -m1 -E "$bad_words")"
		return 1
	fi
}

# steps NAME COMMAND...: run it, and report by its status and the kernel's log
step() {
	step_name=$1; shift
	if ! "$@" >/tmp/out 2>&1; then
		fail "$step_name" "$(tail -n 1 /tmp/out)"
		clean_log "$step_name"
		return 1
	fi
	clean_log "$step_name" && ok "$step_name"
}

number() { shuf -i "1-$1" -n 1 2>/dev/null || echo $((RANDOM % $1 + 1)); }
