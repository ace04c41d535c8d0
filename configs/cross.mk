# SPDX-License-Identifier: Apache-2.0
# Cross-building takes the other architecture's libraries from the lab's cache, so that the
# machine's dpkg needs no foreign architecture. SYSROOT=DIR names another place.
ifneq ($(ARCH),$(HOSTARCH))
SYSROOT ?= $(shell tests/lab/lab sysroot --arch $(ARCH))
CROSS_TRIPLE := $(patsubst %-,%,$(CROSS))
CPPFLAGS += -isystem $(SYSROOT)/usr/include -isystem $(SYSROOT)/usr/include/$(CROSS_TRIPLE)
LDFLAGS += $(foreach d,usr/lib lib,-L$(SYSROOT)/$(d)/$(CROSS_TRIPLE) -Wl,-rpath-link,$(SYSROOT)/$(d)/$(CROSS_TRIPLE))
endif
