#!/usr/bin/env python3
"""Array.view: the picture that the program draws, whose pixels tests/cli/test_view.py compares with NumPy's."""
import os
import subprocess
import struct
import zlib

import module
import numpy as np
from module import raises, tessera

PROGRAM = os.environ["TESSERA_PROGRAM"]


def program_draws(*words):
    subprocess.run([PROGRAM, "view", *words, "--png", "wanted.png", "--overwrite", "--quiet"], check=True)
    with open("wanted.png", "rb") as file:
        return file.read()


def chunks_of(data):
    at = 8
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at:at + 8])
        body = data[at + 8:at + 8 + size]
        assert struct.unpack(">I", data[at + 8 + size:at + 12 + size])[0] == zlib.crc32(kind + body)
        yield kind, body
        at += 12 + size


def made():
    values = np.random.default_rng(21).normal(size=(5, 60, 80)).astype("f4")
    values[2, 3] = np.nan
    a = tessera.create("cube.zarr", shape=values.shape, dtype="f4", chunks=(1, 16, 16), format="v3", fill_value=-9,
                       dims=("t", "y", "x"))
    a[...] = values
    a[2, 40:44, 40:44] = -9
    a.attrs["units"] = "m"
    return a


def has_png(a):
    try:
        a.view(size=(240, 240))
    except tessera.Unsupported as e:
        assert "libpng" in str(e), e
        print("skipped: built without libpng")
        return False
    return True


def test_the_same_picture_as_the_program():
    a = made()
    if not has_png(a):
        return
    cases = [({}, []), ({"selection": "1, ::-1"}, ["1, ::-1"]), ({"selection": np.s_[1, ..., ::2]}, ["1, ..., ::2"]),
             ({"selection": np.s_[:, 3, 4]}, [":, 3, 4"]), ({"selection": 4}, ["4"]), ({"axes": (0, "x")}, ["--axes", "t,x"]),
             ({"range": ("2%", 1.5)}, ["--range", "2%,1.5"]), ({"map": "grey"}, ["--map", "grey"]),
             ({"missing": "none"}, ["--missing", "none"]), ({"reduce": "max", "size": (400, 300)}, ["--with", "max", "--size", "400x300"]),
             ({"limit": "1K"}, ["--limit", "1K"])]
    seen = set()
    for options, words in cases:
        picture = a.view(**options)
        assert picture.data == program_draws("cube.zarr", *words), options
        seen.add(picture.data)
        parts = dict(chunks_of(picture.data))
        assert struct.unpack(">II", parts[b"IHDR"][:8]) == picture.size
        assert len(zlib.decompress(b"".join(b for k, b in chunks_of(picture.data) if k == b"IDAT"))) == \
            picture.size[1] * (3 * picture.size[0] + 1)
    assert len(seen) == len(cases)


def test_what_elements_stand_for():
    a = tessera.create("packed.zarr", shape=(30, 40), dtype="i2", format="v3", fill_value=0)
    a[...] = np.arange(1200).reshape(30, 40)
    a.attrs.update({"scale_factor": 0.5, "add_offset": -3, "_FillValue": 7})
    if not has_png(a):
        return
    shown, raw = a.view().data, a.view(raw=True).data
    assert shown == program_draws("packed.zarr")
    assert raw == program_draws("packed.zarr", "--raw")
    assert shown != raw


def test_what_a_notebook_asks_for():
    a = made()
    if not has_png(a):
        return
    picture = a.view()
    assert picture._repr_png_() == picture.data
    assert repr(picture) == f"<tessera.Picture {picture.size[0]}×{picture.size[1]}>"
    picture.save("a.png")
    with raises(FileExistsError):
        picture.save("a.png")
    with open("a.png", "rb") as file:
        assert file.read() == picture.data
    np.save("plain.npy", np.eye(4))
    assert tessera.open("plain.npy").view().data == program_draws("plain.npy")


def test_what_is_refused():
    a = made()
    for options, text in [({"map": "jet"}, "viridis"), ({"axes": ("q",)}, "t, y, x"), ({"size": (10, 10)}, "size: expected"),
                          ({"reduce": "sum"}, "mean"), ({"range": (2, 1)}, "range"), ({"missing": "x"}, "missing")]:
        with raises(tessera.InvalidArgument, text):
            a.view(**options)
    with raises(tessera.OutOfBounds):
        a.view("9, ...")
    with raises(TypeError):
        a.view(1.5)
    np.save("text.npy", np.array(["a"]))
    with raises(tessera.Unsupported, "<U1"):
        tessera.open("text.npy").view()


if __name__ == "__main__":
    module.run(globals())
