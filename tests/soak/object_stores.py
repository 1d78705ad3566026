#!/usr/bin/python3
"""Arrays in S3 on servers by others: radosgw, of a Ceph that is made for this run and removed after it; or moto.

    object_stores.py radosgw|moto build/release/tools/tessera [--module build/release/tools/python]
                     [--increments 100] [--kills 40] [--mib 90] [--only CHECKS] [--folder DIR] [--seed N]

The servers run on free ports of loopback and in one temporary folder. The folder and all processes are gone in the end,
also after a failure or Ctrl-C. For radosgw the packages radosgw, ceph-mon and ceph-osd of Debian 12 are needed (`apt-get
install --no-install-recommends`), for moto its program moto_server (`pip install 'moto[server,s3]'`); without them the
script is skipped (77).

Each command is run in S3 and on the disk; exit codes, output and digests must be the same. Then several writers change
the same chunks, shards, attributes and lengths by the Python module, and several workers share a job. Some of them are
killed. Values above 64 MiB are sent in parts. radosgw holds If-Match only without quotation marks, and ignores it on
DELETE. `answers` compares its status codes with those of the double in tests/cli, which imitates it. moto keeps all in
memory, and checks no signature.

A check that fails does not stop the others. Exit code 1 if one did.
"""
import argparse
import contextlib
import ctypes
import datetime
import hashlib
import hmac
import http.client
import json
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import urllib.parse
import uuid

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests" / "cli"))
import remote

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("server", choices=["radosgw", "moto"])
parser.add_argument("program")
parser.add_argument("--module", default=os.environ.get("TESSERA_MODULE"),
                    help="the folder of the Python package (default: where Python finds it)")
parser.add_argument("--increments", type=int, default=100, help="that each of eight writers makes")
parser.add_argument("--kills", type=int, default=40, help="of writers, and as many of workers; 0: nobody is killed")
parser.add_argument("--mib", type=int, default=90, help="of a value that goes in parts: more than 64")
parser.add_argument("--only", help="these checks, with commas between")
parser.add_argument("--folder", help="where all is made (default: the system's for temporary files)")
parser.add_argument("--seed", type=int, default=1)
options = parser.parse_args()
chance = random.Random(options.seed)
program = os.path.abspath(options.program)

PROGRAMS = {"radosgw": ["ceph", "ceph-authtool", "ceph-mon", "ceph-osd", "monmaptool", "radosgw", "radosgw-admin"],
            "moto": ["moto_server"]}
missing = [name for name in PROGRAMS[options.server] if shutil.which(name) is None]
if missing:
    print(f"skipped: no {', '.join(missing)}")
    sys.exit(77)
if options.module:
    sys.path.insert(0, os.path.abspath(options.module))
try:
    import numpy as np
    import tessera
except ImportError as error:
    print("skipped:", error)
    sys.exit(77)

KEY_ID, SECRET, REGION = "AKTESSERA", "a-secret-of-ours", "us-east-1"
CEPH_CONF = """[global]
fsid = {fsid}
mon host = [v2:127.0.0.1:{ports[0]},v1:127.0.0.1:{ports[1]}]
public addr = 127.0.0.1
cluster addr = 127.0.0.1
auth cluster required = cephx
auth service required = cephx
auth client required = cephx
osd pool default size = 1
osd pool default min size = 1
osd pool default pg num = 4
osd pool default pg autoscale mode = off
osd crush chooseleaf type = 0
osd objectstore = memstore
memstore device bytes = 4294967296
mon allow pool size one = true
mon data avail crit = 0
mon data = {folder}/mon
osd data = {folder}/osd
rgw data = {folder}/rgw
run dir = {folder}
crash dir = {folder}
log file = {folder}/$name.log
admin socket =
mon cluster log to file = false
keyring = {folder}/keyring
[client.rgw.a]
rgw frontends = beast endpoint=127.0.0.1:{ports[2]} tcp_nodelay=1
"""

# ---- processes, of which none outlives this one

begun = []
beginning = threading.Lock()
prctl = ctypes.CDLL(None).prctl
# 1 is PR_SET_PDEATHSIG: the process ends with this one, even if this one is killed with -9.
BOUND = {"stdin": subprocess.DEVNULL, "preexec_fn": lambda: prctl(1, signal.SIGKILL)}
HEARD = {**BOUND, "capture_output": True, "text": True, "check": False, "timeout": 300}


def begin(*words, **how):
    with beginning:
        process = subprocess.Popen([*map(str, words)], **BOUND, **how)
        begun.append(process)
        return process


def end_all():
    beginning.acquire()  # for good: no thread begins another one
    for process in reversed(begun):
        process.kill()
        process.wait()


def done(words, code=0, **how):
    process = subprocess.run([*map(str, words)], **HEARD, **how)
    assert process.returncode == code, f"{process.returncode}: {words}\n{process.stdout}{process.stderr}"
    return process.stdout


