#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# inside.sh RAVELIN CPUS: the host's half of devices.sh; runs on the emulated host.
R=$1 cpus=$2
t=/tmp/dev; mkdir -p $t; chmod 755 $t
p=0 f=0 s=0
ok() { echo "ok $1"; p=$((p + 1)); }
no() { echo "not ok $1: $2"; f=$((f + 1)); }
skip() { echo "skip $1: $2"; s=$((s + 1)); }
is() { if [ "$2" = "$3" ]; then ok "$1"; else no "$1" "got '$2', wanted '$3'"; fi; }

head -c 6291456 /dev/urandom >$t/a; head -c 8388608 /dev/zero | tr '\0' 'x' >$t/b; cp $t/a $t/c
mkdir $t/www; head -c 2000000 /dev/urandom >$t/www/blob
sum=$(sha256sum <$t/a | cut -c1-64) blob=$(sha256sum <$t/www/blob | cut -c1-64)
peer uecho $t/v_5000 2 2>$t/uecho.err &
tunctl -t tap9 >/dev/null 2>&1 || ip tuntap add tap9 mode tap 2>/dev/null
ip addr add 10.0.9.1/24 dev tap9 && ip link set tap9 up && ip route add default via 10.0.9.2 dev tap9 2>/dev/null
httpd -p 80 -h $t/www
net=
if command -v passt >/dev/null; then net="--net user"; fi

# Errors of the start, each one line and status 1
bad() { # NAME TEXT ARGS...
	n=$1 want=$2; shift 2
	timeout 60 $R run --kernel vmlinuz --console null "$@" >$t/out 2>&1; rc=$?
	if [ $rc = 1 ] && grep -q "$want" $t/out; then ok "$n"; else no "$n" "status $rc: $(head -c 200 $t/out)"; fi
}
bad disk-missing "No such file" --disk $t/none
bad disk-fifo "a file or a block device" --disk /dev/null
bad disk-option "unknown option" --disk $t/a,rw
bad net-kind "expected tap:IFNAME" --net wlan
bad net-mac "unicast" --net tap:tap9,mac=01:00:00:00:00:01
bad vsock-cid "expected 3 to" --vsock cid=2,path=$t/x
bad console-kind "expected stdio" --hvc serial

start() { # extra ARGS; the guest of this test
	timeout 240 $R run --kernel vmlinuz --initrd devices.cpio --cpus $cpus --memory 256M --policy observe \
		--append "console=ttyS0 panic=-1 loglevel=4 dev.sum=$sum dev.blob=$blob" --journal $t/j \
		--disk $t/a,serial=disk-a --disk $t/b --disk $t/c,ro --hvc unix:$t/hvc --vsock cid=7,path=$t/v \
		--net tap:tap9,mac=52:54:00:12:34:56 "$@" >$t/log 2>$t/err </dev/null
}
start $net & vm=$!
n=0; until grep -q 'DEV listening' $t/log 2>/dev/null || [ $n -gt 150 ] || ! kill -0 $vm 2>/dev/null; do sleep 1; n=$((n + 1)); done
if grep -q 'DEV listening' $t/log; then
	bad disk-in-use "in use" --disk $t/b
	peer chat $t/hvc hello answer-hello 2>$t/e && ok hvc-output || no hvc-output "$(cat $t/e)"
	for b in 1 100000 2000000 5; do
		timeout 100 peer uconnect $t/v 1234 $b >$t/e 2>&1 && ok vsock-to-guest-$b || no vsock-to-guest-$b "$(cat $t/e)"
	done
	timeout 20 peer uconnect $t/v 4321 5 2>$t/e && no vsock-guest-refuses "accepted" || ok vsock-guest-refuses
fi
wait $vm; is exit-status $? 0
grep -a '^DEV' $t/log | tr -d '\r' >$t/dev
while read -r _ what name why; do
	case $what in
	ok) ok "guest/$name" ;;
	fail) no "guest/${name%:}" "$why" ;;
	note) echo "# $name $why" ;;
	esac
done <$t/dev
grep -q '^DEV end' $t/dev && ok guest-reached-its-end || { no guest-reached-its-end "$(tail -n 3 $t/log | tr '\n' '|')"; sed 's/^/# /' $t/log | tail -n 40; sed 's/^/# /' $t/err | tail; }
is blk-written-on-host "$(head -c 4194304 $t/b | sha256sum | cut -c1-64)" "$(sed -n 's/^DEV sum //p' $t/dev)"
is blk-discarded-is-zero "$(dd if=$t/b bs=1M skip=4 count=1 2>/dev/null | tr -d '\0' | wc -c)" 0
is blk-neighbour-kept "$(dd if=$t/b bs=1M skip=5 count=1 2>/dev/null | tr -d x | wc -c)" 0
is blk-ro-untouched "$(cmp $t/a $t/c && echo same)" same
[ -n "$net" ] || skip guest/net-user-dhcp "no passt on this host"
is sockets-removed "$(ls $t/v $t/hvc 2>/dev/null)" ""
echo "devices: $p passed, $f failed, $s skipped"
[ $f = 0 ]
