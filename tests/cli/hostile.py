"""Trees that somebody sent, beside a folder that is none of their business.

`Attack(seed)` builds a folder `in` with arrays and groups, puts links, special files and foreign `.tessera` contents into
it, runs commands and calls on it, and says what became of the folder `victim` beside it, to which the links lead."""

import hashlib
import json
import os
import pathlib
import random
import shutil
import socket
import stat
import subprocess

FORMATS = {"v2": ("0", "1", "2"), "v1": ("0", "1", "2"), "v3": ("c/0", "c/1", "c/2"),
           "zmeta": ("__zdata__/0.blosc", "__zdata__/1.blosc", "__zdata__/2.blosc")}
DOCUMENTS = {"v2": (".zarray", ".zattrs"), "v1": ("meta", "attrs"), "v3": ("zarr.json",), "zmeta": ("__zmeta__", "__zattr__")}
GOOD_CODES = {0, 1, 2, 3, 130}


PUT, ERASE = 1, 2


def journal(entries, keeps_old=True):
    lines = [{"tessera_changes": 1, "id": f"{1:016x}", "keeps_old": bool(keeps_old), "what": ""}]
    for kind, number, size, key in entries:
        value = {"size": size, "modified": 0, "inode": 0} if kind == PUT else {}
        lines.append({"n": number, **value, "old": True, "key": key})
    data = "".join(json.dumps(line) + "\n" for line in lines).encode()
    return data + b'{"committed":%d,"sha256":"%s"}\n' % (len(entries), hashlib.sha256(data).hexdigest().encode())


def state(folder):
    """Everything about what lies in a folder that anybody could have changed."""
    found = {}
    for path in [folder, *sorted(folder.rglob("*"))]:
        status = os.lstat(path)
        content = None
        if stat.S_ISREG(status.st_mode):
            content = hashlib.sha256(path.read_bytes()).hexdigest()
        elif stat.S_ISLNK(status.st_mode):
            content = os.readlink(path)
        # Further names of `thesis` come and go with the tree that has them.
        names = (0, 0) if path.name == "thesis" else (status.st_nlink, status.st_ctime_ns)
        found[str(path.relative_to(folder))] = (status.st_ino, status.st_mode, status.st_size, status.st_mtime_ns, *names, content)
    return found


class Templates:
    """Arrays and groups to build trees from, made once by the program."""

    def __init__(self, program, folder):
        self.folder = pathlib.Path(folder)
        run = lambda *words: subprocess.run([program, *words, "--quiet", "--durability", "none"], cwd=self.folder, check=True)
        for form in FORMATS:
            run("create", form, "--shape", "6", "--chunks", "2", "--dtype", "<i4", "--format", form)
            run("set", form, "...", "7")
            shutil.copytree(self.folder / form, self.folder / f"{form}.edited")
            with open(self.folder / "script", "w", encoding="utf-8") as script:
                script.write("set 0:3 8\nattr k 1\n")
            run("edit", f"{form}.edited", "--script", "script")
        for form in "v2", "v3":
            run("group", f"group.{form}", "--format", form)
        shutil.copytree(self.folder / "v2", self.folder / "sealed")
        run("seal", "sealed")
        run("snapshot", "v3", "create", "s")
        shutil.move(self.folder / "v3.snapshots", self.folder / "snapshots")

    def copy(self, name, to):
        shutil.copytree(self.folder / name, to, symlinks=True)