def tessera_does(*words, **how):
    return done([program, *words], **how)


def refused(*words, says, **how):
    """Runs a command that must fail with one line on stderr."""
    run = subprocess.run([program, *map(str, words)], **HEARD, **how)
    assert run.returncode == 2 and re.search(says, run.stderr) and run.stderr.count("\n") == 1, run


# ---- the servers

class Server:
    """Started, it answers at `host`, and has the bucket `bucket`."""

    def __init__(self, folder):
        self.folder = folder
        sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(3)]
        self.ports = [one.getsockname()[1] for one in sockets]
        for one in sockets:
            one.close()
        self.host = f"127.0.0.1:{self.ports[2]}"

    def serve(self, *words):
        with open(self.folder / f"{words[0]}.log", "wb") as log:
            # A session of its own, so that Ctrl-C reaches this script alone, which ends the servers.
            begin(*words, stdout=log, stderr=log, start_new_session=True)

    def make_bucket(self):
        end = time.monotonic() + 120
        while True:
            with contextlib.suppress(OSError):
                return self.ask("PUT", "bucket")
            assert time.monotonic() < end, "the server does not answer"
            time.sleep(0.1)

    def last_words(self):
        for log in self.folder.glob("*.log"):
            print("\n== " + log.stem, *log.read_text(errors="replace").splitlines()[-20:], sep="\n", file=sys.stderr)

    def ask(self, method, key, query=(), headers=(), body=b""):
        return ask(self.host, (KEY_ID, SECRET, REGION), method, key, query, headers, body)


class Ceph(Server):
    promise = "full: changes of several writers are never lost (by ETags without quotes)"
    left_out = ()

    def version(self):
        return done(["radosgw", "--version"]).strip()

    def start(self):
        fsid, osd = str(uuid.uuid4()), str(uuid.uuid4())
        conf, keys, monmap = (self.folder / name for name in ("ceph.conf", "keyring", "monmap"))
        conf.write_text(CEPH_CONF.format(fsid=fsid, ports=self.ports, folder=self.folder))
        for name in ("mon", "osd", "rgw"):
            (self.folder / name).mkdir()
        mon, osd_all = ["--cap", "mon", "allow *"], ["--cap", "osd", "allow *"]
        done(["monmaptool", "--create", "--fsid", fsid, "--addv", "a",
              f"[v2:127.0.0.1:{self.ports[0]},v1:127.0.0.1:{self.ports[1]}]", monmap])
        done(["ceph-authtool", keys, "--create-keyring", "--gen-key", "-n", "mon.", *mon])
        done(["ceph-authtool", keys, "--gen-key", "-n", "client.admin", *mon, *osd_all])
        done(["ceph-authtool", keys, "--gen-key", "-n", "client.rgw.a", *mon, *osd_all])
        done(["ceph-authtool", keys, "--gen-key", "-n", "osd.0", "--cap", "mon", "allow profile osd", *osd_all])
        done(["ceph-mon", "-c", conf, "-i", "a", "--mkfs", "--monmap", monmap, "--keyring", keys])
        self.serve("ceph-mon", "-c", conf, "-f", "-i", "a")
        done(["ceph", "-c", conf, "--connect-timeout", "60", "osd", "new", osd])
        done(["ceph-osd", "-c", conf, "-i", "0", "--mkfs", "--osd-uuid", osd])
        self.serve("ceph-osd", "-c", conf, "-f", "-i", "0")
        done(["ceph", "-c", conf, "osd", "crush", "add", "osd.0", "1.0", "root=default", "host=localhost"])
        self.serve("radosgw", "-c", conf, "-f", "-n", "client.rgw.a")
        done(["radosgw-admin", "-c", conf, "user", "create", "--uid", "t", "--display-name", "t",
              "--access-key", KEY_ID, "--secret-key", SECRET])
        self.make_bucket()


class Moto(Server):
    promise = "full: changes of several writers are never lost."
    left_out = ("answers", "refusals")

    def version(self):
        return "moto"

    def start(self):
        self.serve("moto_server", "-H", "127.0.0.1", "-p", self.ports[2])
        self.make_bucket()


