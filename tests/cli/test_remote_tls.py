"""TLS: whose certificates are believed, and what is said of the others; and nginx, a server by others: HTTP/1.1, and
HTTP/2 over TLS, if it is installed.
"""

import contextlib
import functools
import http.server
import os
import re
import shutil
import socket
import ssl
import subprocess
import threading
import time
import unittest

import numpy as np

import program

NGINX = shutil.which("nginx", path=os.environ.get("PATH", "") + ":/usr/sbin")
CONFIGURATION = """
{user}daemon off; worker_processes 1; pid {folder}/pid; error_log {folder}/error.log;
events {{ worker_connections 1024; }}
http {{
    log_format said '$server_protocol $request_method $uri $status $http_range';
    access_log {folder}/access.log said;
    root {data};
    client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
    server {{ listen 127.0.0.1:{plain}; }}
    server {{ listen 127.0.0.1:{tls} ssl http2; ssl_certificate {folder}/server.pem; ssl_certificate_key {folder}/server.key; }}
}}
"""

AUTHORITY = """
[ca]
default_ca = here
[here]
database = {folder}/index.txt
serial = {folder}/serial
new_certs_dir = {folder}
default_md = sha256
policy = any
[any]
commonName = supplied
"""


class Files(http.server.SimpleHTTPRequestHandler):
    """Without ranges: whole files, which are answers that Tessera takes."""

    def log_message(self, *_):
        pass


