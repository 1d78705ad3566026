"""A server of our own for tests of remote stores: files over plain HTTP at /files/..., and S3 at /BUCKET/KEY, strict where
S3 is strict (signatures, sums of bodies, ranges, conditions, listings, uploads in parts), with switches for faults. It
counts what it is asked. With `google` it is Google Cloud Storage, by the XML API. Of the standard library alone; facts: RFC
9110, the Amazon S3 API reference, and Google's reference of the XML API.
"""

import base64
import contextlib
import datetime
import email.utils
import hashlib
import hmac
import http.client
import http.server
import json
import os
import pathlib
import random
import re
import tempfile
import threading
import time
import urllib.parse
import xml.sax.saxutils

KEY_ID, SECRET, REGION = "AKTESSERA", "a secret/of+ours", "eu-test-1"
EXPIRED = ("ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired")


class Faults:
    """What goes wrong: each is a chance between 0 and 1, drawn for each request, or a switch."""

    def __init__(self):
        self.cut = 0.0  # the body ends in its midst, and the connection with it
        self.reset = 0.0  # no answer
        self.busy = 0.0  # 503
        self.lose = 0.0  # a write is carried out, and not answered
        self.collide = 0.0  # 409 to a write on a condition
        self.pause = 0.0  # 0.2 s before a write is carried out
        self.busy_next = 0  # so many of the next answers are 503
        self.forget_length = False  # no Content-Length: the end of the connection ends the body
        self.ignore_ranges = False
        self.wrong_range = False  # one byte further than asked
        self.ignore_start = False  # start-after
        self.forbid_absent = False  # 403 where there is nothing
        self.delay = 0.0
        self.ignore_conditions = False  # s3rver, fauxqs
        self.refuse_conditions = False  # swift: 501
        self.ignore_matches = False  # If-None-Match alone is held
        self.bare_etags = False  # Ceph: If-Match holds without quotation marks only
        self.forget_metadata = False  # x-amz-meta-... is dropped
        self.error_in_answer = 0  # so many of the next uploads in parts end with 200 and an error
        self.age = 0  # seconds that values are older than they are
        self.region = ""  # another one than REGION
        self.clock = 0  # seconds by which the server's clock is ahead
        self.expired = {}  # by the ids of keys: the code that says so, with 400
        self.public = False  # S3 without signatures
        self.wants_query = None  # of files over HTTP, else 403
        self.wants_header = None  # Authorization, else 401
        self.redirect = None
        self.answer = None  # a function of the request, which answers it or returns False
        self.random = random.Random(1)
        self.most = 4  # how often the same request fails in one way
        self.seen = {}

    def draws(self, name, what):
        # The same request does not fail for ever.
        chance = getattr(self, name)
        if chance == 0 or self.seen.get((name, what), 0) >= self.most:
            return False
        if self.random.random() >= chance:
            return False
        self.seen[name, what] = self.seen.get((name, what), 0) + 1
        return True


def endless_chunks(request):
    request.wfile.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    while True:
        request.wfile.write(b"10000\r\n" + b" " * 65536 + b"\r\n")


def endless_rest(request):
    request.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n")
    while True:
        request.wfile.write(b" " * 65536)


def fifty_megabytes(request):
    request.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 50000000\r\n\r\n")
    for _ in range(763):
        request.wfile.write(b" " * 65536)
    request.close_connection = True


def endless_header(request):
    request.wfile.write(b"HTTP/1.1 200 OK\r\n")
    for number in range(1 << 40):
        request.wfile.write(b"X-%d: " % number + b"a" * 60_000 + b"\r\n")


