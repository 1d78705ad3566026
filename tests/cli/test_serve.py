"""serve: documents, chunks, ranges and versions, as a client sees them."""
import hashlib
import http.client
import json
import os
import signal
import time

import numpy as np

from program import main
from serving import ServeTest, Server

VALUES = np.arange(40 * 60, dtype="<i4").reshape(40, 60)


class Documents(ServeTest):
    def test_the_url_is_printed_and_a_signal_ends_it(self):
        self.save("a.npy", VALUES)
        for number in signal.SIGINT, signal.SIGTERM:
            server = Server(self.folder, "a.npy")
            self.assertRegex(server.line, r"^http://127\.0\.0\.1:\d+/t/[0-9a-f]{32}/$")
            self.assertEqual(server.get("v2/.zarray").status, 200)
            before = sorted(os.listdir(self.folder))
            self.assertEqual(server.stop(number), (0, ""))
            self.assertEqual(sorted(os.listdir(self.folder)), before)
        server = Server(self.folder, "a.npy", "--json")
        self.addCleanup(server.stop)
        self.assertEqual(json.loads(server.line), {"url": server.url, "urls": [server.url], "port": server.port, "paths": ["a.npy"]})

    def test_a_port_is_taken_once(self):
        self.save("a.npy", VALUES)
        first = self.serve("a.npy")
        self.refused("serve", "a.npy", "--port", first.port, says=[str(first.port), "taken", "--port"])
        self.assertEqual(first.get("v2/.zarray").status, 200)
        first.stop()
        again = self.serve("a.npy", "--port", first.port)
        self.assertEqual(again.port, first.port)

    def test_what_cannot_be_served(self):
        self.refused("serve", "nothing", says="nothing: no such file")
        self.save("a.npy", VALUES)
        (self.folder / "text").write_text("words")
        self.refused("serve", "text", says="text")
        self.tessera("copy", "a.npy", "a.zarr", "--quiet")
        self.tessera("copy", "a.zarr", "a.zip", "--quiet")
        (self.folder / "a.refs.json").write_text(self.tessera("refs", "a.npy"))
        (self.folder / "folder").mkdir()
        for path in "a.zarr", "a.zip", "a.refs.json", "a.npy", "folder", ".":
            self.refused("serve", f"{path}::x", says=[f"{path}::x", f"{path} has none: serve {path}"])
        self.refused("serve", "a.npy", "--port", "70000", says="--port")
        self.refused("serve", "a.npy", "--allow-origin", "https://viewer.example/page", says="--allow-origin")
        self.refused("serve", "a.npy", "--allow-origin", "*", says="--allow-origin")
        self.refused("serve", "a.npy", "--host", "a/b", says="--host")
        self.refused("serve", "a.npy", "--bind", "no.such.address.invalid", says="--bind")

    def test_several_paths_below_their_names(self):
        for folder in "one", "two":
            (self.folder / folder).mkdir()
            np.save(self.folder / folder / "a.npy", VALUES[:3])
        np.savez(self.folder / "pair.npz", x=VALUES, y=VALUES[0])
        server = self.serve("one/a.npy", "two/a.npy", "pair.npz", "pair.npz::y")
        listed = server.get("api/tree").json()
        self.assertEqual([(c["name"], c["kind"]) for c in listed["children"]],
                         [("a.npy", "array file"), ("a.npy-2", "array file"), ("pair.npz", "group"),
                          ("pair.npz-2", "member")])
        self.assertEqual(server.get("v2/a.npy-2/.zarray").json()["shape"], [3, 60])
        self.assertEqual(server.get("v2/pair.npz/x/.zarray").json()["shape"], [40, 60])
        self.assertEqual(server.get("v2/pair.npz-2/.zarray").json()["shape"], [60])
        self.assertEqual(server.get("v2/.zgroup").json(), {"zarr_format": 2})
        self.assertIn("pair.npz/x/.zarray", server.get("v2/.zmetadata").json()["metadata"])

    def test_kinds_of_nodes(self):
        self.save("a.npy", VALUES)
        np.savez(self.folder / "pair.npz", x=VALUES, y=VALUES[0])
        self.tessera("group", "g.zarr", "--attrs", '{"title": "<b>&"}')
        self.tessera("import", "a.npy", "g.zarr/sub/a", "--chunks", "10,20", "--quiet")
        (self.folder / "broken.npy").write_bytes(b"\x93NUMPY\x01\x00\x10\x00{not a header:  ")
        (self.folder / "empty").mkdir()
        server = self.serve(".")
        kinds = {c["name"]: (c["kind"], c["format"]) for c in server.get("api/tree").json()["children"]}
        self.assertEqual(kinds, {"a.npy": ("array file", "npy"), "broken.npy": ("array file", None),
                                 "pair.npz": ("group", "npz"), "g.zarr": ("group", "v3")})
        broken = [c for c in server.get("api/tree").json()["children"] if c["name"] == "broken.npy"][0]
        self.assertIn("broken.npy", broken["error"])
        array = server.get("api/tree?path=g.zarr/sub").json()["children"][0]
        self.assertEqual((array["path"], array["kind"], array["format"], array["dtype"], array["shape"], array["chunks"]),
                         ("g.zarr/sub/a", "array", "v3", "<i4", [40, 60], [10, 20]))
        info = server.get("api/info?path=g.zarr/sub/a&stored=1").json()
        self.assertEqual((info["kind"], info["chunks_stored"], info["fill_value"]), ("array", 12, 0))
        said = self.tessera_json("info", "g.zarr/sub/a")
        del said["address"]  # which leads to the files
        self.assertEqual({name: info[name] for name in said}, {**said, "remarks": info["remarks"]})
        self.assertEqual(server.get("api/info?path=g.zarr").json()["attributes"], {"title": "<b>&"})
        self.assertEqual(server.get("api/info?path=g.zarr/nothing").status, 404)
        self.assertEqual(server.get("v3/zarr.json").json()["consolidated_metadata"]["metadata"]["g.zarr/sub/a"]["shape"],
                         [40, 60])
        self.assertEqual(server.get("v2/broken.npy/.zarray").status, 500)
        self.assertIn("broken.npy", server.get("v2/broken.npy/.zarray").json()["message"])

    def test_what_a_format_cannot_say_leaves_the_others(self):
        self.save("a.npy", VALUES)
        self.tessera("import", "a.npy", "g/good", "--format", "v3", "--quiet")
        self.tessera("create", "g/half", "--shape", "4", "--dtype", "bfloat16", "--format", "v3")
        server = self.serve("g")
        refused = server.get("v2/half/.zarray")
        self.assertEqual(refused.status, 501)
        self.assertIn("bfloat16", refused.json()["message"])
        self.assertEqual(server.get("v2/good/.zarray").status, 200)
        documents = server.get("v2/.zmetadata").json()["metadata"]
        self.assertIn("good/.zarray", documents)
        self.assertNotIn("half/.zarray", documents)
        self.assertIn("v2", server.get("api/info?path=half").json()["why_not_v2"])
        self.assertEqual(server.get("v3/half/zarr.json").json()["data_type"], "bfloat16")


