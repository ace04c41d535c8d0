# SPDX-License-Identifier: Apache-2.0
"""The emulator: the machine's own where it is new enough, else a newer one in the cache.

QEMU before 8.1 translates guest code without holding the page's lock: a vCPU may keep a
translation of bytes that another vCPU has just overwritten ("accel/tcg: Always lock pages
before translation", QEMU 8.1). A kernel patches its own text all the time, so an INT3 that was
taken out again is executed later, and guests that are patched while they run on two CPUs die of
it every few minutes. Debian 12 has 7.2; its backports have one without the fault, which is
unpacked into the cache and not installed. RAVELIN_QEMU=system takes the machine's own anyway.
"""

import os
import re
import shutil

from . import kernels
from .common import DEB_ARCH, LabError, Manifest, cache_dir, locked, native_arch, say, tool

GOOD = (8, 1)
PROGRAMS = {"x86_64": ("qemu-system-x86_64", "qemu-system-x86"),
            "arm64": ("qemu-system-aarch64", "qemu-system-arm")}
DATA = ("/usr/share/qemu", "/usr/share/seabios")


def _version(path):
    """(major, minor), asked once per binary: starting it costs 50 ms."""
    st = os.stat(path)
    memo = os.path.join(cache_dir("labs"), "%s-%d-%d" % (os.path.basename(path), st.st_size,
                                                         st.st_mtime_ns))
    try:
        with open(memo) as f:
            return tuple(int(n) for n in f.read().split("."))
    except (OSError, ValueError):
        pass
    m = re.search(r"version (\d+)\.(\d+)", tool([path, "--version"]).decode())
    if not m:
        raise LabError("%s does not tell its version" % path)
    with open("%s.%d" % (memo, os.getpid()), "w") as f:
        f.write("%s.%s" % m.groups())
    os.replace("%s.%d" % (memo, os.getpid()), memo)
    return int(m.group(1)), int(m.group(2))


def _newer(mirror, package, deb_arch):
    """The newest version that the mirror has of a package."""
    have = mirror.apt.versions(package, deb_arch)
    if not have and mirror.refresh():
        have = mirror.apt.versions(package, deb_arch)
    if not have:
        raise LabError("the mirror has no package %s" % package)

    def key(version):
        return [int(n) for n in re.findall(r"\d+", version.split(":", 1)[-1])]
    return max(have, key=key)


def _cached(package):
    deb_arch = DEB_ARCH[native_arch()]
    manifest = Manifest(os.path.join(cache_dir("qemu"), package))
    if manifest.load():
        return manifest
    with locked("fetch"):
        if manifest.load():
            return manifest
        mirror = kernels.Mirror()
        version = _newer(mirror, package, deb_arch)
        say("this machine's QEMU is older than 8.1, which runs stale code after a kernel has "
            "patched itself; taking %s for the lab alone" % version)

        def fill(tmp, info):
            for name in (package, "qemu-system-data", "qemu-system-common"):
                mirror.unpack(name, deb_arch, version, tmp)
            info.update(package=package, version=version)

        kernels.install(manifest.folder, fill)
        manifest.load()
    return manifest


def emulator(arch):
    """(path of the program, its first arguments, (major, minor))."""
    program, package = PROGRAMS[arch]
    path = shutil.which(program)
    if path and (_version(path) >= GOOD or os.environ.get("RAVELIN_QEMU") == "system"):
        return path, [], _version(path)
    if not path:
        # Its libraries come with the machine's own package.
        raise LabError("%s is not installed (make deps)" % program)
    manifest = _cached(package)
    path = manifest.verified("usr/bin/" + program)
    args = []
    for folder in (os.path.join(manifest.folder, "usr/share/qemu"),) + DATA:
        args += ["-L", folder]
    return path, args, _version(path)
