# SPDX-License-Identifier: Apache-2.0
"""Debian's stock kernels in the cache: images, modules, headers.

    kernels/RELEASE-FLAVOUR-ARCH/     vmlinuz, config, modules/ and, for x86_64, vmlinux
    headers/RELEASE-FLAVOUR-ARCH/     the relocated header tree
    debs/PACKAGE-ARCH/                other single packages (busybox for the arm64 host)
"""

import os
import re
import shutil
import struct
import tempfile

from .apt import Apt
from .common import (DEB_ARCH, LabError, Manifest, TREE, arch_name, cache_dir, locked,
                     native_arch, say, tool, warn)

PINS = os.path.join(TREE, "configs", "kernels.txt")
FLAVOURS = ("cloud", "full")


def pins():
    """{series: (release, version)} from configs/kernels.txt, in the order of the file."""
    found = {}
    with open(PINS) as f:
        for line in f:
            words = line.split("#", 1)[0].split()
            if len(words) == 3:
                found[words[0]] = (words[1], words[2])
    return found


def _suffix(arch, flavour):
    if flavour not in FLAVOURS:
        raise LabError("unknown flavour '%s' (cloud or full)" % flavour)
    return ("cloud-" if flavour == "cloud" else "") + DEB_ARCH[arch]


def _release_key(release):
    return [int(n) for n in re.findall(r"\d+", release)]


class Mirror:
    """One apt session; the package lists are read at most once more if they look stale."""

    def __init__(self):
        self.apt = Apt()
        self.fresh = False
        if not self.apt.have_lists():
            self.refresh()

    def refresh(self):
        if self.fresh:
            return False
        self.apt.update()
        self.fresh = True
        return True

    def find(self, packages, deb_arch, version=None):
        """The first of several package names that the mirror has, with its version."""
        while True:
            for package in packages:
                have = self.apt.versions(package, deb_arch)
                if version is None and have:
                    best = next(iter(have))
                    return package, best, have[best]
                if version in have:
                    return package, version, have[version]
            if not self.refresh():
                return None

    def unpack(self, package, deb_arch, version, into):
        try:
            self.apt.unpack(package, deb_arch, version, into)
        except LabError:
            # Mirrors drop superseded files; lists that are a day old then point at nothing.
            if not self.refresh():
                raise
            self.apt.unpack(package, deb_arch, version, into)

    def newest(self, series, suffix):
        pattern = re.compile(
            r"linux-image-(%s[.][0-9][^_]*?)-%s(-unsigned)?$" % (re.escape(series), suffix))
        names = self.apt.names("linux-image-%s." % series)
        releases = {m.group(1) for m in map(pattern.match, names) if m}
        releases = {r for r in releases if re.match(r"^[0-9.+-]+(deb1\d[.0-9]*)?$", r)}
        return max(releases, key=_release_key) if releases else None


def install(folder, finish):
    """Fills a cache folder completely or not at all."""
    tmp = tempfile.mkdtemp(dir=os.path.dirname(folder), prefix=".new-")
    try:
        manifest = Manifest(tmp)
        finish(tmp, manifest.data["info"])
        manifest.add_all()
        manifest.save()
        os.chmod(tmp, 0o755)
        if os.path.isdir(folder):
            shutil.rmtree(folder)
        os.rename(tmp, folder)
    finally:
        shutil.rmtree(tmp, ignore_errors=True)


def extract_vmlinux(bzimage):
    """The uncompressed kernel inside an x86 bzImage (the boot protocol says where it is)."""
    with open(bzimage, "rb") as f:
        data = f.read()
    if data[0x202:0x206] != b"HdrS":
        raise LabError("%s is not a bzImage" % bzimage)
    start = (data[0x1F1] + 1) * 512 + struct.unpack_from("<I", data, 0x248)[0]
    length = struct.unpack_from("<I", data, 0x24C)[0]
    payload = data[start:start + length]
    for magic, argv in ((b"\x02\x21\x4c\x18", ["lz4", "-dc"]), (b"\x28\xb5\x2f\xfd", ["zstd", "-dcq"]),
                        (b"\xfd7zXZ", ["xz", "-dc"]), (b"\x1f\x8b", ["gzip", "-dc"])):
        if payload.startswith(magic):
            # The last four bytes are the size, appended by the kernel's build.
            out = tool(argv, input=payload[:-4])
            if len(out) != struct.unpack("<I", payload[-4:])[0] or out[:4] != b"\x7fELF":
                raise LabError("%s: the payload does not decompress to a kernel" % bzimage)
            return out
    raise LabError("%s: unknown compression %s" % (bzimage, payload[:4].hex()))


