#!/usr/bin/env python3
"""tools/examples/cluster.py: workers of a LocalCluster write to shared chunks and shards, and nothing is lost."""
import os
import subprocess
import sys

import module

try:
    import dask  # noqa: F401
    import distributed  # noqa: F401
except ImportError:
    print("skipped: no dask or no distributed (Debian: python3-dask, python3-distributed)")
    sys.exit(77)


def test_cluster():
    path = os.pathsep.join(filter(None, (os.environ["TESSERA_MODULE"], os.environ.get("PYTHONPATH"))))
    script = os.path.join(os.environ["TESSERA_SOURCE"], "tools/examples/cluster.py")
    done = subprocess.run([sys.executable, "-B", script, os.getcwd(), "600"], stdout=subprocess.PIPE, text=True, check=False,
                          env={**os.environ, "PYTHONPATH": path}, timeout=300)
    assert done.returncode == 0 and "is now" in done.stdout, done


if __name__ == "__main__":
    module.run(dict(globals()))
