# SPDX-License-Identifier: Apache-2.0
# attack: overwrite read-only memory in every way that the module knows.
#   rv.attacks=W/T/A,...  just these      rv.set=core|full|aliases|targets|stack
#   rv.expect=deny        refused by a fault: not landed, an oops that names the culprit
#   rv.expect=drop        refused by losing the store: not landed, no oops
#   rv.verbose=1          let the kernel's messages onto the console
#   rv.expect=land        not refused: landed, and nobody noticed
expect=$(param expect deny)
hush

known=$(echo list >/proc/rv_attack && sed -n 's/^writer \([a-z0-9_]*\)$/\1/p' /proc/rv_attack)
writers=$(echo "$known" | grep -vE '^(push|call)$')
attack_set() {
	case $1 in
	core)
		for w in $writers; do echo "$w/text/vmap"; done
		for w in mov64 rep_movsb memcpy avx page_crossing lock_or; do echo "$w/rodata/vmap"; done
		attack_set targets
		attack_set aliases
		;;
	targets) for t in ops roinit entry table gate hottext; do echo "mov64/$t/vmap"; done ;;
	aliases)
		for a in self direct wp pte dpte; do echo "mov64/text/$a mov64/rodata/$a"; done
		echo "mov64/entry/wp mov64/entry/pte memcpy/text/wp rep_stosq/text/pte mov64/text/user"
		;;
	full)
		for w in $writers; do for t in text rodata; do for a in vmap wp pte dpte; do
			echo "$w/$t/$a"
		done; done; done
		attack_set targets
		attack_set aliases
		;;
	stack) echo "push/text/vmap" ;;
	quick) echo "mov64/text/vmap rep_movsb/rodata/vmap mov64/entry/wp" ;;
	esac
}

# The stores that the monitor judges get an event; the others stop in the guest's own
# page tables or are fixed up by the kernel.
attack() {
	name=attack/$1
	writer=${1%%/*}
	target=${1#*/}
	alias=${target#*/}
	target=${target%%/*}
	if ! echo "$known" | grep -qx "$writer"; then
		info "skip=$1 why=no-such-store-on-this-architecture"
		return
	fi
	dmesg -c >/dev/null
	if [ "$alias" = user ]; then
		# a hang here is a store that is faulted for ever: bound it
		timeout -s KILL 20 rvx usermap "$target" >/tmp/out 2>&1
		status=$?
	else
		sh -c "echo $writer $target $alias >/proc/rv_attack" >/tmp/out 2>&1
		status=$?
	fi
	if [ "$alias" != user ] && grep -q 'No such file' /tmp/out; then
		info "skip=$1 why=no-such-target-in-this-kernel"
		return
	fi
	report=$(cat /proc/rv_attack)
	dmesg -c >/tmp/log
	r_landed= r_returned= r_undone= r_error= r_symbol= before= after=
	for word in $report; do
		case $word in
		landed=*) r_landed=${word#*=} ;;
		returned=*) r_returned=${word#*=} ;;
		undone=*) r_undone=${word#*=} ;;
		error=*) r_error=${word#*=} ;;
		symbol=*) r_symbol=${word#*=} ;;
		addr=*) r_addr=${word#*=} ;;
		bytes-before=*) before=${word#*=} ;;
		bytes-after=*) after=${word#*=} ;;
		esac
	done
	rip=$(sed -n -e 's/.*RIP: 0010:\([^ ]*\).*/\1/p' -e 's/.* pc : \([^ ]*\).*/\1/p' /tmp/log | head -n 1)
	oops=$(grep -m1 -E 'BUG: unable|Oops|general protection|Unable to handle' /tmp/log | sed 's/^\[[^]]*\] //')
	if [ "$r_error" = -95 ]; then
		info "skip=$1 why=not-on-this-cpu"
		return
	fi
	info "attack=$1 target=$r_symbol addr=$r_addr landed=$r_landed returned=$r_returned rip=$rip status=$status oops='$oops'"
	if [ "$alias" = user ]; then
		r_landed=$(sed -n 's/^landed=//p' /tmp/out)
		r_returned=1 r_undone=1
		[ $status -eq 137 ] && { fail "$name" "the process never came back from its store"; return; }
	fi
	if [ "$expect" = land ]; then
		case $alias in
		self|direct)
			# the guest's own page tables refuse these
			if [ "$r_landed" = 0 ] && [ -n "$rip" ]; then ok "$name"; else fail "$name" "expected the guest to refuse it"; fi
			return ;;
		esac
		if [ "$r_landed" = 1 ] && [ "$r_returned" = 1 ] && [ "$r_undone" = 1 ] && [ -z "$rip" ]; then
			ok "$name"
		else
			fail "$name" "landed=$r_landed returned=$r_returned undone=$r_undone rip=$rip $oops"
		fi
		return
	fi
	if [ "$r_landed" = 1 ]; then
		fail "$name" "landed: $before became $after"
		return
	fi
	want_oops=1
	case $writer in copy_from_user | nofault) want_oops=0 ;; esac
	# arm64 fixes up what it cannot read of the user's, not what it cannot write of its own
	if [ "$(uname -m)/$writer/${rip%%+*}" = aarch64/copy_from_user/__arch_copy_from_user ]; then
		ok "$name"
		return
	fi
	[ "$expect" = drop ] && want_oops=0
	case $alias in
	self | direct) [ "$writer" = nofault ] || [ "$writer" = copy_from_user ] || want_oops=1 ;;
	user) want_oops=0 ;;
	esac
	if [ $want_oops = 0 ] && [ -n "$rip" ]; then
		fail "$name" "an oops that nobody expected: $rip $oops"
	elif [ $want_oops = 1 ] && [ -z "$rip" ]; then
		fail "$name" "not landed, and no oops: returned=$r_returned status=$status"
	elif [ $want_oops = 1 ] && [ "$writer" = memcpy ]; then
		if grep -q rv_attack_memcpy /tmp/log; then ok "$name"; else fail "$name" "the trace does not name rv_attack_memcpy: $rip"; fi
	elif [ $want_oops = 1 ] && [ "${rip%%+*}" != "rv_attack_$writer" ]; then
		fail "$name" "the oops names $rip: $oops"
	else
		ok "$name"
	fi
}

list=$(param attacks "" | tr , ' ')
[ -n "$list" ] || list=$(attack_set "$(param set core)")
for one in $list; do attack "$one"; done
# still a working machine?
dmesg -c >/dev/null
if rvx storm 1 >/tmp/out 2>&1 && clean_log alive; then ok alive; else fail alive "$(tail -n 1 /tmp/out)"; fi