def ask(host, keys, method, key, query=(), headers=(), body=b""):
    """One request, signed; its status, header and body."""
    key_id, secret, region = keys
    path = "/" + urllib.parse.quote(key, safe="/-_.~")
    text = "&".join(f"{name}={urllib.parse.quote(value, safe='-_.~')}" for name, value in sorted(dict(query).items()))
    now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y%m%dT%H%M%SZ")
    signed = {"host": host, "x-amz-content-sha256": hashlib.sha256(body).hexdigest(), "x-amz-date": now}
    names = ";".join(signed)
    request = "\n".join([method, path, text, "".join(f"{name}:{value}\n" for name, value in signed.items()), names,
                         signed["x-amz-content-sha256"]])
    scope = f"{now[:8]}/{region}/s3/aws4_request"
    secret = ("AWS4" + secret).encode()
    for part in scope.split("/"):
        secret = hmac.new(secret, part.encode(), hashlib.sha256).digest()
    to_sign = "\n".join(["AWS4-HMAC-SHA256", now, scope, hashlib.sha256(request.encode()).hexdigest()])
    signature = hmac.new(secret, to_sign.encode(), hashlib.sha256).hexdigest()
    connection = http.client.HTTPConnection(host, timeout=60)
    with contextlib.closing(connection):
        connection.request(method, path + ("?" + text if text else ""), body, {
            **signed, **dict(headers), "authorization": f"AWS4-HMAC-SHA256 Credential={key_id}/{scope}, "
                                                        f"SignedHeaders={names}, Signature={signature}"})
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read()


def keys_below(prefix):
    """The keys below a prefix, which they are given without."""
    token, found = "", []
    while token is not None:
        more = {"continuation-token": token} if token else {}
        _, _, text = server.ask("GET", "bucket", {"list-type": "2", "encoding-type": "url", "prefix": prefix, **more})
        found += [urllib.parse.unquote(key.replace("&apos;", "'"))[len(prefix):]
                  for key in re.findall("<Key>(.*?)</Key>", text.decode())]
        token = next(iter(re.findall("<NextContinuationToken>(.*?)</", text.decode())), None)
    return sorted(found)


def files_below(folder):
    """Without what Tessera keeps for itself."""
    return sorted(str(p.relative_to(folder)) for p in pathlib.Path(folder).rglob("*")
                  if p.is_file() and ".tessera" not in p.parts)


# ---- the checks


def without_place(text):
    """Leaves out what differs between S3 and the disk: remarks on the server, and what is kept for undo."""
    text = re.sub(r'(remark|kept for undo) .*\n|.*"undo_(values|bytes)".*\n', "", text)
    return re.sub(r'"remarks": \[[^]]*\]', '"remarks": []', text)


def both(*words, code=0):
    """Runs a command in S3 and on the disk: "AT" in a word stands for the place. Both must say the same."""
    there, here = (tessera_does(*[str(word).replace("AT", place) for word in words], code=code)
                   .replace("s3://bucket", "AT").replace("local", "AT") for place in ("s3://bucket", "local"))
    assert without_place(there) == without_place(here), f"{words}\n{there}\n{here}"


def commands():
    np.save("part.npy", -np.load("a.npy")[:7, :11])
    forms = {"v1": ["--chunks", "10,9"], "v2": ["--chunks", "10,9", "--fill", "0"], "zmeta": ["--chunks", "10,9"],
             "v3": ["--chunks", "10,9"], "shards": ["--chunks", "10,9", "--shard", "50,45"]}
    for form, words in forms.items():
        os.makedirs(f"local/{form}")  # or the command would say that it made it
        x, y = f"AT/{form}/x", f"AT/{form}/y"
        both("import", "a.npy", x, "--format", "v3" if form == "shards" else form, *words)
        both("import", "a.npy", x, code=2)  # there is one already
        both("copy", x, y, "--chunks", "20,30", *(["--shard", "none"] if form == "shards" else []))
        both("set", x, "3:10,2:13", "part.npy")
        both("set", x, "::9,::7", "--", "-5")
        both("set", x, "0:10,0:9", "1")
        both("append", x, "a.npy", "--axis", "0")
        both("append", x, y, "--axis", "0")
        both("resize", x, "250,80")
        both("resize", x, "260,95")
        both("attrs", x, "set", "units", "m")
        both("attrs", x, "set", "grüße", '{"a": [1, "ü"]}')
        both("attrs", x, "mv", "units", "unit")
        both("attrs", x)
        both("get", x, "2:12,:14", "--all")
        both("get", x, "--json")
        both("stats", x)
        both("verify", x, y)
        both("digest", x, y)
        both("info", x)
        both("info", x, "--json", "--exact")
        both("copy", x, f"AT/{form}/z", "--overwrite")
        both("copy", y, f"AT/{form}/z", "--overwrite")
        both("digest", f"AT/{form}/z")
        both("tree", f"AT/{form}", "--json")
    assert server.promise in tessera_does("info", "s3://bucket/v2/x")
    for words in (["calc", "AT/made", "a * 2 + 1", "a=AT/v3/x"],
                  ["reduce", "AT/shards/x", "AT/made", "--with", "max", "--axis", "0"],
                  ["coarsen", "AT/v2/x", "AT/made", "--by", "2,5"], ["pyramid", "AT/v3/x", "AT/made"],
                  ["rechunk", "AT/v2/x", "AT/made", "--chunks", "260,3"],
                  ["concat", "AT/v3/y", "AT/v3/y", "AT/made"]):
        both(*words, "--quiet")
        both("digest", "AT/made")
        both("rm", "AT/made", "--recursive")
    tessera_does("copy", "local/v2/x", "s3://bucket/alike", "--quiet")
    tessera_does("set", "local/v2/x", "0:20,0:20", "3", "--quiet")
    tessera_does("sync", "local/v2/x", "s3://bucket/alike", "--quiet")
    assert "equal" in tessera_does("diff", "local/v2/x", "s3://bucket/alike")
    both("group", "AT/g", "--format", "v3")
    both("copy", "AT/v3/x", "AT/g/x")
    both("attrs", "AT/g", "set", "a", "1")
    both("consolidate", "AT/g")
    both("tree", "AT/g")
    both("digest", "AT/g")
    both("rm", "AT/g", code=2)
    both("rm", "AT/g", "--recursive")
    both("rm", "AT/v3/y")
    both("verify", "AT/v3")
    for form in forms:
        both("rm", f"AT/{form}/x")
        tessera_does("rm", f"s3://bucket/{form}", "--recursive", "--quiet")
    tessera_does("rm", "s3://bucket/alike", "--quiet")
    assert keys_below("") == [], keys_below("")


