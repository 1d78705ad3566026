"""Fails when a shared library of ours exports what is not ours, or has another soname than its version says.

    symbols.py BUILD_DIR VERSION

A build with -DBUILD_SHARED_LIBS=ON. Every symbol that the dynamic linker sees has to be in the namespace tessera, or be
an instance of a template of the standard library, which programs share (weak). The soname ends in the part of VERSION
that tools/docs/stability.md promises: 0.1 of 0.1.3, 2 of 2.4.0.
"""
import pathlib
import re
import subprocess
import sys

# What the compiler makes beside a class or function: tables, type information, guards of statics, thunks.
MADE_FOR = re.compile(r"^(vtable|VTT|typeinfo|typeinfo name|guard variable|construction vtable|virtual thunk to|"
                      r"non-virtual thunk to)( for)? ")
LINKER = {"_init", "_fini", "_edata", "_end", "__bss_start"}
LIBRARIES = ("core", "codecs", "store")


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def exported(library):
    """(kind, demangled name) of each symbol."""
    for line in output("nm", "-D", "--defined-only", "-C", library).splitlines():
        kind, _, name = line[17:].partition(" ")
        yield kind, name


def is_ours(kind, name):
    name = MADE_FOR.sub("", name)
    # A function that is an instance of a template is shown with its result in front.
    return name in LINKER or kind in "WVu" or name.startswith("tessera::") or " tessera::" in name.partition("(")[0]


def main():
    build, version = pathlib.Path(sys.argv[1]), sys.argv[2].split(".")
    soversion = ".".join(version[:2]) if version[0] == "0" else version[0]
    wrong = []
    for name in LIBRARIES:
        found = list(build.rglob(f"libtessera_{name}.so.{soversion}"))
        if len(found) != 1:
            wrong.append(f"libtessera_{name}.so.{soversion}: expected one below {build}, found {len(found)}")
            continue
        soname = re.search(r"SONAME\s+(\S+)", output("objdump", "-p", found[0]))[1]
        if soname != found[0].name:
            wrong.append(f"{found[0]}: its soname is {soname}")
        symbols = list(exported(found[0]))
        strangers = [symbol for kind, symbol in symbols if not is_ours(kind, symbol)]
        wrong += [f"{found[0].name}: exports {symbol}, which is not in the namespace tessera" for symbol in strangers[:20]]
        ours = sum(kind in "TDBRG" for kind, _ in symbols)
        if not ours:
            wrong.append(f"{found[0].name}: exports nothing")
        print(f"{found[0].name}: {ours} symbols of ours")
    for text in wrong:
        print(text)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
