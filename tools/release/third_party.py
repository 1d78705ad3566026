#!/usr/bin/python3
"""Writes THIRD-PARTY.md: the libraries that are linked into the one-file program and the wheels, with their licences.

    third_party.py OUTPUT           all that the development packages of tools/packages.txt lead to, on Debian

Each is named by its Debian package, with the text of its copyright file. A licence that such a file only refers to stands
once at the end. Where Debian's copyright files cannot be found, the page says so: such a build is not to be passed on.
"""

import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
COMMON = pathlib.Path("/usr/share/common-licenses")
# Headers alone, or files of the page: they have no library that could be asked.
HEADERS = {"libcli11-dev", "libjs-leaflet", "nlohmann-json3-dev", "pybind11-dev"}
# Parts of these libraries' packages that nothing here is linked with.
UNUSED = re.compile(r"hdf5.*_(cpp|hl|fortran)|tiffxx|tbbmalloc")
BEGINNING = """# What others made

Tessera's own licence is in `LICENSE`. The one-file program and the wheels hold these libraries, or parts of them; other
builds are linked with those that the machine has. Each text is that of the library's Debian package.
"""


def listed_packages():
    """The development packages that the project is built with."""
    for file in (HERE.parent / "packages.txt", HERE / "packages.txt"):
        if not file.exists():  # an archive of the sources may leave it out
            continue
        for line in file.read_text().splitlines():
            name = line.split("#")[0].strip()
            if name in HEADERS or re.fullmatch(r"(lib|zlib).*-dev", name):
                yield name


def output_of(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout


def libraries_of(packages):
    """The shared libraries of these packages, and those that these need."""
    found = set()
    for line in output_of("dpkg-query", "--listfiles", *packages).splitlines():
        path = pathlib.Path(line)
        if path.suffix == ".so" and path.exists() and not UNUSED.search(path.name):
            found.add(str(path.resolve()))
    for line in output_of("ldd", *sorted(found)).splitlines() if found else ():
        if named := re.search(r"(?:=> |^\s+)(/\S+) \(0x", line):
            found.add(str(pathlib.Path(named[1]).resolve()))
    return sorted(found)


def packages_of(files):
    """The packages that these files belong to, without their architecture. dpkg knows some under the path before /usr."""
    names = set()
    spelt = [way for file in files for way in (file, file.removeprefix("/usr"))]
    for line in output_of("dpkg-query", "--search", *spelt).splitlines():
        names.add(line.split(": ")[0].split(":")[0])
    return names


def copyright_of(package):
    file = pathlib.Path("/usr/share/doc") / package / "copyright"
    return file.read_text(encoding="utf-8", errors="replace").strip() if file.exists() else None


def fenced(text):
    """As Markdown that shows the text as it is."""
    return "".join(f"    {line}".rstrip() + "\n" for line in text.splitlines())


def held_packages():
    """Debian's packages of what the one-file program and the wheels hold."""
    listed = set(listed_packages())
    return sorted(packages_of(libraries_of(sorted(listed))) - listed | listed & HEADERS)


def page():
    texts, common = {}, set()
    for package in held_packages():
        text = copyright_of(package)
        if text is not None:
            texts.setdefault(text, []).append(package)
            common.update(re.findall(r"/usr/share/common-licenses/([A-Za-z0-9.-]*[A-Za-z0-9])", text))
    if not texts:
        return BEGINNING + "\nThis build was made where Debian's copyright files are not installed. It holds no texts of licences.\n"
    parts = [BEGINNING]
    parts += [f"\n## {', '.join(names)}\n\n{fenced(text)}" for text, names in texts.items()]
    for name in sorted(common):
        if (COMMON / name).exists():
            text = (COMMON / name).read_text(encoding="utf-8", errors="replace").strip("\n")
            parts.append(f"\n## The licence {name}\n\n{fenced(text)}")
    return "".join(parts)


if __name__ == "__main__":
    pathlib.Path(sys.argv[1]).write_text(page(), encoding="utf-8")
