# SPDX-License-Identifier: Apache-2.0
# demo: three attacks, and what the kernel itself says about them.
hush
for one in mov64/text/vmap rep_movsb/rodata/vmap mov64/entry/wp; do
	writer=${one%%/*} rest=${one#*/}
	dmesg -c >/dev/null
	sh -c "echo $writer ${rest%%/*} ${rest#*/} >/proc/rv_attack" >/dev/null 2>&1
	report=$(cat /proc/rv_attack)
	dmesg -c >/tmp/log
	bug=$(grep -m1 -oE 'BUG: .*|Unable to handle.*' /tmp/log)
	rip=$(sed -n 's/.*RIP: 0010:\([^ ]*\).*/\1/p' /tmp/log | head -n 1)
	info "demo=$one $report"
	info "demo-bug=$one $bug"
	info "demo-rip=$one $rip"
	case $report in landed=0*) ok "demo/$one" ;; *) fail "demo/$one" landed ;; esac
done
