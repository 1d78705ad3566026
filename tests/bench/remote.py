#!/usr/bin/env python3
"""Arrays behind a server whose answers begin 30 ms after their requests: the program and the module beside curl,
zarr-python 3 with obstore, and TensorStore.

    cmake --build --preset release --target tessera_cli remote_server
    tests/bench/remote.py [--python build/peers/zarr31/bin/python] [--delay 30] [--rounds 5] [--only small,copy]

`small`: 4,096 chunks of 8 KiB, float32, not compressed, are opened and read into memory: by our module, and by
zarr-python and TensorStore as they are, and with 256 requests at once. `copy`: an array of 1 GiB in chunks of 4 MiB is
copied to /dev/shm, within --max-memory 256M, and curl fetches the same files, 64 at once. Each runs in a process of its
own, one after another, again and again; the median of the seconds is printed, and the server's counts of the last time:
requests, how many were there at once, and rounds, the longest chain of requests each of which came after the answer to
the one before. Nothing but what was read is asserted.

`--python` is an environment of tests/peers/run; peers that it lacks are left out.
"""
import argparse
import contextlib
import hashlib
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

SMALL = {"side": 64, "chunk": (32, 64)}  # chunks along each dimension, elements of each: 8 KiB
COPY = {"side": 16, "chunk": (1024, 1024)}


def make(folder, side, chunk):
    """An array of Zarr v3 whose chunks hold numbers below 1, drawn by lot; returns the sum of all its bytes in C order."""
    document = {"zarr_format": 3, "node_type": "array", "shape": [side * chunk[0], side * chunk[1]], "data_type": "float32",
                "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": list(chunk)}},
                "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}}, "fill_value": 0,
                "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}], "attributes": {}}
    whole = hashlib.sha256()
    for i in range(side):
        (folder / "c" / str(i)).mkdir(parents=True)
        row = []
        for j in range(side):
            block = bytearray(os.urandom(4 * chunk[0] * chunk[1]))
            block[3::4] = b"\x3e" * (chunk[0] * chunk[1])  # between 1/8 and 1/2
            (folder / "c" / str(i) / str(j)).write_bytes(block)
            row.append(block)
        length = 4 * chunk[1]
        for y in range(chunk[0]):
            for block in row:
                whole.update(block[y * length:(y + 1) * length])
    (folder / "zarr.json").write_text(json.dumps(document))
    return whole.hexdigest()


# ---- in a process of its own: how each reads everything

def tessera(url):
    import tessera
    return tessera.open(url), lambda array: array[...]


def obstore(url, limit=None):
    import zarr
    from obstore.store import HTTPStore
    from zarr.storage import ObjectStore
    if limit:
        zarr.config.set({"async.concurrency": limit})
    store = ObjectStore(HTTPStore.from_url(url, client_options={"allow_http": True}), read_only=True)
    return zarr.open_array(store, mode="r", zarr_format=3), lambda array: array[...]


def s3fs(url):
    import zarr
    from zarr.storage import FsspecStore
    origin, _, path = url.partition("/bucket/")
    store = FsspecStore.from_url(f"s3://bucket/{path}", read_only=True, storage_options={"anon": True, "endpoint_url": origin})
    return zarr.open_array(store, mode="r", zarr_format=3), lambda array: array[...]


def tensorstore(url, limit=None):
    import tensorstore
    context = {"http_request_concurrency": {"limit": limit}} if limit else {}
    spec = {"driver": "zarr3", "kvstore": url + "/", "context": context}
    return tensorstore.open(spec, open=True, read=True).result(), lambda array: array.read().result()


# What each imports, which is not counted, and how it reads.
READERS = {
    "tessera": (["tessera"], tessera),
    "zarr-python, obstore": (["zarr", "obstore"], obstore),
    "zarr-python, obstore, 256 at once": (["zarr", "obstore"], lambda url: obstore(url, 256)),
    "zarr-python, s3fs": (["zarr", "s3fs"], s3fs),
    "TensorStore": (["tensorstore"], tensorstore),
    "TensorStore, 256 at once": (["tensorstore"], lambda url: tensorstore(url, 256)),
}


def read_as(name, url):
    modules, reader = READERS[name]
    try:
        for module in modules:
            __import__(module)
    except ImportError as error:
        sys.exit(str(error))
    print("ready", flush=True)
    sys.stdin.readline()
    begin = time.perf_counter()
    array, read = reader(url)
    elements = read(array)
    seconds = time.perf_counter() - begin
    print(json.dumps({"seconds": seconds, "sum": hashlib.sha256(elements).hexdigest()}))


# ---- the server, and what is measured

