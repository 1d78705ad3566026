"""Dangling views must not compile. Compiles misuse.cpp, which has to fail on the lines that say so and on no others.

    check.py COMPILER ROOT
"""
import pathlib
import re
import subprocess
import sys

compiler, root = sys.argv[1:]
source = f"{root}/tests/misuse/misuse.cpp"
folders = [f"-I{folder}" for module in ("core", "codecs", "store", "tools/pictures")
           for folder in sorted((pathlib.Path(root) / module).glob("**/include"))]
run = subprocess.run([compiler, "-std=c++20", "-fsyntax-only", "-w", *folders, source], capture_output=True, text=True)
found = {int(line) for line in re.findall(r"misuse\.cpp:(\d+):\d+: (?:error:|note: in expansion of macro .TESSERA_STRUCTURE)",
                                                        run.stderr)}
with open(source) as file:
    lines = dict(enumerate(file, 1))
refused = {number for number, line in lines.items() if line.rstrip().endswith("// refused")}
if not refused or "error:" not in run.stderr:
    sys.exit(f"nothing was refused:\n{run.stderr}")
for number in sorted(refused - found):
    print(f"compiles, and should not: {number}: {lines[number].strip()}")
for number in sorted(found - refused):
    print(f"does not compile, and should: {number}: {lines[number].strip()}")
if found != refused:
    sys.exit(run.stderr[-3000:])
print(f"{len(refused)} misuses refused")
