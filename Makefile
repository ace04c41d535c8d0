# SPDX-License-Identifier: Apache-2.0
# One non-recursive Makefile. Sources are found by folder, so a new file needs no line here.
#   make help       what there is to do
#   make V=1        show the commands
#   make WERROR=0   let warnings pass
#   make ARCH=arm64 cross-build

ARCH ?= $(shell uname -m | sed 's/aarch64/arm64/')
ifeq ($(filter $(ARCH),x86_64 arm64),)
$(error ARCH=$(ARCH): expected x86_64 or arm64)
endif
HOSTARCH := $(shell uname -m | sed 's/aarch64/arm64/')

B ?= build
OBJ := $(B)/obj/$(ARCH)
CROSS_arm64 := aarch64-linux-gnu-
ifneq ($(ARCH),$(HOSTARCH))
CROSS := $(CROSS_$(ARCH))
endif
CC := $(CROSS)gcc
AR := $(CROSS)gcc-ar
FUZZCC ?= clang

V ?= 0
comma := ,
Q := $(if $(filter 1,$(V)),,@)
say = $(if $(filter 1,$(V)),,@printf '  %-7s %s\n' '$(1)' '$(2)';)

WERROR ?= 1
VERSION := 0.1.0
CPPFLAGS := -Iinclude -Iguest -Ivmm -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -DRV_VERSION='"$(VERSION)"'
CFLAGS ?= -O2 -g
RV_CFLAGS := -std=gnu11 -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes \
	-Wpointer-arith -Wvla -Wformat=2 -fno-strict-aliasing -fvisibility=hidden \
	-fstack-protector-strong -fPIE -MMD -MP $(if $(filter 1,$(WERROR)),-Werror)
HARDEN := -D_FORTIFY_SOURCE=2
LDFLAGS += -pie -Wl,-z,relro,-z,now -Wl,--as-needed
# Capstone is loaded when the first instruction is decoded (guest/disasm.c): its
# tables cost some 2 MiB of private memory in every process that links it.
LIBNAMES := -lyaml -lnettle -ljansson -lseccomp -llz4 -lzstd -llzma -lz
LIBS := $(LIBNAMES) -lpthread -ldl
# The device tree of arm64 machines; nothing but the monitor needs it.
LIBNAMES_arm64 := -lfdt
# The monitor itself takes these from their archives: as shared objects they cost each VM
# 0.7 MiB of its own memory. STATIC=0 links them shared, as distributions prefer.
STATIC ?= 1
BIN_LIBS := $(if $(filter 1,$(STATIC)),-Wl$(comma)-Bstatic $(LIBNAMES) $(LIBNAMES_$(ARCH)) -Wl$(comma)-Bdynamic -lpthread -ldl,$(LIBS) $(LIBNAMES_$(ARCH)))

