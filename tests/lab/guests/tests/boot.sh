# SPDX-License-Identifier: Apache-2.0
# boot: the kernel is up, where it is, and with all its CPUs.
info "$(grep -E ' (_text|_stext|__start_rodata)$' /proc/kallsyms | while read -r a t s; do printf '%s=%s ' "$s" "$a"; done)"
info "memory=$(sed -n 's/^MemTotal: *\([0-9]*\).*/\1/p' /proc/meminfo)"
want=$(param cpus 0)
have=$(grep -c ^processor /proc/cpuinfo)
if [ "$want" -eq 0 ] || [ "$have" -eq "$want" ]; then
	ok cpus
else
	fail cpus "$have of $want online"
fi
clean_log boot && ok boot