ENDLESS = (endless_chunks, endless_rest, fifty_megabytes, endless_header)  # for faults.answer


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1

    def log_message(self, *_):
        pass

    def do_HEAD(self):
        self.do_GET()

    def do_PUT(self):
        self.do_GET()

    def do_POST(self):
        self.do_GET()

    def do_DELETE(self):
        self.do_GET()

    def do_GET(self):
        double = self.server.double
        self.body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        with double.lock:
            double.requests.append((self.command, self.path, self.headers.get("Range")))
            double.headers.append(self.headers)
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
        if faults.answer and faults.answer(self) is not False:
            return None
        if faults.redirect:
            return self.send(302, b"", {"Location": faults.redirect})
        with double.lock:
            busy = faults.busy_next > 0
            faults.busy_next -= busy
            busy = busy or faults.draws("busy", self.path)
            reset = faults.draws("reset", self.path)
            cut = faults.draws("cut", self.path)
            writes = self.command in ("PUT", "POST", "DELETE")
            self.lost = writes and faults.draws("lose", self.path)
            collides = self.command == "PUT" and faults.draws("collide", self.path)
            pauses = writes and faults.draws("pause", self.path)
        if reset:
            self.close_connection = True
            return self.connection.shutdown(2)
        if busy:
            return self.send(503, b"<Error><Code>SlowDown</Code></Error>", {"Retry-After": "0"})
        path, _, query = self.path.partition("?")
        parts = urllib.parse.unquote(path).lstrip("/").split("/", 1)
        bucket, key = parts[0], parts[1] if len(parts) > 1 else ""
        if bucket == "computeMetadata":
            return double.services.answer(self, path.lstrip("/"), {})
        if bucket == "services":
            return double.services.answer(self, key, dict(urllib.parse.parse_qsl(query)))
        if bucket == "files" and faults.wants_query and query != faults.wants_query:
            return self.error(403, "AuthenticationFailed")
        if bucket == "files" and faults.wants_header and self.headers.get("Authorization") != faults.wants_header:
            return self.error(401, "Unauthorized")
        if bucket != "files":
            if not faults.public and (wrong := self.wrong_signature(path, query)):
                return self.error(401 if wrong == "AuthenticationRequired" else
                                  400 if wrong in (*EXPIRED, "ExcessHeaderValues") else 403, wrong)
            if bucket not in double.buckets:
                return self.error(404, "NoSuchBucket")
            if self.command in ("PUT", "POST") and "Content-Length" not in self.headers:
                return self.error(411, "MissingContentLength")
            if writes:
                if collides and ("If-Match" in self.headers or "If-None-Match" in self.headers):
                    return self.error(409, "ConditionalRequestConflict")
                time.sleep(0.2 if pauses else 0)
                return self.write(double, key, dict(urllib.parse.parse_qsl(query, keep_blank_values=True)))
            if not key and "uploads" in query.split("&")[-1]:
                return self.list_uploads(dict(urllib.parse.parse_qsl(query, keep_blank_values=True)))
            if not key:
                return self.list(bucket, dict(urllib.parse.parse_qsl(query, keep_blank_values=True)))
        elif self.command not in ("GET", "HEAD"):
            return self.error(405, "MethodNotAllowed")
        file = double.folder / key
        with double.work:
            there = key and ".." not in key.split("/") and file.is_file()
            body = file.read_bytes() if there else b""
            made, metadata = double.objects.get(key, (file.stat().st_mtime, {})) if there else (0, {})
        if not there:
            return self.error(403, "AccessDenied") if faults.forbid_absent else self.error(404, "NoSuchKey")
        headers = {"Last-Modified": email.utils.formatdate(made - faults.age, usegmt=True), **metadata}
        if double.google:
            headers["x-goog-generation"] = str(double.generation_of(key))
        return self.value(body, faults, cut, headers)

    # ---- writing

    def write(self, double, key, query):
        faults = double.faults
        if not key or ".." in key.split("/"):
            return self.error(405, "MethodNotAllowed")
        metadata = {} if faults.forget_metadata else {
            name.lower(): value for name, value in self.headers.items() if name.lower().startswith(double.named("meta-"))}
        if self.headers.get("Content-MD5") not in (None, base64.b64encode(hashlib.md5(self.body).digest()).decode()):
            return self.error(400, "BadDigest")
        if sum(len(name) + len(value) for name, value in metadata.items()) > 2048:
            return self.error(400, "MetadataTooLarge")
        upload = query.get("uploadId")
        if upload is not None and upload not in double.uploads:
            return self.error(404, "NoSuchUpload")
        if self.command == "POST" and "uploads" in query:
            upload = f"upload/{len(double.uploads)}+{time.monotonic_ns()}"
            double.uploads[upload] = (key, metadata, {})
            return self.answer_write(200, f"<InitiateMultipartUploadResult><UploadId>{upload}</UploadId>"
                                          "</InitiateMultipartUploadResult>")
        if self.command == "PUT" and upload is not None:
            double.uploads[upload][2][int(query["partNumber"])] = self.body
            return self.answer_write(200, "", {"ETag": '"' + hashlib.md5(self.body).hexdigest() + '"'})
        if self.command == "DELETE" and upload is not None:
            del double.uploads[upload]
            return self.answer_write(204, "")
        if self.command == "POST":
            return self.complete(double, key, upload)
        with double.work:
            if wrong := self.broken_condition(double, key):
                return self.error(*wrong)
            if self.command == "DELETE":
                (double.folder / key).unlink(missing_ok=True)
                double.objects.pop(key, None)
                return self.answer_write(204, "")
            self.store(double, key, self.body, metadata)
            made = {"x-goog-generation": str(double.generation_of(key))} if double.google else {}
        return self.answer_write(200, "", {"ETag": '"' + hashlib.md5(self.body).hexdigest() + '"', **made})

    def store(self, double, key, body, metadata):
        file = double.folder / key
        file.parent.mkdir(parents=True, exist_ok=True)
        beside = file.parent / f".put-{threading.get_ident()}"
        beside.write_bytes(body)
        os.replace(beside, file)
        double.objects[key] = (time.time(), metadata)
        double.written += 1
        double.generations[key] = 1_700_000_000_000_000 + double.written

    def complete(self, double, key, upload):
        faults = double.faults
        if faults.error_in_answer > 0:
            faults.error_in_answer -= 1
            return self.send(200, b"<Error><Code>InternalError</Code></Error>", {})
        named, metadata, parts = double.uploads[upload]
        asked = [(int(number), etag) for number, etag in
                 re.findall(r"<PartNumber>(\d+)</PartNumber><ETag>([^<]*)</ETag>", self.body.decode())]
        right = all(n in parts and etag.replace("&quot;", '"') == '"' + hashlib.md5(parts[n]).hexdigest() + '"'
                    for n, etag in asked)
        if named != key or not asked or not right:
            return self.error(400, "InvalidPart")
        if any(len(parts[n]) < 5 << 20 for n, _ in asked[:-1]):
            return self.error(400, "EntityTooSmall")
        with double.work:
            if wrong := self.broken_condition(double, key):
                return self.error(*wrong)
            self.store(double, key, b"".join(parts[n] for n, _ in asked), metadata)
            del double.uploads[upload]
        return self.answer_write(200, "<CompleteMultipartUploadResult></CompleteMultipartUploadResult>")

    def broken_condition(self, double, key):
        """The status and the code of the error; None if the conditions hold."""
        faults = double.faults
        file = double.folder / key
        if faults.refuse_conditions and ("If-Match" in self.headers or "If-None-Match" in self.headers):
            return 501, "NotImplemented"
        if faults.ignore_conditions:
            return None
        if double.google:  # which ignores If-Match and If-None-Match here
            wanted = self.headers.get("x-goog-if-generation-match")
            if wanted is None:
                return None
            if not wanted.isdigit():
                return 400, "InvalidArgument"
            return None if int(wanted) == double.generation_of(key) else (412, "PreconditionFailed")
        wanted, unwanted = self.headers.get("If-Match"), self.headers.get("If-None-Match")
        if unwanted not in (None, "*") or None not in (wanted, unwanted):
            return 501, "NotImplemented"
        if unwanted and file.is_file():
            return 412, "PreconditionFailed"
        if wanted is not None and not faults.ignore_matches:
            if not file.is_file():
                return 404, "NoSuchKey"
            etag = hashlib.md5(file.read_bytes()).hexdigest()
            if self.command == "DELETE" and wanted == "*":  # a PUT takes an ETag alone
                return None
            if (wanted if faults.bare_etags else wanted.strip('"')) != etag:
                return 412, "PreconditionFailed"
        return None

    def names(self, header, etag):
        """Whether a condition of a read names the ETag, with quotation marks or without; None if there is no condition."""
        tags = self.headers.get(header)
        return None if tags is None else tags == "*" or etag.strip('"') in [tag.strip(' "') for tag in tags.split(",")]

    def is_newer(self, made, header):
        """Whether the value is newer than the date of a condition; None if there is no condition."""
        date = email.utils.parsedate(self.headers.get(header, ""))
        return email.utils.parsedate(made)[:6] > date[:6] if date else None

    def answer_write(self, status, text, headers=None):
        if self.lost:
            self.close_connection = True
            return self.connection.shutdown(2)
        return self.send(status, text.encode(), headers or {})

    def list_uploads(self, query):
        most = 2  # a thousand elsewhere
        after = (query.get("key-marker", ""), query.get("upload-id-marker", ""))
        begun = sorted((key, upload) for upload, (key, _, _) in self.server.double.uploads.items())
        begun = [one for one in begun if one[0].startswith(query.get("prefix", "")) and one > after]
        quoted = xml.sax.saxutils.escape
        text = "".join(f"<Upload><Key>{quoted(key)}</Key><UploadId>{upload}</UploadId></Upload>" for key, upload in begun[:most])
        if len(begun) > most:
            text += (f"<IsTruncated>true</IsTruncated><NextKeyMarker>{quoted(begun[most - 1][0])}</NextKeyMarker>"
                     f"<NextUploadIdMarker>{begun[most - 1][1]}</NextUploadIdMarker>")
        self.send(200, f"<ListMultipartUploadsResult>{text}</ListMultipartUploadsResult>".encode(), {})

    def value(self, body, faults, cut, more):
        etag = '"' + hashlib.md5(body).hexdigest() + '"'
        wanted, unwanted, made = self.names("If-Match", etag), self.names("If-None-Match", etag), more["Last-Modified"]
        if wanted is False or (wanted is None and self.is_newer(made, "If-Unmodified-Since")):
            return self.error(412, "PreconditionFailed")
        if unwanted or (unwanted is None and self.is_newer(made, "If-Modified-Since") is False):
            return self.send(304, b"", {"ETag": etag, **more})
        headers = {"ETag": etag, "Accept-Ranges": "bytes", **more}
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
        region = self.server.double.faults.region if code == "AuthorizationHeaderMalformed" else ""
        more = f"<Region>{region}</Region>" if region else ""
        # As Amazon does, which says nothing else to a HEAD.
        header = {"x-amz-bucket-region": region} if region and self.command == "HEAD" else {}
        self.send(status, f"<Error><Code>{code}</Code>{more}</Error>".encode(), {"Content-Type": "application/xml", **header})

    def date_time_string(self, timestamp=None):
        return super().date_time_string(time.time() + self.server.double.faults.clock if timestamp is None else timestamp)

    def list(self, bucket, query):
        """ListObjectsV2, three entries a page so that pages are turned."""
        folder, prefix = self.server.double.folder, query.get("prefix", "")
        # What the page begins after; a folder is after its name with a slash, whatever lies in it.
        start = "" if self.server.double.faults.ignore_start else query.get("start-after", "")
        after = query.get("continuation-token") or start
        entries = {}
        for name in self.server.double.names(prefix.rpartition("/")[0]):
            if not name.startswith(prefix) or name <= after:
                continue
            head, slash, _ = name[len(prefix):].partition(query.get("delimiter") or "\0")
            entries[prefix + head + slash] = slash
        quoted = (lambda text: urllib.parse.quote(text)) if query.get("encoding-type") == "url" else xml.sax.saxutils.escape
        page = [name for name in sorted(entries) if name > query.get("continuation-token", "")]
        size = self.server.double.page
        text = "<ListBucketResult>"
        for name in page[:size]:
            if entries[name]:
                text += f"<CommonPrefixes><Prefix>{quoted(name)}</Prefix></CommonPrefixes>"
                continue
            with contextlib.suppress(FileNotFoundError):
                body = (folder / name).read_bytes()
                text += (f"<Contents><Key>{quoted(name)}</Key><ETag>&quot;{hashlib.md5(body).hexdigest()}&quot;</ETag>"
                         f"<Size>{len(body)}</Size></Contents>")
        if len(page) > size:
            text += (f"<IsTruncated>true</IsTruncated><NextContinuationToken>{xml.sax.saxutils.escape(page[size - 1])}"
                     "</NextContinuationToken>")
        self.send(200, (text + "</ListBucketResult>").encode(), {"Content-Type": "application/xml"})

    def wrong_signature(self, path, query, service="s3"):
        """The code of the error; None if the request is signed as it should be."""
        double = self.server.double
        keys = double.keys
        google = double.google and service == "s3"
        version, last, named = ("GOOG4", "goog4_request", "x-goog-") if google else ("AWS4", "aws4_request", "x-amz-")
        if google:
            service = "storage"
            if any(name.lower().startswith("x-amz-") for name in self.headers):
                return "ExcessHeaderValues"
            kind, _, token = self.headers.get("Authorization", "").partition(" ")
            if kind == "Bearer":
                return None if token in double.tokens else "AuthenticationRequired"
        found = re.fullmatch(version + r"-HMAC-SHA256 Credential=([^/]+)/(\d{8})/([^/]+)/(?:s3|sts|storage)/" + last +
                             r", SignedHeaders=([^,]+), Signature=([0-9a-f]{64})", self.headers.get("Authorization", ""))
        if not found:
            return "AccessDenied"
        key_id, day, region, names, signature = found.groups()
        if key_id in double.faults.expired:
            return double.faults.expired[key_id]
        with double.lock:
            used = double.services.used[key_id] = double.services.used.get(key_id, 0) + 1
        if key_id.startswith("ASIA") and 0 < double.services.lives < used:
            return "ExpiredToken"
        if key_id not in keys:
            return "InvalidAccessKeyId"
        secret, token = keys[key_id]
        if self.headers.get("x-amz-security-token") != token:
            return "InvalidToken"
        if region != ("auto" if google else double.faults.region or REGION):
            return "AuthorizationHeaderMalformed"
        signed = datetime.datetime.strptime(self.headers[named + "date"], "%Y%m%dT%H%M%SZ").replace(tzinfo=datetime.timezone.utc)
        if abs(signed.timestamp() - time.time() - double.faults.clock) > 900:
            return "RequestTimeTooSkewed"
        if hashlib.sha256(self.body).hexdigest() != self.headers[named + "content-sha256"]:
            return "XAmzContentSHA256Mismatch"
        if any(name.lower().startswith(named) and name.lower() not in names.split(";") for name in self.headers):
            return "AccessDenied"  # a header that has to be signed and is not
        lines = "".join(f"{name}:{self.headers.get(name, '').strip()}\n" for name in names.split(";"))
        sorted_query = "&".join(sorted(part if "=" in part else part + "=" for part in query.split("&") if part))
        if sorted_query != query or not {"host", named + "date", named + "content-sha256"} <= set(names.split(";")):
            return "SignatureDoesNotMatch"
        request = "\n".join([self.command, path, query, lines, names, self.headers[named + "content-sha256"]])
        scope = f"{day}/{region}/{service}/{last}"
        to_sign = "\n".join([version + "-HMAC-SHA256", self.headers[named + "date"], scope,
                             hashlib.sha256(request.encode()).hexdigest()])
        key = (version + secret).encode()
        for part in (day, region, service, last):
            key = hmac.new(key, part.encode(), hashlib.sha256).digest()
        right = hmac.new(key, to_sign.encode(), hashlib.sha256).hexdigest()
        return None if hmac.compare_digest(right, signature) else "SignatureDoesNotMatch"


