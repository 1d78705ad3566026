#!/usr/bin/env python3
"""References as fsspec's reference file system and zarr-python read them."""
import sys

import module
import numpy as np
from module import tessera

try:
    import fsspec
    import zarr
except ImportError:
    print("skipped: no fsspec or no zarr (Debian: python3-fsspec, python3-zarr)")
    sys.exit(77)
if not zarr.__version__.startswith("2."):
    print(f"skipped: zarr-python is {zarr.__version__}, and not 2")
    sys.exit(77)


def opened(path):
    tessera.refs(path, out="refs.json")
    # fsspec keeps what it has opened by such a name.
    return zarr.open(fsspec.get_mapper("reference://", fo="refs.json", skip_instance_cache=True), mode="r")


def test_what_references_lead_to():
    values = np.arange(3 << 19, dtype="<i4").reshape(3 << 9, 1 << 10)
    np.save("a.npy", values)
    assert np.array_equal(opened("a.npy")[...], values)
    tessera.save("a.ra", values)
    assert np.array_equal(opened("a.ra")[5:9, ::7], values[5:9, ::7])
    np.savez("a.npz", x=values, y=values[0])
    group = opened("a.npz")
    assert sorted(group) == ["x", "y"] and np.array_equal(group["x"][...], values)
    for format, options in (("v2", {}), ("zmeta", {}), ("v3", {"shards": (512, 512), "chunks": (128, 256)})):
        tessera.save("a.zarr", values, format=format, overwrite=True, **options)
        assert np.array_equal(opened("a.zarr")[...], values), format
    g = tessera.create_group("g.zarr", "v2", attrs={"title": "t"})
    g.create_array("sub/a", (3, 4), "f8", chunks=(2, 2), fill_value=1.5)[0] = 2
    group = opened("g.zarr")
    assert group.attrs["title"] == "t" and group["sub/a"][:2, 0].tolist() == [2, 1.5]


if __name__ == "__main__":
    module.run(dict(globals()))
