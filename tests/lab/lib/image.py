# SPDX-License-Identifier: Apache-2.0
"""The emulated host's root file system: initramfs segments in cpio's newc format.

The kernel unpacks any number of concatenated segments, so the part that is the same on every
run (busybox, modules, init) is made once and cached, and only the built tree and the files
of one run are written anew.
"""

import gzip
import hashlib
import lzma
import os
import re
import shutil
import stat
import subprocess
import tempfile

from . import kernels, sysroot
from .common import LabError, MULTIARCH, TREE, cache_dir, locked, native_arch, tool

WORKDIR = "/root/ravelin"
FORMAT = "1"  # change it when the cached segment's layout changes

# In this order modprobe gets the ports up first, while KVM's module is still being relocated.
BOOT_MODULES = ["virtio_pci", "virtio_console", "kvm_amd"]
# Loaded by the kernel itself when somebody opens their device node (see NODES).
EXTRA_MODULES = ["tun", "vhost_vsock", "vhost_net", "vsock", "virtio_net", "dummy", "bridge", "veth"]


class Cpio:
    """Writes one newc segment. Directories are made as needed; everything belongs to root."""

    def __init__(self, out):
        self.out = out
        self.ino = 0
        self.dirs = {""}

    def _entry(self, name, mode, size=0, rdev=(0, 0)):
        raw = os.fsencode(name) + b"\0"
        self.ino += 1
        head = "070701" + "".join("%08x" % v for v in (
            self.ino, mode, 0, 0, 2 if stat.S_ISDIR(mode) else 1, 0, size, 0, 0,
            rdev[0], rdev[1], len(raw), 0))
        head = head.encode() + raw
        self.out.write(head + b"\0" * (-len(head) % 4))

    def mkdir(self, name, mode=0o755):
        name = name.strip("/")
        if name in self.dirs:
            return
        self.mkdir(os.path.dirname(name))
        self.dirs.add(name)
        self._entry(name, stat.S_IFDIR | mode)

    def node(self, name, kind, major, minor, mode=0o666):
        self.mkdir(os.path.dirname(name.strip("/")))
        self._entry(name.strip("/"), kind | mode, 0, (major, minor))

    def symlink(self, name, target):
        self.mkdir(os.path.dirname(name.strip("/")))
        raw = os.fsencode(target)
        self._entry(name.strip("/"), stat.S_IFLNK | 0o777, len(raw))
        self.out.write(raw + b"\0" * (-len(raw) % 4))

    def data(self, name, content, mode=0o644):
        self.mkdir(os.path.dirname(name.strip("/")))
        self._entry(name.strip("/"), stat.S_IFREG | mode, len(content))
        self.out.write(content + b"\0" * (-len(content) % 4))

    def file(self, name, path):
        self.mkdir(os.path.dirname(name.strip("/")))
        with open(path, "rb") as f:
            st = os.fstat(f.fileno())
            if not stat.S_ISREG(st.st_mode):
                raise LabError("%s is not a regular file" % path)
            if st.st_size >= 1 << 32:
                raise LabError("%s is too large to put (4 GiB)" % path)
            mode = 0o755 if st.st_mode & 0o111 else 0o644
            self._entry(name.strip("/"), stat.S_IFREG | mode, st.st_size)
            left = st.st_size
            while left:
                block = f.read(min(left, 1 << 20))
                if not block:
                    raise LabError("%s shrank while it was being read" % path)
                self.out.write(block)
                left -= len(block)
            self.out.write(b"\0" * (-st.st_size % 4))

    def tree(self, name, path, skip=None):
        """A file, or a folder with everything in it."""
        if os.path.islink(path):
            self.symlink(name, os.readlink(path))
        elif os.path.isdir(path):
            self.mkdir(name)
            for entry in sorted(os.listdir(path)):
                if not (skip and skip(entry)):
                    self.tree(os.path.join(name, entry), os.path.join(path, entry), skip)
        else:
            self.file(name, path)

    def end(self):
        self._entry("TRAILER!!!", 0)
        self.out.write(b"\0" * (-self.out.tell() % 512))


def _module_bytes(path):
    with open(path, "rb") as f:
        data = f.read()
    if path.endswith(".xz"):
        return lzma.decompress(data)
    if path.endswith(".gz"):
        return gzip.decompress(data)
    if path.endswith(".zst"):
        return tool(["zstd", "-dcq"], input=data)
    return data


def _depends(path):
    out = tool(["/sbin/modinfo", "-F", "depends", path]).decode().strip()
    return [d.replace("-", "_") for d in out.split(",") if d]


