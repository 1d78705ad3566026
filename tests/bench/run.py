#!/usr/bin/env python3
"""Runs the benchmarks on a memory file system and on the disk, beside other libraries, and draws what they gave.

    tests/bench/run.py BENCH [--memory DIR] [--disk DIR] [--out DIR] [--no-peers] [-- options of the program]

BENCH is the program `bench` of an optimised build (preset `measure`). Writes DIR/rows.tsv as it goes, then DIR/table.md
and DIR/ratios.svg; `run.py --draw DIR` draws again what is in rows.tsv. Options after -- go to the program:
--only "W1 read", --rounds 15, --threads 1. The peers are those of peers.py and the programs bench_peer_* beside BENCH.
They take part where they can, and only in memory, where they need not wait for anything.
"""
import argparse
import math
import pathlib
import shlex
import subprocess
import sys
import tempfile

PEERS = pathlib.Path(__file__).with_name("peers.py")
COLOURS = {"Tessera": "#1b5faa", "zarr": "#d9822b", "HDF5": "#2a8f5b", "TensorStore": "#8a4fa3", "z5": "#b0455f",
           "libzarr": "#8c6d31"}
# Ratios to reach: by one thread and by two.
WANTED = {
    "W1 read all": (0.80, 0.80), "W1 read into new memory": (0.65, 0.65), "W1 write all": (1.08, 1.08),
    "W1 read 3:-3": (0.85, 0.85), "W1 write 3:-3": (1.30, 1.30),
    "W1 elements one by one": (0.45, 0.45), "W1 boxes one by one": (0.55, 0.55), "W1 elements as one batch": (0.055,),
    "W1 boxes as one batch": (0.31,), "W2 read all": (0.85, 0.90), "W2 write all": (1.08, 1.08), "W3 read all": (1.0, 1.0),
    "W3 write all": (1.25, 1.25), "W5 one by one": (0.85, 0.85), "W5 cached": (0.20, 0.20),
    "W6 to (512, 512, 1), 1024 MiB": (1.2, 1.2), "W6 to (1, 512, 512), 1024 MiB": (1.2, 1.2), "W7 read all": (1.0, 1.0),
    "W8 export, C order": (1.3, 1.3), "W8 import, C order": (1.1, 1.1), "W8 export, Fortran order": (1.5, 1.5),
    "W8 import, Fortran order": (1.1, 1.1), "a million chunks: count": (1.2,),
    "W9 read all": (0.80, 0.80), "W9 500 read all": (0.80, 0.80), "W9 509 read all": (0.80, 0.80),
    "W9 read 3:-3": (0.85, 0.85), "W9 500 read 3:-3": (0.85, 0.85), "W9 509 read 3:-3": (0.85, 0.85),
    "W10 u1 uncompressed read all": (1.0, 1.0), "W10 >f8 read all": (0.85, 0.85), "W10 >f8 uncompressed read all": (1.1, 1.1),
    "W1 stats --bins 0 beside reading": (1.3, 1.3), "W1 stats --bins 32 beside reading": (1.8, 1.8),
    "W1 digest beside reading and SHA-256": (1.3, 1.3), "W1 diff beside reading twice": (1.3, 1.3)}


class Row:
    def __init__(self, line):
        self.medium, self.name, threads, offset, self.side, *numbers = line.rstrip("\n").split("\t")
        self.threads, self.offset = int(threads), int(offset)
        self.plain, self.time, self.ratio, self.cpu, self.plain_memory, self.memory = map(float, numbers)

    @property
    def durable(self):
        return self.name.endswith(" durable")

    @property
    def wanted(self):
        ratios = WANTED.get(self.name, ()) if self.side == "Tessera" else ()
        return ratios[self.threads - 1] if self.threads <= len(ratios) else None


def ratio(row):
    return f"{row.ratio:.2f}" if row.ratio >= 0.1 else f"{row.ratio:.3f}"


def table(rows):
    """A line for each operation: ratios by one thread and by two, of each who took part."""
    lines = []
    for title, section in sections(rows):
        sides = list(dict.fromkeys(r.side for r in section))
        lines += [f"\n### {title}\n",
                  "| operation | plain loop, ms | " + " | ".join(sides) + " | wanted | processor time | offset | MiB |",
                  "|---" * (6 + len(sides)) + "|"]
        for name in dict.fromkeys(r.name for r in section):
            same = [r for r in section if r.name == name]
            ours = [r for r in same if r.side == "Tessera"]
            cells = [name.removesuffix(" durable"), " · ".join(f"{r.plain:.4g}" for r in ours)]
            cells += [" · ".join(ratio(r) for r in same if r.side == side) for side in sides]
            cells += ["" if ours[0].wanted is None else f"{ours[0].wanted:g}", " · ".join(f"{r.cpu:.2f}" for r in ours),
                      " · ".join(f"{r.offset}" for r in ours), " · ".join(f"{max(r.memory, 0):.0f}" for r in ours)]
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines).lstrip() + "\n"


def sections(rows):
    """Durable rows apart: one library that waits for the disk beside one that does not would be no comparison."""
    for medium in ("memory", "disk"):
        for durable in (False, True):
            part = [r for r in rows if r.medium == medium and r.durable == durable]
            if part:
                where = "In memory (tmpfs)" if medium == "memory" else "On the disk, in the page cache"
                if durable:
                    where = f"{where.split(',')[0]}, durable when done; the plain loop is not"
                yield where, part


