# SPDX-License-Identifier: Apache-2.0
# Test guests: modules and initial RAM disks for the stock kernels, and what runs them.
# The kernels come from Debian packages and are fetched into a cache on first use.

LAB := tests/lab
.PHONY: guests
guests:
	@for v in 6.1 6.12; do \
		h=$$($(LAB)/lab kernel-path --version $$v --headers) && $(LAB)/guests/build $$h || exit 1; \
	done
