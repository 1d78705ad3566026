#!/usr/bin/env python3
"""tessera.copy: what is kept, gone on with, linked, and only told."""
import os

import module
import numpy as np
from module import raises, tessera


def chunk_files(path):
    return {os.path.join(folder, name): os.stat(os.path.join(folder, name)).st_ino
            for folder, _, files in os.walk(path) for name in files
            if ".tessera" not in folder and name not in ("zarr.json", ".zarray", ".zattrs", "__zmeta__", "__zattr__")}


def test_an_interrupted_copy_goes_on():
    values = np.random.default_rng(1).integers(0, 9, (64, 1000), "u1")
    tessera.save("a.zarr", values, chunks=(1, 1000))

    def stop(done, total):
        if 0 < done < total:
            raise ValueError("enough")

    for options in ({"format": "v3"}, {"format": "v3", "chunks": (1, 500)}):
        with raises(ValueError, "enough"):
            tessera.copy("a.zarr", "gone.zarr", progress=stop, threads=1, **options)
        assert not os.path.exists("gone.zarr")
        with raises(ValueError, "enough"):
            tessera.copy("a.zarr", "b.zarr", resume=True, progress=stop, threads=1, **options)
        with raises(tessera.NotFound):
            tessera.open("b.zarr")
        kept = chunk_files("b.zarr")
        with raises(tessera.AlreadyExists):
            tessera.copy("a.zarr", "b.zarr", **options)
        with raises(tessera.Error):
            tessera.copy("a.zarr", "b.zarr", resume=True, sel=slice(None), format="v3", chunks=(2, 1000))
        tessera.copy("a.zarr", "b.zarr", resume=True, **options)
        assert kept.items() <= chunk_files("b.zarr").items(), "what was there was written again"
        assert np.array_equal(tessera.load("b.zarr"), values)
        tessera.copy("a.zarr", "b.zarr", overwrite=True, **options)
        os.rename("b.zarr", f"done{len(options)}.zarr")


def test_links():
    values = np.arange(100).reshape(10, 10)
    tessera.save("a.zarr", values, chunks=(5, 5))
    tessera.copy("a.zarr", "b.zarr", format="v2", link=True)
    assert sorted(chunk_files("a.zarr").values()) == sorted(chunk_files("b.zarr").values())
    assert np.array_equal(tessera.load("b.zarr"), values)
    for wrong in ({"chunks": (2, 2)}, {"sel": slice(2)}):
        with raises(ValueError, "linked"):
            tessera.copy("a.zarr", "c.zarr", link=True, **wrong)
    with raises(ValueError, "link"):
        tessera.copy("a.zarr", "c.npy", link=True)
    assert sorted(os.listdir()) == ["a.zarr", "b.zarr"]


def test_a_dry_run_tells_and_makes_nothing():
    tessera.save("a.zarr", np.arange(100).reshape(10, 10), chunks=(5, 5), codec="zstd:3", format="v3")
    assert tessera.copy("a.zarr", "b.zarr", dry_run=True) == ["chunks are copied as they are"]
    assert tessera.copy("a.zarr", "b.zarr", dry_run=True, link=True) == ["chunks are linked as they are"]
    told = tessera.copy("a.zarr", "b.zarr", format="zmeta", dry_run=True)
    assert len(told) == 2 and "zstd" in told[0] and "encoded anew" in told[1], told
    assert tessera.copy("a.zarr", "b.npy", dry_run=True) == []
    with raises(tessera.Unsupported):
        tessera.create("t.zarr", (), "f4", format="v3")
        tessera.copy("t.zarr", "b.zarr", format="v1", dry_run=True)
    assert sorted(os.listdir()) == ["a.zarr", "t.zarr"]


def test_hierarchies():
    group = tessera.create_group("g.zarr", format="v3")
    group.attrs["title"] = "x"
    values = np.arange(12).reshape(3, 4)
    for name in ("a", "inner/b"):
        group.create_array(name, (3, 4), "i8", chunks=(2, 2))[...] = values
    assert tessera.copy("g.zarr", "two.zarr", format="v2") == []
    copied = tessera.open("two.zarr")
    assert copied.format == "v2" and dict(copied.attrs) == {"title": "x"}
    assert np.array_equal(copied["inner/b"][...], values)
    with raises(tessera.AlreadyExists):
        tessera.copy(group, "two.zarr")
    told = tessera.copy(group, "three.zarr", chunks=(3, 3), dry_run=True)
    assert [line.split(":")[0] for line in told] == ["a", "inner/b"] and "encoded anew" in told[0], told
    assert not os.path.exists("three.zarr")
    tessera.copy(group, "all.npz")
    assert np.array_equal(np.load("all.npz")["inner/b"], values)
    tessera.copy(tessera.open("all.npz"), "back.zip", format="v2")
    assert np.array_equal(tessera.open("back.zip")["a"][1:], values[1:])
    with raises(ValueError, "several"):
        tessera.copy(group, "four.zarr", slice(2))
    # What cannot be read is never left out in silence.
    for folder, _, files in os.walk("g.zarr/a/c"):
        for name in files:
            with open(os.path.join(folder, name), "wb") as file:
                file.write(b"torn")
    with raises(tessera.Corrupt, "lacks 1 array"):
        tessera.copy(group, "part.zarr", verify=True)
    assert np.array_equal(tessera.load("part.zarr/inner/b"), values)
    told = tessera.copy(group, "part.zarr", overwrite=True, skip_unreadable=True, verify=True)
    assert len(told) == 1 and told[0].startswith("left out"), told


if __name__ == "__main__":
    module.run(dict(globals()))
