"""What tests of the server share: a server started as a person would, and requests to it."""

import http.client
import json
import os
import re
import select
import signal
import socket
import subprocess
import time
import urllib.parse

from program import FEWER, PROGRAM, ProgramTest


# Seconds that a client waits: longer than the server lets a request wait, however slow the machine is.
PATIENCE = 400


class Response:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    def json(self):
        return json.loads(self.body)


class Server:
    """`tessera serve` in a process of its own."""

    def __init__(self, folder, *words, env=None):
        self.process = subprocess.Popen([PROGRAM, "serve", *map(str, words)], cwd=folder, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True, env=env)
        line = self.process.stdout.readline()
        if not line:
            raise AssertionError(self.process.stderr.read())
        self.line = line.strip()
        self.url = json.loads(line)["url"] if "--json" in words else self.line
        parts = urllib.parse.urlsplit(self.url)
        self.host, self.port, self.prefix = parts.hostname, parts.port, parts.path

    def stop(self, number=signal.SIGTERM):
        """Ends it; its exit code and what it wrote on stderr."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        try:
            _, errors = self.process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.communicate()
            raise
        return self.process.returncode, errors

    def connect(self):
        return socket.create_connection((self.host, self.port), timeout=PATIENCE)

    def get(self, path, method="GET", raw_path=None, connection=None, **headers):
        """A request; names of headers with '_' in place of '-'. A busy server may close a connection that it has not
        answered on (RFC 9112, 9.5): who asks comes again."""
        for left in reversed(range(4) if connection is None else range(1)):
            try:
                return self.get_once(path, method, raw_path, connection, headers)
            except http.client.RemoteDisconnected:
                if left == 0 or self.process.poll() is not None:
                    raise

    def get_once(self, path, method, raw_path, connection, headers):
        own = connection is None
        connection = connection or http.client.HTTPConnection(self.host, self.port, timeout=PATIENCE)
        try:
            target = raw_path if raw_path is not None else self.prefix + path
            connection.putrequest(method, target, skip_host="Host" in headers, skip_accept_encoding=True)
            for name, value in headers.items():
                connection.putheader(name.replace("_", "-"), value)
            connection.endheaders()
            answer = connection.getresponse()
            return Response(answer.status, answer.headers, answer.read())
        finally:
            if own:
                connection.close()

    def exchange(self, data, wait=5):
        """What comes back for raw bytes, until the server closes or nothing comes for `wait` seconds."""
        with self.connect() as connection:
            connection.sendall(data)
            got = b""
            connection.settimeout(wait)
            try:
                while part := connection.recv(65536):
                    got += part
            except (socket.timeout, ConnectionResetError):
                pass
            return got

    def memory(self, line="VmRSS"):
        """Resident bytes, or another line of what the system says; 0 under a sanitizer, which takes memory of its own."""
        if FEWER > 1:
            return 0
        with open(f"/proc/{self.process.pid}/status") as status:
            return int(re.search(rf"{line}:\s+(\d+) kB", status.read()).group(1)) << 10


class ServeTest(ProgramTest):
    def serve(self, *words, env=None):
        server = Server(self.folder, *words, env=env)
        self.addCleanup(server.stop)
        return server

    def setUp(self):
        super().setUp()
        probe = self.run_program("serve", self.folder / "nothing")
        if "libmicrohttpd" in probe.stderr:
            self.skipTest("built without libmicrohttpd")
