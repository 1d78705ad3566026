"""`python -m tessera`, and the command `tessera` of a wheel: the program itself, which lies in the wheel's package."""

from __future__ import annotations

import os
import pathlib
import sys

from ._program import MISSING, find_program


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
    found = find_program()
    if found is None:
        sys.exit(f"tessera: {MISSING}")
    os.execve(found[0], ["tessera", *sys.argv[1:]], found[1])


if __name__ == "__main__":
    main()
