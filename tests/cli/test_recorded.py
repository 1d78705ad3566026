"""All pages of help, the module's signatures and more than 100 answers of --json are as tests/golden/recorded has them.

Every difference is one that users see. Where it is meant, TESSERA_ACCEPT=1 in the environment writes what is now, to be
committed with the change, whose message says why.
"""

import difflib
import json
import os
import re
import shlex
import subprocess
import sys
import unittest

import numpy as np

from earlier import UnpackedTest
from program import GOLDEN, main, module_folder

# What differs from run to run, or from machine to machine.
VARIABLE = {"seconds", "since", "modified", "changed", "created", "inode", "device", "time_made", "user", "host", "id",
            "version", "versions", "libraries", "processors", "memory", "writer", "boot", "undo_bytes"}

# What is told in the order in which a file system lists it.
UNORDERED = {"refs": lambda refs: dict(sorted(refs.items())), "values": lambda values: sorted(values, key=str)}

SIGNATURES = r"""
import inspect, sys
sys.path.insert(0, sys.argv[1])
import tessera

def shown(name, thing, indent=""):
    if isinstance(thing, property):
        return f"{indent}{name}: property"
    if callable(thing) and not inspect.isclass(thing):
        try:
            return f"{indent}{name}{inspect.signature(thing)}"
        except ValueError:
            return f"{indent}{name}(...)"
    return f"{indent}{name}: {type(thing).__name__}"

def of_ours(thing):
    # The public members, of the bases in the package too.
    bases = [base for base in thing.__mro__ if base.__module__.startswith(("tessera", "_tessera"))]
    return sorted({part for base in bases for part in vars(base)
                   if not part.startswith("_") or part in ("__getitem__", "__setitem__", "__call__")})

for name in sorted(tessera.__all__):
    thing = getattr(tessera, name)
    if inspect.ismodule(thing):
        print(f"module {name}")
    elif inspect.isclass(thing):
        try:
            print(f"class {name}{inspect.signature(thing)}")
        except ValueError:
            print(f"class {name}")
        for part in of_ours(thing):
            member = inspect.getattr_static(thing, part)
            member = member.__func__ if isinstance(member, (staticmethod, classmethod)) else member
            print(shown(part, member, "    "))
    else:
        print(shown(name, thing))
"""

# Commands, one a line. Without an array file's or an archive's own compression, so that no codec's version shows.
READING = """
formats
info arrays/zmeta.zarr
info arrays/v1.zarr
info arrays/v2.zarr
info arrays/v3.zarr
info arrays/sharded.zarr
info arrays/rectilinear.zarr
info arrays/v3.zip
info arrays/table.zarr
info arrays/texts.zarr
info values.npy
info group
info group/heat
info arrays/v1.zarr arrays/v2.zarr
info undo-set.zarr
info sealed.zarr
info parity.zarr
info snaps.zarr
info pending.zarr
info resumed.zarr
info job.json
info nowhere.zarr
info GOLDEN/mldf/all_fields.mldf
info GOLDEN/ra/nothing.ra
tree group
tree arrays
tree arrays/v3.zip
tree nowhere
attrs group
attrs group/heat
attrs group/heat get units
attrs group/heat get nothing
dims arrays/v3.zarr
get arrays/v3.zarr 0:2,0:3
get arrays/v3.zarr 3,4
get arrays/v3.zarr -1,::7
get arrays/v3.zarr 99,0
get arrays/table.zarr 0:2
get arrays/texts.zarr
get values.npy 0,0:4
get resumed.zarr
stats arrays/v3.zarr
stats arrays/sharded.zarr --sel 0:5
stats values.npy --axis 1 --with median
stats arrays/table.zarr
stats arrays/v3.zarr --bins 4
get arrays/v3.zarr 0 --bins 4
stats group
diff arrays/v3.zarr arrays/v2.zarr
diff arrays/v3.zarr undo-set.zarr
diff arrays/v3.zarr arrays/texts.zarr
diff group undo-group
digest arrays/v3.zarr
digest arrays/table.zarr arrays/texts.zarr
digest arrays/v3.zarr --each
digest arrays/v3.zarr --dandi
digest group
refs arrays/v2.zarr
log arrays/v3.zarr
log group
snapshot snaps.zarr list
snapshot snaps.zarr restore nothing
job job.json
finish job.json
consolidate group --check
verify arrays/v3.zarr
verify arrays/sharded.zarr --complete
verify sealed.zarr
verify parity.zarr
verify bag
verify snaps.zarr.snapshots/sums
verify group
verify group --verbose
verify pending.zarr
verify undo-killed.zarr
verify resumed.zarr
verify group --ome
verify group --geo
repair arrays/v3.zarr --dry-run
repair pending.zarr --dry-run
repair resumed.zarr --dry-run
cache ls --cache cache
cache verify --cache cache
frobnicate
copy arrays/v3.zarr
"""
WRITING = """
create new.zarr --shape 4,6 --chunks 2,3 --dtype <f4 --format v3 --codec none
create new.zarr --shape 4,6 --dtype <f4
create bad.zarr --shape 4,6 --dtype <f5
group new-group --format v2
attrs new-group set a [1,2]
attrs new-group mv a b
attrs new-group rm b
dims new.zarr y,x
set new.zarr 0,: 2
set new.zarr 9,9 2
undo new.zarr
undo new.zarr
append new.zarr new.zarr --axis 0
resize new.zarr 2,3
edit new.zarr --script script
import values.npy plain.zarr --format v2 --chunks 5,7 --codec none
import values.npy plain.zarr --format v2 --chunks 5,7
export plain.zarr plain.npy
copy plain.zarr sharded.zarr --format v3 --chunks 5,7 --shard 10,21 --codec none
copy plain.zarr plain.zip --codec none
copy group copied-group --codec none
copy plain.zarr part.zarr --sel 2:9,::2 --codec none
copy plain.zarr cast.zarr --dtype <f8 --codec none
rechunk plain.zarr rechunked.zarr --chunks 10,21 --codec none
sync plain.zarr synced.zarr --dry-run
sync plain.zarr synced.zarr
stack plain.zarr plain.zarr stacked.zarr --codec none
concat plain.zarr plain.zarr concatenated.zarr --axis 0 --codec none
unstack stacked.zarr unstacked --codec none
unstack stacked.zarr unstacked-{}.npy
calc computed.zarr "a * 2 - b" a=plain.zarr b=values.npy --codec none
calc bad.zarr "a * 2 - c" a=plain.zarr
reduce plain.zarr reduced.zarr --axis 0 --with mean --codec none
reduce plain.zarr bad.zarr --axis 7 --with mean
coarsen plain.zarr coarse.zarr --by 2,3 --codec none
plan copy plain.zarr planned.zarr --out planned.json --parts 2 --max-memory 1M
work planned.json --part 0/2
work planned.json
finish planned.json
snapshot plain.zarr create one
snapshot plain.zarr rm one
mv rechunked.zarr moved.zarr
mv nowhere.zarr moved-again.zarr
seal moved.zarr
seal moved.zarr
set moved.zarr 0,0 1
seal plain.zarr --bagit new-bag
consolidate group
repair parity.zarr
edit undo-batch.zarr --script script
undo undo-batch.zarr
snapshot snaps.zarr restore plain
rm coarse.zarr
rm nowhere.zarr
cache rm --cache cache
"""


