"""The list of everything that the public headers declare, so that a review shows each change of the interface.

    interface.py            compares the list in tools/docs/interface.txt with the headers
    interface.py --write    writes it anew

It holds the installed headers' declarations outside of `detail` and of private sections, without bodies, comments and
attributes. tessera.h has to include each of these headers.
"""
import difflib
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIST = ROOT / "tools/docs/interface.txt"
HEAD = """Every declaration of the public headers. Written by tools/checks/interface.py --write; a change here is a change of the
interface, which CHANGELOG.md has to name.

"""
CLOSING = {"(": ")", "{": "}", "[": "]"}


def bare(text):
    """The text of a header without comments and preprocessor lines, of which only our macros' names stay."""
    text = re.sub(r'"(?:\\.|[^"\\\n])*"|//[^\n]*|/\*.*?\*/',
                  lambda found: found[0] if found[0].startswith('"') else " ", text, flags=re.DOTALL)
    text = re.sub(r"^[ \t]*#[ \t]*define (TESSERA_[A-Z]+\([^)]*\))(?:.*\\\n)*.*$", r"\1;", text, flags=re.MULTILINE)
    return re.sub(r"^[ \t]*#(?:.*\\\n)*.*$", "", text, flags=re.MULTILINE)


def end_of(text, at):
    """The place after the bracket that closes the one at `at`."""
    open_brackets = []
    while True:
        c = text[at]
        if c in "\"'" and not (c == "'" and text[at - 1].isalnum()):  # no separator of digits
            at = re.compile(r"(?:\\.|[^\\])*?" + c).match(text, at + 1).end() - 1
        elif c in CLOSING:
            open_brackets.append(CLOSING[c])
        elif c in ")}]":
            assert open_brackets.pop() == c, text[max(0, at - 200):at + 1]
            if not open_brackets:
                return at + 1
        at += 1


def neat(text):
    text = re.sub(r"\[\[[^\]]*\]\]", "", text)
    text = re.sub(r"\s+", " ", text).strip()
    return re.sub(r"^(?:(?:inline|extern|friend) )+(?=\S)", lambda found: "friend " if "friend" in found[0] else "", text)


def body_of_initialisers(text, at):
    """The place of the body after a constructor's ": a_(a), b_{b}"."""
    while True:
        at = re.compile(r"[\s,]*[\w:<>]+\s*").match(text, at).end()
        at = end_of(text, at)
        if re.compile(r"\s*\{").match(text, at):
            return text.index("{", at)


def is_function(head):
    """Whether what stands before a brace declares a function, and no value."""
    flat = re.sub(r"operator *[-+*/%=!<>&|^]+", "operator", head)
    while flat != (flat := re.sub(r"\([^()]*\)", "@", flat)):
        pass
    return re.search(r"@[^;]*$", flat) is not None and "=" not in re.sub(r"template *<[^;{}]*?> ", "", flat) and \
        not re.search(r"\bconcept\b|\brequires\b[^@]*$", flat)


def declarations(text, indent=1, public=True):
    """Lines for the declarations of a namespace or a class. `public`: whether the first of them are."""
    at = begin = 0
    while at < len(text):
        c = text[at]
        head = text[begin:at]
        if c == "{":
            end = end_of(text, at)
            words = neat(re.sub(r"^\s*template\s*<.*?>\s*(?:requires.*?)?(?=(?:class|struct|concept)\b)", "", head,
                                flags=re.DOTALL))
            if words.startswith("namespace"):
                if "detail" not in words:
                    yield from declarations(text[at + 1:end - 1], indent)
            elif re.match(r"(class|struct|union) [\w:]+(<.*>)?( final)?( ?: .*)?$", words):
                if public:
                    yield "  " * indent + neat(head)
                    yield from declarations(text[at + 1:end - 1], indent + 1, not words.startswith("class"))
                end = text.index(";", end) + 1 if re.compile(r"\s*\w*\s*;").match(text, end) else end
            elif words.startswith("enum"):
                if public:
                    yield "  " * indent + neat(head) + " { " + neat(text[at + 1:end - 1]).rstrip(", ") + " }"
                end = text.index(";", end) + 1
            elif is_function(head):
                if public:
                    yield "  " * indent + neat(head)
                end = re.compile(r"\s*;?").match(text, end).end()
            else:  # a value
                at = end
                continue
            at = begin = end
        elif c in "([":
            at = end_of(text, at)
            rest = re.compile(r"\s*(?:const\s*)?(?:noexcept\s*)?:(?!:)\s*(?=\w)").match(text, at)
            if c == "(" and rest and re.search(r"\w\s*$", head) and "?" not in head and "=" not in head:
                if public:
                    yield "  " * indent + neat(text[begin:at])
                begin = at = end_of(text, body_of_initialisers(text, rest.end()))
        elif c == ";":
            if public and neat(head):
                yield "  " * indent + neat(head)
            at += 1
            begin = at
        elif c == ":" and re.fullmatch(r"\s*(public|protected|private)\s*", head):
            public = "private" not in head
            at += 1
            begin = at
        elif c == '"':
            at = re.compile(r'(?:\\.|[^"\\])*"').match(text, at + 1).end()
        else:
            at += 1


def headers():
    return sorted((path for module in ("core", "codecs", "store", "tools/pictures") for path in ROOT.glob(f"{module}/**/include/tessera/*.h")
                   if "internal" not in path.parts), key=lambda path: path.name)


def listing():
    lines = [HEAD]
    for path in headers():
        lines.append(f"tessera/{path.name}\n")
        lines += [line + "\n" for line in declarations(bare(path.read_text()))]
        lines.append("\n")
    return lines


def left_out():
    """The public headers that tessera.h does not include. fmt.h needs another library."""
    names = {path.name for path in headers()}
    umbrella = next(path for path in headers() if path.name == "tessera.h").read_text()
    return sorted(names - set(re.findall(r"^#include <tessera/([^>]+)>", umbrella, re.MULTILINE)) - {"tessera.h", "fmt.h"})


def main():
    made = listing()
    if sys.argv[1:] == ["--write"]:
        LIST.write_text("".join(made))
        return
    if left_out():
        sys.exit(f"tessera.h does not include {', '.join(left_out())}: a header that is installed has to be in it, and others "
                 "belong into a folder \"internal\"")
    there = LIST.read_text().splitlines(keepends=True) if LIST.exists() else []
    changes = list(difflib.unified_diff("".join(there).splitlines(), "".join(made).splitlines(), "tools/docs/interface.txt",
                                        "the public headers", n=0, lineterm=""))
    if changes:
        sys.exit("\n".join(changes) + "\nThe interface changed: write the list anew by python3 tools/checks/interface.py --write, "
                 "and name the change in CHANGELOG.md")


if __name__ == "__main__":
    main()