class Kernel:
    """One kernel image package, fetched when first asked for."""

    def __init__(self, arch, flavour, series):
        self.arch = arch_name(arch)
        self.flavour = flavour
        self.series = series
        self.suffix = _suffix(self.arch, flavour)
        table = pins()
        if series not in table:
            raise LabError("unknown kernel series '%s' (%s)" % (series, ", ".join(table)))
        release, version = table[series]
        self.folder = self._folder(release)
        self.manifest = Manifest(self.folder)
        if not self.manifest.load():
            with locked("fetch"):
                if not self.manifest.load():
                    self._fetch(release, version)
        self.release = self.manifest.data["info"]["release"]
        self.version = self.manifest.data["info"]["version"]
        if self.version != version:
            say("kernel %s (%s) stands in for %s (%s)" % (self.release, self.version, release, version))

    def _folder(self, release):
        return os.path.join(cache_dir("kernels"), "%s-%s" % (release, self.suffix))

    def _fetch(self, release, version):
        mirror = Mirror()
        deb_arch = DEB_ARCH[self.arch]

        def names(rel):
            base = "linux-image-%s-%s" % (rel, self.suffix)
            return [base, base + "-unsigned"]

        found = mirror.find(names(release), deb_arch, version)
        if not found:
            # The pinned one is gone: a stand-in is kept in the same place only as long as the
            # pins do not change, and it says so itself.
            wanted = "%s (%s)" % (release, version)
            release = mirror.newest(self.series, self.suffix)
            found = release and mirror.find(names(release), deb_arch)
            if not found:
                raise LabError("the mirror has no %s kernel for %s" % (self.series, self.suffix))
            warn("kernel %s is not on the mirror any more; taking %s (%s)"
                 % (wanted, release, found[1]))
        package, version, digest = found

        def fill(tmp, info):
            root = os.path.join(tmp, "root")
            mirror.unpack(package, deb_arch, version, root)
            full = "%s-%s" % (release, self.suffix)
            os.rename("%s/boot/vmlinuz-%s" % (root, full), tmp + "/vmlinuz")
            os.rename("%s/boot/config-%s" % (root, full), tmp + "/config")
            modules = next(m for m in (root + "/lib/modules", root + "/usr/lib/modules")
                           if os.path.isdir(m))
            os.rename("%s/%s" % (modules, full), tmp + "/modules")
            shutil.rmtree(root)
            if self.arch == "x86_64":
                with open(tmp + "/vmlinux", "wb") as f:
                    f.write(extract_vmlinux(tmp + "/vmlinuz"))
            info.update(package=package, version=version, release=full, sha256=digest,
                        arch=self.arch, flavour=self.flavour, series=self.series)

        install(self.folder, fill)
        self.manifest.load()

    def path(self, name="vmlinuz"):
        return self.manifest.verified(name)

    def module_files(self):
        """{module name: path below modules/} of everything in the package."""
        found = {}
        for rel in self.manifest.data["files"]:
            m = re.match(r"modules/(.*/)?([^/]+)\.ko(\.xz|\.zst|\.gz)?$", rel)
            if m:
                found[m.group(2).replace("-", "_")] = rel
        return found

    def copy_modules(self, into):
        """A module tree as modprobe wants it, below INTO/lib/modules/RELEASE."""
        dest = os.path.join(into, "lib", "modules", self.release)
        os.makedirs(os.path.dirname(dest), exist_ok=True)
        shutil.copytree(os.path.join(self.folder, "modules"), dest, dirs_exist_ok=True)
        tool(["/sbin/depmod", "-b", into, self.release])
        return dest


def single_package(package, arch):
    """The unpacked tree of one package of bookworm for an architecture."""
    arch = arch_name(arch)
    folder = os.path.join(cache_dir("debs"), "%s-%s" % (package, DEB_ARCH[arch]))
    manifest = Manifest(folder)
    if not manifest.load():
        with locked("fetch"):
            if not manifest.load():
                mirror = Mirror()
                found = mirror.find([package], DEB_ARCH[arch])
                if not found:
                    raise LabError("the mirror has no package %s for %s" % (package, arch))

                def fill(tmp, info):
                    mirror.unpack(package, DEB_ARCH[arch], found[1], tmp)
                    info.update(package=package, version=found[1], sha256=found[2])

                install(folder, fill)
                manifest.load()
    return manifest


def busybox(arch):
    """A static busybox for the host's userspace: the machine's own where it fits."""
    if arch == native_arch():
        for path in ("/bin/busybox", "/usr/bin/busybox"):
            if os.path.exists(path):
                with open(path, "rb") as f:
                    if b"ld-linux" not in f.read(4096):
                        return path
    manifest = single_package("busybox-static", arch)
    rel = next(r for r in manifest.data["files"] if r.endswith("bin/busybox"))
    return manifest.verified(rel)


def cached():
    """The manifest information of every kernel that is in the cache."""
    base = cache_dir("kernels")
    for name in sorted(os.listdir(base)):
        manifest = Manifest(os.path.join(base, name))
        if not name.startswith(".") and manifest.load():
            yield name, manifest
