# SPDX-License-Identifier: Apache-2.0
# bells: ring the doorbells from user mode; whoever does is killed by a signal.
for port in 0xf5 0xf6; do
	rvx bell $port >/tmp/out 2>&1
	status=$?
	if [ $status -gt 128 ]; then
		ok "bell $port"
	else
		fail "bell $port" "status $status: $(tail -n 1 /tmp/out)"
	fi
done
