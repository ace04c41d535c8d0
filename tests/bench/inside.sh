#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# inside.sh WHO KERNEL INITRD: start one monitor in a fresh emulated host, measure the time from
# exec to the guest's first line of user space, and the monitor's memory beside guest RAM
# three seconds later. Prints "BENCH who ms=N overhead_kb=N guest_kb=N".
#
# Memory is the proportional set size without the mappings of guest RAM (ravelin maps it twice
# under the name of its memfd; QEMU's is the one mapping of 128 MiB).

who=$1 kernel=$2 initrd=$3
cat "$kernel" "$initrd" >/dev/null # in the page cache for everybody
echo never >/sys/kernel/mm/transparent_hugepage/enabled 2>/dev/null
args="console=ttyS0 quiet panic=-1 rv.test=boot rv.end=hold"
out=/tmp/bench.out
now() { cut -d' ' -f1 /proc/uptime | tr -d .; } # hundredths of a second

t0=$(now)
case $who in
ravelin|ravelin-off)
	policy=strict
	if [ $who = ravelin-off ]; then
		policy=/tmp/off.yaml
		cat >$policy <<'Y'
placement: {base: off}
seal: {text: {watch: off}, rodata: {watch: off}, gate: {watch: off}, require: false}
watchdog: {seconds: 0}
Y
		chmod 600 $policy
	fi
	build/ravelin run --kernel "$kernel" --initrd "$initrd" --memory 128M --no-rng --quiet \
		--append "$args" --policy $policy --journal /tmp/bench.jsonl \
		--console file:$out 2>/tmp/bench.err </dev/null & ;;
microvm)
	qemu-system-x86_64 -M microvm,x-option-roms=off,rtc=off -bios qboot.rom -accel kvm \
		-cpu host -m 128 -smp 1 -nodefaults -no-user-config -nographic -serial file:$out \
		-kernel "$kernel" -initrd "$initrd" -append "$args" 2>/tmp/bench.err </dev/null & ;;
q35)
	qemu-system-x86_64 -M q35 -accel kvm -cpu host -m 128 -smp 1 -nodefaults -no-user-config \
		-nographic -serial file:$out -kernel "$kernel" -initrd "$initrd" -append "$args" \
		2>/tmp/bench.err </dev/null & ;;
lkvm)
	lkvm run -k "$kernel" -i "$initrd" -c 1 -m 128 --console serial -p "$args" \
		>$out 2>/tmp/bench.err </dev/null & ;;
esac
pid=$!
until grep -q RV-UP $out 2>/dev/null; do
	usleep 10000
	kill -0 $pid 2>/dev/null || { echo "BENCH-FAILED $who: $(tail -3 /tmp/bench.err)"; exit 1; }
	[ $(($(now) - t0)) -gt 6000 ] && { echo "BENCH-FAILED $who: no user space in 60 s"; exit 1; }
done
ms=$((($(now) - t0) * 10))
sleep 3
awk -v who=$who -v ms=$ms '
	/^[0-9a-f]+-[0-9a-f]+ / { guest = /ravelin-guest-ram/; size = 0 }
	/^Size:/ { if ($2 >= 131072 && who !~ /ravelin/) guest = 1 }
	/^Rss:/  { rss = $2 }
	/^Pss:/  { if (guest) g += $2; else o += $2 }
	END { printf "BENCH %s ms=%d overhead_kb=%d guest_kb=%d\n", who, ms, o, g }' /proc/$pid/smaps
kill $pid; wait $pid 2>/dev/null
case $who in ravelin*) build/ravelin events /tmp/bench.jsonl | tail -1 ;; esac
exit 0
