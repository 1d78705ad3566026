#!/usr/bin/env python3
"""Rechunk an array with dask: on the nodes of Slurm where there is one, else in processes of this machine.

    engine_dask.py SOURCE TARGET CHUNKS [WORKERS]       CHUNKS as 64,64

Start it again if it was cut off: what is done takes no time.
"""
import os
import shutil
import sys

import tessera
from distributed import Client, LocalCluster


def cluster(workers):
    if shutil.which("sbatch") is None:
        return LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None)
    from dask_jobqueue import SLURMCluster

    made = SLURMCluster(cores=1, memory="2GB", walltime="01:00:00", scheduler_options={"dashboard_address": None})
    made.scale(jobs=workers)
    return made


def main(source, target, chunks, workers):
    path = f"{target}.job.json"
    job = tessera.Job(path) if os.path.exists(path) else tessera.plan("rechunk", source, target, out=path, chunks=chunks)
    with cluster(workers) as made, Client(made) as client:
        print(f"{tessera.dask_run(job, client).units} units → {target}")
    os.remove(path)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], [int(n) for n in sys.argv[3].split(",")], int((*sys.argv[4:], 2)[0]))
