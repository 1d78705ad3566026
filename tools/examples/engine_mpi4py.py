#!/usr/bin/env python3
"""Rechunk an array with MPI: each process does a part of the units of a job.

    mpiexec -n 4 python3 -m mpi4py engine_mpi4py.py SOURCE TARGET CHUNKS    CHUNKS as 64,64

With `-m mpi4py` an error in one process ends all. Start it again, with any number of processes: what is done takes no time.
"""
import os
import sys

import tessera
from mpi4py import MPI


def main(source, target, chunks):
    comm, path, job = MPI.COMM_WORLD, f"{target}.job.json", None
    if comm.rank == 0:
        job = tessera.Job(path) if os.path.exists(path) else tessera.plan("rechunk", source, target, out=path, chunks=chunks)
    job = comm.bcast(job)
    for unit in job.units(part=comm.rank, of=comm.size):  # neighbours, which share chunks of the source
        job.run(unit, threads=1)
    comm.barrier()
    if comm.rank == 0:
        print(f"{job.finish().units} units → {target}")
        os.remove(path)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], [int(n) for n in sys.argv[3].split(",")])
