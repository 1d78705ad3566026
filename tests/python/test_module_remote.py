#!/usr/bin/env python3
"""Arrays in S3 and behind HTTP from Python: `storage_options` by fsspec's names, which go before the environment. The
server runs in this process, so that whoever talks to it while it holds Python's lock waits for ever."""
import os
import pickle
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.environ["TESSERA_SOURCE"], "tests", "cli"))

import module  # noqa: F401
import numpy as np
import remote
from module import tessera


def keys(double):
    return {"key": remote.KEY_ID, "secret": remote.SECRET, "endpoint_url": double.origin,
            "client_kwargs": {"region_name": remote.REGION}}


def refused(kind, call, says):
    """The text of the error that a call must raise."""
    try:
        call()
    except kind as error:
        assert says in str(error), str(error)
        return str(error)
    raise AssertionError(f"no error that says {says}")


def clean_environment():
    for name in list(os.environ):
        if name.startswith("AWS_"):
            del os.environ[name]
    os.environ.update({"AWS_CONFIG_FILE": "/dev/null", "AWS_SHARED_CREDENTIALS_FILE": "/dev/null", "no_proxy": "*",
                       "AWS_EC2_METADATA_DISABLED": "true"})


# Reads what a server gives within 16 MiB, and says at the end the most memory that this took, in KiB. That of ru_maxrss
# would begin with what the parent took.
READ_IN_16M = """
import sys, tessera
place, calls = sys.argv[1:]
for call in calls.splitlines():
    try:
        eval(call)
    except tessera.Error:
        continue
    raise AssertionError(call + ": no error")
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""


def check_documents_without_an_end(double):
    """They are refused within the memory that a call names, whatever it is that does not end."""
    def peak(place, *calls):
        """In MiB."""
        return int(subprocess.run([sys.executable, "-c", READ_IN_16M, place, "\n".join(calls)], check=True, text=True,
                                  stdout=subprocess.PIPE, env=environment).stdout) / 1024

    environment = {**os.environ, "AWS_ACCESS_KEY_ID": remote.KEY_ID, "AWS_SECRET_ACCESS_KEY": remote.SECRET,
                   "AWS_ENDPOINT_URL": double.origin, "AWS_REGION": remote.REGION, "PYTHONPATH": os.environ["TESSERA_MODULE"]}
    idle = peak("")
    reads = ("tessera.open(place, max_memory='16M')[...]", "tessera.copy(place, 'never', max_memory='16M')",
             "tessera.stats(place, max_memory='16M')", "tessera.digest(place, max_memory='16M')")
    for answer in remote.endless_chunks, remote.endless_rest, remote.fifty_megabytes:
        for place in ("s3://bucket/a", double.origin + "/files/a"):
            for part in ("", "/c/"):
                double.faults.answer = lambda request: answer(request) if part in request.path else False
                took = peak(place, *reads)
                assert took < 16 + idle + 32, (answer, place, part, took, idle)
    double.faults.answer = None


def check_points(double, folder):
    """Of large chunks the blocks that hold points are asked for, many chunks at once."""
    values = np.random.default_rng(5).integers(0, 99, (4096, 2048)).astype("<f4")
    draws = np.random.default_rng(6)
    indices = [draws.integers(0, n, 60) for n in values.shape]
    double.faults.delay = 0.03
    for name, codec in {"none": "none", "blosc": "blosc:lz4:5:shuffle:65536", "zstd": "zstd"}.items():
        array = tessera.create(os.path.join(folder, "points", name), values.shape, "<f4", chunks=(512, 2048), codec=codec,
                               format="v3")
        array[...] = values
        stored = sum(os.path.getsize(os.path.join(path, file)) for path, _, files in os.walk(os.path.join(folder, "points", name))
                     for file in files)
        for place, options in (("s3://bucket", keys(double)), (double.origin + "/files", {})):
            far = tessera.open(f"{place}/points/{name}", storage_options=options)
            double.reset()
            np.testing.assert_array_equal(far.vindex[indices[0], indices[1]], values[indices[0], indices[1]])
            chunks = [path for _, path, _ in double.requests if "/c/" in path]
            if name == "zstd":  # whole, by one request each
                assert len(chunks) == len(set(chunks)), len(chunks)
            assert double.bytes < 1.1 * stored + 65536, (name, double.bytes, stored)
            assert double.most_in_flight > 4, double.most_in_flight
    double.faults.delay = 0


def main():
    clean_environment()
    values = np.arange(600).reshape(20, 30)
    with tempfile.TemporaryDirectory() as folder, remote.serving(folder) as double:
        os.environ["XDG_CACHE_HOME"] = os.path.join(folder, ".cache-of-servers")
        os.environ.update({"AWS_ACCESS_KEY_ID": remote.KEY_ID, "AWS_SECRET_ACCESS_KEY": remote.SECRET,
                           "AWS_ENDPOINT_URL": double.origin, "AWS_REGION": remote.REGION})
        tessera.create("s3://bucket/a", data=values, chunks=(5, 5), format="v3", dims=("y", "x"))
        clean_environment()
        tessera.open_array("s3://bucket/a", "r+", storage_options=keys(double))[3, 3] = -1
        values[3, 3] = -1
        a = tessera.open_array("s3://bucket/a", storage_options=keys(double))
        np.testing.assert_array_equal(a[...], values)
        check_documents_without_an_end(double)
        check_points(double, folder)
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(a))[2:5, ::3], values[2:5, ::3])
        assert remote.SECRET not in repr(a)
        tessera.create(os.path.join(folder, "v2"), data=values, format="v2")
        signed = f"{double.origin}/files/v2?sig=hush"
        far = tessera.open_array(signed)
        assert far.path == signed and "hush" not in repr(far) + str(far), repr(far)
        for call in (lambda: far.__setitem__(0, 1), lambda: far > 3, lambda: tessera.open(double.origin + "/files/none?sig=hush"),
                     lambda: tessera.open(signed.replace("://", "://me:hush@"))):
            try:
                call()
            except (tessera.Error, TypeError) as error:
                assert "hush" not in str(error), str(error)
            else:
                raise AssertionError("no error")

        # What is chosen goes before the environment.
        os.environ.update({"AWS_ACCESS_KEY_ID": "AKOTHER", "AWS_SECRET_ACCESS_KEY": "x", "AWS_SESSION_TOKEN": "t",
                           "AWS_ENDPOINT_URL": "http://127.0.0.1:9", "AWS_REGION": "nowhere"})
        np.testing.assert_array_equal(tessera.open_array("s3://bucket/a", storage_options=keys(double))[...], values)
        refused(tessera.Error, lambda: tessera.open("s3://bucket/a", storage_options={"endpoint_url": double.origin}),
                      "InvalidAccessKeyId")
        clean_environment()

        # A profile of the user's, and nobody's keys.
        profile = os.path.join(folder, ".aws-config")
        with open(profile, "w") as file:
            file.write(f"[profile work]\naws_access_key_id = {remote.KEY_ID}\naws_secret_access_key = {remote.SECRET}\n"
                       f"region = {remote.REGION}\nendpoint_url = {double.origin}\n")
        os.environ["AWS_CONFIG_FILE"] = profile
        assert tessera.open("s3://bucket/a", storage_options={"profile": "work"})[3, 3] == -1
        double.faults.public = True
        anybody = {"anon": True, "endpoint_url": double.origin}
        assert tessera.open("s3://bucket/a", storage_options=anybody)[3, 3] == -1
        double.faults.public = False

        # Groups and what lies in them, and a file server that wants a header.
        group = tessera.create_group(os.path.join(folder, "g"))
        group.create_array("t", shape=(4, 6), dtype="f8", dims=("y", "x"))[...] = 2.5
        far = tessera.open_group("s3://bucket/g", storage_options=keys(double))
        assert (far["t"][...] == 2.5).all()
        assert (far.format, dict(far.attrs), "t" in far, list(far)) == ("v3", {}, True, ["t"])
        assert "t (4, 6)" in far.tree() and far.info.format == "v3" and far["t"].info.dimension_names == ["y", "x"]
        assert far["t"].isel(y=1).shape == (6,) and dict(far["t"].attrs) == {}
        double.faults.wants_header = "Bearer hush"
        place = double.origin + "/files/g/t"
        refused(tessera.Error, lambda: tessera.open(place), "401")
        for options in ({"headers": {"Authorization": "Bearer hush"}},
                        {"client_kwargs": {"headers": {"Authorization": "Bearer hush"}}}):
            assert tessera.open(place, storage_options=options)[1, 1] == 2.5
        double.faults.wants_header = None

        # Names that a URL encodes.
        odd = tessera.create_group(os.path.join(folder, "odd"))
        for name in ("a b", "c#d", "e?f/g%20h"):
            odd.create_array(name, data=values + len(name))
        odd.consolidate()
        for place in (double.origin + "/files/odd", double.origin + "/files/odd?sig=SECRET"):
            far = tessera.open(place)
            for name, kind, _ in far.walk():
                if kind == "array":
                    np.testing.assert_array_equal(far[name][...], values + len(name))
            np.testing.assert_array_equal(pickle.loads(pickle.dumps(far["e?f"]))["g%20h"][...], values + 9)
            assert far.tree() == odd.tree() and "SECRET" not in far.tree()

        # The cache.
        cache = os.path.join(folder, ".cache-of-values")
        with_cache = {**keys(double), "cache": cache, "cache_age": "1h", "cache_size": "10M"}
        np.testing.assert_array_equal(tessera.open("s3://bucket/a", storage_options=with_cache)[...], values)
        double.reset()

        def of_values():
            """The requests for documents that are there. That there is none of another format is not waited for, and may
            be asked again."""
            return [path for _, path, _ in double.requests if os.path.isfile(folder + path.removeprefix("/bucket"))]

        np.testing.assert_array_equal(tessera.open("s3://bucket/a", storage_options=with_cache)[...], values)
        assert of_values() == []
        np.testing.assert_array_equal(
            tessera.open("s3://bucket/a", storage_options={**with_cache, "offline": True})[...], values)
        assert of_values() == []

        # What is made and copied.
        given = {"storage_options": keys(double)}
        made = tessera.create("s3://bucket/made", (3, 4), "<i2", **given)
        made[1] = 5
        np.testing.assert_array_equal(tessera.load("s3://bucket/made", **given), [[0] * 4, [5] * 4, [0] * 4])
        assert tessera.create("s3://bucket/data", data=values, **given)[3, 3] == -1
        refused(tessera.AlreadyExists, lambda: tessera.create("s3://bucket/made", (3, 4), "<i2", **given), "overwrite")
        tessera.save("s3://bucket/made", values, overwrite=True, **given)
        np.testing.assert_array_equal(tessera.load("s3://bucket/made", **given), values)
        group = tessera.create_group("s3://bucket/hierarchy", **given)
        group.attrs["title"] = "of tests"
        below = group.create_array("one/below", data=values)
        below.append(values)
        below.resize((10, 30))
        below.attrs.update(unit="K")
        below.resize((20, 30))
        below[10:] = values[10:]
        assert (below[...] == values).all() and group.attrs == {"title": "of tests"}
        assert group.create_array("empty", shape=(3,), dtype="u1").dtype == "u1"
        assert sorted(pickle.loads(pickle.dumps(group))) == ["empty", "one"]
        group["assigned"] = tessera.open_array(os.path.join(folder, "g/t"))
        assert (group["assigned"][...] == 2.5).all()
        group.remove("assigned")
        local = os.path.join(folder, "fetched")
        tessera.copy(group, local)
        np.testing.assert_array_equal(tessera.load(os.path.join(local, "one/below")), values)
        tessera.copy(local, "s3://bucket/again", **given)
        tessera.copy(tessera.open("s3://bucket/again/one/below", **given), "s3://bucket/once", format="v2", **given)
        np.testing.assert_array_equal(tessera.load("s3://bucket/once", **given), values)
        store = pickle.loads(pickle.dumps(tessera.KeyStore("s3://bucket/keys", **given)))
        store["a/b"] = b"value"
        assert (store["a/b"], list(store)) == (b"value", ["a/b"])

        # Every function that takes a path takes them for it; an array that is open keeps its own.
        a, local = "s3://bucket/a", os.path.join(folder, "a")
        clean_environment()
        opened = tessera.open_array(a, **given)
        far = tessera.open_group("s3://bucket/again", **given)
        assert tessera.digest(a, **given) == tessera.digest(local) == tessera.digest(opened)
        assert tessera.digest(far) == tessera.digest("s3://bucket/again", **given) != tessera.digest(local)
        assert tessera.verify(a, **given).sound and tessera.verify(opened).sound and tessera.verify(far).sound
        assert tessera.stats(a, **given).min == -1 and tessera.info(a, **given).shape == (20, 30)
        assert tessera.diff(a, local, **given).equal and tessera.diff(local, a, **given).equal
        assert tessera.repair(far, dry_run=True).actions == [] == tessera.repair(a, dry_run=True, **given).actions
        double_of = values * 2
        np.testing.assert_array_equal(tessera.calc(None, "2 * a", {"a": a}, **given), double_of)
        tessera.calc("s3://bucket/doubled", "2 * a", {"a": opened}, **given)
        np.testing.assert_array_equal(tessera.load("s3://bucket/doubled", **given), double_of)
        np.testing.assert_array_equal(tessera.reduce(a, how="max", axis="y", **given), values.max(axis=0))
        assert tessera.coarsen(a, by=(20, 30), how="max", **given)[0, 0] == 599
        for joined in (tessera.stack([a, a], **given), tessera.stack([opened, opened])):
            np.testing.assert_array_equal(joined, [values, values])
        tessera.concat([opened, opened], "s3://bucket/twice", axis="x")
        assert tessera.load("s3://bucket/twice", **given).shape == (20, 60)
        tessera.pyramid(a, "s3://bucket/image", levels=2, **given)
        assert tessera.open_array("s3://bucket/image/1", **given).shape == (10, 15)
        tessera.seal("s3://bucket/doubled", **given)
        assert tessera.verify("s3://bucket/doubled", **given).sound
        np.testing.assert_array_equal(np.load(tessera.unstack(a, os.path.join(folder, "row-{}.npy"), **given)[3]), values[3])
        refused(tessera.Unsupported, lambda: tessera.unstack(a, "s3://bucket/row-{}", **given), "a folder on this machine")
        tessera.copy(a, "s3://bucket/copied", codec="zstd:1", **given)
        tessera.convert("s3://bucket/copied", "s3://bucket/converted", "v2", **given)
        assert tessera.digest("s3://bucket/converted", **given) == tessera.digest(local)
        view = tessera.zarr_view(a, **given)
        assert ".zarray" in view
        # They end with the call, and reach no other.
        others = {**keys(double), "key": "AKOTHER"}
        refused(tessera.InvalidArgument, lambda: tessera.stack(
            [opened, tessera.Array(opened._handle, a, "r", {"storage_options": others})]), "different ones")
        text = refused(tessera.Error, lambda: tessera.digest(a, storage_options=others), "InvalidAccessKeyId")
        assert remote.SECRET not in text
        os.environ["AWS_ENDPOINT_URL"] = double.origin
        os.environ["AWS_REGION"] = remote.REGION
        refused(tessera.InvalidArgument, lambda: tessera.stack([a, opened]), "give those for all")
        for without in (lambda: tessera.verify(a), lambda: tessera.digest(a), lambda: tessera.stack([a, a])):
            refused(tessera.Error, without, "no credentials")
        clean_environment()

        # Google Cloud Storage: keys of HMAC, or a token alone.
        double.google = True
        double.tokens.add("ya29.ours")
        token = {"token": "ya29.ours", "endpoint_url": double.origin}
        for options in (keys(double), token):
            np.testing.assert_array_equal(tessera.load("gs://bucket/a", storage_options=options), values)
        tessera.save("gs://bucket/of_google", values, storage_options=token)
        assert tessera.digest("gs://bucket/of_google", **given) == tessera.digest(local)
        refused(tessera.Error, lambda: tessera.open("gs://bucket/a", storage_options={**token, "token": "ya29.hush"}), "expired")
        double.google = False

        # What is wrong is named, without what may be a secret.
        for wrong, says in (({"keys": "hush"}, "there is no 'keys'"), ({"anon": "yes"}, "True or False"),
                            ({"key": b"hush"}, "expected a text"), ({"client_kwargs": {"verify": "hush"}}, "verify"),
                            ({"headers": {"A": "hush\r\nB: c"}}, "one line"), ({"cache_age": "soon"}, "cache_age"),
                            ({"absent": 404}, "401 or 403")):
            text = refused(tessera.InvalidArgument, lambda: tessera.open("s3://bucket/a", storage_options=wrong), says)
            assert "hush" not in text

        try:
            import xarray
        except ImportError:
            return
        data = xarray.open_dataset("s3://bucket/g", engine="tessera", storage_options=keys(double))
        assert (data["t"].values == 2.5).all()


if __name__ == "__main__":
    main()
