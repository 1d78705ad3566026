"""Writes what pip and entry points read of a package that CMake installs, from pyproject.toml.

dist_info.py PYPROJECT VERSION FOLDER
"""

import pathlib
import sys
import tomllib


def main() -> None:
    pyproject, version, folder = sys.argv[1:]
    project = tomllib.loads(pathlib.Path(pyproject).read_text())["project"]
    metadata = [
        "Metadata-Version: 2.1",
        f"Name: {project['name']}",
        f"Version: {version}",
        f"Summary: {project['description']}",
        f"Requires-Python: {project['requires-python']}",
        *(f"Requires-Dist: {requirement}" for requirement in project["dependencies"]),
    ]
    # The program is installed beside the package, so `project.scripts` is for wheels alone.
    entry_points = [
        "\n".join([f"[{group}]", *(f"{name} = {target}" for name, target in entries.items())])
        for group, entries in project["entry-points"].items()
    ]
    out = pathlib.Path(folder)
    out.mkdir(parents=True, exist_ok=True)
    (out / "METADATA").write_text("\n".join(metadata) + "\n")
    (out / "INSTALLER").write_text("cmake\n")
    (out / "entry_points.txt").write_text("\n\n".join(entry_points) + "\n")


if __name__ == "__main__":
    main()
