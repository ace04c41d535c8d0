# SPDX-License-Identifier: Apache-2.0
# legit: everything that changes kernel text lawfully, each once, then
# mixed at random for rv.seconds.
#   rv.full=1   also traces every function of the kernel (slow under emulation)
T=/sys/kernel/tracing
seconds=$(param seconds 30)
dmesg -c >/dev/null

l_schedstats() { for i in 1 2 3; do echo 1 >/proc/sys/kernel/sched_schedstats; echo 0 >/proc/sys/kernel/sched_schedstats; done; }
l_tracepoints() {
	echo 1 >$T/events/sched/enable && echo 1 >$T/events/syscalls/enable && sleep 0.1 &&
		echo 0 >$T/events/syscalls/enable && echo 0 >$T/events/sched/enable
}
l_kprobe_events() {
	: >$T/kprobe_events || return 1
	n=0
	for f in vfs_read vfs_write vfs_open do_filp_open kernel_clone do_exit wake_up_process pipe_read pipe_write path_lookupat; do
		echo "p:rv/$f $f" >>$T/kprobe_events && n=$((n + 1))
		echo "r:rv/r_$f $f" >>$T/kprobe_events
	done
	[ $n -ge 5 ] || { echo "only $n probes"; return 1; }
	echo 1 >$T/events/rv/enable && sleep 0.1 && echo 0 >$T/events/rv/enable && : >$T/kprobe_events
}
l_function_tracer() {
	if [ "$(param full 0)" = 1 ]; then : >$T/set_ftrace_filter; else echo 'vfs_*' >$T/set_ftrace_filter; fi
	echo function >$T/current_tracer && sleep 0.1 && echo nop >$T/current_tracer && : >$T/set_ftrace_filter
}
l_function_graph() {
	echo 'do_sys*' >$T/set_ftrace_filter
	echo function_graph >$T/current_tracer && sleep 0.1 && echo nop >$T/current_tracer && : >$T/set_ftrace_filter
}
l_bpf_sock() { rvx bpf sock 5; }
l_bpf_kprobe() { rvx bpf kprobe 3; }
l_bpf_tracepoint() { rvx bpf tracepoint 3; }
l_bpf_fentry() { rvx bpf fentry 2; s=$?; [ $s -eq 77 ] && return 0; return $s; }
l_keys() { echo "keys 10" >/proc/rv_load; }
l_probes() { echo "kprobes 1" >/proc/rv_load; }
l_ftrace() { echo "ftrace 1" >/proc/rv_load; }
l_own_tracepoints() { echo "tracepoints 5" >/proc/rv_load; }
l_rodata() { echo "rodata 5" >/proc/rv_load; }
l_modules() {
	for m in /modules/*.ko; do
		case $m in */rv_attack.ko | */rv_load.ko) continue ;; esac
		insmod "$m" || return 1
	done
	for m in /modules/*.ko; do
		case $m in */rv_attack.ko | */rv_load.ko) continue ;; esac
		rmmod "$(basename "$m" .ko)" || return 1
	done
}
l_reload() { rmmod rv_load && insmod /modules/rv_load.ko; }
l_sysctl() { for f in /proc/sys/kernel/sched_* /proc/sys/kernel/randomize_va_space; do v=$(cat "$f") && echo "$v" >"$f"; done; }
l_bpf_stats() { echo 1 >/proc/sys/kernel/bpf_stats_enabled && rvx bpf sock 1 && echo 0 >/proc/sys/kernel/bpf_stats_enabled; }
l_hotplug() {
	# the last CPU goes and comes back; alternatives and microcode code run again
	c=$(ls -d /sys/devices/system/cpu/cpu[1-9]* 2>/dev/null | tail -n 1)
	[ -f "$c/online" ] || return 0
	echo 0 >"$c/online" && echo 1 >"$c/online"
}

jobs="schedstats tracepoints kprobe_events function_tracer function_graph bpf_sock bpf_kprobe bpf_tracepoint bpf_fentry keys probes ftrace own_tracepoints rodata modules reload sysctl bpf_stats"
[ "$(param hotplug 0)" = 1 ] && jobs="$jobs hotplug"
jobs=$(param jobs "$jobs" | tr , ' ')

insmod /modules/rv_load.ko || fail legit/insmod "rv_load"
rvx storm 100000 >/tmp/storm 2>&1 &
storm=$!
# each once, then at random until the time is over
for j in $jobs; do step "legit/$j" "l_$j"; done
set -- $jobs
end=$(($(cut -d. -f1 /proc/uptime) + seconds))
rounds=0
while [ "$(cut -d. -f1 /proc/uptime)" -lt "$end" ]; do
	k=$((RANDOM % $#))
	eval "j=\${$((k + 1))}"
	if ! "l_$j" >/tmp/out 2>&1; then
		fail legit/mixed "$j: $(tail -n 1 /tmp/out)"
		break
	fi
	clean_log "legit/mixed-$j" || break
	rounds=$((rounds + 1))
done
[ -s /tmp/fail ] || ok legit/mixed
info "rounds=$rounds seconds=$seconds"
if kill -0 $storm 2>/dev/null; then ok legit/storm; else fail legit/storm "$(tail -n 1 /tmp/storm)"; fi
kill $storm 2>/dev/null
wait $storm 2>/dev/null
report=$(cat /proc/rv_load)
case $report in *" bad=0 "*) ok legit/module ;; *) fail legit/module "$report" ;; esac
clean_log legit/end
