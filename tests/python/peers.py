"""Programs that are not ours, to read what we write and to write what we read: Python zarr 2.13, zarrita, GDAL."""

import base64
import json
import os
import pathlib
import shutil
import subprocess
import sys

import numpy as np
import zarr

SOURCE = pathlib.Path(os.environ["TESSERA_SOURCE"])

# What NumPy calls the element types that zarrita gives as bytes.
ZARRITA_DTYPES = {f"{kind}{bits}": np.dtype(f"<{letter}{bits // 8}")
                  for kind, letter, sizes in [("int", "i", [8, 16, 32, 64]), ("uint", "u", [8, 16, 32, 64]),
                                              ("float", "f", [16, 32, 64])] for bits in sizes} | {"bool": np.dtype("?")}


class PeerError(Exception):
    """The peer does not know what it was given, or found it wrong."""


def skip(why):
    """Ends a test as skipped (tests/CMakeLists.txt knows the number)."""
    print("skipped:", why)
    sys.exit(77)


def require_zarr2():
    """Skips a test that is for zarr-python 2; tests/peers, which takes parts of this too, has newer ones."""
    if not zarr.__version__.startswith("2."):
        skip(f"zarr-python is {zarr.__version__}, and not 2 (tests/peers has newer ones)")


def installed(peer):
    """Whether "zarrita" or "GDAL" is there; tools/test installs zarrita by `npm ci`."""
    if peer == "zarrita":
        return bool(shutil.which("node")) and (
            SOURCE / "tests" / "zarrita" / "node_modules" / ".package-lock.json").is_file()
    return bool(shutil.which("gdalmdiminfo"))


def require(*names):
    """Skips a test where a peer is not installed."""
    for name in names:
        if not installed(name):
            skip(f"{name} is not installed")


class PythonZarr:
    """zarr-python 2.13: Zarr v2."""

    name = "zarr-python"
    version = zarr.__version__.split("+")[0]
    formats = ("v2",)

    def read(self, path):
        try:
            return zarr.open(str(path), mode="r")[...]
        except Exception as error:  # whatever it throws, it could not read it
            raise PeerError(f"{type(error).__name__}: {error}") from error


class Zarrita:
    """zarrita under Node: Zarr v2 and v3."""

    name = "zarrita"
    version = json.loads((SOURCE / "tests" / "zarrita" / "package.json").read_text())["dependencies"]["zarrita"]
    formats = ("v2", "v3")

    def __init__(self):
        folder = SOURCE / "tests" / "zarrita"
        self.process = subprocess.Popen(["node", str(folder / "bridge.mjs")], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)

    def close(self):
        self.process.stdin.close()
        self.process.wait(timeout=30)
        self.process.stdout.close()

    def ask(self, **request):
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        if "error" in answer:
            raise PeerError(answer["error"])
        return answer

    def read(self, path):
        answer = self.ask(read=str(path))
        if "data" not in answer:
            raise PeerError(f"a single {answer['dtype']} is not understood here")
        if isinstance(answer["data"], list):
            return np.array(answer["data"], dtype=object).reshape(answer["shape"])
        if answer["dtype"] not in ZARRITA_DTYPES:
            raise PeerError(f"{answer['dtype']} comes as bytes that are not understood here")
        return np.frombuffer(base64.b64decode(answer["data"]), ZARRITA_DTYPES[answer["dtype"]]).reshape(answer["shape"])

    def write(self, path, array, chunks, codecs, fill, separator="/"):
        """A v3 array."""
        self.ask(write=str(path), dtype=array.dtype.name, shape=array.shape, chunks=chunks, codecs=codecs, fill=fill,
                 data=base64.b64encode(array.astype(array.dtype.newbyteorder("<")).tobytes()).decode(),
                 separator=separator)


class Gdal:
    """GDAL's command-line tool: Zarr v2, of numbers and text."""

    name = "GDAL"
    version = (subprocess.run(["gdalmdiminfo", "--version"], capture_output=True, text=True).stdout.split()[1].strip(",")
               if installed("GDAL") else None)
    formats = ("v2",)
    DTYPES = {"Byte": "u1", "Int16": "<i2", "UInt16": "<u2", "Int32": "<i4", "UInt32": "<u4", "Int64": "<i8",
              "UInt64": "<u8", "Float32": "<f4", "Float64": "<f8"}

    def read(self, path):
        done = subprocess.run(["gdalmdiminfo", "-detailed", f'ZARR:"{path}"'], capture_output=True, text=True,
                              errors="replace")
        if done.returncode != 0 or "ERROR" in done.stderr:  # some errors only leave elements out
            raise PeerError(done.stderr.strip())
        try:
            # A zero keeps its sign.
            shown = json.loads(done.stdout, parse_int=lambda digits: -0.0 if digits == "-0" else int(digits))
        except ValueError as error:
            raise PeerError(f"no JSON: {error}") from error
        (array,) = shown["arrays"].values()
        values = np.array(array["values"], dtype=object)
        if array["datatype"] == "String":
            return values
        if str(array["datatype"]) not in self.DTYPES:
            raise PeerError(f"{array['datatype']} is not understood here")
        return np.vectorize(lambda v: float(v) if isinstance(v, str) else v, [object])(values).astype(
            self.DTYPES[array["datatype"]])


def same(expected, got):
    """Equal element by element, to the last bit but for byte order and padding."""
    expected, got = np.asarray(expected), np.asarray(got)
    if expected.shape != got.shape:
        return False
    if expected.dtype.names:
        return expected.dtype.names == got.dtype.names and all(same(expected[n], got[n]) for n in expected.dtype.names)
    if expected.dtype.kind in "SUO" or got.dtype.kind in "SUO":
        return expected.tolist() == got.tolist()
    if expected.dtype.newbyteorder("=") != got.dtype.newbyteorder("="):
        return False
    native = expected.dtype.newbyteorder("=")
    return expected.astype(native).tobytes() == got.astype(native).tobytes()
