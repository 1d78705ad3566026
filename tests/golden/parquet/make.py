"""Writes references in Parquet to chunks.bin beside this file, by kerchunk's and fsspec's own writers."""
import base64, json, shutil

import fsspec
import numcodecs
import numpy as np
from fsspec.implementations.reference import LazyReferenceMapper
from kerchunk.df import refs_to_dataframe

volume = (np.arange(42) * 7919 % 251).reshape(7, 6).astype("<u2")
many = np.arange(3000, dtype="<i4")
chunks = bytearray(b"head")
refs = {".zgroup": '{"zarr_format":2}', ".zattrs": '{"title":"t"}', "g/.zgroup": '{"zarr_format":2}'}


def put(data):
    chunks.extend(data)
    return ["chunks.bin", len(chunks) - len(data), len(data)]


def array(name, shape, chunks, dtype, compressor=None, attributes={}):
    refs[name + "/.zarray"] = json.dumps(dict(zarr_format=2, shape=shape, chunks=chunks, dtype=dtype, order="C", fill_value=0,
                                              filters=None, compressor=compressor))
    refs[name + "/.zattrs"] = json.dumps(attributes)


def inline(data):
    return "base64:" + base64.b64encode(data.tobytes()).decode()


array("v", [7, 6], [2, 3], "<u2", {"id": "zlib", "level": 1}, {"_ARRAY_DIMENSIONS": ["y", "x"], "units": "m"})
for i in range(4):
    for j in range(2):
        chunk = np.zeros((2, 3), "<u2")
        part = volume[2 * i:2 * i + 2, 3 * j:3 * j + 3]
        chunk[:part.shape[0]] = part
        if (i, j) != (1, 1):  # which is not stored
            refs[f"v/{i}.{j}"] = put(numcodecs.Zlib(1).encode(chunk))
array("g/many", [3000, 1], [1, 1], "<i4")
for i in range(3000):
    refs[f"g/many/{i}.0"] = put(many[i].tobytes())
array("raw", [6], [3], "<u2")
refs["raw/0"], refs["raw/1"] = inline(volume[0, :3]), inline(volume[0, 3:])
array("scalar", [], [], "<f8")
refs["scalar/0"] = inline(np.float64(2.5))
open("chunks.bin", "wb").write(chunks)
for engine in "fastparquet", "pyarrow":
    shutil.rmtree(f"{engine}.parq", ignore_errors=True)
    made = LazyReferenceMapper.create(f"{engine}.parq", record_size=1000, fs=fsspec.filesystem("file"), engine=engine)
    for key, value in refs.items():
        text = isinstance(value, str)
        made[key] = base64.b64decode(value[7:]) if text and value.startswith("base64:") else value.encode() if text else value
    made.flush()
shutil.rmtree("kerchunk.parq", ignore_errors=True)
refs_to_dataframe({"version": 1, "refs": refs}, "kerchunk.parq", record_size=1000)
