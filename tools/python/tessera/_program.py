"""Where the program lies."""

from __future__ import annotations

import os
import pathlib
import shutil
from typing import Optional


def find_program() -> Optional[tuple[str, dict[str, str]]]:
    """The program, which lies in a wheel's package or on the PATH, and the environment that it takes."""
    package = pathlib.Path(__file__).parent
    beside = package / "program" / "tessera"
    environment = dict(os.environ)
    if beside.is_file():  # the wheel's helpers lie beside the module
        environment.setdefault("TESSERA_HELPERS", str(package))
        return str(beside), environment
    found = shutil.which("tessera")
    return (found, environment) if found else None


MISSING = "the program is not installed; Debian's package is named tessera-arrays, and a wheel contains it"
