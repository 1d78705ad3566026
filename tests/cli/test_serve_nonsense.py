"""serve: requests that make no sense.

TESSERA_SERVE_REQUESTS sets how many are sent, by eight clients at once, and TESSERA_SERVE_SEED what they are.
"""
import os
import random
import threading

import numpy as np

from program import FEWER, main
from serving import ServeTest

REQUESTS = int(os.environ.get("TESSERA_SERVE_REQUESTS", 4000 // FEWER))
SEED = int(os.environ.get("TESSERA_SERVE_SEED", "1"))
CLIENTS = 8
VALUES = np.arange(1 << 20, dtype="u1").reshape(1024, 1024)

PARTS = ["v2", "v3", "api", "tree", "info", "p.npz", "x", "y", "g", "a.zarr", "s.npy", ".zarray", "zarr.json", "0.0", "c",
         "0", "1",
         "..", "%2e%2e", "%00", "%", "", "é", "\\", ".tessera", "99999999999999999999", "-1", ".zmetadata", "?path=g",
         "&path=%ff",
         "#", "a" * 300, "page", ".zattrs", ".zgroup"]
HEADERS = ["Range", "If-Range", "If-None-Match", "Host", "Origin", "Sec-Fetch-Site", "Connection", "Expect", "Content-Length",
           "Transfer-Encoding", "X", "Accept", "Upgrade", "Cookie", "Authorization"]
VALUES_OF_HEADERS = ["bytes=0-1", "bytes=-1", "bytes=9-", "bytes=0-0,1-1", "*", '"x"', "localhost", "evil", "close",
                     "keep-alive",
                     "100-continue", "0", "5", "-1", "chunked", "cross-site", "null", "é", "", "a" * 2000, "bytes=" + "9" * 400,
                     "\x00", "\x01\x02", "%n%s", "a,b,,c"]
METHODS = ["GET"] * 8 + ["HEAD", "OPTIONS", "POST", "get", "", "GET GET", "\x16\x03\x01", "PRI", "G" * 500]
ROUTES = ["tile", "preview", "value", "histogram", "profile", "rows", "chunks", "picture", "first", "tree", "info",
          "colours", "cache", "selection", "find", "version"]
# Arrays of odd shapes, as the program makes them: NAME: options of create.
ODD = {"empty.zarr": "--shape 0,10 --dtype <f4 --format v3", "none.zarr": "--shape 0 --dtype <i2 --format v2",
       "empty-3d.zarr": "--shape 3,0,4 --chunks 2,5,4 --dtype <i2 --format v2", "0d.zarr": "--shape () --dtype <f8 --format v3",
       "one.zarr": "--shape 1,1 --dtype |u1 --format v2", "huge.zarr": "--shape 1000000000,1000000000 --chunks 1,1 --dtype <f4 --format v2",
       "sharded.zarr": "--shape 0,8 --chunks 2,2 --shard 4,4 --dtype <i4 --format v3",
       "text.zarr": "--shape 0,3 --dtype string --format v3"}
FILES = {"empty.npy": np.zeros((0, 10), "<i4"), "0d.npy": np.array(5.0), "columns.npy": np.zeros((4, 0)), "no-bytes.npy": np.zeros((2, 3), "S0"),
         "structures.npy": np.zeros((0, 2), [("a", "<i4"), ("b", "<f8", (2,))])}
ODD_NODES = ["odd/" + name for name in [*ODD, *FILES]]
NODES = ["", "p.npz", "p.npz/x", "p.npz/y", "g", "g/a.zarr", "s.npy", "nothing", "p.npz/x/", "..", "%ff", "g//a.zarr"] + ODD_NODES
NAMES = ["axes", "at", "level", "tile", "with", "field", "row", "rows", "column", "columns", "bins", "width", "size",
         "axis", "stored", "v", "start", "count", "as", "name"]
WORDS = ["0,1", "1,0", "0,0", "1,2", "0", "1", "5", "3,3", "0,0,0", "-1", "-1,0", "99999999999999999999,1",
         "9223372036854775807,0", "40,40",
         "41,0", "999999999,999999999", "mean", "min", "max", "nearest", "mode", "npy", "csv", "phase", "a", "b.c", "b", "", "1000", "4096", "%00", "x" * 500, "1e3",
         "0x1", ",", "1,", "é"]


class Nonsense(ServeTest):
    def request(self, rng):
        front = self.server.prefix.rstrip("/") if rng.random() < 0.8 else "/t/0"
        if rng.random() < 0.4:
            query = [f"path={rng.choice(NODES)}"] * (rng.random() < 0.9)
            if rng.random() < 0.6:
                query += ["axes=0,1", f"level={rng.randrange(4)},{rng.randrange(4)}",
                f"tile={rng.randrange(3)},{rng.randrange(3)}"]
            query += [f"{rng.choice(NAMES)}={rng.choice(WORDS)}" for _ in range(rng.randrange(4))]
            path = f"{front}/api/{rng.choice(ROUTES)}?{'&'.join(query)}"
        else:
            path = front + "".join("/" + rng.choice(PARTS) for _ in range(rng.randrange(7)))
        version = rng.choice(["HTTP/1.1"] * 8 + ["HTTP/1.0", "HTTP/2.0", "HTTP/9", "", "HTTP/1.1 x"])
        headers = ["Host: localhost"] if rng.random() < 0.9 else []
        headers += [f"{rng.choice(HEADERS)}: {rng.choice(VALUES_OF_HEADERS)}" for _ in range(rng.randrange(4))]
        end = rng.choice(["\r\n"] * 9 + ["\n", "\r", "\r\n "])
        data = end.join([f"{rng.choice(METHODS)} {path} {version}", *headers, "", ""]).encode()
        if rng.random() < 0.1:
            data = bytearray(data)
            for _ in range(rng.randrange(1, 6)):
                data[rng.randrange(len(data))] = rng.randrange(256)
        return rng.randbytes(rng.randrange(1, 3000)) if rng.random() < 0.05 else bytes(data)

    def client(self, number, requests):
        rng = random.Random(f"{SEED}.{number}")
        connection = None
        sent = 0
        for _ in range(requests):
            data = self.request(rng)
            try:
                if connection is None:
                    connection = self.server.connect()
                    connection.settimeout(0.2)
                    sent = 0
                connection.sendall(data)
                sent += 1
                if rng.random() < 0.5 and connection.recv(65536)[:5] not in (b"HTTP/", b""):
                    pass  # the rest of an earlier answer
            except OSError:
                sent = 99
            if connection is not None and sent > rng.randrange(8):
                connection.close()
                connection = None
        if connection is not None:
            connection.close()

    def clients(self, part, requests):
        threads = [threading.Thread(target=self.client, args=(f"{part}.{n}", requests // CLIENTS)) for n in range(CLIENTS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def odd_shapes(self):
        (self.folder / "odd").mkdir()
        for name, options in ODD.items():
            self.tessera("create", f"odd/{name}", *options.split(), "--quiet")
        for name, values in FILES.items():
            np.save(self.folder / "odd" / name, values)

    def test_odd_shapes(self):
        """Every question about every array, and then about arrays that are emptied while they are open."""
        self.odd_shapes()
        self.tessera("create", "odd/shrinks.zarr", "--shape", "40,50", "--chunks", "7,9", "--dtype", "<f4", "--format", "v3", "--quiet")
        self.server = self.serve(".")
        for emptied in False, True:
            if emptied:
                self.tessera("resize", "odd/shrinks.zarr", "0,50", "--quiet")
            for node in [*ODD_NODES, "odd/shrinks.zarr"]:
                for route in ROUTES:
                    for more in "", "&axes=0,1", "&axes=1,0&at=0,0", "&axes=0,1&at=0,0,0&field=a", "&axis=1", "&at=0", "&rows=5&row=3":
                        place = f"{node}{more}&level=3,2&tile=0,0"
                        answer = self.server.get(f"api/{route}?path={place}")
                        self.assertIn(answer.status, (200, 400, 404, 501), (route, place))
                for path in (f"v2/{node}/.zarray", f"v2/{node}/0.0", f"v2/{node}/0", f"v3/{node}/zarr.json", f"v3/{node}/c/0/0", f"v3/{node}/c"):
                    self.assertIn(self.server.get(path).status, (200, 404, 501), path)
        self.assertEqual(self.server.get("api/preview?path=odd/empty.zarr&axes=0,1&at=0,0").json()["error"], "out_of_bounds")
        line = self.server.get("api/profile?path=odd/huge.zarr&axis=1&width=4096").json()
        self.assertEqual((line["length"], set(line["values"])), (10**9, {0.0}))
        self.assertEqual(self.server.stop(), (0, ""))

    def test_nonsense(self):
        np.savez(self.folder / "p.npz", x=VALUES, y=VALUES[0])
        np.save(self.folder / "s.npy", np.zeros((300, 400), [("a", "<i4"), ("b", [("c", "<f8"), ("d", "S3")], (2,))]))
        self.tessera("create", "g/a.zarr", "--shape", "900,900", "--dtype", "<f4", "--chunks", "200,300", "--format", "v3")
        self.tessera("set", "g/a.zarr", "0:500", "2", "--quiet")
        self.odd_shapes()
        self.server = self.serve(".", "--max-memory", "32M")  # caches are full soon
        memory = []
        for part in range(4):
            self.clients(part, REQUESTS // 4)
            self.assertIsNone(self.server.process.poll(), "it has ended")
            memory.append(self.server.memory())
        self.assertEqual(self.server.get("v2/p.npz/y/0").body, VALUES[0].tobytes())
        if REQUESTS > 100_000:
            print(f"{REQUESTS} requests; MiB resident after each quarter:", *(bytes_ >> 20 for bytes_ in memory))
        self.assertLess(memory[-1], memory[0] + (24 << 20))
        self.assertEqual(self.server.stop(), (0, ""))


if __name__ == "__main__":
    main()
