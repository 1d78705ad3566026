#!/usr/bin/env python3
"""Runs the benchmarks on a memory file system and on the disk, and draws what they gave.

    tests/bench/run.py BENCH [--memory DIR] [--disk DIR] [--out DIR] [-- options of the program]

BENCH is the program `bench` (target `bench`, in a release build). Writes DIR/table.md and DIR/ratios.svg: for each case
the medians of the plain loop and of Tessera, and their ratio. Options after -- go to the program: --only "W1 read",
--rounds 15, --threads 1.
"""
import argparse
import pathlib
import subprocess
import sys
import tempfile


def cases(program, folder, options):
    """Rows (name, threads, plain ms, ours ms, ratio, ratio of processor time) as they come."""
    run = subprocess.Popen([program, "--folder", folder, *options], stdout=subprocess.PIPE, text=True)
    for line in run.stdout:
        print(line, end="", flush=True)
        if not line.startswith("#"):
            name, threads, *numbers = line.rstrip("\n").split("\t")
            yield (name, int(threads), *map(float, numbers))
    if run.wait() != 0:
        sys.exit(f"{program} failed on {folder}")


def table(rows):
    lines = ["| medium | operation | threads | plain loop, ms | Tessera, ms | ratio | processor time |",
             "|---|---|---|---|---|---|---|"]
    for medium, name, threads, plain, ours, ratio, cpu in rows:
        lines.append(f"| {medium} | {name} | {threads} | {plain:.1f} | {ours:.1f} | {ratio:.2f} | {cpu:.2f} |")
    return "\n".join(lines) + "\n"


def plot(rows):
    """Bars of the ratios; the line is the plain loop."""
    step, left, unit = 22, 330, 300
    height = step * (len(rows) + 2)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + 2 * unit + 60}" height="{height}" '
           'font-family="sans-serif" font-size="12">',
           f'<text x="{left}" y="14">time of Tessera ÷ time of the plain loop; shorter is better</text>']
    for i, (medium, name, threads, _, _, ratio, _) in enumerate(rows):
        y = step * (i + 1)
        width = min(ratio, 2) * unit
        out.append(f'<text x="{left - 8}" y="{y + 15}" text-anchor="end">{name}, {threads} thr., {medium}</text>')
        out.append(f'<rect x="{left}" y="{y + 3}" width="{width:.0f}" height="{step - 6}" fill="#4a7ebb"/>')
        out.append(f'<text x="{left + width + 4:.0f}" y="{y + 15}">{ratio:.2f}</text>')
    out.append(f'<line x1="{left + unit}" y1="{step}" x2="{left + unit}" y2="{height}" stroke="#c0392b"/>')
    return "\n".join([*out, "</svg>"]) + "\n"


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("program")
    arguments.add_argument("--memory", default="/dev/shm", help="a folder on tmpfs; empty for none")
    arguments.add_argument("--disk", default=tempfile.gettempdir(), help="a folder on a disk; empty for none")
    arguments.add_argument("--out", type=pathlib.Path, default=pathlib.Path("."))
    arguments.add_argument("options", nargs="*")
    a = arguments.parse_args()
    a.out.mkdir(parents=True, exist_ok=True)
    rows = []
    for medium, folder in (("memory", a.memory), ("disk", a.disk)):
        if folder:
            rows += [(medium, *row) for row in cases(a.program, folder, a.options)]
            (a.out / "table.md").write_text(table(rows))
            (a.out / "ratios.svg").write_text(plot(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