class Recorded(UnpackedTest):
    def setUp(self):
        super().setUp()
        if len(self.tessera("--version").split()) > 2:
            self.skipTest("this build leaves something out")

    def compare(self, name, text):
        file = GOLDEN / "recorded" / name
        if os.environ.get("TESSERA_ACCEPT"):
            file.parent.mkdir(exist_ok=True)
            file.write_text(text)
        difference = list(difflib.unified_diff(file.read_text().splitlines(), text.splitlines(), f"recorded/{name}",
                                               "now", lineterm="", n=2))
        if difference:
            self.fail("\n".join(["what users see has changed; if that is meant: TESSERA_ACCEPT=1 ctest --preset release -R "
                                 "test_recorded", *difference]))

    def test_help(self):
        pages = [[], ["options"], ["settings"], *([command] for command in self.tessera("help", "commands").split())]
        self.compare("help.txt", "".join(f"==== help {' '.join(page)}\n{self.tessera('help', *page)}\n" for page in pages))

    def test_signatures(self):
        done = subprocess.run([sys.executable, "-B", "-c", SIGNATURES, module_folder()], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.compare("module.txt", re.sub(r" at 0x\w+|<(class|function) ", "", done.stdout))

    def test_answers(self):
        self.unpack("")
        (self.folder / "script").write_text("set 0,0 5\nattr note 1\n")
        answers = [self.answer(line) for line in (READING + WRITING).strip().splitlines() if line]
        self.assertGreater(len(answers), 100)
        self.compare("answers.txt", "\n".join(answers))

    def answer(self, line):
        words = [word.replace("GOLDEN", str(GOLDEN)) for word in shlex.split(line)]
        done = self.run_program(*words, "--json", "--threads", 1)
        lines = [f"$ tessera {line}"]
        for text in (done.stdout, *done.stderr.splitlines()):
            if text.strip():
                lines += self.neat(text)
        return "\n".join([*lines, f"[{done.returncode}]", ""])

    def neat(self, text):
        """One line for each member or item, without what varies."""
        try:
            value = json.loads(text)
        except ValueError:
            return [self.same(line) for line in text.splitlines()]
        dump = lambda part: self.same(json.dumps(self.constant(part), ensure_ascii=False))
        if isinstance(value, dict):
            return [f"  {name}: {dump({name: member})[len(name) + 4:-1].strip()}" for name, member in value.items()]
        if isinstance(value, list):
            return [f"  - {dump(item)}" for item in value] or ["  []"]
        return [f"  {dump(value)}"]

    def constant(self, value):
        if isinstance(value, dict):
            return {name: "…" if name in VARIABLE and member is not None else
                    self.constant(UNORDERED[name](member) if name in UNORDERED else member)
                    for name, member in value.items()}
        return [self.constant(item) for item in value] if isinstance(value, list) else value

    def same(self, text):
        for folder, name in ((str(self.folder), "FOLDER"), (str(GOLDEN), "GOLDEN"), (self.made["folder"], "MADE")):
            text = text.replace(folder, name)
        text = re.sub(r"20[2-9]\d-\d\d-\d\dT\d\d:\d\d:\d\d[.\d]*Z", "TIME", text)
        return re.sub(r"\b\d+(\.\d+)? m?s\b", "N s", text)


if __name__ == "__main__":
    main()
