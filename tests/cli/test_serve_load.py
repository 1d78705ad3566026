"""serve: many clients, slow ones, ones that go, and ones that send nonsense.

TESSERA_SERVE_REQUESTS sets how many random requests are sent.
"""
import os
import random
import signal
import socket
import threading
import time

import numpy as np

from program import FEWER, main
from serving import ServeTest

REQUESTS = int(os.environ.get("TESSERA_SERVE_REQUESTS", 1500 // FEWER))
VALUES = np.arange(64 << 20, dtype="u1").reshape(64, 1024, 1024)


class Load(ServeTest):
    def served(self, *words):
        np.save(self.folder / "a.npy", VALUES)
        return self.serve("a.npy", *words)

    def keep(self, connection):
        self.addCleanup(connection.close)
        return connection

    def request(self, server, path):
        return f"GET {server.prefix}{path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()

    def answers(self, server):
        """That a document and a small part of a chunk come while others are slow."""
        self.assertEqual(server.get("v2/.zarray").json()["shape"], [64, 1024, 1024])
        self.assertEqual(server.get("api/info").status, 200)

    def test_idle_and_dripping_connections(self):
        server = self.served()
        idle = [self.keep(server.connect()) for _ in range(200)]
        dripping = [self.keep(server.connect()) for _ in range(200)]
        whole = self.request(server, "v2/.zarray")
        for at in range(0, len(whole) - 1, 7):
            for connection in dripping:
                connection.sendall(whole[at:min(at + 7, len(whole) - 1)])
            self.answers(server)
        for connection in dripping:
            connection.sendall(whole[-1:])
            self.assertTrue(connection.recv(100).startswith(b"HTTP/1.1 200"))
        for connection in idle[:20]:
            connection.sendall(whole)
            self.assertTrue(connection.recv(100).startswith(b"HTTP/1.1 200"))

    def test_clients_that_do_not_read(self):
        server = self.served("--max-memory", "64M")
        for n in range(200):
            connection = self.keep(socket.socket())
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.connect((server.host, server.port))
            connection.sendall(self.request(server, f"v2/{n % 8}.0.0"))
        for _ in range(5):
            self.answers(server)
        # They lose their answers to somebody who reads, and who may be told to come back on a busy machine.
        for _ in range(6):
            answer = server.get("v2/3.0.0")
            if answer.status != 503:
                break
        self.assertEqual(answer.body, VALUES[24:32].tobytes())
        self.assertLess(server.memory(), 160 << 20)

    def test_many_at_once(self):
        server = self.served("--max-memory", "96M")
        wrong = []

        def one(n):
            got = server.get(f"v2/{n % 8}.0.0", Range="bytes=4096-1052671" if n % 2 else "bytes=0-")
            piece = VALUES[n % 8 * 8:n % 8 * 8 + 8].tobytes()
            if got.status != 206 or got.body != (piece[4096:1052672] if n % 2 else piece):
                wrong.append((n, got.status, got.body[:100]))

        threads = [threading.Thread(target=one, args=(n,)) for n in range(200)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    def test_more_connections_than_are_kept(self):
        server = self.served()
        connections = []
        try:
            for _ in range(1200):
                connections.append(server.connect())
        except OSError as error:  # too many open files here
            self.assertGreater(len(connections), 200, error)
            for connection in connections[-20:]:
                connection.close()
        self.answers(server)
        for connection in connections:
            connection.close()
        self.answers(server)

    def test_clients_that_go(self):
        server = self.served()
        for n in range(300):
            with server.connect() as connection:
                connection.sendall(self.request(server, f"v2/{n % 8}.0.0")[:None if n % 3 else -2])
                if n % 3 == 2:
                    connection.recv(1000)
        self.answers(server)
        code, errors = server.stop()
        self.assertEqual((code, errors), (0, ""))

    def test_it_ends_while_it_works(self):
        for number in signal.SIGTERM, signal.SIGINT:
            server = self.served()
            open_connections = [server.connect() for _ in range(40)]
            for n, connection in enumerate(open_connections):
                connection.sendall(self.request(server, f"v2/{n % 8}.0.0"))
            code, errors = server.stop(number)
            self.assertEqual((code, errors), (0, ""))
            for connection in open_connections:
                connection.close()

    def test_a_killed_one_leaves_nothing(self):
        server = self.served()
        self.answers(server)
        before = sorted(os.listdir(self.folder))
        server.stop(signal.SIGKILL)
        self.assertEqual(sorted(os.listdir(self.folder)), before)
        again = self.serve("a.npy", "--port", server.port)
        self.answers(again)

    def test_headers_have_a_limit(self):
        server = self.served()
        start = f"GET {server.prefix}v2/.zarray HTTP/1.1\r\nHost: localhost\r\n".encode()
        for filler in b"X: " + b"a" * 15000 + b"\r\n", b"".join(b"X%d: aaaaaaaaaa\r\n" % n for n in range(300)):
            self.assertIn(b"200 OK", server.exchange(start + filler + b"Connection: close\r\n\r\n"))
        for filler in b"X: " + b"a" * 200_000 + b"\r\n", b"".join(b"X%d: a\r\n" % n for n in range(50_000)):
            try:
                got = server.exchange(start + filler + b"\r\n")
            except ConnectionError:
                continue
            self.assertNotIn(b"200 OK", got)
        long = server.exchange(b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n")
        self.assertNotIn(b"200 OK", long)
        self.answers(server)

    def test_nonsense(self):
        rng = random.Random(int(os.environ.get("TESSERA_SERVE_SEED", "1")))
        np.savez(self.folder / "p.npz", x=VALUES[0], y=VALUES[0, 0])
        self.tessera("create", "g/a.zarr", "--shape", "9,9", "--dtype", "<f4", "--chunks", "2,3", "--format", "v3")
        server = self.serve(".")
        parts = ["v2", "v3", "api", "tree", "info", "p.npz", "x", "y", "g", "a.zarr", ".zarray", "zarr.json", "0.0", "c", "0",
                 "1", "..", "%2e%2e", "%00", "%", "", "é", "\\", ".tessera", "99999999999999999999", "-1", ".zmetadata",
                 "?path=g", "&path=%ff", "#", "a" * 300, "page", ".zattrs", ".zgroup"]
        names = ["Range", "If-Range", "If-None-Match", "Host", "Origin", "Sec-Fetch-Site", "Connection", "Expect",
                 "Content-Length", "Transfer-Encoding", "X", "Accept", "Upgrade", "Cookie", "Authorization"]
        values = ["bytes=0-1", "bytes=-1", "bytes=9-", "bytes=0-0,1-1", "*", '"x"', "localhost", "evil", "close",
                  "keep-alive", "100-continue", "0", "5", "-1", "chunked", "cross-site", "null", "é", "", "a" * 2000,
                  "bytes=" + "9" * 400, "\x00", "\x01\x02", "%n%s", "a,b,,c"]
        methods = ["GET", "HEAD", "OPTIONS", "POST", "get", "", "GET GET", "\x16\x03\x01", "PRI", "G" * 500]
        memory = 0
        sent = 0
        connection = None
        for n in range(REQUESTS):
            front = server.prefix.rstrip("/") if rng.random() < 0.8 else "/t/0"
            path = front + "".join("/" + rng.choice(parts) for _ in range(rng.randrange(7)))
            version = rng.choice(["HTTP/1.1"] * 8 + ["HTTP/1.0", "HTTP/2.0", "HTTP/9", "", "HTTP/1.1 x"])
            headers = ["Host: localhost"] if rng.random() < 0.9 else []
            headers += [f"{rng.choice(names)}: {rng.choice(values)}" for _ in range(rng.randrange(4))]
            end = rng.choice(["\r\n"] * 9 + ["\n", "\r", "\r\n "])
            data = end.join([f"{rng.choice(methods[:1] * 8 + methods)} {path} {version}", *headers, "", ""]).encode()
            if rng.random() < 0.1:
                data = bytearray(data)
                for _ in range(rng.randrange(1, 6)):
                    data[rng.randrange(len(data))] = rng.randrange(256)
            if rng.random() < 0.05:
                data = rng.randbytes(rng.randrange(1, 3000))
            try:
                if connection is None:
                    connection = server.connect()
                    connection.settimeout(0.2)
                    sent = 0
                connection.sendall(data)
                sent += 1
                if rng.random() < 0.5 and connection.recv(65536)[:5] not in (b"HTTP/", b""):
                    pass  # the rest of an earlier answer
            except (OSError, socket.timeout):
                sent = 99
            if connection is not None and sent > rng.randrange(8):
                connection.close()
                connection = None
            if n == REQUESTS // 3:
                memory = server.memory()
        if connection is not None:
            connection.close()
        self.assertIsNone(server.process.poll(), "it has ended")
        self.assertEqual(server.get("v2/p.npz/y/0").body, VALUES[0, 0].tobytes())
        self.assertLess(server.memory(), memory + (24 << 20))
        self.assertEqual(server.stop(), (0, ""))


if __name__ == "__main__":
    main()