@contextlib.contextmanager
def serving(program, folder, delay):
    child = subprocess.Popen([program, folder, str(delay)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield f"http://127.0.0.1:{int(child.stdout.readline())}"
    finally:
        child.stdin.close()
        child.wait()


def counts(origin):
    with urllib.request.urlopen(origin + "/-/counts") as answer:
        return json.load(answer)


def ended(child, what):
    """MiB that the process had at most."""
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        sys.exit(f"{what}: {child.returncode}")
    return used.ru_maxrss / 1024


def run_reader(options, name, origin, wanted):
    environment = {**os.environ, "PYTHONPATH": str(options.module)}
    child = subprocess.Popen([options.python, __file__, "--as", name, origin + "/bucket/small"], env=environment, text=True,
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    if child.stdout.readline() != "ready\n":
        child.wait()
        return None
    counts(origin)
    child.stdin.write("\n")
    child.stdin.flush()
    result = json.loads(child.stdout.readline())
    memory = ended(child, name)
    if result["sum"] != wanted:
        sys.exit(f"{name}: other values")
    return {"seconds": result["seconds"], "MiB": memory, **counts(origin)}


def run_command(words, origin, **options):
    counts(origin)
    begin = time.perf_counter()
    child = subprocess.Popen(words, stdout=subprocess.DEVNULL, **options)
    memory = ended(child, words[0])
    return {"seconds": time.perf_counter() - begin, "MiB": memory, **counts(origin)}


def table(title, results):
    print(f"\n{title}\n")
    first = statistics.median(run["seconds"] for run in next(iter(results.values())))
    columns = ["requests", "absent", "connections", "most_in_flight", "rounds"]
    print(f"| {'':34} |  median s | times as long | " + " | ".join(c.replace("_", " ") for c in columns) + " | most MiB |")
    print("|---|" + "---:|" * (len(columns) + 3))
    for name, runs in results.items():
        seconds = statistics.median(run["seconds"] for run in runs)
        print(f"| {name:34} | {seconds:9.3f} | {seconds / first:13.2f} | " +
              " | ".join(f"{runs[-1][c]:{len(c)}}" for c in columns) + f" | {max(run['MiB'] for run in runs):8.0f} |")


def small(options, folder, origin):
    wanted = make(folder / "bucket" / "small", **SMALL)
    results = {}
    for _ in range(options.rounds):
        for name in READERS:
            if results.get(name, True) is None:
                continue
            run = run_reader(options, name, origin, wanted)
            if run is None:
                results[name] = None
                print(f"{name}: skipped")
            else:
                results.setdefault(name, []).append(run)
    table(f"4,096 chunks of 8 KiB, {options.delay} ms before each answer", {k: v for k, v in results.items() if v})


def copy(options, folder, origin):
    make(folder / "bucket" / "copy", **COPY)
    url, made, fetched = origin + "/bucket/copy", folder / "made", folder / "fetched"
    keys = [f"c/{i}/{j}" for i in range(COPY["side"]) for j in range(COPY["side"])]
    (folder / "urls").write_text("".join(f'url = "{url}/{key}"\noutput = "{fetched}/{key}"\n' for key in keys))
    commands = {
        "curl, 64 at once": (fetched, ["curl", "--fail", "--no-progress-meter", "--parallel", "--parallel-immediate", "--parallel-max",
                                       "64", "--create-dirs", "--config", folder / "urls"]),
        "tessera copy": (made, [options.program, "copy", url, made, "--max-memory", "256M", "--durability", "none",
                                "--quiet"]),
    }
    results = {name: [] for name in commands}
    for _ in range(options.rounds):
        for name, (place, words) in commands.items():
            results[name].append(run_command(words, origin))
            if subprocess.run(["diff", "-rq", folder / "bucket" / "copy" / "c", place / "c"], check=False).returncode != 0:
                sys.exit(f"{name}: other values")
            shutil.rmtree(place)
    table(f"1 GiB in chunks of 4 MiB, {options.delay} ms before each answer", results)


def main():
    source = pathlib.Path(__file__).resolve().parents[2]
    build = source / "build" / "release"
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=pathlib.Path, default=build / "tools" / "tessera")
    parser.add_argument("--server", type=pathlib.Path, default=build / "tests" / "remote_server")
    parser.add_argument("--module", type=pathlib.Path, default=build / "tools" / "python")
    parser.add_argument("--python", type=pathlib.Path, default=source / "build" / "peers" / "zarr31" / "bin" / "python")
    parser.add_argument("--folder", default="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
    parser.add_argument("--delay", type=int, default=30)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="small,copy")
    parser.add_argument("--as", nargs=2, dest="reader", metavar=("NAME", "URL"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.reader:
        return read_as(*options.reader)
    if not options.python.exists():
        options.python = pathlib.Path(sys.executable)
    with tempfile.TemporaryDirectory(dir=options.folder) as name, serving(options.server, name, options.delay) as origin:
        for stage in options.only.split(","):
            {"small": small, "copy": copy}[stage](options, pathlib.Path(name), origin)


if __name__ == "__main__":
    main()
