#!/usr/bin/env python3
"""Counts what operations of the library take, and compares it with what they took: counts do not depend on how fast a
machine is, nor on what else it does.

    tests/counts/compare.py OPERATIONS [--baseline FILE] [--accept] [--only NAME]

OPERATIONS is the program `counts_operations` of an optimised build (preset `measure`). Per operation: instructions
(callgrind; 5 % either way are let pass), allocations and their bytes (1 %), bytes read and written, and system calls by name
(strace; those about memory, time and threads are left out). What the name of the machine and the numbers of processes and
inodes add is let pass too. Any other difference is an error, fewer too, so that the baseline stays true: --accept writes
what is now into it, to be committed with the change that explains it.
"""
import argparse
import collections
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile

MARGINS = {"instructions": 0.05, "allocated_bytes": 0.01}
# Names of temporary files, and the record of changes that can be taken back, hold the machine's name and the numbers of
# processes and inodes: the longest host name has 64 characters, and one that fits no short string is allocated.
SLACK = {"allocations": 2, "read_bytes": 128, "written_bytes": 128}
COUNTS = ("instructions", "allocations", "allocated_bytes", "read_bytes", "written_bytes")
NOT_COUNTED = {"brk", "mmap", "munmap", "mremap", "madvise", "mprotect", "futex", "clock_gettime", "clock_nanosleep",
               "sched_yield", "sched_getaffinity", "getpid", "gettid", "getrandom", "rt_sigprocmask", "rt_sigaction"}
READS, WRITES = {"read", "pread64", "preadv", "readv"}, {"write", "pwrite64", "pwritev", "writev"}


def parse_strace(text):
    """(bytes read, bytes written, Counter of calls) between the two getppid()."""
    calls, moved, inside = collections.Counter(), collections.Counter(), False
    for line in text.splitlines():
        found = re.match(r"(?:\d+ +)?(\w+)\(.*= (-?\d+)", line)
        if not found:
            continue
        name, result = found[1], int(found[2])
        if name == "getppid":
            inside = not inside
        elif inside and name not in NOT_COUNTED:
            calls[name] += 1
            moved["read" if name in READS else "written" if name in WRITES else "other"] += max(result, 0)
    return moved["read"], moved["written"], calls


def run(command, folder):
    """Its output. Names are of the same length each time: they are allocated too."""
    with tempfile.TemporaryDirectory(prefix="counts-", dir=folder) as place:
        environment = {"PATH": os.environ["PATH"], "LC_ALL": "C", "LD_BIND_NOW": "1", "TMPDIR": place}
        done = subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"{' '.join(map(str, command))} failed:\n{done.stdout}{done.stderr}")
        log = pathlib.Path(place, "log")
        return done.stdout, log.read_text() if log.exists() else ""


def count(program, name, folder="/tmp"):
    """{what: number} and under "calls" {system call: number}."""
    out, trace = run(["strace", "-f", "-s", "0", "-o", "log", program, name], folder)
    row = {what: int(number) for what, number in (line.split() for line in out.splitlines())}
    row["read_bytes"], row["written_bytes"], row["calls"] = parse_strace(trace)
    _, log = run(["valgrind", "--tool=callgrind", "--instr-atstart=no", "--collect-atstart=no", "--log-file=log",
                  "--callgrind-out-file=/dev/null", program, name], folder)
    row["instructions"] = int(re.search(r"Collected : (\d+)", log)[1])
    return row


def made_with(program):
    """What instructions depend on beside the sources."""
    compiler = subprocess.run([program, "--compiler"], check=True, capture_output=True, text=True).stdout.strip()
    blosc = subprocess.run(["pkg-config", "--modversion", "blosc"], capture_output=True, text=True).stdout.strip()
    cpu = "AVX2" if re.search(r"^flags.*\bavx2\b", pathlib.Path("/proc/cpuinfo").read_text(), re.M) else "no AVX2"
    return f"{compiler}, c-blosc {blosc}, {cpu}"


def load(path):
    """(made with, {operation: row}) of a baseline file."""
    rows, made = {}, ""
    for line in path.read_text().splitlines():
        if line.startswith("# made with: "):
            made = line.removeprefix("# made with: ")
        if line.startswith("#"):
            continue
        name, *numbers, calls = line.split("\t")
        rows[name] = dict(zip(COUNTS, map(int, numbers)))
        rows[name]["calls"] = collections.Counter({k: int(v) for k, v in (c.split(":") for c in calls.split())})
    return made, rows


def store(path, made, rows):
    lines = [f"# made with: {made}", "# what each operation takes: written by compare.py --accept",
             "\t".join(("# operation", *COUNTS, "system calls"))]
    for name, row in sorted(rows.items()):
        calls = " ".join(f"{call}:{n}" for call, n in sorted(row["calls"].items()))
        lines.append("\t".join((name, *(str(row[what]) for what in COUNTS), calls)))
    path.write_text("\n".join(lines) + "\n")


def differences(old, new, instructions=True):
    """[(operation, what, before, now)] beyond the margin; before or now is None where there is none."""
    found = []
    for name in sorted(old.keys() | new.keys()):
        if name not in old or name not in new:
            found.append((name, "the operation", 1 if name in old else None, 1 if name in new else None))
            continue
        before, now = old[name], new[name]
        for what in COUNTS:
            margin = max(MARGINS.get(what, 0) * before[what], SLACK.get(what, 0))
            if abs(now[what] - before[what]) > margin and (instructions or what != "instructions"):
                found.append((name, what, before[what], now[what]))
        for call in sorted(before["calls"].keys() | now["calls"].keys()):
            if before["calls"][call] != now["calls"][call]:
                found.append((name, call + "()", before["calls"][call], now["calls"][call]))
    return found


def table(found):
    lines = [f"{'operation':24}{'what':20}{'before':>14}{'now':>14}{'change':>9}"]
    for name, what, before, now in found:
        change = f"{100 * (now - before) / before:+.1f} %" if before and now else ""
        lines.append(f"{name:24}{what:20}{'-' if before is None else before:>14}{'-' if now is None else now:>14}{change:>9}")
    return "\n".join(lines)


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("program", type=pathlib.Path)
    arguments.add_argument("--baseline", type=pathlib.Path, default=pathlib.Path(__file__).with_name("baseline.tsv"))
    arguments.add_argument("--accept", action="store_true", help="write what is now into the baseline")
    arguments.add_argument("--only", help="operations whose name contains this")
    a = arguments.parse_args()
    program = a.program.resolve()
    made = made_with(program)
    made_before, old = load(a.baseline) if a.baseline.exists() else (made, {})
    names = subprocess.run([program], check=True, capture_output=True, text=True).stdout.split()
    if a.only:
        names = [name for name in names if a.only in name]
        old_others = {name: row for name, row in old.items() if a.only not in name}
        old = {name: row for name, row in old.items() if a.only in name}
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        new = dict(zip(names, pool.map(lambda name: count(program, name), names)))
    found = differences(old, new, instructions=made == made_before)
    if made != made_before:
        print(f"instructions are not compared: the baseline was made with {made_before}, this is {made}")
    if found:
        print(table(found))
    if a.accept:
        store(a.baseline, made, {**(old_others if a.only else {}), **new})
        print(f"accepted: {a.baseline}")
        return 0
    if found:
        print(f"\n{len(found)} counts differ. If that is meant: {' '.join(sys.argv[:2])} --accept")
        return 1
    print(f"{len(new)} operations take what they took")
    return 0


if __name__ == "__main__":
    sys.exit(main())
