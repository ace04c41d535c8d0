# SPDX-License-Identifier: Apache-2.0
"""Kernel headers, unpacked anywhere instead of installed, for building test modules.

    make -C "$(lab kernel-path --version 6.1 --headers)" M=$PWD modules
"""

import os
import re
import shutil

from . import kernels
from .common import DEB_ARCH, MULTIARCH, LabError, Manifest, cache_dir, locked, native_arch


def _packages(kernel):
    """(package, Debian architecture, version or None) of the three parts of one header tree."""
    base = kernel.release[: -len("-" + kernel.suffix)]  # 6.1.0-57, 6.12.95+deb12
    tools = DEB_ARCH[native_arch()]
    # The build tools run here whatever the kernel is for; bookworm names them after the
    # series, later kernels after the whole release.
    kbuild = ["linux-kbuild-" + base, "linux-kbuild-" + kernel.series]
    return (["linux-headers-" + kernel.release], DEB_ARCH[kernel.arch]), \
           (["linux-headers-%s-common" % base], tools), (kbuild, tools)


def unpack(kernel, into=""):
    """The folder to give to make -C."""
    folder = into or os.path.join(cache_dir("headers"), kernel.release)
    build = os.path.join(folder, "usr", "src", "linux-headers-" + kernel.release)
    manifest = Manifest(folder)
    if not (manifest.load() and os.path.isdir(build)):
        with locked("fetch"):
            if not (manifest.load() and os.path.isdir(build)):
                _fetch(kernel, folder)
    if not os.path.isdir(build):
        raise LabError("no header tree in %s" % folder)
    return os.path.abspath(build)


def _fetch(kernel, folder):
    mirror = kernels.Mirror()
    os.makedirs(folder, exist_ok=True)
    parts = []
    for names, deb_arch in _packages(kernel):
        found = mirror.find(names, deb_arch, kernel.version) or mirror.find(names, deb_arch)
        if not found:
            raise LabError("the mirror has no %s for %s" % (" or ".join(names), deb_arch))
        mirror.unpack(found[0], deb_arch, found[1], folder)
        parts.append("%s %s" % found[:2])
    # The trees find each other by absolute names below /usr; point them into this folder.
    src = os.path.join(os.path.abspath(folder), "usr", "src")
    cross = "" if kernel.arch == native_arch() else MULTIARCH[kernel.arch] + "-"
    for tree in os.listdir(src):
        for name in ("Makefile", ".kernelvariables"):
            path = os.path.join(src, tree, name)
            if os.path.isfile(path) and not os.path.islink(path):
                _rewrite(path, src, cross)
    # 6.12's headers bring the kernel's type information, for which a build would then need
    # pahole. A test module loads without; the file stays for whoever wants to read it.
    types = os.path.join(src, "linux-headers-" + kernel.release, "vmlinux")
    if os.path.exists(types):
        os.rename(types, types + ".btf")
    manifest = Manifest(folder)
    manifest.data["info"] = {"release": kernel.release, "packages": parts}
    manifest.save()


def _rewrite(path, src, cross):
    with open(path) as f:
        text = f.read()
    new = re.sub(r"(?<![\w.])/usr/src/(?=linux-headers-)", src + "/", text)
    # The kernel's own compiler version may not be here; a test module can do with another.
    for cc in re.findall(r"\bgcc-\d+\b", new):
        if not shutil.which(cross + cc):
            new = re.sub(r"\b%s\b" % cc, "gcc", new)
    if new != text:
        with open(path, "w") as f:
            f.write(new)
