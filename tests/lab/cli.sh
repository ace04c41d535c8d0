#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# cli.sh: what `ravelin` says to bad input, on a host with a real KVM (the emulated one). One
# line per case; the cases are in cli_inside.sh.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
lab=$here/lab
kernel=$("$lab" kernel-path --arch amd64 --flavour cloud --version 6.1)
arm=$("$lab" kernel-path --arch arm64 --flavour cloud --version 6.1)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
# The test guest's modules, built against this kernel where that has not been done.
"$here/guests/build" "$("$lab" kernel-path --version 6.1 --headers)" >/dev/null
"$here/guests/mkinitrd" "$tmp/initrd" "$(basename "$(dirname "$kernel")")"
# As root of a machine whose files belong to somebody else, the policy file's owner matters:
# the emulated host unpacks everything as root.
"$lab" run --memory 3G --timeout 500 --put "$kernel:k" --put "$arm:a" --put "$tmp/initrd:i" -- \
	sh tests/lab/cli_inside.sh k a i
