#!/usr/bin/env python3
"""How large the project is: a table that only goes down.

    tests/counts/size.py                 the figures of this checkout, and those of size.tsv
    tests/counts/size.py --check         fails if one is larger than in the table, or smaller and not accepted yet
    tests/counts/size.py --accept        writes them into the table, to be committed with the change that explains them
    tests/counts/size.py --list FIGURE   what a figure counts, the largest first: functions, circles, dynamic_casts, Any

Only files that git knows count, as they are in the checkout. Lines are those of C++, Python and JavaScript, blank ones and
comments too. The length of a function is from its first line to its closing brace; lambdas belong to the function in which
they stand. A unit is a header with the source of its name; units are in a circle if each includes the other, by whatever way.
"""
import argparse
import collections
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
TABLE = pathlib.Path(__file__).with_name("size.tsv")
HEAD = """# How large the project is. Written by tests/counts/size.py --accept; a figure that rises needs its reason in the commit's
# message.
"""
MODULES = ("core", "codecs", "store", "tools", "tests/soak")  # the last one came from the tools, and still counts
LENGTHS = (30, 40, 50)
CONTROL = re.compile(r"\b(?:if|for|while|switch|catch|else|do|try|return|namespace|enum|union|class|struct|concept|requires)\b")


def tracked():
    """Every file of these folders that git knows and that is there; in a release without git, all that are there."""
    listed = subprocess.run(["git", "ls-files", "-z", "--", *MODULES], cwd=ROOT, capture_output=True, text=True)
    names = listed.stdout.split("\0") if listed.returncode == 0 else [
        str(path.relative_to(ROOT)) for module in MODULES for path in sorted((ROOT / module).rglob("*"))]
    return [name for name in names if (ROOT / name).is_file()]


def is_counted(name):
    """As the figure of the lines has it: C++ everywhere, Python and JavaScript of the tools and of the soak."""
    return name.endswith((".h", ".cpp")) or name.startswith(("tools/", "tests/soak/")) and name.endswith((".py", ".js"))


def room_of(name):
    """Its module, and of those that have rooms the room."""
    parts = name.split("/")
    rooms = [part for part in parts[1:-1] if part not in ("include", "internal", "tessera")]
    return "/".join([parts[0], *rooms[:2 if parts[0] == "store" else 1]])


def bare(text):
    """C++ without comments, strings and preprocessor lines, on the same lines."""
    def blank(found):
        return "\n" * found[0].count("\n") if found[0][0] in "/#" else '""'
    return re.sub(r'R"(\w*)\(.*?\)\1"|//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|(?<![\w])\'(?:\\.|[^\'\\\n])+\'|'
                  r"(?m:^[ \t]*\#)(?:[^\n]*\\\n)*[^\n]*", blank, text, flags=re.DOTALL)


def is_function(head):
    """Whether what stands before a brace begins the body of a function."""
    flat = re.sub(r"operator *(?:[-+*/%=!<>&|^~]+|\(\)|\[\])", "operator", head)
    while flat != (flat := re.sub(r"\([^()]*\)|\{[^{}]*\}", "@", flat)):
        pass
    if re.match(r"\s*(?:template *<.*>\s*)?(?:\[\[.*?\]\]\s*)?(?:namespace|enum|union|class|struct|concept|extern *\"\")\b", flat):
        return False
    return "@" in flat and "=" not in re.sub(r"template *<.*?>\s|<=>|[=!<>]=", "", flat.split("@")[0])


def functions(text):
    """(lines, first line, head) of each function of a C++ text."""
    text = bare(text)
    at = begin = 0
    opened = []  # of each brace around: where its function's head begins, or None
    inside = 0
    for found in re.finditer(r"[{};]", text):
        at, c = found.start(), found[0]
        if c == "{":
            head = text[begin:at]
            function = inside == 0 and head.count("(") == head.count(")") and is_function(head)
            # ": a_{1}, b_(2) {": an initialiser's braces belong to the head.
            if function and re.search(r"[:,]\s*[\w:<>]+\s*$", head.rstrip()) and re.search(r"\)[^()]*:(?!:)", head):
                function = False
                opened.append(("part", begin))
                continue
            opened.append(("function", begin) if function else ("other", None))
            inside += function or (inside > 0)
            if not function and head.count("(") != head.count(")"):
                opened[-1] = ("part", begin)  # an argument
                continue
        elif c == "}" and opened:
            kind, start = opened.pop()
            if kind == "part" and inside == 0:
                begin = start
                continue
            if kind == "function":
                head = text[start:]
                first = start + len(head) - len(head.lstrip())
                lines = text.count("\n", first, at) + 1
                yield lines, text.count("\n", 0, first) + 1, " ".join(text[first:at].split("{")[0].split())
            if inside > 0:
                inside -= 1
        if inside == 0 and not any(kind == "part" for kind, _ in opened):
            begin = at + 1