def plot(rows):
    """A line for each operation, dots for the ratios on a logarithmic scale: left of the line of 1 is faster."""
    longest = max(len(r.name.removesuffix(" durable")) for r in rows)
    left, width, step, low, high = max(290, 7 * longest + 20), 560, 19, 0.03, 12.0
    def x(ratio):
        return left + width * math.log(min(max(ratio, low), high) / low) / math.log(high / low)
    out, y = [], 58
    for title, section in sections(rows):
        names = list(dict.fromkeys(r.name for r in section))
        out.append(f'<text x="{left}" y="{y - 6}" font-weight="bold">{title}</text>')
        bottom = y + step * len(names)
        for tick in (0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10):
            colour, wide = ("#444", 1.5) if tick == 1 else ("#ddd", 1)
            out.append(f'<line x1="{x(tick):.0f}" y1="{y}" x2="{x(tick):.0f}" y2="{bottom}" stroke="{colour}" stroke-width="{wide}"/>')
            out.append(f'<text x="{x(tick):.0f}" y="{bottom + 13}" text-anchor="middle" fill="#666" font-size="11">{tick:g}</text>')
        for i, name in enumerate(names):
            middle = y + step * i + step / 2
            out.append(f'<text x="{left - 10}" y="{middle + 4:.0f}" text-anchor="end">{name.removesuffix(" durable")}</text>')
            for r in [r for r in section if r.name == name]:
                if r.wanted is not None and r.threads == 1:
                    out.append(f'<rect x="{x(r.wanted) - 1.5:.0f}" y="{middle - 8:.0f}" width="3" height="16" fill="#c8c8c8"/>')
            for r in [r for r in reversed(section) if r.name == name]:  # ours on top
                colour = next((c for who, c in COLOURS.items() if r.side.startswith(who)), "#888")
                fill = colour if r.threads == 1 else "white"
                out.append(f'<circle cx="{x(r.ratio):.1f}" cy="{middle:.1f}" r="4.5" stroke="{colour}" stroke-width="1.8" '
                           f'fill="{fill}"><title>{r.name}, {r.threads} threads, {r.side}: {r.ratio:.3g}</title></circle>')
            one = [r for r in section if r.name == name and r.side == "Tessera"]
            out.append(f'<text x="{left + width + 12}" y="{middle + 4:.0f}" fill="{COLOURS["Tessera"]}">'
                       f'{" · ".join(map(ratio, one))}</text>')
        y = bottom + 54
    sides = list(dict.fromkeys(r.side for r in rows))
    legend, at = [], left
    for side in sides:
        colour = next((c for who, c in COLOURS.items() if side.startswith(who)), "#888")
        legend.append(f'<circle cx="{at + 5}" cy="28" r="4.5" fill="{colour}"/><text x="{at + 14}" y="32">{side}</text>')
        at += 40 + 7 * len(side)
    legend.append(f'<text x="{at}" y="32" fill="#666">filled: 1 thread, hollow: 2</text>')
    legend.append(f'<rect x="{at + 170}" y="20" width="3" height="16" fill="#c8c8c8"/><text x="{at + 178}" y="32" fill="#666">wanted</text>')
    legend.append(f'<text x="{left + width + 12}" y="52" fill="{COLOURS["Tessera"]}">1 · 2 threads</text>')
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{max(left + width + 110, at + 225)}" height="{y - 30}" font-family="sans-serif" font-size="12">',
        '<rect width="100%" height="100%" fill="white"/>',
        f'<text x="{left}" y="14" font-size="13">time ÷ time of the plain loop for the same work; left is faster</text>',
        *legend, *out, "</svg>"]) + "\n"


def worst(rows):
    """Of the offsets at which memory began, the one with the largest ratio."""
    found = {}
    for r in rows:
        key = r.medium, r.name, r.threads, r.side
        if key not in found or found[key].ratio < r.ratio:
            found[key] = r
    return list(found.values())


def draw(out):
    rows = worst([Row(line) for line in (out / "rows.tsv").read_text().splitlines()])
    (out / "table.md").write_text(table(rows))
    (out / "ratios.svg").write_text(plot(rows))


def run(program, medium, folder, options, rows):
    child = subprocess.Popen([program, "--folder", folder, *options], stdout=subprocess.PIPE, text=True)
    for line in child.stdout:
        print(line, end="", flush=True)
        if not line.startswith("#"):
            rows.write(f"{medium}\t{line}")
            rows.flush()
    if child.wait() != 0:
        sys.exit(f"{program} failed on {folder}")


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("program", nargs="?")
    arguments.add_argument("--memory", default="/dev/shm", help="a folder on tmpfs; empty for none")
    arguments.add_argument("--disk", default=tempfile.gettempdir(), help="a folder on a disk; empty for none")
    arguments.add_argument("--out", type=pathlib.Path, default=pathlib.Path("."))
    arguments.add_argument("--no-peers", action="store_true")
    arguments.add_argument("--draw", type=pathlib.Path, metavar="DIR", help="only draw what DIR/rows.tsv says")
    at = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    a, options = arguments.parse_args(sys.argv[1:at]), sys.argv[at + 1:]
    if a.draw:
        draw(a.draw)
        return 0
    if not a.program:
        arguments.error("which program? see --help")
    peers = []
    if not a.no_peers:
        python = "/usr/bin/python3"  # Debian's libraries are seen by Debian's Python only
        for name in subprocess.run([python, PEERS], check=True, capture_output=True, text=True).stdout.split():
            peers += ["--peer", f"{python} {PEERS} {name}"]
        beside = sorted(pathlib.Path(a.program).resolve().parent.glob("bench_peer_*"))
        for program in filter(pathlib.Path.is_file, beside):
            peers += ["--peer", shlex.quote(str(program))]
    a.out.mkdir(parents=True, exist_ok=True)
    with open(a.out / "rows.tsv", "w") as rows:
        if a.memory:
            run(a.program, "memory", a.memory, [*peers, *options], rows)
        if a.disk:
            run(a.program, "disk", a.disk, options, rows)
    draw(a.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
