"""serve: who may ask, and for what."""
import json
import os
import socket
import urllib.parse

import numpy as np

from program import main
from serving import ServeTest

VALUES = np.arange(12, dtype="<i4").reshape(3, 4)


class Access(ServeTest):
    def setUp(self):
        super().setUp()
        self.save("a.npy", VALUES)

    def test_the_token(self):
        server = self.serve("a.npy")
        token = server.prefix.split("/")[2]
        self.assertEqual(server.get("v2/0.0").body, VALUES.tobytes())
        refused = {server.get("", raw_path=path).body for path in (
            "/v2/0.0", "/t/v2/0.0", f"/t/{token[:-1]}/v2/0.0", f"/t/{token}0/v2/0.0",
            f"/t/{token[:-1]}{'0' if token[-1] != '0' else '1'}/v2/0.0", f"/t/{token.upper()}x/", f"/{token}/v2/0.0",
            f"/t/{token}0", "/t", "/t/", "/favicon.ico")}
        self.assertEqual(len(refused), 1, refused)  # nothing is told by what is refused
        # The address without its last slash leads to the page; the root says only what answers.
        answer = server.get("", raw_path=f"/t/{token}")
        self.assertEqual((answer.status, answer.headers["Location"]), (307, f"{token}/"))
        told = {(answer.status, answer.body) for path in ("/", f"/?t={token}") for answer in [server.get("", raw_path=path)]}
        self.assertEqual(len(told), 1)
        (status, text), = told
        self.assertEqual((status, text[:15]), (200, b"Tessera serves "))
        self.assertNotIn(b"a.npy", text)
        other = self.serve("a.npy")
        self.assertNotEqual(other.prefix, server.prefix)
        self.assertEqual(other.get("", raw_path=server.prefix + "v2/0.0").status, 404)

    def test_without_a_token(self):
        server = self.serve("a.npy", "--no-token")
        self.assertEqual(server.prefix, "/")
        self.assertEqual(server.get("v2/0.0").body, VALUES.tobytes())
        self.assertIn("every user of this machine", server.stop()[1])

    def test_hosts(self):
        server = self.serve("a.npy")
        for host in ("localhost", "LocalHost", "127.0.0.1", "[::1]", f"localhost:{server.port}", "127.0.0.1:9000"):
            self.assertEqual(server.get("v2/0.0", Host=host).status, 200, host)
        for host in ("evil.example", "evil.example:80", "localhost.evil.example", "127.0.0.1.evil.example", "",
                     "localhost@evil.example", "127.0.0.2", "2130706433", "[::1].evil.example", "localhost:80:80",
                     "localhost:port", "localhost, evil.example", "localhost/", "0.0.0.0", "::1", "evil.example#localhost"):
            self.assertEqual(server.get("v2/0.0", Host=host).status, 403, host)
        target = (server.prefix + "v2/0.0").encode()
        for request in (b"GET %s HTTP/1.1\r\nConnection: close\r\n\r\n" % target,
                        b"GET %s HTTP/1.0\r\n\r\n" % target,
                        b"GET %s HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\nConnection: close\r\n\r\n" % target,
                        b"GET http://localhost%s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n" % target):
            self.assertIn(server.exchange(request)[:12], (b"HTTP/1.1 400", b"HTTP/1.1 403", b"HTTP/1.0 403"), request)
        named = self.serve("a.npy", "--host", "login.cluster.example", "--host", "other.example")
        self.assertEqual(named.get("v2/0.0", Host="login.cluster.example:8000").status, 200)
        self.assertEqual(named.get("v2/0.0", Host="other.example").status, 200)
        self.assertEqual(named.get("v2/0.0", Host="cluster.example").status, 403)

    def test_addresses(self):
        server = self.serve("a.npy")
        with open("/proc/net/tcp") as listening:
            local = {line.split()[1] for line in listening if line.split()[3] == "0A"}
        self.assertIn(f"0100007F:{server.port:04X}", local)
        self.assertNotIn(f"00000000:{server.port:04X}", local)
        if os.path.exists("/proc/net/if_inet6"):
            with socket.socket(socket.AF_INET6) as probe:
                try:
                    probe.bind(("::1", 0))
                except OSError:
                    return
            six = self.serve("a.npy", "--bind", "::1")
            self.assertTrue(six.line.startswith("http://[::1]:"))
            self.assertEqual(six.get("v2/0.0").status, 200)

    def test_all_addresses(self):
        """URLs that work, the machine's name, and how to have another one answered."""
        server = self.serve("a.npy", "--bind", "0.0.0.0", "--json")
        urls = json.loads(server.line)["urls"]
        self.assertEqual(urls[0], server.url)
        name = socket.gethostname()
        self.assertIn(f"//{name}:{server.port}/", " ".join(urls))
        for url in urls:
            host = urllib.parse.urlsplit(url).netloc
            self.assertEqual(server.get("v2/0.0", Host=host).body, VALUES.tobytes(), url)
        self.assertEqual(server.get("v2/0.0", Host="127.0.0.1").status, 200)
        other = server.get("v2/0.0", Host="other.example")
        self.assertEqual(other.status, 403)
        self.assertIn("--host", other.json()["message"])
        self.assertIn("--host", server.stop()[1])
        named = self.serve("a.npy", "--bind", "0.0.0.0", "--host", "other.example", "--json")
        self.assertEqual(json.loads(named.line)["url"], f"http://other.example:{named.port}{named.prefix}")
        named.host = "127.0.0.1"
        self.assertEqual(named.get("v2/0.0", Host="other.example").status, 200)

    def test_what_the_http_library_would_refuse(self):
        """Each is answered once, in JSON, with the headers of every answer."""
        server = self.serve("a.npy")
        target = server.prefix + "v2/0.0"
        many = "&".join(f"p{n}=1" for n in range(501))
        for status, line, headers in (
                (400, target, []), (400, target, ["Host: localhost", "Content-Length: -1"]), (400, target, ["Host: localhost", "Content-Length: x"]),
                (400, target, ["Host: localhost", "Content-Length:"]), (413, target, ["Host: localhost", "Content-Length: 99999999999999999999999"]),
                (400, target, ["Host: localhost", "Transfer-Encoding : chunked"]), (400, target, ["Host: localhost", "A B: c"]),
                (400, target + " x", ["Host: localhost"]), (414, f"{target}?{many}", ["Host: localhost"]),
                (414, target + "?" + "&" * 12000, ["Host: localhost"]), (404, server.prefix + "v2/" + "n" * 300 + "/.zarray", ["Host: localhost"])):
            got = server.exchange("\r\n".join([f"GET {line} HTTP/1.1", *headers, "Connection: close", "", ""]).encode())
            if got.startswith(b"HTTP/1.1 301 ") and " " in line:  # libmicrohttpd 1.0 shows the way to a target without blanks
                continue
            self.assertTrue(got.startswith(b"HTTP/1.1 %d " % status), (headers, got[:300]))
            self.assertEqual(got.count(b"HTTP/1.1"), 1, got)
            head, body = got.split(b"\r\n\r\n", 1)
            if body.startswith(b"<html>"):  # libmicrohttpd 1.0 refuses a blank in a name by itself
                self.assertIn(headers[-1], ("Transfer-Encoding : chunked", "A B: c"))
                continue
            self.assertIn("message", json.loads(body))
            for header in b"Content-Type: application/json", b"X-Content-Type-Options: nosniff", b"Content-Security-Policy: ":
                self.assertIn(header, head)
        # What follows a refused body is no request.
        request = f"GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n"
        for headers in "Content-Length: -1", f"Content-Length: {len(request)}", "Transfer-Encoding : chunked", "Transfer-Encoding: chunked":
            got = server.exchange(f"GET {target} HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n\r\n{request}".encode())
            self.assertEqual(got.count(b"HTTP/1.1"), 1, (headers, got))
        self.assertEqual(server.get(f"v2/0.0?{many[:-7]}").status, 200)

    def test_pages_of_other_sites(self):
        server = self.serve("a.npy")
        ours = f"http://127.0.0.1:{server.port}"
        self.assertEqual(server.get("v2/0.0", Origin=ours, Sec_Fetch_Site="same-origin").status, 200)
        self.assertEqual(server.get("v2/0.0", Sec_Fetch_Site="none").status, 200)
        # A link in another page, or the file that --open makes, may be followed by who knows the token; a frame is none.
        followed = {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "navigate", "Sec_Fetch_Dest": "document"}
        self.assertEqual(server.get("v2/0.0", **followed).status, 200)
        self.assertEqual(server.get("v2/0.0", **{**followed, "Sec_Fetch_Dest": "iframe"}).status, 403)
        self.assertEqual(self.serve("a.npy", "--no-token").get("v2/0.0", **followed).status, 403)
        for headers in ({"Origin": "https://evil.example"}, {"Origin": "null"}, {"Origin": "http://localhost:1"},
                        {"Origin": ours.replace("http:", "https:")}, {"Sec_Fetch_Site": "cross-site"},
                        {"Sec_Fetch_Site": "same-site"}, {"Origin": ours + ".evil.example"},
                        {"Origin": f"{ours}, https://evil.example"}, {"Origin": ours, "Sec_Fetch_Site": "cross-site"}):
            refused = server.get("v2/0.0", **headers)
            self.assertEqual(refused.status, 403, headers)
            self.assertIsNone(refused.headers["Access-Control-Allow-Origin"])
        preflight = server.get("v2/0.0", method="OPTIONS", Origin="https://evil.example",
                               Access_Control_Request_Method="GET", Access_Control_Request_Headers="range")
        self.assertEqual(preflight.status, 403)
        self.assertFalse([name for name in preflight.headers if name.startswith("Access-Control")])

    def test_an_origin_that_may(self):
        viewer = "https://viewer.example"
        server = self.serve("a.npy", "--allow-origin", viewer, "--allow-origin", "http://localhost:3000")
        got = server.get("v2/0.0", Origin=viewer, Sec_Fetch_Site="cross-site", Range="bytes=0-3")
        self.assertEqual((got.status, got.headers["Access-Control-Allow-Origin"], got.headers["Vary"]),
                         (206, viewer, "Origin"))
        exposed = {name.strip() for name in got.headers["Access-Control-Expose-Headers"].split(",")}
        self.assertLessEqual({"ETag", "Content-Range", "Accept-Ranges", "Content-Length"}, exposed)
        preflight = server.get("v2/0.0", method="OPTIONS", Origin=viewer, Access_Control_Request_Method="GET",
                               Access_Control_Request_Headers="range", Access_Control_Request_Private_Network="true")
        self.assertEqual((preflight.status, preflight.body), (204, b""))
        self.assertEqual(preflight.headers["Access-Control-Allow-Origin"], viewer)
        self.assertIn("Range", preflight.headers["Access-Control-Allow-Headers"])
        self.assertIn("GET", preflight.headers["Access-Control-Allow-Methods"])
        self.assertEqual(preflight.headers["Access-Control-Allow-Private-Network"], "true")
        # Errors can be read, too: a viewer shows them, and 404 is how it knows an absent chunk.
        self.assertEqual(server.get("v2/9.9", Origin=viewer).headers["Access-Control-Allow-Origin"], viewer)
        for other in "https://viewer.example.evil.example", "https://viewer.example:8443", "http://viewer.example", \
                "https://VIEWER.example":
            refused = server.get("v2/0.0", Origin=other)
            self.assertEqual((refused.status, refused.headers["Access-Control-Allow-Origin"], refused.headers["Vary"]),
                             (403, None, "Origin"), other)
        self.assertEqual(server.get("v2/0.0").headers["Vary"], "Origin")

    def test_headers_of_every_answer(self):
        server = self.serve("a.npy")
        for path in "v2/0.0", "v2/.zarray", "nothing", "api/tree":
            for headers in {}, {"Host": "evil.example"}, {"Range": "bytes=99999-"}:
                got = server.get(path, **headers)
                self.assertEqual(got.headers["X-Content-Type-Options"], "nosniff")
                self.assertEqual(got.headers["Referrer-Policy"], "no-referrer")
                policy = got.headers["Content-Security-Policy"]
                self.assertIn("default-src 'none'", policy)
                self.assertNotIn("unsafe", policy)
                self.assertIsNone(got.headers["Access-Control-Allow-Origin"])

    def test_methods_and_bodies(self):
        server = self.serve("a.npy")
        for method in "POST", "PUT", "DELETE", "PATCH", "TRACE", "CONNECT", "BREW":
            got = server.get("v2/0.0", method=method)
            self.assertEqual((got.status, got.headers["Allow"]), (405, "GET, HEAD, OPTIONS"), method)
        self.assertEqual(server.get("v2/0.0", method="OPTIONS").status, 204)
        target = (server.prefix + "v2/0.0").encode()
        for header, body in ((b"Content-Length: 5", b"12345"), (b"Transfer-Encoding: chunked", b"5\r\n12345\r\n0\r\n\r\n"),
                             (b"Content-Length: 99999999999", b"1")):
            got = server.exchange(b"GET %s HTTP/1.1\r\nHost: localhost\r\n%s\r\n\r\n%s" % (target, header, body))
            self.assertEqual(got[:12], b"HTTP/1.1 413", header)
            self.assertEqual(got.count(b"HTTP/1.1"), 1)  # what followed is no request


