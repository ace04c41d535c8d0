#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# devices.sh [--arch A] [--version 6.1] [--cpus N] [--ravelin FILE]: every device model against the
# drivers of a stock kernel, in the emulated host: disk contents checked on both sides, network
# through a tap and through passt, random numbers, vsock both ways, a second console, a driver
# that resets a device under load. One line per case, then the counts.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
version=6.1 cpus=2 ravelin= arch=$(uname -m | sed 's/aarch64/arm64/')
while [ $# -gt 0 ]; do
	case $1 in
	--arch) arch=$2 ;;
	--version) version=$2 ;;
	--cpus) cpus=$2 ;;
	--ravelin) ravelin=$2 ;;
	*) sed -n 's/^# \{0,1\}//p' "$0" | sed -n 3,7p >&2; exit 2 ;;
	esac
	shift 2
done
# Another architecture than this machine's: cross-built, and emulated all the way down.
native=$(uname -m | sed 's/aarch64/arm64/') cross=
if [ "$arch" = "$native" ]; then
	: "${ravelin:=$top/build/ravelin}"
else
	case $arch in arm64) cross=aarch64-linux-gnu- ;; esac
	: "${ravelin:=$top/build/ravelin-$arch}"
fi
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
trap 'exit 130' INT TERM
kernel=$("$here/lab" kernel-path --arch "$arch" --version "$version" --modules "$tmp/mods" | head -n 1)
[ -f "$kernel" ] || kernel=$("$here/lab" kernel-path --arch "$arch" --version "$version")
root=$tmp/root
mkdir -p "$root/bin" "$root/dev" "$root/modules"
cp "$("$here/lab" busybox --arch "$arch")" "$root/bin/busybox"
"${cross}gcc" -O2 -Wall -Wextra -static -o "$tmp/peer" "$here/devices/peer.c"
cp "$tmp/peer" "$root/bin/peer"
cp "$here/devices/init" "$root/init"
chmod 755 "$root/init"
# In the order in which they need each other; what is built in is not there to be copied.
for m in failover net_failover virtio_ring virtio virtio_mmio virtio_blk virtio_net virtio_console \
	rng-core virtio-rng vsock vmw_vsock_virtio_transport_common vmw_vsock_virtio_transport; do
	f=$(find "$tmp/mods" -name "$m.ko*" | head -n 1)
	[ -n "$f" ] || continue
	case $f in
	*.xz) xz -dc "$f" >"$root/modules/$m.ko" ;;
	*) cp "$f" "$root/modules/$m.ko" ;;
	esac
	echo "$m.ko" >>"$root/modules/order"
done
mknod "$root/dev/console" c 5 1 2>/dev/null || :
(cd "$root" && find . | cpio -o -H newc --quiet) >"$tmp/devices.cpio"
set -- --put "$kernel:vmlinuz" --put "$tmp/devices.cpio:devices.cpio" --put "$tmp/peer:/usr/local/bin/peer" \
	--put "$ravelin:devices-ravelin" --put "$here/devices/inside.sh:inside.sh"
if [ -z "$cross" ] && command -v passt >/dev/null; then set -- "$@" --put "$(readlink -f "$(command -v passt)"):/usr/local/bin/passt"; fi
# passt wants a root that pivot_root() can leave and that is not a chroot, for its own sandbox;
# the initial RAM file system is neither, a bind mount of it moved over it is both.
exec "$here/lab" run --quiet --arch "$arch" --timeout 500 "$@" -- "chmod 755 /usr/local/bin/* inside.sh devices-ravelin
	here=\$(pwd); mkdir -p /mnt/root; mount --rbind / /mnt/root; cd /mnt/root; mount --move . /
	exec chroot . sh -c \"cd \$here; exec ./inside.sh ./devices-ravelin $cpus\""
