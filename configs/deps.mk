# SPDX-License-Identifier: Apache-2.0
# What the machine needs. "deps-check" is an order-only prerequisite for targets that want
# everything present: it costs one dpkg query, and installs only when something is missing.

DEPS ?= build $(if $(filter arm64,$(HOSTARCH)),build-arm64) test

.PHONY: deps deps-check
deps:
	@tests/tools/deps install $(DEPS)
deps-check:
	@tests/tools/deps check $(DEPS) >/dev/null || tests/tools/deps install $(DEPS)