GUEST_SRC  := $(wildcard guest/*.c guest/base/*.c guest/image/*.c guest/sym/*.c guest/source/*.c \
	guest/paging/*.c guest/linux/*.c)
POLICY_SRC := $(wildcard policy/*.c)
VMM_SRC    := $(wildcard vmm/*.c vmm/dev/*.c vmm/enforce/*.c vmm/session/*.c vmm/arch/$(ARCH)/*.c)
UNIT_SRC   := $(wildcard tests/unit/*_test.c)
UNIT_HELP  := $(filter-out $(UNIT_SRC),$(wildcard tests/unit/*.c))
KVM_SRC    := $(wildcard tests/kvm/*_test.c)
FUZZ_SRC   := $(wildcard tests/fuzz/fuzz_*.c)
STUB_SRC   := $(wildcard guest/stub/$(ARCH)/*.S)

obj = $(patsubst %.c,$(OBJ)/%.o,$(1))
GUEST_LIB  := $(B)/lib/$(ARCH)/libravelin-guest.a
POLICY_LIB := $(B)/lib/$(ARCH)/libravelin-policy.a
ifeq ($(ARCH),$(HOSTARCH))
BIN := $(B)/ravelin
else
BIN := $(B)/ravelin-$(ARCH)
endif

.PHONY: all help
all: $(BIN)

help:
	@sed -n 's/^## //p' Makefile configs/*.mk 2>/dev/null

## make            build build/ravelin
## make demo       boot the stock kernels hardened, attack them, show what was stopped
## make test       everything that CI runs
## make check      unit tests, public headers, layering, format (no KVM needed)
## make lab        the real-kernel tests in the emulated host
## make soak       long runs (DURATION=10m)
## make fuzz       all fuzz targets (FUZZ_SECONDS=60 each)
## make bench      cost figures
## make deps       install the Debian packages that are missing
## make install    to PREFIX=/usr/local (DESTDIR honoured)
## make format     clang-format on all sources

-include $(wildcard configs/*.mk)

# Stubs for the guest are data here: assembled, never executed by the monitor.
$(OBJ)/%.o: %.S
	@mkdir -p $(@D)
	$(call say,AS,$<)$(CC) $(CPPFLAGS) -MMD -MP -c $< -o $@

$(OBJ)/%.o: %.c
	@mkdir -p $(@D)
	$(call say,CC,$<)$(CC) $(CPPFLAGS) $(HARDEN) $(RV_CFLAGS) $(CFLAGS) -c $< -o $@

$(GUEST_LIB): $(call obj,$(GUEST_SRC))
	@mkdir -p $(@D)
	$(call say,AR,$@)rm -f $@; $(AR) rcs $@ $^

$(POLICY_LIB): $(call obj,$(POLICY_SRC))
	@mkdir -p $(@D)
	$(call say,AR,$@)rm -f $@; $(AR) rcs $@ $^

STUB_OBJ := $(patsubst %.S,$(OBJ)/%.o,$(STUB_SRC))
$(BIN): $(call obj,$(VMM_SRC)) $(STUB_OBJ) $(POLICY_LIB) $(GUEST_LIB)
	$(call say,LD,$@)$(CC) $(LDFLAGS) $^ $(BIN_LIBS) -o $@

# --- unit tests: built a second time with the sanitizers -----------------
SAN := -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
SANOBJ := $(B)/san/$(ARCH)
sanobj = $(patsubst %.c,$(SANOBJ)/%.o,$(1))
UNIT_BIN := $(patsubst tests/unit/%.c,$(B)/unit/%,$(UNIT_SRC))

$(SANOBJ)/%.o: %.c
	@mkdir -p $(@D)
	$(call say,CC-SAN,$<)$(CC) $(CPPFLAGS) -Itests/unit $(RV_CFLAGS) -O1 -g $(SAN) -c $< -o $@

$(B)/lib/$(ARCH)/libravelin-san.a: $(call sanobj,$(GUEST_SRC) $(POLICY_SRC) $(UNIT_HELP))
	@mkdir -p $(@D)
	$(call say,AR,$@)rm -f $@; $(AR) rcs $@ $^

# A unit test may name more sources in a comment: "/* unit-sources: vmm/x.c */".
.SECONDEXPANSION:
unit_extra = $(shell sed -n 's,^.*unit-sources: \(.*\)\*/.*,\1,p' tests/unit/$(1).c)
$(B)/unit/%: $(SANOBJ)/tests/unit/%.o $$(call sanobj,$$(call unit_extra,$$*)) $(B)/lib/$(ARCH)/libravelin-san.a
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(SAN) -pie $^ $(LIBS) -lcmocka -o $@

.PHONY: unit
unit: $(UNIT_BIN)
	@tests/tools/run-unit $(UNIT_BIN)

# --- fuzz targets ---------------------------------------------------------
FUZZ_SECONDS ?= 60
FUZZ_BIN := $(patsubst tests/fuzz/%.c,$(B)/fuzz/%,$(FUZZ_SRC))
fuzz_extra = $(shell sed -n 's,^.*fuzz-sources: \(.*\)\*/.*,\1,p' tests/fuzz/$(1).c)
FUZZOBJ := $(B)/fuzzobj/$(ARCH)
fuzzobj = $(patsubst %.c,$(FUZZOBJ)/%.o,$(1))
FUZZ_CFLAGS := -std=gnu11 -g -O1 -fno-sanitize-recover=all -MMD -MP

# Objects are shared by all targets; only the target itself brings the driver.
$(FUZZOBJ)/%.o: %.c
	@mkdir -p $(@D)
	$(call say,CC-FUZZ,$<)$(FUZZCC) $(CPPFLAGS) -Itests/unit $(FUZZ_CFLAGS) \
		-fsanitize=fuzzer-no-link,address,undefined -c $< -o $@

$(B)/lib/$(ARCH)/libravelin-fuzz.a: $(call fuzzobj,$(GUEST_SRC) $(POLICY_SRC))
	@mkdir -p $(@D)
	$(call say,AR,$@)rm -f $@; ar rcs $@ $^

$(B)/fuzz/%: $(FUZZOBJ)/tests/fuzz/%.o $$(call fuzzobj,$$(call fuzz_extra,$$*)) $(B)/lib/$(ARCH)/libravelin-fuzz.a
	@mkdir -p $(@D)
	$(call say,LD-FUZZ,$@)$(FUZZCC) -fsanitize=fuzzer,address,undefined $^ $(LIBS) -o $@

.PHONY: fuzz
fuzz: $(FUZZ_BIN)
	@tests/tools/run-fuzz $(FUZZ_SECONDS) $(FUZZ_BIN)

# --- checks -----------------------------------------------------------------
.PHONY: check headers layering format format-check
headers:
	@tests/tools/check-headers include/ravelin
layering:
	@tests/tools/check-layering
FORMAT_SRC = $(shell git ls-files '*.c' '*.h')
format:
	clang-format -i $(FORMAT_SRC)
format-check:
	@clang-format --dry-run -Werror $(FORMAT_SRC)

check: all headers layering unit

# --- everything ------------------------------------------------------------------
# deps-check (configs/deps.mk) installs what is missing, saying so, before the first compile.
.PHONY: test demo lab soak bench
test: deps-check
	@$(MAKE) --no-print-directory -j$$(nproc) all kvm-tests
	@tests/run
lab: all
	@tests/run lab kvm cli cases devices
DURATION ?= 10m
BOOTS ?= 50
soak: all
	@tests/lab/soak --boots $(BOOTS) --duration $(DURATION)
demo: deps-check
	@$(MAKE) --no-print-directory -j$$(nproc) all
	@tests/lab/demo
bench: all
	@tests/bench/run

# --- install ------------------------------------------------------------------------
PREFIX ?= /usr/local
.PHONY: install
install: all
	install -D -m 755 $(BIN) $(DESTDIR)$(PREFIX)/bin/ravelin
	for f in docs/man/*.[15]; do s=$${f##*.}; \
		install -D -m 644 $$f $(DESTDIR)$(PREFIX)/share/man/man$$s/$${f##*/}; done
	for f in configs/profiles/*.yaml configs/examples/*.yaml; do \
		install -D -m 644 $$f $(DESTDIR)$(PREFIX)/share/ravelin/$${f#configs/}; done
	for f in include/ravelin/*.h; do install -D -m 644 $$f $(DESTDIR)$(PREFIX)/$$f; done

# Objects are worth keeping, however make came to build them.
.SECONDARY:

.PHONY: clean
clean:
	rm -rf $(B)

-include $(shell find $(B)/obj $(B)/san $(B)/fuzzobj -name '*.d' 2>/dev/null)