class TlsTest(program.ProgramTest):
    def setUp(self):
        super().setUp()
        if shutil.which("openssl") is None:
            self.skipTest("no openssl")
        self.certificate("authority", "/CN=An authority of the test", own=True)
        self.environment = {name: value for name, value in os.environ.items()
                            if name not in ("AWS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE")}
        self.environment["no_proxy"] = "*"
        self.data = self.folder / "data"
        self.data.mkdir()
        np.save(self.data / "a.npy", np.arange(9000, dtype="<i4").reshape(100, 90))
        self.right = self.tessera("digest", "data/a.npy").split()[0]

    def certificate(self, name, subject, names="IP:127.0.0.1", own=False, year=None):
        """name.pem and name.key, signed by the authority, or by itself; for a year or, without one, from now on."""
        key, request, pem = (self.path(f"{name}.{kind}") for kind in ("key", "csr", "pem"))
        quiet = {"check": True, "capture_output": True}
        subprocess.run(["openssl", "req", "-new", "-newkey", "rsa:2048", "-nodes", "-subj", subject, "-keyout", key,
                        "-out", request], **quiet)
        more = self.folder / f"{name}.more"
        more.write_text("basicConstraints=critical,CA:TRUE\n" if own else f"subjectAltName={names}\n")
        if own:
            words = ["x509", "-req", "-signkey", key, "-days", "2"]
        else:
            (self.folder / "index.txt").write_text("")
            (self.folder / "serial").write_text(os.urandom(8).hex() + "\n")
            (self.folder / "ca.conf").write_text(AUTHORITY.format(folder=self.folder))
            words = ["ca", "-batch", "-notext", "-config", self.path("ca.conf"), "-cert", self.path("authority.pem"),
                     "-keyfile", self.path("authority.key")]
            words += ["-startdate", f"{year}0101000000Z", "-enddate", f"{year}1231000000Z"] if year else ["-days", "2"]
        subprocess.run(["openssl", *words, "-in", request, "-out", pem, "-extfile", more], **quiet)

    @contextlib.contextmanager
    def serving(self, name):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.path(f"{name}.pem"), self.path(f"{name}.key"))
        handler = functools.partial(Files, directory=str(self.data))
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        server.handle_error = lambda *_: None  # of refused handshakes
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"https://127.0.0.1:{server.server_address[1]}/a.npy"
        finally:
            server.shutdown()
            server.server_close()
            thread.join()

    def run_program(self, *words, env=None, **options):
        return super().run_program(*words, env={**getattr(self, "environment", os.environ), **(env or {})}, **options)

    def test_authorities(self):
        self.certificate("server", "/CN=localhost")
        with self.serving("server") as url:
            for variable in "AWS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE":
                got = self.tessera("digest", url, env={variable: self.path("authority.pem")})
                self.assertEqual(got.split()[0], self.right)
            for variable in "AWS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE":
                missing = self.path("no-such.pem")
                self.refused("digest", url, env={variable: missing}, says=[url, missing])

    def test_certificates_that_are_wrong(self):
        trusted = {"SSL_CERT_FILE": self.path("authority.pem")}
        self.certificate("stranger", "/CN=localhost", own=True)
        self.certificate("other", "/CN=localhost", names="DNS:elsewhere.example,IP:127.0.0.2")
        self.certificate("old", "/CN=localhost", year="2020")
        for name in "stranger", "other", "old":
            with self.subTest(name), self.serving(name) as url:
                self.refused("digest", url, env=trusted, says=[url, "certificate"])
                self.refused("copy", url, "copy.zarr", env=trusted, says=[url, "certificate"])
                self.assertFalse((self.folder / "copy.zarr").exists())

    @unittest.skipIf(NGINX is None, "nginx is not installed")
    def test_nginx(self):
        self.certificate("server", "/CN=localhost")
        wanted = {}
        for document in sorted(program.GOLDEN.rglob("[.zm_]*"))[::12]:
            if document.name in (".zarray", "__zmeta__", "meta") or (
                    document.name == "zarr.json" and '"array"' in document.read_text()):
                result = self.run_program("digest", document.parent)
                if result.returncode == 0:
                    wanted[str(document.parent.relative_to(program.GOLDEN))] = result.stdout.split()[0]
        self.assertGreater(len(wanted), 20)
        os.symlink(program.GOLDEN, self.data / "golden")
        large = np.random.default_rng(1).integers(0, 255, (1024, 1024), "u1")
        self.save("large.npy", large)
        self.tessera("import", "large.npy", "data/large.zarr", "--format", "v3", "--chunks", "64,64", "--shard", "512,512",
                     "--quiet")
        self.tessera("import", "large.npy", "data/many.zarr", "--format", "v2", "--chunks", "32,32", "--quiet")
        environment = {"SSL_CERT_FILE": self.path("authority.pem")}
        with self.nginx() as (plain, tls):
            for place, version in (plain, "HTTP/1.1"), (tls, "HTTP/2.0"):
                for name, digest in wanted.items():
                    self.assertEqual(self.tessera("digest", f"{place}/golden/{name}", env=environment).split()[0], digest, name)
                for name in "large.zarr", "many.zarr":
                    self.tessera("diff", f"{place}/{name}", "large.npy", env=environment)
                    got = self.tessera("get", f"{place}/{name}", "100,200:203", env=environment)
                    self.assertEqual([int(value) for value in re.findall(r"\d+", got)], large[100, 200:203].tolist())
                self.assertEqual(self.tessera("digest", f"{place}/a.npy", env=environment).split()[0], self.right)
                # An entry of the cache is validated: nothing comes twice.
                cache = self.path(f"cache{version[5]}")
                for _ in range(2):
                    (self.folder / "access.log").write_text("")
                    self.tessera("digest", f"{place}/many.zarr", "--cache", cache, env=environment)
                lines = (self.folder / "access.log").read_text().splitlines()
                self.assertEqual({line.split()[0] for line in lines}, {version})
                chunks = [line for line in lines if re.search(r"/\d+\.\d+$", line.split()[2])]
                self.assertEqual([line for line in chunks if line.split()[3] != "304"], [])
                self.assertEqual(len(chunks), 1024)

    @contextlib.contextmanager
    def nginx(self):
        sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
        ports = [one.getsockname()[1] for one in sockets]
        for one in sockets:
            one.close()
        # Otherwise its workers are another user's when root starts it, who may not read what the test does.
        user = "user root; " if os.geteuid() == 0 else ""
        (self.folder / "nginx.conf").write_text(
            CONFIGURATION.format(user=user, folder=self.folder, data=self.data, plain=ports[0], tls=ports[1]))
        with open(self.folder / "said", "wb") as said:
            server = subprocess.Popen([NGINX, "-c", self.path("nginx.conf"), "-p", str(self.folder), "-e", self.path("error.log")],
                                      stdout=said, stderr=said)
        try:
            end = time.monotonic() + 30
            while time.monotonic() < end and server.poll() is None:
                with contextlib.suppress(OSError):
                    socket.create_connection(("127.0.0.1", ports[1])).close()
                    break
                time.sleep(0.05)
            self.assertIsNone(server.poll(), (self.folder / "said").read_text())
            yield f"http://127.0.0.1:{ports[0]}", f"https://127.0.0.1:{ports[1]}"
        finally:
            server.terminate()
            server.wait()


if __name__ == "__main__":
    program.main()
