"""serve: many clients, slow ones, and ones that go."""
import os
import select
import signal
import socket
import struct
import threading
import time
import zlib

import numpy as np

from program import main
from serving import ServeTest

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
        self.answers_of(server, 64)

    def answers_of(self, server, length):
        self.assertEqual(server.get("v2/.zarray").json()["shape"], [length, 1024, 1024])
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
        self.assertEqual(server.get("v2/3.0.0").body, VALUES[24:32].tobytes(), "they lose theirs to somebody who reads")
        self.assertLess(server.memory(), 160 << 20)

    def test_a_request_waits_until_there_is_memory(self):
        """Three clients that read slowly hold what answers may take of the memory, for longer than a short patience."""
        server = self.served("--max-memory", "48M")
        self.assertEqual(server.get("v2/3.0.0").status, 200)  # what such a chunk takes is known from here on
        holders = []
        for n in range(3):
            connection = self.keep(socket.socket())
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
            connection.connect((server.host, server.port))
            connection.sendall(self.request(server, f"v2/{n}.0.0"))
            self.assertTrue(connection.recv(100).startswith(b"HTTP/1.1 200"))
            holders.append(connection)
        answers = {}

        def ask(method, n):
            answers[method, n] = server.get(f"v2/{n}.0.0", method)

        asking = [threading.Thread(target=ask, args=args) for args in (("HEAD", 3), ("GET", 3), ("GET", 4))]
        for thread in asking:
            thread.start()
        end = time.monotonic() + 12
        while time.monotonic() < end or asking[0].is_alive():
            for connection in holders:
                connection.recv(1 << (15 if time.monotonic() < end else 10))
            time.sleep(0.1)
        self.assertEqual(answers["HEAD", 3].headers["Content-Length"], str(8 << 20), "what has no body needs no room")
        for connection in holders:
            connection.close()
        for thread in asking:
            thread.join()
        self.assertEqual([(answers["GET", n].status, len(answers["GET", n].body)) for n in (3, 4)], [(200, 8 << 20)] * 2)

    def test_unread_answers_count(self):
        """What the HTTP library keeps of each connection is a part of the budget."""
        np.save(self.folder / "a.npy", VALUES[:4])
        server = self.serve("a.npy", "--max-memory", "32M")
        for n in range(600):
            connection = self.keep(socket.socket())
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.connect((server.host, server.port))
            connection.sendall(self.request(server, ("v2/0.0.0", "api/info", "v2/.zarray")[n % 3]))
        self.answers_of(server, 4)
        self.assertLess(server.memory("RssAnon"), (32 + 16) << 20)

    def test_a_folder_with_a_picture_of_one_long_row(self):
        def chunk(kind, data):
            return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        width = 150 << 20
        (self.folder / "a.png").write_bytes(
            b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, 1, 8, 0, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(bytes(width + 1), 1)) + chunk(b"IEND", b""))
        server = self.serve(".", "--max-memory", "32M")
        for path in "api/info?path=a.png", "v2/a.png/.zarray", "api/info?path=a.png":
            self.assertEqual(server.get(path).status, 503)
        self.assertEqual(server.get("api/tree").status, 200)
        self.assertLess(server.memory("VmHWM"), (32 + 16 + 8) << 20)

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

    def test_the_page_comes_before_what_takes_long(self):
        """More slow questions than there are workers leave one for the files of the page, and one for documents."""
        workers = max(8, os.cpu_count())
        np.save(self.folder / "ones.npy", np.ones(64 << 20, "u1"))
        self.tessera("import", "ones.npy", "z.zarr", "--format", "v2", "--chunks", 64 << 20, "--codec", "bz2:9", "--max-memory", "1G", "--quiet")
        server = self.serve("z.zarr", "--max-memory", "8G")
        slow = [self.keep(server.connect()) for _ in range(2 * workers)]
        for connection in slow:
            connection.sendall(self.request(server, "api/value?at=5"))
        for path in "page/page.css", "", ".zarray":
            self.assertEqual(server.get(("v2/" if path == ".zarray" else "") + path).status, 200)
        answered = select.select(slow, [], [], 0)[0]
        self.assertLess(len(answered), workers, "these were waited for")

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


if __name__ == "__main__":
    main()