def _add_modules(cpio, kernel):
    """The wanted modules with all they need, uncompressed, with modprobe's index files."""
    have = kernel.module_files()
    wanted = [m for m in BOOT_MODULES + EXTRA_MODULES if m in have]
    if kernel.arch == "x86_64" and "kvm_amd" not in wanted:
        raise LabError("kernel %s has no kvm-amd module" % kernel.release)
    with tempfile.TemporaryDirectory() as tmp:
        top = os.path.join(tmp, "lib", "modules", kernel.release)
        todo, done = list(wanted), set()
        while todo:
            name = todo.pop()
            if name in done or name not in have:
                continue
            done.add(name)
            source = kernel.path(have[name])
            rel = re.sub(r"\.(xz|gz|zst)$", "", have[name][len("modules/"):])
            dest = os.path.join(top, rel)
            os.makedirs(os.path.dirname(dest), exist_ok=True)
            with open(dest, "wb") as f:
                f.write(_module_bytes(source))
            todo += _depends(dest)
        for name in ("modules.builtin", "modules.order", "modules.builtin.modinfo"):
            if os.path.exists(os.path.join(kernel.folder, "modules", name)):
                shutil.copy(kernel.path("modules/" + name), top)
        tool(["/sbin/depmod", "-b", tmp, kernel.release])
        cpio.tree("lib/modules", os.path.join(tmp, "lib", "modules"),
                  skip=lambda n: n.endswith(".bin") or n.startswith("modules.builtin.modinfo"))
    return [m for m in wanted if m in BOOT_MODULES]


def base_segment(kernel):
    """The cached segment for one host kernel: busybox, modules, init. Returns its path."""
    box = kernels.busybox(kernel.arch)
    init = os.path.join(os.path.dirname(__file__), "init")
    key = hashlib.sha256()
    key.update(("%s %s %s" % (FORMAT, kernel.release, kernel.version)).encode())
    for path in (box, init, __file__):
        with open(path, "rb") as f:
            key.update(f.read())
    name = "base-%s-%s.cpio" % (kernel.release, key.hexdigest()[:16])
    path = os.path.join(cache_dir("labs"), name)
    if os.path.exists(path):
        return path
    with locked("labs"):
        if os.path.exists(path):
            return path
        tmp = "%s.%d" % (path, os.getpid())
        with open(tmp, "wb") as out:
            cpio = Cpio(out)
            for d in ("proc", "sys", "dev", "dev/pts", "dev/shm", "run", "var/log", "etc", "usr/bin",
                      "usr/sbin", "sbin", "mnt", "root"):
                cpio.mkdir(d)
            cpio.mkdir("tmp", 0o1777)
            cpio.symlink("var/run", "../run")
            # The kernel opens this before devtmpfs is mounted.
            cpio.node("dev/console", stat.S_IFCHR, 5, 1, 0o600)
            cpio.file("bin/busybox", box)
            for applet in ("sh", "modprobe"):
                cpio.symlink(("sbin/" if applet == "modprobe" else "bin/") + applet, "/bin/busybox")
            with open(init, "rb") as f:
                cpio.data("init", f.read(), 0o755)
            cpio.data("etc/passwd", b"root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n")
            cpio.data("etc/group", b"root:x:0:\nkvm:x:103:\nnogroup:x:65534:\n")
            cpio.data("etc/hosts", b"127.0.0.1 localhost lab\n")
            cpio.data("etc/fstab", b"".join(b"%s %s %s %s 0 0\n" % line for line in (
                (b"proc", b"/proc", b"proc", b"defaults"), (b"sysfs", b"/sys", b"sysfs", b"defaults"),
                (b"devpts", b"/dev/pts", b"devpts", b"mode=620,ptmxmode=666"),
                (b"shm", b"/dev/shm", b"tmpfs", b"size=100%"), (b"tmp", b"/tmp", b"tmpfs", b"size=100%"),
                (b"debugfs", b"/sys/kernel/debug", b"debugfs", b"defaults"),
                (b"tracefs", b"/sys/kernel/tracing", b"tracefs", b"defaults"))))
            boot = _add_modules(cpio, kernel)
            cpio.data("lab/modules", " ".join(boot).encode() + b"\n")
            cpio.end()
        for old in os.listdir(os.path.dirname(path)):
            if old.startswith("base-%s-" % kernel.release) and not old.endswith(str(os.getpid())):
                os.unlink(os.path.join(os.path.dirname(path), old))
        os.replace(tmp, path)
    return path


def is_elf(path):
    try:
        with open(path, "rb") as f:
            return f.read(4) == b"\x7fELF"
    except OSError:
        return False


# --- shared libraries ---------------------------------------------------------