def array_files():
    """These are read by ranges."""
    for name in ("a.npy", "a.npz", "a.h5", "a.nc", "a.tif", "a.safetensors"):
        if name != "a.npy":
            tessera_does("copy", "a.npy", name, "--quiet")
        assert server.ask("PUT", f"bucket/{name}", body=pathlib.Path(name).read_bytes())[0] == 200
        for words in (["digest"], ["get", "7:9,5:8"], ["info"], ["verify"]):
            here, there = (tessera_does(words[0], at + name, *words[1:]).replace(at, "")
                           for at in ("./", "s3://bucket/"))
            assert without_place(here) == without_place(there), (words, name, here, there)
        server.ask("DELETE", f"bucket/{name}")


def refusals():
    for changed, says in (({"AWS_SECRET_ACCESS_KEY": "wrong"}, "SignatureDoesNotMatch"),
                          ({"AWS_ACCESS_KEY_ID": "nobody"}, "InvalidAccessKeyId"), ({}, "no bucket")):
        at = "s3://bucket" if changed else "s3://no-such-bucket"
        for words in (["get", f"{at}/x"], ["import", "a.npy", f"{at}/x"], ["tree", at], ["rm", f"{at}/x"]):
            refused(*words, says=says, env={**os.environ, **changed})


def kept_on_the_disk():
    """The cache. This server's answer 304 has no ETag."""
    tessera_does("import", "a.npy", "s3://bucket/x", "--format", "v2", "--chunks", "10,9", "--quiet")
    wanted = tessera_does("digest", "s3://bucket/x")
    for _ in range(2):
        assert tessera_does("digest", "s3://bucket/x", "--cache", "kept") == wanted
    tessera_does("set", "s3://bucket/x", "0,0", "77", "--quiet")
    assert tessera_does("get", "s3://bucket/x", "0,0", "--cache", "kept").strip() == "77"
    assert tessera_does("get", "s3://bucket/x", "0,0", "--cache", "kept", "--offline").strip() == "77"
    tessera_does("rm", "s3://bucket/x", "--quiet")


NAMES = ["a b", "a+b", "50%", "e%20f", "ä ö", "u\u0308", "it's ~(1)*!", "a&b<c>", "#1", "q?x=y", "日本", "b\\c", 'a"b',
         "x:y;z@=$,", "&amp;", "😀", " blanks "]


def unusual_keys():
    os.makedirs("local/odd")
    for name in NAMES:
        both("import", "a.npy", f"AT/odd/{name}", "--format", "v2", "--chunks", "50,50", "--quiet")
        both("set", f"AT/odd/{name}", "0,0", "7")
        both("attrs", f"AT/odd/{name}", "set", name, name)
        both("attrs", f"AT/odd/{name}")
    both("tree", "AT/odd", "--json")
    both("digest", "AT/odd", *[f"AT/odd/{name}" for name in NAMES])
    both("verify", "AT/odd")
    assert keys_below("odd/") == files_below("local/odd")
    tessera_does("copy", "s3://bucket/odd", "s3://bucket/ä +%/odd", "--quiet")
    tessera_does("copy", "s3://bucket/ä +%/odd", "back", "--quiet")
    tessera_does("diff", "local/odd", "back")
    tessera_does("rm", "s3://bucket/ä +%/odd", "--recursive", "--quiet")
    both("rm", "AT/odd", "--recursive")
    store = tessera.KeyStore("s3://bucket/odd keys")
    for name in NAMES:
        store[name] = name.encode()
        store[f"{name}/{name}"] = b""
    assert sorted(store) == sorted([*NAMES, *[f"{name}/{name}" for name in NAMES]])
    for name in NAMES:
        assert bytes(store[name]) == name.encode() and bytes(store[f"{name}/{name}"]) == b""
        del store[name], store[f"{name}/{name}"]
    assert keys_below("odd") == [] and keys_below("ä") == []


