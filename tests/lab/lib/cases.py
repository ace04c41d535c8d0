# SPDX-License-Identifier: Apache-2.0
"""Test guests under the monitor: what run-cases, demo and soak share.

A case is a dict (see cases.txt). Cases that want the same emulated host run in one boot of it,
by a small shell script that prints each case's console and journal between marks; so a host
that dies takes with it only the case that was running.
"""

import itertools
import json
import os
import queue
import re
import shlex
import subprocess
import sys
import tempfile
import threading
import time

from . import qemu
from .common import native_arch

HERE = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
TREE = os.path.dirname(os.path.dirname(HERE))
BUILD = os.path.join(TREE, "build")
LAB = os.path.join(HERE, "lab")
GUESTS = os.path.join(HERE, "guests")
MODULES = ("drivers/net/dummy.ko", "drivers/block/loop.ko")  # stock ones to load and unload

DEFAULTS = {
    "arch": "x86_64", "kernel": "6.1", "flavour": "cloud", "host": "6.1", "cpus": "1", "memory": "256M",
    "policy": "balanced", "test": "boot", "append": "", "timeout": "180", "kind": "negative",
    "expect": "", "host-cpu": "", "host-cpus": "1", "status": "0", "monitor": "ravelin",
}


class Failed(Exception):
    pass


