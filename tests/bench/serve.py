#!/usr/bin/env python3
"""What looking at arrays through `tessera serve` takes, on loopback.

    /usr/bin/python3 tests/bench/serve.py [--program build/release/tools/tessera] [--folder /dev/shm] [--side 20000]
                                          [--only volume,clients]

Everything that is served lies in the file system's cache. A server that has just been started has decoded nothing yet.
Figures are the least and the median of several runs, beside what issue and page promise; nothing is asserted. The page
is measured in headless Chromium, where that and python3-selenium are installed.
"""
import argparse
import concurrent.futures
import contextlib
import http.client
import multiprocessing
import os
import pathlib
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse

import numpy as np

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--program", default="build/release/tools/tessera")
parser.add_argument("--folder", default="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
parser.add_argument("--side", type=int, default=20_000, help="of the square array")
parser.add_argument("--stored", type=int, default=10_000, help="chunks that the sparse array stores")
parser.add_argument("--rounds", type=int, default=5)
parser.add_argument("--only", default="", help="page, square, volume, sparse, clients")
options = parser.parse_args()

ROOT = pathlib.Path(__file__).resolve().parents[2]
os.environ["TESSERA_PROGRAM"] = os.path.abspath(options.program)
os.environ.setdefault("TESSERA_GOLDEN", str(ROOT / "tests/golden"))
os.environ.setdefault("TESSERA_SOURCE", str(ROOT))
sys.path.insert(0, str(ROOT / "tests/cli"))
from serving import Server  # noqa: E402

FORK = multiprocessing.get_context("fork")
OPEN = []
TILE = 256
VIEW = (4, 5)  # tiles of a view of 1280 × 1024 pixels


def report(what, seconds, goal=None):
    figures = "".join(f"{1e3 * s:9.1f}" for s in (min(seconds), statistics.median(seconds), max(seconds)))
    print(f"{what:58}{figures}{goal or '':>9}{len(seconds):6}", flush=True)


def count(what, number, goal=None):
    print(f"{what:58}{number:>9}{'':18}{goal or '':>9}", flush=True)


def tessera(folder, *words):
    subprocess.run([os.environ["TESSERA_PROGRAM"], *map(str, words), "--quiet"], cwd=folder, check=True,
                   stdout=subprocess.DEVNULL)


@contextlib.contextmanager
def serving(folder, *words):
    server = Server(folder, *words)
    try:
        yield Viewer(server)
    finally:
        server.stop()


class Viewer:
    """Asks as the page does: six connections that stay open."""

    def __init__(self, server):
        self.server = server
        self.local = threading.local()
        self.pool = concurrent.futures.ThreadPoolExecutor(6)

    def get(self, route, **parameters):
        if not hasattr(self.local, "connection"):
            self.local.connection = http.client.HTTPConnection(self.server.host, self.server.port, timeout=60)
            self.local.connection.connect()
            self.local.connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        query = urllib.parse.urlencode(parameters)
        answer = self.server.get(f"{route}?{query}" if query else route, connection=self.local.connection)
        if answer.status != 200:
            raise SystemExit(f"{route} {parameters}: {answer.status} {answer.body[:200]}")
        return answer

    def json(self, route, **parameters):
        return self.get(route, **parameters).json()

    def tiles(self, wanted):
        """All tiles, each asked for until it is complete; their bytes."""
        def one(parameters):
            for _ in range(60):
                answer = self.get("api/tile", **parameters)
                if answer.headers["X-Tessera-Left"] == "0":
                    break
            return len(answer.body)
        return sum(self.pool.map(one, wanted))

    def decoded(self):
        return self.json("api/cache")["chunks_decoded"]

    def processor(self):
        """Seconds that the server's threads have worked."""
        with open(f"/proc/{self.server.process.pid}/stat") as line:
            words = line.read().rsplit(")", 1)[1].split()
        return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")

    def read(self):
        """Bytes that the server has read, from files and sockets."""
        with open(f"/proc/{self.server.process.pid}/io") as lines:
            return int(next(lines).split()[1])


def view(path, axes, at, level, row, column, high=VIEW[0], wide=VIEW[1]):
    """The tiles of a view whose first tile is (row, column)."""
    return [{"path": path, "axes": axes, "at": at, "level": f"{level},{level}", "tile": f"{row + i},{column + j}",
             "with": "mean" if level else "nearest", "v": "1"} for i in range(high) for j in range(wide)]


def timed(work):
    begin = time.perf_counter()
    result = work()
    return time.perf_counter() - begin, result


def smooth(rows, columns, first, random, noise=20):
    """Rows of a landscape with noise."""
    y = np.arange(first, first + rows)[:, None] / 900
    x = np.arange(columns)[None] / 700
    land = 3000 * (np.sin(y) * np.cos(x) + 0.3 * np.sin(3 * y + x) * np.cos(5 * x))
    return (land + random.normal(0, noise, (rows, columns))).astype("<i4")


# ---- arrays

def make_square(folder):
    side = options.side
    random = np.random.default_rng(21)
    plain = np.lib.format.open_memmap(folder / "square.npy", "w+", "<i4", (side, side))
    for first in range(0, side, 500):
        plain[first:first + 500] = smooth(min(500, side - first), side, first, random)
    del plain
    tessera(folder, "import", "square.npy", "square.zarr", "--chunks", "1000,1000", "--codec", "blosc:lz4:5:shuffle",
            "--format", "v2")
    tessera(folder, "import", "square.npy", "zstd.zarr", "--chunks", "1000,1000", "--codec", "zstd:1", "--format", "v3")
    os.remove(folder / "square.npy")


def make_volume(folder):
    n = 512
    z, y, x = np.ogrid[:n, :n, :n]
    values = np.sin(z / 40, dtype="f4") + np.cos(y / 60, dtype="f4") * np.sin(x / 50, dtype="f4")
    values += np.random.default_rng(5).normal(0, 0.02, values.shape).astype("f4")
    np.save(folder / "volume.npy", values.astype("<f4"))
    for name, codec in (("blosc", "blosc:lz4:5:shuffle"), ("zstd", "zstd:3")):
        tessera(folder, "import", "volume.npy", f"volume-{name}.zarr", "--chunks", "64,64,64", "--codec", codec, "--format", "v2")


def make_sparse(folder):
    """10⁶ × 10⁶ in 10⁶ chunks, of which some are stored: files with the bytes of a few."""
    for name in ("empty", "sparse"):
        tessera(folder, "create", f"{name}.zarr", "--shape", "1000000,1000000", "--dtype", "<i4", "--chunks", "1000,1000",
                "--format", "v2")
    random = np.random.default_rng(3)
    np.save(folder / "chunk.npy", smooth(1000, 1000, 0, random))
    tessera(folder, "import", "chunk.npy", "chunk.zarr", "--chunks", "1000,1000", "--format", "v2")
    for number in random.choice(1_000_000, options.stored, replace=False):
        os.link(folder / "chunk.zarr/0.0", folder / f"sparse.zarr/{number // 1000}.{number % 1000}")


# ---- what is measured

def square(folder):
    for name in ("square", "zstd"):
        path = f"{name}.zarr"
        levels = max(0, int(np.ceil(np.log2(options.side / 1000))))
        tiles = -(-options.side // (TILE << levels))
        overview = view("", "0,1", "0,0", levels, 0, 0, tiles, tiles)
        previews, overviews, again, opened = [], [], [], []
        decoded, worked = 0, []
        for _ in range(options.rounds):
            with serving(folder, path) as viewer:
                opened.append(timed(lambda: (viewer.json("api/info"), viewer.json("api/picture")))[0])
                previews.append(timed(lambda: viewer.get("api/preview", axes="0,1"))[0])
                before = viewer.processor()
                overviews.append(timed(lambda: viewer.tiles(overview))[0])
                worked.append(viewer.processor() - before)
                decoded = viewer.decoded()
                again.append(timed(lambda: viewer.tiles(overview))[0])
        label = f"{options.side}² int32, {name}: " if name == "zstd" else f"{options.side}² int32, lz4: "
        report(label + "info and picture", opened)
        report(label + "preview", previews, "300")
        report(label + f"complete overview ({len(overview)} tiles)", overviews, "1500")
        report(label + "  processor time of the server", worked)
        count(label + "  chunks decoded for it", decoded, (options.side // 1000) ** 2)
        report(label + "overview again", again)
        pan(folder, path, label)
        full_zoom(folder, path, label)


def pan(folder, path, label):
    """There and back across the array at several levels: what is decoded, and how often."""
    steps = [(y, x) for y, x in ((2, 2), (2, 3), (2, 4), (3, 4), (4, 4), (4, 3), (4, 2), (3, 2), (2, 2))]
    for level in (0, 1, 2, 4):
        with serving(folder, path) as viewer:
            fits = [(y, x) for y, x in steps if (max(y, x) + 5) * (TILE << level) <= options.side] or [(0, 0)]
            for y, x in fits:
                viewer.tiles(view("", "0,1", "0,0", level, y, x))
            first = viewer.decoded()
            seconds = [timed(lambda y=y, x=x: viewer.tiles(view("", "0,1", "0,0", level, y, x)))[0] for y, x in fits]
            report(f"{label}pan at level {level}, again", seconds)
            count(f"{label}  chunks decoded by the first pan", first)
            count(f"{label}  chunks decoded by the second", viewer.decoded() - first, "0")


def full_zoom(folder, path, label):
    random = np.random.default_rng(9)
    last = options.side // TILE - 6
    ratios, seconds = [], []
    with serving(folder, path) as viewer:
        for _ in range(10):
            before = viewer.read()
            y, x = random.integers(0, last, 2)
            took, shown = timed(lambda: viewer.tiles(view("", "0,1", "0,0", 0, y, x)))
            ratios.append((viewer.read() - before) / shown)
            seconds.append(took)
    report(label + "a view of 1280 × 1024 elements elsewhere", seconds)
    count(label + "  bytes read for each byte shown, at most", f"{max(ratios):.1f}", "4")


def volume(folder):
    for name in ("blosc", "zstd"):
        for axis, axes in ((0, "1,2"), (1, "0,2"), (2, "0,1")):
            with serving(folder, f"volume-{name}.zarr") as viewer:
                viewer.json("api/picture")
                seconds = []
                for n in range(50):
                    at = ",".join(str(100 + n if d == axis else 0) for d in range(3))
                    seconds.append(timed(lambda: viewer.tiles(view("", axes, at, 0, 0, 0, 2, 2)))[0])
                report(f"512³ float32, {name}: a step along axis {axis}", seconds, "100")


def sparse(folder):
    for name in ("empty", "sparse"):
        first, complete = [], []
        for _ in range(options.rounds):
            with serving(folder, f"{name}.zarr") as viewer:
                def look():
                    viewer.json("api/tree")
                    viewer.json("api/info")
                    viewer.json("api/picture")
                    viewer.get("api/preview", axes="0,1")
                first.append(timed(look)[0])
                overview = view("", "0,1", "0,0", 10, 0, 0, 4, 4)
                complete.append(timed(lambda: [viewer.get("api/tile", **tile) for tile in overview])[0])
        label = f"10⁶ × 10⁶, {options.stored if name == 'sparse' else 0} of 10⁶ chunks stored: "
        report(label + "opens", first, "1000")
        report(label + "16 tiles of it", complete)


# ---- many clients

def answers(viewer, times=100):
    """Seconds until a tile is there, on connections of their own, as for somebody who comes anew."""
    seconds = []
    for n in range(times):
        tile = f"api/tile?axes=0,1&level=0,0&tile={n % 10},{n // 10}&with=nearest"
        took, answer = timed(lambda: viewer.server.get(tile))
        assert answer.status == 200, answer.body
        seconds.append(took)
        time.sleep(0.02)
    return seconds


def clients(folder):
    chunk = np.random.default_rng(1).integers(0, 100, (64 << 20) // 4, "<i4")
    np.save(folder / "large.npy", chunk.reshape(64, 512, 512))
    tessera(folder, "import", "large.npy", "clients/large.zarr", "--chunks", "8,512,512", "--codec", "none", "--format", "v2")
    np.save(folder / "clients/tiles.npy", smooth(2600, 2600, 0, np.random.default_rng(2)))
    with serving(folder / "clients", "large.zarr", "tiles.npy") as viewer:
        tiled = Tiled(viewer)
        report("a tile, nobody else there", answers(tiled), "100")
        with contextlib.ExitStack() as open_ones:
            for _ in range(200):
                open_ones.enter_context(viewer.server.connect())
            report("  with 200 idle connections", answers(tiled), "100")
        report("  with 200 that drip", beside(viewer, tiled, drip), "100")
        report("  with 200 that do not read 8 MiB each", beside(viewer, tiled, refuse), "100")
        report("  with 200 that read slowly", beside(viewer, tiled, read_slowly), "100")


class Tiled:
    """The server of `clients`, asked for tiles.npy."""

    def __init__(self, viewer):
        self.viewer = viewer
        self.server = self

    def get(self, path):
        return self.viewer.server.get(path + "&path=tiles.npy")


def beside(viewer, tiled, behave):
    """What answers() finds from the moment on at which another process begins to behave badly."""
    over = FORK.Event()
    other = FORK.Process(target=behave, args=(viewer.server, over))
    other.start()
    try:
        return answers(tiled)
    finally:
        over.set()
        other.join()


def connections(server):
    """200 of them, with little room for what comes; they stay open until the process ends."""
    for n in range(200):
        one = socket.socket()
        OPEN.append(one)
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        one.connect((server.host, server.port))
        yield n, one


def drip(server, over):
    request = f"GET {server.prefix}v2/large.zarr/.zarray HTTP/1.1\r\nHost: localhost\r\nX: {'a' * 4000}".encode()
    all_of_them = list(connections(server))
    for at in range(0, len(request)):
        for _, one in all_of_them:
            one.sendall(request[at:at + 1])
        if over.wait(0.005):
            return


def refuse(server, over):
    for n, one in connections(server):
        one.sendall(f"GET {server.prefix}v2/large.zarr/{n % 8}.0.0 HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    over.wait()


def read_slowly(server, over):
    all_of_them = list(connections(server))
    for n, one in all_of_them:
        one.sendall(f"GET {server.prefix}v2/large.zarr/{n % 8}.0.0 HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        one.setblocking(False)
    while not over.wait(0.01):
        for _, one in all_of_them:
            with contextlib.suppress(BlockingIOError):
                one.recv(2000)


# ---- the page

WATCH = """
window.times = {};
const note = (name) => requestAnimationFrame(() => { times[name] ??= performance.now(); });
addEventListener('DOMContentLoaded', () => {
  const map = document.getElementById('map');
  new MutationObserver(() => {
    if (document.getElementById('tabs').children.length) note('usable');
    if (map.querySelector('img.preview')?.complete) note('preview');
    if (map.dataset.state === 'complete') note('complete');
  }).observe(document.body, { attributes: true, childList: true, subtree: true });
});
"""


def browser():
    try:
        from selenium import webdriver
    except ImportError:
        return None
    if not shutil.which("chromium") or not shutil.which("chromedriver"):
        return None
    wishes = webdriver.chrome.options.Options()
    for word in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=1200,800"):
        wishes.add_argument(word)
    driver = webdriver.Chrome(service=webdriver.chrome.service.Service(shutil.which("chromedriver")), options=wishes)
    driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": WATCH})
    return driver


def page(folder):
    np.save(folder / "small.npy", smooth(1000, 1000, 0, np.random.default_rng(2)))
    driver = browser()
    if driver is None:
        print("the page: no Chromium, chromium-driver or python3-selenium")
        return
    names = [("1000² int32", "small.npy")]
    names += [(f"{options.side}² int32", "square.zarr")] if (folder / "square.zarr").exists() else []
    names += [("512³ float32", "volume-blosc.zarr")] if (folder / "volume-blosc.zarr").exists() else []
    names += [("10⁶ × 10⁶, sparse", "sparse.zarr")] if (folder / "sparse.zarr").exists() else []
    try:
        for label, name in names:
            found = {"usable": [], "preview": [], "complete": []}
            for _ in range(options.rounds):
                with serving(folder, name) as viewer:
                    driver.get("about:blank")
                    driver.get(viewer.server.url)
                    end = time.monotonic() + 20
                    while time.monotonic() < end and "complete" not in driver.execute_script("return window.times"):
                        time.sleep(0.1)
                    for what, milliseconds in driver.execute_script("return window.times").items():
                        found[what].append(milliseconds / 1e3)
            for what, goal in (("usable", "1000"), ("preview", None), ("complete", None)):
                if found[what]:
                    report(f"the page, {label}: {what}", found[what], goal)
    finally:
        driver.quit()


def main():
    makers = {"square": make_square, "volume": make_volume, "sparse": make_sparse}
    subjects = {"square": square, "volume": volume, "sparse": sparse, "clients": clients, "page": page}
    chosen = [name for name in options.only.split(",") if name] or list(subjects)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="tessera-serve-", dir=options.folder))
    (folder / "clients").mkdir()
    try:
        for name in chosen:
            if name in makers:
                makers[name](folder)
        print(f"{'':58}{'least':>9}{'median':>9}{'most':>9}{'goal':>9}{'times':>6}")
        for name in chosen:
            subjects[name](folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
