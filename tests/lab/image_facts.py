#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compare what `ravelin image` says of stock kernels with what is in image_facts.txt.

usage: image_facts.py [RAVELIN]      (default: build/ravelin)

One line per kernel and key: "ok", "not ok" with both values, or "skip". A kernel whose
release differs from the one in the file is checked for what every kernel must have only.
Kernels come from `lab kernel-path`, which fetches what is missing.
"""
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
RAVELIN = sys.argv[1] if len(sys.argv) > 1 else os.path.join(TOP, "build/ravelin")
count = {"ok": 0, "not ok": 0, "skip": 0}


def say(verdict, what, why=""):
    count[verdict] += 1
    print(f"{verdict} {what}" + (f": {why}" if why else ""))


def check(what, got, want):
    if str(got) == str(want):
        say("ok", what)
    else:
        say("not ok", what, f"got {got}, expected {want}")


def read_facts():
    groups = []
    with open(os.path.join(HERE, "image_facts.txt"), encoding="ascii") as f:
        for line in f:
            words = line.split("#")[0].split()
            if not words:
                continue
            if words[0].startswith("["):
                groups.append((line.strip().strip("[]"), []))
            else:
                groups[-1][1].append(words)
    return groups


def find_kernel(arch, flavour, version):
    p = subprocess.run([os.path.join(HERE, "lab"), "kernel-path", "--arch", arch, "--flavour",
                        flavour, "--version", version], capture_output=True, text=True)
    path = p.stdout.strip()
    return path if p.returncode == 0 and os.path.exists(path) else None


def at(tree, path):
    for key in path.split("."):
        tree = tree.get(key) if isinstance(tree, dict) else None
    return tree


def extent(part):
    start = int(part["va"], 16)
    return start, start + part["size"]


def every_kernel(name, j):
    """What holds for any distribution kernel: nothing is missing, and all says how it was found."""
    for p, r in j["protections"].items():
        check(f"{name} protections.{p}", r["supported"] or r["reason"], True)
    check(f"{name} relocs.present", j["relocs"]["present"], True)
    check(f"{name} btf.found", j["btf"]["found"], True)
    check(f"{name} symbols.count > 40000", j["symbols"]["count"] > 40000, True)
    for t in ("jump_table", "mcount_loc", "altinstructions", "ex_table"):
        check(f"{name} tables.{t}.found", j["tables"][t]["found"], True)
    for r in ("text", "rodata", "copy_to_kernel_nofault"):
        check(f"{name} ranges.{r}", j["ranges"][r]["found"] or j["ranges"][r]["reason"], True)
    for kind in ("sites", "tables", "ranges"):
        mute = [n for n, e in j[kind].items() if bool(e.get("how")) != e["found"]]
        check(f"{name} {kind} that do not say how they were found", mute, [])
    text, rodata, btf = (extent(j["ranges"]["text"]), extent(j["ranges"]["rodata"]),
                         extent(j["btf"]))
    check(f"{name} rodata is behind text and holds the BTF",
          text[1] <= rodata[0] <= btf[0] < btf[1] <= rodata[1], True)


def known_kernel(name, j, facts, symbols):
    for words in facts:
        if words[0] == "symbol":
            got = symbols.get(words[1], set())
            if words[2] == "-":
                check(f"{name} symbol {words[1]} absent", sorted(got), [])
            else:
                check(f"{name} symbol {words[1]} {words[2]}", words[2] in got, True)
        elif words[0] != "release":
            check(f"{name} {words[0]}", at(j, words[0]), words[1])


def read_symbols(path):
    symbols = {}
    out = subprocess.run([RAVELIN, "image", "--symbols", path], capture_output=True, text=True)
    for line in out.stdout.splitlines():
        addr, _, name = line.split(" ", 2)
        symbols.setdefault(name, set()).add(addr)
    return symbols


def one(group, facts):
    name = group.replace(" ", "-")
    path = find_kernel(*group.split())
    if not path:
        say("skip", name, "kernel not available")
        return
    p = subprocess.run([RAVELIN, "image", "--json", path], capture_output=True, text=True)
    if p.returncode:
        say("not ok", name, p.stderr.strip())
        return
    j = json.loads(p.stdout)
    every_kernel(name, j)
    release = [w[1] for w in facts if w[0] == "release"]
    if release and f"Linux version {release[0]} " in j["banner"]:
        known_kernel(name, j, facts, read_symbols(path))
    elif release:
        say("skip", f"{name} values", f"of {release[0]}, this is {j['banner'].split(' (')[0]}")


def main():
    for group, facts in read_facts():
        one(group, facts)
    print(f"image-facts: {count['ok']} passed, {count['not ok']} failed, {count['skip']} skipped")
    return 1 if count["not ok"] else 0


sys.exit(main())