class Services:
    """What gives keys for a time: STS, SSO, a container's and a machine's service, below /services/."""

    def __init__(self, double):
        self.double = double
        self.life = 3600  # seconds
        self.lives = 0  # a key serves for so many requests; 0: for all
        self.used = {}  # how often each was
        self.given = []  # by what each key was given

    def new_keys(self, way):
        number = len(self.given)
        self.given.append(way)
        keys = f"ASIA{number}", f"secret/{number}", f"token+{number}="
        self.double.keys[keys[0]] = keys[1:]
        return (*keys, time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + self.life)))

    def answer(self, request, path, query):
        def as_json(way):
            key, secret, token, end = self.new_keys(way)
            text = json.dumps({"Code": "Success", "AccessKeyId": key, "SecretAccessKey": secret, "Token": token,
                               "Expiration": end})
            request.send(200, text.encode(), {"Content-Type": "application/json"})

        form = dict(urllib.parse.parse_qsl(request.body.decode()))
        if path == "google/token" or path.startswith("computeMetadata/"):
            return self.google_token(request, path, form)
        if path in ("sts", "sts/"):
            if form.get("Action") == "AssumeRole":
                if wrong := request.wrong_signature("/services/sts/", "", "sts"):
                    return request.error(403, wrong)
                way = f"role {form['RoleArn']} {form.get('ExternalId', '')}".strip()
            elif form.get("WebIdentityToken") == "a web token":
                way = f"web {form['RoleArn']}"
            else:
                return request.error(400, "InvalidIdentityToken")
            key, secret, token, end = self.new_keys(way)
            return request.send(200, f"<R><Credentials><AccessKeyId>{key}</AccessKeyId><SecretAccessKey>{secret}"
                                     f"</SecretAccessKey><SessionToken>{token}</SessionToken><Expiration>{end}"
                                     "</Expiration></Credentials></R>".encode(), {})
        if path == "sso/federation/credentials":
            if request.headers.get("x-amz-sso_bearer_token") != "an sso token":
                return request.error(401, "UnauthorizedException")
            key, secret, token, _ = self.new_keys(f"sso {query['account_id']} {query['role_name']}")
            end = int((time.time() + self.life) * 1000)
            return request.send(200, json.dumps({"roleCredentials": {
                "accessKeyId": key, "secretAccessKey": secret, "sessionToken": token, "expiration": end}}).encode(), {})
        if path == "container":
            if request.headers.get("Authorization") != "a container's token":
                return request.error(403, "AccessDenied")
            return as_json("container")
        if path == "machine/latest/api/token" and request.command == "PUT":
            if request.headers.get("x-aws-ec2-metadata-token-ttl-seconds") is None:
                return request.error(400, "BadRequest")
            return request.send(200, b"a machine's token", {})
        if path.startswith("machine/latest/meta-data/iam/security-credentials/"):
            if request.headers.get("x-aws-ec2-metadata-token") != "a machine's token":
                return request.error(401, "Unauthorized")
            return as_json("machine") if path.endswith("/a-role") else request.send(200, b"a-role", {})
        return request.error(404, "NotFound")


    def google_token(self, request, path, form):
        if path.startswith("computeMetadata/"):
            right = (path == "computeMetadata/v1/instance/service-accounts/default/token" and
                     request.headers.get("Metadata-Flavor") == "Google")
            way = "machine"
        elif form.get("grant_type") == "refresh_token":
            right = (form["client_id"], form["client_secret"], form["refresh_token"]) == ("a client", "a/secret", "1//fresh")
            way = "user"
        else:
            right = form.get("grant_type") == "urn:ietf:params:oauth:grant-type:jwt-bearer" and self.is_signed(form["assertion"])
            way = "service"
        if not right:
            return request.send(400, b'{"error": "invalid_grant"}', {})
        token = f"ya29.{len(self.given)}"
        self.given.append(way)
        self.double.tokens.add(token)
        request.send(200, json.dumps({"access_token": token, "expires_in": self.life, "token_type": "Bearer"}).encode(), {})

    def is_signed(self, statement):
        """Whether it is of the service account, signed with RS256 by its key (RFC 7515, RFC 8017)."""
        def decoded(text):
            return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))

        text, _, signature = statement.rpartition(".")
        head, claim = (json.loads(decoded(part)) for part in text.split("."))
        size = (self.modulus.bit_length() + 7) // 8
        sum_of_text = bytes.fromhex("3031300d060960864801650304020105000420") + hashlib.sha256(text.encode()).digest()
        right = b"\0\1" + b"\xff" * (size - len(sum_of_text) - 3) + b"\0" + sum_of_text
        opened = pow(int.from_bytes(decoded(signature), "big"), 65537, self.modulus).to_bytes(size, "big")
        return (opened == right and head["alg"] == "RS256" and claim["iss"] == "tests@project" and
                claim["aud"] == self.double.origin + "/services/google/token" and "scope" in claim and
                claim["iat"] - 5 < time.time() < claim["exp"] <= claim["iat"] + 3600)


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 512

    def handle_error(self, *_):
        pass  # connections that end early are part of the tests

    def process_request(self, request, client_address):
        with self.double.lock:
            self.double.connected += 1
        super().process_request(request, client_address)

    def shutdown_request(self, request):
        super().shutdown_request(request)
        with self.double.lock:
            self.double.connected -= 1


