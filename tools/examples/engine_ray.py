#!/usr/bin/env python3
"""Rechunk an array with Ray: each unit of a job is a task, which Ray tries again where it fails or its node dies.

    engine_ray.py SOURCE TARGET CHUNKS      CHUNKS as 64,64

Without RAY_ADDRESS it starts a Ray of this machine. Start it again if it was cut off: what is done takes no time.
"""
import os
import sys

import ray
import tessera


@ray.remote(num_cpus=1, max_retries=3, retry_exceptions=True)
def run(job, unit):
    return job.run(unit, threads=1)  # as many as num_cpus


def main(source, target, chunks):
    path = f"{target}.job.json"
    job = tessera.Job(path) if os.path.exists(path) else tessera.plan("rechunk", source, target, out=path, chunks=chunks)
    ray.init()
    sent = []
    for unit in job.units():
        if len(sent) == 1000:  # not a million at once
            done, sent = ray.wait(sent)
            ray.get(done)
        sent.append(run.remote(job, unit))
    ray.get(sent)
    print(f"{job.finish().units} units → {target}")
    os.remove(path)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], [int(n) for n in sys.argv[3].split(",")])
