# SPDX-License-Identifier: Apache-2.0
"""One emulated host: QEMU's command line, the ports to it, its life and death."""

import ctypes
import fcntl
import io
import os
import secrets
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tarfile
import tempfile
import termios
import time
import tty

from . import image, qemu
from .common import LabError, warn

STATUS_TIMEOUT = 124
STATUS_LAB = 125

# Without a command yet, nothing but the machine's load can make the host slow.
BOOT_SECONDS = 180


class Died(LabError):
    """The emulator ended, or the host's kernel did, before the command was through."""


class TimedOut(Exception):
    pass


def _die_with_parent():
    # PR_SET_PDEATHSIG: no emulator outlives its lab, not even one that was killed hard.
    ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)


def qemu_argv(arch, opts, kernel, initrd, console):
    cpus = 1 if opts.icount else opts.cpus
    program, first, version = qemu.emulator(arch)
    args = ["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-nic", "none",
            "-m", str(opts.memory), "-smp", str(cpus)]
    if opts.icount:
        # One nanosecond of the host's clock is then one instruction: counts repeat exactly.
        args += ["-accel", "tcg,thread=single", "-icount", "shift=0,sleep=off"]
    else:
        args += ["-accel", "tcg,thread=multi"]
    if arch == "x86_64":
        # qboot instead of SeaBIOS and an uncompressed kernel save about half a second; AMD's
        # virtualisation is the only one that QEMU emulates.
        # QEMU before 8.0 spoils the flags register when an interrupt follows cmpxchg16b, which
        # crashes 6.12 kernels (host or guest) about every second time on a busy machine; without
        # the feature bit Linux does not use the instruction.
        cpu = "max,+svm,+npt" + opts.cpu_flags
        if "cx16" not in cpu and version < (8, 0):
            cpu += ",-cx16"
        args += ["-M", "q35", "-bios", "qboot.rom", "-cpu", cpu, "-vga", "none",
                 "-kernel", kernel.path("vmlinux")]
        tty_name, extra = "ttyS0", "tsc=reliable no_timer_check cryptomgr.notests"
    else:
        # QEMU's own pointer authentication cipher instead of the architected one, which
        # costs more than the rest of the function that it protects.
        args += ["-M", "virt,virtualization=on,gic-version=3",
                 "-cpu", "max,pauth-impdef=on" + opts.cpu_flags,
                 "-kernel", kernel.path("vmlinuz")]
        tty_name, extra = "ttyAMA0", "cryptomgr.notests"
    cmdline = "console=%s loglevel=4 panic=-1 rdinit=/init %s %s" % (tty_name, extra, opts.append)
    args += ["-initrd", initrd, "-append", cmdline.strip(),
             "-chardev", "file,id=con,path=" + console, "-serial", "chardev:con",
             "-device", "virtio-serial-pci"]
    return [program] + first + args


class Stream:
    """Bytes from one port to one descriptor, up to the end mark, which is never passed on."""

    def __init__(self, sock, fd, mark):
        self.sock, self.fd, self.mark = sock, fd, mark
        self.held = b""
        self.done = False

    def feed(self, data):
        data = self.held + data
        at = data.find(self.mark)
        if at >= 0:
            self.done, self.held, data = True, b"", data[:at]
        else:
            # Only a tail that could be the start of the mark waits for more.
            keep = 0
            for n in range(min(len(self.mark) - 1, len(data)), 0, -1):
                if data.endswith(self.mark[:n]):
                    keep = n
                    break
            self.held = data[len(data) - keep:]
            data = data[:len(data) - keep]
        write_all(self.fd, data)

    def flush(self):
        write_all(self.fd, self.held)
        self.held = b""


def write_all(fd, data):
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(fd, view):]
        except BlockingIOError:
            select.select([], [fd], [])


