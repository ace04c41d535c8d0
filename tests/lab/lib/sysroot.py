# SPDX-License-Identifier: Apache-2.0
"""Libraries of another architecture, for cross-building ravelin and running it in that host.

Debian's way, a foreign architecture in dpkg, would change the machine; these are the same
packages, unpacked in the cache. The C library itself comes with the cross compiler.
"""

import os

from . import kernels
from .common import DEB_ARCH, LabError, Manifest, arch_name, cache_dir, locked, native_arch

# Each -dev package with the run-time package that its link points to.
PACKAGES = """
    libcapstone-dev libcapstone4 libyaml-dev libyaml-0-2 nettle-dev libnettle8 libhogweed6 libgmp10
    libseccomp-dev libseccomp2 libjansson-dev libjansson4 liblz4-dev liblz4-1 libzstd-dev libzstd1
    liblzma-dev liblzma5 zlib1g-dev zlib1g libfdt-dev libfdt1
""".split()


def path(arch):
    arch = arch_name(arch)
    if arch == native_arch():
        raise LabError("%s is this machine's own architecture; it needs no sysroot" % arch)
    folder = os.path.join(cache_dir("sysroot"), arch)
    manifest = Manifest(folder)
    if not manifest.load() or manifest.data["info"].get("packages") != PACKAGES:
        with locked("fetch"):
            if not manifest.load() or manifest.data["info"].get("packages") != PACKAGES:
                _fetch(arch, folder)
    return folder


def _fetch(arch, folder):
    mirror = kernels.Mirror()

    def fill(tmp, info):
        for package in PACKAGES:
            found = mirror.find([package], DEB_ARCH[arch])
            if not found:
                raise LabError("the mirror has no %s for %s" % (package, arch))
            mirror.unpack(package, DEB_ARCH[arch], found[1], tmp)
        info["packages"] = PACKAGES
        for base, dirs, names in os.walk(tmp):
            for name in names + dirs:
                link = os.path.join(base, name)
                # Absolute links would lead to this machine's libraries.
                if os.path.islink(link) and os.readlink(link).startswith("/"):
                    target = os.path.relpath(tmp + os.readlink(link), base)
                    os.unlink(link)
                    os.symlink(target, link)

    kernels.install(folder, fill)
