#!/usr/bin/env python3
"""Rechunk an array with Apache Beam: the units of a job are a PCollection.

    engine_beam.py SOURCE TARGET CHUNKS [OPTIONS...]    CHUNKS as 64,64; OPTIONS of Beam's runner

Start it again if it was cut off: what is done takes no time.
"""
import os
import sys

import apache_beam as beam
import tessera
from apache_beam.options.pipeline_options import PipelineOptions


def main(source, target, chunks, options):
    path = f"{target}.job.json"
    job = tessera.Job(path) if os.path.exists(path) else tessera.plan("rechunk", source, target, out=path, chunks=chunks)
    with beam.Pipeline(options=PipelineOptions(options)) as pipeline:
        units = pipeline | beam.Create(job.units())
        units | beam.Reshuffle() | beam.Map(job.run)  # Reshuffle: a unit is not tied to its neighbours
    print(f"{job.finish().units} units → {target}")
    os.remove(path)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], [int(n) for n in sys.argv[3].split(",")], sys.argv[4:])