def _needed(path):
    """(interpreter or None, [sonames]) of an ELF file; needs no loader for its architecture."""
    out = subprocess.run(["readelf", "-ldW", path], stdout=subprocess.PIPE,
                         stderr=subprocess.DEVNULL).stdout.decode(errors="replace")
    interp = re.search(r"program interpreter: ([^]]+)\]", out)
    return (interp.group(1) if interp else None,
            re.findall(r"\(NEEDED\).*\[([^]]+)\]", out))


def library_dirs(arch):
    triple = MULTIARCH[arch]
    dirs = ["/lib/" + triple, "/usr/lib/" + triple]
    if arch != native_arch():
        root = os.environ.get("RAVELIN_SYSROOT") or sysroot.path(arch)
        dirs = [root + d for d in dirs] + dirs + ["/usr/%s/lib" % triple]
    return dirs


def libraries(paths, arch):
    """{path in the host: path here} of every shared library that the programs need."""
    dirs = library_dirs(arch)
    found, todo, seen = {}, list(paths), set()
    while todo:
        path = todo.pop()
        if path in seen:
            continue
        seen.add(path)
        interp, names = _needed(path)
        if interp:
            names.append(os.path.basename(interp))
        for name in names:
            real = next((os.path.join(d, name) for d in dirs
                         if os.path.exists(os.path.join(d, name))), None)
            if not real:
                raise LabError("%s needs %s, which is not in %s" % (path, name, " ".join(dirs)))
            where = "/lib/%s/%s" % (MULTIARCH[arch], name)
            if interp and name == os.path.basename(interp):
                found[interp] = real
            found[where] = real
            todo.append(real)
    return found


def _capstone(arch):
    """Ravelin opens capstone by name when it first decodes, so no ELF header names it."""
    for d in library_dirs(arch):
        for name in ("libcapstone.so.4", "libcapstone.so.5"):
            if os.path.exists(os.path.join(d, name)):
                yield os.path.join(d, name)


def built_tree(arch):
    """[(path below the work folder, path here)] of the built programs and the test scripts."""
    build = os.environ.get("RAVELIN_BUILD") or os.path.join(TREE, "build")
    entries = []
    binary = os.path.join(build, "ravelin" if arch == native_arch() else "ravelin-" + arch)
    if os.path.exists(binary):
        entries.append(("build/ravelin", binary))
    for sub in ("kvm", "bench", "tests"):
        folder = os.path.join(build, sub) if arch == native_arch() else os.path.join(build, arch, sub)
        if os.path.isdir(folder):
            for name in sorted(os.listdir(folder)):
                path = os.path.join(folder, name)
                if os.path.isfile(path) and not name.endswith((".o", ".d", ".a")):
                    entries.append(("build/%s/%s" % (sub, name), path))
    return entries


def _skip_source(name):
    return name.endswith((".c", ".h", ".o", ".d", ".pyc")) or name in ("__pycache__", "corpus", "fuzz", "unit")


def run_image(out, kernel, command, puts, settings, with_tree=True):
    """Writes the complete initramfs of one run to an open file.

    puts is a list of (path in the host, path here); settings become shell variables of init.
    """
    with open(base_segment(kernel), "rb") as f:
        shutil.copyfileobj(f, out, 1 << 20)
    cpio = Cpio(out)
    cpio.dirs |= {"bin", "lib", "root", "lab"}
    cpio.mkdir(WORKDIR)
    elves = []
    if with_tree:
        for rel, path in built_tree(kernel.arch):
            cpio.file("%s/%s" % (WORKDIR, rel), path)
            if is_elf(path):
                elves.append(path)
        for folder in ("configs", "tests"):
            if os.path.isdir(os.path.join(TREE, folder)):
                cpio.tree("%s/%s" % (WORKDIR, folder), os.path.join(TREE, folder), _skip_source)
    for where, path in puts:
        cpio.tree(where, path)
        if is_elf(path):
            elves.append(path)
    programs = [p for p in elves if _elf_machine(p) == kernel.arch]
    if programs:
        roots = programs + list(_capstone(kernel.arch))
        libs = libraries(roots, kernel.arch)
        for path in _capstone(kernel.arch):
            libs["/lib/%s/%s" % (MULTIARCH[kernel.arch], os.path.basename(path))] = path
        for where in sorted(libs):
            cpio.file(where, os.path.realpath(libs[where]))
    cpio.data("lab/command", command, 0o755)
    cpio.data("lab/settings", "".join("%s=%s\n" % kv for kv in settings.items()).encode())
    cpio.end()


def _elf_machine(path):
    """The architecture of a dynamic program or library; None for kernels, objects, others."""
    with open(path, "rb") as f:
        head = f.read(20)
    kind, machine = int.from_bytes(head[16:18], "little"), int.from_bytes(head[18:20], "little")
    if kind not in (2, 3):
        return None
    return {62: "x86_64", 183: "arm64"}.get(machine)
