#!/usr/bin/env python3
"""Rechunk and reduce an array with several processes: a LocalCluster of dask, every worker writing to one array.

    cluster.py [FOLDER] [ROWS]      FOLDER (default: a new temporary one) keeps what is made
"""
import os
import sys
import tempfile

import dask.array
import numpy as np
import tessera


def main(folder, rows):
    from distributed import Client, LocalCluster

    source = tessera.create(os.path.join(folder, "rows.zarr"), (rows, 1200), "f4", chunks=(50, 1200), format="v3")
    for key in source.iter_chunks():
        first = key[0].start
        source[key] = np.arange(first * 1200, key[0].stop * 1200, dtype="f4").reshape(-1, 1200) % 1000
    # Columns, many chunks in each shard. The blocks below end in the middle of chunks and of shards.
    target = tessera.create(os.path.join(folder, "columns.zarr"), source.shape, "f4", chunks=(rows // 4, 16),
                            shards=(rows // 2 // (rows // 4) * (rows // 4), 160), format="v3")
    with LocalCluster(n_workers=3, threads_per_worker=2, processes=True, dashboard_address=None) as cluster, \
            Client(cluster):
        # Arrays travel to the workers as their paths.
        blocks = source.to_dask().rechunk((rows // 3, 100))
        dask.array.store(blocks, target, lock=False)
        means = target.to_dask().mean(axis=0).compute()
    assert tessera.diff(source, target)["equal"], "rechunking lost something"
    assert np.allclose(means, source[...].mean(axis=0, dtype="f8"), rtol=1e-5)
    print(f"{source!r}\nis now\n{target!r}\nthe means of its columns are {means.min()} to {means.max()}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp(), int(sys.argv[2]) if len(sys.argv) > 2 else 2000)