class Control:
    """Parses what init reports; the bytes of a file follow its line."""

    def __init__(self, on_line, on_file):
        self.on_line, self.on_file = on_line, on_file
        self.buffer = b""
        self.file = None  # (kind, name, bytes left, open temporary file)

    def feed(self, data):
        self.buffer += data
        while self.buffer:
            if self.file:
                kind, name, left, out = self.file
                part = self.buffer[:left]
                out.write(part)
                self.buffer = self.buffer[len(part):]
                left -= len(part)
                self.file = (kind, name, left, out)
                if left:
                    return
                out.seek(0)
                self.file = None
                self.on_file(kind, name, out)
                continue
            line, newline, rest = self.buffer.partition(b"\n")
            if not newline:
                return
            self.buffer = rest
            words = line.decode(errors="surrogateescape").split(" ", 2)
            if words[0] in ("file", "dir"):
                self.file = (words[0], words[2], int(words[1]), tempfile.TemporaryFile())
                if self.file[2] == 0:
                    kind, name, _, out = self.file
                    self.file = None
                    self.on_file(kind, name, out)
            else:
                self.on_line(words)


class Host:
    def __init__(self, arch, kernel, opts):
        self.arch, self.kernel, self.opts = arch, kernel, opts
        self.up = self.status = self.command_started = None
        self.ended = False
        self.got = {}
        self.proc = None
        self.tmp = tempfile.mkdtemp(prefix="ravelin-lab-")
        self.console = opts.console or os.path.join(self.tmp, "console")
        self.mark = ("\0\x1clab-end-%s\x1c\0" % secrets.token_hex(12)).encode()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.kill()
        shutil.rmtree(self.tmp, ignore_errors=True)

    def kill(self):
        if self.proc and self.proc.poll() is None:
            self.proc.kill()
            self.proc.wait()

    def start(self, command, puts, gets, shell=False):
        settings = {
            # The mark has a NUL, which no shell variable can hold: it travels as printf's escapes.
            "LAB_MARK": "'%s'" % "".join("\\%03o" % c for c in self.mark),
            "LAB_DIR": image.WORKDIR,
            "LAB_TIME": str(int(time.time())),
            "LAB_MODULES": "'%s'" % " ".join(self.opts.module),
        }
        if shell:
            size = terminal_size()
            settings.update(LAB_SHELL="1", LAB_ROWS=str(size[0]), LAB_COLS=str(size[1]),
                            LAB_TERM="'%s'" % os.environ.get("TERM", "linux").replace("'", ""))
        puts = list(puts)
        if gets:
            path = os.path.join(self.tmp, "get")
            with open(path, "wb") as f:
                f.write(b"".join(os.fsencode(name) + b"\n" for name in gets))
            puts.append(("/lab/get", path))
        initrd = os.path.join(self.tmp, "initrd")
        with open(initrd, "wb") as f:
            image.run_image(f, self.kernel, command, puts, settings, not self.opts.bare)
        argv = qemu_argv(self.arch, self.opts, self.kernel, initrd, self.console)
        self.socks, theirs = {}, []
        ports = ["ctl", "out", "err"] + (["tty"] if shell else [])
        for number, name in enumerate(ports, 1):
            ours, far = socket.socketpair()
            self.socks[name] = ours
            theirs.append(far)
            device = ("virtconsole,chardev=%s" if name == "tty" else
                      "virtserialport,nr=%d,chardev=%%s,name=%%s" % number)
            argv += ["-chardev", "socket,id=%s,fd=%d" % (name, far.fileno()),
                     "-device", device % ((name,) if name == "tty" else (name, name))]
        if self.opts.show_qemu:
            warn(" ".join(argv))
        self.log = open(os.path.join(self.tmp, "qemu"), "w+b")
        self.started = time.monotonic()
        self.proc = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log,
            pass_fds=[s.fileno() for s in theirs], start_new_session=True,
            preexec_fn=_die_with_parent)
        for s in theirs:
            s.close()

    # --- reports from the host ------------------------------------------------

    def _line(self, words):
        if words[0] == "up":
            self.up = time.monotonic() - self.started
            self.command_started = time.monotonic()
        elif words[0] == "status":
            self.status = int(words[1])
            self.command_ended = time.monotonic()
        elif words[0] == "missing":
            warn("the command left no file %s" % words[2])
        elif words[0] == "end":
            self.ended = True

    def _file(self, kind, name, out):
        dest = self.gets[name]
        if kind == "dir":
            os.makedirs(dest, exist_ok=True)
            with tarfile.open(fileobj=out) as tar:
                if hasattr(tarfile, "data_filter"):
                    tar.extractall(dest, filter="data")
                else:
                    tar.extractall(dest)
        else:
            if os.path.isdir(dest):
                dest = os.path.join(dest, os.path.basename(name))
            with open(dest, "wb") as f:
                shutil.copyfileobj(out, f, 1 << 20)
        out.close()

    def run(self, gets, timeout):
        """Passes the output on until the command has ended and its files are here."""
        self.gets = gets
        control = Control(self._line, self._file)
        streams = [Stream(self.socks["out"], 1, self.mark), Stream(self.socks["err"], 2, self.mark)]
        live = {self.socks["ctl"]: control}
        live.update({s.sock: s for s in streams})
        while not (self.ended and all(s.done for s in streams)):
            if not live:
                raise Died("the emulated host ended before the command did")
            ready = select.select(list(live), [], [], self._left(timeout))[0]
            if not ready and self._left(timeout) == 0:
                for s in streams:
                    s.flush()
                raise TimedOut()
            for sock in ready:
                data = _recv(sock)
                if data:
                    live[sock].feed(data)
                else:
                    target = live.pop(sock)
                    if isinstance(target, Stream):
                        target.flush()
        return self.status

    def _left(self, timeout):
        if self.command_started is None:
            limit = self.started + BOOT_SECONDS
        elif timeout:
            limit = self.command_started + timeout
        else:
            return None
        return max(0, limit - time.monotonic())

    def shell(self, gets):
        """The terminal of this process becomes the host's first console."""
        self.gets = gets
        control = Control(self._line, self._file)
        tty_sock, ctl = self.socks["tty"], self.socks["ctl"]
        sources = {self.socks["out"], self.socks["err"], tty_sock, ctl}
        wake_r, wake_w = os.pipe()
        os.set_blocking(wake_w, False)
        is_tty = os.isatty(0)
        old_attr = termios.tcgetattr(0) if is_tty else None
        signal.signal(signal.SIGWINCH, lambda *_: os.write(wake_w, b"w"))
        stdin_open = True
        try:
            while not self.ended:
                if not sources:
                    raise Died("the emulated host ended")
                want = list(sources) + [wake_r]
                if stdin_open and self.up is not None:
                    want.append(0)
                for fd in select.select(want, [], [], 0.5 if self.up is None else None)[0]:
                    if fd == 0:
                        data = os.read(0, 4096)
                        if not data:
                            stdin_open = False
                            data = b"\x04"
                        tty_sock.sendall(data)
                    elif fd == wake_r:
                        os.read(wake_r, 4096)
                        ctl.sendall(b"size %d %d\n" % terminal_size())
                    else:
                        data = _recv(fd)
                        if not data:
                            sources.discard(fd)
                        elif fd is ctl:
                            was_up = self.up
                            control.feed(data)
                            if was_up is None and self.up is not None and is_tty:
                                tty.setraw(0, termios.TCSANOW)  # keep what was typed ahead
                        elif fd is tty_sock:
                            write_all(1, data)
                if self.up is None and time.monotonic() - self.started > BOOT_SECONDS:
                    raise Died("the emulated host did not come up")
        finally:
            signal.signal(signal.SIGWINCH, signal.SIG_DFL)
            if old_attr:
                termios.tcsetattr(0, termios.TCSADRAIN, old_attr)
            os.close(wake_r)
            os.close(wake_w)
        while tty_sock in sources and select.select([tty_sock], [], [], 0)[0]:
            data = _recv(tty_sock)
            if not data:
                break
            write_all(1, data)
        return self.status

    def last_words(self, lines=15):
        """What to show when the host failed: QEMU's complaint, then the console's tail."""
        text = []
        for path in (os.path.join(self.tmp, "qemu"), self.console):
            try:
                with open(path, "rb") as f:
                    f.seek(0, io.SEEK_END)
                    f.seek(max(0, f.tell() - 65536))
                    found = f.read().decode(errors="replace").replace("\r", "").strip().splitlines()
                    # A panic's first line says why; the register dump after it is longer than
                    # any fixed tail.
                    why = [i for i, line in enumerate(found) if "Kernel panic" in line]
                    text += found[max(0, min(len(found) - lines, why[0] - 5 if why else len(found))):]
            except OSError:
                pass
        return text


def _recv(sock):
    try:
        return sock.recv(1 << 16)
    except ConnectionResetError:
        return b""


def terminal_size():
    try:
        rows, cols = struct.unpack("HHHH", fcntl.ioctl(0, termios.TIOCGWINSZ, b"\0" * 8))[:2]
    except OSError:
        rows, cols = 0, 0
    return rows or 24, cols or 80
