"""A server of our own for tests of remote stores: files over plain HTTP at /files/..., and S3 at /BUCKET/KEY, strict where
S3 is strict (signatures, ranges, listings), with switches for faults. It counts what it is asked. Of the standard library
alone; facts: RFC 9110, and the Amazon S3 API reference.
"""

import contextlib
import hashlib
import hmac
import http.server
import pathlib
import random
import re
import threading
import time
import urllib.parse
import xml.sax.saxutils

KEY_ID, SECRET, REGION = "AKTESSERA", "a secret/of+ours", "eu-test-1"


class Faults:
    """What goes wrong: each is a chance between 0 and 1, drawn for each request, or a switch."""

    def __init__(self):
        self.cut = 0.0  # the body ends in its midst, and the connection with it
        self.reset = 0.0  # no answer
        self.busy = 0.0  # 503
        self.busy_next = 0  # so many of the next answers are 503
        self.forget_length = False  # no Content-Length: the end of the connection ends the body
        self.ignore_ranges = False
        self.wrong_range = False  # one byte further than asked
        self.forbid_absent = False  # 403 where there is nothing
        self.delay = 0.0
        self.public = False  # S3 without signatures
        self.redirect = None
        self.random = random.Random(1)
        self.seen = {}

    def draws(self, name, what):
        # The same request does not fail for ever.
        chance = getattr(self, name)
        if chance == 0 or self.seen.get((name, what), 0) >= 4:
            return False
        if self.random.random() >= chance:
            return False
        self.seen[name, what] = self.seen.get((name, what), 0) + 1
        return True


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1

    def log_message(self, *_):
        pass

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        double = self.server.double
        with double.lock:
            double.requests.append((self.command, self.path, self.headers.get("Range")))
            double.in_flight += 1
            double.most_in_flight = max(double.most_in_flight, double.in_flight)
        try:
            self.answer(double)
        finally:
            with double.lock:
                double.in_flight -= 1

    def answer(self, double):
        faults = double.faults
        time.sleep(faults.delay)
        if faults.redirect:
            return self.send(302, b"", {"Location": faults.redirect})
        with double.lock:
            busy = faults.busy_next > 0
            faults.busy_next -= busy
            busy = busy or faults.draws("busy", self.path)
            reset = faults.draws("reset", self.path)
            cut = faults.draws("cut", self.path)
        if reset:
            self.close_connection = True
            return self.connection.shutdown(2)
        if busy:
            return self.send(503, b"<Error><Code>SlowDown</Code></Error>", {"Retry-After": "0"})
        path, _, query = self.path.partition("?")
        parts = urllib.parse.unquote(path).lstrip("/").split("/", 1)
        bucket, key = parts[0], parts[1] if len(parts) > 1 else ""
        if bucket != "files":
            if not faults.public and (wrong := self.wrong_signature(path, query)):
                return self.error(403, wrong)
            if bucket not in double.buckets:
                return self.error(404, "NoSuchBucket")
            if not key:
                return self.list(bucket, dict(urllib.parse.parse_qsl(query, keep_blank_values=True)))
        file = double.folder / key
        if not key or ".." in key.split("/") or not file.is_file():
            return self.error(403, "AccessDenied") if faults.forbid_absent else self.error(404, "NoSuchKey")
        return self.value(file.read_bytes(), faults, cut)

    def value(self, body, faults, cut):
        etag = '"' + hashlib.md5(body).hexdigest() + '"'
        if self.headers.get("If-Match", etag) != etag:
            return self.error(412, "PreconditionFailed")
        headers = {"ETag": etag, "Accept-Ranges": "bytes"}
        asked = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range", ""))
        if not asked or faults.ignore_ranges:
            return self.send(200, body, headers, cut, faults.forget_length)
        if asked[1]:
            first, last = int(asked[1]), min(int(asked[2] or len(body)), len(body) - 1)
        else:
            first, last = max(0, len(body) - int(asked[2])), len(body) - 1
        if first >= len(body):
            return self.send(416, b"", {"Content-Range": f"bytes */{len(body)}"})
        if faults.wrong_range and last + 1 < len(body):
            first, last = first + 1, last + 1
        headers["Content-Range"] = f"bytes {first}-{last}/{len(body)}"
        return self.send(206, body[first:last + 1], headers, cut, faults.forget_length)

    def send(self, status, body, headers, cut=False, forget_length=False):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if not forget_length:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body[:len(body) // 2] if cut else body)
        self.wfile.flush()
        if self.command != "HEAD":
            with self.server.double.lock:
                self.server.double.bytes += len(body)
        if cut or forget_length:
            self.close_connection = True

    def error(self, status, code):
        self.send(status, f"<Error><Code>{code}</Code></Error>".encode(), {"Content-Type": "application/xml"})

    def list(self, bucket, query):
        """ListObjectsV2, three entries a page so that pages are turned."""
        folder, prefix = self.server.double.folder, query.get("prefix", "")
        names = sorted(str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file())
        entries = {}
        for name in names:
            if not name.startswith(prefix):
                continue
            head, slash, _ = name[len(prefix):].partition(query.get("delimiter") or "\0")
            entries[prefix + head + slash] = None if slash else (folder / name).stat().st_size
        quoted = (lambda text: urllib.parse.quote(text)) if query.get("encoding-type") == "url" else xml.sax.saxutils.escape
        page = [name for name in sorted(entries) if name > query.get("continuation-token", "")]
        size = self.server.double.page
        text = "<ListBucketResult>"
        for name in page[:size]:
            text += (f"<CommonPrefixes><Prefix>{quoted(name)}</Prefix></CommonPrefixes>" if entries[name] is None else
                     f"<Contents><Key>{quoted(name)}</Key><Size>{entries[name]}</Size></Contents>")
        if len(page) > size:
            text += (f"<IsTruncated>true</IsTruncated><NextContinuationToken>{xml.sax.saxutils.escape(page[size - 1])}"
                     "</NextContinuationToken>")
        self.send(200, (text + "</ListBucketResult>").encode(), {"Content-Type": "application/xml"})

    def wrong_signature(self, path, query):
        """The code of the error; None if the request is signed as it should be."""
        found = re.fullmatch(r"AWS4-HMAC-SHA256 Credential=([^/]+)/(\d{8})/([^/]+)/s3/aws4_request, SignedHeaders=([^,]+), "
                             r"Signature=([0-9a-f]{64})", self.headers.get("Authorization", ""))
        if not found:
            return "AccessDenied"
        key_id, day, region, names, signature = found.groups()
        if key_id != KEY_ID:
            return "InvalidAccessKeyId"
        if region != REGION:
            return "AuthorizationHeaderMalformed"
        lines = "".join(f"{name}:{self.headers.get(name, '').strip()}\n" for name in names.split(";"))
        sorted_query = "&".join(sorted(part if "=" in part else part + "=" for part in query.split("&") if part))
        if sorted_query != query or not {"host", "x-amz-date", "x-amz-content-sha256"} <= set(names.split(";")):
            return "SignatureDoesNotMatch"
        request = "\n".join([self.command, path, query, lines, names, self.headers["x-amz-content-sha256"]])
        scope = f"{day}/{region}/s3/aws4_request"
        to_sign = "\n".join(["AWS4-HMAC-SHA256", self.headers["x-amz-date"], scope,
                             hashlib.sha256(request.encode()).hexdigest()])
        key = ("AWS4" + SECRET).encode()
        for part in (day, region, "s3", "aws4_request"):
            key = hmac.new(key, part.encode(), hashlib.sha256).digest()
        right = hmac.new(key, to_sign.encode(), hashlib.sha256).hexdigest()
        return None if hmac.compare_digest(right, signature) else "SignatureDoesNotMatch"


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 512

    def handle_error(self, *_):
        pass  # connections that end early are part of the tests


class Double:
    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.buckets = {"bucket"}
        self.page = 3
        self.lock = threading.Lock()
        self.faults = Faults()
        self.reset()
        self.server = Server(("127.0.0.1", 0), Handler)
        self.server.double = self
        self.origin = f"http://127.0.0.1:{self.server.server_address[1]}"

    def reset(self):
        self.requests, self.bytes, self.in_flight, self.most_in_flight = [], 0, 0, 0

    @property
    def environment(self):
        """For a program that is to see this server alone, and nothing of the machine's own settings."""
        return {"AWS_ENDPOINT_URL": self.origin, "AWS_REGION": REGION, "AWS_ACCESS_KEY_ID": KEY_ID,
                "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_CONFIG_FILE": "/dev/null",
                "AWS_SHARED_CREDENTIALS_FILE": "/dev/null", "no_proxy": "*"}


@contextlib.contextmanager
def serving(folder):
    double = Double(folder)
    thread = threading.Thread(target=double.server.serve_forever, daemon=True)
    thread.start()
    try:
        yield double
    finally:
        double.server.shutdown()
        double.server.server_close()
        thread.join()