def empty_values():
    """Damage of 0 bytes. The answer 416 has no ETag, and here no size either."""
    for words in (["--format", "v2", "--chunks", "10,9"], ["--format", "v3", "--chunks", "10,9", "--shard", "50,45"]):
        chunk = "0.0" if "v2" in words else "c/0/0"
        both("import", "a.npy", "AT/empty", "--quiet", *words)
        server.ask("PUT", f"bucket/empty/{chunk}")
        os.truncate(f"local/empty/{chunk}", 0)
        both("get", "AT/empty", "0,0", code=2)
        both("verify", "AT/empty", code=1)
        for place in ("local", "s3://bucket"):
            run = begin(program, "set", f"{place}/empty", "0,0", "1", stderr=subprocess.DEVNULL)
            try:
                assert run.wait(30) == 2
            except subprocess.TimeoutExpired:
                run.kill()
                raise AssertionError(f"tessera set {place}/empty 0,0 1 does not end ({' '.join(words)})") from None
        both("set", "AT/empty", ":,:", "4")
        both("digest", "AT/empty")
        both("rm", "AT/empty", "--recursive")


LONG = ["--format", "v3", "--chunks", 1 << 20, "--shard", options.mib << 20, "--codec", "none", "--quiet"]


def values_in_parts():
    """A shard of more than 64 MiB."""
    wanted = digest("long.npy")
    tessera_does("import", "long.npy", "s3://bucket/long", *LONG)
    tessera_does("copy", "s3://bucket/long", "s3://bucket/copied", "--quiet")
    tessera_does("copy", "s3://bucket/copied", "copied", "--verify", "--quiet")
    for place in ("s3://bucket/long", "s3://bucket/copied", "copied"):
        assert digest(place) == wanted, place
    for place in ("long", "copied"):
        _, header, _ = server.ask("HEAD", f"bucket/{place}/c/0")
        assert re.fullmatch(r'"[0-9a-f]{32}-\d+"', header["ETag"]), header["ETag"]
    # A part of the shard is changed: it is sent as one value, if it is still the one that was read.
    tessera_does("set", "s3://bucket/copied", "5:7", "3", "--max-memory", "1G", "--quiet")
    assert tessera_does("get", "s3://bucket/copied", "5:7").strip() == "[3 3]"
    assert uploads() == []
    for place in ("long", "copied"):
        tessera_does("rm", f"s3://bucket/{place}", "--quiet")


def killed_uploads():
    """Parts that a killed process has sent are removed with the array, whether that was finished later or not. The
    first command waits up to a minute, until the lease of the killed process has ended."""
    places = ["unfinished", "resumed", "replaced"]
    for number, place in enumerate(places):
        run = begin(program, "import", "long.npy", f"s3://bucket/cut/{place}", *LONG)
        while len(uploads()) == number and run.poll() is None:
            time.sleep(0.002)
        run.kill()
        assert run.wait() != 0 and len(uploads()) == number + 1, "it was faster than the test"
        refused("get", f"s3://bucket/cut/{place}", "0", says="unfinished")
    for way in ("--resume", "--overwrite"):
        place = f"s3://bucket/cut/{places.pop()}"
        tessera_does("import", "long.npy", place, *LONG, way)
        assert digest(place) == digest("long.npy")
        tessera_does("rm", place, "--quiet")
    tessera_does("rm", "s3://bucket/cut/unfinished", "--quiet")
    assert keys_below("cut/") == [], keys_below("cut/")
    assert uploads() == [], uploads()


def uploads():
    """The keys of unfinished uploads."""
    _, _, text = server.ask("GET", "bucket", {"uploads": ""})
    return re.findall("<Upload>.*?<Key>(.*?)</Key>", text.decode())


def digest(place):
    return tessera_does("digest", place).split()[0]


# ---- several writers

WRITER = """
import sys
import numpy as np
import tessera
what, place, count, seed = sys.argv[1:]
array = tessera.open(place, "r+")
def change(part):
    part += 1
for i in range(int(count)):
    if what == "attrs":
        array.attrs[f"by-{seed}-{i}"] = i
    elif what == "append":
        array.append(np.full((1, 4), int(seed) * 1000 + i, array.dtype))
    else:
        array.update(slice(*map(int, what.split(":"))), change)
    print(i, flush=True)
"""
LAYOUTS = (["--chunks", "4"], ["--chunks", "2", "--shard", "4"])