class Attack:
    def __init__(self, templates, seed, folder):
        self.templates, self.folder = templates, pathlib.Path(folder)
        self.draw = random.Random(seed)
        self.victim, self.inside = self.folder / "victim", self.folder / "in"
        self.nodes, self.groups = [], [""]  # paths below `in`, none of them through a link
        self.make_victim()
        self.make_tree()
        for _ in range(self.draw.randint(1, 6)):
            self.spoil()
        self.before = state(self.victim)

    def make_victim(self):
        for name in ("thesis", "0", "1", "lock", "journal", "zarr.json", "docs/photo", "docs/sub/keep", "batch/0", "batch/journal",
                     "batch/0000000000000001.0", "undo/changes", "undo/0000000000000001.0", "damaged/0", "c/0", "n/0", "n/1", "n/2", "0.blosc", "1.blosc",
                     ".x.tessera-new/keep", ".tessera-tmp-999999-1"):
            path = self.victim / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"victim's own {name}\n")
        (self.victim / "batch" / "journal").write_bytes(journal([(PUT, 0, 17, "0"), (ERASE, 1, 0, "1")]))
        for name in "v2", "v3", "group.v3":
            self.templates.copy(name, self.victim / name)
        self.templates.copy("snapshots", self.victim / "snapshots")

    def make_tree(self):
        draw = self.draw
        if draw.random() < 0.7:
            self.templates.copy("group." + draw.choice(["v2", "v3"]), self.inside)
        else:
            self.inside.mkdir()
        for n in range(draw.randint(1, 3)):
            group = draw.choice(self.groups)
            if draw.random() < 0.3:
                self.templates.copy("group." + draw.choice(["v2", "v3"]), self.inside / group / f"g{n}")
                self.groups.append(os.path.join(group, f"g{n}"))
            form = draw.choice(list(FORMATS))
            name = os.path.join(group, f"a{n}")
            self.templates.copy(form + draw.choice(["", ".edited"]), self.inside / name)
            self.nodes.append((name, form))
        if draw.random() < 0.3:
            name = self.nodes[0][0]
            self.templates.copy("snapshots", self.inside / f"{name}.snapshots")

    # ---- what somebody may put there

    def target(self, place):
        """Something of the victim's, or worse, as a link at `place` would have it."""
        draw = self.draw
        names = [str(p.relative_to(self.victim)) for p in self.victim.rglob("*")] + ["", "new", "docs/new"]
        if draw.random() < 0.1:
            return draw.choice(["/dev/zero", "/dev/null", "/dev/full", ".", "..", place.name, "nowhere"])
        victim = self.victim / draw.choice(names)
        return str(victim) if draw.random() < 0.3 else os.path.relpath(victim, place.parent)

    def put(self, place):
        """Something else in the place of what is there."""
        draw = self.draw
        place.parent.mkdir(parents=True, exist_ok=True)
        if place.is_symlink() or not place.is_dir():
            place.unlink(missing_ok=True)
        else:
            shutil.rmtree(place)
        kind = draw.choice(["link"] * 8 + ["fifo", "socket", "directory", "file", "hard link"])
        if kind == "link":
            place.symlink_to(self.target(place))
        elif kind == "fifo":
            os.mkfifo(place)
        elif kind == "socket":
            here = os.getcwd()
            os.chdir(place.parent)  # a socket's path must be short
            try:
                with socket.socket(socket.AF_UNIX) as one:
                    one.bind(place.name)
            finally:
                os.chdir(here)
        elif kind == "directory":
            (place / "x").mkdir(parents=True)
        elif kind == "file":
            place.write_bytes(bytes(draw.randrange(256) for _ in range(draw.randint(0, 60))))
        else:
            os.link(self.victim / "thesis", place)

    def put_journal(self, node, form):
        draw = self.draw
        own = self.inside / node / ".tessera"
        if own.is_symlink() or (own.exists() and not own.is_dir()):
            return
        folder = own / draw.choice(["batch", "batch", "undo"])
        if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
            return
        folder.mkdir(parents=True, exist_ok=True)
        keys = [*FORMATS[form], *DOCUMENTS[form], "x/thesis", "x/docs/photo", "../victim/thesis", ".tessera/lock", "x", "c/x"]
        if draw.random() < 0.7:
            (self.inside / node / "x").unlink(missing_ok=True)
            (self.inside / node / "x").symlink_to(self.victim)
        entries = [(draw.choice([PUT, PUT, ERASE]), n, draw.choice([4, 5, 2**40]), draw.choice(keys)) for n in range(draw.randint(0, 3))]
        data = bytearray(journal(entries, draw.randrange(2)))
        if draw.random() < 0.2:
            data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
        record = folder / ("journal" if folder.name == "batch" else "changes")
        record.unlink(missing_ok=True)
        record.write_bytes(data)
        for n in range(len(entries)):
            value = folder / f"{1:016x}.{n}"
            value.unlink(missing_ok=True)
            value.write_text("EVIL")

    def spoil(self):
        draw = self.draw
        node, form = draw.choice(self.nodes)
        folder = self.inside / node
        if draw.random() < 0.35:
            return self.put_journal(node, form)
        own = folder / ".tessera"
        blocked = own.is_symlink() or (own.exists() and not own.is_dir())
        places = [folder / key for key in (*FORMATS[form], *DOCUMENTS[form])] + [own, own]
        if not blocked:
            places += [own / name for name in ("lock", "batch", "undo", "damaged", "sha256sums.txt", "snapshot.json",
                                               "snapshot-files.txt", "unfinished.json", ".tessera-tmp-999999-1")]
        if "/" in FORMATS[form][0]:
            places += [folder / FORMATS[form][0].split("/")[0]] * 3
        places += [folder.parent / f".{folder.name}.tessera-{what}" for what in ("new", "old", "restored")]
        places += [folder.parent / f"{folder.name}.snapshots", folder / "7", folder.parent / "linked", folder.parent / "linked2",
                   folder / ".tessera-tmp-999999-1"]
        place = draw.choice(places)
        above = place.parent
        while above != self.inside:  # never through a link that was put there before
            if above.is_symlink() or (above.exists() and not above.is_dir()):
                return None
            above = above.parent
        self.put(place)
        return None

    # ---- what is done to it

    def words(self):
        draw = self.draw
        node = "in/" + draw.choice(self.nodes)[0]
        group = os.path.normpath("in/" + draw.choice(self.groups))
        both = draw.choice([node, group])
        new = "in/" + draw.choice(["new", "new2", "g0/new", draw.choice(self.nodes)[0]])
        over = draw.choice([[], ["--overwrite"]])
        return draw.choice([
            ["info", both], ["tree", group], ["get", node], ["get", node, "0:3"], ["stats", node], ["digest", both],
            ["verify", both], ["verify", "in"], ["diff", node, node], ["export", node, "out.npy", "--overwrite"],
            ["copy", node, new, *over], ["copy", node, new, "--link", *over], ["copy", group, "in/copied", *over],
            ["copy", "spare", group, *over], ["copy", "spare", node, *over], ["rechunk", node, new, "--chunks", "3", *over],
            ["rechunk", node, node, "--chunks", "3", "--overwrite"], ["copy", node, new, "--resume"],
            ["attrs", both], ["attrs", both, "set", "k", "2"], ["attrs", both, "rm", "k"], ["set", node, "...", "1"],
            ["set", node, "...", "0"], ["set", node, "3", "1"], ["append", node, "two.npy"], ["resize", node, "2"],
            ["resize", node, "20"], ["edit", node, "--script", "script"], ["undo", node], ["snapshot", both, "create", "t"],
            ["snapshot", both, "list"], ["snapshot", both, "restore", "s"], ["snapshot", both, "rm", "s"],
            ["snapshot", both, "restore", "t", "--skip-damaged"], ["snapshot", both, "accept", "s", "--sums"], ["group", new, "--format", "v3"], ["mv", both, "in/moved"], ["rm", node],
            ["rm", both, "--recursive"], ["consolidate", group], ["repair", both], ["repair", both, "--drop-damaged"], ["repair", both, "--dry-run"],
            ["seal", both], ["seal", both, "--unchecked", "--overwrite"], ["seal", both, "--bagit", "bag"],
            ["import", "two.npy", node, *over], ["import", "two.npy", new, *over],
            ["create", node, "--shape", "3", "--dtype", "<i4", *over], ["create", new, "--shape", "3", "--dtype", "<i4", *over],
            ["formats"],
        ])

    def run(self, program, caller, calls, timeout=60):
        """One command or call. A text that says what is wrong, or None."""
        if caller and self.draw.random() < 0.25:
            path = os.path.normpath("in/" + self.draw.choice([self.draw.choice(self.nodes)[0], self.draw.choice(self.groups)]))
            line = [caller, self.draw.choice(calls), path]
        else:
            line = [program, *self.words(), "--durability", "none"]
            if line[1] == "formats":
                line = line[:2]
        try:
            result = subprocess.run(line, cwd=self.folder, capture_output=True, timeout=timeout, stdin=subprocess.DEVNULL,
                                    check=False)
        except subprocess.TimeoutExpired:
            return f"{line}: hangs"
        if result.returncode not in GOOD_CODES:
            return f"{line}: ends with {result.returncode}: {result.stdout[-500:]} {result.stderr[-500:]}"
        now = state(self.victim)
        if now != self.before:
            changed = [name for name in {*now, *self.before} if now.get(name) != self.before.get(name)]
            return f"{line}: changes the victim's {sorted(changed)}: {result.stdout[-300:]} {result.stderr[-300:]}"
        return None


def attack(templates, seed, folder, program, caller, calls, commands):
    """Builds one tree and runs commands on it. What is wrong, or None."""
    folder = pathlib.Path(folder)
    one = Attack(templates, seed, folder)
    shutil.copytree(templates.folder / "v2", folder / "spare" / "a0")
    shutil.copytree(templates.folder / "v2", folder / "spare" / "linked")
    shutil.copy(templates.folder / "two.npy", folder)
    shutil.copy(templates.folder / "script", folder)
    done = []
    for _ in range(commands):
        wrong = one.run(program, caller, calls)
        if wrong:
            return f"seed {seed}: {wrong}"
        done.append(1)
    return None
