# SPDX-License-Identifier: Apache-2.0
"""What every part of the lab shares: messages, the cache folder, locking, checksums."""

import contextlib
import fcntl
import hashlib
import json
import os
import subprocess
import sys

TREE = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", "..", ".."))

# Two spellings of each architecture are in use: Debian's and the kernel's. The lab speaks the
# project's (x86_64, arm64) and translates only where a package name is made.
ARCHES = ("x86_64", "arm64")
DEB_ARCH = {"x86_64": "amd64", "arm64": "arm64"}
MULTIARCH = {"x86_64": "x86_64-linux-gnu", "arm64": "aarch64-linux-gnu"}


class LabError(Exception):
    """Something in the lab itself failed; never the fault of the command that runs in it."""


class quiet:
    """Whether progress messages are wanted (a mutable flag, set once by the command line)."""

    on = False


def say(text):
    if not quiet.on:
        warn(text)


def warn(text):
    sys.stderr.write("lab: %s\n" % text)
    sys.stderr.flush()


def arch_name(name):
    for arch in ARCHES:
        if name in (arch, DEB_ARCH[arch]) or (name, arch) == ("aarch64", "arm64"):
            return arch
    raise LabError("unknown architecture '%s' (x86_64 or arm64)" % name)


def native_arch():
    return arch_name(os.uname().machine)


def cache_dir(*parts):
    base = os.environ.get("RAVELIN_CACHE")
    if not base:
        base = os.path.join(
            os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "ravelin"
        )
    path = os.path.join(os.path.abspath(base), *parts)
    os.makedirs(path, exist_ok=True)
    return path


@contextlib.contextmanager
def locked(name):
    """One process at a time; others wait. Used around everything that writes the cache."""
    with open(os.path.join(cache_dir(), name + ".lock"), "w") as f:
        try:
            fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("waiting for another lab that is filling the cache")
            fcntl.flock(f, fcntl.LOCK_EX)
        yield


def tool(argv, **kw):
    """Runs a program to completion and returns its output; its complaint becomes ours."""
    try:
        r = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **kw)
    except FileNotFoundError:
        raise LabError("%s is not installed (make deps)" % argv[0])
    if r.returncode:
        tail = r.stderr.decode(errors="replace").strip().splitlines()[-3:]
        raise LabError("%s failed: %s" % (argv[0], "; ".join(tail) or "status %d" % r.returncode))
    return r.stdout


def sha256(path):
    h = hashlib.sha256()
    with open(path, "rb") as f:
        while True:
            block = f.read(1 << 20)
            if not block:
                return h.hexdigest()
            h.update(block)


class Manifest:
    """Checksums of the files below one folder of the cache.

    A file is hashed again only when its size or time stamp differs from the last look, so
    that the check on every use costs one stat() per file.
    """

    NAME = "manifest.json"

    def __init__(self, folder):
        self.folder = folder
        self.path = os.path.join(folder, self.NAME)
        self.data = {"info": {}, "files": {}}

    def load(self):
        try:
            with open(self.path) as f:
                self.data = json.load(f)
            return True
        except (OSError, ValueError):
            return False

    def save(self):
        tmp = "%s.%d" % (self.path, os.getpid())
        with open(tmp, "w") as f:
            json.dump(self.data, f, indent=0, sort_keys=True)
        os.replace(tmp, self.path)

    def add_all(self):
        for base, _, names in os.walk(self.folder):
            for name in names:
                path = os.path.join(base, name)
                if name != self.NAME and not os.path.islink(path):
                    self.add(os.path.relpath(path, self.folder))

    def add(self, rel):
        st = os.stat(os.path.join(self.folder, rel))
        self.data["files"][rel] = {
            "sha256": sha256(os.path.join(self.folder, rel)),
            "size": st.st_size,
            "mtime": st.st_mtime_ns,
        }

    def verified(self, rel):
        """The full path of a file whose content is still what was fetched."""
        path = os.path.join(self.folder, rel)
        want = self.data["files"].get(rel)
        if want is None:
            raise LabError("%s is not in the cache's list of files; remove %s" % (rel, self.folder))
        try:
            st = os.stat(path)
        except OSError:
            raise LabError("%s is gone from the cache; remove %s" % (rel, self.folder))
        if (st.st_size, st.st_mtime_ns) != (want["size"], want["mtime"]):
            if sha256(path) != want["sha256"]:
                raise LabError("%s does not match its checksum; remove %s" % (path, self.folder))
            want["mtime"] = st.st_mtime_ns
            self.save()
        return path