def units(names):
    """The graph of includes: of each unit, those that it includes."""
    sources = [name for name in names if name.endswith((".h", ".cpp"))]

    def unit(name):
        folder = [part for part in name.split("/")[:-1] if part not in ("include", "internal", "tessera", "src")]
        return "/".join([*folder, name.rpartition("/")[2].rpartition(".")[0]])

    headers = collections.defaultdict(list)
    for name in sources:
        if name.endswith(".h"):
            headers[name.rpartition("/")[2]].append(name)
    graph = collections.defaultdict(set)
    for name in sources:
        for included in re.findall(r'(?m)^#include ["<]([^">]+)[">]', (ROOT / name).read_text()):
            found = headers[included.rpartition("/")[2]]
            near = [header for header in found if header.rpartition("/")[0] == name.rpartition("/")[0]]
            if "/" in included:
                near = [header for header in found if header.endswith("/" + included)]
            found = near or found
            if len(found) == 1 and unit(found[0]) != unit(name):
                graph[unit(name)].add(unit(found[0]))
    return graph


def circles(graph):
    """The strongly connected components of more than one unit, by Tarjan's algorithm."""
    number, low, stack, on_stack, found = {}, {}, [], set(), []

    def visit(node):
        number[node] = low[node] = len(number)
        stack.append(node)
        on_stack.add(node)
        for other in sorted(graph.get(node, ())):
            if other not in number:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in on_stack:
                low[node] = min(low[node], number[other])
        if low[node] == number[node]:
            component = []
            while not component or component[-1] != node:
                component.append(stack.pop())
                on_stack.discard(component[-1])
            if len(component) > 1:
                found.append(sorted(component))

    sys.setrecursionlimit(10_000)
    for node in sorted(graph):
        if node not in number:
            visit(node)
    return sorted(found, key=len, reverse=True)


def matches(pattern, names):
    """(name, line) of every line of C++ code with the pattern."""
    for name in names:
        for line in bare((ROOT / name).read_text()).split("\n"):
            if re.search(pattern, line):
                yield name, line.strip()


class Measured:
    """Every figure, and what it counts."""

    def __init__(self, names):
        texts = [name for name in names if name.endswith((".h", ".cpp"))]
        self.functions = sorted(((lines, f"{name}:{line}", head[:100]) for name in texts
                                 for lines, line, head in functions((ROOT / name).read_text())), reverse=True)
        self.circles = circles(units(names))
        self.casts = list(matches(r"\bdynamic_(?:pointer_)?cast\b", texts))
        self.virtual = list(matches(r"\bvirtual\b(?! *~)", texts))
        self.any = [(name, line.strip()) for name in names if name.startswith("tools/python/tessera/") and name.endswith(".py")
                    for line in (ROOT / name).read_text().splitlines() if re.search(r"\bAny\b", line)]
        self.figures = {f"functions above {most} lines": sum(lines > most for lines, *_ in self.functions) for most in LENGTHS}
        self.figures |= {
            "circles of units": len(self.circles),
            "units in circles": sum(map(len, self.circles)),
            "dynamic casts": len(self.casts),
            "virtual functions": len(self.virtual),
            "virtual functions in key_value_store.h": sum(name.endswith("/key_value_store.h") for name, _ in self.virtual),
            "public headers": sum("/include/tessera/" in name for name in names),
            "lines with Any in the Python package": len(self.any),
        }
        lines = collections.Counter()
        for name in filter(is_counted, names):
            text = (ROOT / name).read_bytes()
            lines[f"lines of {room_of(name)}"] += text.count(b"\n") + (not text.endswith(b"\n") and text != b"")
        self.figures |= dict(sorted(lines.items()))

    def listed(self, figure):
        return {"functions": [f"{lines}  {place}  {head}" for lines, place, head in self.functions if lines > min(LENGTHS)],
                "circles": [" ".join(circle) for circle in self.circles],
                "dynamic_casts": [f"{name}: {line}" for name, line in self.casts],
                "Any": [f"{name}: {line}" for name, line in self.any]}[figure]


def load(table=TABLE):
    rows = [line.split("\t") for line in table.read_text().splitlines() if not line.startswith("#")]
    return {name: int(count) for name, count in rows}


def differences(accepted, found):
    """(name, accepted, found) of every figure that is another one; a figure that is not there is 0."""
    return [(name, accepted.get(name, 0), found.get(name, 0)) for name in sorted(accepted.keys() | found.keys())
            if accepted.get(name, 0) != found.get(name, 0)]


def report(changed):
    for name, old, new in changed:
        print(f"  {name}: {new}, accepted {old}" + (f", {new - old} too many" if new > old else f", {old - new} fewer"))
    if any(new > old for _, old, new in changed):
        print("Make it smaller. If that cannot be, `tests/counts/size.py --accept`, and say why in the commit's message.")
    elif changed:
        print("Well done: `tests/counts/size.py --accept` keeps it so.")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--accept", action="store_true")
    parser.add_argument("--list", choices=["functions", "circles", "dynamic_casts", "Any"])
    options = parser.parse_args()
    measured = Measured(tracked())
    if options.list:
        print("\n".join(measured.listed(options.list)))
        return
    if options.accept:
        TABLE.write_text(HEAD + "".join(f"{name}\t{count}\n" for name, count in measured.figures.items()))
    changed = differences(load(), measured.figures)
    if not options.check:
        print("\n".join(f"{count:>7}  {name}" for name, count in measured.figures.items()))
        print(f"{sum(n for name, n in measured.figures.items() if name.startswith('lines of ')):>7}  lines together")
    report(changed)
    sys.exit(1 if changed and options.check else 0)


if __name__ == "__main__":
    main()
