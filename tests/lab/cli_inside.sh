#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# cli_inside.sh KERNEL ARM64_KERNEL INITRD: what `ravelin` says to bad input, inside the
# emulated host. Each case gives the expected exit status and a piece of the expected one
# line; a crash (status above 127) can satisfy none of them.

kernel=$1 arm=$2 initrd=$3
R=build/ravelin
pass=0 fail=0
t=/tmp/cli
mkdir -p $t

ok() { echo "ok $1"; pass=$((pass + 1)); }
no() { echo "not ok $1: $2"; fail=$((fail + 1)); }

# expect NAME STATUS TEXT COMMAND...: TEXT must stand in what it prints.
expect() {
	name=$1 want=$2 text=$3; shift 3
	timeout 60 "$@" >$t/out 2>&1 </dev/null; got=$?
	if [ $got -ne "$want" ]; then
		no "$name" "status $got, expected $want: $(head -c 300 $t/out | tr '\n' '|')"
	elif ! grep -qF -- "$text" $t/out; then
		no "$name" "expected \"$text\", got: $(head -c 300 $t/out | tr '\n' '|')"
	else
		ok "$name"
	fi
}

for c in "" run doctor image events policy; do
	expect "help/${c:-ravelin}" 0 "usage: ravelin" $R $c --help
done
expect usage/no-command 2 "usage: ravelin" $R
expect usage/unknown-command 2 "unknown command" $R runn
expect usage/no-kernel 2 "--kernel FILE is needed" $R run
expect usage/cpus-0 2 "a number from 1 to 64" $R run --kernel "$kernel" --cpus 0
expect usage/cpus-65 2 "a number from 1 to 64" $R run --kernel "$kernel" --cpus 65
expect usage/memory-small 2 "at least 64M" $R run --kernel "$kernel" --memory 1M
expect usage/memory-word 2 "at least 64M" $R run --kernel "$kernel" --memory lots
expect usage/stray-word 2 "belongs to none" $R run --kernel "$kernel" oops

# --- kernels that are none ------------------------------------------------------------
: >$t/empty
echo "this is not a kernel" >$t/text
head -c 400 "$kernel" >$t/head400
head -c 3000000 "$kernel" >$t/cut
cp "$kernel" $t/flip
# One bit in the middle of the packed payload.
printf '\377\000\377\000' | dd of=$t/flip bs=1 seek=4000000 conv=notrunc 2>/dev/null
for k in empty text head400 cut flip; do
	expect "kernel/$k" 1 "ravelin:" $R run --kernel $t/$k --console null
	expect "image/$k" 1 "$t/$k" $R image $t/$k
done
expect kernel/missing 1 "No such file" $R run --kernel $t/nothing --console null
expect kernel/directory 1 "ravelin:" $R run --kernel /tmp --console null
expect kernel/other-architecture 1 "another architecture" $R run --kernel "$arm" --console null

# --- memory and initrd -------------------------------------------------------------------
dd if=/dev/zero of=$t/bigrd bs=1M count=140 2>/dev/null
expect initrd/too-large 1 "do not fit" \
	$R run --kernel "$kernel" --initrd $t/bigrd --memory 128M --console null
rm $t/bigrd
dd if=/dev/zero of=$t/midrd bs=1M count=60 2>/dev/null
expect initrd/no-room-for-kernel 1 "MiB of RAM" \
	$R run --kernel "$kernel" --initrd $t/midrd --memory 96M --console null
rm $t/midrd
expect initrd/empty 1 "not empty" $R run --kernel "$kernel" --initrd $t/empty --console null
expect initrd/missing 1 "No such file" $R run --kernel "$kernel" --initrd $t/none --console null

# --- policy --------------------------------------------------------------------------------
printf 'profile: balanced\nseal:\n  texd: {act: fault}\n' >$t/typo.yaml
chmod 600 $t/typo.yaml
expect policy/unknown-key 1 "$t/typo.yaml:3:3: expected" \
	$R run --kernel "$kernel" --policy $t/typo.yaml --console null
expect policy/check 1 "$t/typo.yaml:3:3: expected" $R policy check $t/typo.yaml
printf 'profile: strict\n' >$t/open.yaml
chmod 666 $t/open.yaml
expect policy/writable-by-others 1 "open.yaml" \
	$R run --kernel "$kernel" --policy $t/open.yaml --console null
expect policy/missing 1 "nosuch" $R run --kernel "$kernel" --policy nosuch --console null
expect policy/random-and-nokaslr 1 "nokaslr" \
	$R run --kernel "$kernel" --policy strict --append nokaslr --console null
expect policy/seal-and-rodata-off 1 "rodata=off" \
	$R run --kernel "$kernel" --policy strict --append "rodata=off" --console null

# --- journal ---------------------------------------------------------------------------------
echo '{"seq":1}' >$t/broken.jsonl
expect journal/broken 1 "broken.jsonl" \
	$R run --kernel "$kernel" --journal $t/broken.jsonl --console null
[ "$(cat $t/broken.jsonl)" = '{"seq":1}' ] && ok journal/broken-left-alone ||
	no journal/broken-left-alone "the file was changed"
expect events/missing 1 "No such file" $R events $t/none.jsonl
expect events/broken 1 "line 1" $R events --verify $t/broken.jsonl

# --- devices -----------------------------------------------------------------------------------
expect disk/missing 1 "No such file" $R run --kernel "$kernel" --disk $t/none --console null
expect net/bad 2 "net" sh -c "$R run --kernel '$kernel' --net carrier-pigeon --console null; [ \$? -eq 1 ] && exit 2"
expect console/bad 1 "console" $R run --kernel "$kernel" --console teletype

# --- no KVM --------------------------------------------------------------------------------------
mv /dev/kvm /dev/kvm.away
expect kvm/missing 1 "/dev/kvm" $R run --kernel "$kernel" --console null
expect doctor/missing 2 "/dev/kvm" $R doctor
mv /dev/kvm.away /dev/kvm
# What the demo decides by: can guests run right here? (tests/lab/demo, have_kvm)
expect doctor/speed 0 '"emulated": false' $R doctor --json

# --- nokaslr is honoured and written down -----------------------------------------------------------
cat >$t/ifable.yaml <<'Y'
profile: balanced
placement: {base: if-able}
Y
chmod 600 $t/ifable.yaml
rm -f $t/j.jsonl
timeout 100 $R run --kernel "$kernel" --initrd "$initrd" --policy $t/ifable.yaml --memory 256M \
	--append "console=ttyS0 quiet panic=-1 nokaslr rv.test=boot" --journal $t/j.jsonl \
	>$t/out 2>&1 </dev/null
if grep -q 'not placed: nokaslr' $t/j.jsonl && grep -q ' _text=ffffffff81000000' $t/out; then
	ok placement/nokaslr
else
	no placement/nokaslr "$(grep -i _text $t/out | head -1) $(grep -c . $t/j.jsonl) journal lines"
fi

echo "cli: $pass passed, $fail failed, 0 skipped"
[ $fail -eq 0 ]