class Chunks(ServeTest):
    def test_stored_bytes_are_passed_on(self):
        self.save("a.npy", VALUES)
        for format, key in ("v2", "1.2"), ("zmeta", "__zdata__/1.2.blosc"), ("v3", "c/1/2"):
            name = f"{format}.zarr"
            self.tessera("import", "a.npy", name, "--format", format, "--chunks", "10,20", "--quiet")
            server = self.serve(name)
            stored = (self.folder / name / key).read_bytes()
            self.assertEqual(server.get("v2/1.2").body, stored)
            self.assertEqual(server.get("v3/c/1/2").body, stored)
            for absent in "v2/9.9", "v2/01.2", "v2/1.2.3", "v3/c/9/9", "v3/1/2", "v2/1/2", "v2/-1.0":
                self.assertEqual(server.get(absent).status, 404, absent)
            server.stop()

    def test_shards_whole_and_their_chunks_alone(self):
        self.save("a.npy", VALUES)
        self.tessera("import", "a.npy", "s.zarr", "--format", "v3", "--chunks", "10,20", "--shard", "20,60",
                     "--codec", "zstd:3", "--quiet")
        server = self.serve("s.zarr")
        shard = (self.folder / "s.zarr" / "c" / "1" / "0").read_bytes()
        self.assertEqual(server.get("v3/c/1/0").body, shard)
        tail = server.get("v3/c/1/0", Range="bytes=-100")
        self.assertEqual((tail.status, tail.body), (206, shard[-100:]))
        self.assertIn(server.get("v2/2.1").body, shard)
        self.assertEqual(server.get("v2/.zarray").json()["compressor"]["id"], "zstd")

    def test_files_in_pieces(self):
        values = np.arange(3 * 1000 * 1000, dtype="<f8").reshape(3, 1000, 1000)
        self.save("a.npy", values)
        np.save(self.folder / "f.npy", np.asfortranarray(values))
        server = self.serve("a.npy", "f.npy")
        zarray = server.get("v2/a.npy/.zarray").json()
        self.assertEqual((zarray["chunks"], zarray["order"], zarray["fill_value"], zarray["compressor"]),
                         ([1, 1000, 1000], "C", None, None))
        self.assertEqual(server.get("v2/a.npy/2.0.0").body, values[2].tobytes())
        zarray = server.get("v2/f.npy/.zarray").json()
        self.assertEqual((zarray["chunks"], zarray["order"]), ([3, 1000, 349], "F"))
        last = np.frombuffer(server.get("v2/f.npy/0.0.2").body, "<f8").reshape((3, 1000, 349), order="F")
        self.assertTrue(np.array_equal(last[..., :302], values[..., 698:]))
        v3 = server.get("v3/f.npy/zarr.json").json()
        self.assertEqual(v3["chunk_grid"]["configuration"]["chunk_shape"], [3, 1000, 349])
        self.assertEqual(server.get("v3/f.npy/c/0/0/2").body, server.get("v2/f.npy/0.0.2").body)

    def test_a_damaged_chunk_is_no_absent_one(self):
        self.save("a.npy", VALUES)
        for codec in "none", "blosc":
            self.tessera("import", "a.npy", "d.zarr", "--format", "v3", "--chunks", "10,20", "--codec", codec,
                         "--overwrite", "--quiet")
            chunks = self.folder / "d.zarr" / "c"
            (chunks / "0" / "0").write_bytes(b"")
            (chunks / "0" / "1").unlink()
            (chunks / "0" / "1").mkdir()
            (chunks / "0" / "2").unlink()
            server = self.serve("d.zarr")
            for key in ("0.0", "c/0/0"), ("0.1", "c/0/1"):
                for url in f"v2/{key[0]}", f"v3/{key[1]}":
                    answer = server.get(url)
                    self.assertEqual(answer.status, 500, url)
                    self.assertIn("c/0/", answer.json()["message"])
            self.assertEqual(server.get("v2/0.2").status, 404)
            self.assertEqual(server.get("v3/c/0/2").status, 404)
            server.stop()
        # Of what is decoded on the way, damage shows in its middle, too.
        self.tessera("import", "a.npy", "e.zarr", "--format", "v3", "--chunks", "10,20", "--codec", "zstd:3",
                     "--shard", "20,20", "--quiet")
        index = self.folder / "e.zarr" / "c" / "0" / "0"
        index.write_bytes(index.read_bytes()[:-1] + b"\0")
        server = self.serve("e.zarr")
        self.assertEqual(server.get("v2/0.0").status, 500)

    def test_versions(self):
        self.save("a.npy", VALUES)
        self.tessera("import", "a.npy", "g.zarr", "--format", "v2", "--chunks", "10,20", "--quiet")
        server = self.serve("g.zarr", "a.npy")
        for url in "v2/g.zarr/0.0", "v3/g.zarr/c/0/0", "v2/a.npy/0.0", "v2/g.zarr/.zarray", "v3/g.zarr/zarr.json", \
                "v2/.zmetadata":
            first = server.get(url)
            tag = first.headers["ETag"]
            self.assertRegex(tag, r'^"[0-9a-z.-]+"$', url)
            for known in tag, f'"x", W/{tag}', "*":
                again = server.get(url, If_None_Match=known)
                self.assertEqual((again.status, again.body, again.headers["ETag"]), (304, b"", tag), url)
            self.assertEqual(server.get(url, If_None_Match='"other"').status, 200)
            self.assertEqual(server.get(url, Range="bytes=0-3", If_Range=tag).status, 206)
            self.assertEqual(server.get(url, Range="bytes=0-3", If_Range='"other"').status, 200)
            self.assertEqual(server.get(url, Range="bytes=0-3", If_Range=f"W/{tag}").status, 200)
        chunk = server.get("v2/g.zarr/0.0")
        other = server.get("v2/g.zarr/0.1").headers["ETag"]
        self.tessera("set", "g.zarr", "0,0", "77", "--quiet")
        changed = server.get("v2/g.zarr/0.0", If_None_Match=chunk.headers["ETag"])
        self.assertEqual(changed.status, 200)
        self.assertNotEqual(changed.body, chunk.body)
        self.assertEqual(server.get("v2/g.zarr/0.1", If_None_Match=other).status, 304)
        self.save("a.npy", VALUES[:7])
        self.assertEqual(server.get("v2/a.npy/.zarray").json()["shape"], [7, 60])
        self.tessera("resize", "g.zarr", "50,60", "--quiet")
        self.assertEqual(server.get("v3/g.zarr/zarr.json").json()["shape"], [50, 60])
        self.tessera("import", "a.npy", "g.zarr", "--overwrite", "--format", "v3", "--quiet")
        self.assertEqual(server.get("v2/g.zarr/.zarray").json()["shape"], [7, 60])
        self.tessera("attrs", "g.zarr", "set", "units", '"m"')
        self.assertEqual(server.get("v2/g.zarr/.zattrs").json(), {"units": "m"})

    def test_a_file_that_is_rewritten_in_place_and_gets_its_old_time_back(self):
        self.save("a.npy", VALUES)
        self.tessera("import", "a.npy", "a.zarr", "--format", "v2", "--codec", "none", "--quiet")
        server = self.serve(".")
        for url, file in {"v2/a.zarr/0.0": "a.zarr/0.0", "v3/a.zarr/c/0/0": "a.zarr/0.0", "v2/a.npy/0.0": "a.npy",
                          "api/tile?path=a.zarr&axes=0,1&level=0,0&tile=0,0": "a.zarr/0.0",
                          "api/tile?path=a.npy&axes=0,1&level=0,0&tile=0,0": "a.npy"}.items():
            before = server.get(url)
            status = os.stat(self.folder / file)
            with open(self.folder / file, "r+b") as opened:
                opened.seek(-VALUES.itemsize, os.SEEK_END)
                last = bytearray(opened.read())
                last[0] ^= 1
                opened.seek(-VALUES.itemsize, os.SEEK_END)
                opened.write(last)
            os.utime(self.folder / file, ns=(status.st_atime_ns, status.st_mtime_ns))
            after = server.get(url, If_None_Match=before.headers["ETag"])
            self.assertEqual((after.status, len(after.body)), (200, len(before.body)), url)
            self.assertNotEqual(after.body, before.body, url)
            self.assertNotEqual(after.headers["ETag"], before.headers["ETag"], url)

    def test_messages_name_what_lies_below_the_root(self):
        self.save("a.npy", VALUES)
        (self.folder / "d").mkdir()
        self.tessera("import", "a.npy", "d/a.zarr", "--format", "v2", "--chunks", "10,20", "--codec", "zlib", "--quiet")
        self.tessera("create", "d/broken.zarr", "--shape", "5", "--dtype", "<i4", "--format", "v2", "--quiet")
        self.tessera("create", "d/text.zarr", "--shape", "5", "--dtype", "string", "--format", "v3", "--quiet")
        (self.folder / "d/broken.zarr/.zarray").write_text("{")
        (self.folder / "d/a.zarr/0.0").write_bytes(b"no zlib")
        (self.folder / "d/a.zarr/0.1").unlink()
        (self.folder / "d/a.zarr/0.1").mkdir()
        (self.folder / "d/bad.npy").write_bytes(b"x" * 100)
        for roots, front in {("d",): "", ("d", "a.npy"): "d/", ("d", "d/a.zarr"): "d/"}.items():
            server = self.serve(*roots)
            texts = []
            for url in ("v2/{}a.zarr/0.0", "v2/{}a.zarr/0.1", "api/rows?path={}a.zarr&axes=0,1", "api/chunks?path={}a.zarr&axes=0,1",
                        "api/info?path={}broken.zarr", "api/info?path={}bad.npy", "api/tree?path={}", "api/tile?path={}text.zarr",
                        "api/value?path={}a.zarr&at=99,99", "api/preview?path={}a.zarr&axes=0,0", "api/info?path={}none",
                        "v2/{}a.zarr/none/.zarray", "v3/{}broken.zarr/zarr.json", "api/info?path={}" + "n" * 300,
                        "api/info?path={}" + "n/" * 3000 + "n", "api/profile?path={}text.zarr", "api/tile?path={}a.zarr&axes=0,1&level=0,0&tile=0,0"):
                answer = server.get(url.format(front))
                texts.append(answer.body.decode())
                self.assertNotIn(str(self.folder), texts[-1], url)
                if "nnn" in url or "n/n" in url:
                    self.assertEqual(answer.status, 404, url[:40])
            self.assertIn(f': "{front if roots[-1] != "d/a.zarr" else ""}a.zarr', texts[2])  # by the innermost root

    def test_ranges(self):
        self.save("a.npy", VALUES)
        server = self.serve("a.npy")
        body = VALUES.tobytes()
        size = len(body)
        self.assertEqual(server.get("v2/0.0").headers["Accept-Ranges"], "bytes")
        for text, part in (("0-0", body[:1]), ("5-9", body[5:10]), ("9590-", body[9590:]), ("-7", body[-7:]),
                           ("0-99999999999999999999999999", body), ("-99999999999999999999999", body),
                           (" 3 - 4 ", body[3:5])):
            got = server.get("v2/0.0", Range="bytes=" + text)
            first = size - len(part) if text.startswith("-") else int(text.split("-")[0])
            self.assertEqual((got.status, got.body), (206, part), text)
            self.assertEqual(got.headers["Content-Range"], f"bytes {first}-{first + len(part) - 1}/{size}")
            self.assertEqual(int(got.headers["Content-Length"]), len(part))
        for text in f"{size}-", f"{size}-{size + 5}", "-0", "18446744073709551615-", "99999999999999999999999-":
            got = server.get("v2/0.0", Range="bytes=" + text)
            self.assertEqual((got.status, got.body, got.headers["Content-Range"]), (416, b"", f"bytes */{size}"), text)
        for text in "bytes=0-1,3-4", "bytes=5-2", "bytes=x-3", "bytes=-", "lines=0-3", "bytes=", "bytes=0-1,", \
                "bytes=" + ",".join("0-1" for _ in range(2000)), "bytes=--1", "bytes=1-2-3":
            got = server.get("v2/0.0", Range=text)
            self.assertEqual((got.status, got.body), (200, body), text[:40])

    def test_head(self):
        self.save("a.npy", VALUES)
        server = self.serve("a.npy")
        for url in "v2/0.0", "v2/.zarray", "v3/zarr.json", "v2/9.9", "api/tree":
            whole = server.get(url)
            head = server.get(url, method="HEAD")
            self.assertEqual((head.status, head.body), (whole.status, b""), url)
            for name in "Content-Length", "Content-Type", "ETag", "Accept-Ranges":
                self.assertEqual(head.headers[name], whole.headers[name], (url, name))
        head = server.get("v2/0.0", method="HEAD", Range="bytes=0-9")
        self.assertEqual((head.status, head.headers["Content-Length"], head.body), (206, "10", b""))

    def test_large_values_are_streamed(self):
        values = np.random.default_rng(1).integers(0, 256, 96 << 20, dtype="u1")
        self.save("big.npy", values)
        self.tessera("import", "big.npy", "big.zarr", "--format", "v3", "--chunks", "1048576", "--shard",
                     str(96 << 20), "--codec", "none", "--quiet")
        server = self.serve("big.zarr", "--max-memory", "16M")
        before = server.memory()
        shard = (self.folder / "big.zarr" / "c" / "0").read_bytes()
        self.assertEqual(hashlib.sha1(server.get("v3/c/0").body).digest(), hashlib.sha1(shard).digest())
        self.assertLess(server.memory() - before, 32 << 20)
        self.assertEqual(server.get("v2/17").body, values[17 << 20:18 << 20].tobytes())

    def test_memory_has_a_limit(self):
        self.tessera("create", "large.zarr", "--shape", "40000000", "--dtype", "u1", "--chunks", "40000000", "--format",
                     "v3", "--codec", "none", "--quiet")
        self.tessera("set", "large.zarr", "0", "1", "--quiet")
        server = self.serve("large.zarr", "--max-memory", "16M")
        answer = server.get("v3/c/0")
        self.assertEqual((answer.status, answer.json()["error"]), (503, "budget"))
        self.assertEqual(answer.headers["Retry-After"], "1")
        self.assertEqual(server.get("v3/zarr.json").status, 200)

    def test_keep_alive(self):
        self.save("a.npy", VALUES)
        server = self.serve("a.npy")
        connection = http.client.HTTPConnection(server.host, server.port)
        for _ in range(50):
            self.assertEqual(server.get("v2/0.0", connection=connection).body, VALUES.tobytes())
            self.assertEqual(server.get("v2/9.9", connection=connection).status, 404)
            self.assertEqual(server.get("v2/0.0", connection=connection, method="HEAD").status, 200)
        connection.close()


if __name__ == "__main__":
    main()
