#!/usr/bin/env python3
"""tessera.serve: what other programs read over HTTP of every array that Tessera reads, and the server in a process."""
import gc
import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

import module
import numpy as np
from module import golden, raises, tessera

try:
    tessera.serve(golden).close()
except tessera.Unsupported as error:
    print("skipped:", error)
    sys.exit(77)
try:
    import aiohttp  # noqa: F401
    import fsspec  # noqa: F401
    import zarr

    import peers
except ImportError as error:
    print("skipped:", error)
    sys.exit(77)

# Broken on purpose, or not what the peers understand; all else must be read.
EXAMPLES = os.path.join(os.environ["TESSERA_SOURCE"], "tools", "examples")


def get(url):
    with urllib.request.urlopen(url, timeout=30) as response:
        return response.read()


def listed(server, path=""):
    import json

    tree = json.loads(get(f"{server}api/tree?" + urllib.parse.urlencode({"path": path})))
    for child in tree["children"]:
        if child["kind"] == "group":
            yield from listed(server, child["path"])
        elif "error" not in child:
            yield child


def arrays(server, folder):
    """(path in URLs, array) of all that Tessera opens and reads in a folder that is served."""
    for child in listed(server):
        if child["path"].startswith("bad/"):
            continue
        path = os.path.join(folder, child["path"])
        if child["kind"] == "member":
            parent = path
            while not os.path.isfile(parent):
                parent = os.path.dirname(parent)
            path = f"{parent}::{path[len(parent) + 1:]}"
        if np.prod(child["shape"], dtype=float) > 1e6:
            continue
        try:
            array = tessera.open(path)
            yield urllib.parse.quote(child["path"]), array, array[...]
        except tessera.Error:
            continue


def refused(server, path):
    """Why the server does not show an array in this format, or None."""
    try:
        get(f"{server}{path}/{'.zarray' if path.startswith('v2') else 'zarr.json'}")
        return None
    except urllib.error.HTTPError as error:
        assert error.code == 501, (path, error.code, error.read())
        return error.read().decode()


def comparable(expected, got):
    """zarr has no padding, and gives one element of no dimensions as a scalar."""
    expected, got = np.asarray(expected), np.asarray(got)
    if expected.dtype.names:
        return all(comparable(expected[n], got[n]) for n in expected.dtype.names)
    if expected.dtype.kind == "O" or got.dtype.kind == "O":
        return expected.tolist() == got.tolist()
    if expected.dtype.kind in "fc":  # of a NaN that comes from a fill nobody keeps the payload
        bits = expected.astype(got.dtype)
        return expected.shape == got.shape and np.array_equal(bits, got, equal_nan=True) and \
            np.array_equal(np.signbit(bits.real)[bits == bits], np.signbit(got.real)[got == got])
    return peers.same(expected, got)


def test_zarr_python_reads_all_fixtures_by_fsspec():
    count = 0
    for folder in golden, EXAMPLES:
        with tessera.serve(folder) as server:
            for path, array, expected in arrays(server, folder):
                # fsspec hangs on documents above 128 KiB when it asks whether they are there, and does not read them.
                if "huge_header" in path or refused(server, f"v2/{path}"):
                    continue
                got = zarr.open(f"{server}v2/{path}", mode="r")[...]
                assert comparable(expected, got), (path, expected, got)
                count += 1
    print(f"  {count} arrays")
    assert count > 150


def test_the_consolidated_hierarchy():
    with tessera.serve(os.path.join(golden, "zarr2")) as server:
        group = zarr.open_consolidated(f"{server}v2", mode="r")
        found = {}
        group.visititems(lambda name, node: found.__setitem__(name, node) if hasattr(node, "chunks") else None)
        assert len(found) > 20
        for name, array in found.items():
            expected = tessera.open(os.path.join(golden, "zarr2", name))
            assert array.shape == expected.shape


