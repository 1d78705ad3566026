#!/usr/bin/env python3
"""Stages what the site shows: the README, what it links and what that links, each at its place in the repository.

    stage.py FOLDER [BUILD_DIR]      BUILD_DIR: a build whose program's help becomes pages

mkdocs.yml and pages/ are written to FOLDER.
"""

import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
FIRST = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "tools/docs/howto.md",
         *(str(page.relative_to(ROOT)) for page in sorted((ROOT / ".github").glob("[A-Z]*.md")))]
FENCES = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)


def links(text):
    """The files that a page links, as the page spells them."""
    for target in re.findall(r"\]\(([^)\s]+)\)", FENCES.sub("", text)):
        path = target.partition("#")[0]
        if path and "://" not in path and not path.startswith("mailto:"):
            yield path


def staged(first):
    """Every file that can be reached by links. A folder that is linked is not followed."""
    todo, seen = [ROOT / name for name in first], set()
    while todo:
        file = todo.pop().resolve()
        if file in seen or not file.is_file():
            continue
        seen.add(file)
        if file.suffix == ".md":
            todo += [file.parent / path for path in links(file.read_text())]
    return sorted(seen)


def as_site(file):
    """A page in the words of the site's own Markdown: the file of an excerpt is the title of its block, and a link to a folder,
    which a site has nothing to show of, its name."""
    def without_folders(found):
        folder = (file.parent / found[2]).resolve()
        return f"{found[1]} (`{folder.relative_to(ROOT)}`)" if folder.is_dir() else found[0]

    text = re.sub(r"\[([^][]*)\]\(([^)\s#:]+)\)", without_folders, file.read_text())
    return re.sub(r"(?m)^```(\w+) file=(\S+)$", r'```\1 title="\2"', text)


def write_help(program, folder):
    """A page with the help of every command; its name for the navigation."""
    def said(*words):
        return subprocess.run([program, *words], capture_output=True, text=True, check=True).stdout

    parts = ["# The program\n\nWhat `tessera help COMMAND` says.\n"]
    for command in said("help", "commands").split():
        parts.append(f"\n## {command}\n\n```text\n{said('help', command).rstrip()}\n```\n")
    (folder / "reference").mkdir(exist_ok=True)
    (folder / "reference/program.md").write_text("".join(parts))
    return "      - The program: reference/program.md\n"


def write_references(folder, build):
    """The lines of the navigation for those of the three references that are there."""
    lines = ""
    if build and (program := build / "tools/tessera").exists():
        lines += write_help(program, folder)
    for name, title, index in [("python", "Python", "tessera.html"), ("cpp", "C++", "index.html")]:
        made = ROOT / "build/reference" / name  # by tools/reference
        if (made / index).exists():
            shutil.copytree(made, folder / "reference" / name)
            lines += f"      - {title}: reference/{name}/{index}\n"
    return "  - Reference:\n" + lines if lines else ""


def main(folder, build=None):
    pages = folder / "pages"
    shutil.rmtree(pages, ignore_errors=True)
    for file in staged(FIRST):
        to = pages / file.relative_to(ROOT)
        to.parent.mkdir(parents=True, exist_ok=True)
        if file.suffix == ".md":
            to.write_text(as_site(file))
        else:
            shutil.copy(file, to)
    settings = (ROOT / "tools/release/site/mkdocs.yml").read_text()
    references = write_references(pages, build)
    (folder / "mkdocs.yml").write_text(settings.replace("  - Join in:\n", references + "  - Join in:\n"))


if __name__ == "__main__":
    main(*map(pathlib.Path, sys.argv[1:]))