class Double:
    def __init__(self, folder, host="127.0.0.1"):
        self.folder = pathlib.Path(folder)
        self.buckets = {"bucket"}
        self.keys = {KEY_ID: (SECRET, None)}  # and the token of the session
        self.services = Services(self)
        self.page = 3
        self.lock = threading.Lock()
        self.work = threading.Lock()  # held while a condition is checked and a value set
        self.connected = 0
        self.objects = {}  # of what was written here: when, and its metadata
        self.uploads = {}
        self.written = 0
        self.google = False  # Google Cloud Storage in place of S3
        self.tokens = set()  # that are enough by themselves there
        self.generations = {}
        self.faults = Faults()
        self.forget()
        self.reset()
        self.server = Server((host, 0), Handler)
        self.server.double = self
        self.origin = f"http://127.0.0.1:{self.server.server_address[1]}"

    def names(self, below):
        """The keys of all values at and below a folder, in no order."""
        for folder, _, files in os.walk(self.folder / below):
            at = os.path.relpath(folder, self.folder)
            for name in files:
                if not name.startswith(".put-"):
                    yield name if at == "." else f"{at}/{name}"

    def named(self, name):
        return ("x-goog-" if self.google else "x-amz-") + name

    def generation_of(self, key):
        file = self.folder / key
        return 0 if not file.is_file() else self.generations.get(key) or file.stat().st_mtime_ns

    def settle(self):
        """Waits until all that a program sent before its end has been done."""
        # Connections are taken in their order: those of before are counted once this one is answered.
        with contextlib.closing(http.client.HTTPConnection(*self.server.server_address)) as connection:
            connection.request("GET", "/")
            connection.getresponse().read()
        while self.connected:
            time.sleep(0.001)

    def reset(self):
        self.requests, self.headers, self.bytes, self.in_flight, self.most_in_flight = [], [], 0, 0, 0

    @property
    def environment(self):
        """For a program that is to see this server alone, and nothing of the machine's own settings."""
        return {"AWS_ENDPOINT_URL": self.origin, "AWS_REGION": REGION, "AWS_ACCESS_KEY_ID": KEY_ID,
                "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_CONFIG_FILE": "/dev/null",
                "AWS_SHARED_CREDENTIALS_FILE": "/dev/null", "no_proxy": "*", "AWS_EC2_METADATA_DISABLED": "true",
                "XDG_CACHE_HOME": self.cache.name}

    def forget(self):
        """Lets programs ask anew what this server promises."""
        self.cache = tempfile.TemporaryDirectory()


@contextlib.contextmanager
def serving(folder, host="127.0.0.1"):
    double = Double(folder, host)
    thread = threading.Thread(target=double.server.serve_forever, daemon=True)
    thread.start()
    try:
        yield double
    finally:
        double.server.shutdown()
        double.server.server_close()
        thread.join()


class InBucket:
    """A mixin for tests of the program: s3://bucket is the folder `bucket`, served by `double`."""

    def setUp(self):
        super().setUp()
        self.bucket = self.folder / "bucket"
        self.bucket.mkdir()
        context = serving(self.bucket)
        self.double = context.__enter__()
        self.addCleanup(context.__exit__, None, None, None)
        self.environment = {**os.environ, **self.double.environment}

    def run_program(self, *words, env=None, **options):
        return super().run_program(*words, env={**self.environment, **self.double.environment, **(env or {})}, **options)
