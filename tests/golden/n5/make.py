"""Writes the data sets beside this file. Each writer is run by its own Python: `make.py zarr`, `make.py tensorstore`,
`make.py z5`."""
import os, sys
import numpy as np

# Shape and blocks do not divide, so that edges are cut; zyx.
volume = (np.arange(7 * 5 * 9, dtype="i4").reshape(7, 5, 9) * 7919 % 251).astype("<u2")
if sys.argv[1:] == ["expected"]:
    np.save("volume.npy", volume)
if sys.argv[1:] == ["zarr"]:
    import numcodecs as nc
    import zarr
    root = zarr.group(zarr.N5Store("zarr.n5"), overwrite=True)
    root.attrs["title"] = "written by zarr-python"
    codecs = {"raw": None, "gzip": nc.GZip(5), "zlib": nc.Zlib(1), "bzip2": nc.BZ2(1), "xz": nc.LZMA(), "blosc": nc.Blosc(),
              "zstd": nc.Zstd(3), "lz4": nc.LZ4()}
    for name, codec in codecs.items():
        made = root.create_dataset(f"codecs/{name}", shape=volume.shape, chunks=(3, 4, 2), dtype=volume.dtype, compressor=codec)
        made[:6] = volume[:6]  # blocks that are absent
    for kind in "i1 u4 i8 f4 f8".split():
        made = root.create_dataset(f"types/{kind}", shape=volume.shape, chunks=(3, 4, 9), dtype="<" + kind, compressor=nc.GZip(1))
        made[:] = volume.astype(kind)
    root["types/f4"].attrs.update({"axes": ["x", "y", "z"], "units": ["nm"] * 3, "resolution": [4.0, 4.0, 40.0],
                                   "pixelResolution": {"dimensions": [4.0, 4.0, 40.0], "unit": "nm"}})
    root["types/f8"].attrs["transform"] = {"axes": ["z", "y", "x"], "ordering": "C", "scale": [40.0, 4.0, 4.0],
                                           "translate": [0.0, 0.0, 0.0], "units": ["nm"] * 3}
if sys.argv[1:] == ["tensorstore"]:
    import tensorstore as ts
    made = ts.open({"driver": "n5", "kvstore": {"driver": "file", "path": "tensorstore.n5/s0/"},
                    "metadata": {"dimensions": volume.shape[::-1], "dataType": "uint16", "blockSize": [2, 4, 3],
                                 "axes": ["x", "y", "z"], "compression": {"type": "gzip"}}}, create=True).result()
    made.write(volume.T).result()
if sys.argv[1:] == ["z5"]:
    import z5py
    with z5py.File("z5.n5", "w") as file:
        file.create_dataset("deep/volume", data=volume, chunks=(3, 4, 2), compression="gzip")
        file.attrs["title"] = "written by z5"
        file["deep"].attrs["of"] = "a group without the version"
        file["deep/volume"].attrs["offset"] = [1, 2, 3]