def output(args):
    done = subprocess.run(args, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise Failed("%s failed" % " ".join(args))
    return done.stdout.strip()


_guests = {}


def guest(series, flavour, arch="x86_64"):
    """The kernel, its release and an initial RAM disk with modules built for it."""
    key = (series, flavour, arch)
    if key not in _guests:
        if arch != native_arch():
            output(["make", "-s", "-C", TREE, "ARCH=" + arch])
        path = [LAB, "kernel-path", "--version", series, "--flavour", flavour, "--arch", arch]
        vmlinuz = output(path)
        headers = output(path + ["--headers"])
        built = output([os.path.join(GUESTS, "build"), headers])
        release = os.path.basename(built)
        root = os.path.join(BUILD, "guests", "modules-" + release)
        tree = os.path.join(root, "lib", "modules", release, "kernel")
        if not os.path.isdir(tree):
            output(path + ["--modules", root])
        extra = []
        for name in MODULES:
            for suffix in ("", ".xz"):
                if os.path.exists(os.path.join(tree, name + suffix)):
                    extra.append(os.path.join(tree, name + suffix))
        initrd = os.path.join(BUILD, "guests", "initrd-%s.cpio" % release)
        output([os.path.join(GUESTS, "mkinitrd"), initrd, release] + extra)
        _guests[key] = {"vmlinuz": vmlinuz, "initrd": initrd, "release": release}
    return _guests[key]


def append_line(case):
    return "console=ttyS0 quiet panic=-1 rv.test=%s rv.cpus=%s %s" % (
        case["test"], case["cpus"], case["append"])


INSIDE = """\
# One case: its console, its journal and its status, between marks.
case_run() {
	name=$1; shift
	rm -f journal
	echo "@@case $name"
	"$@" </dev/null >console 2>&1
	status=$?
	cat console
	echo "@@journal $name"
	if [ -f journal ]; then
		cat journal
		build/ravelin events journal --verify >verify 2>&1 || echo "@@broken $(tail -n 1 verify)"
	fi
	echo "@@end $name $status"
}
"""


class Result:
    def __init__(self, case):
        self.case = case
        self.console, self.events, self.broken = [], [], None
        self.status, self.seconds, self.lost = None, 0.0, None

    def lines(self, word):
        mark = "RV-%s " % word
        return [c.split(mark, 1)[1].strip() for c in self.console if mark in c]

    def infos(self, key):
        """RV-INFO lines that begin with key=, as dicts."""
        found = []
        for line in self.lines("INFO"):
            if line.startswith(key + "="):
                found.append(dict(w.split("=", 1) for w in line.split() if "=" in w))
        return found

    def kind(self, kind):
        return [e for e in self.events if e.get("kind") == kind]


def command(case, names):
    policy = case["policy"]
    if policy.endswith(".yaml"):
        policy = names["policy"][policy]
    return ["timeout", "-s", "KILL", case["timeout"], "build/ravelin", "run",
            "--kernel", names["vmlinuz"], "--initrd", names["initrd"], "--policy", policy,
            "--cpus", case["cpus"], "--memory", case["memory"], "--journal", "journal",
            "--append", append_line(case)]


BATCH = 6  # narrow cases in one emulated host: few enough to share out, many enough to pay its boot


def batches(wanted, jobs):
    """(host CPUs, function that runs it) of each set of cases that share an emulated host."""
    groups = {}
    for c in wanted:
        guest(c["kernel"], c["flavour"], c["arch"])  # built here, once, before threads want it
        groups.setdefault((int(c["host-cpus"]), c["arch"], c["monitor"], c["host"], c["host-cpu"]),
                          []).append(c)
    found = []
    for (cpus, _, monitor, host, host_cpu), group in groups.items():
        if monitor == "none":
            found += [(cpus, lambda done, c=c: done(run_plain(c))) for c in group]
            continue
        size = min(BATCH, -(-len(group) // jobs) if cpus == 1 else BATCH)
        for at in range(0, len(group), size):
            part = group[at:at + size]
            found.append((cpus, lambda done, h=host, f=host_cpu, p=part, n=cpus:
                          run_group(h, f, p, done, cpus=n)))
    return found


def run_batches(wanted, on_result, jobs):
    """Hosts with one CPU side by side, so many at a time; then those with more, one after the
    other. on_result is called by one thread at a time."""
    lock, failure = threading.Lock(), []

    def done(result):
        with lock:
            on_result(result)

    def work(waiting):
        while not failure:
            try:
                batch = waiting.get_nowait()
            except queue.Empty:
                return
            try:
                batch(done)
            except BaseException as e:  # the main thread says it
                failure.append(e)

    everything = batches(wanted, jobs)
    _stopping.clear()
    try:
        for narrow, workers in ((True, jobs), (False, 1)):
            waiting = queue.Queue()
            for cpus, batch in everything:
                if (cpus == 1) == narrow:
                    waiting.put(batch)
            threads = [threading.Thread(target=work, args=(waiting,), daemon=True)
                       for _ in range(workers)]
            for t in threads:
                t.start()
            for t in threads:
                t.join()
            if failure:
                raise failure[0]
    finally:
        stop_all()


_live = set()
_stopping = threading.Event()


def stop_all():
    """No emulated host outlives the program that wanted it, and none is started any more."""
    _stopping.set()
    for proc in list(_live):
        proc.terminate()
    for proc in list(_live):
        proc.wait()


def run_group(host, host_cpu, todo, on_result, have_kvm=False, cpus=1):
    """Run cases in one emulated host (or right here), and again for those left over when it dies."""
    todo = list(todo)
    while todo and not _stopping.is_set():
        before = len(todo)
        _one_boot(host, host_cpu, todo, on_result, have_kvm, cpus)
        if len(todo) == before:
            lost = Result(todo.pop(0))
            lost.lost = "the emulated host did not run it"
            on_result(lost)


_boots = itertools.count(1)


def _one_boot(host, host_cpu, todo, on_result, have_kvm, cpus):
    with tempfile.TemporaryDirectory(prefix="rv-cases-") as tmp:
        puts, script = {}, [INSIDE]
        for case in todo:
            g = guest(case["kernel"], case["flavour"], case["arch"])
            names = {"policy": {}}
            for what in ("vmlinuz", "initrd"):
                name = "%s-%s" % (what, g["release"])
                puts[name] = g[what]
                names[what] = g[what] if have_kvm else name
            if case["policy"].endswith(".yaml"):
                path = os.path.join(HERE, case["policy"])
                puts[os.path.basename(path)] = path
                names["policy"][case["policy"]] = path if have_kvm else os.path.basename(path)
            script.append("case_run %s %s" % (
                shlex.quote(case["name"]), " ".join(shlex.quote(w) for w in command(case, names))))
        inside = os.path.join(tmp, "cases.sh")
        with open(inside, "w") as f:
            f.write("\n".join(script) + "\n")
        total = sum(int(c["timeout"]) for c in todo) + 120
        if have_kvm:
            args, cwd = ["sh", inside], tmp
            os.symlink(BUILD, os.path.join(tmp, "build"))
        else:
            args, cwd = [LAB, "run", "--quiet", "--arch", todo[0]["arch"], "--host-kernel", host,
                         "--cpus", str(cpus), "--timeout", str(total)], TREE
            if host_cpu:
                args.append("--cpu-flags=" + host_cpu)
            os.makedirs(os.path.join(BUILD, "lab-logs"), exist_ok=True)
            args += ["--console", os.path.join(BUILD, "lab-logs", "host-%s-%s-%d.console" % (
                todo[0]["arch"], host, next(_boots)))]
            for name, path in puts.items():
                args += ["--put", "%s:%s" % (path, name)]
            args += ["--put", inside + ":cases.sh", "--", "sh", "cases.sh"]
        proc = subprocess.Popen(args, cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE)
        _live.add(proc)
        result, in_journal, begun = None, False, 0.0
        # A case ends by itself, or inside by its own timeout. When not even that happens, the
        # emulated host is stuck, and nobody in there will tell: watch from out here.
        stuck, watch = [], None

        def give_up():
            stuck.append(True)
            proc.terminate()

        def arm(limit):
            nonlocal watch
            if watch:
                watch.cancel()
            watch = threading.Timer(limit, give_up)
            watch.daemon = True
            watch.start()

        arm(int(todo[0]["timeout"]) + 120)
        try:
            for raw in proc.stdout:
                line = raw.decode("utf-8", "replace").replace("\r", "").rstrip("\n")
                mark = re.search(r"@@(case|journal|broken|end) (.*)$", line)
                if mark and mark.group(1) == "case":
                    result, in_journal, begun = Result(todo[0]), False, time.monotonic()
                    arm(int(todo[0]["timeout"]) + 60)
                elif not result:
                    continue
                elif not mark:
                    if not in_journal:
                        result.console.append(line)
                    elif line.startswith("{"):
                        try:
                            result.events.append(json.loads(line))
                        except ValueError:
                            result.broken = "a journal line that is no JSON"
                elif mark.group(1) == "journal":
                    if mark.start():
                        result.console.append(line[:mark.start()])
                    in_journal = True
                elif mark.group(1) == "broken":
                    result.broken = mark.group(2)
                else:
                    result.status = int(mark.group(2).split()[-1])
                    result.seconds = time.monotonic() - begun
                    todo.pop(0)
                    on_result(result)
                    result = None
            err = proc.stderr.read().decode("utf-8", "replace").strip()
            code = proc.wait()
        except BaseException:
            proc.terminate()
            proc.wait()
            raise
        finally:
            watch.cancel()
            _live.discard(proc)
        if result:
            todo.pop(0)
            result.seconds = time.monotonic() - begun
            result.lost = "the emulated host %s (status %d): %s" % (
                "was stuck with it" if stuck else "ended with it", code,
                err.splitlines()[-1] if err else "no word")
            on_result(result)
        elif todo and code:
            sys.stderr.write(err + "\n")


def run_plain(case):
    """The same guest in plain emulation, with no monitor: shows that a test can fail."""
    if case["arch"] != "x86_64":
        raise Failed("%s: monitor = none is for x86_64" % case["name"])
    g = guest(case["kernel"], case["flavour"])
    result, begun = Result(case), time.monotonic()
    program, first, _ = qemu.emulator("x86_64")
    args = ["timeout", "-s", "KILL", case["timeout"], program] + first + ["-accel",
            "tcg,thread=multi", "-cpu", "max" + ("," + case["host-cpu"] if case["host-cpu"] else ""),
            "-M", "q35", "-m", case["memory"], "-smp", case["cpus"], "-display", "none", "-serial",
            "stdio", "-no-reboot", "-net", "none", "-kernel", g["vmlinuz"], "-initrd", g["initrd"],
            "-append", append_line(case)]
    done = subprocess.run(args, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    result.console = done.stdout.decode("utf-8", "replace").replace("\r", "").split("\n")
    result.status, result.seconds = done.returncode, time.monotonic() - begun
    return result


def keep(folder, result):
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, result.case["name"])
    with open(path + ".console", "w") as f:
        f.write("\n".join(result.console) + "\n")
    with open(path + ".journal", "w") as f:
        for e in result.events:
            f.write(json.dumps(e) + "\n")
    return path


# --- verdicts -------------------------------------------------------------------------

def base(symbol):
    return re.sub(r"\+0x.*", "", symbol or "").split(" ")[0]


# Stopped by the guest's own page tables, before the monitor can see it.
UNSEEN = ("self", "direct")


def _culprit(event, writer, alias):
    if alias == "user":
        return event.get("cpl") == 3
    return ("rv_attack_" + writer) in (base(event.get("pc_symbol")), base(event.get("caller_symbol"))) or (
        # the kernel's own copy routines are asked by name; the report may name only them
        writer in ("memcpy", "copy_from_user", "nofault")
        and re.match(r"(__)?memcpy|rep_movs|copy_user|(__arch)?_copy_from|copy_to_kernel", base(event.get("pc_symbol"))))


def problems(result):
    """Why a case is not good: a list of sentences, empty when it is."""
    case, bad = result.case, []
    if result.lost:
        return [result.lost]
    if result.status == 137:
        bad.append("still running after %s s" % case["timeout"])
    elif str(result.status) not in case["status"].split(","):
        bad.append("status %s, expected %s" % (result.status, case["status"]))
    if not result.lines("UP"):
        bad.append("the guest never came up")
    bad += ["guest: " + f for f in result.lines("FAIL")]
    done = result.lines("DONE")
    if not done and case["kind"] != "fatal":
        bad.append("the guest's test did not end")
    if result.broken:
        bad.append("journal: " + result.broken)
    if case["monitor"] == "none":
        return bad
    bad += _misplaced(result)
    writes = result.kind("write")
    if case["kind"] == "negative":
        for e in writes[:3]:
            bad.append("a lawful guest was accused: %s %s into %s" % (
                e.get("action"), e.get("pc_symbol"), e.get("target_symbol")))
    elif case["kind"] in ("attack", "observe"):
        bad += _two_witnesses(result, writes)
    for want in filter(None, (w.strip() for w in case["expect"].split(";"))):
        m = re.match(r"(\w[\w_-]*)(?:/([\w ]+?))?\s*(==|>=|<=)\s*(\d+)$", want)
        if not m:
            bad.append("cannot read the expectation '%s'" % want)
            continue
        kind, obj, op, number = m.groups()
        have = len([e for e in result.kind(kind) if not obj or e.get("object") == obj])
        if not {"==": have == int(number), ">=": have >= int(number), "<=": have <= int(number)}[op]:
            bad.append("journal: %d %s events, expected %s" % (have, kind, want))
    return bad


def _misplaced(result):
    """The kernel is where the journal says that it was put (the first 2 MiB hold _stext)."""
    at = [re.search(r"\b_stext=([0-9a-f]+)", line) for line in result.lines("INFO")]
    told = [int(e["target"], 16) for e in result.kind("placement")
            if e.get("object") == "kernel base" and "target" in e]
    return ["the kernel is at 0x%s, the journal says 0x%x" % (m.group(1), told[0])
            for m in at if m and told and int(m.group(1), 16) & -(2 << 20) != told[0]]


def died(result):
    """The emulator lost the guest or the host, and nothing that ravelin or the test said explains it.

    A host with several CPUs in as many threads can run code that another CPU has patched
    meanwhile (README.md, Races). A guest that ends of it is shown, its logs are kept, and the case
    is run once more; a second one is a failure. A write event, a complaint of the guest's kernel
    or a failed check is a failure at once, and so is everything in a host with one CPU.
    """
    if result.lost:
        return True
    if result.case["host-cpus"] == "1" or result.kind("write"):
        return False
    return result.status in (10, 11, 137) and not result.lines("FAIL") and not result.lines("DONE")


def _two_witnesses(result, writes):
    """What the guest says of each attack and what the journal says must be one story."""
    bad, told = [], set()
    targets = {i["attack"]: base(i.get("target")) for i in result.infos("attack")}
    good = [o[len("attack/"):] for o in result.lines("OK") if o.startswith("attack/")]
    action = "record" if result.case["kind"] == "observe" else None
    for name in good:
        writer, _, alias = name.split("/")
        hits = [n for n, e in enumerate(writes) if _culprit(e, writer, alias) and (
            alias == "user" or base(e.get("target_symbol")) == targets.get(name)
            or (e.get("object") == "gate" and "/gate/" in name))]
        told.update(hits)
        if alias in UNSEEN:
            continue
        if not hits:
            bad.append("journal: no write event for attack/" + name)
        elif action and writes[hits[0]].get("action") != action:
            bad.append("journal: attack/%s was answered by %s" % (name, writes[hits[0]].get("action")))
    for n, e in enumerate(writes):
        # A store that landed is undone, and that is a write, too: memcpy() for the module.
        undo = result.case["kind"] == "observe" and "[rv_attack]" in (e.get("caller_symbol") or "") \
            and re.match("(__)?memcpy", base(e.get("pc_symbol")))
        if n not in told and not undo and base(e.get("pc_symbol")) != "rv_undo":
            bad.append("journal: a write event that no attack explains: %s into %s" % (
                e.get("pc_symbol"), e.get("target_symbol")))
    if not good:
        bad.append("not one attack was tried")
    return bad[:12]
