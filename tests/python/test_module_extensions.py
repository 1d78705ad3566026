#!/usr/bin/env python3
"""Codecs and kinds of stores that are Python objects, added before the first opening: the rest works with them."""
import json
import os
import subprocess
import sys
import threading

import numpy as np

import module
from module import raises, tessera


class Xor:
    """Each byte xor a key."""

    codec_id = "xor"
    threads = set()

    def __init__(self, key=42):
        if not 0 <= key <= 255:
            raise ValueError("the key is from 0 to 255")
        self.key = key

    def encode(self, data):
        Xor.threads.add(threading.get_ident())
        return np.frombuffer(data, "u1") ^ np.uint8(self.key)

    decode = encode


class Moody:
    """A codec that fails."""

    codec_id = "moody"
    mood = "good"

    def encode(self, data):
        if self.mood == "no encoding":
            raise RuntimeError("not today")
        return b"x" + data

    def decode(self, data):
        if self.mood == "no decoding":
            raise KeyError("never heard of it")
        if self.mood == "text":
            return "text"
        return data[2:] if self.mood == "short" else memoryview(data)[1:]


moody = Moody()


class Logged(dict):
    """A store that fails when told so."""

    broken = False

    def __getitem__(self, key):
        if Logged.broken:
            raise OSError("the cable is out")
        return super().__getitem__(key)


STORES = {}
tessera.add_codec(Xor)
tessera.add_codec(moody)
tessera.add_store("mem", lambda name: STORES.setdefault(name, Logged()))
CODEC = '{"name": "numcodecs.xor", "configuration": {"key": 7}}'


def test_codec():
    values = np.arange(6000, dtype="i4").reshape(60, 100)
    for format, document in (("v2", ".zarray"), ("v3", "zarr.json")):
        a = tessera.create(f"{format}.zarr", values.shape, "i4", chunks=(7, 30), codec=CODEC, format=format)
        a[:] = values
        np.testing.assert_array_equal(tessera.open(f"{format}.zarr")[3:50:2, ::-3], values[3:50:2, ::-3])
        assert '"key": 7' in open(f"{format}.zarr/{document}").read()
        assert tessera.verify(f"{format}.zarr")["sound"]
    assert json.load(open("v2.zarr/.zarray"))["compressor"] == {"id": "xor", "key": 7}
    assert tessera.copy("v2.zarr", "back.zarr", format="v3", dry_run=True)[-1] == "chunks are copied as they are"
    raw = np.frombuffer(open("v2.zarr/0.0", "rb").read(), "u1") ^ 7
    np.testing.assert_array_equal(raw.view("i4").reshape(7, 30), values[:7, :30])
    tessera.create("short.zarr", 10, "i4", codec="crc32c,xor", format="v3")[:] = 1
    assert tessera.open("short.zarr")[:].tolist() == [1] * 10
    with raises(tessera.InvalidArgument, "the key is from 0 to 255"):
        tessera.create("x.zarr", 10, "i4", codec=CODEC.replace("7", "300"), format="v3")
    assert not os.path.exists("x.zarr")


def test_threads():
    values = np.arange(400_000, dtype="i4")
    a = tessera.create("a.zarr", values.shape, "i4", chunks=1000, codec="xor", format="v2", durability="none")
    failures = []

    def work(k):
        try:
            for n in range(k, 400, 4):
                part = slice(1000 * n, 1000 * n + 1000)
                a[part] = values[part]
                np.testing.assert_array_equal(a[part], values[part])
        except Exception as error:  # noqa: BLE001
            failures.append(error)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures
    np.testing.assert_array_equal(tessera.open("a.zarr").read(threads=4), values)
    a.update(slice(0, 2000), lambda part: part + 1)
    assert a[0] == 1


