#!/usr/bin/python3
"""An array of very many chunks in S3: how many requests, how much memory and how long commands take.

    many_objects.py build/release/tools/tessera [--count 1000000] [--shape long|square|cube] [--delay 0.03]

The server is the double of tests/cli, which makes up the chunks: all hold the same bytes, and only those that are written
are kept. `info`, `verify` and `sync`, within --max-memory 64M, must take as many requests as there are pages of listings,
and few more, and no more memory than that budget and the 16 MiB that the program takes in addition. Exit code 1 if not.
"""
import argparse
import bisect
import collections
import email.utils
import hashlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests" / "cli"))
import remote

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("program")
parser.add_argument("--count", type=int, default=1_000_000)
parser.add_argument("--shape", choices=["long", "square", "cube"], default="long",
                    help="of the grid of chunks: in one dimension of two, in both, or in three")
parser.add_argument("--format", choices=["v3", "v2"], default="v3")
parser.add_argument("--delay", type=float, default=0.0, help="seconds before each answer")
parser.add_argument("--verify", action="store_true", help="also read every chunk")
parser.add_argument("--copy", action="store_true", help="also copy every chunk")
options = parser.parse_args()


def grid():
    if options.shape == "long":
        return [options.count, 1]
    rank = 2 if options.shape == "square" else 3
    return [round(options.count ** (1 / rank))] * rank


class MadeUp:
    """Answers for the chunks of arrays below `names`: a key is there if it is that of a chunk."""

    def __init__(self, double, chunk, names):
        self.double, self.chunk, self.values, self.lock = double, chunk, {}, threading.Lock()
        separator = "/" if options.format == "v3" else "."
        below = []
        indices = [[]]
        for length in grid():
            indices = [index + [str(i)] for index in indices for i in range(length)]
        for index in indices:
            below.append(("c/" if options.format == "v3" else "") + separator.join(index))
        below.sort()
        self.count = len(below)
        self.keys = {name: below for name in names}
        self.set = set(below)

    def value(self, name, key):
        return self.values.get((name, key), self.chunk)

    def answer(self, request):
        path, _, query = request.path.partition("?")
        query = dict(urllib.parse.parse_qsl(query))
        if "list-type" in query:
            return self.list(request, query)
        name, _, key = urllib.parse.unquote(path).removeprefix("/bucket/").partition("/")
        if name not in self.keys or key not in self.set:
            return False
        if name == "new" and request.command != "PUT" and (name, key) not in self.values:
            return request.error(404, "NoSuchKey")
        if request.command == "PUT":
            with self.lock:
                self.values[name, key] = request.body
            return request.send(200, b"", {"ETag": '"' + hashlib.md5(request.body).hexdigest() + '"'})
        made = {"Last-Modified": email.utils.formatdate(0, usegmt=True)}
        return request.value(self.value(name, key), self.double.faults, False, made)

    def list(self, request, query):
        name, _, below = query["prefix"].partition("/")
        if name not in self.keys or ("delimiter" in query and not below.startswith("c/")):
            return False
        keys, prefix = self.keys[name], name + "/" + below
        if name == "new":
            with self.lock:
                keys = sorted(key for each, key in self.values if each == name)
        begin = max(bisect.bisect_left(keys, below), bisect.bisect_right(
            keys, query.get("continuation-token", query.get("start-after", "")).removeprefix(name + "/")))
        page, more, text = [], False, ["<ListBucketResult>"]
        last = None
        while begin < len(keys) and keys[begin].startswith(below):
            key = keys[begin]
            if len(page) == 1000:
                more = True
                break
            folder = key[len(below):].partition("/")[0] if "delimiter" in query and "/" in key[len(below):] else None
            if folder is not None:
                page.append(below + folder + "/")
                text.append(f"<CommonPrefixes><Prefix>{prefix}{folder}/</Prefix></CommonPrefixes>")
                begin = bisect.bisect_left(keys, below + folder + "0")
                last = keys[begin - 1]
                continue
            value = self.value(name, key)
            text.append(f"<Contents><Key>{name}/{key}</Key><ETag>&quot;{hashlib.md5(value).hexdigest()}&quot;</ETag>"
                        f"<Size>{len(value)}</Size></Contents>")
            page.append(key)
            last = key
            begin += 1
        if more:
            text.append(f"<IsTruncated>true</IsTruncated><NextContinuationToken>{name}/{last}</NextContinuationToken>")
        request.send(200, ("".join(text) + "</ListBucketResult>").encode(), {"Content-Type": "application/xml"})