def test_zarrita_reads_all_fixtures():
    if not peers.installed("zarrita"):
        print("  zarrita is not installed")
        return
    zarrita = peers.Zarrita()
    counts = {"v2": 0, "v3": 0}
    unknown, misread = [], []
    with tessera.serve(golden) as server:
        for path, array, expected in arrays(server, golden):
            for format in "v2", "v3":
                if refused(server, f"{format}/{path}"):
                    continue
                try:
                    got = zarrita.read(f"{server}{format}/{path}")
                except peers.PeerError as error:
                    unknown.append((f"{format}/{path}", str(error)))
                    continue
                if got.dtype == object:
                    if np.asarray(expected).dtype != object:
                        unknown.append((f"{format}/{path}", "text of fixed length is not understood here"))
                        continue
                    assert got.tolist() == np.asarray(expected).tolist(), (format, path, expected, got)
                elif not comparable(expected, got):
                    # zarrita has its own mistakes (delta of big-endian elements, some frames of blosc): in them
                    # zarr-python reads the same URL as we do, or zarrita reads the same of the files.
                    if format == "v2":
                        right = comparable(expected, zarr.open(f"{server}v2/{path}", mode="r")[...])
                    else:
                        right = f"v2/{path}" in misread or array.format == "v3" and \
                            peers.same(zarrita.read(os.path.join(golden, urllib.parse.unquote(path))), got)
                    assert right, (format, path, expected, got)
                    misread.append(f"{format}/{path}")
                counts[format] += 1
    zarrita.close()
    unexpected = [(path, e) for path, e in unknown
                  if not any(text in e for text in WHAT_ZARRITA_LACKS) and path.split("/")[-1] not in ONLY_ZARRITA]
    assert not unexpected, unexpected
    print(f"  {counts}, {len(unknown)} not known to zarrita, misread by zarrita alone: {misread}")
    assert len(misread) < 20
    assert counts["v2"] > 100 and counts["v3"] > 100


WHAT_ZARRITA_LACKS = ("is not understood here", "not understood", "Unknown codec", "Unknown data_type", "Unknown dtype",
                      "codec", "data type", "dataType", "dtype.match", "empty iterator",
                      "Not found: v3 array")  # what it does not know in v2 it looks for in v3
# It looks for the index at the end of each shard, and for zeros that fill S in base64.
ONLY_ZARRITA = ("shard_start", "shard_then_outer_gzip", "str_S_partial_fill_text")


def test_gdal_reads_each_format_by_vsicurl():
    if not peers.installed("GDAL"):
        print("  GDAL is not installed")
        return
    os.environ["GDAL_DISABLE_READDIR_ON_OPEN"] = "EMPTY_DIR"
    gdal = peers.Gdal()
    values = np.random.default_rng(1).integers(-1000, 1000, (7, 9)).astype("<i4")
    os.mkdir("here")
    for format, options in (("zmeta", {}), ("v1", {}), ("v2", {"order": "F", "codec": "zlib:3"}),
                            ("v3", {"shards": (4, 8), "codec": "zstd:1"}), ("v3", {"codec": "blosc:lz4:5:shuffle"})):
        tessera.save(f"here/{format}{len(options)}{'shards' in options}.zarr", values, format=format, chunks=(2, 4), **options)
    for name in "a.npy", "a.ra", "a.mldf::x":
        tessera.save(f"here/{name}", values)
    np.savez("here/two.npz", x=values, y=values[0])
    count = 0
    with tessera.serve("here") as server:
        for child in listed(server):
            got = gdal.read(f"/vsicurl/{server}v2/{urllib.parse.quote(child['path'])}")
            expected = values if child["shape"] == [7, 9] else values[0]
            assert peers.same(expected, got), child["path"]
            count += 1
    assert count == 10, count


def test_errors_are_not_taken_for_absent_chunks():
    tessera.save("a.zarr", np.arange(8, dtype="i4"), chunks=4, format="v2", codec="zlib:1")
    os.remove("a.zarr/1")
    os.mkdir("a.zarr/1")
    with tessera.serve("a.zarr") as server:
        array = zarr.open(f"{server}v2", mode="r")
        assert array[:4].tolist() == [0, 1, 2, 3]  # zarr-python 2 takes any error for an absent chunk: the page says so
        if peers.installed("zarrita"):
            zarrita = peers.Zarrita()
            for format in "v2", "v3":
                with raises(peers.PeerError, "500"):
                    zarrita.read(f"{server}{format}")
            zarrita.close()


