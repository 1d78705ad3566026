"""`python -m tessera`, and the command `tessera` of a wheel: the program itself, which lies in the wheel's package."""

from __future__ import annotations

import os
import pathlib
import shutil
import sys


def module_lines() -> str:
    """What `bug-report` tells of the module, which may be another than the program's."""
    import numpy as np

    from . import _tessera

    return (f"module         {_tessera.version} in {pathlib.Path(__file__).parent}\n"
            f"Python         {sys.version.split()[0]} ({sys.executable})\n"
            f"NumPy          {np.__version__}\n")


def main() -> None:
    if sys.argv[1:2] == ["bug-report"] and "--json" not in sys.argv:
        sys.stdout.write(module_lines())
        sys.stdout.flush()
    beside = pathlib.Path(__file__).with_name("program") / "tessera"
    program = str(beside) if beside.is_file() else shutil.which("tessera")
    if program is None:
        sys.exit("tessera: the program is not installed; Debian's package is named tessera-arrays, and a wheel contains it")
    if beside.is_file():  # the wheel's helpers lie beside the module
        os.environ.setdefault("TESSERA_HELPERS", str(pathlib.Path(__file__).parent))
    os.execv(program, ["tessera", *sys.argv[1:]])


if __name__ == "__main__":
    main()