def main():
    failed = []
    with tempfile.TemporaryDirectory() as folder:
        bucket = pathlib.Path(folder) / "bucket"
        bucket.mkdir()
        shape = ",".join(map(str, grid()))
        ones = ",".join("1" for _ in grid())
        for name in "a", "b":
            subprocess.run([options.program, "create", bucket / name, "--shape", shape, "--dtype", "<i4", "--chunks", ones,
                            "--format", options.format], check=True, stdout=subprocess.DEVNULL)
        subprocess.run([options.program, "set", bucket / "a", ",".join("0" for _ in grid()), "7"], check=True,
                       stdout=subprocess.DEVNULL)
        first = "c/" + "/".join("0" for _ in grid()) if options.format == "v3" else ".".join("0" for _ in grid())
        chunk = (bucket / "a" / first).read_bytes()
        with remote.serving(bucket) as double:
            double.page = 1000
            made_up = MadeUp(double, chunk, ["a", "b", "new"])
            double.faults.answer = made_up.answer
            double.faults.delay = options.delay
            pages = made_up.count / 1000

            def run(most, *words):
                double.reset()
                begun = time.monotonic()
                done = subprocess.Popen([options.program, *words, "--max-memory", "64M"], stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, env={**os.environ, **double.environment}, text=True)
                peaks = [0]
                watch = threading.Thread(target=watch_memory, args=(done, peaks))
                watch.start()
                out, errors = done.communicate()
                watch.join()
                seconds, peak = time.monotonic() - begun, max(peaks)
                kinds = collections.Counter("LIST" if "list-type" in path else method for method, path, _ in double.requests)
                print(f"{' '.join(words)}: exit {done.returncode}, {seconds:.1f} s, {dict(kinds)}, "
                      f"{double.most_in_flight} at once, {peak} MiB", flush=True)
                if done.returncode or len(double.requests) > most or peak > 64 + 16:
                    failed.append(words)
                    print(out[-500:], errors[-1000:])
                return out

            info = json.loads(run(1.5 * pages + 60, "info", "s3://bucket/a", "--json"))
            if json.dumps(info).find(str(made_up.count)) < 0:
                failed.append("the count of chunks")
            if options.verify:
                run(made_up.count + 4 * pages + 60, "verify", "s3://bucket/a")
            if options.copy:
                run(2 * made_up.count + 4 * pages + 80, "copy", "s3://bucket/a", "s3://bucket/new", "--quiet")
            run(3 * pages + 60, "sync", "s3://bucket/a", "s3://bucket/b", "--json")
            for n in (3, made_up.count // 2, made_up.count - 5):
                key = made_up.keys["a"][n]
                made_up.values["a", key] = chunk[:-1] + bytes([chunk[-1] ^ 1])
            done = json.loads(run(3 * pages + 70, "sync", "s3://bucket/a", "s3://bucket/b", "--json"))
            puts = sum(method == "PUT" and "tessera" not in path for method, path, _ in double.requests)
            if (done["carried"], puts) != (3, 3):
                failed.append(f"three chunks: {done}, {puts} puts")
    print("failed:" if failed else "passed", *failed)
    return bool(failed)


def watch_memory(process, peaks):
    """Adds the most MiB that it had, until it ends."""
    while process.poll() is None:
        try:
            text = pathlib.Path(f"/proc/{process.pid}/status").read_text()
            peaks += [int(line.split()[1]) // 1024 for line in text.splitlines() if line.startswith("VmHWM")]
        except OSError:
            return
        time.sleep(0.01)


sys.exit(main())