def test_the_object():
    np.save("a.npy", np.arange(3))
    server = tessera.serve("a.npy")
    assert str(server) == server.url == f"http://127.0.0.1:{server.port}{server.url[len(f'http://127.0.0.1:{server.port}'):]}"
    assert not server.closed and server.url in repr(server)
    assert get(server.url + "v2/0") == np.arange(3).tobytes()
    with raises(tessera.IoError, str(server.port)):
        tessera.serve("a.npy", port=server.port)
    server.close()
    server.close()
    assert server.closed and "closed" in repr(server)
    with raises(urllib.error.URLError):
        get(server.url)
    with tessera.serve("a.npy", token=False, port=server.port) as again:
        assert again.url == f"http://127.0.0.1:{server.port}/" and get(again.url + "v2/0")
    forgotten = tessera.serve("a.npy").url
    gc.collect()
    with raises(urllib.error.URLError):
        get(forgotten)
    np.savez("two.npz", x=np.arange(3), y=np.arange(4))
    with tessera.serve("a.npy", tessera.open("two.npz")) as both:
        assert b"two.npz/y/.zarray" in get(both.url + "v2/.zmetadata")
    for wrong in (), ("nothing",), (3,):
        with raises(tessera.Error):
            tessera.serve(*wrong)
    with raises(ValueError, "allow-origin"):
        tessera.serve("a.npy", allow_origins="*")


def test_a_process_ends_with_its_server():
    np.save("a.npy", np.arange(3))
    for code in ("server = tessera.serve('a.npy')", "tessera.keep = tessera.serve('a.npy')",
                 "s = tessera.serve('a.npy'); import urllib.request as u; u.urlopen(s.url + 'v2/0').read()",
                 "s = tessera.serve('a.npy'); import socket; c = socket.create_connection(('127.0.0.1', s.port))",
                 "s = tessera.serve('a.npy'); raise SystemExit(0)"):
        started = time.monotonic()
        subprocess.run([sys.executable, "-c", f"import tessera; {code}"], check=True, timeout=60,
                       env={**os.environ, "PYTHONPATH": os.environ["TESSERA_MODULE"]})
        assert time.monotonic() - started < 30


def test_interrupts_reach_the_main_thread():
    np.save("a.npy", np.arange(3))
    code = ("import tessera, time, sys\ns = tessera.serve('a.npy')\nprint(s.url, flush=True)\n"
            "try:\n    time.sleep(60)\nexcept KeyboardInterrupt:\n    sys.exit(7)\n")
    for _ in range(3):
        process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True,
                                   env={**os.environ, "PYTHONPATH": os.environ["TESSERA_MODULE"]})
        get(process.stdout.readline().strip() + "v2/0")
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=30) == 7
        process.stdout.close()


def in_a_child(server, answers):
    answers.put((server.closed, server.url))
    server.close()
    with tessera.serve("a.npy") as own:
        answers.put(get(own.url + "v2/0"))


def test_forks():
    np.save("a.npy", np.arange(3))
    context = multiprocessing.get_context("fork")
    answers = context.Queue()
    server = tessera.serve("a.npy")
    for _ in range(3):
        child = context.Process(target=in_a_child, args=(server, answers))
        child.start()
        assert answers.get(timeout=30) == (True, server.url)
        assert answers.get(timeout=30) == np.arange(3).tobytes()
        child.join(30)
        assert child.exitcode == 0
        assert get(server.url + "v2/0") == np.arange(3).tobytes()
    # A child that lives on does not hold the port.
    child = context.Process(target=time.sleep, args=(60,))
    child.start()
    server.close()
    with raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", server.port), timeout=10)
    child.kill()
    child.join()


if __name__ == "__main__":
    module.run(globals())
