"""Engines that people already run do the units of a job: tools/examples/engine_*.py, each skipped where the engine is not installed."""
import os
import pathlib
import pickle
import shutil
import subprocess
import sys

import numpy as np
import pytest
import tessera

EXAMPLES = pathlib.Path(os.environ["TESSERA_SOURCE"]) / "tools" / "examples"
BESIDE = pathlib.Path(sys.executable).parent
CHUNKS = "16,24"
VALUES = np.arange(90 * 70, dtype="f4").reshape(90, 70) ** 2
# A scheduler of one node, as far as dask-jobqueue looks: a job is a process, and its number that of the process.
SBATCH = '#!/bin/bash\ncp "${@: -1}" "$0.$$"\nsetsid bash "$0.$$" > "$0.$$.log" 2>&1 &\necho "Submitted batch job $!"\n'
SCANCEL = '#!/bin/bash\nkill -- $(printf " -%s" "$@") 2> /dev/null\nexit 0\n'


def engine(name, module, *words, folder, before=(), **variables):
    """Runs an example from `folder`, where src.zarr is."""
    pytest.importorskip(module)
    environment = {**os.environ, "HOME": str(folder), "RAY_AUTH_MODE": "disabled", "RAY_USAGE_STATS_ENABLED": "0", **variables}
    return subprocess.run([*before, sys.executable, *(["-m", "mpi4py"] if name == "mpi4py" else []), EXAMPLES / f"engine_{name}.py", *words],
                          cwd=folder, env=environment, text=True, check=False, timeout=300, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def mpiexec(_):
    """MPICH's, of the wheel or of the system."""
    found = shutil.which("mpiexec", path=f"{BESIDE}:{os.environ['PATH']}")
    if found is None:
        pytest.skip("no mpiexec")
    return {"before": [found, "-n", "3"]}


def slurm(folder):
    pytest.importorskip("dask_jobqueue")
    for name, text in (("sbatch", SBATCH), ("scancel", SCANCEL)):
        (folder / "bin").mkdir(exist_ok=True)
        (folder / "bin" / name).write_text(text)
        (folder / "bin" / name).chmod(0o755)
    return {"PATH": f"{folder / 'bin'}:{os.environ['PATH']}"}


ENGINES = {"ray": ("ray", "ray", lambda _: {}), "beam": ("beam", "apache_beam", lambda _: {}), "mpi4py": ("mpi4py", "mpi4py", mpiexec),
           "dask": ("dask", "distributed", lambda _: {}), "dask on Slurm": ("dask", "distributed", slurm)}


@pytest.mark.parametrize("name", ENGINES)
def test_units(name, tmp_path):
    """All units are done, of a job that had begun too; nothing opens where one fails."""
    script, module, options = ENGINES[name]
    tessera.save(tmp_path / "src.zarr", VALUES, chunks=(10, 70), format="v3")
    job = tessera.plan("rechunk", tmp_path / "src.zarr", tmp_path / "begun.zarr", out=tmp_path / "begun.zarr.job.json", chunks=(16, 24),
                       max_memory="16K")
    assert len(job.units()) > 4
    job.run(job.units()[0])
    for target in ("new.zarr", "begun.zarr"):
        done = engine(script, module, "src.zarr", target, CHUNKS, folder=tmp_path, **options(tmp_path))
        assert done.returncode == 0, done.stderr
        assert f"units → {target}" in done.stdout
        array = tessera.open(tmp_path / target)
        assert array.chunks == (16, 24) and np.array_equal(array[...], VALUES)
        assert not (tmp_path / f"{target}.job.json").exists()
    (tmp_path / "src.zarr" / "c" / "3" / "0").write_bytes(b"damaged")
    done = engine(script, module, "src.zarr", "bad.zarr", CHUNKS, folder=tmp_path, **options(tmp_path))
    assert done.returncode != 0 and "c/3/0" in done.stderr, done
    with pytest.raises(tessera.Error):
        tessera.open(tmp_path / "bad.zarr")
    with pytest.raises(tessera.Unfinished):
        tessera.Job(tmp_path / "bad.zarr.job.json").finish()
    if "PATH" in options(tmp_path):
        assert list((tmp_path / "bin").glob("sbatch.*.log")), "no job was sent to Slurm"


@pytest.mark.parametrize("executor", ["processes", "threads"])
def test_cubed(executor, tmp_path):
    """cubed writes through zarr's arrays; the folder of locks shows that Tessera wrote them."""
    tessera.save(tmp_path / "src.zarr", VALUES, chunks=(10, 70), format="v3")
    done = engine("cubed", "cubed", "src.zarr", "tiles.zarr", "mean.zarr", CHUNKS, executor, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    tiles = tessera.open(tmp_path / "tiles.zarr")
    assert tiles.chunks == (16, 24) and np.array_equal(tiles[...], VALUES)
    assert np.allclose(tessera.load(tmp_path / "mean.zarr"), VALUES.mean(axis=0, dtype="f8"))
    assert (tmp_path / "tiles.zarr" / ".tessera").is_dir() and (tmp_path / "mean.zarr" / ".tessera").is_dir()


def test_pickling(tmp_path):
    """Whatever an engine sends."""
    tessera.save(tmp_path / "src.zarr", VALUES, chunks=(10, 70), format="v3")
    job = tessera.plan("rechunk", tmp_path / "src.zarr", tmp_path / "out.zarr", out=tmp_path / "job.json", chunks=(16, 24))
    for module in ("pickle", "cloudpickle", "dill"):
        try:
            sender = __import__(module)
        except ImportError:
            continue
        run, units = pickle.loads(sender.dumps((job.run, job.units())))
        assert list(units) == list(job.units())
        assert pickle.loads(sender.dumps(run(units[0]))).unit == 0
