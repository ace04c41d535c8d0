# SPDX-License-Identifier: Apache-2.0
# kvmtests.mk: tests on a real KVM without a Linux guest. tests/kvm/run runs them.

KVM_OUT := $(B)/kvm
# All of the monitor but its commands; a test that judges writes itself says so below.
KVM_OBJ := $(call obj,$(filter-out vmm/main.c vmm/cmd_%.c,$(VMM_SRC)))

$(KVM_OUT)/memprot_test: $(call obj,$(wildcard tests/kvm/memprot_*.c)) \
		$(filter-out %/enforce/seal.o,$(KVM_OBJ)) $(patsubst %.S,$(OBJ)/%.o,$(STUB_SRC)) $(POLICY_LIB) $(GUEST_LIB)
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(LDFLAGS) $^ $(LIBS) -o $@

# --- tiny guests: ELF64, linked where a kernel is ----------------------------------
KVM_GUEST_CFLAGS := -std=gnu11 -O2 -g0 -Wall -Wextra -Werror -ffreestanding -fno-pic -fno-pie \
	-mcmodel=kernel -mno-red-zone -mgeneral-regs-only -fno-stack-protector \
	-fno-asynchronous-unwind-tables -fcf-protection=none -MMD -MP
KVM_GUESTS := $(patsubst tests/kvm/guest/%_guest.c,$(KVM_OUT)/%.elf,$(wildcard tests/kvm/guest/*_guest.c))
KVM_GUEST_LIB := $(KVM_OUT)/obj/start.o $(KVM_OUT)/obj/lib.o

$(KVM_OUT)/obj/%.o: tests/kvm/guest/%.c
	@mkdir -p $(@D)
	$(call say,CC-KVM,$<)$(CC) $(KVM_GUEST_CFLAGS) -c $< -o $@

$(KVM_OUT)/obj/%.o: tests/kvm/guest/%.S
	@mkdir -p $(@D)
	$(call say,AS-KVM,$<)$(CC) -MMD -MP -c $< -o $@

$(KVM_OUT)/%.elf: $(KVM_OUT)/obj/%_guest.o $(KVM_GUEST_LIB) tests/kvm/guest/guest.ld
	$(call say,LD-KVM,$@)$(CC) -nostdlib -static -no-pie -Wl,--build-id=none -Wl,-z,noexecstack \
		-Wl,-z,max-page-size=4096 -T tests/kvm/guest/guest.ld $(filter %.o,$^) -o $@

.PRECIOUS: $(KVM_OUT)/obj/%.o
.PHONY: kvm-tests
ifeq ($(ARCH),x86_64)
kvm-tests: $(KVM_GUESTS) $(KVM_OUT)/memprot_test
else
kvm-tests:
	@echo 'kvm-tests: written for x86_64 only'
endif

-include $(wildcard $(KVM_OUT)/obj/*.d)