class Paths(ServeTest):
    def test_paths_that_lead_elsewhere(self):
        (self.folder / "inside").mkdir()
        np.save(self.folder / "secret.npy", VALUES)
        np.save(self.folder / "inside" / "a.npy", VALUES)
        self.tessera("import", "inside/a.npy", "inside/a.zarr", "--format", "v3", "--quiet")
        (self.folder / "inside" / ".tessera").mkdir()
        np.save(self.folder / "inside" / ".tessera" / "own.npy", VALUES)
        np.save(self.folder / "inside" / "a.zarr" / "hidden.npy", VALUES)
        (self.folder / "inside" / "notes.txt").write_text("private")
        server = self.serve("inside")
        self.assertEqual(server.get("v2/a.npy/.zarray").status, 200)
        for path in ("../secret.npy", "%2e%2e/secret.npy", "..%2fsecret.npy", "%2e%2e%2fsecret.npy", "a.zarr/../../secret.npy",
                     "..%5csecret.npy", "..\\secret.npy", "%252e%252e/secret.npy", "./a.npy", "%2e/a.npy", "//a.npy",
                     "a.npy%00", "%00", "a.npy/%00/", ".tessera/own.npy", "%2etessera/own.npy", "a.zarr/hidden.npy",
                     "notes.txt", "a.zarr/zarr.json/x", "http://localhost/a.npy", "file:///etc/passwd", "%", "%zz", "%f",
                     "a.npy%2f..%2f..%2fsecret.npy", self.path("secret.npy"), "~/a.npy", "a.zarr/c"):
            for front in "v2/", "v3/":
                for end in "/.zarray", "/zarr.json", "/.zattrs", "/.zgroup", "/0.0", "/c/0/0", "":
                    got = server.get(front + path + end)
                    self.assertIn(got.status, (400, 404), front + path + end)
            for api in "api/tree?path=", "api/info?path=":
                self.assertIn(server.get(api + path).status, (400, 404) if path != "%" else (400,), api + path)
        # The same with a '/' in front of everything, and as an absolute URL.
        target = (server.prefix + "v2/a.npy/.zarray").encode()
        for line in b"GET /" + target, b"GET http://localhost" + target, b"GET *", b"GET " + target[1:]:
            got = server.exchange(line + b" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            self.assertIn(got[9:12], (b"400", b"404"), line)

    def test_links_that_lead_out(self):
        inside, outside = self.folder / "inside", self.folder / "outside"
        inside.mkdir()
        outside.mkdir()
        np.save(outside / "a.npy", VALUES)
        np.savez(outside / "b.npz", x=VALUES)
        self.tessera("import", "outside/a.npy", "outside/c.zarr", "--format", "v3", "--chunks", "1,4", "--codec", "none",
                     "--quiet")
        self.tessera("import", "outside/a.npy", "inside/d.zarr", "--format", "v3", "--chunks", "1,4", "--codec", "none",
                     "--quiet")
        for name in "a.npy", "b.npz", "c.zarr":
            (inside / name).symlink_to(outside / name)
        (inside / "within.npy").symlink_to("d.npy")
        np.save(inside / "d.npy", VALUES)
        (inside / "all").symlink_to(outside)
        chunk = inside / "d.zarr" / "c" / "1" / "0"
        chunk.unlink()
        chunk.symlink_to(outside / "c.zarr" / "c" / "1" / "0")
        server = self.serve("inside")
        for path in "a.npy", "b.npz", "b.npz/x", "c.zarr", "all", "all/a.npy", "all/c.zarr":
            for document in "v2/{}/.zarray", "v2/{}/.zgroup", "v3/{}/zarr.json", "v3/{}/c/0/0", "api/info?path={}":
                self.assertNotEqual(server.get(document.format(path)).status, 200, document.format(path))
        self.assertEqual(server.get("v2/within.npy/0.0").body, VALUES.tobytes())
        self.assertEqual(server.get("v2/d.zarr/0.0").body, VALUES[0].tobytes())
        for key in "v2/d.zarr/1.0", "v3/d.zarr/c/1/0":
            got = server.get(key)
            self.assertEqual(got.status, 501, key)  # not absent, which would be the fill
            self.assertIn("c/1/0 leads out of d.zarr by a symbolic link", got.json()["message"])
        self.assertEqual([c["name"] for c in server.get("api/tree").json()["children"]], ["d.npy", "d.zarr", "within.npy"])
        followed = self.serve("inside", "--follow-links")
        self.assertEqual(followed.get("v2/a.npy/0.0").body, VALUES.tobytes())
        self.assertEqual(followed.get("v2/d.zarr/1.0").body, VALUES[1].tobytes())
        self.assertEqual(followed.get("v3/c.zarr/c/1/0").body, VALUES[1].tobytes())
        # A root that is a link itself was named by the user.
        self.assertEqual(self.serve("inside/a.npy").get("v2/0.0").body, VALUES.tobytes())

    def test_references_lead_only_to_what_is_served(self):
        """References that somebody put into the folder: to notes, hidden files and the server's own, and to arrays."""
        inside = self.folder / "inside"
        self.save("a.npy", VALUES)
        self.tessera("import", "a.npy", "inside/a.zarr", "--format", "v3", "--chunks", "3,4", "--codec", "none", "--quiet")
        np.save(inside / "a.npy", VALUES)
        raw = VALUES.tobytes()
        secrets = [".hidden/key", "notes.txt", "log.csv", "backup.zip", "looks.npy", "a.zarr/notes", "a.zarr/notes.npy",
                   "a.zarr/zarr.json", "a.zarr/.tessera/9", "sub/9"]
        for name in secrets:
            (inside / name).parent.mkdir(exist_ok=True)
            if not (inside / name).exists():
                (inside / name).write_bytes(b"SECRET" * 20)
        chunks = {"own": ["a.zarr/c/0/0"], "file": ["a.npy", os.path.getsize(inside / "a.npy") - len(raw), len(raw)]}
        for number, name in enumerate(secrets):
            chunks[f"x{number}"] = [name, 0, len(raw)]
        array = json.dumps({"zarr_format": 2, "shape": [3, 4], "chunks": [3, 4], "dtype": VALUES.dtype.str, "order": "C",
                            "compressor": None, "filters": None, "fill_value": 0})
        refs = {".zgroup": json.dumps({"zarr_format": 2})}
        for name, place in chunks.items():
            refs |= {f"{name}/.zarray": array, f"{name}/0.0": place}
        (inside / "s.refs.json").write_text(json.dumps({"version": 1, "refs": refs}))
        self.assertEqual(self.serve("inside").get("v2/s.refs.json/own/0.0").status, 501)
        self.refused("serve", "inside/s.refs.json", says='".hidden/key" is hidden')
        del refs["x0/.zarray"], refs["x0/0.0"], refs["x8/.zarray"], refs["x8/0.0"]
        (inside / "s.refs.json").write_text(json.dumps({"version": 1, "refs": refs}))
        for path, below in (".", "inside/s.refs.json/"), ("inside", "s.refs.json/"), ("inside/s.refs.json", ""):
            server = self.serve(path)
            for name in "own", "file":
                self.assertEqual(server.get(f"v2/{below}{name}/0.0").body, raw, name)
            for number in range(1, len(secrets)):
                got = server.get(f"v2/{below}x{number}/0.0")
                self.assertEqual(got.status, 404 if number == 8 else 501, secrets[number])
                self.assertNotIn(b"SECRET", got.body)
        server = self.serve("inside", "--allow-outside")
        self.assertEqual(server.get("v2/s.refs.json/x1/0.0").body, (b"SECRET" * 20)[:len(raw)])

    def test_names_with_odd_characters(self):
        names = ["a b.npy", "ü.npy", "100%.npy", "a+b&c=d.npy", "q?x#y.npy", "<i>.npy", "%41.npy"]
        for name in names:
            np.save(self.folder / name, VALUES)
        server = self.serve(".")
        self.assertEqual([c["name"] for c in server.get("api/tree").json()["children"]], sorted(names))
        from urllib.parse import quote, urlencode

        for name in names:
            self.assertEqual(server.get(f"v2/{quote(name)}/0.0").body, VALUES.tobytes(), name)
            self.assertEqual(server.get("api/info?" + urlencode({"path": name})).json()["shape"], [3, 4], name)


if __name__ == "__main__":
    main()
