#!/usr/bin/env python3
"""A short run of tests/soak/module_rounds.py, with all that Python's development mode warns about as errors."""
import os
import subprocess
import sys

import module


def test_rounds():
    script = os.path.join(os.environ["TESSERA_SOURCE"], "tests/soak/module_rounds.py")
    done = subprocess.run([sys.executable, "-B", "-X", "dev", "-W", "error::ResourceWarning", "-W", "error::RuntimeWarning",
                           script, "--rounds", "300", "--module", os.environ["TESSERA_MODULE"]],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 0 and not done.stderr, done


if __name__ == "__main__":
    module.run(dict(globals()))