def test_errors_name_codec_and_chunk():
    moody.mood = "good"
    a = tessera.create("a.zarr", (6, 6), "i4", chunks=(3, 3), codec="moody", format="v2")
    a[:] = 5
    for mood, error, text in (("no decoding", tessera.Corrupt, "KeyError: 'never heard of it'"),
                              ("short", tessera.Corrupt, "the data decode to 35 bytes, expected 36"),
                              ("text", tessera.Corrupt, "TypeError: bytes were expected, found str")):
        moody.mood = mood
        for threads in (1, 4):
            with raises(error, text):
                a.read(np.s_[3:, 1:], threads=threads)
        try:
            a[5, 1]
        except tessera.Error as e:
            assert "a.zarr: chunk (1, 0), key 1.0: numcodecs.moody: " in str(e), e
        else:
            raise AssertionError
    moody.mood = "no encoding"
    with raises(tessera.InvalidArgument, "chunk (0, 1), key 0.1: numcodecs.moody: RuntimeError: not today"):
        a[:3, 3:] = 1
    moody.mood = "good"
    assert (a[:] == 5).all()
    text = open("a.zarr/.zarray").read()
    open("a.zarr/.zarray", "w").write(text.replace('"id": "moody"', '"id": "moody", "level": 1'))
    with raises(tessera.InvalidArgument, "numcodecs.moody: ValueError: it has no configuration"):
        tessera.open("a.zarr")


def test_store():
    values = np.arange(200.0).reshape(10, 20)
    tessera.save("mem:one/deep/a", values, chunks=(4, 5), format="v3")
    assert "deep/a/zarr.json" in STORES["one"] and "deep/a/c/2/3" in STORES["one"]
    np.testing.assert_array_equal(tessera.open("mem:one/deep/a")[2:, ::3], values[2:, ::3])
    assert tessera.open("mem:one/deep/a").path == "mem:one/deep/a"
    group = tessera.create_group("mem:one/g", format="v3")
    group.create_array("b", shape=5, dtype="i4")[:] = 3
    assert list(tessera.open("mem:one/g")) == ["b"]
    tessera.copy("mem:one/deep/a", "a.zarr", format="v2")
    np.testing.assert_array_equal(tessera.load("a.zarr"), values)
    tessera.copy("a.zarr", "mem:two/a")
    assert tessera.digest("mem:two/a") == tessera.digest("a.zarr")
    assert tessera.verify("mem:two/a")["sound"]
    assert not os.path.exists("mem:one") and sorted(os.listdir(".")) == ["a.zarr"]
    Logged.broken = True
    try:
        with raises(tessera.IoError, "mem:two/a"):
            tessera.open("mem:two/a")[:]
        with raises(tessera.IoError, "OSError: the cable is out"):
            tessera.open("mem:two/a")[:]
    finally:
        Logged.broken = False
    with raises(tessera.NotFound, "mem:none"):
        tessera.open("mem:none/a")


def test_too_late_and_taken():
    tessera.create("a.zarr", 3, "i4")
    with raises(tessera.InvalidArgument, "adding codec \"numcodecs.late\": the table of them is in use already"):
        tessera.add_codec(type("Late", (Xor,), {"codec_id": "late"}))
    with raises(tessera.InvalidArgument, "\"numcodecs.xor\": there is one of that name"):
        tessera.add_codec(Xor)
    with raises(tessera.InvalidArgument, "kind of store \"late\": the table of them is in use already"):
        tessera.add_store("late", dict)
    with raises(tessera.InvalidArgument, "scheme"):
        tessera.add_store("C", dict)
    with raises(TypeError, "has no decode()"):
        tessera.add_codec(type("Half", (), {"codec_id": "half", "encode": bytes})())


def test_example():
    script = os.path.join(os.environ["TESSERA_SOURCE"], "tools/examples/extensions.py")
    path = os.pathsep.join(filter(None, (os.environ["TESSERA_MODULE"], os.environ.get("PYTHONPATH"))))
    done = subprocess.run([sys.executable, "-B", script, "copy.zarr"], stdout=subprocess.PIPE, text=True, check=True,
                          env={**os.environ, "PYTHONPATH": path})
    expected = np.zeros((4, 6), "i4")
    expected[1::2, :3] = [[1, 2, 3], [4, 5, 6]]
    assert done.stdout == f"['waves/.zarray', 'waves/0.0', 'waves/1.0']\n{expected}\n", done.stdout
    np.testing.assert_array_equal(tessera.open("copy.zarr")[:], expected)


if __name__ == "__main__":
    module.run(dict(globals()))
