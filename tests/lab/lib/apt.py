# SPDX-License-Identifier: Apache-2.0
"""Packages from the machine's own Debian mirror, without touching the machine's apt.

Everything lives in the cache: configuration, package lists, downloads. The mirror's address
is taken from the machine's sources, because that is the one that its owner wants to be used;
the suites are always bookworm's, so that the same kernels are found on a Debian 13 machine.
RAVELIN_MIRROR and RAVELIN_SECURITY_MIRROR override what is found.
"""

import glob
import os
import re
import shutil
import tempfile

from .common import LabError, cache_dir, say, tool

CODENAMES = {"bullseye", "bookworm", "trixie", "forky", "sid", "stable", "oldstable",
             "testing", "unstable"}
KEYRINGS = ("/usr/share/keyrings/debian-archive-keyring.gpg",
            "/usr/share/keyrings/debian-archive-keyring.pgp")


def _entries():
    """(uri, suite, options) of every 'deb' line and stanza that the machine has."""
    for path in ["/etc/apt/sources.list"] + sorted(glob.glob("/etc/apt/sources.list.d/*.list")):
        try:
            text = open(path).read()
        except OSError:
            continue
        for line in text.splitlines():
            m = re.match(r"\s*deb\s+(?:\[([^]]*)\]\s+)?(\S+)\s+(\S+)", line)
            if m:
                opts = dict(o.split("=", 1) for o in (m.group(1) or "").split() if "=" in o)
                yield m.group(2), m.group(3), opts.get("signed-by")
    for path in sorted(glob.glob("/etc/apt/sources.list.d/*.sources")):
        try:
            text = open(path).read()
        except OSError:
            continue
        text = re.sub(r"(?m)^#.*\n?", "", text)
        for stanza in re.split(r"\n\s*\n", text):
            field = {}
            last = None
            for line in stanza.splitlines():
                if line[:1].isspace() and last:
                    field[last] += " " + line.strip()
                elif ":" in line:
                    last, value = line.split(":", 1)
                    last = last.strip().lower()
                    field[last] = value.strip()
            if "deb" not in field.get("types", "").split():
                continue
            if field.get("enabled", "yes").lower() in ("no", "false", "0"):
                continue
            for uri in field.get("uris", "").split():
                for suite in field.get("suites", "").split():
                    yield uri, suite, field.get("signed-by")


def mirrors():
    """(main mirror, security mirror or None, keyring)."""
    main = os.environ.get("RAVELIN_MIRROR")
    security = os.environ.get("RAVELIN_SECURITY_MIRROR")
    keyring = next((k for k in KEYRINGS if os.path.exists(k)), None)
    for uri, suite, signed in _entries():
        base = re.split(r"[-/]", suite)[0]
        if base not in CODENAMES:
            continue
        if re.search(r"[-/](security|updates)$", suite) and "security" in (suite + uri):
            security = security or uri
        elif suite in CODENAMES:
            main = main or uri
        else:
            continue
        if keyring is None and signed and signed.startswith("/"):
            keyring = signed
    if not main:
        raise LabError("no Debian mirror in the apt sources of this machine; "
                       "set RAVELIN_MIRROR (and RAVELIN_SECURITY_MIRROR)")
    if not keyring:
        raise LabError("no Debian archive keyring (package debian-archive-keyring)")
    return main, security, keyring


class Apt:
    def __init__(self):
        self.dir = cache_dir("apt")
        self.conf = os.path.join(self.dir, "apt.conf")
        self._configure()

    def _configure(self):
        main, security, keyring = mirrors()
        opts = "[arch=amd64,arm64 signed-by=%s]" % keyring
        lines = ["deb %s %s bookworm main" % (opts, main),
                 "deb %s %s bookworm-backports main" % (opts, main)]
        if security:
            lines.append("deb %s %s bookworm-security main" % (opts, security))
        for sub in ("lists/partial", "cache/archives/partial"):
            os.makedirs(os.path.join(self.dir, sub), exist_ok=True)
        sources = os.path.join(self.dir, "sources.list")
        text = "\n".join(lines) + "\n"
        old = open(sources).read() if os.path.exists(sources) else None
        if old != text:
            with open(sources, "w") as f:
                f.write(text)
            self._forget_lists()
        status = os.path.join(self.dir, "status")
        open(status, "a").close()
        # How to reach the network (proxies and the like) is the machine's business and is kept;
        # its hooks and pins are not.
        keep = [line for line in tool(["apt-config", "dump"]).decode().splitlines()
                if line.startswith("Acquire::") and not line.endswith(' "";')]
        own = {
            "Dir::Etc::main": "/dev/null", "Dir::Etc::parts": "/dev/null",
            "Dir::Etc::preferences": "/dev/null", "Dir::Etc::preferencesparts": "/dev/null",
            "Dir::Etc::sourcelist": sources, "Dir::Etc::sourceparts": "/dev/null",
            "Dir::State": self.dir, "Dir::State::lists": self.dir + "/lists",
            "Dir::State::status": status, "Dir::Cache": self.dir + "/cache",
            "APT::Sandbox::User": "root" if os.getuid() == 0 else "",
            "Acquire::Languages": "none", "APT::Install-Recommends": "false",
        }
        with open(self.conf, "w") as f:
            f.write("\n".join(keep) + "\n")
            for key, value in own.items():
                f.write('%s "%s";\n' % (key, value))
            f.write('APT::Architectures { "amd64"; "arm64"; };\n')

    def _forget_lists(self):
        shutil.rmtree(os.path.join(self.dir, "lists"), ignore_errors=True)
        os.makedirs(os.path.join(self.dir, "lists", "partial"))

    def _run(self, argv, **kw):
        env = dict(os.environ, APT_CONFIG=self.conf, LC_ALL="C")
        return tool(argv, env=env, **kw).decode(errors="replace")

    def update(self):
        say("reading the package lists")
        self._run(["apt-get", "-q", "-y", "update"])

    def have_lists(self):
        return bool(glob.glob(os.path.join(self.dir, "lists", "*_Packages*")))

    def names(self, prefix):
        return self._run(["apt-cache", "pkgnames", prefix]).split()

    def versions(self, package, deb_arch):
        """{version: sha256} of one package as the mirror has it."""
        try:
            text = self._run(["apt-cache", "show", "%s:%s" % (package, deb_arch)])
        except LabError:
            return {}
        found = {}
        for stanza in text.split("\n\n"):
            version = re.search(r"(?m)^Version: (\S+)", stanza)
            digest = re.search(r"(?m)^SHA256: (\S+)", stanza)
            arch = re.search(r"(?m)^Architecture: (\S+)", stanza)
            if version and digest and arch and arch.group(1) in (deb_arch, "all"):
                found[version.group(1)] = digest.group(1)
        return found

    def unpack(self, package, deb_arch, version, into):
        """Downloads one package (apt checks its signature chain) and unpacks it."""
        spec = "%s:%s" % (package, deb_arch) + ("=%s" % version if version else "")
        with tempfile.TemporaryDirectory(dir=self.dir) as tmp:
            say("fetching %s" % spec)
            self._run(["apt-get", "-q", "download", spec], cwd=tmp)
            debs = glob.glob(os.path.join(tmp, "*.deb"))
            if len(debs) != 1:
                raise LabError("apt-get download %s brought %d files" % (spec, len(debs)))
            tool(["dpkg-deb", "-x", debs[0], into])