def writer(what, place, count, seed):
    return begin(sys.executable, "-c", WRITER, what, place, count, seed, text=True, stdout=subprocess.PIPE,
                 stderr=subprocess.PIPE)


def writers(what, place, number, each):
    """Runs `number` processes at once, of which each writes so often. Each write must be acknowledged."""
    processes = [writer(what, place, each, seed) for seed in range(number)]
    for process in processes:
        out, error = process.communicate()
        assert process.returncode == 0, error
        assert len(out.split()) == each


def zeros(words):
    np.save("zeros.npy", np.zeros(6, "<i8"))
    tessera_does("import", "zeros.npy", "s3://bucket/n", "--format", "v3", "--fill", "0", "--overwrite", *words)
    return "s3://bucket/n"


def increments():
    for words in LAYOUTS:
        place = zeros(words)
        began = time.monotonic()
        writers("1:5", place, 8, options.increments)
        took = time.monotonic() - began
        wanted = [0] + [8 * options.increments] * 4 + [0]
        assert tessera.open(place)[:].tolist() == wanted, (words, tessera.open(place)[:], wanted)
        print(f"  8 × {options.increments} increments of two {'inner ' if len(words) > 2 else ''}chunks: {took:.1f} s")


def attributes_and_rows():
    each = max(1, options.increments // 10)
    np.save("row.npy", np.full((1, 4), -1, "<i8"))
    tessera_does("import", "row.npy", "s3://bucket/r", "--format", "v3", "--chunks", "3,4", "--quiet")
    writers("attrs", "s3://bucket/r", 4, each)
    array = tessera.open("s3://bucket/r")
    assert dict(array.attrs) == {f"by-{seed}-{i}": i for seed in range(4) for i in range(each)}
    writers("append", "s3://bucket/r", 4, each)
    rows = tessera.open("s3://bucket/r")[:]
    assert (rows == rows[:, :1]).all() and rows[0, 0] == -1, rows
    assert sorted(rows[1:, 0]) == sorted(seed * 1000 + i for seed in range(4) for i in range(each)), rows


def makers():
    """Several processes make the same array: one does it, or with --overwrite one after the other."""
    for more, codes in (([], [0, 2, 2, 2]), (["--overwrite"], [0, 0, 0, 0])):
        runs = [begin(program, "import", "a.npy", "s3://bucket/made", "--format", "v2", "--chunks", "10,9", *more,
                      stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for _ in range(4)]
        assert sorted(run.wait() for run in runs) == codes
        assert digest("s3://bucket/made") == digest("a.npy")
        assert "sound" in tessera_does("verify", "s3://bucket/made")
    tessera_does("rm", "s3://bucket/made", "--quiet")


def killed_writers():
    """What was acknowledged is there, and at most one write more of each process that was killed."""
    for words in LAYOUTS:
        place, acknowledged = zeros(words), []

        def run(seed, lives, place=place, acknowledged=acknowledged):
            for life in lives:
                process = writer("1:4", place, 1 << 20, seed)
                for _ in range(life):
                    process.stdout.readline()
                process.kill()
                acknowledged.append(life + len(process.stdout.read().split()))
                process.communicate()

        lives = [[chance.randint(1, 8) for _ in range((options.kills + 7) // 8)] for _ in range(4)]
        threads = [threading.Thread(target=run, args=(seed, lives[seed]), daemon=True) for seed in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        values, least, kills = tessera.open(place)[:], sum(acknowledged), len(acknowledged)
        assert (values[1:4] >= least).all() and (values[1:4] <= least + kills).all(), (values, least, kills)
        assert values[[0, 4, 5]].tolist() == [0, 0, 0]
        assert "sound" in tessera_does("verify", place)


def killed_makers():
    """An interrupted import does not open and can be resumed; an interrupted append never shows. The first command
    waits up to a minute, until the lease of the killed process has ended."""
    run = begin(program, "import", "a.npy", "s3://bucket/made", "--format", "v2", "--chunks", "1,1", "--quiet")
    while len(keys_below("made/")) < 50 and run.poll() is None:
        time.sleep(0.01)
    run.kill()
    assert run.wait() != 0, "it was faster than the test"
    refused("get", "s3://bucket/made", "0,0", says="unfinished")
    np.save("row.npy", np.full((1, 4), -1, "<i8"))
    tessera_does("import", "row.npy", "s3://bucket/grown", "--format", "v3", "--chunks", "3,4", "--fill", "0",
                 "--quiet")
    run = writer("append", "s3://bucket/grown", 1 << 20, 1)
    for _ in range(chance.randint(2, 9)):
        run.stdout.readline()
    time.sleep(chance.uniform(0, 0.05))
    run.kill()
    run.stdout.read()
    run.communicate()
    before = tessera.open("s3://bucket/grown")[:]
    tessera_does("import", "a.npy", "s3://bucket/made", "--format", "v2", "--chunks", "1,1", "--resume", "--quiet")
    assert digest("s3://bucket/made") == digest("a.npy")
    tessera_does("append", "s3://bucket/grown", "row.npy", "--axis", "0", "--quiet")
    rows = tessera.open("s3://bucket/grown")[:]
    assert rows[:, 0].tolist() == [-1, *[1000 + i for i in range(len(before) - 1)], -1], rows
    tessera_does("resize", "s3://bucket/grown", f"{len(rows) + 9},4", "--quiet")
    assert not tessera.open("s3://bucket/grown")[len(rows):].any()
    for place in ("made", "grown"):
        tessera_does("rm", f"s3://bucket/{place}", "--quiet")
        assert keys_below(place + "/") == [], keys_below(place + "/")


def jobs():
    values = np.random.default_rng(7).integers(0, 50, (20, 200, 180)).astype("<i4")
    values[:, :100, :90] = 0
    np.save("cube.npy", values)
    tessera_does("import", "cube.npy", "cube.zarr", "--format", "v3", "--chunks", "1,100,90", "--fill", "0", "--quiet")
    tessera_does("copy", "cube.zarr", "s3://bucket/cube", "--quiet")
    target = ["--chunks", "20,25,30"]
    tessera_does("rechunk", "cube.zarr", "plain.zarr", *target, "--quiet")
    wanted, files = digest("plain.zarr"), files_below("plain.zarr")

    def plan(source):
        pathlib.Path("job.json").unlink(missing_ok=True)
        tessera_does("plan", "rechunk", source, "s3://bucket/out", *target, "--out", "job.json", "--parts", "8",
                     "--max-memory", "8M", "--quiet")

    def is_right():
        assert json.loads(tessera_does("finish", "job.json", "--json"))["finished"]
        assert digest("s3://bucket/out") == wanted
        tessera_does("finish", "job.json", "--read", "--quiet")
        assert keys_below("out/") == sorted([*files, ".tessera/job"]), keys_below("out/")
        tessera_does("verify", "s3://bucket/out")
        tessera_does("rm", "s3://bucket/out", "--quiet")
        assert keys_below("out/") == [], keys_below("out/")

    plan("cube.zarr")
    runs = [begin(program, "work", "job.json", "--claim", "--json", stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            for _ in range(3)]
    done_by = [json.loads(run.communicate()[0])["done"] for run in runs]
    assert [run.returncode for run in runs] == [0, 0, 0] and sum(done_by) >= 8, done_by
    is_right()
    kills = 0
    while kills < options.kills:
        plan("s3://bucket/cube")
        while True:
            runs = [begin(program, "work", "job.json", "--quiet", *chance.choice([["--claim", "--lease", "1s"], []]),
                          stderr=subprocess.DEVNULL) for _ in range(3)]
            runs.append(begin(program, "finish", "job.json", "--quiet", stderr=subprocess.DEVNULL))
            time.sleep(chance.uniform(0, 0.4))
            for run in runs:
                if chance.random() < 0.8 and run.poll() is None:
                    run.kill()
                    kills += 1
            for run in runs:
                run.wait()
            # Exit code 1 while units are missing.
            state = json.loads(subprocess.run([program, "job", "job.json", "--json"], **HEARD).stdout)
            if state["finished"]:
                assert digest("s3://bucket/out") == wanted
            if not state["missing_units"]:
                break
        is_right()
    tessera_does("rm", "s3://bucket/cube", "--quiet")


def module():
    array = tessera.create("s3://bucket/py", shape=(20, 20), dtype="f4", chunks=(5, 5), fill_value=0)
    array[3:9, 4:] = 7
    array.attrs["x"] = 3
    array.update((slice(0, 5), slice(0, 5)), lambda part: part + 1)
    array.append(np.ones((2, 20), "f4"))
    right = np.zeros((22, 20), "f4")
    right[3:9, 4:] = 7
    right[:5, :5] += 1
    right[20:] = 1
    assert (array[:] == right).all() and dict(array.attrs) == {"x": 3}
    assert (tessera.open("s3://bucket/py")[::-1, ::3] == right[::-1, ::3]).all()


# ---- what the server answers

def answers():
    """Sends the requests that Tessera makes to radosgw and to the double. Where a second status is given, the double
    differs, and is as Amazon's server."""
    one, two = (hashlib.md5(text).hexdigest() for text in (b"one", b"two"))
    put = [({"If-None-Match": "*"}, 200), ({"If-None-Match": "*"}, 412), ({"If-Match": f'"{one}"'}, 412),
           ({"If-Match": one}, 200), ({"If-Match": two}, 412)]
    requests = [("PUT", "k", headers, b"one", status) for headers, status in put]
    requests += [("PUT", "other", {"If-Match": one}, b"one", 412, 404), ("PUT", "empty", {}, b"", 200)]
    get = [({"If-Match": f'"{one}"'}, 200), ({"If-Match": f'"{two}"'}, 412), ({"If-None-Match": f'"{one}"'}, 304),
           ({"Range": "bytes=-9"}, 206), ({"Range": "bytes=1-9"}, 206), ({"Range": "bytes=3-"}, 416)]
    requests += [("GET", "k", headers, b"", status) for headers, status in get]
    requests += [("GET", "empty", {"Range": "bytes=-9"}, b"", 416), ("GET", "none", {}, b"", 404),
                 ("PUT", "k", {"Content-MD5": "AAAAAAAAAAAAAAAAAAAAAA=="}, b"x", 400), ("DELETE", "none", {}, b"", 204),
                 ("DELETE", "k", {"If-Match": two}, b"", 204, 412)]
    os.mkdir("of-our-own")
    with remote.serving("of-our-own") as own:
        own.faults.bare_etags = True
        host, keys = own.origin.removeprefix("http://"), (remote.KEY_ID, remote.SECRET, remote.REGION)
        for method, key, headers, body, *statuses in requests:
            here = server.ask(method, f"bucket/{key}", headers=headers, body=body)[0]
            there = ask(host, keys, method, f"bucket/{key}", headers=headers, body=body)[0]
            assert [here, there] == [statuses[0], statuses[-1]], (method, key, headers, here, there, statuses)
    # One of eight makes the key.
    made = []
    threads = [threading.Thread(target=lambda: made.append(
        server.ask("PUT", "bucket/once", headers={"If-None-Match": "*"}, body=b"x")[0])) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(made) == [200] + [412] * 7, made
    for key in keys_below(""):
        server.ask("DELETE", f"bucket/{key}")


def run_all():
    os.mkdir("local")
    np.save("a.npy", np.arange(9000, dtype="<i4").reshape(100, 90))
    np.save("long.npy", np.random.default_rng(options.seed).integers(0, 255, options.mib << 20, dtype="u1"))
    failed = []
    checks = [answers, commands, array_files, refusals, kept_on_the_disk, module, unusual_keys, empty_values,
              values_in_parts, increments, attributes_and_rows, makers, jobs]
    if options.kills:
        checks += [killed_writers, killed_makers, killed_uploads]
    for check in checks:
        if options.only and check.__name__ not in options.only.split(",") or check.__name__ in server.left_out:
            continue
        began = time.monotonic()
        print(f"{check.__name__} …", flush=True)
        try:
            check()
        except Exception:
            traceback.print_exc()
            failed.append(check.__name__)
        print(f"{check.__name__}: {'FAILED' if check.__name__ in failed else 'ok'}, {time.monotonic() - began:.1f} s",
              flush=True)
    print(f"failed: {', '.join(failed)}" if failed else "nothing lost, nothing doubled, all as on the disk")
    return 1 if failed else 0


for ending in (signal.SIGTERM, signal.SIGHUP):
    if signal.getsignal(ending) != signal.SIG_IGN:  # as nohup does
        signal.signal(ending, lambda number, _: sys.exit(128 + number))
place = pathlib.Path(tempfile.mkdtemp(prefix="tessera-object-store-", dir=options.folder)).resolve()
try:
    for name in [name for name in os.environ if name.startswith(("AWS_", "TESSERA_", "CEPH_"))]:
        del os.environ[name]
    # No settings of this machine are read, and nothing is written outside the folder.
    (place / "work").mkdir()
    os.chdir(place / "work")
    (place / "server").mkdir()
    server = {"radosgw": Ceph, "moto": Moto}[options.server](place / "server")
    os.environ.update(AWS_ENDPOINT_URL=f"http://{server.host}", AWS_REGION=REGION, AWS_ACCESS_KEY_ID=KEY_ID,
                      AWS_SECRET_ACCESS_KEY=SECRET, AWS_CONFIG_FILE="/dev/null",
                      AWS_SHARED_CREDENTIALS_FILE="/dev/null", AWS_EC2_METADATA_DISABLED="true", TESSERA_CONFIG="", no_proxy="*", HOME=str(place),
                      XDG_CACHE_HOME=str(place / "cache"), TMPDIR=str(place),
                      PYTHONPATH=os.pathsep.join(filter(None, (sys.path[0], os.environ.get("PYTHONPATH")))))
    began = time.monotonic()
    try:
        server.start()
    except Exception:
        server.last_words()
        raise
    print(f"{server.version()}, ready after {time.monotonic() - began:.1f} s", flush=True)
    result = run_all()
finally:
    for ending in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(ending, signal.SIG_IGN)
    end_all()
    os.chdir("/")
    shutil.rmtree(place)
sys.exit(result)
